//! The end of namespaces.

use std::sync::Arc;

use ecp_store::{Expect, MemoryStore, Op, Store};
use serde_json::{Value, json};

use crate::support::{Api, CRDS, disk_crd};

fn named(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

fn condition<'a>(namespace: &'a Value, kind: &str) -> &'a Value {
    let conditions = namespace["status"]["conditions"].as_array();
    conditions
        .and_then(|c| c.iter().find(|c| c["type"] == kind))
        .unwrap_or(&Value::Null)
}

#[tokio::test]
async fn a_namespace_takes_its_contents_with_it() {
    let api = Api::start().await;
    api.create(CRDS, disk_crd()).await;
    api.create("/api/v1/namespaces", named("gone")).await;
    api.create("/api/v1/namespaces", named("stays")).await;
    let disk = json!({"apiVersion": "ex.test/v1", "kind": "Disk", "metadata": {"name": "d"}});
    for namespace in ["gone", "stays"] {
        api.create(
            &format!("/api/v1/namespaces/{namespace}/configmaps"),
            named("m"),
        )
        .await;
        api.create(
            &format!("/apis/ex.test/v1/namespaces/{namespace}/disks"),
            disk.clone(),
        )
        .await;
    }
    api.delete("/api/v1/namespaces/gone", "Background").await;
    api.until_gone("/api/v1/namespaces/gone").await;
    api.create("/api/v1/namespaces", named("gone")).await;
    for resource in [
        "/api/v1/namespaces/gone/configmaps",
        "/apis/ex.test/v1/namespaces/gone/disks",
    ] {
        assert_eq!(
            api.get(resource).await.body["items"],
            json!([]),
            "{resource}"
        );
    }
    assert!(
        api.exists("/apis/ex.test/v1/namespaces/stays/disks/d")
            .await
    );
}

#[tokio::test]
async fn a_finalizer_holds_the_namespace_and_is_named() {
    let api = Api::start().await;
    api.create("/api/v1/namespaces", named("held")).await;
    let map = json!({"metadata": {"name": "m", "finalizers": ["ex.test/f"]}});
    api.create("/api/v1/namespaces/held/configmaps", map).await;
    api.delete("/api/v1/namespaces/held", "Background").await;
    api.until(
        "/api/v1/namespaces/held",
        "waiting for the finalizer",
        |answer| {
            let condition = condition(&answer.body, "NamespaceFinalizersRemaining");
            condition["status"] == "True"
                && condition["message"]
                    .as_str()
                    .unwrap()
                    .contains("ex.test/f in 1 resource instances")
        },
    )
    .await;
    let namespace = api.get("/api/v1/namespaces/held").await.body;
    assert_eq!(namespace["status"]["phase"], "Terminating");
    let refused = api
        .call(
            "POST",
            "/api/v1/namespaces/held/configmaps",
            &[],
            named("late"),
        )
        .await;
    assert_eq!(refused.code, 403);

    let released = json!({"metadata": {"finalizers": null}});
    let map = "/api/v1/namespaces/held/configmaps/m";
    assert_eq!(api.merge(map, released).await.code, 200);
    api.until_gone("/api/v1/namespaces/held").await;
}

#[tokio::test]
async fn the_same_namespace_of_another_cluster_stays() {
    let api = Api::start().await;
    let team = api.cluster("root:team-a");
    for api in [&api, &team] {
        api.create("/api/v1/namespaces", named("n")).await;
        api.create("/api/v1/namespaces/n/configmaps", named("m"))
            .await;
    }
    team.delete("/api/v1/namespaces/n", "Background").await;
    team.until_gone("/api/v1/namespaces/n").await;
    assert!(api.exists("/api/v1/namespaces/n/configmaps/m").await);
}

#[tokio::test]
async fn a_deletion_goes_on_after_a_restart() {
    let store = Arc::new(MemoryStore::new());
    let first = Api::over(store.clone()).await;
    first.create("/api/v1/namespaces", named("n")).await;
    // Nobody works any more when the deletion comes.
    first.server.shutdown().await;
    first
        .create("/api/v1/namespaces/n/configmaps", named("m"))
        .await;
    first.delete("/api/v1/namespaces/n", "Background").await;
    assert!(first.exists("/api/v1/namespaces/n").await);
    let second = Api::over(store).await;
    second.until_gone("/api/v1/namespaces/n").await;
}

/// What a create leaves behind whose process ends between its commit and the look whether its
/// namespace has gone meanwhile.
#[tokio::test]
async fn what_is_in_no_namespace_is_deleted_at_the_next_start() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let before = Api::over(Arc::clone(&store)).await;
    before.create("/api/v1/namespaces", named("gone")).await;
    before.create("/api/v1/namespaces", named("stays")).await;
    for namespace in ["gone", "stays"] {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        before.create(&path, named("m")).await;
    }
    let entry = store.list(ecp_store::ListRequest {
        prefix: "/core/configmaps/root/gone/".into(),
        ..Default::default()
    });
    let entry = entry.await.unwrap().entries.remove(0);
    before.delete("/api/v1/namespaces/gone", "Background").await;
    before.until_gone("/api/v1/namespaces/gone").await;
    before.server.shutdown().await;
    let put = Op::Put {
        key: entry.key,
        value: entry.value,
        expect: Expect::Absent,
    };
    store.commit(vec![put]).await.unwrap();

    let after = Api::over(store).await;
    after
        .until_gone("/api/v1/namespaces/gone/configmaps/m")
        .await;
    assert!(after.exists("/api/v1/namespaces/stays/configmaps/m").await);
}
