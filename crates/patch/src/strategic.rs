//! Strategic merge patch, for built-in kinds.
//!
//! The rules are those of apimachinery's `strategicpatch`. It reads merge keys from Go struct tags;
//! here they come from a table. Items that are new go before those that the patch does not name,
//! unless `$setElementOrder` says otherwise, as upstream.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::error::PatchError;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList/";
const ELEMENT_ORDER: &str = "$setElementOrder/";

/// Which lists of a kind merge, and by what.
///
/// Lists that are not named are replaced; maps always merge.
#[derive(Clone, Copy, Debug)]
pub struct PatchMeta(&'static Fields);

/// The fields of one map that matter.
#[derive(Debug)]
struct Fields(&'static [(&'static str, Field)]);

#[derive(Debug)]
enum Field {
    /// A map with fields that matter.
    Map(&'static Fields),
    /// A list of scalars that merges as a set.
    Scalars,
    /// A list of objects that merges by this key.
    Keyed(&'static str),
}

static NOTHING: Fields = Fields(&[]);
static METADATA: Fields = Fields(&[
    ("finalizers", Field::Scalars),
    ("ownerReferences", Field::Keyed("uid")),
]);
static CONDITIONS: Fields = Fields(&[("conditions", Field::Keyed("type"))]);
static ANY_KIND: Fields = Fields(&[("metadata", Field::Map(&METADATA))]);
static WITH_CONDITIONS: Fields = Fields(&[
    ("metadata", Field::Map(&METADATA)),
    ("status", Field::Map(&CONDITIONS)),
]);
static SERVICE_ACCOUNT: Fields = Fields(&[
    ("metadata", Field::Map(&METADATA)),
    ("secrets", Field::Keyed("name")),
]);

impl PatchMeta {
    /// The table of a built-in kind. Kinds without merging lists of their own (ConfigMap, Secret,
    /// Event, Lease and others) share that of `metadata`.
    pub fn of(group: &str, kind: &str) -> Self {
        Self(match (group, kind) {
            ("", "ServiceAccount") => &SERVICE_ACCOUNT,
            ("", "Namespace") | ("apiregistration.k8s.io", "APIService") => &WITH_CONDITIONS,
            _ => &ANY_KIND,
        })
    }
}

impl Fields {
    fn get(&self, name: &str) -> Option<&'static Field> {
        self.0
            .iter()
            .find(|(field, _)| *field == name)
            .map(|(_, field)| field)
    }

    fn map(&self, name: &str) -> &'static Fields {
        match self.get(name) {
            Some(Field::Map(fields)) => fields,
            _ => &NOTHING,
        }
    }

    fn list(&self, name: &str) -> ListMerge {
        match self.get(name) {
            Some(Field::Scalars) => ListMerge::Scalars,
            Some(Field::Keyed(key)) => ListMerge::Keyed(key),
            Some(Field::Map(_)) | None => ListMerge::Replace,
        }
    }
}

/// How a list merges.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ListMerge {
    Replace,
    Scalars,
    Keyed(&'static str),
}

impl ListMerge {
    /// The identity of an item.
    fn id(self, item: &Value) -> Result<String, PatchError> {
        match (self, item) {
            (Self::Replace, _) => Ok(item.to_string()),
            (Self::Scalars, Value::Array(_) | Value::Object(_)) => {
                Err(malformed("a list of scalars has an item that is none"))
            }
            (Self::Scalars, _) => Ok(item.to_string()),
            (Self::Keyed(key), Value::Object(map)) => match map.get(key) {
                Some(value) => Ok(value.to_string()),
                None => Err(malformed(format!(
                    "map: {item} does not contain declared merge key: {key}"
                ))),
            },
            (Self::Keyed(_), _) => Err(malformed("a list of objects has an item that is none")),
        }
    }

    fn ids(self, items: &[Value]) -> Result<Vec<String>, PatchError> {
        items.iter().map(|item| self.id(item)).collect()
    }

    /// Where each identity occurs first.
    fn positions(self, items: &[Value]) -> Result<BTreeMap<String, usize>, PatchError> {
        let mut positions = BTreeMap::new();
        for (index, id) in self.ids(items)?.into_iter().enumerate() {
            positions.entry(id).or_insert(index);
        }
        Ok(positions)
    }
}

fn malformed(reason: impl Into<String>) -> PatchError {
    PatchError::Malformed(reason.into())
}

