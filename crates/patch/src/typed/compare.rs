//! The difference between two values.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::fieldset::FieldSet;
use crate::path::{PathElement, same};
use crate::types::{Class, List, Type};

/// What a write changed.
#[derive(Debug, Default)]
pub(crate) struct Changes<'a> {
    /// Fields added, or present before and after with different values.
    pub(crate) changed: FieldSet<'a>,
    /// Fields removed.
    pub(crate) removed: FieldSet<'a>,
}

/// The changes at and below one path.
#[derive(Default)]
struct Delta<'a> {
    changed: bool,
    removed: bool,
    below: Changes<'a>,
}

impl<'a> Delta<'a> {
    fn changed() -> Self {
        Self {
            changed: true,
            ..Self::default()
        }
    }

    fn add(&mut self, element: PathElement<'a>, child: Delta<'a>) {
        let Changes { changed, removed } = child.below;
        self.below
            .changed
            .insert(element.clone(), child.changed, changed);
        self.below.removed.insert(element, child.removed, removed);
    }
}

/// Compares two objects.
pub(crate) fn compare<'a>(ty: Type<'a>, old: &'a Value, new: &'a Value) -> Changes<'a> {
    both(ty, old, new).below
}

fn both<'a>(ty: Type<'a>, old: &'a Value, new: &'a Value) -> Delta<'a> {
    if old == new {
        return Delta::default();
    }
    let (old_class, new_class) = (ty.class(old), ty.class(new));
    let leaf = matches!(old_class, Class::Leaf) || matches!(new_class, Class::Leaf);
    let mut delta = Delta::default();
    // A value of another form is taken apart: what was in it goes, what is in the new one comes.
    let (old_map, old_list) = split(old_class);
    let (new_map, new_list) = split(new_class);
    let mut empty = false;
    if old_map.is_some() || new_map.is_some() {
        empty |= is_empty_map(old_map) && is_empty_map(new_map);
        maps(ty, old_map, new_map, &mut delta);
    }
    if old_list.is_some() || new_list.is_some() {
        empty |= is_empty_list(&old_list) && is_empty_list(&new_list);
        lists(ty, old_list, new_list, &mut delta);
    }
    // Empty and null are leaves, so that `{}` and null can be told apart.
    if (leaf || empty) && !same(old, new) {
        delta.changed = true;
    }
    delta
}

fn split(class: Class<'_>) -> (Option<&Map<String, Value>>, Option<List<'_>>) {
    match class {
        Class::Leaf | Class::Null => (None, None),
        Class::Map(map) => (Some(map), None),
        Class::List(list) => (None, Some(list)),
    }
}

fn is_empty_map(map: Option<&Map<String, Value>>) -> bool {
    map.is_none_or(Map::is_empty)
}

fn is_empty_list(list: &Option<List<'_>>) -> bool {
    list.as_ref().is_none_or(|list| list.items.is_empty())
}

fn maps<'a>(
    ty: Type<'a>,
    old: Option<&'a Map<String, Value>>,
    new: Option<&'a Map<String, Value>>,
    delta: &mut Delta<'a>,
) {
    for (name, value) in old.into_iter().flatten() {
        let child = one_or_both(
            ty.field(name).ty,
            Some(value),
            new.and_then(|new| new.get(name)),
        );
        delta.add(PathElement::field(name), child);
    }
    for (name, value) in new.into_iter().flatten() {
        if old.is_none_or(|old| !old.contains_key(name)) {
            let child = one_or_both(ty.field(name).ty, None, Some(value));
            delta.add(PathElement::field(name), child);
        }
    }
}

fn one_or_both<'a>(ty: Type<'a>, old: Option<&'a Value>, new: Option<&'a Value>) -> Delta<'a> {
    match (old, new) {
        (Some(old), Some(new)) => both(ty, old, new),
        (Some(old), None) => Delta {
            removed: true,
            below: Changes {
                removed: everything(ty, old),
                ..Changes::default()
            },
            ..Delta::default()
        },
        (None, Some(new)) => Delta {
            changed: true,
            below: Changes {
                changed: everything(ty, new),
                ..Changes::default()
            },
            ..Delta::default()
        },
        (None, None) => Delta::default(),
    }
}

/// Every field below a value that came or went as a whole, maps and lists included.
fn everything<'a>(ty: Type<'a>, value: &'a Value) -> FieldSet<'a> {
    let mut set = FieldSet::default();
    match ty.class(value) {
        Class::Leaf | Class::Null => {}
        Class::Map(map) => {
            for (name, value) in map {
                let below = everything(ty.field(name).ty, value);
                set.insert(PathElement::field(name), true, below);
            }
        }
        Class::List(list) => {
            for (element, items) in group(list) {
                let below = match items.as_slice() {
                    [item] => everything(ty.item(), item),
                    _ => FieldSet::default(),
                };
                set.insert(element, true, below);
            }
        }
    }
    set
}

fn group(list: List<'_>) -> BTreeMap<PathElement<'_>, Vec<&Value>> {
    let mut groups: BTreeMap<PathElement<'_>, Vec<&Value>> = BTreeMap::new();
    for (element, item) in list.elements.into_iter().zip(list.items) {
        groups.entry(element).or_default().push(item);
    }
    groups
}

fn lists<'a>(ty: Type<'a>, old: Option<List<'a>>, new: Option<List<'a>>, delta: &mut Delta<'a>) {
    let mut old = old.map(group).unwrap_or_default();
    let new = new.map(group).unwrap_or_default();
    for (element, new_items) in new {
        let old_items = old.remove(&element).unwrap_or_default();
        let child = items(ty.item(), &old_items, &new_items);
        delta.add(element, child);
    }
    for (element, old_items) in old {
        let child = items(ty.item(), &old_items, &[]);
        delta.add(element, child);
    }
}

/// Compares the items of one identity. Duplicates cannot be told apart: they come, change and go
/// as one.
fn items<'a>(ty: Type<'a>, old: &[&'a Value], new: &[&'a Value]) -> Delta<'a> {
    match (old, new) {
        ([] | [_], [] | [_]) => one_or_both(ty, old.first().copied(), new.first().copied()),
        ([_, _, ..], [_, _, ..]) => {
            let equal = old.len() == new.len() && old.iter().zip(new).all(|(a, b)| same(a, b));
            if equal {
                Delta::default()
            } else {
                Delta::changed()
            }
        }
        ([_, _, ..], _) => {
            let mut delta = one_or_both(ty, None, new.first().copied());
            delta.removed = true;
            delta
        }
        (_, [_, _, ..]) => {
            let mut delta = one_or_both(ty, old.first().copied(), None);
            delta.changed = true;
            delta
        }
    }
}
