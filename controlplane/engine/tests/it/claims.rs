//! Claims: the v1 flavour.

use std::sync::Arc;

use ecp_meta::{keys, object};
use ecp_xr::function::{Ready, Request, Resource, Response};
use serde_json::{Value, json};

use crate::harness::{Harness, composition, condition, disk, is_ready, xrd_v1};

const NS: Option<&str> = Some("ns");

/// Composes a volume in the claim's namespace that is ready at once, and publishes a password.
fn ready_volume() -> Arc<dyn Fn(Request) -> Response + Send + Sync> {
    Arc::new(|request: Request| {
        let xr = request
            .observed
            .composite
            .clone()
            .unwrap_or_default()
            .object;
        let mut desired = request.desired;
        let object = json!({"apiVersion": "dummy.test/v1", "kind": "Volume",
            "metadata": {"namespace": "ns"}, "spec": {"size": xr["spec"]["size"]}});
        desired.resources.insert(
            "volume".into(),
            Resource {
                ready: Ready::True,
                ..Resource::of(object)
            },
        );
        desired.composite = Some(Resource {
            connection: [("password".to_owned(), b"s3cret".to_vec())]
                .into_iter()
                .collect(),
            ..Resource::of(json!({"status": {"size": xr["spec"]["size"]}}))
        });
        Response {
            desired,
            ..Response::default()
        }
    })
}

async fn start() -> Harness {
    let harness = Harness::start(ready_volume()).await;
    harness.create(&xrd_v1()).await;
    let mut composition = composition("disks", "XDisk");
    composition["spec"]["writeConnectionSecretsToNamespace"] = json!("default");
    harness.create(&composition).await;
    harness.established("xdisks.ex.test").await;
    harness.established("disks.ex.test").await;
    harness
}

#[tokio::test]
async fn a_claim_gets_an_xr_and_becomes_ready_with_it() {
    let harness = start().await;
    let mut wanted = disk("d", 5);
    wanted["metadata"]["labels"] = json!({"team": "a"});
    wanted["spec"]["writeConnectionSecretToRef"] = json!({"name": "conn"});
    harness.create(&wanted).await;
    let claim = harness.until("Disk", NS, "d", is_ready).await;
    assert_eq!(condition(&claim, "Synced"), "True ReconcileSuccess");
    assert_eq!(claim["status"]["size"], 5);
    let xrs = harness.list("XDisk").await;
    let xr = &xrs[0];
    assert_eq!(claim["spec"]["resourceRef"]["name"], object::name(xr));
    assert!(object::name(xr).starts_with("d-"));
    assert_eq!(object::label(xr, "team"), Some("a"));
    assert_eq!(object::label(xr, keys::CLAIM_NAME), Some("d"));
    assert_eq!(claim["spec"]["compositionRef"]["name"], "disks");
    let volume = &harness.list("Volume").await[0];
    assert_eq!(object::label(volume, keys::CLAIM_NAMESPACE), Some("ns"));
    assert_eq!(
        object::label(volume, keys::COMPOSITE),
        Some(object::name(xr))
    );
    let secret = harness.until("Secret", NS, "conn", |_| true).await;
    assert_eq!(secret["data"]["password"], "czNjcmV0");
    assert_eq!(secret["type"], "connection.crossplane.io/v1alpha1");
    let patch = json!([{"op": "replace", "path": "/spec/size", "value": 6}]);
    harness.edit(&wanted, patch).await;
    harness
        .until("Disk", NS, "d", |c| c["status"]["size"] == 6)
        .await;
}

#[tokio::test]
async fn an_idle_claim_is_not_written() {
    let harness = start().await;
    harness.create(&disk("d", 5)).await;
    harness.until("Disk", NS, "d", is_ready).await;
    let before = harness.settled().await;
    let xrs = harness.list("XDisk").await;
    let volume = harness.list("Volume").await.remove(0);
    let patch = json!([{"op": "add", "path": "/metadata/annotations/note", "value": "x"}]);
    harness.edit(&volume, patch).await;
    assert_eq!(harness.settled().await, before);
    assert_eq!(
        object::resource_version(&harness.list("XDisk").await[0]),
        object::resource_version(&xrs[0])
    );
}

#[tokio::test]
async fn a_deleted_claim_takes_its_xr_along() {
    let harness = start().await;
    for policy in ["Background", "Foreground"] {
        let mut claim = disk("d", 5);
        claim["spec"]["compositeDeletePolicy"] = json!(policy);
        harness.create(&claim).await;
        harness.until("Disk", NS, "d", is_ready).await;
        harness.delete(&claim).await;
        harness.gone("Disk", NS, "d").await;
        harness.until_list("XDisk", <[_]>::is_empty).await;
        harness.until_list("Volume", <[_]>::is_empty).await;
    }
}

/// crossplane#2473: a claim cannot bind or delete somebody else's XR.
#[tokio::test]
async fn an_xr_of_another_claim_is_safe() {
    let harness = start().await;
    harness.create(&disk("a", 5)).await;
    harness.until("Disk", NS, "a", is_ready).await;
    let victim = harness.list("XDisk").await.remove(0);
    let mut thief = disk("b", 5);
    thief["spec"]["resourceRef"] = json!({"apiVersion": "ex.test/v1", "kind": "XDisk",
        "name": object::name(&victim)});
    harness.create(&thief).await;
    let claim = harness
        .until("Disk", NS, "b", |c| condition(c, "Synced") != "none")
        .await;
    assert_eq!(
        condition(&claim, "Synced"),
        format!(
            "False ReconcileError refusing to operate on composite resource {:?} that is not \
             bound to this claim: bound to claim \"a\"",
            object::name(&victim)
        )
    );
    harness.delete(&thief).await;
    harness.gone("Disk", NS, "b").await;
    let left: Vec<Value> = harness.list("XDisk").await;
    assert_eq!(object::uid(&left[0]), object::uid(&victim));
    assert!(!object::is_deleting(&left[0]));
}

/// crossplane#4645: no claim name is accepted and then stuck.
#[tokio::test]
async fn claims_with_long_names_work_or_are_refused() {
    let harness = start().await;
    for len in [57, 58, 63] {
        let name = "c".repeat(len);
        harness.create(&disk(&name, 1)).await;
        harness.until("Disk", NS, &name, is_ready).await;
    }
    assert!(harness.try_create(&disk(&"c".repeat(64), 1)).await.is_err());
}

/// crossplane#450: the second claim does not overwrite the first one's secret.
#[tokio::test]
async fn a_secret_of_another_claim_is_not_overwritten() {
    let harness = start().await;
    let claim = |name: &str| {
        let mut claim = disk(name, 1);
        claim["spec"]["writeConnectionSecretToRef"] = json!({"name": "conn"});
        claim
    };
    harness.create(&claim("a")).await;
    harness.until("Disk", NS, "a", is_ready).await;
    let secret = harness.until("Secret", NS, "conn", |_| true).await;
    harness.create(&claim("b")).await;
    let second = harness
        .until("Disk", NS, "b", |c| {
            condition(c, "Synced").contains("is not controlled by UID")
        })
        .await;
    assert!(!is_ready(&second));
    let after = harness.get("Secret", NS, "conn").await.expect("secret");
    assert_eq!(
        object::resource_version(&after),
        object::resource_version(&secret)
    );
}
