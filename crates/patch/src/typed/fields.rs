//! The fields that a value holds.

use serde_json::{Map, Value};

use crate::fieldset::FieldSet;
use crate::path::PathElement;
use crate::types::{Class, Declared, List, Type};

/// The set of fields an applier of this value owns.
///
/// Leaves and items are in it; maps only where they are empty, null or elements of a map.
pub(crate) fn fields<'a>(ty: Type<'a>, value: &'a Value) -> FieldSet<'a> {
    below(ty, value).1
}

/// Whether the value owns its own path, and what it owns below.
fn below<'a>(ty: Type<'a>, value: &'a Value) -> (bool, FieldSet<'a>) {
    match ty.class(value) {
        Class::Leaf | Class::Null => (true, FieldSet::default()),
        Class::Map(map) => (map.is_empty(), of_map(ty, map)),
        Class::List(list) => (false, of_list(ty, list)),
    }
}

fn of_map<'a>(ty: Type<'a>, map: &'a Map<String, Value>) -> FieldSet<'a> {
    let mut set = FieldSet::with_capacity(map.len());
    for (name, value) in map {
        let field = ty.field(name);
        let (member, below) = below(field.ty, value);
        let member = member || field.declared != Declared::Named;
        set.insert(PathElement::field(name), member, below);
    }
    set
}

fn of_list<'a>(ty: Type<'a>, list: List<'a>) -> FieldSet<'a> {
    let mut set = FieldSet::default();
    let repeated = repeated(&list.elements);
    for (item, element) in list.items.iter().zip(list.elements) {
        // Duplicates are owned as one thing, for nobody can tell them apart.
        let below = if repeated.contains(&element) {
            FieldSet::default()
        } else {
            below(ty.item(), item).1
        };
        set.insert(element, true, below);
    }
    set
}

/// The elements that occur more than once.
fn repeated<'a>(elements: &[PathElement<'a>]) -> Vec<PathElement<'a>> {
    let mut sorted: Vec<&PathElement<'a>> = elements.iter().collect();
    sorted.sort();
    let mut repeated: Vec<PathElement<'a>> = sorted
        .windows(2)
        .filter_map(|pair| match pair {
            [a, b] if a == b => Some((*a).clone()),
            _ => None,
        })
        .collect();
    repeated.dedup();
    repeated
}

/// Adds the declared fields that hold members: a manager that owns `.spec.replicas` holds `.spec`
/// in place, too (`Set.EnsureNamedFieldsAreMembers`).
pub(crate) fn with_named_fields<'a>(ty: Option<Type<'_>>, set: &FieldSet<'a>) -> FieldSet<'a> {
    let mut out = FieldSet::default();
    for entry in set.entries() {
        let mut member = entry.member;
        let child = match (&entry.element, ty) {
            (PathElement::Field(name), Some(ty)) if ty.map_is_atomic().is_some() => {
                let field = ty.field(name);
                member |= field.declared == Declared::Named && !entry.below.is_empty();
                Some(field.ty)
            }
            (PathElement::Key(_), Some(ty)) if ty.list_is_atomic().is_some() => Some(ty.item()),
            _ => None,
        };
        let below = with_named_fields(child, &entry.below);
        out.insert(entry.element.clone(), member, below);
    }
    out
}
