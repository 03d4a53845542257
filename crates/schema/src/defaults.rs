//! Defaulting (apiextensions `pkg/apiserver/schema/defaulting`).

use serde_json::Value;

use crate::error::{FieldError, FieldErrorKind};
use crate::limits;
use crate::node::Node;
use crate::path::Path;
use crate::{prune, validate};

/// Drops nulls that are neither values nor replaced by a default, and fills in defaults.
pub(crate) fn apply(value: &mut Value, node: &Node) {
    descend(value, node, 0);
}

fn descend(value: &mut Value, node: &Node, depth: usize) {
    if depth > limits::OBJECT_DEPTH_MAX {
        return;
    }
    match value {
        Value::Object(map) => {
            map.retain(|key, value| {
                let drop = value.is_null()
                    && node
                        .child(key)
                        .is_some_and(|n| !n.nullable && n.default.is_none());
                !drop
            });
            for (name, property) in &node.properties {
                let Some(default) = &property.default else {
                    continue;
                };
                match map.get_mut(name) {
                    None => {
                        map.insert(name.clone(), default.clone());
                    }
                    Some(value) => replace_null(value, property),
                }
            }
            for (key, value) in map.iter_mut() {
                if let Some(child) = node.child(key) {
                    replace_null(value, child);
                    descend(value, child, depth + 1);
                }
            }
        }
        Value::Array(items) => {
            if let Some(item) = node.items.as_deref() {
                for value in items {
                    replace_null(value, item);
                    descend(value, item, depth + 1);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn replace_null(value: &mut Value, node: &Node) {
    if value.is_null()
        && !node.nullable
        && let Some(default) = &node.default
    {
        *value = default.clone();
    }
}

/// Checks that every default of a schema is pruned and valid; those below `additionalProperties` are
/// not looked at, as upstream does.
pub(crate) fn check(root: &Node, errors: &mut Vec<FieldError>) {
    check_node(root, &Path::Root, errors);
}

fn check_node(node: &Node, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(default) = &node.default {
        check_default(default, node, &path.field("default"), errors);
    }
    let properties = path.field("properties");
    for (name, child) in &node.properties {
        check_node(child, &properties.key(name), errors);
    }
    if let Some(items) = &node.items {
        check_node(items, &path.field("items"), errors);
    }
}

fn check_default(default: &Value, node: &Node, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut pruned = default.clone();
    if !prune::prune_value(&mut pruned, node).is_empty() {
        let detail = "must not have unknown fields";
        let error = FieldError::new(FieldErrorKind::Invalid, path.text(), detail);
        errors.push(error.with_value(default.clone()));
    }
    validate::validate_at(default, node, path, errors);
}
