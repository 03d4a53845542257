use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn set(fields: Value) -> FieldSet<'static> {
    FieldSet::decode(&fields).expect("FieldsV1").into_owned()
}

#[test]
fn fields_v1_reads_back_as_written() {
    for fields in [
        json!({}),
        json!({"f:a": {}}),
        json!({"f:a": {".": {}, "f:b": {}}}),
        json!({"f:a": {"f:b": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}}}}}),
        json!({"f:finalizers": {".": {}, "v:\"a\"": {}, "v:\"b\"": {}}}),
    ] {
        assert_eq!(set(fields.clone()).encode(), fields);
    }
}

#[test]
fn what_is_not_fields_v1_is_refused() {
    for fields in [
        json!([]),
        json!(null),
        json!({"f:a": 1}),
        json!({"a": {}}),
        json!({"v:{": {}}),
    ] {
        assert_eq!(FieldSet::decode(&fields), None, "{fields}");
    }
}

#[test]
fn unknown_kinds_of_elements_are_dropped() {
    assert_eq!(
        set(json!({"x:new": {}, "f:a": {}})),
        set(json!({"f:a": {}}))
    );
}

#[test]
fn a_parent_and_its_children_are_separate_members() {
    let both = set(json!({"f:a": {".": {}, "f:b": {}}}));
    let parent = set(json!({"f:a": {}}));
    let child = set(json!({"f:a": {"f:b": {}}}));
    assert_eq!(both.difference(&parent), child);
    assert_eq!(both.difference(&child), parent);
    assert_eq!(parent.union(&child), both);
    assert!(!parent.intersects(&child));
    assert!(parent.is_subset(&both) && child.is_subset(&both) && !both.is_subset(&child));
    assert_eq!(both.len(), 2);
}

#[test]
fn members_are_visited_parents_first() {
    let mut seen = Vec::new();
    set(json!({"f:b": {"k:{\"n\":1}": {".": {}, "f:n": {}}}, "f:a": {}, "f:c": {"v:true": {}}}))
        .for_each(&mut |path| seen.push(path_text(path)));
    assert_eq!(seen, [".a", ".b[n=1]", ".b[n=1].n", ".c[=true]"]);
}

fn arbitrary_set() -> impl Strategy<Value = FieldSet<'static>> {
    let element = prop_oneof![
        "[a-d]".prop_map(|name| PathElement::Field(Cow::Owned(name))),
        (0..3i64).prop_map(|item| PathElement::Item(Cow::Owned(json!(item)))),
        ("[ab]", "[xy]").prop_map(|(a, b)| PathElement::key(vec![
            (Cow::Borrowed("name"), Cow::Owned(json!(a))),
            (Cow::Borrowed("id"), Cow::Owned(json!(b))),
        ])),
    ];
    vec(vec(element, 1..4), 0..8).prop_map(|paths| {
        paths.iter().fold(FieldSet::default(), |set, path| {
            set.union(&FieldSet::of(path))
        })
    })
}

fn paths(set: &FieldSet<'_>) -> std::collections::BTreeSet<String> {
    let mut paths = std::collections::BTreeSet::new();
    set.for_each(&mut |path| {
        paths.insert(path_text(path));
    });
    paths
}

proptest! {
    #[test]
    fn sets_survive_the_wire(a in arbitrary_set()) {
        let wire = a.encode();
        prop_assert_eq!(FieldSet::decode(&wire).expect("own encoding"), a);
    }

    #[test]
    fn set_operations_agree_with_sets_of_paths(a in arbitrary_set(), b in arbitrary_set()) {
        let (pa, pb) = (paths(&a), paths(&b));
        prop_assert_eq!(paths(&a.union(&b)), pa.union(&pb).cloned().collect());
        prop_assert_eq!(paths(&a.intersection(&b)), pa.intersection(&pb).cloned().collect());
        prop_assert_eq!(paths(&a.difference(&b)), pa.difference(&pb).cloned().collect());
        prop_assert_eq!(a.intersects(&b), !pa.is_disjoint(&pb));
        prop_assert_eq!(a.is_subset(&b), pa.is_subset(&pb));
        prop_assert_eq!(a.len(), pa.len());
        prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a);
    }
}
