//! Typed access to the keywords of one schema node.

use serde_json::{Map, Number, Value};

use crate::error::{FieldError, FieldErrorKind};
use crate::path::Path;

/// The keywords of a node, and where errors about them go.
///
/// A keyword that is null is absent, as the CRD API decodes it.
pub(crate) struct Keywords<'a, 'e> {
    pub(crate) map: &'a Map<String, Value>,
    pub(crate) path: &'e Path<'e>,
    pub(crate) errors: &'e mut Vec<FieldError>,
}

impl<'a> Keywords<'a, '_> {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn string(&mut self, name: &str) -> Option<&'a str> {
        let value = self.get(name)?;
        value
            .as_str()
            .or_else(|| self.wrong_type(name, value, "string"))
    }

    /// A string that is not empty.
    pub(crate) fn text(&mut self, name: &str) -> Option<&'a str> {
        self.string(name).filter(|text| !text.is_empty())
    }

    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let Some(value) = self.get(name) else {
            return false;
        };
        value
            .as_bool()
            .or_else(|| self.wrong_type(name, value, "boolean"))
            .unwrap_or(false)
    }

    pub(crate) fn count(&mut self, name: &str) -> Option<u64> {
        let value = self.get(name)?;
        let count = value.as_u64().or_else(|| {
            let whole = value
                .as_f64()
                .filter(|n| n.fract() == 0.0 && *n >= 0.0 && *n < 1e15)?;
            Some(whole as u64)
        });
        count.or_else(|| self.wrong_type(name, value, "non-negative integer"))
    }

    pub(crate) fn number(&mut self, name: &str) -> Option<Number> {
        let value = self.get(name)?;
        let number = value.as_number().cloned();
        number.or_else(|| self.wrong_type(name, value, "number"))
    }

    pub(crate) fn array(&mut self, name: &str) -> &'a [Value] {
        let Some(value) = self.get(name) else {
            return &[];
        };
        let array = value.as_array().map(Vec::as_slice);
        array
            .or_else(|| self.wrong_type(name, value, "array"))
            .unwrap_or(&[])
    }

    pub(crate) fn strings(&mut self, name: &str) -> Vec<String> {
        let array = self.array(name);
        let strings: Vec<String> = array
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        if strings.len() < array.len() {
            self.wrong_type::<()>(name, &Value::from(array), "array of strings");
        }
        strings
    }

    pub(crate) fn error(&mut self, kind: FieldErrorKind, name: &str, detail: &str) {
        let path = self.path.field(name).text();
        self.errors.push(FieldError::new(kind, path, detail));
    }

    pub(crate) fn required(&mut self, name: &str, detail: &str) {
        self.error(FieldErrorKind::Required, name, detail);
    }

    pub(crate) fn forbidden(&mut self, name: &str, detail: &str) {
        self.error(FieldErrorKind::Forbidden, name, detail);
    }

    pub(crate) fn invalid(&mut self, name: &str, value: &Value, detail: &str) {
        let path = self.path.field(name).text();
        self.errors
            .push(FieldError::new(FieldErrorKind::Invalid, path, detail).with_value(value.clone()));
    }

    pub(crate) fn unsupported(&mut self, name: &str, value: &str, supported: &str) {
        let path = self.path.field(name).text();
        self.errors.push(
            FieldError::new(
                FieldErrorKind::NotSupported,
                path,
                format!("supported values: {supported}"),
            )
            .with_value(Value::from(value)),
        );
    }

    fn wrong_type<T>(&mut self, name: &str, value: &Value, wanted: &str) -> Option<T> {
        let path = self.path.field(name).text();
        self.errors.push(
            FieldError::new(
                FieldErrorKind::TypeInvalid,
                path,
                format!("must be of type {wanted}"),
            )
            .with_value(value.clone()),
        );
        None
    }
}
