//! XRs: from manifest to ready, drift, change, pause and deletion.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ecp_meta::{keys, names, object};
use ecp_xr::function::{Request, Resource, Response};
use serde_json::{Value, json};

use crate::harness::{Harness, composition, condition, disk, is_ready, volumes, xrd_v2};

const NS: Option<&str> = Some("ns");

/// Says that a volume is ready, as its provider would.
async fn make_ready(harness: &Harness, volume: &Value) {
    let conditions = json!([{"type": "Ready", "status": "True", "reason": "Available",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    harness
        .edit_status(
            volume,
            json!([{"op": "add", "path": "/status", "value": {"conditions": conditions}}]),
        )
        .await;
}

async fn make_all_ready(harness: &Harness, count: usize) {
    for volume in harness.until_list("Volume", |l| l.len() == count).await {
        make_ready(harness, &volume).await;
    }
}

#[tokio::test]
async fn an_xr_composes_and_becomes_ready() {
    let harness = Harness::with_disks(volumes()).await;
    let created = harness.create(&disk("d", 5)).await;
    let volumes = harness.until_list("Volume", |l| l.len() == 1).await;
    let volume = &volumes[0];
    let uid = object::uid(&created);
    assert_eq!(
        object::name(volume),
        names::child_name("d-", uid, "volume-0")
    );
    assert_eq!(object::namespace(volume), NS);
    assert_eq!(object::label(volume, keys::COMPOSITE), Some("d"));
    assert_eq!(
        object::annotation(volume, keys::COMPOSITION_RESOURCE_NAME),
        Some("volume-0")
    );
    assert_eq!(object::controller_ref(volume).expect("owner")["uid"], uid);
    let xr = harness
        .until("Disk", NS, "d", |xr| condition(xr, "Ready") != "none")
        .await;
    assert_eq!(
        condition(&xr, "Ready"),
        "False Creating Unready resources: volume-0"
    );
    make_all_ready(&harness, 1).await;
    let xr = harness.until("Disk", NS, "d", is_ready).await;
    assert_eq!(condition(&xr, "Ready"), "True Available");
    assert_eq!(condition(&xr, "Synced"), "True ReconcileSuccess");
    assert_eq!(condition(&xr, "Responsive"), "True WatchCircuitClosed");
    assert_eq!(xr["status"]["size"], 5);
    let crossplane = &xr["spec"]["crossplane"];
    assert_eq!(crossplane["compositionRef"]["name"], "disks");
    assert_eq!(crossplane["compositionUpdatePolicy"], "Automatic");
    assert_eq!(
        crossplane["resourceRefs"],
        json!([{"apiVersion": "dummy.test/v1", "kind": "Volume", "name": object::name(volume)}])
    );
    assert_eq!(
        object::finalizers(&xr).collect::<Vec<_>>(),
        [keys::COMPOSITE_FINALIZER]
    );
}

#[tokio::test]
async fn an_idle_xr_is_not_written() {
    let harness = Harness::with_disks(volumes()).await;
    for n in 0..5 {
        harness.create(&disk(&format!("d{n}"), 1)).await;
    }
    make_all_ready(&harness, 5).await;
    for n in 0..5 {
        harness.until("Disk", NS, &format!("d{n}"), is_ready).await;
    }
    let before = harness.settled().await;
    let versions = |list: Vec<Value>| {
        list.iter()
            .map(|o| object::resource_version(o).to_owned())
            .collect::<Vec<_>>()
    };
    let kinds = ["Disk", "Volume", "Composition", "CompositionRevision"];
    let mut versions_before = vec![];
    for kind in kinds {
        versions_before.push(versions(harness.list(kind).await));
    }
    // A change that is none of the engine's business wakes the XR and leads to no write.
    for volume in harness.list("Volume").await {
        let patch = json!([{"op": "add", "path": "/metadata/annotations/note", "value": "x"}]);
        harness.edit(&volume, patch).await;
    }
    assert_eq!(harness.settled().await, before);
    versions_before.remove(1);
    for (kind, before) in ["Disk", "Composition", "CompositionRevision"]
        .iter()
        .zip(versions_before)
    {
        assert_eq!(versions(harness.list(kind).await), before, "{kind}");
    }
}

#[tokio::test]
async fn a_restarted_engine_changes_nothing() {
    let mut harness = Harness::with_disks(volumes()).await;
    harness.create(&disk("d", 1)).await;
    make_all_ready(&harness, 1).await;
    harness.until("Disk", NS, "d", is_ready).await;
    harness.settled().await;
    harness.stop_engine().await;
    let before = (harness.list("Disk").await, harness.list("Volume").await);
    harness.start_engine();
    harness.create(&disk("e", 1)).await;
    harness.until_list("Volume", |l| l.len() == 2).await;
    harness.settled().await;
    let after = harness.get("Disk", NS, "d").await.expect("disk");
    assert_eq!(
        object::resource_version(&after),
        object::resource_version(&before.0[0])
    );
    let name = object::name(&before.1[0]);
    let volume = harness.get("Volume", NS, name).await.expect("volume");
    assert_eq!(
        object::resource_version(&volume),
        object::resource_version(&before.1[0])
    );
}

#[tokio::test]
async fn changes_reach_composed_resources_and_drift_is_corrected() {
    let harness = Harness::with_disks(volumes()).await;
    harness.create(&disk("d", 1)).await;
    let volumes = harness.until_list("Volume", |l| l.len() == 1).await;
    let name = object::name(&volumes[0]).to_owned();
    let patch = json!([{"op": "replace", "path": "/spec/size", "value": 7}]);
    harness.edit(&disk("d", 1), patch).await;
    harness
        .until("Volume", NS, &name, |v| v["spec"]["size"] == 7)
        .await;
    let patch = json!([{"op": "replace", "path": "/spec/size", "value": 9}]);
    harness.edit(&volumes[0], patch).await;
    harness
        .until("Volume", NS, &name, |v| v["spec"]["size"] == 7)
        .await;
    harness
        .until("Disk", NS, "d", |xr| xr["status"]["size"] == 7)
        .await;
}

#[tokio::test]
async fn a_deleted_composed_resource_comes_back_under_its_name() {
    let harness = Harness::with_disks(volumes()).await;
    harness.create(&disk("d", 1)).await;
    let volumes = harness.until_list("Volume", |l| l.len() == 1).await;
    let (name, uid) = (
        object::name(&volumes[0]).to_owned(),
        object::uid(&volumes[0]).to_owned(),
    );
    harness.delete(&volumes[0]).await;
    harness
        .until("Volume", NS, &name, |v| object::uid(v) != uid)
        .await;
}

#[tokio::test]
async fn what_is_no_longer_desired_is_deleted_and_its_reference_goes() {
    let harness = Harness::with_disks(volumes()).await;
    let mut three = disk("d", 1);
    three["spec"]["count"] = json!(3);
    harness.create(&three).await;
    harness.until_list("Volume", |l| l.len() == 3).await;
    let patch = json!([{"op": "replace", "path": "/spec/count", "value": 1}]);
    harness.edit(&three, patch).await;
    let left = harness.until_list("Volume", |l| l.len() == 1).await;
    let xr = harness
        .until("Disk", NS, "d", |xr| {
            xr["spec"]["crossplane"]["resourceRefs"]
                .as_array()
                .is_some_and(|r| r.len() == 1)
        })
        .await;
    assert_eq!(
        xr["spec"]["crossplane"]["resourceRefs"][0]["name"],
        object::name(&left[0])
    );
}

#[tokio::test]
async fn a_deleted_xr_takes_its_resources_along() {
    let harness = Harness::with_disks(volumes()).await;
    harness.create(&disk("d", 1)).await;
    harness.create(&disk("other", 1)).await;
    harness.until_list("Volume", |l| l.len() == 2).await;
    harness.settled().await;
    harness.delete(&disk("d", 1)).await;
    harness.gone("Disk", NS, "d").await;
    let left = harness.until_list("Volume", |l| l.len() == 1).await;
    assert_eq!(object::label(&left[0], keys::COMPOSITE), Some("other"));
}

#[tokio::test]
async fn a_deletion_that_waits_says_for_what() {
    let harness = Harness::with_disks(volumes()).await;
    let mut held = disk("d", 1);
    held["metadata"]["finalizers"] = json!(["example.org/hold"]);
    harness.create(&held).await;
    let volume = harness
        .until_list("Volume", |l| l.len() == 1)
        .await
        .remove(0);
    let finalizers = json!(["example.org/hold"]);
    let keep = json!([{"op": "add", "path": "/metadata/finalizers", "value": finalizers}]);
    harness.edit(&volume, keep).await;
    let says = |reason: &str, message: &str| {
        let time = "2026-01-01T00:00:00Z";
        let conditions = json!([
            {"type": "Synced", "status": "True", "reason": "R", "lastTransitionTime": time},
            {"type": "Ready", "status": "False", "reason": reason, "message": message,
                "lastTransitionTime": time},
        ]);
        json!([{"op": "add", "path": "/status", "value": {"conditions": conditions}}])
    };
    harness
        .edit_status(&volume, says("Creating", "not yet"))
        .await;
    harness.settled().await;
    harness.delete(&held).await;
    harness.delete(&volume).await;
    harness
        .until("Disk", NS, "d", |xr| {
            condition(xr, "Ready").trim_end() == "False Deleting"
        })
        .await;
    harness
        .edit_status(&volume, says("Deleting", "in use by x"))
        .await;
    let why = format!(
        "False Deleting waiting for Volume {} to be deleted: in use by x",
        object::name(&volume)
    );
    harness
        .until("Disk", NS, "d", |xr| condition(xr, "Ready") == why)
        .await;
}

#[tokio::test]
async fn a_deletion_that_is_held_up_says_since_when_and_is_not_written_again() {
    let harness = Harness::with_disks(volumes()).await;
    let mut held = disk("d", 1);
    held["metadata"]["finalizers"] = json!(["example.org/hold"]);
    harness.create(&held).await;
    let volume = harness
        .until_list("Volume", |l| l.len() == 1)
        .await
        .remove(0);
    let finalizers = json!(["example.org/hold"]);
    let keep = json!([{"op": "add", "path": "/metadata/finalizers", "value": finalizers}]);
    harness.edit(&volume, keep).await;
    let busy = json!({"conditions": [{"type": "Synced", "status": "False", "reason": "R",
        "message": "it is busy", "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
    let busy = json!([{"op": "add", "path": "/status", "value": busy}]);
    harness.edit_status(&volume, busy).await;
    harness.settled().await;
    harness.delete(&held).await;
    harness.delete(&volume).await;
    let why = format!(
        "False Deleting cannot delete Volume {}: it is busy",
        object::name(&volume)
    );
    let xr = harness
        .until("Disk", NS, "d", |xr| condition(xr, "Ready") == why)
        .await;
    // As if some time had passed.
    let conditions = xr["status"]["conditions"].as_array().expect("conditions");
    let at = conditions
        .iter()
        .position(|c| c["type"] == "Ready")
        .expect("Ready");
    let path = format!("/status/conditions/{at}/lastTransitionTime");
    let old = json!("2026-01-01T00:00:00Z");
    let earlier = json!([{"op": "replace", "path": path, "value": old}]);
    let before = harness.settled().await["status"];
    harness.edit_status(&held, earlier).await;
    assert_eq!(harness.settled().await["status"], before);
    let xr = harness.get("Disk", NS, "d").await.expect("still there");
    assert_eq!(xr.pointer(&path), Some(&old));
}

#[tokio::test]
async fn a_paused_xr_is_left_alone_even_when_deleted() {
    let harness = Harness::with_disks(volumes()).await;
    let mut paused = disk("d", 1);
    object::set_annotation(&mut paused, keys::PAUSED, "true");
    harness.create(&paused).await;
    let xr = harness
        .until("Disk", NS, "d", |xr| condition(xr, "Synced") != "none")
        .await;
    assert_eq!(
        condition(&xr, "Synced"),
        "False ReconcilePaused Reconciliation (including deletion) is paused via the pause \
         annotation"
    );
    assert_eq!(object::finalizers(&xr).count(), 0);
    assert!(harness.list("Volume").await.is_empty());
    let path = "/metadata/annotations/crossplane.io~1paused";
    harness
        .edit(&paused, json!([{"op": "remove", "path": path}]))
        .await;
    harness.until_list("Volume", |l| l.len() == 1).await;
}

#[tokio::test]
async fn an_invalid_resource_is_told_and_does_not_stop_the_others() {
    let function = Arc::new(|request: Request| {
        let mut desired = request.desired;
        for (key, size) in [("bad", json!(1000)), ("good", json!(1))] {
            let object = json!({"apiVersion": "dummy.test/v1", "kind": "Volume",
                "spec": {"size": size}});
            desired.resources.insert(key.into(), Resource::of(object));
        }
        Response {
            desired,
            ..Response::default()
        }
    });
    let harness = Harness::with_disks(function).await;
    harness.create(&disk("d", 1)).await;
    let xr = harness
        .until("Disk", NS, "d", |xr| condition(xr, "Ready") != "none")
        .await;
    assert_eq!(
        condition(&xr, "Synced"),
        "False ReconcileError Unsynced resources: bad"
    );
    assert_eq!(harness.list("Volume").await.len(), 1);
    let events = harness
        .until_list("Event", |l| {
            l.iter().any(|e| {
                let message = e["message"].as_str().unwrap_or_default();
                e["type"] == "Warning"
                    && message.starts_with("cannot apply composed resource \"bad\": ")
            })
        })
        .await;
    for event in events {
        let of_disk = event["involvedObject"]["kind"] == "Disk";
        assert_eq!(event["metadata"]["namespace"] == "ns", of_disk, "{event}");
    }
}

/// crossplane#5035: two XRs that compose the same name do not steal it from each other.
#[tokio::test]
async fn a_resource_is_never_stolen() {
    let function = Arc::new(|request: Request| {
        let mut desired = request.desired;
        let object = json!({"apiVersion": "dummy.test/v1", "kind": "Volume",
            "metadata": {"name": "shared"}, "spec": {"size": 1}});
        desired
            .resources
            .insert("shared".into(), Resource::of(object));
        Response {
            desired,
            ..Response::default()
        }
    });
    let harness = Harness::with_disks(function).await;
    let first = harness.create(&disk("first", 1)).await;
    harness
        .until("Disk", NS, "first", |xr| condition(xr, "Ready") != "none")
        .await;
    harness.create(&disk("second", 1)).await;
    let second = harness
        .until("Disk", NS, "second", |xr| condition(xr, "Synced") != "none")
        .await;
    assert!(
        condition(&second, "Synced").starts_with("False ReconcileError Unsynced resources: shared"),
        "{}",
        condition(&second, "Synced")
    );
    let volume = harness.get("Volume", NS, "shared").await.expect("volume");
    assert_eq!(
        object::controller_ref(&volume).expect("owner")["uid"],
        object::uid(&first)
    );
    harness.settled().await;
    let volume = harness.get("Volume", NS, "shared").await.expect("volume");
    assert_eq!(object::owner_refs(&volume).count(), 1);
}

/// crossplane#1910: conflicts while the XR is written never lead to a second resource.
#[tokio::test]
async fn conflicts_never_make_a_second_resource() {
    let harness = Harness::with_disks(volumes()).await;
    let xr = disk("d", 1);
    harness.create(&xr).await;
    for n in 0..50 {
        let patch = json!([{"op": "add", "path": "/metadata/labels", "value":
            {"crossplane.io/composite": "d", "n": n.to_string()}}]);
        harness.edit(&xr, patch).await;
    }
    harness.until_list("Volume", |l| !l.is_empty()).await;
    harness.settled().await;
    assert_eq!(harness.list("Volume").await.len(), 1);
}

/// crossplane#6910: a large XR in its first reconcile is no fight.
#[tokio::test]
async fn a_large_xr_stays_responsive() {
    let harness = Harness::with_disks(volumes()).await;
    let mut large = disk("d", 1);
    large["spec"]["count"] = json!(60);
    harness.create(&large).await;
    make_all_ready(&harness, 60).await;
    let xr = harness.until("Disk", NS, "d", is_ready).await;
    assert_eq!(condition(&xr, "Responsive"), "True WatchCircuitClosed");
    let xr = harness
        .until("Disk", NS, "d", |xr| xr["status"]["seen"] == 60)
        .await;
    assert_eq!(
        xr["spec"]["crossplane"]["resourceRefs"]
            .as_array()
            .map(Vec::len),
        Some(60)
    );
}

#[tokio::test]
async fn a_namespaced_xr_may_not_compose_cluster_scoped_resources() {
    let function = Arc::new(|request: Request| {
        let mut desired = request.desired;
        let object = json!({"apiVersion": "v1", "kind": "Namespace"});
        desired
            .resources
            .insert("space".into(), Resource::of(object));
        let object = json!({"apiVersion": "dummy.test/v1", "kind": "Volume", "spec": {}});
        desired
            .resources
            .insert("volume".into(), Resource::of(object));
        Response {
            desired,
            ..Response::default()
        }
    });
    let harness = Harness::with_disks(function).await;
    harness.create(&disk("d", 1)).await;
    let xr = harness
        .until("Disk", NS, "d", |xr| condition(xr, "Synced") != "none")
        .await;
    assert_eq!(
        condition(&xr, "Synced"),
        "False ReconcileError cannot compose resources: cannot apply cluster scoped composed \
         resource \"space\" (a Namespace named ) for a namespaced composite resource."
    );
    assert!(harness.list("Volume").await.is_empty());
}

#[tokio::test]
async fn a_cluster_scoped_xr_composes_into_namespaces() {
    let function = Arc::new(|request: Request| {
        let mut desired = request.desired;
        let object = json!({"apiVersion": "dummy.test/v1", "kind": "Volume",
            "metadata": {"namespace": "ns"}, "spec": {"size": 1}});
        desired
            .resources
            .insert("volume".into(), Resource::of(object));
        Response {
            desired,
            ..Response::default()
        }
    });
    let harness = Harness::start(function).await;
    harness.create(&xrd_v2("Cluster")).await;
    harness.create(&composition("regions", "Region")).await;
    harness.established("regions.ex.test").await;
    harness
        .create(&json!({"apiVersion": "ex.test/v1", "kind": "Region",
            "metadata": {"name": "r"}, "spec": {}}))
        .await;
    harness.until_list("Volume", |l| l.len() == 1).await;
    let region = harness
        .until("Region", None, "r", |r| condition(r, "Synced") != "none")
        .await;
    assert_eq!(
        region["spec"]["crossplane"]["resourceRefs"][0]["namespace"],
        "ns"
    );
}

#[tokio::test]
async fn a_failing_function_is_told_and_recovered_from() {
    let broken = Arc::new(AtomicBool::new(true));
    let function = {
        let broken = Arc::clone(&broken);
        let works = volumes();
        Arc::new(move |request: Request| {
            if !broken.load(Ordering::SeqCst) {
                return works(request);
            }
            Response {
                results: vec![ecp_xr::function::FunctionResult {
                    severity: ecp_xr::function::Severity::Fatal,
                    message: "out of order".into(),
                    reason: None,
                    target: ecp_xr::function::Target::Composite,
                }],
                ..Response::default()
            }
        })
    };
    let harness = Harness::with_disks(function).await;
    harness.create(&disk("d", 1)).await;
    let xr = harness
        .until("Disk", NS, "d", |xr| condition(xr, "Synced") != "none")
        .await;
    assert_eq!(
        condition(&xr, "Synced"),
        "False ReconcileError cannot compose resources: pipeline step \"make\" returned a fatal \
         result: out of order"
    );
    assert!(harness.list("Volume").await.is_empty());
    assert_eq!(object::finalizers(&xr).count(), 1, "prepared all the same");
    let composition = &xr["spec"]["crossplane"]["compositionRef"]["name"];
    assert!(composition.is_string(), "{xr:#}");
    broken.store(false, Ordering::SeqCst);
    harness.until_list("Volume", |l| l.len() == 1).await;
    let xr = harness
        .until("Disk", NS, "d", |xr| condition(xr, "Ready") != "none")
        .await;
    assert_eq!(condition(&xr, "Synced"), "True ReconcileSuccess");
    broken.store(true, Ordering::SeqCst);
    let patch = json!([{"op": "replace", "path": "/spec/size", "value": 3}]);
    harness.edit(&disk("d", 1), patch).await;
    let xr = harness
        .until("Disk", NS, "d", |xr| {
            condition(xr, "Synced").starts_with("False")
        })
        .await;
    assert_eq!(xr["status"]["size"], 1, "the functions' status stays");
    assert_eq!(harness.list("Volume").await.len(), 1, "nothing is deleted");
}
