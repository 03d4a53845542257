//! Taking fields out of a value.

use serde_json::Value;

use crate::fieldset::FieldSet;
use crate::path::PathElement;
use crate::types::{Class, Type};

/// What becomes of a map or list that loses its last entry but is not to be removed itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Emptied<'s, 'a> {
    /// It becomes null, as in structured-merge-diff.
    Null,
    /// It stays, empty, if it is a member of this set, and goes otherwise: null would not be valid
    /// in most schemas.
    KeepIf(&'s FieldSet<'a>),
}

impl<'s, 'a> Emptied<'s, 'a> {
    fn below(self, element: &PathElement<'_>) -> Self {
        match self {
            Self::Null => Self::Null,
            Self::KeepIf(set) => Self::KeepIf(set.get(element).map_or(&NOTHING, |e| &e.below)),
        }
    }

    fn keeps(self, element: &PathElement<'_>) -> bool {
        match self {
            Self::Null => true,
            Self::KeepIf(set) => set.get(element).is_some_and(|entry| entry.member),
        }
    }
}

static NOTHING: FieldSet<'static> = FieldSet::EMPTY;

/// Removes the members of a set, with everything in them.
pub(crate) fn remove(
    ty: Type<'_>,
    value: &mut Value,
    set: &FieldSet<'_>,
    emptied: Emptied<'_, '_>,
) {
    remove_below(ty, value, set, emptied);
}

/// Removes, and tells whether the last entry went.
fn remove_below(
    ty: Type<'_>,
    value: &mut Value,
    set: &FieldSet<'_>,
    emptied: Emptied<'_, '_>,
) -> bool {
    if set.is_empty() {
        return false;
    }
    let keep: Vec<bool> = match ty.class(value) {
        Class::Leaf | Class::Null => return false,
        Class::Map(_) => Vec::new(),
        Class::List(list) => list
            .elements
            .iter()
            .map(|element| !set.get(element).is_some_and(|entry| entry.member))
            .collect(),
    };
    let empty = match value {
        Value::Object(map) => {
            map.retain(|name, field| {
                let element = PathElement::field(name);
                let Some(entry) = set.get(&element) else {
                    return true;
                };
                if entry.member {
                    return false;
                }
                let below = emptied.below(&element);
                !remove_below(ty.field(name).ty, field, &entry.below, below)
                    || emptied.keeps(&element)
            });
            map.is_empty()
        }
        Value::Array(items) => {
            let mut keep = keep.into_iter();
            items.retain(|_| keep.next().unwrap_or(true));
            for item in items.iter_mut() {
                remove_from_item(ty, item, set, emptied);
            }
            items.is_empty()
        }
        _ => false,
    };
    if empty && matches!(emptied, Emptied::Null) {
        *value = Value::Null;
    }
    empty
}

fn remove_from_item(ty: Type<'_>, item: &mut Value, set: &FieldSet<'_>, emptied: Emptied<'_, '_>) {
    // The identity borrows the item, so find what to remove before touching it.
    let found = match ty.element(item) {
        Ok(element) => set
            .get(&element)
            .map(|entry| (&entry.below, emptied.below(&element))),
        Err(_) => None,
    };
    if let Some((below, emptied)) = found {
        remove_below(ty.item(), item, below, emptied);
    }
}
