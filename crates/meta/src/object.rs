//! Access to Kubernetes objects held as JSON.
//!
//! Readers are total: a missing or ill-typed field reads as absent.

use serde_json::{Map, Value, json};

use crate::gvk::GroupVersionKind;

/// A string field of `metadata`, if present.
pub fn meta_str<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    object.get("metadata")?.get(field)?.as_str()
}

/// `metadata.name`, or the empty string.
pub fn name(object: &Value) -> &str {
    meta_str(object, "name").unwrap_or_default()
}

/// `metadata.namespace`, if present and not empty.
pub fn namespace(object: &Value) -> Option<&str> {
    meta_str(object, "namespace").filter(|ns| !ns.is_empty())
}

/// `metadata.uid`, or the empty string.
pub fn uid(object: &Value) -> &str {
    meta_str(object, "uid").unwrap_or_default()
}

/// `metadata.resourceVersion`, or the empty string.
pub fn resource_version(object: &Value) -> &str {
    meta_str(object, "resourceVersion").unwrap_or_default()
}

/// `metadata.generation`, or 0.
pub fn generation(object: &Value) -> i64 {
    object
        .get("metadata")
        .and_then(|m| m.get("generation"))
        .and_then(Value::as_i64)
        .unwrap_or(0)
}

/// Whether `metadata.deletionTimestamp` is set.
pub fn is_deleting(object: &Value) -> bool {
    meta_str(object, "deletionTimestamp").is_some()
}

/// The group, version and kind of an object.
pub fn gvk(object: &Value) -> GroupVersionKind {
    let field = |f| object.get(f).and_then(Value::as_str).unwrap_or_default();
    GroupVersionKind::from_api_version(field("apiVersion"), field("kind"))
}

/// One label, if present.
pub fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get("labels")?.get(key)?.as_str()
}

/// One annotation, if present.
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object
        .get("metadata")?
        .get("annotations")?
        .get(key)?
        .as_str()
}

/// All labels with string values.
pub fn labels(object: &Value) -> impl Iterator<Item = (&str, &str)> {
    string_map(object.get("metadata").and_then(|m| m.get("labels")))
}

/// The string entries of a JSON object; empty for anything else.
pub fn string_map(map: Option<&Value>) -> impl Iterator<Item = (&str, &str)> {
    map.and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(k, v)| Some((k.as_str(), v.as_str()?)))
}

/// `metadata.finalizers`.
pub fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object
        .get("metadata")
        .and_then(|m| m.get("finalizers"))
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// The owner reference with `controller: true`, if any.
pub fn controller_ref(object: &Value) -> Option<&Value> {
    owner_refs(object).find(|r| r.get("controller").and_then(Value::as_bool) == Some(true))
}

/// `metadata.ownerReferences`.
pub fn owner_refs(object: &Value) -> impl Iterator<Item = &Value> {
    object
        .get("metadata")
        .and_then(|m| m.get("ownerReferences"))
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// A controller owner reference to `owner` that blocks its foreground deletion.
pub fn controller_ref_to(owner: &Value) -> Value {
    json!({
        "apiVersion": owner.get("apiVersion").cloned().unwrap_or_default(),
        "kind": owner.get("kind").cloned().unwrap_or_default(),
        "name": name(owner),
        "uid": uid(owner),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// The map at `field` of `object`, created (or put in place of a non-map) when needed.
pub fn entry_map<'a>(object: &'a mut Value, field: &str) -> &'a mut Map<String, Value> {
    let map = as_map(object);
    as_map(
        map.entry(field)
            .or_insert_with(|| Value::Object(Map::new())),
    )
}

/// The `metadata` map, created when needed.
pub fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    entry_map(object, "metadata")
}

/// Sets one label.
pub fn set_label(object: &mut Value, key: &str, value: &str) {
    set_in(object, "labels", key, value);
}

/// Sets one annotation.
pub fn set_annotation(object: &mut Value, key: &str, value: &str) {
    set_in(object, "annotations", key, value);
}

fn set_in(object: &mut Value, field: &str, key: &str, value: &str) {
    let map = metadata_mut(object)
        .entry(field)
        .or_insert_with(|| Value::Object(Map::new()));
    as_map(map).insert(key.into(), value.into());
}

fn as_map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("made an object above"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_are_total() {
        let odd = json!({"metadata": {"name": 3, "labels": [], "generation": "x"}});
        assert_eq!(name(&odd), "");
        assert_eq!(labels(&odd).count(), 0);
        assert_eq!(generation(&odd), 0);
        assert_eq!(gvk(&json!(null)), GroupVersionKind::default());
        assert!(!is_deleting(&json!([])));
    }

    #[test]
    fn writers_create_what_is_missing() {
        let mut object = json!({});
        set_label(&mut object, "a", "b");
        set_annotation(&mut object, "c", "d");
        assert_eq!(
            object,
            json!({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}})
        );
    }
}
