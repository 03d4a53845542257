//! Deletion: in the right order, and never of what is still needed.

use serde_json::json;

use crate::cluster::{Cluster, DUMMY, annotation, condition, until};

async fn project(cluster: &Cluster) -> String {
    let object = json!({
        "apiVersion": DUMMY, "kind": "Project", "metadata": {"name": "prod", "namespace": "ns"},
        "spec": {"forProvider": {"location": "eu-1", "displayName": "prod"}},
    });
    cluster.create(DUMMY, "projects", "ns", object).await;
    until("the project is there", async || {
        let project = cluster.get(DUMMY, "projects", "ns", "prod").await?;
        annotation(&project, "crossplane.io/external-name").map(str::to_owned)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_waits_for_its_volumes() {
    let cluster = Cluster::new().await;
    let _provider = cluster.start();
    let id = project(&cluster).await;
    cluster
        .volume("data", json!({"spec": {"forProvider": {"project": id}}}))
        .await;
    cluster.ready("data").await;
    cluster.delete(DUMMY, "projects", "ns", "prod").await;
    until("it says what it waits for", async || {
        let project = cluster
            .get(DUMMY, "projects", "ns", "prod")
            .await
            .expect("still there");
        let ready = condition(&project, "Ready")?;
        let why = ready["message"].as_str()?;
        why.starts_with(&format!("project {id} is not empty"))
            .then_some(())
    })
    .await;
    cluster.delete_volume("data").await;
    cluster.volume_gone("data").await;
    until("the project is gone", async || {
        cluster
            .get(DUMMY, "projects", "ns", "prod")
            .await
            .is_none()
            .then_some(())
    })
    .await;
    assert!(cluster.cloud.list_all().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn others_finalizers_keep_the_volume_in_the_cloud() {
    let cluster = Cluster::new().await;
    let _provider = cluster.start();
    cluster
        .volume(
            "data",
            json!({"metadata": {"finalizers": ["example.org/backup"]}}),
        )
        .await;
    cluster.ready("data").await;
    cluster.delete_volume("data").await;
    let volume = cluster.reason("data", "Ready", "Deleting").await;
    assert_eq!(
        condition(&volume, "Ready").expect("Ready")["message"],
        "waiting for other finalizers to be removed"
    );
    assert_eq!(cluster.volumes_in_cloud(), 1);
    let ours = json!(["finalizer.managedresource.crossplane.io"]);
    cluster
        .patch_volume("data", json!({"metadata": {"finalizers": ours}}))
        .await;
    cluster.volume_gone("data").await;
    assert_eq!(cluster.volumes_in_cloud(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_delete_policy_the_cloud_keeps_it() {
    let cluster = Cluster::new().await;
    let _provider = cluster.start();
    let policies = json!(["Observe", "Create", "Update"]);
    cluster
        .volume("data", json!({"spec": {"managementPolicies": policies}}))
        .await;
    cluster.ready("data").await;
    cluster.delete_volume("data").await;
    cluster.volume_gone("data").await;
    assert_eq!(cluster.volumes_in_cloud(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_deleted_before_it_was_made_leaves_nothing() {
    let cluster = Cluster::new().await;
    cluster.configure(json!({"createDelay": "1h"})).await;
    let _provider = cluster.start();
    cluster.volume("data", json!({})).await;
    until("the cloud is at it", async || {
        (cluster.volumes_in_cloud() == 1).then_some(())
    })
    .await;
    cluster.delete_volume("data").await;
    cluster.volume_gone("data").await;
    assert_eq!(cluster.volumes_in_cloud(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_whose_creation_was_never_answered_is_deleted_with_its_object() {
    let cluster = Cluster::new().await;
    cluster
        .configure(json!({"failure": {"operations": ["create"], "replyLost": true}}))
        .await;
    let _provider = cluster.start();
    cluster.volume("data", json!({})).await;
    // What is found again ends the error in its condition, so the cloud is asked.
    until("the cloud made it", async || {
        (cluster.volumes_in_cloud() == 1).then_some(())
    })
    .await;
    cluster.delete_volume("data").await;
    cluster.volume_gone("data").await;
    assert_eq!(cluster.volumes_in_cloud(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_is_deleted_takes_its_volumes_along() {
    let cluster = Cluster::new().await;
    let provider = cluster.start();
    for n in 0..3 {
        cluster.volume(&format!("v{n}"), json!({})).await;
    }
    for n in 0..3 {
        cluster.ready(&format!("v{n}")).await;
    }
    // A provider that starts anew knows of no usage, and none can be created any more.
    provider.kill();
    cluster.delete("v1", "namespaces", "", "ns").await;
    let _provider = cluster.start();
    until("the namespace is gone", async || {
        cluster
            .get("v1", "namespaces", "", "ns")
            .await
            .is_none()
            .then_some(())
    })
    .await;
    assert_eq!(cluster.volumes_in_cloud(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_stays_for_what_leaves_with_its_namespace() {
    let cluster = Cluster::new().await;
    let _provider = cluster.start();
    cluster
        .configure_new("ProviderConfig", "mine", json!({"deleteDelay": "600ms"}))
        .await;
    let reference = json!({"kind": "ProviderConfig", "name": "mine"});
    cluster
        .volume("data", json!({"spec": {"providerConfigRef": reference}}))
        .await;
    cluster.ready("data").await;
    until("the configuration is in use", async || {
        let config = cluster.get(DUMMY, "providerconfigs", "ns", "mine").await?;
        (config["status"]["users"] == 1).then_some(())
    })
    .await;
    cluster.delete("v1", "namespaces", "", "ns").await;
    until("the namespace is gone", async || {
        cluster
            .get("v1", "namespaces", "", "ns")
            .await
            .is_none()
            .then_some(())
    })
    .await;
    assert_eq!(cluster.volumes_in_cloud(), 0);
}
