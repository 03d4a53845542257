//! A volume's life while everything works, and while it does not.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use provider_dummy::cloud::Kind;
use serde_json::{Value, json};

use crate::cluster::{Cluster, DUMMY, annotation, condition, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_is_created_shown_grown_and_deleted() {
    let cluster = Cluster::new().await;
    let _provider = cluster.start();
    cluster.volume("data", json!({})).await;
    let volume = cluster.ready("data").await;
    let id = annotation(&volume, "crossplane.io/external-name").expect("an external name");
    assert_eq!(
        volume["status"]["atProvider"],
        json!({"id": id, "state": "active", "sizeGB": 5})
    );
    assert_eq!(
        volume["metadata"]["finalizers"],
        json!(["finalizer.managedresource.crossplane.io"])
    );
    assert_eq!(volume["status"]["observedGeneration"], 1);
    assert!(annotation(&volume, "crossplane.io/external-create-pending").is_some());
    assert!(annotation(&volume, "crossplane.io/external-create-succeeded").is_some());
    assert!(annotation(&volume, "crossplane.io/external-create-failed").is_none());

    cluster
        .patch_volume("data", json!({"spec": {"forProvider": {"sizeGB": 8}}}))
        .await;
    until("the volume has grown", async || {
        let volume = cluster.ready("data").await;
        (volume["status"]["atProvider"]["sizeGB"] == 8).then_some(())
    })
    .await;
    assert_eq!(cluster.cloud.list_all()[0].size_gb, Some(8));

    cluster.delete_volume("data").await;
    cluster.volume_gone("data").await;
    assert!(cluster.cloud.list_all().is_empty());
    until("all events are there", async || {
        let reasons = cluster.events("data").await;
        let has = |r: &str| reasons.iter().any(|x| x == r);
        (has("CreatedExternalResource")
            && has("UpdatedExternalResource")
            && has("DeletedExternalResource"))
        .then_some(())
    })
    .await;
    until("the usage goes with the volume", async || {
        cluster
            .list(DUMMY, "providerconfigusages", "ns")
            .await
            .is_empty()
            .then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_while_nothing_changes() {
    let cluster = Cluster::new().await;
    let provider = cluster.start();
    for n in 0..5 {
        cluster.volume(&format!("v{n}"), json!({})).await;
    }
    for n in 0..5 {
        cluster.ready(&format!("v{n}")).await;
    }
    until("the users are counted", async || {
        let config = cluster
            .get(DUMMY, "clusterproviderconfigs", "", "default")
            .await?;
        (config["status"]["users"] == 5).then_some(())
    })
    .await;
    let (writes, synced) = (cluster.writes.load(Ordering::SeqCst), provider.synced());
    // Each is observed many times more, as the poll interval is short.
    until("they are observed again", async || {
        (provider.synced() >= synced + 50).then_some(())
    })
    .await;
    assert_eq!(cluster.writes.load(Ordering::SeqCst), writes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fast_cloud_makes_a_volume_ready_in_a_few_writes() {
    let cluster = Cluster::new().await;
    let _provider = cluster.start();
    cluster.volume("first", json!({})).await;
    cluster.ready("first").await;
    let mut times = Vec::new();
    for n in 0..20 {
        let name = format!("v{n}");
        let start = Instant::now();
        cluster.volume(&name, json!({})).await;
        cluster.ready(&name).await;
        times.push(start.elapsed());
    }
    times.sort();
    println!(
        "created to ready: p50 {:?}, worst {:?}",
        times[10], times[19]
    );
    // The budget is 15 ms for the whole way; this bound only catches an artificial delay.
    assert!(times[10] < Duration::from_millis(250), "{times:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_volumes_is_worked_off() {
    const VOLUMES: usize = 300;
    let cluster = Cluster::new().await;
    let _provider = cluster.start();
    let start = Instant::now();
    for n in 0..VOLUMES {
        cluster.volume(&format!("v{n}"), json!({})).await;
    }
    for n in 0..VOLUMES {
        cluster.ready(&format!("v{n}")).await;
    }
    println!("{VOLUMES} volumes ready after {:?}", start.elapsed());
    assert_eq!(cluster.volumes_in_cloud(), VOLUMES);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_cloud_is_shown_as_it_is() {
    let cluster = Cluster::new().await;
    cluster
        .configure(json!({"createDelay": "1h", "updateDelay": "1h", "deleteDelay": "1h"}))
        .await;
    let _provider = cluster.start();
    cluster.volume("data", json!({})).await;
    let volume = cluster.reason("data", "Ready", "Creating").await;
    until("the cloud is seen to work", async || {
        let volume = cluster.get_volume("data").await?;
        (volume["status"]["atProvider"]["state"] == "creating").then_some(())
    })
    .await;
    assert_eq!(
        condition(&volume, "Ready").expect("Ready")["status"],
        "False"
    );
    // A change of the delay takes effect at once, also for what is under way.
    cluster
        .configure(json!({"updateDelay": "1h", "deleteDelay": "1h"}))
        .await;
    cluster.ready("data").await;

    cluster
        .patch_volume("data", json!({"spec": {"forProvider": {"sizeGB": 9}}}))
        .await;
    let volume = cluster.reason("data", "Ready", "Unavailable").await;
    assert_eq!(
        condition(&volume, "Ready").expect("Ready")["message"],
        "the cloud is updating the volume"
    );
    assert_eq!(volume["status"]["atProvider"]["sizeGB"], 5, "the real size");
    cluster.configure(json!({"deleteDelay": "1h"})).await;
    cluster.ready("data").await;

    cluster.delete_volume("data").await;
    cluster.reason("data", "Ready", "Deleting").await;
    cluster.configure(json!({})).await;
    cluster.volume_gone("data").await;
    assert!(cluster.cloud.list_all().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_shown_with_the_clouds_words_and_passes_with_it() {
    let cluster = Cluster::new().await;
    let failure = |operation: &str, permanent: bool| {
        json!({"failure": {
            "operations": [operation], "message": "no hardware left", "permanent": permanent,
        }})
    };
    cluster.configure(failure("create", true)).await;
    let _provider = cluster.start();
    cluster.volume("data", json!({})).await;
    let volume = cluster.reason("data", "Synced", "ReconcileRefused").await;
    let synced = condition(&volume, "Synced").expect("Synced");
    assert_eq!(synced["message"], "create failed: no hardware left");
    assert_eq!(
        condition(&volume, "Ready").expect("Ready")["reason"],
        "Creating"
    );
    assert!(annotation(&volume, "crossplane.io/external-create-failed").is_some());
    until("the event is there", async || {
        let reasons = cluster.events("data").await;
        reasons
            .iter()
            .any(|r| r == "CannotCreateExternalResource")
            .then_some(())
    })
    .await;
    cluster.configure(json!({})).await;
    cluster.ready("data").await;
    assert_eq!(cluster.volumes_in_cloud(), 1);

    cluster.configure(failure("observe", false)).await;
    let volume = cluster.reason("data", "Synced", "ReconcileError").await;
    assert_eq!(
        condition(&volume, "Synced").expect("Synced")["message"],
        "observe failed: no hardware left"
    );
    cluster.configure(failure("delete", false)).await;
    cluster.ready("data").await;
    cluster.delete_volume("data").await;
    cluster.reason("data", "Synced", "ReconcileError").await;
    cluster.configure(json!({})).await;
    cluster.volume_gone("data").await;
    assert_eq!(cluster.volumes_in_cloud(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_shrink_says_so_and_growing_again_heals_it() {
    let cluster = Cluster::new().await;
    let _provider = cluster.start();
    cluster.volume("data", json!({})).await;
    let volume = cluster.ready("data").await;
    let id = annotation(&volume, "crossplane.io/external-name")
        .expect("a name")
        .to_owned();
    cluster
        .patch_volume("data", json!({"spec": {"forProvider": {"sizeGB": 3}}}))
        .await;
    let volume = cluster.reason("data", "Synced", "ReconcileRefused").await;
    let synced = condition(&volume, "Synced").expect("Synced");
    assert_eq!(
        synced["message"],
        format!("update failed: volume {id} cannot shrink from 5 GB to 3 GB")
    );
    assert_eq!(
        condition(&volume, "Ready").expect("Ready")["status"],
        "True"
    );
    cluster
        .patch_volume("data", json!({"spec": {"forProvider": {"sizeGB": 6}}}))
        .await;
    cluster.ready("data").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_repaired_and_growth_by_others_is_told() {
    let cluster = Cluster::new().await;
    let _provider = cluster.start();
    cluster.volume("data", json!({})).await;
    let volume = cluster.ready("data").await;
    let id = annotation(&volume, "crossplane.io/external-name")
        .expect("a name")
        .to_owned();
    let resize = |size_gb: i64| {
        cluster.cloud.meddle(&id, |mut object| {
            object.size_gb = Some(size_gb);
            Some(object)
        });
    };
    resize(2);
    until("the drift is repaired", async || {
        (cluster.cloud.list_all()[0].size_gb == Some(5)).then_some(())
    })
    .await;
    resize(50);
    let volume = cluster.reason("data", "Synced", "ReconcileRefused").await;
    assert_eq!(volume["status"]["atProvider"]["sizeGB"], 50);
}

/// public-bugs A33.
#[tokio::test(flavor = "multi_thread")]
async fn a_volume_deleted_by_hand_is_made_again_once() {
    let cluster = Cluster::new().await;
    let provider = cluster.start();
    cluster.volume("data", json!({})).await;
    let volume = cluster.ready("data").await;
    let old = annotation(&volume, "crossplane.io/external-name")
        .expect("a name")
        .to_owned();
    cluster.cloud.meddle(&old, |_| None);
    let new = until("there is another", async || {
        let volume = cluster.ready("data").await;
        let name = annotation(&volume, "crossplane.io/external-name")
            .expect("a name")
            .to_owned();
        (name != old).then_some(name)
    })
    .await;
    let synced = provider.synced();
    until("it is observed ten times", async || {
        (provider.synced() > synced + 10).then_some(())
    })
    .await;
    let ids: Vec<String> = cluster.cloud.list_all().into_iter().map(|o| o.id).collect();
    assert_eq!(ids, [new]);
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_the_user_left_out_are_filled_in_once() {
    let cluster = Cluster::new().await;
    let _provider = cluster.start();
    let volume_type = json!({
        "apiVersion": DUMMY, "kind": "VolumeType", "metadata": {"name": "fast", "namespace": "ns"},
        "spec": {"forProvider": {"location": "eu-1", "type": "fast", "iops": 700, "minSizeGB": 1}},
    });
    cluster
        .create(DUMMY, "volumetypes", "ns", volume_type)
        .await;
    until("the type is listed", async || {
        cluster
            .cloud
            .counts()
            .contains_key(&Kind::VolumeType)
            .then_some(())
    })
    .await;
    cluster.volume("data", json!({})).await;
    until("iops are filled in", async || {
        let volume = cluster.ready("data").await;
        (volume["spec"]["forProvider"]["iops"] == 700).then_some(())
    })
    .await;
    let spec = json!({"managementPolicies": ["Observe", "Create", "Update", "Delete"]});
    cluster.volume("plain", json!({"spec": spec})).await;
    let volume = cluster.ready("plain").await;
    assert_eq!(
        volume["spec"]["forProvider"].get("iops"),
        None,
        "the policies forbid it"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn init_provider_counts_for_creation_only() {
    let cluster = Cluster::new().await;
    let _provider = cluster.start();
    let spec = json!({
        "forProvider": {"sizeGB": null},
        "initProvider": {"sizeGB": 7},
    });
    cluster.volume("data", json!({"spec": spec})).await;
    cluster.ready("data").await;
    let id = cluster.cloud.list_all()[0].id.clone();
    assert_eq!(cluster.cloud.list_all()[0].size_gb, Some(7));
    // An autoscaler of sorts.
    cluster.cloud.meddle(&id, |mut object| {
        object.size_gb = Some(20);
        if let provider_dummy::cloud::Spec::Volume(volume) = &mut object.spec {
            volume.size_gb = 20;
        }
        Some(object)
    });
    until("the new size is seen and left", async || {
        let volume = cluster.ready("data").await;
        (volume["status"]["atProvider"]["sizeGB"] == 20).then_some(())
    })
    .await;
    assert_eq!(cluster.cloud.list_all()[0].size_gb, Some(20));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_required_field_may_be_missing_only_where_nothing_is_made() {
    let cluster = Cluster::new().await;
    let object = |policies: Value| {
        json!({
            "apiVersion": DUMMY, "kind": "Volume", "metadata": {"generateName": "v-", "namespace": "ns"},
            "spec": {"forProvider": {"location": "eu-1"}, "managementPolicies": policies},
        })
    };
    cluster
        .create(DUMMY, "volumes", "ns", object(json!(["Observe"])))
        .await;
    let refused: Result<kube::api::DynamicObject, _> = kube::Api::namespaced_with(
        cluster.client(),
        "ns",
        &kube::api::ApiResource {
            group: "dummy.m.secapi.cloud".into(),
            version: "v1alpha1".into(),
            api_version: DUMMY.into(),
            kind: "Volume".into(),
            plural: "volumes".into(),
        },
    )
    .create(
        &Default::default(),
        &serde_json::from_value(object(json!(["*"]))).expect("an object"),
    )
    .await;
    let text = refused.expect_err("refused").to_string();
    assert!(
        text.contains("spec.forProvider.sizeGB is a required parameter"),
        "{text}"
    );
}
