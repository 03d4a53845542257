//! Laws of server-side apply, for any object.

use ecp_patch::{
    Manager, PatchMeta, Typing, apply, json_patch, merge_patch, same_but_times,
    strategic_merge_patch, track_update,
};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::schema::structural;

const NAMES: [&str; 9] = [
    "name",
    "value",
    "set",
    "list",
    "nested",
    "mapOfMaps",
    "any",
    "atomicMap",
    "labels",
];

/// Any JSON, with names that the schema knows often enough.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2..3i64).prop_map(Value::from),
        "[ab]".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let name = prop::sample::select(&NAMES[..]).prop_map(str::to_owned);
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(name, inner, 0..4)
                .prop_map(|map| map.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

fn text_map() -> impl Strategy<Value = Value> {
    btree_map("[a-c]", "[xy]", 0..3).prop_map(|map| json!(map))
}

fn set() -> impl Strategy<Value = Value> {
    prop::sample::subsequence(vec!["a", "b", "c"], 0..3)
        .prop_shuffle()
        .prop_map(|set| json!(set))
}

fn items() -> impl Strategy<Value = Value> {
    btree_map("[a-c]", (set(), text_map(), "[xy]"), 0..3).prop_map(|items| {
        items
            .into_iter()
            .map(|(name, (set, map, value))| json!({"name": name, "set": set, "map": map, "value": value}))
            .collect()
    })
}

/// A configuration that fits the schema, with some of the fields.
fn config() -> impl Strategy<Value = Value> {
    let fields = (
        "[xy]".prop_map(Value::from),
        text_map(),
        set(),
        items(),
        text_map().prop_map(|map| json!({"k": map})),
        set(),
    );
    (fields, vec(any::<bool>(), 6)).prop_map(|(fields, chosen)| {
        let (name, labels, set, list, maps, atomic) = fields;
        let all = [
            ("name", name),
            ("labels", labels),
            ("set", set),
            ("list", list),
            ("mapOfMaps", maps),
            ("atomicList", atomic),
        ];
        let spec: serde_json::Map<String, Value> = all
            .into_iter()
            .zip(chosen)
            .filter(|(_, chosen)| *chosen)
            .map(|((name, value), _)| (name.to_owned(), value))
            .collect();
        json!({
            "apiVersion": "test.io/v1",
            "kind": "Thing",
            "metadata": {"name": "x", "labels": {"applied": "yes"}},
            "spec": spec,
        })
    })
}

fn manager<'a>(name: &'a str, now: &'a str) -> Manager<'a> {
    Manager {
        name,
        subresource: "",
        api_version: "test.io/v1",
        now,
    }
}

fn entries(object: &Value) -> usize {
    object["metadata"]["managedFields"]
        .as_array()
        .map_or(0, Vec::len)
}

proptest! {
    #[test]
    fn an_apply_twice_is_an_apply_once(a in config(), b in config(), c in config()) {
        let schema = structural();
        let typing = Typing::Schema(schema.root());
        let first = apply(None, &a, &manager("a", "2026-01-01T00:00:00Z"), false, typing)
            .expect("nothing to conflict with");
        let second = apply(Some(&first), &b, &manager("b", "2026-01-01T00:00:01Z"), true, typing)
            .expect("forced");
        let third = apply(Some(&second), &c, &manager("a", "2026-01-01T00:00:02Z"), true, typing)
            .expect("forced");
        let again = apply(Some(&third), &c, &manager("a", "2026-01-01T00:00:03Z"), true, typing)
            .expect("forced");
        prop_assert_eq!(&again, &third);
        let unforced = apply(Some(&third), &c, &manager("a", "2026-01-01T00:00:04Z"), false, typing)
            .expect("what one holds conflicts with nobody");
        prop_assert_eq!(&unforced, &third);
    }

    #[test]
    fn what_is_applied_with_force_is_there(a in config(), b in config()) {
        let schema = structural();
        let typing = Typing::Schema(schema.root());
        let now = "2026-01-01T00:00:00Z";
        let live = apply(None, &a, &manager("a", now), false, typing).expect("created");
        let merged = apply(Some(&live), &b, &manager("b", now), true, typing).expect("forced");
        for (field, value) in b["spec"].as_object().expect("an object") {
            match (field.as_str(), value) {
                ("name" | "atomicList", _) => prop_assert_eq!(&merged["spec"][field], value),
                (_, Value::Object(map)) => for (key, value) in map {
                    if value.is_string() {
                        prop_assert_eq!(&merged["spec"][field][key], value);
                    }
                },
                ("set", Value::Array(items)) => for item in items {
                    let all = merged["spec"]["set"].as_array().expect("a list");
                    prop_assert!(all.contains(item));
                },
                _ => {}
            }
        }
    }

    #[test]
    fn managers_that_share_nothing_keep_what_they_have(mut a in config(), b in text_map()) {
        // Nobody owns an empty set, so nobody can give it up.
        a["spec"].as_object_mut().expect("an object").retain(|_, value| *value != json!([]));
        let schema = structural();
        let typing = Typing::Schema(schema.root());
        let now = "2026-01-01T00:00:00Z";
        let b = json!({
            "apiVersion": "test.io/v1",
            "kind": "Thing",
            "metadata": {"name": "x"},
            "spec": {"replicas": 1, "any": b},
        });
        let live = apply(None, &a, &manager("a", now), false, typing).expect("created");
        let both = apply(Some(&live), &b, &manager("b", now), false, typing).expect("disjoint");
        for config in [&a, &b] {
            for (field, value) in config["spec"].as_object().expect("an object") {
                prop_assert_eq!(&both["spec"][field], value);
            }
        }
        // When one leaves, the other's fields are all that is left.
        let empty = json!({"apiVersion": "test.io/v1", "kind": "Thing", "metadata": {"name": "x"}});
        let alone = apply(Some(&both), &empty, &manager("a", now), false, typing).expect("leaves");
        prop_assert_eq!(&alone["spec"], &b["spec"]);
        prop_assert_eq!(&alone["metadata"]["labels"], &Value::Null);
        prop_assert_eq!(entries(&alone), 1);
    }

    #[test]
    fn a_field_that_is_no_longer_applied_goes_unless_another_owns_it(
        a in config(),
        field in prop::sample::select(vec!["name", "labels", "set", "list", "atomicList"]),
        shared in any::<bool>(),
    ) {
        let schema = structural();
        let typing = Typing::Schema(schema.root());
        let now = "2026-01-01T00:00:00Z";
        let mut live = apply(None, &a, &manager("a", now), false, typing).expect("created");
        if shared {
            live = apply(Some(&live), &a, &manager("b", now), false, typing).expect("the same");
        }
        let mut less = a.clone();
        less["spec"].as_object_mut().expect("an object").remove(field);
        let after = apply(Some(&live), &less, &manager("a", now), false, typing).expect("owned");
        if shared {
            prop_assert_eq!(&after["spec"], &live["spec"]);
        } else {
            let empty = matches!(&a["spec"][field], Value::Array(items) if items.is_empty());
            // Nobody owns an empty set, so nobody can give it up.
            prop_assert!(empty || after["spec"].get(field).is_none());
        }
    }

    #[test]
    fn an_update_that_changes_nothing_leaves_everything(a in config(), b in config()) {
        let schema = structural();
        let typing = Typing::Schema(schema.root());
        let live = apply(None, &a, &manager("a", "2026-01-01T00:00:00Z"), false, typing)
            .expect("created");
        let mut live = apply(Some(&live), &b, &manager("b", "2026-01-01T00:00:01Z"), true, typing)
            .expect("forced");
        live["metadata"]["resourceVersion"] = json!("7");
        let mut new = live.clone();
        track_update(Some(&live), &mut new, &manager("c", "2026-01-01T00:00:02Z"), typing);
        prop_assert_eq!(&new, &live);
        // Nor does a client that drops the field.
        new["metadata"].as_object_mut().expect("an object").remove("managedFields");
        track_update(Some(&live), &mut new, &manager("c", "2026-01-01T00:00:03Z"), typing);
        prop_assert_eq!(&new, &live);
        prop_assert!(same_but_times(&new, &live));
    }

    #[test]
    fn nothing_panics_on_any_json(a in any_json(), b in any_json(), c in any_json()) {
        let schema = structural();
        let wrap = |spec: &Value, other: &Value| {
            json!({"apiVersion": "v1", "kind": "K", "spec": spec, "metadata": other, "x": other})
        };
        for typing in [Typing::Schema(schema.root()), Typing::Deduced] {
            for (live, config) in [
                (a.clone(), b.clone()),
                (wrap(&a, &c), wrap(&b, &Value::Null)),
                (wrap(&a, &json!({"managedFields": c})), wrap(&b, &c)),
            ] {
                for force in [false, true] {
                    let now = "not a time";
                    let result = apply(Some(&live), &config, &manager("kubectl", now), force, typing);
                    let mut new = result.unwrap_or_else(|_| config.clone());
                    track_update(Some(&live), &mut new, &manager("", now), typing);
                    track_update(None, &mut new, &manager("", now), typing);
                }
            }
        }
        let mut merged = a.clone();
        merge_patch(&mut merged, &b);
        let _ = json_patch(&a, &b);
        let _ = strategic_merge_patch(&a, &b, &PatchMeta::of("", "Secret"));
    }
}
