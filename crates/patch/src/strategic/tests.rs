use serde_json::json;

use super::*;

fn patched(kind: &str, document: Value, patch: Value) -> Result<Value, PatchError> {
    strategic_merge_patch(&document, &patch, &PatchMeta::of("", kind))
}

/// Document, patch, result.
fn check(kind: &str, document: Value, patch: Value, want: Value) {
    let text = patch.to_string();
    assert_eq!(patched(kind, document, patch), Ok(want), "{text}");
}

#[test]
fn maps_merge_and_nulls_remove() {
    check(
        "ConfigMap",
        json!({"data": {"a": "1", "b": "2"}}),
        json!({"data": {"b": null, "c": "3", "d": null}}),
        json!({"data": {"a": "1", "c": "3"}}),
    );
    check(
        "ConfigMap",
        json!({}),
        json!({"data": {"c": "3", "d": null}}),
        json!({"data": {"c": "3"}}),
    );
    check(
        "ConfigMap",
        json!({"data": {}}),
        json!({"data": null}),
        json!({}),
    );
    check(
        "ConfigMap",
        json!({"immutable": true}),
        json!({"immutable": "x"}),
        json!({"immutable": "x"}),
    );
}

#[test]
fn a_map_can_be_replaced_or_emptied() {
    check(
        "ConfigMap",
        json!({"data": {"a": "1"}}),
        json!({"data": {"$patch": "replace", "b": "2"}}),
        json!({"data": {"b": "2"}}),
    );
    check(
        "ConfigMap",
        json!({"data": {"a": "1"}}),
        json!({"data": {"$patch": "delete"}}),
        json!({"data": {}}),
    );
    check(
        "ConfigMap",
        json!({}),
        json!({"data": {"$patch": "delete"}}),
        json!({}),
    );
}

#[test]
fn retain_keys_drops_the_others() {
    check(
        "ConfigMap",
        json!({"data": {"a": "1", "b": "2", "c": "3"}}),
        json!({"data": {"$retainKeys": ["a", "d"], "d": "4"}}),
        json!({"data": {"a": "1", "d": "4"}}),
    );
    let result = patched(
        "ConfigMap",
        json!({"data": {}}),
        json!({"data": {"$retainKeys": ["a"], "d": "4"}}),
    );
    assert!(matches!(result, Err(PatchError::Malformed(_))));
}

#[test]
fn finalizers_merge_as_a_set() {
    let finalizers = |list: &[&str]| json!({"metadata": {"finalizers": list}});
    check(
        "Secret",
        finalizers(&["a", "b"]),
        finalizers(&["c", "b"]),
        finalizers(&["c", "a", "b"]),
    );
    check(
        "Secret",
        finalizers(&["a", "b"]),
        finalizers(&["a"]),
        finalizers(&["a", "b"]),
    );
    check(
        "Secret",
        finalizers(&["a", "b", "c"]),
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["b", "x"]}}),
        finalizers(&["a", "c"]),
    );
    check(
        "Secret",
        finalizers(&["a", "b"]),
        json!({"metadata": {
            "$deleteFromPrimitiveList/finalizers": ["a"],
            "$setElementOrder/finalizers": ["c", "b"],
            "finalizers": ["c"],
        }}),
        finalizers(&["c", "b"]),
    );
    check(
        "Secret",
        json!({"metadata": {}}),
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}),
        json!({"metadata": {}}),
    );
}

#[test]
fn owners_merge_by_uid() {
    check(
        "Secret",
        json!({"metadata": {"ownerReferences": [{"uid": "1", "name": "a"}, {"uid": "2", "name": "b"}]}}),
        json!({"metadata": {"ownerReferences": [{"uid": "2", "controller": true}, {"uid": "3", "name": "c"}]}}),
        json!({"metadata": {"ownerReferences": [
            {"uid": "1", "name": "a"},
            {"uid": "2", "name": "b", "controller": true},
            {"uid": "3", "name": "c"},
        ]}}),
    );
    check(
        "Secret",
        json!({"metadata": {"ownerReferences": [{"uid": "1"}, {"uid": "2"}]}}),
        json!({"metadata": {"ownerReferences": [{"$patch": "delete", "uid": "1"}]}}),
        json!({"metadata": {"ownerReferences": [{"uid": "2"}]}}),
    );
    check(
        "Secret",
        json!({"metadata": {"ownerReferences": [{"uid": "1"}, {"uid": "2"}]}}),
        json!({"metadata": {"ownerReferences": [{"uid": "3"}, {"$patch": "replace"}]}}),
        json!({"metadata": {"ownerReferences": [{"uid": "3"}]}}),
    );
}

#[test]
fn element_order_wins_over_the_order_of_the_patch_and_the_live_list() {
    let secrets = |names: &[&str]| {
        let secrets: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        json!({"secrets": secrets})
    };
    check(
        "ServiceAccount",
        secrets(&["a", "b", "c"]),
        json!({
            "$setElementOrder/secrets": [{"name": "c"}, {"name": "d"}, {"name": "a"}],
            "secrets": [{"name": "d"}],
        }),
        secrets(&["b", "c", "d", "a"]),
    );
    check(
        "ServiceAccount",
        secrets(&["a", "b"]),
        json!({"$setElementOrder/secrets": [{"name": "b"}, {"name": "a"}]}),
        secrets(&["b", "a"]),
    );
    let wrong = patched(
        "ServiceAccount",
        secrets(&["a"]),
        json!({
            "$setElementOrder/secrets": [{"name": "b"}, {"name": "c"}],
            "secrets": [{"name": "c"}, {"name": "b"}],
        }),
    );
    assert!(matches!(wrong, Err(PatchError::Malformed(_))));
}

#[test]
fn lists_without_merge_key_are_replaced() {
    check(
        "Namespace",
        json!({"spec": {"finalizers": ["kubernetes"]}, "status": {"conditions": [{"type": "A", "status": "True"}]}}),
        json!({"spec": {"finalizers": ["x"]}, "status": {"conditions": [{"type": "B"}]}}),
        json!({"spec": {"finalizers": ["x"]}, "status": {"conditions": [{"type": "B"}, {"type": "A", "status": "True"}]}}),
    );
    check(
        "ServiceAccount",
        json!({"imagePullSecrets": [{"name": "a"}]}),
        json!({"imagePullSecrets": [{"name": "b"}]}),
        json!({"imagePullSecrets": [{"name": "b"}]}),
    );
}

#[test]
fn malformed_patches_are_refused() {
    for patch in [
        json!([]),
        json!({"$patch": "nope"}),
        json!({"metadata": {"ownerReferences": [{"name": "no uid"}]}}),
        json!({"metadata": {"ownerReferences": ["x"]}}),
        json!({"metadata": {"finalizers": [{}]}}),
        json!({"metadata": {"$setElementOrder/finalizers": "x"}}),
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": "x"}}),
        json!({"metadata": {"$retainKeys": {}}}),
    ] {
        let document =
            json!({"metadata": {"finalizers": ["a"], "ownerReferences": [{"uid": "1"}]}});
        let text = patch.to_string();
        let result = patched("Secret", document, patch);
        assert!(
            matches!(result, Err(PatchError::Malformed(_))),
            "{text}: {result:?}"
        );
    }
}
