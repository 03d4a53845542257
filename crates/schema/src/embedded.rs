//! Resources within resources (apiextensions `pkg/apiserver/schema/objectmeta/validation.go`).

use ecp_meta::names;
use serde_json::Value;

use crate::error::{FieldError, FieldErrorKind};
use crate::limits::ERRORS_MAX;
use crate::node::Node;
use crate::path::Path;

/// Checks `apiVersion`, `kind` and `metadata` of embedded resources.
pub(crate) fn check(node: &Node, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !node
        .checks
        .as_ref()
        .is_some_and(|checks| checks.has_resources)
    {
        return;
    }
    match value {
        Value::Object(map) => {
            if node.embedded_resource && errors.len() < ERRORS_MAX {
                check_resource(value, path, errors);
            }
            for (key, value) in map {
                if let Some(child) = node.properties.get(key) {
                    check(child, value, &path.field(key), errors);
                } else if let Some(child) = &node.additional {
                    check(child, value, &path.key(key), errors);
                }
            }
        }
        Value::Array(items) => {
            if let Some(item) = node.items.as_deref() {
                for (i, value) in items.iter().enumerate() {
                    check(item, value, &path.index(i), errors);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn check_resource(resource: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let at = path.field(name);
        let invalid = |value: &Value, detail: &str| {
            let error = FieldError::new(FieldErrorKind::Invalid, at.text(), detail);
            error.with_value(value.clone())
        };
        match resource.get(name) {
            None => errors.push(FieldError::new(FieldErrorKind::Required, at.text(), "")),
            Some(value) => match value.as_str() {
                None => errors.push(invalid(value, "must be a string")),
                Some("") => errors.push(invalid(value, "must not be empty")),
                Some(text) if name == "apiVersion" && text.matches('/').count() > 1 => {
                    let detail = format!("unexpected GroupVersion string: {text}");
                    errors.push(invalid(value, &detail));
                }
                Some(text) if name == "kind" && !is_kind(text) => {
                    errors.push(invalid(value, NOT_A_KIND));
                }
                Some(_) => {}
            },
        }
    }
    if let Some(metadata) = resource.get("metadata") {
        check_metadata(metadata, &path.field("metadata"), errors);
    }
}

const NOT_A_KIND: &str = "may have mixed case, but should otherwise match: a DNS-1035 label must \
    consist of lower case alphanumeric characters or '-', start with an alphabetic character, and \
    end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation \
    is '[a-z]([-a-z0-9]*[a-z0-9])?')";

fn is_kind(kind: &str) -> bool {
    let lower = kind.to_ascii_lowercase();
    names::is_dns1123_label(&lower) && lower.starts_with(|c: char| c.is_ascii_lowercase())
}

fn check_metadata(metadata: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let invalid = |path: &Path<'_>, value: &Value, detail: String| {
        let error = FieldError::new(FieldErrorKind::Invalid, path.text(), detail);
        error.with_value(value.clone())
    };
    let Some(fields) = metadata.as_object() else {
        errors.push(invalid(path, metadata, "must be an object".to_owned()));
        return;
    };
    for (name, value) in fields {
        let at = path.field(name);
        let is_map = || {
            value.is_null()
                || value
                    .as_object()
                    .is_some_and(|map| map.values().all(Value::is_string))
        };
        let problem = match name.as_str() {
            "name" | "generateName" => match value.as_str() {
                None if value.is_null() => None,
                None => Some("must be a string".to_owned()),
                Some("." | "..") => Some(format!("may not be {value}")),
                Some(text) => ['/', '%']
                    .into_iter()
                    .find(|c| text.contains(*c))
                    .map(|c| format!("may not contain '{c}'")),
            },
            "namespace" | "uid" | "resourceVersion" if !value.is_string() && !value.is_null() => {
                Some("must be a string".to_owned())
            }
            "labels" | "annotations" if !is_map() => {
                Some("must be an object of strings".to_owned())
            }
            _ => None,
        };
        if let Some(detail) = problem {
            errors.push(invalid(&at, value, detail));
        }
    }
}
