//! Field errors, worded as Kubernetes words them (apimachinery `field.Error`).

use std::fmt;

use serde_json::Value;

use crate::number;

/// What is wrong with a field. Names and texts are those of apimachinery's `field.ErrorType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// A required field is missing.
    Required,
    /// The value is malformed or out of bounds.
    Invalid,
    /// The value has another JSON type.
    TypeInvalid,
    /// The value is not one of an enumeration.
    NotSupported,
    /// A value that must be unique occurs again.
    Duplicate,
    /// The field may not be set.
    Forbidden,
    /// Text or array is too long.
    TooLong,
    /// Too many items or properties.
    TooMany,
}

impl FieldErrorKind {
    /// The `reason` of a `Status` cause, such as `FieldValueRequired`.
    pub fn cause(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
        }
    }

    /// Whether messages show the value (apimachinery `Error.ErrorBody`).
    fn shows_value(self) -> bool {
        match self {
            Self::Required | Self::Forbidden | Self::TooLong => false,
            Self::Invalid
            | Self::TypeInvalid
            | Self::NotSupported
            | Self::Duplicate
            | Self::TooMany => true,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Duplicate => "Duplicate value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }
}

/// One thing that is wrong with an object.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// Kind.
    pub kind: FieldErrorKind,
    /// Path, such as `spec.items[0].name`; `<nil>` for the object itself, as Kubernetes prints it.
    pub field: String,
    /// The offending value, where it is worth showing.
    pub value: Option<Value>,
    /// What was expected.
    pub detail: String,
}

impl FieldError {
    /// An error without a value.
    pub fn new(kind: FieldErrorKind, field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            kind,
            field: field.into(),
            value: None,
            detail: detail.into(),
        }
    }

    /// The same error, showing a value.
    pub fn with_value(mut self, value: Value) -> Self {
        self.value = Some(value);
        self
    }

    /// The message without the field: `Invalid value: 3: must be ...`.
    pub fn body(&self) -> String {
        let mut text = self.kind.text().to_owned();
        if let Some(value) = self.value.as_ref().filter(|_| self.kind.shows_value()) {
            text.push_str(": ");
            match value {
                Value::Number(number) => text.push_str(&number::show(number)),
                value => text.push_str(&value.to_string()),
            }
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

impl std::error::Error for FieldError {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_show_values_as_apimachinery_does() {
        use FieldErrorKind as K;
        let case = |kind, value: Option<Value>, detail: &str| {
            let error = FieldError::new(kind, "spec.x", detail);
            match value {
                Some(value) => error.with_value(value).to_string(),
                None => error.to_string(),
            }
        };
        assert_eq!(case(K::Required, None, ""), "spec.x: Required value");
        assert_eq!(
            case(K::Required, Some(json!("")), "must be set"),
            "spec.x: Required value: must be set"
        );
        assert_eq!(
            case(K::Invalid, Some(json!("a\"b")), "bad"),
            r#"spec.x: Invalid value: "a\"b": bad"#
        );
        assert_eq!(
            case(K::Invalid, Some(json!(1e6)), "bad"),
            "spec.x: Invalid value: 1e+06: bad"
        );
        assert_eq!(case(K::Invalid, None, "bad"), "spec.x: Invalid value: bad");
        assert_eq!(
            case(K::Duplicate, Some(json!({"name": "a"})), ""),
            r#"spec.x: Duplicate value: {"name":"a"}"#
        );
        assert_eq!(
            case(K::TooMany, Some(json!(3)), "must have at most 2 items"),
            "spec.x: Too many: 3: must have at most 2 items"
        );
    }
}
