//! Lists of type set and map: uniqueness (apiextensions `pkg/apiserver/schema/listtype`), and which
//! old item belongs to a new one.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::error::{FieldError, FieldErrorKind};
use crate::limits::ERRORS_MAX;
use crate::node::{ListType, Node};
use crate::path::Path;

/// Reports items that occur again.
pub(crate) fn check(node: &Node, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let has_unique_lists = node
        .checks
        .as_ref()
        .is_some_and(|checks| checks.has_unique_lists);
    if !has_unique_lists || errors.len() >= ERRORS_MAX {
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if let Some(child) = node.properties.get(key) {
                    check(child, value, &path.field(key), errors);
                } else if let Some(child) = &node.additional {
                    check(child, value, &path.key(key), errors);
                }
            }
        }
        Value::Array(items) => {
            match node.list_type {
                ListType::Atomic => {}
                ListType::Set => check_set(items, path, errors),
                ListType::Map => check_map(&node.list_map_keys, items, path, errors),
            }
            if let Some(item) = node.items.as_deref() {
                for (i, value) in items.iter().enumerate() {
                    check(item, value, &path.index(i), errors);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn check_set(items: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for i in repeated(items.iter().map(identity)) {
        if let Some(value) = items.get(i) {
            let error = FieldError::new(FieldErrorKind::Duplicate, path.index(i).text(), "");
            errors.push(error.with_value(value.clone()));
        }
    }
}

fn check_map(keys: &[String], items: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let stray = items
        .iter()
        .enumerate()
        .find(|(_, item)| !item.is_object() && !item.is_null());
    if let Some((i, item)) = stray {
        let detail = "must be an object for an array of list-type map";
        let error = FieldError::new(FieldErrorKind::Invalid, path.index(i).text(), detail);
        errors.push(error.with_value(item.clone()));
        return;
    }
    for i in repeated(items.iter().map(|item| key_identity(keys, item))) {
        let key: Map<String, Value> = keys
            .iter()
            .filter_map(|key| Some((key.clone(), items.get(i)?.get(key)?.clone())))
            .collect();
        let error = FieldError::new(FieldErrorKind::Duplicate, path.index(i).text(), "");
        errors.push(error.with_value(Value::Object(key)));
    }
}

/// The first repetition of each value that occurs more than once.
fn repeated(identities: impl Iterator<Item = String>) -> Vec<usize> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut repeated = Vec::new();
    for (i, identity) in identities.enumerate() {
        let times = seen.entry(identity).or_default();
        *times += 1;
        if *times == 2 && repeated.len() < ERRORS_MAX {
            repeated.push(i);
        }
    }
    repeated
}

/// A text that two values share only if they are equal.
fn identity(value: &Value) -> String {
    value.to_string()
}

fn key_identity(keys: &[String], item: &Value) -> String {
    let mut out = String::new();
    for key in keys {
        // An absent key is its own value, unequal to null.
        if let Some(value) = item.get(key) {
            out.push_str(&identity(value));
        }
        out.push('\0');
    }
    out
}

/// The old items of a list, found by their keys. Only lists of type map correlate.
pub(crate) struct OldItems<'a> {
    keys: &'a [String],
    by_key: BTreeMap<String, &'a Value>,
}

impl<'a> OldItems<'a> {
    pub(crate) fn new(node: &'a Node, old: Option<&'a Value>) -> Self {
        let mut items = Self {
            keys: &node.list_map_keys,
            by_key: BTreeMap::new(),
        };
        if node.list_type == ListType::Map
            && let Some(old) = old.and_then(Value::as_array)
        {
            for item in old {
                if let Some(key) = scalar_key(items.keys, item) {
                    // Of several with one key, the first is meant, as upstream does.
                    items.by_key.entry(key).or_insert(item);
                }
            }
        }
        items
    }

    pub(crate) fn find(&self, item: &Value) -> Option<&'a Value> {
        if self.by_key.is_empty() {
            return None;
        }
        self.by_key.get(&scalar_key(self.keys, item)?).copied()
    }
}

/// The key of an item that has all key fields, with scalars.
fn scalar_key(keys: &[String], item: &Value) -> Option<String> {
    let mut out = String::new();
    for key in keys {
        match item.get(key)? {
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
            scalar => out.push_str(&identity(scalar)),
        }
        out.push('\0');
    }
    Some(out)
}

/// Whether a value is the same as its old one. The order of lists of type map does not count.
pub(crate) fn is_unchanged(node: &Node, value: &Value, old: &Value) -> bool {
    if !node
        .checks
        .as_ref()
        .is_some_and(|checks| checks.has_unique_lists)
    {
        return value == old;
    }
    match (value, old) {
        (Value::Array(items), Value::Array(old_items)) if node.list_type == ListType::Map => {
            let found = OldItems::new(node, Some(old));
            items.len() == old_items.len()
                && items.iter().all(|item| {
                    found
                        .find(item)
                        .is_some_and(|old| match node.items.as_deref() {
                            Some(node) => is_unchanged(node, item, old),
                            None => item == old,
                        })
                })
        }
        (Value::Object(map), Value::Object(old)) => {
            map.len() == old.len()
                && map
                    .iter()
                    .all(|(key, value)| match (old.get(key), node.child(key)) {
                        (Some(old), Some(child)) => is_unchanged(child, value, old),
                        (old, _) => old == Some(value),
                    })
        }
        _ => value == old,
    }
}
