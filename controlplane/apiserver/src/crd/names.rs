//! Which names of a definition are free (apiextensions `pkg/controller/status/naming_controller.go`).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// What is decided on a definition's names.
#[derive(Debug)]
pub(super) struct Decision {
    /// The names that it has.
    pub(super) accepted: Value,
    /// Why it does not have all that it asks for.
    pub(super) conflict: Option<Conflict>,
}

/// A name that another definition has.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// Names that definitions hold.
#[derive(Debug, Default)]
struct Taken {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl Taken {
    fn by(others: &[Value]) -> Self {
        let mut taken = Self::default();
        for other in others {
            let Some(names) = other.pointer("/status/acceptedNames") else {
                continue;
            };
            taken.resources.extend(text(names, "plural"));
            taken.resources.extend(text(names, "singular"));
            taken.resources.extend(short_names(names));
            taken.kinds.extend(text(names, "kind"));
            taken.kinds.extend(text(names, "listKind"));
        }
        taken
    }
}

/// Decides on the names of a definition, given the other ones of its group.
pub(super) fn decide(crd: &Value, others: &[Value]) -> Decision {
    let none = Value::Null;
    let wanted = crd.pointer("/spec/names").unwrap_or(&none);
    let had = crd.pointer("/status/acceptedNames").unwrap_or(&none);
    let taken = Taken::by(others);
    let mut accepted = Map::new();
    let mut conflict = None;
    let mut refuse = |reason, name: &str| {
        conflict.get_or_insert(Conflict {
            reason,
            message: format!("{name:?} is already in use"),
        });
    };
    for (field, reason, set) in [
        ("plural", "PluralConflict", &taken.resources),
        ("singular", "SingularConflict", &taken.resources),
        ("kind", "KindConflict", &taken.kinds),
        ("listKind", "ListKindConflict", &taken.kinds),
    ] {
        let Some(name) = text(wanted, field) else {
            continue;
        };
        if set.contains(&name) {
            refuse(reason, &name);
            if let Some(old) = text(had, field) {
                accepted.insert(field.into(), old.into());
            }
        } else {
            accepted.insert(field.into(), name.into());
        }
    }
    let (clashing, free): (Vec<String>, Vec<String>) = short_names(wanted)
        .into_iter()
        .partition(|n| taken.resources.contains(n));
    if let Some(first) = clashing.first() {
        refuse("ShortNamesConflict", first);
    } else if !free.is_empty() {
        accepted.insert("shortNames".into(), free.into());
    }
    if let Some(categories) = wanted.get("categories") {
        accepted.insert("categories".into(), categories.clone());
    }
    Decision {
        accepted: Value::Object(accepted),
        conflict,
    }
}

fn text(names: &Value, field: &str) -> Option<String> {
    names
        .get(field)
        .and_then(Value::as_str)
        .filter(|s| !s.is_empty())
        .map(Into::into)
}

fn short_names(names: &Value) -> Vec<String> {
    names
        .get("shortNames")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|n| n.as_str().map(Into::into))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_taken_name_is_a_conflict_that_says_which() {
        let other = json!({"status": {"acceptedNames": {
            "plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList",
            "shortNames": ["f"]}}});
        let crd = json!({"spec": {"names": {
            "plural": "bars", "singular": "f", "kind": "Bar", "listKind": "BarList"}}});
        let decision = decide(&crd, &[other]);
        let conflict = decision.conflict.unwrap();
        assert_eq!(conflict.reason, "SingularConflict");
        assert_eq!(conflict.message, "\"f\" is already in use");
        assert_eq!(decision.accepted["plural"], "bars");
        assert_eq!(decision.accepted.get("singular"), None);
        assert_eq!(decide(&crd, &[]).conflict, None);
    }
}
