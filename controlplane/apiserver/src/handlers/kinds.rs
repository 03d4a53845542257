//! Rules of built-in kinds.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ecp_meta::object;
use ecp_schema::{FieldError, FieldErrorKind};
use serde_json::{Map, Value, json};

use super::{metadata, plain};
use crate::registry::{ResourceInfo, Rules};

/// Fills in what the server sets on built-in kinds, before validation.
pub(super) fn prepare(info: &ResourceInfo, object: &mut Value, old: Option<&Value>) {
    if info.rules == Rules::ConfigMap
        && let Some(data) = object.get_mut("data").and_then(Value::as_object_mut)
    {
        metadata::empty_for_null(data);
    }
    if !matches!(info.rules, Rules::Custom | Rules::Crd) {
        drop_nulls(object);
        drop_empty(object);
    }
    match info.rules {
        Rules::Secret => prepare_secret(object),
        Rules::Namespace => prepare_namespace(object, old),
        Rules::Crd => crate::crd::prepare(object, old),
        Rules::Plain => plain::prepare(info, object),
        Rules::ConfigMap | Rules::Custom => {}
    }
}

/// Fills in what nobody owns, after ownership is recorded, in an object to be created.
pub(super) fn complete(info: &ResourceInfo, object: &mut Value) {
    if info.rules == Rules::Namespace {
        object["spec"] = json!({"finalizers": ["kubernetes"]});
        object["status"] = json!({"phase": "Active"});
    }
}

/// In typed kinds these collections are absent when empty.
fn drop_empty(object: &mut Value) {
    let Some(map) = object.as_object_mut() else {
        return;
    };
    for field in [
        "data",
        "binaryData",
        "secrets",
        "imagePullSecrets",
        "subjects",
    ] {
        let empty = match map.get(field) {
            Some(Value::Object(members)) => members.is_empty(),
            Some(Value::Array(items)) => items.is_empty(),
            _ => false,
        };
        if empty {
            map.remove(field);
        }
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
    if let Some(Value::Object(plain)) = map.remove("stringData")
        && !plain.is_empty()
    {
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
            if let Some(map) = namespace.as_object_mut() {
                map.retain(|k, _| !matches!(k.as_str(), "spec" | "status"));
            }
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
            data(object, "data", errors);
            plain::secret_type(object, errors);
            if let Some(old) = old
                && old.get("type") != object.get("type")
            {
                errors.push(immutable("type", object.get("type")));
            }
            frozen(object, old, &["data"], errors);
        }
        Rules::ConfigMap => {
            data(object, "data", errors);
            data(object, "binaryData", errors);
            overlap(object, errors);
            frozen(object, old, &["data", "binaryData"], errors);
        }
        Rules::Crd => crate::crd::validate(object, old, errors),
        Rules::Plain => plain::validate(info, object, old, errors),
        Rules::Namespace | Rules::Custom => {}
    }
}

/// A key is either text or binary.
fn overlap(object: &Value, errors: &mut Vec<FieldError>) {
    let Some(binary) = object.get("binaryData").and_then(Value::as_object) else {
        return;
    };
    let text = object.get("data").and_then(Value::as_object);
    for key in text.into_iter().flat_map(Map::keys) {
        if binary.contains_key(key) {
            errors.push(
                FieldError::new(
                    FieldErrorKind::Invalid,
                    format!("data[{key}]"),
                    "duplicate of key present in binaryData",
                )
                .with_value(key.as_str().into()),
            );
        }
    }
}

fn immutable(field: &str, value: Option<&Value>) -> FieldError {
    FieldError::new(FieldErrorKind::Invalid, field, "field is immutable")
        .with_value(value.cloned().unwrap_or_default())
}

const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or \
     '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
     '[-._a-zA-Z0-9]+')";

/// Keys and encodings of `data` or `binaryData`; their JSON types are for the schema to check.
fn data(object: &Value, field: &str, errors: &mut Vec<FieldError>) {
    let is_text = field == "data" && object.get("kind").is_some_and(|k| k == "ConfigMap");
    let map = object.get(field).and_then(Value::as_object);
    for (key, value) in map.into_iter().flatten() {
        if let Some(why) = config_key_fault(key) {
            errors.push(
                FieldError::new(FieldErrorKind::Invalid, format!("{field}[{key}]"), why)
                    .with_value(key.as_str().into()),
            );
        }
        // The value of a Secret is not repeated: it may be secret.
        if !is_text && value.as_str().is_some_and(|v| STANDARD.decode(v).is_err()) {
            errors.push(FieldError::new(
                FieldErrorKind::TypeInvalid,
                format!("{field}[{key}]"),
                "must be base64",
            ));
        }
    }
}

fn config_key_fault(key: &str) -> Option<&'static str> {
    let is_known = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    if key.len() > ecp_meta::limits::SUBDOMAIN_LEN_MAX {
        Some("must be no more than 253 characters")
    } else if key.is_empty() || !key.bytes().all(is_known) {
        Some(CONFIG_KEY)
    } else if matches!(key, "." | "..") {
        Some("must not be '.' or '..'")
    } else if key.starts_with("..") {
        Some("must not start with '..'")
    } else {
        None
    }
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
