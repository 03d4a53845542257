//! Our packages on Crossplane's own core: what its users do with composite resources and claims.
//!
//! `ECP_TEST_CROSSPLANE` names core's binary; without it these tests say that they were skipped.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use ecp_harness::{DEADLINE, Ecp, volume};

use crate::examples::{FOLDERS, kubectl, objects, until_nothing_is_left};

/// A volume of `examples/first-volume`.
const VOLUME: [&str; 4] = ["block-storages", "data", "-n", "acme-prod-6851f068"];

fn apply_example(ecp: &Ecp, name: &str) -> Vec<Value> {
    let objects = objects(name);
    kubectl(ecp, &["apply"], &objects).unwrap().done();
    let wait = ["wait", "--for=condition=Ready", "--timeout=60s"];
    let resources: Vec<Value> = objects
        .iter()
        .filter(|o| o["kind"] != "Namespace")
        .cloned()
        .collect();
    kubectl(ecp, &wait, &resources).unwrap().done();
    objects
}

/// The volume, as soon as a condition holds.
async fn until_volume(ecp: &Ecp, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let started = Instant::now();
    loop {
        let get = [&["get"], &VOLUME[..], &["-o", "json"]].concat();
        let found = ecp.kubectl(&get).unwrap().done();
        let volume: Value = serde_json::from_str(&found).unwrap();
        if holds(&volume) {
            return volume;
        }
        let late = started.elapsed() > DEADLINE;
        assert!(!late, "the volume is not {what}: {volume:#}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|c| c["type"] == kind);
    found.unwrap_or(&Value::Null)
}

fn patch_size(ecp: &Ecp, size: i64) {
    let patch = json!({"spec": {"sizeGB": size}}).to_string();
    let args = [&["patch"], &VOLUME[..], &["--type=merge", "-p", &patch]].concat();
    ecp.kubectl(&args).unwrap().done();
}

fn annotate(ecp: &Ecp, annotation: &str) {
    let args = [&["annotate"], &VOLUME[..], &[annotation]].concat();
    ecp.kubectl(&args).unwrap().done();
}

/// The composition revision of the volume, wherever a flavour keeps it.
fn revision(volume: &Value) -> Option<&str> {
    let of = |pointer: &str| volume.pointer(pointer)?.as_str();
    of("/spec/crossplane/compositionRevisionRef/name").or(of("/spec/compositionRevisionRef/name"))
}

async fn is_used_as_on_any_cluster(flavour: &str) {
    let Some(ecp) = Ecp::start_on_crossplane(&["--flavour", flavour]).await else {
        return;
    };
    // All 18 kinds, side by side.
    let mut all = Vec::new();
    for folder in FOLDERS {
        all.extend(apply_example(&ecp, folder));
    }

    let sized = |gb: i64| move |v: &Value| v["status"]["sizeGB"] == gb;
    patch_size(&ecp, 20);
    until_volume(&ecp, "of 20 GB", sized(20)).await;

    annotate(&ecp, "crossplane.io/paused=true");
    let paused = |v: &Value| condition(v, "Synced")["reason"] == "ReconcilePaused";
    until_volume(&ecp, "paused", paused).await;
    patch_size(&ecp, 30);
    annotate(&ecp, "crossplane.io/paused-");
    until_volume(&ecp, "of 30 GB", sized(30)).await;

    let before = until_volume(&ecp, "there", |_| true).await;
    let before = revision(&before).unwrap();
    let composition = "composition/block-storages.storage.v1.secapi.cloud";
    let annotate = ["annotate", composition, "example.org/changed=yes"];
    ecp.kubectl(&annotate).unwrap().done();
    let moved = |v: &Value| revision(v).is_some_and(|now| now != before);
    until_volume(&ecp, "on the new revision", moved).await;

    if flavour == "v2" {
        protects_with_a_usage(&ecp).await;
    }

    let delete = ["delete", "--wait=false", "--ignore-not-found"];
    kubectl(&ecp, &delete, &all).unwrap().done();
    until_nothing_is_left(&ecp, &all).await;
}

/// Over REST the user reads the reason that the Usage gives.
async fn protects_with_a_usage(ecp: &Ecp) {
    let usage = json!({
        "apiVersion": "protection.crossplane.io/v1beta1",
        "kind": "Usage",
        "metadata": {"name": "keep", "namespace": VOLUME[3]},
        "spec": {
            "of": {
                "apiVersion": "storage.v1.secapi.cloud/v1",
                "kind": "BlockStorage",
                "resourceRef": {"name": VOLUME[1]},
            },
            "reason": "it has the accounts",
        },
    });
    kubectl(ecp, &["apply"], std::slice::from_ref(&usage))
        .unwrap()
        .done();
    let in_use = |v: &Value| v["metadata"]["labels"]["crossplane.io/in-use"] == "true";
    until_volume(ecp, "in use", in_use).await;
    let answer = ecp.delete(&volume("prod", "data")).await;
    assert_eq!(answer.status, 412, "{answer:?}");
    let detail = answer.body["detail"].as_str().unwrap();
    assert!(detail.contains("it has the accounts"), "{detail}");
    kubectl(ecp, &["delete"], &[usage]).unwrap().done();
    let free = |v: &Value| {
        v["metadata"]["labels"]
            .get("crossplane.io/in-use")
            .is_none()
    };
    until_volume(ecp, "free again", free).await;
}

#[tokio::test]
async fn namespaced_resources_are_used_as_on_any_cluster() {
    is_used_as_on_any_cluster("v2").await;
}

#[tokio::test]
async fn claims_are_used_as_on_any_cluster() {
    is_used_as_on_any_cluster("claims").await;
}
