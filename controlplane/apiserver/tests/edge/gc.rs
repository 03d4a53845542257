//! Garbage collection by owner references.

use std::sync::Arc;

use ecp_store::MemoryStore;
use serde_json::{Value, json};

use crate::support::{Api, CRDS, disk_crd};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str, owners: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": owners}})
}

fn owned_by(owner: &Value) -> Value {
    json!({"apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]})
}

fn blocking(owner: &Value) -> Value {
    let mut reference = owned_by(owner);
    reference["blockOwnerDeletion"] = true.into();
    reference
}

fn at(name: &str) -> String {
    format!("{MAPS}/{name}")
}

/// Waits until everything that was queued before has been dealt with: a dangling object that is
/// made now goes.
async fn settle(api: &Api) {
    let nobody = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "none"});
    for n in 0..3 {
        let name = format!("canary-{n}");
        api.create(MAPS, map(&name, std::slice::from_ref(&nobody)))
            .await;
        api.until_gone(&at(&name)).await;
    }
}

#[tokio::test]
async fn dependents_follow_their_owner() {
    let api = Api::start().await;
    let owner = api.create(MAPS, map("owner", &[])).await;
    let child = api.create(MAPS, map("child", &[owned_by(&owner)])).await;
    api.create(MAPS, map("grandchild", &[owned_by(&child)]))
        .await;
    api.create(MAPS, map("bystander", &[])).await;
    api.delete(&at("owner"), "Background").await;
    api.until_gone(&at("child")).await;
    api.until_gone(&at("grandchild")).await;
    assert!(api.exists(&at("bystander")).await);
}

#[tokio::test]
async fn an_object_stays_while_one_owner_does_and_loses_the_other_reference() {
    let api = Api::start().await;
    let one = api.create(MAPS, map("one", &[])).await;
    let two = api.create(MAPS, map("two", &[])).await;
    api.create(MAPS, map("child", &[owned_by(&one), owned_by(&two)]))
        .await;
    api.delete(&at("one"), "Background").await;
    api.until(&at("child"), "left with one owner", |answer| {
        answer.code == 200 && answer.body["metadata"]["ownerReferences"] == json!([owned_by(&two)])
    })
    .await;
    api.delete(&at("two"), "Background").await;
    api.until_gone(&at("child")).await;
}

#[tokio::test]
async fn orphans_stay_without_their_reference() {
    let api = Api::start().await;
    let owner = api.create(MAPS, map("owner", &[])).await;
    api.create(MAPS, map("child", &[owned_by(&owner)])).await;
    api.delete(&at("owner"), "Orphan").await;
    api.until_gone(&at("owner")).await;
    settle(&api).await;
    let child = api.get(&at("child")).await;
    assert_eq!(child.code, 200);
    assert!(child.body["metadata"].get("ownerReferences").is_none());
}

#[tokio::test]
async fn foreground_deletion_waits_for_blocking_dependents() {
    let api = Api::start().await;
    let owner = api.create(MAPS, map("owner", &[])).await;
    let mut held = map("held", &[blocking(&owner)]);
    held["metadata"]["finalizers"] = json!(["ex.test/f"]);
    api.create(MAPS, held).await;
    api.create(MAPS, map("free", &[owned_by(&owner)])).await;
    api.delete(&at("owner"), "Foreground").await;
    api.until(&at("held"), "being deleted", |answer| {
        answer.body["metadata"].get("deletionTimestamp").is_some()
    })
    .await;
    settle(&api).await;
    assert!(api.exists(&at("owner")).await, "it must wait");
    assert_eq!(
        api.merge(&at("held"), json!({"metadata": {"finalizers": null}}))
            .await
            .code,
        200
    );
    api.until_gone(&at("owner")).await;
    api.until_gone(&at("free")).await;
}

#[tokio::test]
async fn foreground_deletion_goes_down_the_whole_tree_first() {
    let api = Api::start().await;
    let owner = api.create(MAPS, map("owner", &[])).await;
    let child = api.create(MAPS, map("child", &[blocking(&owner)])).await;
    let mut held = map("grandchild", &[blocking(&child)]);
    held["metadata"]["finalizers"] = json!(["ex.test/f"]);
    api.create(MAPS, held).await;
    api.delete(&at("owner"), "Foreground").await;
    api.until(&at("grandchild"), "being deleted", |answer| {
        answer.body["metadata"].get("deletionTimestamp").is_some()
    })
    .await;
    settle(&api).await;
    assert!(api.exists(&at("child")).await && api.exists(&at("owner")).await);
    api.merge(&at("grandchild"), json!({"metadata": {"finalizers": null}}))
        .await;
    api.until_gone(&at("child")).await;
    api.until_gone(&at("owner")).await;
}

#[tokio::test]
async fn a_circle_of_owners_does_not_lock_up() {
    let api = Api::start().await;
    let a = api.create(MAPS, map("a", &[])).await;
    let b = api.create(MAPS, map("b", &[blocking(&a)])).await;
    let circle = json!({"metadata": {"ownerReferences": [blocking(&b)]}});
    assert_eq!(api.merge(&at("a"), circle).await.code, 200);
    api.delete(&at("a"), "Foreground").await;
    api.until_gone(&at("a")).await;
    api.until_gone(&at("b")).await;
}

