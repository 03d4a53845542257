//! Tests of the view.

use std::sync::LazyLock;

use ecp_xrds::{by_kind, intent_digest};

use super::*;

const LENS_REGION: &str = "region-1";
static SERVED: LazyLock<Served> =
    LazyLock::new(|| Served::new(vec![LENS_REGION.into()], "http://127.0.0.1:8080"));

fn lens(kind: &str) -> Lens<'static> {
    Lens {
        info: by_kind(kind).expect("kind"),
        place: Place {
            tenant: "acme",
            workspace: if kind == "BlockStorage" { "prod" } else { "" },
            network: "",
        },
        region: LENS_REGION,
        served: &SERVED,
        doomed: None,
    }
}

fn disk(status: Value, changed: bool) -> Value {
    let mut object = json!({
        "metadata": {
            "name": "disk-7", "namespace": "ns", "uid": "u", "resourceVersion": "9",
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "managedFields": [{"manager": "ecp-facade", "time": "2026-01-02T03:05:00Z"}],
        },
        "spec": {
            "sizeGB": 20,
            "skuRef": {"resource": "seca.storage/v1/tenants/acme/skus/RD500"},
            "commonData": {"labels": {"env": "prod"}, "extensions": {"x": {"y": [1]}}},
            "region": "region-2",
            "crossplane": {"compositionRef": {"name": "c"}},
        },
        "status": status,
    });
    if !changed && object["status"].is_object() {
        object["status"]["intent"]["digest"] = json!(intent_digest(&object));
    }
    object
}

fn show(object: Value) -> Value {
    let lens = lens("BlockStorage");
    let entry = Entry::new(lens.info, object);
    serde_json::from_slice(&document(lens, &entry, "GET")).expect("JSON")
}

fn active() -> Value {
    json!({
        "state": "active",
        "history": [
            {"state": "active", "lastTransitionAt": "2026-01-02T03:04:07Z"},
            {"state": "creating", "lastTransitionAt": "2026-01-02T03:04:06Z"},
            {"state": "pending", "lastTransitionAt": "2026-01-02T03:04:05Z"},
        ],
        "intent": {"digest": "old", "revision": 1, "lastModifiedAt": "2026-01-02T03:04:05Z"},
        "sizeGB": 20,
        "conditions": [{"type": "Ready", "status": "True"}],
        "crossplane": {},
    })
}

