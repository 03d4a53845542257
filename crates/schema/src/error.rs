//! Field errors, worded as Kubernetes words them (apimachinery `field.Error`).

use std::fmt;

use serde_json::Value;

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
            Self::Invalid | Self::TooLong | Self::TooMany => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
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
        if let Some(value) = &self.value {
            match value {
                Value::Object(_) | Value::Array(_) => text.push_str(": "),
                _ => text.push_str(&format!(": {value}")),
            }
        }
        if !self.detail.is_empty() {
            if !text.ends_with(": ") {
                text.push_str(": ");
            }
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