#[tokio::test]
async fn a_reference_to_nobody_counts_as_a_deleted_owner() {
    let api = Api::start().await;
    let owner = api.create(MAPS, map("owner", &[])).await;
    let mut forged = owned_by(&owner);
    forged["uid"] = "another".into();
    api.create(MAPS, map("forged", &[forged])).await;
    api.until_gone(&at("forged")).await;
    assert!(api.exists(&at("owner")).await);
}

#[tokio::test]
async fn an_owner_in_another_namespace_does_not_count() {
    let api = Api::start().await;
    api.create("/api/v1/namespaces", json!({"metadata": {"name": "far"}}))
        .await;
    let owner = api
        .create("/api/v1/namespaces/far/configmaps", map("owner", &[]))
        .await;
    api.create(MAPS, map("child", &[owned_by(&owner)])).await;
    api.until_gone(&at("child")).await;
    // A namespace, which is in none, may own what is anywhere.
    let far = api.get("/api/v1/namespaces/far").await.body;
    api.create(MAPS, map("of-cluster", &[owned_by(&far)])).await;
    settle(&api).await;
    assert!(api.exists(&at("of-cluster")).await);
}

#[tokio::test]
async fn unknown_kinds_are_left_alone_until_they_are_known() {
    let api = Api::start().await;
    let owner = json!({"apiVersion": "ex.test/v1", "kind": "Disk", "name": "d", "uid": "u"});
    api.create(MAPS, map("child", &[owner])).await;
    settle(&api).await;
    assert!(api.exists(&at("child")).await);
    // Now it can be seen that there is no such disk.
    api.create(CRDS, disk_crd()).await;
    api.until_gone(&at("child")).await;
}

#[tokio::test]
async fn dependents_go_with_the_objects_of_a_deleted_definition() {
    let api = Api::start().await;
    api.create(CRDS, disk_crd()).await;
    let disk = json!({"apiVersion": "ex.test/v1", "kind": "Disk", "metadata": {"name": "d"}});
    let disk = api
        .create("/apis/ex.test/v1/namespaces/default/disks", disk)
        .await;
    api.create(MAPS, map("child", &[owned_by(&disk)])).await;
    api.delete(&format!("{CRDS}/disks.ex.test"), "Background")
        .await;
    api.until_gone(&at("child")).await;
}

/// kcp-dev/kcp#1326: owners and uids count in their own logical cluster only.
#[tokio::test]
async fn an_owner_deleted_in_one_cluster_takes_nothing_in_another() {
    let api = Api::start().await;
    let (a, b) = (api.cluster("root:a"), api.cluster("root:b"));
    for cluster in [&a, &b] {
        cluster.create(CRDS, disk_crd()).await;
    }
    let disks = "/apis/ex.test/v1/namespaces/default/disks";
    let disk = json!({"apiVersion": "ex.test/v1", "kind": "Disk", "metadata": {"name": "d"}});
    let owner = a.create(disks, disk.clone()).await;
    let own = b.create(disks, disk).await;
    a.create(MAPS, map("child", &[owned_by(&owner)])).await;
    // The forged uid beside a real owner: the object must stay, with either.
    b.create(MAPS, map("child", &[owned_by(&own), owned_by(&own)]))
        .await;
    a.delete(&format!("{disks}/d"), "Background").await;
    a.until_gone(&at("child")).await;
    settle(&b).await;
    assert!(b.exists(&at("child")).await);
}

#[tokio::test]
async fn what_happened_while_nobody_looked_is_made_up_for_after_a_restart() {
    let store = Arc::new(MemoryStore::new());
    let first = Api::over(store.clone()).await;
    let owner = first.create(MAPS, map("owner", &[])).await;
    let kept = first.create(MAPS, map("kept", &[])).await;
    first.create(MAPS, map("child", &[owned_by(&owner)])).await;
    first.create(MAPS, map("orphan", &[owned_by(&kept)])).await;
    first.server.shutdown().await;
    first.delete(&at("owner"), "Background").await;
    first.delete(&at("kept"), "Orphan").await;
    assert!(first.exists(&at("child")).await);
    let second = Api::over(store).await;
    second.until_gone(&at("child")).await;
    second.until_gone(&at("kept")).await;
    assert!(second.exists(&at("orphan")).await);
}

#[tokio::test]
async fn a_thousand_dependents_go_with_their_owner() {
    let api = Api::start().await;
    let owner = api.create(MAPS, map("owner", &[])).await;
    for n in 0..1000 {
        api.create(MAPS, map(&format!("child-{n}"), &[owned_by(&owner)]))
            .await;
    }
    api.delete(&at("owner"), "Background").await;
    api.until(MAPS, "empty", |answer| answer.body["items"] == json!([]))
        .await;
}
