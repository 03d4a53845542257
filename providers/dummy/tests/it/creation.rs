//! The create protocol: nothing is made twice, whatever happens in between.

use std::sync::Arc;

use kube::client::Body;
use serde_json::json;

use crate::cluster::{Cluster, Verdict, annotation, condition, until};

/// public-bugs A32: killed after the cloud made the volume and before that is written down.
#[tokio::test(flavor = "multi_thread")]
async fn a_kill_between_create_and_record_makes_nothing_twice() {
    let cluster = Cluster::new().await;
    // The result of the creation is the only patch of the object itself.
    let provider = cluster.start_behind(Arc::new(|request: &http::Request<Body>| {
        let records = request.method() == http::Method::PATCH
            && request.uri().path().ends_with("/volumes/data");
        if records {
            Verdict::Hang
        } else {
            Verdict::Pass
        }
    }));
    cluster.volume("data", json!({})).await;
    until("the cloud made it", async || {
        (cluster.volumes_in_cloud() == 1).then_some(())
    })
    .await;
    let volume = cluster.get_volume("data").await.expect("the volume");
    assert!(annotation(&volume, "crossplane.io/external-create-pending").is_some());
    assert_eq!(annotation(&volume, "crossplane.io/external-name"), None);
    provider.kill();

    let id = cluster.cloud.list_all()[0].id.clone();
    let _provider = cluster.start();
    let volume = cluster.ready("data").await;
    assert_eq!(
        annotation(&volume, "crossplane.io/external-name"),
        Some(id.as_str())
    );
    assert!(annotation(&volume, "crossplane.io/external-create-succeeded").is_some());
    assert_eq!(cluster.volumes_in_cloud(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_before_the_call_is_told_apart_and_made_good() {
    let cluster = Cluster::new().await;
    // As if killed after writing the pending mark, before calling the cloud.
    let pending = json!({"metadata": {"annotations": {
        "crossplane.io/external-create-pending": "2026-01-01T00:00:00Z",
    }}});
    cluster.volume("data", pending).await;
    let _provider = cluster.start();
    cluster.ready("data").await;
    assert_eq!(cluster.volumes_in_cloud(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_reply_makes_nothing_twice() {
    let cluster = Cluster::new().await;
    cluster
        .configure(json!({"failure": {
            "operations": ["create"], "message": "connection reset", "replyLost": true,
        }}))
        .await;
    let _provider = cluster.start();
    cluster.volume("data", json!({})).await;
    let volume = cluster.reason("data", "Synced", "ReconcileError").await;
    assert_eq!(
        condition(&volume, "Synced").expect("Synced")["message"],
        "create failed: connection reset"
    );
    assert_eq!(cluster.volumes_in_cloud(), 1);
    cluster.configure(json!({})).await;
    cluster.ready("data").await;
    assert_eq!(cluster.volumes_in_cloud(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_during_a_burst_lose_and_double_nothing() {
    const VOLUMES: usize = 60;
    let cluster = Cluster::new().await;
    let mut provider = cluster.start();
    for n in 0..VOLUMES {
        cluster.volume(&format!("v{n}"), json!({})).await;
        if n % 15 == 14 {
            provider.kill();
            provider = cluster.start();
        }
    }
    for n in 0..VOLUMES {
        cluster.ready(&format!("v{n}")).await;
    }
    assert_eq!(cluster.volumes_in_cloud(), VOLUMES);
    drop(provider);
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_means_nothing_is_done() {
    let cluster = Cluster::new().await;
    let _provider = cluster.start();
    let paused = json!({"metadata": {"annotations": {"crossplane.io/paused": "true"}}});
    cluster.volume("by-annotation", paused).await;
    let empty = json!({"spec": {"managementPolicies": []}});
    cluster.volume("by-policy", empty).await;
    cluster
        .reason("by-annotation", "Synced", "ReconcilePaused")
        .await;
    cluster
        .reason("by-policy", "Synced", "ReconcilePaused")
        .await;
    assert_eq!(cluster.volumes_in_cloud(), 0);

    let resume = json!({"metadata": {"annotations": {"crossplane.io/paused": null}}});
    cluster.patch_volume("by-annotation", resume).await;
    cluster.ready("by-annotation").await;
    let pause = json!({"metadata": {"annotations": {"crossplane.io/paused": "true"}}});
    cluster.patch_volume("by-annotation", pause).await;
    cluster
        .reason("by-annotation", "Synced", "ReconcilePaused")
        .await;
    cluster.delete_volume("by-annotation").await;
    cluster
        .patch_volume("by-policy", json!({"spec": {"managementPolicies": ["*"]}}))
        .await;
    cluster.ready("by-policy").await;
    assert_eq!(
        cluster.volumes_in_cloud(),
        2,
        "a paused deletion deletes nothing"
    );
    let resume = json!({"metadata": {"annotations": {"crossplane.io/paused": null}}});
    cluster.patch_volume("by-annotation", resume).await;
    cluster.volume_gone("by-annotation").await;
    assert_eq!(cluster.volumes_in_cloud(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_are_kept_to() {
    let cluster = Cluster::new().await;
    let _provider = cluster.start();
    for (name, policies) in [
        ("observe", json!(["Observe"])),
        ("update", json!(["Observe", "Update"])),
    ] {
        cluster
            .volume(name, json!({"spec": {"managementPolicies": policies}}))
            .await;
        let volume = cluster.reason(name, "Synced", "ReconcileError").await;
        assert_eq!(
            condition(&volume, "Synced").expect("Synced")["message"],
            "external resource does not exist"
        );
    }
    let odd = json!({"spec": {"managementPolicies": ["Create", "Delete"]}});
    cluster.volume("odd", odd).await;
    cluster.reason("odd", "Synced", "ReconcileError").await;
    assert_eq!(cluster.volumes_in_cloud(), 0);

    // Import: an external name, and policies that only observe.
    cluster.volume("owner", json!({})).await;
    let owner = cluster.ready("owner").await;
    let id = annotation(&owner, "crossplane.io/external-name").expect("a name");
    cluster
        .volume(
            "import",
            json!({
                "metadata": {"annotations": {"crossplane.io/external-name": id}},
                "spec": {"managementPolicies": ["Observe"], "forProvider": {"sizeGB": 500}},
            }),
        )
        .await;
    let import = cluster.ready("import").await;
    assert_eq!(
        import["status"]["atProvider"]["sizeGB"], 5,
        "observed and not changed"
    );
    cluster.delete_volume("import").await;
    cluster.volume_gone("import").await;
    assert_eq!(cluster.volumes_in_cloud(), 1, "left alone");
}
