//! Provider configurations: who uses them, and what happens without.

use serde_json::json;

use crate::cluster::{Cluster, DUMMY, condition, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_in_use_stays() {
    let cluster = Cluster::new().await;
    let _provider = cluster.start();
    cluster.volume("data", json!({})).await;
    let volume = cluster.ready("data").await;
    let usages = cluster.list(DUMMY, "providerconfigusages", "ns").await;
    assert_eq!(usages.len(), 1);
    assert_eq!(usages[0]["metadata"]["name"], volume["metadata"]["uid"]);
    assert_eq!(usages[0]["resourceRef"]["name"], "data");
    assert_eq!(
        usages[0]["metadata"]["labels"],
        json!({
            "crossplane.io/provider-config": "default",
            "crossplane.io/provider-config-kind": "ClusterProviderConfig",
        })
    );
    let config = async || {
        cluster
            .get(DUMMY, "clusterproviderconfigs", "", "default")
            .await
    };
    until("it has one user", async || {
        let config = config().await.expect("a configuration");
        let finalizers = json!(["in-use.crossplane.io"]);
        (config["status"]["users"] == 1 && config["metadata"]["finalizers"] == finalizers)
            .then_some(())
    })
    .await;
    cluster
        .delete(DUMMY, "clusterproviderconfigs", "", "default")
        .await;
    until("it says that it is in use", async || {
        let config = config().await.expect("still there");
        condition(&config, "Terminating")
            .is_some_and(|c| c["reason"] == "InUse")
            .then_some(())
    })
    .await;
    cluster.delete_volume("data").await;
    cluster.volume_gone("data").await;
    until("it is gone", async || {
        config().await.is_none().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_waits_for_its_configuration() {
    let cluster = Cluster::new().await;
    let _provider = cluster.start();
    let reference = json!({"kind": "ProviderConfig", "name": "mine"});
    cluster
        .volume("data", json!({"spec": {"providerConfigRef": reference}}))
        .await;
    let volume = cluster.reason("data", "Synced", "ReconcileError").await;
    assert_eq!(
        condition(&volume, "Synced").expect("Synced")["message"],
        "connect failed: cannot get ProviderConfig ns/mine: it does not exist"
    );
    cluster
        .configure_new("ProviderConfig", "mine", json!({}))
        .await;
    cluster.ready("data").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_configuration_is_shown() {
    let cluster = Cluster::new().await;
    cluster.configure(json!({"createDelay": "soon"})).await;
    let _provider = cluster.start();
    cluster.volume("data", json!({})).await;
    let volume = cluster.reason("data", "Synced", "ReconcileRefused").await;
    let message = condition(&volume, "Synced").expect("Synced")["message"].clone();
    assert!(
        message
            .as_str()
            .is_some_and(|m| m.contains("createDelay") && m.contains("soon")),
        "{message}"
    );
    assert_eq!(cluster.volumes_in_cloud(), 0);
}