fn states(document: &Value) -> Vec<&str> {
    document["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|c| c["state"].as_str())
        .collect()
}

#[test]
fn a_settled_resource_is_shown_whole() {
    assert_eq!(
        show(disk(active(), false)),
        json!({
            "labels": {"env": "prod"},
            "extensions": {"x": {"y": [1]}},
            "metadata": {
                "name": "disk-7", "apiVersion": "v1", "kind": "block-storage",
                "provider": "seca.storage/v1", "resource": "block-storages/disk-7",
                "ref": "seca.storage/v1/tenants/acme/workspaces/prod/block-storages/disk-7",
                "verb": "GET", "tenant": "acme", "workspace": "prod", "region": "region-2",
                "createdAt": "2026-01-02T03:04:05Z", "lastModifiedAt": "2026-01-02T03:04:05Z",
                "resourceVersion": 1,
            },
            "spec": {
                "sizeGB": 20,
                "skuRef": {"resource": "seca.storage/v1/tenants/acme/skus/RD500"},
            },
            "status": {
                "state": "active", "sizeGB": 20,
                "conditions": [
                    {"state": "active", "lastTransitionAt": "2026-01-02T03:04:07Z"},
                    {"state": "creating", "lastTransitionAt": "2026-01-02T03:04:06Z"},
                    {"state": "pending", "lastTransitionAt": "2026-01-02T03:04:05Z"},
                ],
            },
        })
    );
}

#[test]
fn an_unseen_change_is_never_active_with_an_old_history() {
    let shown = show(disk(active(), true));
    assert_eq!(shown["status"]["state"], "updating");
    assert_eq!(
        states(&shown),
        ["updating", "active", "creating", "pending"]
    );
    assert_eq!(shown["metadata"]["resourceVersion"], 2);
    assert_eq!(shown["metadata"]["lastModifiedAt"], "2026-01-02T03:05:00Z");
    assert_eq!(
        shown["status"]["conditions"][0]["lastTransitionAt"],
        "2026-01-02T03:05:00Z"
    );
}

#[test]
fn times_never_run_backwards() {
    let mut status = active();
    status["history"][0]["lastTransitionAt"] = json!("2026-01-02T09:00:00.5Z");
    let shown = show(disk(status, true));
    assert_eq!(
        shown["status"]["conditions"][0]["lastTransitionAt"],
        "2026-01-02T09:00:00.5Z"
    );
}

#[test]
fn a_new_resource_is_pending() {
    let shown = show(disk(Value::Null, true));
    assert_eq!(shown["status"]["state"], "pending");
    assert_eq!(states(&shown), ["pending"]);
    assert_eq!(shown["metadata"]["resourceVersion"], 1);
}

#[test]
fn a_change_before_the_first_success_is_creating_again() {
    let failed = json!({
        "state": "error",
        "history": [
            {"state": "error", "lastTransitionAt": "2026-01-02T03:04:07Z", "message": "no quota"},
            {"state": "creating", "lastTransitionAt": "2026-01-02T03:04:06Z"},
        ],
        "intent": {"digest": "old", "revision": 1},
        "message": "no quota",
    });
    let shown = show(disk(failed.clone(), true));
    assert_eq!(shown["status"]["state"], "creating");
    assert_eq!(states(&shown), ["creating", "error", "creating"]);
    let settled = show(disk(failed, false));
    assert_eq!(settled["status"]["state"], "error");
    assert_eq!(settled["status"]["conditions"][0]["message"], "no quota");
}

#[test]
fn a_message_stands_in_the_newest_condition() {
    let waiting = json!({
        "state": "pending",
        "history": [{"state": "pending", "lastTransitionAt": "2026-01-02T03:04:05Z"}],
        "intent": {"digest": "", "revision": 1},
        "message": "waiting for image img-1 to be active",
    });
    let shown = show(disk(waiting, false));
    assert_eq!(
        shown["status"]["conditions"][0]["message"],
        "waiting for image img-1 to be active"
    );
    assert!(shown["status"].get("message").is_none());
}

#[test]
fn a_deleted_resource_is_deleting_until_it_is_gone() {
    let mut object = disk(active(), false);
    object["metadata"]["deletionTimestamp"] = json!("2026-01-02T04:00:00Z");
    let shown = show(object);
    assert_eq!(shown["status"]["state"], "deleting");
    assert_eq!(shown["metadata"]["deletedAt"], "2026-01-02T04:00:00Z");
    assert_eq!(
        states(&shown),
        ["deleting", "active", "creating", "pending"]
    );
}

#[test]
fn a_deletion_that_is_held_up_says_why() {
    let mut object = disk(active(), false);
    object["metadata"]["deletionTimestamp"] = json!("2026-01-02T04:00:00Z");
    object["status"]["conditions"] = json!([{
        "type": "Ready", "status": "False", "reason": "Deleting", "message": "the volume is locked",
    }]);
    let newest = &show(object)["status"]["conditions"][0];
    assert_eq!(newest["state"], "deleting");
    assert_eq!(newest["message"], "the volume is locked");
}

#[test]
fn at_most_32_conditions_are_shown() {
    let mut status = active();
    let entry = json!({"state": "active", "lastTransitionAt": "2026-01-02T03:04:07Z"});
    status["history"] = json!(vec![entry; 40]);
    assert_eq!(states(&show(disk(status, true))).len(), 32);
}

#[test]
fn catalogue_entries_have_no_times_and_no_status() {
    let lens = lens("StorageSKU");
    let object = json!({
        "metadata": {"name": "rd500", "creationTimestamp": "2026-01-02T03:04:05Z"},
        "spec": {
            "name": "RD500", "iops": 500, "minVolumeSize": 50, "type": "remote-durable",
            "commonData": {"labels": {"Tier": "RD500"}},
        },
    });
    let entry = Entry::new(lens.info, object);
    let shown: Value = serde_json::from_slice(&document(lens, &entry, "GET")).expect("JSON");
    assert_eq!(
        shown,
        json!({
            "labels": {"Tier": "RD500"},
            "metadata": {
                "name": "RD500", "apiVersion": "v1", "kind": "storage-sku",
                "provider": "seca.storage/v1", "resource": "skus/RD500",
                "ref": "seca.storage/v1/tenants/acme/skus/RD500",
                "verb": "GET", "tenant": "acme", "region": "region-1",
            },
            "spec": {"iops": 500, "minVolumeSize": 50, "type": "remote-durable"},
        })
    );
}

#[test]
fn a_region_tells_where_this_facade_answers_and_hides_its_cloud() {
    let provider = |name: &str, url: &str| json!({"name": name, "version": "v1", "url": url});
    let region = |name: &str| {
        let mut lens = lens("Region");
        lens.place = Place::default();
        let object = json!({
            "metadata": {"name": name, "creationTimestamp": "2026-01-02T03:04:05Z"},
            "spec": {
                "availableZones": ["a"],
                "cloud": {"name": "dummy"},
                "providers": [
                    provider("seca.storage", "http://elsewhere"),
                    provider("seca.exotic", "http://elsewhere"),
                ],
            },
        });
        let entry = Entry::new(lens.info, object);
        let shown: Value = serde_json::from_slice(&document(lens, &entry, "GET")).expect("JSON");
        shown
    };
    let own = region(LENS_REGION);
    assert_eq!(
        own["spec"],
        json!({
            "availableZones": ["a"],
            "providers": [
                provider("seca.storage", "http://127.0.0.1:8080/providers/seca.storage"),
                provider("seca.exotic", "http://elsewhere"),
            ],
        })
    );
    assert_eq!(own["metadata"]["ref"], "seca.region/v1/regions/region-1");
    assert_eq!(own["metadata"].get("tenant"), None);
    assert_eq!(own["metadata"].get("region"), None);
    let other = region("region-2");
    assert_eq!(other["spec"]["providers"][0]["url"], "http://elsewhere");
}
