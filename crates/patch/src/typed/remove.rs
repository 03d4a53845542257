//! Taking fields out of a value.

use serde_json::Value;

use crate::fieldset::FieldSet;
use crate::path::PathElement;
use crate::types::{Class, Type};

/// What becomes of a map or list that loses its last entry but is not removed itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Emptied {
    /// It becomes null, as in structured-merge-diff.
    Null,
    /// It stays, empty: somebody owns it, and null would not be valid.
    Empty,
}

/// Removes the members of a set, with everything in them.
pub(crate) fn remove(ty: Type<'_>, value: &mut Value, set: &FieldSet<'_>, emptied: Emptied) {
    if set.is_empty() {
        return;
    }
    let keep: Option<Vec<bool>> = match ty.class(value) {
        Class::Leaf | Class::Null => return,
        Class::Map(_) => None,
        Class::List(list) => Some(
            list.elements
                .iter()
                .map(|element| !set.get(element).is_some_and(|entry| entry.member))
                .collect(),
        ),
    };
    let empty = match value {
        Value::Object(map) => {
            map.retain(|name, field| {
                let Some(entry) = set.get(&PathElement::field(name)) else {
                    return true;
                };
                if !entry.member {
                    remove(ty.field(name).ty, field, &entry.below, emptied);
                }
                !entry.member
            });
            map.is_empty()
        }
        Value::Array(items) => {
            let mut keep = keep.into_iter().flatten();
            items.retain(|_| keep.next().unwrap_or(true));
            for item in items.iter_mut() {
                // The identity borrows the item, so find what to remove before touching it.
                let below = match ty.element(item) {
                    Ok(element) => set.get(&element).map(|entry| &entry.below),
                    Err(_) => None,
                };
                if let Some(below) = below {
                    remove(ty.item(), item, below, emptied);
                }
            }
            items.is_empty()
        }
        _ => false,
    };
    if empty && emptied == Emptied::Null {
        *value = Value::Null;
    }
}
