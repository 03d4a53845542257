//! Rules of built-in kinds.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ecp_meta::object;
use ecp_schema::{FieldError, FieldErrorKind};
use serde_json::{Map, Value, json};

use crate::registry::{ResourceInfo, Rules};

/// Fills in what the server sets on built-in kinds, before validation.
pub(super) fn prepare(info: &ResourceInfo, object: &mut Value, old: Option<&Value>) {
    if !matches!(info.rules, Rules::Custom | Rules::Crd) {
        drop_nulls(object);
    }
    match info.rules {
        Rules::Secret => prepare_secret(object),
        Rules::Namespace => prepare_namespace(object, old),
        Rules::Crd => crate::crd::prepare(object, old),
        Rules::ConfigMap | Rules::Plain | Rules::Custom => {}
    }
}

/// In typed kinds null is absence.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn prepare_secret(secret: &mut Value) {
    let Some(map) = secret.as_object_mut() else {
        return;
    };
    if let Some(Value::Object(plain)) = map.remove("stringData") {
        let data = map
            .entry("data")
            .and_modify(|d| {
                if d.is_null() {
                    *d = json!({});
                }
            })
            .or_insert_with(|| json!({}));
        if let Some(data) = data.as_object_mut() {
            for (key, value) in plain {
                if let Some(text) = value.as_str() {
                    data.insert(key, STANDARD.encode(text).into());
                }
            }
        }
    }
    if map.get("type").is_none_or(|t| t.is_null() || t == "") {
        map.insert("type".into(), "Opaque".into());
    }
}

fn prepare_namespace(namespace: &mut Value, old: Option<&Value>) {
    let name = object::name(namespace).to_owned();
    if !name.is_empty() {
        object::set_label(namespace, "kubernetes.io/metadata.name", &name);
    }
    match old {
        None => {
            namespace["spec"] = json!({"finalizers": ["kubernetes"]});
            namespace["status"] = json!({"phase": "Active"});
        }
        // Only the finalize subresource changes spec.finalizers; it does not come through here.
        Some(old) => {
            namespace["spec"] = old.get("spec").cloned().unwrap_or_else(|| json!({}));
        }
    }
}

/// The same, for an update of an endpoint.
pub(super) fn prepare_update(
    info: &ResourceInfo,
    object: &mut Value,
    old: &Value,
    subresource: &str,
) {
    if subresource.is_empty() {
        prepare(info, object, Some(old));
    }
}

/// Checks an object of a built-in kind.
pub(super) fn validate(
    info: &ResourceInfo,
    object: &Value,
    old: Option<&Value>,
    errors: &mut Vec<FieldError>,
) {
    match info.rules {
        Rules::Secret => {
            data(object, "data", true, errors);
            if let Some(old) = old
                && old.get("type") != object.get("type")
            {
                errors.push(immutable("type", object.get("type")));
            }
            frozen(object, old, &["data"], errors);
        }
        Rules::ConfigMap => {
            data(object, "data", false, errors);
            data(object, "binaryData", true, errors);
            frozen(object, old, &["data", "binaryData"], errors);
        }
        Rules::Crd => crate::crd::validate(object, old, errors),
        Rules::Namespace | Rules::Plain | Rules::Custom => {}
    }
}

fn immutable(field: &str, value: Option<&Value>) -> FieldError {
    FieldError::new(FieldErrorKind::Invalid, field, "field is immutable")
        .with_value(value.cloned().unwrap_or_default())
}

/// Keys and values of `data`.
fn data(object: &Value, field: &str, binary: bool, errors: &mut Vec<FieldError>) {
    let map = match object.get(field) {
        None | Some(Value::Null) => return,
        Some(Value::Object(map)) => map,
        Some(other) => {
            errors.push(
                FieldError::new(FieldErrorKind::TypeInvalid, field, "must be an object")
                    .with_value(other.clone()),
            );
            return;
        }
    };
    for (key, value) in map {
        if !is_config_key(key) {
            errors.push(
                FieldError::new(
                    FieldErrorKind::Invalid,
                    format!("{field}[{key}]"),
                    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
                )
                .with_value(key.as_str().into()),
            );
        }
        // The value of a Secret is not repeated: it may be secret.
        let fits = value
            .as_str()
            .is_some_and(|v| !binary || STANDARD.decode(v).is_ok());
        if !fits {
            let expected = if binary { "base64" } else { "a string" };
            errors.push(FieldError::new(
                FieldErrorKind::Invalid,
                format!("{field}[{key}]"),
                format!("must be {expected}"),
            ));
        }
    }
}

fn is_config_key(key: &str) -> bool {
    (1..=253).contains(&key.len())
        && !matches!(key, "." | "..")
        && !key.starts_with("..")
        && key
            .bytes()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.'))
}

/// `immutable: true` freezes the data and itself.
fn frozen(object: &Value, old: Option<&Value>, fields: &[&str], errors: &mut Vec<FieldError>) {
    let Some(old) = old else { return };
    let is_frozen = |v: &Value| v.get("immutable").and_then(Value::as_bool) == Some(true);
    if !is_frozen(old) {
        return;
    }
    let detail = "field is immutable when `immutable` is set";
    if !is_frozen(object) {
        errors.push(FieldError::new(
            FieldErrorKind::Forbidden,
            "immutable",
            detail,
        ));
    }
    let empty = Value::Object(Map::new());
    for field in fields {
        if old.get(*field).unwrap_or(&empty) != object.get(*field).unwrap_or(&empty) {
            errors.push(FieldError::new(FieldErrorKind::Forbidden, *field, detail));
        }
    }
}

/// Whether a namespace is one that must not be deleted.
pub(super) fn is_protected_namespace(name: &str) -> bool {
    matches!(name, "default" | "kube-system" | "kube-public")
}
