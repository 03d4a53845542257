//! The life of a workspace's namespace.

use ecp_meta::{condition, names};
use serde_json::{Value, json};

use crate::cluster::{COMPUTE, Cluster, ECP, STORAGE, until};

fn namespace() -> String {
    names::workspace_namespace("acme", "prod")
}

fn ready(object: &Value) -> bool {
    condition::is_true(object, "Ready") && condition::is_true(object, "Synced")
}

fn at(object: &Value) -> &Value {
    &object["status"]["atProvider"]
}

fn message(object: &Value, kind: &str) -> String {
    condition::find(object, kind)
        .and_then(|c| c["message"].as_str())
        .unwrap_or_default()
        .to_owned()
}

async fn disk(cluster: &Cluster, name: &str, finalizers: Value) {
    let object =
        json!({"metadata": {"name": name, "namespace": namespace(), "finalizers": finalizers}});
    cluster
        .create(STORAGE, "block-storages", &namespace(), object)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_has_a_namespace_with_its_names_on_it() {
    let cluster = Cluster::new().await;
    cluster.workspace().await;
    let workspace = cluster.workspace_is("it is ready", ready).await;
    assert_eq!(at(&workspace)["namespace"], namespace());
    assert_eq!(
        ecp_meta::object::annotation(&workspace, "crossplane.io/external-name"),
        Some(namespace().as_str())
    );
    let made = cluster
        .get("v1", "namespaces", "", &namespace())
        .await
        .expect("a namespace");
    let meta = &made["metadata"];
    assert_eq!(meta["labels"]["secapi.cloud/tenant"], "acme");
    assert_eq!(meta["labels"]["secapi.cloud/workspace"], "prod");
    assert_eq!(meta["annotations"]["secapi.cloud/tenant-name"], "acme");
    assert_eq!(meta["annotations"]["secapi.cloud/workspace-name"], "prod");

    // A label that somebody removed comes back.
    let remove = json!({"metadata": {"labels": {"secapi.cloud/workspace": null}}});
    cluster
        .patch("v1", "namespaces", "", &namespace(), remove)
        .await;
    let touch = json!({"metadata": {"annotations": {"crossplane.io/reconcile-requested-at": "1"}}});
    cluster
        .patch(ECP, "workspacenamespaces", "tenant", "prod", touch)
        .await;
    until("the label is back", async || {
        let made = cluster.get("v1", "namespaces", "", &namespace()).await?;
        (made["metadata"]["labels"]["secapi.cloud/workspace"] == "prod").then_some(())
    })
    .await;
    cluster
        .workspace_is("the request is answered", |w| {
            w["status"]["lastHandledReconcileAt"] == "1"
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_are_counted_also_of_kinds_that_come_later() {
    let cluster = Cluster::new().await;
    cluster.workspace().await;
    let count = |n: i64| move |w: &Value| at(w)["resourceCount"] == n;
    cluster.workspace_is("it is empty", count(0)).await;
    disk(&cluster, "a", json!([])).await;
    disk(&cluster, "b", json!([])).await;
    cluster.workspace_is("two disks", count(2)).await;
    cluster
        .install_any("compute.v1.secapi.cloud", "Instance", "instances")
        .await;
    let instance = json!({"metadata": {"name": "vm", "namespace": namespace()}});
    cluster
        .create(COMPUTE, "instances", &namespace(), instance)
        .await;
    cluster.workspace_is("and an instance", count(3)).await;
    cluster
        .delete(STORAGE, "block-storages", &namespace(), "a")
        .await;
    cluster.workspace_is("one less", count(2)).await;
    // Managed resources are not the user's.
    cluster
        .install_any("dummy.m.secapi.cloud", "Volume", "volumes")
        .await;
    let namespaced = json!({"metadata": {"name": "c", "namespace": "tenant"}});
    cluster
        .create(STORAGE, "block-storages", "tenant", namespaced)
        .await;
    disk(&cluster, "d", json!([])).await;
    cluster.workspace_is("only its own", count(3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_teardown_goes_in_order_and_says_what_it_waits_for() {
    let cluster = Cluster::new().await;
    cluster
        .install_any("compute.v1.secapi.cloud", "Instance", "instances")
        .await;
    cluster.workspace().await;
    cluster.workspace_is("it is ready", ready).await;
    disk(&cluster, "data", json!(["example.org/x"])).await;
    let held = json!({"metadata": {
        "name": "vm", "namespace": namespace(), "finalizers": ["example.org/x"],
    }});
    cluster
        .create(COMPUTE, "instances", &namespace(), held)
        .await;
    cluster
        .workspace_is("both are counted", |w| at(w)["resourceCount"] == 2)
        .await;

    cluster
        .delete(ECP, "workspacenamespaces", "tenant", "prod")
        .await;
    let waiting = cluster
        .workspace_is("it waits for the instance", |w| {
            message(w, "Ready").contains("Instance/vm")
        })
        .await;
    assert_eq!(
        message(&waiting, "Ready"),
        "waiting for 1 Instance to be deleted (Instance/vm, then 1 more)"
    );
    assert_eq!(at(&waiting)["remaining"], json!(["Instance/vm"]));
    let disk = cluster
        .get(STORAGE, "block-storages", &namespace(), "data")
        .await;
    let disk = disk.expect("the disk is still there");
    assert!(
        !ecp_meta::object::is_deleting(&disk),
        "its turn has not come"
    );

    let free = json!({"metadata": {"finalizers": null}});
    cluster
        .patch(COMPUTE, "instances", &namespace(), "vm", free.clone())
        .await;
    cluster
        .workspace_is("it waits for the disk", |w| {
            message(w, "Ready").contains("BlockStorage/data")
        })
        .await;
    let made = cluster
        .get("v1", "namespaces", "", &namespace())
        .await
        .expect("a namespace");
    assert!(!ecp_meta::object::is_deleting(&made));
    cluster
        .patch(STORAGE, "block-storages", &namespace(), "data", free)
        .await;
    until("all is gone", async || {
        cluster.get_workspace().await.is_none().then_some(())
    })
    .await;
    assert_eq!(
        cluster.get("v1", "namespaces", "", &namespace()).await,
        None
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn another_workspaces_namespace_is_neither_adopted_nor_deleted() {
    let cluster = Cluster::new().await;
    let foreign = json!({"metadata": {
        "name": namespace(),
        "annotations": {
            "secapi.cloud/tenant-name": "acme", "secapi.cloud/workspace-name": "other",
        },
    }});
    cluster.create("v1", "namespaces", "", foreign).await;
    cluster.workspace().await;
    let refused = cluster
        .workspace_is("it is refused", |w| {
            condition::find(w, "Synced").is_some_and(|c| c["reason"] == "ReconcileRefused")
        })
        .await;
    assert!(
        message(&refused, "Synced").contains("does not belong to this workspace"),
        "{refused}"
    );
    cluster
        .delete(ECP, "workspacenamespaces", "tenant", "prod")
        .await;
    until("the resource is gone", async || {
        cluster.get_workspace().await.is_none().then_some(())
    })
    .await;
    let left = cluster
        .get("v1", "namespaces", "", &namespace())
        .await
        .expect("left alone");
    assert!(!ecp_meta::object::is_deleting(&left));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_deleted_by_hand_comes_back() {
    let cluster = Cluster::new().await;
    cluster.workspace().await;
    cluster.workspace_is("it is ready", ready).await;
    let old = cluster
        .get("v1", "namespaces", "", &namespace())
        .await
        .expect("a namespace");
    cluster.delete("v1", "namespaces", "", &namespace()).await;
    until("there is another", async || {
        let new = cluster.get("v1", "namespaces", "", &namespace()).await?;
        (new["metadata"]["uid"] != old["metadata"]["uid"]).then_some(())
    })
    .await;
    cluster.workspace_is("it is ready again", ready).await;
}

/// As `kubectl delete` and `kubectl apply` do with a workspace: what was made for the first is
/// deleted in the background while the second is there already.
#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_waits_for_an_earlier_one_of_its_name() {
    let cluster = Cluster::new().await;
    cluster.workspace().await;
    cluster.workspace_is("it is ready", ready).await;
    disk(&cluster, "data", json!(["example.org/hold"])).await;
    let old = cluster.get("v1", "namespaces", "", &namespace()).await;
    cluster
        .delete(ECP, "workspacenamespaces", "tenant", "prod")
        .await;
    cluster
        .workspace_is("it waits for the disk", |w| {
            message(w, "Ready").contains("BlockStorage/data")
        })
        .await;
    let again = json!({
        "metadata": {"name": "again", "namespace": "tenant"},
        "spec": {"forProvider": {"tenant": "acme", "workspace": "prod"}},
    });
    cluster
        .create(ECP, "workspacenamespaces", "tenant", again)
        .await;
    until("the second one waits", async || {
        let again = cluster.get(ECP, "workspacenamespaces", "tenant", "again");
        let words = message(&again.await?, "Ready");
        (words == "waiting for an earlier workspace of this name to be deleted").then_some(())
    })
    .await;
    let free = json!({"metadata": {"finalizers": null}});
    cluster
        .patch(STORAGE, "block-storages", &namespace(), "data", free)
        .await;
    until("the second one is ready", async || {
        let again = cluster.get(ECP, "workspacenamespaces", "tenant", "again");
        ready(&again.await?).then_some(())
    })
    .await;
    assert_eq!(cluster.get_workspace().await, None);
    let new = cluster.get("v1", "namespaces", "", &namespace()).await;
    let uid = |o: &Option<Value>| o.as_ref().map(|o| o["metadata"]["uid"].clone());
    assert!(new.is_some() && uid(&new) != uid(&old));
}