/// Applies a strategic merge patch.
///
/// # Errors
/// [`PatchError::Malformed`] for directives that are not valid, and items without merge key.
pub fn strategic_merge_patch(
    document: &Value,
    patch: &Value,
    meta: &PatchMeta,
) -> Result<Value, PatchError> {
    let Value::Object(patch) = patch else {
        return Err(malformed("a strategic merge patch is an object"));
    };
    let original = match document {
        Value::Object(map) => map.clone(),
        _ => Map::new(),
    };
    merge_map(original, patch, meta.0).map(Value::Object)
}

fn merge_map(
    mut original: Map<String, Value>,
    patch: &Map<String, Value>,
    fields: &Fields,
) -> Result<Map<String, Value>, PatchError> {
    match patch.get(PATCH) {
        None => {}
        Some(Value::String(directive)) if directive == "replace" => {
            let mut replaced = patch.clone();
            replaced.remove(PATCH);
            return Ok(replaced);
        }
        Some(Value::String(directive)) if directive == "delete" => return Ok(Map::new()),
        Some(other) => return Err(malformed(format!("unknown patch type: {other}"))),
    }
    retain_keys(&mut original, patch)?;
    let ordered = merge_ordered_lists(&mut original, patch, fields)?;
    for (key, value) in patch {
        if key == RETAIN_KEYS || key.starts_with(ELEMENT_ORDER) || ordered.contains(key.as_str()) {
            continue;
        }
        if let Some(list) = key.strip_prefix(DELETE_FROM_LIST) {
            delete_from_list(&mut original, list, value)?;
            continue;
        }
        merge_field(&mut original, key, value, fields)?;
    }
    Ok(original)
}

fn merge_field(
    original: &mut Map<String, Value>,
    key: &str,
    patch: &Value,
    fields: &Fields,
) -> Result<(), PatchError> {
    let merged = match (original.remove(key), patch) {
        (_, Value::Null) => None,
        (Some(Value::Object(old)), Value::Object(new)) => {
            Some(Value::Object(merge_map(old, new, fields.map(key))?))
        }
        (Some(Value::Array(old)), Value::Array(new)) => {
            Some(Value::Array(merge_list(old, new, fields.list(key))?))
        }
        (_, new) => without_directives(new),
    };
    if let Some(merged) = merged {
        original.insert(key.to_owned(), merged);
    }
    Ok(())
}

/// `$retainKeys`: the fields not named go.
fn retain_keys(
    original: &mut Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<(), PatchError> {
    let Some(keys) = patch.get(RETAIN_KEYS) else {
        return Ok(());
    };
    let bad = || malformed("invalid patch format of retainKeys");
    let keys: BTreeSet<&str> = keys
        .as_array()
        .ok_or_else(bad)?
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let named = patch.iter().all(|(key, value)| {
        value.is_null()
            || key == RETAIN_KEYS
            || key.starts_with(DELETE_FROM_LIST)
            || key.starts_with(ELEMENT_ORDER)
            || keys.contains(key.as_str())
    });
    if !named {
        return Err(bad());
    }
    original.retain(|key, _| keys.contains(key.as_str()));
    Ok(())
}

/// `$deleteFromPrimitiveList/<list>`.
fn delete_from_list(
    original: &mut Map<String, Value>,
    list: &str,
    items: &Value,
) -> Result<(), PatchError> {
    let Value::Array(items) = items else {
        return Err(malformed("invalid patch format of primitive list"));
    };
    let gone: BTreeSet<String> = items.iter().map(Value::to_string).collect();
    if let Some(Value::Array(list)) = original.get_mut(list) {
        list.retain(|item| !gone.contains(&item.to_string()));
    }
    Ok(())
}

/// Merges the lists that have a `$setElementOrder/<list>`; returns their names.
fn merge_ordered_lists<'p>(
    original: &mut Map<String, Value>,
    patch: &'p Map<String, Value>,
    fields: &Fields,
) -> Result<BTreeSet<&'p str>, PatchError> {
    let mut done = BTreeSet::new();
    for (key, order) in patch {
        let Some(list) = key.strip_prefix(ELEMENT_ORDER) else {
            continue;
        };
        let bad = || malformed("invalid patch format of setElementOrder list");
        let order = order.as_array().ok_or_else(bad)?;
        let merge = fields.list(list);
        let patched = match patch.get(list) {
            None => None,
            Some(Value::Array(items)) => Some(items.as_slice()),
            Some(_) => return Err(bad()),
        };
        check_order(patched.unwrap_or_default(), order, merge)?;
        let live = match original.remove(list) {
            None => None,
            Some(Value::Array(items)) => Some(items),
            Some(_) => return Err(bad()),
        };
        let server_order = live.clone().unwrap_or_default();
        let merged = match (live, patched) {
            (None, None) => continue,
            (Some(live), None) => live,
            (None, Some(patched)) => patched.iter().filter_map(without_directives).collect(),
            (Some(live), Some(patched)) => merge_list(live, patched, merge)?,
        };
        let sorted = arrange(merged, order, &server_order, merge)?;
        original.insert(list.to_owned(), Value::Array(sorted));
        done.insert(list);
    }
    Ok(done)
}

