//! Strategic merge patch of built-in kinds (apimachinery `pkg/util/strategicpatch`).
//!
//! A merge patch, but lists with a merge key merge item by item, and `$patch`, `$retainKeys`,
//! `$deleteFromPrimitiveList/...` and `$setElementOrder/...` direct it. Which lists merge is upstream's
//! `patchMergeKey` of the kinds served here.

use serde_json::{Map, Value};

/// How a list merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListMerge {
    Replace,
    Set,
    Key(&'static str),
}

/// The lists that merge, by path. All others are replaced.
const LISTS: &[(&[&str], ListMerge)] = &[
    (&["metadata", "finalizers"], ListMerge::Set),
    (&["metadata", "ownerReferences"], ListMerge::Key("uid")),
    (&["secrets"], ListMerge::Key("name")),
    (&["imagePullSecrets"], ListMerge::Key("name")),
    (&["status", "conditions"], ListMerge::Key("type")),
];

const DELETE_PRIMITIVE: &str = "$deleteFromPrimitiveList/";
const ELEMENT_ORDER: &str = "$setElementOrder/";
const RETAIN_KEYS: &str = "$retainKeys";
const DIRECTIVE: &str = "$patch";

/// Applies a strategic merge patch.
///
/// # Errors
/// A directive is malformed.
pub(super) fn merge(document: &Value, patch: &Value) -> Result<Value, String> {
    let mut merged = document.clone();
    merge_value(&mut merged, patch, &mut Vec::new())?;
    Ok(merged)
}

fn merge_value<'p>(
    target: &mut Value,
    patch: &'p Value,
    path: &mut Vec<&'p str>,
) -> Result<(), String> {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return Ok(());
    };
    match patch.get(DIRECTIVE).and_then(Value::as_str) {
        None => {}
        Some("replace") => {
            *target = Value::Object(without_directives(patch));
            return Ok(());
        }
        Some("delete") => {
            *target = Value::Object(Map::new());
            return Ok(());
        }
        Some("merge") => {}
        Some(other) => return Err(format!("unknown patch directive {other:?}")),
    }
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(map) = target.as_object_mut() else {
        return Ok(());
    };
    if let Some(retain) = patch.get(RETAIN_KEYS) {
        let keys: Vec<&str> = texts(retain)?;
        map.retain(|k, _| keys.contains(&k.as_str()));
    }
    for (key, value) in patch {
        if key == DIRECTIVE || key == RETAIN_KEYS || key.starts_with(ELEMENT_ORDER) {
            continue;
        }
        if let Some(field) = key.strip_prefix(DELETE_PRIMITIVE) {
            let gone = value.as_array().ok_or("a primitive list is not a list")?;
            if let Some(Value::Array(items)) = map.get_mut(field) {
                items.retain(|item| !gone.contains(item));
            }
            continue;
        }
        if value.is_null() {
            map.remove(key);
            continue;
        }
        path.push(key);
        let slot = map.entry(key.as_str()).or_insert(Value::Null);
        match value {
            Value::Array(items) => merge_list(slot, items, path)?,
            value => merge_value(slot, value, path)?,
        }
        path.pop();
    }
    for (key, order) in patch {
        if let Some(field) = key.strip_prefix(ELEMENT_ORDER)
            && let Some(Value::Array(items)) = map.get_mut(field)
        {
            path.push(field);
            reorder(items, order, list_merge(path));
            path.pop();
        }
    }
    Ok(())
}

fn without_directives(patch: &Map<String, Value>) -> Map<String, Value> {
    patch
        .iter()
        .filter(|(k, v)| !k.starts_with('$') && !v.is_null())
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect()
}

fn list_merge(path: &[&str]) -> ListMerge {
    LISTS
        .iter()
        .find(|(p, _)| *p == path)
        .map_or(ListMerge::Replace, |(_, how)| *how)
}

