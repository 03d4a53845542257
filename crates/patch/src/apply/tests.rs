use serde_json::json;

use super::*;
use crate::managed::same_but_times;
use crate::update::track_update;

fn manager(name: &'static str, now: &'static str) -> Manager<'static> {
    Manager {
        name,
        subresource: "",
        api_version: "v1",
        now,
    }
}

fn applied(live: Option<&Value>, config: Value, manager: &Manager<'_>) -> Value {
    let mut config = config;
    config["apiVersion"] = json!("v1");
    config["kind"] = json!("ConfigMap");
    apply(live, &config, manager, false, Typing::Deduced).expect("no conflict")
}

fn times(object: &Value) -> Vec<&str> {
    let entries = object["metadata"]["managedFields"].as_array();
    let entries = entries.into_iter().flatten();
    entries
        .map(|entry| entry["time"].as_str().unwrap_or_default())
        .collect()
}

#[test]
fn a_time_changes_only_with_the_entry_or_the_object() {
    let early = manager("a", "2026-01-01T00:00:00Z");
    let late = manager("a", "2026-01-01T00:00:09Z");
    let live = applied(None, json!({"data": {"x": "1"}}), &early);
    assert_eq!(times(&live), ["2026-01-01T00:00:00Z"]);
    let same = applied(Some(&live), json!({"data": {"x": "1"}}), &late);
    assert_eq!(same, live);
    let other = applied(
        Some(&live),
        json!({"data": {"x": "1"}}),
        &manager("b", late.now),
    );
    assert_eq!(times(&other), [early.now, late.now]);
    let changed = applied(Some(&live), json!({"data": {"x": "2"}}), &late);
    assert_eq!(times(&changed), [late.now]);
}

#[test]
fn objects_that_differ_in_times_alone_are_the_same() {
    let at = |now| applied(None, json!({"data": {"x": "1"}}), &manager("a", now));
    let (early, late) = (at("2026-01-01T00:00:00Z"), at("2026-01-01T00:00:09Z"));
    assert!(same_but_times(&early, &late));
    assert!(same_but_times(&early, &early));
    let mut other = late.clone();
    other["data"]["x"] = json!("2");
    assert!(!same_but_times(&early, &other));
    let mut other = late.clone();
    other["metadata"]["managedFields"][0]["manager"] = json!("b");
    assert!(!same_but_times(&early, &other));
    let mut other = late;
    other["metadata"]
        .as_object_mut()
        .expect("an object")
        .remove("managedFields");
    assert!(!same_but_times(&early, &other));
}

#[test]
fn a_manager_without_name_is_unknown() {
    let live = applied(
        None,
        json!({"data": {"x": "1"}}),
        &manager("", "2026-01-01T00:00:00Z"),
    );
    assert_eq!(live["metadata"]["managedFields"][0]["manager"], "unknown");
}

#[test]
fn conflicts_read_as_kube_apiserver_writes_them() {
    let conflict = |manager: &str, field: &str| Conflict {
        field: field.to_owned(),
        message: format!("conflict with {manager:?} using v1"),
    };
    assert_eq!(
        conflict_message(&[conflict("a", ".x")]),
        "Apply failed with 1 conflict: conflict with \"a\" using v1: .x"
    );
    assert_eq!(
        conflict_message(&[
            conflict("a", ".x"),
            conflict("a", ".y"),
            conflict("b", ".z")
        ]),
        "Apply failed with 3 conflicts: conflicts with \"a\" using v1:\n- .x\n- .y\n\
         conflicts with \"b\" using v1:\n- .z"
    );
}

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// An object that `kubectl apply` made without server-side apply.
fn client_side(value: &str) -> Value {
    let last = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "1", "y": "1"}});
    let mut live = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "annotations": {LAST_APPLIED: last.to_string()}},
        "data": {"x": value, "y": "1"},
    });
    let writer = manager("kubectl-client-side-apply", "2026-01-01T00:00:00Z");
    track_update(None, &mut live, &writer, Typing::Deduced);
    live
}

#[test]
fn kubectl_takes_over_what_it_applied_on_the_client_side() {
    let kubectl = manager("kubectl", "2026-01-01T00:00:01Z");
    let config = json!({"metadata": {"name": "c"}, "data": {"x": "2"}});
    let live = client_side("1");
    let merged = applied(Some(&live), config.clone(), &kubectl);
    assert_eq!(merged["data"], json!({"x": "2", "y": "1"}));
    let last = merged["metadata"]["annotations"][LAST_APPLIED]
        .as_str()
        .expect("kept");
    let last: Value = serde_json::from_str(last).expect("JSON");
    assert_eq!(last["data"], json!({"x": "2"}));
    assert_eq!(applied(Some(&merged), config.clone(), &kubectl), merged);

    // Others, and fields that somebody changed since, do conflict.
    let mut config = config;
    config["apiVersion"] = json!("v1");
    config["kind"] = json!("ConfigMap");
    let refused = |live: &Value, name: &'static str| {
        let manager = manager(name, "2026-01-01T00:00:01Z");
        apply(Some(live), &config, &manager, false, Typing::Deduced).is_err()
    };
    assert!(refused(&live, "flux"));
    assert!(refused(&client_side("3"), "kubectl"));
}
