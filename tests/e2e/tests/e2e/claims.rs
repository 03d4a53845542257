//! The v1 flavour: the same manifest is a claim.

use std::path::Path;

use serde_json::json;

use ecp_harness::{Answer, Ecp, states, volume, volume_spec, workspace};

#[tokio::test]
async fn rest_works_the_same_over_claims() {
    let ecp = Ecp::start(&["--ephemeral", "--flavour", "claims"]).await;
    assert_eq!(ecp.put(&workspace("prod"), json!({})).await.status, 201);
    ecp.until_active(&workspace("prod")).await;
    assert_eq!(
        ecp.put(&volume("prod", "disk-1"), volume_spec(10))
            .await
            .status,
        201
    );
    let document = ecp.until_active(&volume("prod", "disk-1")).await;
    assert_eq!(states(&document), ["active", "creating", "pending"]);
    assert_eq!(
        ecp.items("storage.v1.secapi.cloud/v1", "xblock-storages")
            .await
            .len(),
        1
    );
    ecp.put(&volume("prod", "disk-1"), volume_spec(20)).await;
    let document = ecp.until_active(&volume("prod", "disk-1")).await;
    assert_eq!(
        states(&document),
        ["active", "updating", "active", "creating", "pending"]
    );
    ecp.delete(&volume("prod", "disk-1")).await;
    ecp.until_gone(&volume("prod", "disk-1")).await;
    ecp.delete(&workspace("prod")).await;
    ecp.until_gone(&workspace("prod")).await;
}

#[tokio::test]
async fn a_claim_stays_until_the_cloud_has_deleted_what_it_stands_for() {
    let ecp = Ecp::start(&["--ephemeral", "--flavour", "claims"]).await;
    ecp.put(&workspace("prod"), json!({})).await;
    ecp.until_active(&workspace("prod")).await;
    let disk = volume("prod", "disk-1");
    ecp.put(&disk, volume_spec(10)).await;
    ecp.until_active(&disk).await;
    let words = "the volume is locked";
    let config = "/apis/dummy.m.secapi.cloud/v1alpha1/clusterproviderconfigs/default";
    let failure = json!({ "operations": ["delete"], "message": words });
    ecp.merge(config, &json!({ "spec": { "failure": failure } }))
        .await;
    assert_eq!(ecp.delete(&disk).await.status, 202);
    let told = |a: &Answer| {
        let newest = &a.body["status"]["conditions"][0];
        newest["state"] == "deleting" && newest["message"].to_string().contains(words)
    };
    ecp.until(&disk, "quoting the cloud", told).await;

    ecp.merge(config, &json!({ "spec": { "failure": null } }))
        .await;
    ecp.until_gone(&disk).await;
    let left = ecp.items("dummy.m.secapi.cloud/v1alpha1", "volumes").await;
    assert!(left.is_empty(), "{left:#?}");
}

#[tokio::test]
async fn the_example_is_a_claim_with_the_same_manifest() {
    let ecp = Ecp::start(&["--ephemeral", "--flavour", "claims"]).await;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/first-volume");
    let path = path.canonicalize().unwrap();
    let Some(applied) = ecp.kubectl(&["apply", "-f", path.to_str().unwrap()]) else {
        return;
    };
    applied.done();
    let wait = [
        "wait",
        "--for=condition=Ready",
        "block-storages",
        "--all",
        "-A",
        "--timeout=60s",
    ];
    ecp.kubectl(&wait).unwrap().done();
    let claims = ecp
        .items("storage.v1.secapi.cloud/v1", "block-storages")
        .await;
    assert!(
        claims[0]["spec"]["resourceRef"]["name"].is_string(),
        "{claims:#?}"
    );
}