/// The items of a patch must be in the order that it asks for.
fn check_order(patch: &[Value], order: &[Value], merge: ListMerge) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let order = merge.ids(order)?;
    let mut rest = order.iter();
    for item in patch.iter().filter(|item| item.get(PATCH).is_none()) {
        let id = merge.id(item)?;
        if !rest.any(|next| *next == id) {
            return Err(malformed(
                "the order in the patch list doesn't match the $setElementOrder list",
            ));
        }
    }
    Ok(())
}

fn merge_list(
    live: Vec<Value>,
    patch: &[Value],
    merge: ListMerge,
) -> Result<Vec<Value>, PatchError> {
    match merge {
        ListMerge::Replace => Ok(patch.to_vec()),
        ListMerge::Scalars => {
            let mut seen = BTreeSet::new();
            let mut merged = Vec::with_capacity(live.len() + patch.len());
            for item in live.iter().chain(patch) {
                if seen.insert(merge.id(item)?) {
                    merged.push(item.clone());
                }
            }
            arrange(merged, patch, &live, merge)
        }
        ListMerge::Keyed(_) => merge_keyed(live, patch, merge),
    }
}

fn merge_keyed(
    live: Vec<Value>,
    patch: &[Value],
    merge: ListMerge,
) -> Result<Vec<Value>, PatchError> {
    let mut deleted = BTreeSet::new();
    let mut replaced = false;
    let mut items = Vec::new();
    for item in patch {
        match item.get(PATCH) {
            None => items.push(item.clone()),
            Some(Value::String(directive)) if directive == "delete" => {
                deleted.insert(merge.id(item)?);
            }
            Some(Value::String(directive)) if directive == "replace" => replaced = true,
            Some(other) => return Err(malformed(format!("unknown patch type: {other}"))),
        }
    }
    if replaced {
        merge.ids(&items)?;
        return Ok(items);
    }
    let mut server = Vec::with_capacity(live.len());
    for item in live {
        if !deleted.contains(&merge.id(&item)?) {
            server.push(item);
        }
    }
    let mut positions = merge.positions(&server)?;
    let mut merged = server.clone();
    for item in &items {
        let id = merge.id(item)?;
        let Value::Object(changes) = item else {
            continue;
        };
        match positions.get(&id).and_then(|index| merged.get_mut(*index)) {
            Some(slot) => {
                let old = slot.as_object().cloned().unwrap_or_default();
                *slot = Value::Object(merge_map(old, changes, &NOTHING)?);
            }
            None => {
                positions.insert(id, merged.len());
                merged.push(item.clone());
            }
        }
    }
    arrange(merged, &items, &server, merge)
}

/// Orders a merged list: items named by the patch in its order, the others in theirs, interleaved
/// by the order they had.
fn arrange(
    merged: Vec<Value>,
    patch_order: &[Value],
    server_order: &[Value],
    merge: ListMerge,
) -> Result<Vec<Value>, PatchError> {
    let patch = merge.positions(patch_order)?;
    let server = merge.positions(server_order)?;
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for item in merged {
        let id = merge.id(&item)?;
        match patch.get(&id) {
            Some(position) => named.push((*position, server.get(&id).copied(), item)),
            None => {
                let position = server.get(&id).copied();
                others.push((position.unwrap_or(usize::MAX), position, item));
            }
        }
    }
    named.sort_by_key(|(position, ..)| *position);
    others.sort_by_key(|(position, ..)| *position);
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    let mut out = Vec::new();
    loop {
        let other_first = match (others.peek(), named.peek()) {
            (None, None) => return Ok(out),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some((_, other, _)), Some((_, named, _))) => {
                matches!((other, named), (Some(other), Some(named)) if other < named)
            }
        };
        let next = if other_first {
            others.next()
        } else {
            named.next()
        };
        out.extend(next.map(|(.., item)| item));
    }
}

/// A value that was not there before: without nulls and directives. `None` for what is only a
/// directive.
fn without_directives(value: &Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(PATCH) => None,
        Value::Object(map) => Some(Value::Object(
            map.iter()
                .filter(|(_, value)| !value.is_null())
                .filter_map(|(key, value)| Some((key.clone(), without_directives(value)?)))
                .collect(),
        )),
        Value::Array(items) => Some(Value::Array(
            items.iter().filter_map(without_directives).collect(),
        )),
        _ => Some(value.clone()),
    }
}

#[cfg(test)]
mod tests;