fn merge_list<'p>(
    slot: &mut Value,
    patch: &'p [Value],
    path: &mut Vec<&'p str>,
) -> Result<(), String> {
    let is_replace = |v: &Value| v.get(DIRECTIVE).and_then(Value::as_str) == Some("replace");
    let how = list_merge(path);
    if how == ListMerge::Replace || patch.iter().any(is_replace) {
        let items = patch.iter().filter(|v| !is_replace(v)).cloned().collect();
        *slot = Value::Array(items);
        return Ok(());
    }
    if !slot.is_array() {
        *slot = Value::Array(Vec::new());
    }
    let Some(items) = slot.as_array_mut() else {
        return Ok(());
    };
    for change in patch {
        match how {
            ListMerge::Key(key) => merge_item(items, change, key, path)?,
            ListMerge::Set | ListMerge::Replace => {
                if !items.contains(change) {
                    items.push(change.clone());
                }
            }
        }
    }
    Ok(())
}

fn merge_item<'p>(
    items: &mut Vec<Value>,
    change: &'p Value,
    key: &str,
    path: &mut Vec<&'p str>,
) -> Result<(), String> {
    let id = change
        .get(key)
        .ok_or_else(|| format!("map does not contain declared merge key: {key}"))?;
    let at = items.iter().position(|i| i.get(key) == Some(id));
    if change.get(DIRECTIVE).and_then(Value::as_str) == Some("delete") {
        items.retain(|i| i.get(key) != Some(id));
        return Ok(());
    }
    match at.and_then(|at| items.get_mut(at)) {
        Some(item) => merge_value(item, change, path),
        None => {
            let mut item = Value::Object(Map::new());
            merge_value(&mut item, change, path)?;
            items.push(item);
            Ok(())
        }
    }
}

/// Puts the listed items in the given order; the others keep their places behind them.
fn reorder(items: &mut [Value], order: &Value, how: ListMerge) {
    let order = order.as_array().map_or(&[][..], Vec::as_slice);
    let id = |v: &Value| match how {
        ListMerge::Key(key) => v.get(key).cloned(),
        ListMerge::Set | ListMerge::Replace => Some(v.clone()),
    };
    let rank = |v: &Value| {
        let this = id(v);
        order
            .iter()
            .position(|o| id(o) == this)
            .unwrap_or(order.len())
    };
    items.sort_by_key(rank);
}

fn texts(value: &Value) -> Result<Vec<&str>, String> {
    value
        .as_array()
        .and_then(|a| a.iter().map(Value::as_str).collect())
        .ok_or_else(|| "$retainKeys is not a list of names".into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keyed_lists_merge_item_by_item() {
        let live = json!({"secrets": [{"name": "a"}, {"name": "b", "x": 1}], "other": [1, 2]});
        let patch = json!({
            "secrets": [{"name": "a", "$patch": "delete"}, {"name": "b", "y": 2}, {"name": "c"}],
            "other": [3]
        });
        assert_eq!(
            merge(&live, &patch).unwrap(),
            json!({"secrets": [{"name": "b", "x": 1, "y": 2}, {"name": "c"}], "other": [3]})
        );
    }

    #[test]
    fn directives_delete_replace_and_order() {
        let live =
            json!({"metadata": {"finalizers": ["a/a", "b/b"]}, "data": {"a": "1", "b": "2"}});
        let patch = json!({
            "metadata": {"$deleteFromPrimitiveList/finalizers": ["a/a"], "finalizers": ["c/c"],
                         "$setElementOrder/finalizers": ["c/c", "b/b"]},
            "data": {"$patch": "replace", "z": "9"}
        });
        assert_eq!(
            merge(&live, &patch).unwrap(),
            json!({"metadata": {"finalizers": ["c/c", "b/b"]}, "data": {"z": "9"}})
        );
        let retained = merge(&live, &json!({"data": {"$retainKeys": ["a"], "a": "3"}})).unwrap();
        assert_eq!(retained["data"], json!({"a": "3"}));
        assert!(merge(&live, &json!({"data": {"$patch": "odd"}})).is_err());
        assert!(merge(&json!({}), &json!({"secrets": [{"x": 1}]})).is_err());
    }

    #[test]
    fn nulls_delete() {
        let live = json!({"data": {"a": "1"}});
        assert_eq!(merge(&live, &json!({"data": null})).unwrap(), json!({}));
    }
}
