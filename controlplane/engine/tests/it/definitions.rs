//! XRDs, Compositions and revisions.

use ecp_meta::{condition, object};
use serde_json::json;

use crate::harness::{Harness, composition, condition, disk, volumes, xrd_v1, xrd_v2};

const NS: Option<&str> = Some("ns");

#[tokio::test]
async fn an_xrd_is_established_and_offered() {
    let harness = Harness::start(volumes()).await;
    harness.create(&xrd_v1()).await;
    let xrd = harness
        .until("CompositeResourceDefinition", None, "xdisks.ex.test", |x| {
            condition::is_true(x, "Offered")
        })
        .await;
    assert_eq!(
        condition(&xrd, "Established"),
        "True WatchingCompositeResource"
    );
    assert_eq!(
        condition(&xrd, "Offered"),
        "True WatchingCompositeResourceClaim"
    );
    assert_eq!(
        xrd["status"]["controllers"],
        json!({
            "compositeResourceType": {"apiVersion": "ex.test/v1", "kind": "XDisk"},
            "compositeResourceClaimType": {"apiVersion": "ex.test/v1", "kind": "Disk"},
        })
    );
    assert_eq!(xrd["spec"]["scope"], "LegacyCluster");
    for name in ["xdisks.ex.test", "disks.ex.test"] {
        let crd = harness.get("CustomResourceDefinition", None, name).await;
        let crd = crd.expect("CRD");
        let owner = object::controller_ref(&crd).expect("owner");
        assert_eq!(owner["uid"], object::uid(&xrd));
    }
}

#[tokio::test]
async fn a_deleted_xrd_takes_xrs_and_crd_along() {
    let harness = Harness::with_disks(volumes()).await;
    harness.create(&disk("d", 1)).await;
    harness.until_list("Volume", |l| l.len() == 1).await;
    harness.delete(&xrd_v2("Namespaced")).await;
    harness
        .gone("CompositeResourceDefinition", None, "disks.ex.test")
        .await;
    harness
        .gone("CustomResourceDefinition", None, "disks.ex.test")
        .await;
    harness.until_list("Volume", <[_]>::is_empty).await;
}

#[tokio::test]
async fn a_deleted_xrd_takes_claims_along() {
    let harness = Harness::start(volumes()).await;
    harness.create(&xrd_v1()).await;
    harness.create(&composition("disks", "XDisk")).await;
    harness.established("disks.ex.test").await;
    harness.create(&disk("d", 1)).await;
    harness.until_list("XDisk", |l| l.len() == 1).await;
    harness.delete(&xrd_v1()).await;
    for name in ["disks.ex.test", "xdisks.ex.test"] {
        harness.gone("CustomResourceDefinition", None, name).await;
    }
    harness
        .gone("CompositeResourceDefinition", None, "xdisks.ex.test")
        .await;
}

/// crossplane#6316: long names never go into label values.
#[tokio::test]
async fn an_xrd_with_a_long_name_works() {
    let harness = Harness::start(volumes()).await;
    let (plural, group) = ("p".repeat(40), format!("{}.test", "g".repeat(40)));
    let mut xrd = xrd_v2("Namespaced");
    xrd["metadata"]["name"] = json!(format!("{plural}.{group}"));
    xrd["spec"]["group"] = json!(group);
    xrd["spec"]["names"] = json!({"kind": "Longish", "plural": plural});
    harness.create(&xrd).await;
    let name = object::name(&xrd);
    let xrd = harness
        .until("CompositeResourceDefinition", None, name, |x| {
            condition::is_true(x, "Established")
        })
        .await;
    assert_eq!(xrd["spec"]["scope"], "Namespaced");
}

#[tokio::test]
async fn an_xrd_that_breaks_the_rules_is_told_of() {
    let harness = Harness::start(volumes()).await;
    let mut bad = xrd_v2("Namespaced");
    bad["metadata"]["name"] = json!("other.ex.test");
    harness.create(&bad).await;
    harness
        .until_list("Event", |events| {
            events.iter().any(|e| {
                let message = e["message"].as_str().unwrap_or_default();
                e["reason"] == "RenderCRD" && message.contains("<plural>.<group>")
            })
        })
        .await;
    harness.delete(&bad).await;
    harness
        .gone("CompositeResourceDefinition", None, "other.ex.test")
        .await;
}

#[tokio::test]
async fn a_crd_of_somebody_else_is_not_taken_over() {
    let harness = Harness::start(volumes()).await;
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "disks.ex.test", "ownerReferences": [{
            "apiVersion": "v1", "kind": "Namespace", "name": "ns", "controller": true,
            "uid": harness.get("Namespace", None, "ns").await.expect("namespace")
                ["metadata"]["uid"]}]},
        "spec": {"group": "ex.test", "scope": "Namespaced",
            "names": {"kind": "Disk", "plural": "disks"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]},
    });
    let crd = harness.create(&crd).await;
    harness.create(&xrd_v2("Namespaced")).await;
    harness
        .until_list("Event", |events| {
            events.iter().any(|e| {
                let message = e["message"].as_str().unwrap_or_default();
                message.contains("is not controlled by UID")
            })
        })
        .await;
    let after = harness
        .get("CustomResourceDefinition", None, "disks.ex.test")
        .await
        .expect("CRD");
    assert_eq!(after["spec"]["versions"], crd["spec"]["versions"]);
}

#[tokio::test]
async fn a_changed_schema_is_served_and_xrs_go_on() {
    let harness = Harness::with_disks(volumes()).await;
    harness.create(&disk("d", 1)).await;
    harness.until_list("Volume", |l| l.len() == 1).await;
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/extra";
    let patch = json!([{"op": "add", "path": path, "value": {"type": "string"}}]);
    harness.edit(&xrd_v2("Namespaced"), patch).await;
    harness
        .until("CustomResourceDefinition", None, "disks.ex.test", |crd| {
            crd.pointer(path).is_some()
        })
        .await;
    let patch = json!([{"op": "replace", "path": "/spec/size", "value": 6}]);
    harness.edit(&disk("d", 1), patch).await;
    harness
        .until_list("Volume", |l| l.iter().all(|v| v["spec"]["size"] == 6))
        .await;
}

/// crossplane#3604: rules on the XRD's spec live in the CRD.
#[tokio::test]
async fn rules_of_the_spec_are_enforced() {
    let harness = Harness::with_disks(volumes()).await;
    let mut xr = disk("d", 1);
    xr["spec"]["n"] = json!(2);
    harness.create(&xr).await;
    harness.until_list("Volume", |l| l.len() == 1).await;
    let current = harness.get("Disk", NS, "d").await.expect("disk");
    let mut smaller = disk("d", 1);
    smaller["spec"]["n"] = json!(1);
    let refused = |wanted: serde_json::Value| {
        let client = harness.client.clone();
        let mut wanted = wanted;
        wanted["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"].clone();
        async move {
            let request = http::Request::put("/apis/ex.test/v1/namespaces/ns/disks/d")
                .body(wanted.to_string().into_bytes())
                .expect("request");
            client.request::<serde_json::Value>(request).await.is_err()
        }
    };
    assert!(refused(smaller).await);
    assert!(refused(disk("d", 1)).await);
}

#[tokio::test]
async fn claims_are_refused_outside_the_legacy_scope() {
    let harness = Harness::start(volumes()).await;
    let mut bad = xrd_v1();
    bad["spec"]["scope"] = json!("Namespaced");
    let error = harness.try_create(&bad).await.expect_err("claims");
    assert!(error.contains("Only LegacyCluster"), "{error}");
}

#[tokio::test]
async fn each_content_of_a_composition_is_a_revision() {
    let harness = Harness::with_disks(volumes()).await;
    let first = harness
        .until_list("CompositionRevision", |l| l.len() == 1)
        .await;
    harness.create(&disk("d", 1)).await;
    harness.until_list("Volume", |l| l.len() == 1).await;
    let first_name = object::name(&first[0]).to_owned();
    let comp = composition("disks", "Disk");
    let label = |v: &str| json!([{"op": "add", "path": "/metadata/labels", "value": {"v": v}}]);
    harness.edit(&comp, label("two")).await;
    let revisions = harness
        .until_list("CompositionRevision", |l| l.len() == 2)
        .await;
    let second = revisions
        .iter()
        .find(|r| object::name(r) != first_name)
        .expect("second");
    assert_eq!(second["spec"]["revision"], 2);
    let second_name = object::name(second).to_owned();
    let revision = |xr: &serde_json::Value| {
        let name = xr.pointer("/spec/crossplane/compositionRevisionRef/name");
        name.and_then(|n| n.as_str()).unwrap_or_default().to_owned()
    };
    harness
        .until("Disk", NS, "d", |xr| revision(xr) == second_name)
        .await;
    let patch = json!([{"op": "remove", "path": "/metadata/labels"}]);
    harness.edit(&comp, patch).await;
    harness
        .until("CompositionRevision", None, &first_name, |r| {
            r["spec"]["revision"] == 3
        })
        .await;
    harness
        .until("Disk", NS, "d", |xr| revision(xr) == first_name)
        .await;
    assert_eq!(harness.list("CompositionRevision").await.len(), 2);
}

#[tokio::test]
async fn an_xr_waits_for_a_composition_and_says_so() {
    let harness = Harness::start(volumes()).await;
    harness.create(&xrd_v2("Namespaced")).await;
    harness.established("disks.ex.test").await;
    harness.create(&disk("d", 1)).await;
    let xr = harness
        .until("Disk", NS, "d", |xr| condition(xr, "Synced") != "none")
        .await;
    assert_eq!(
        condition(&xr, "Synced"),
        "False ReconcileError cannot select Composition: no compatible Compositions found"
    );
    harness.create(&composition("disks", "Disk")).await;
    harness.until_list("Volume", |l| l.len() == 1).await;
}

#[tokio::test]
async fn a_function_that_cannot_compose_is_refused() {
    let harness = Harness::with_disks(volumes()).await;
    let function = json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": "FunctionRevision",
        "metadata": {"name": "fn-1", "labels": {"pkg.crossplane.io/package": "fn"}},
        "spec": {"desiredState": "Active", "image": "r.test/o/fn:v1", "revision": 1},
    });
    harness.create(&function).await;
    harness
        .edit_status(
            &function,
            json!([{"op": "add", "path": "/status", "value": {"capabilities": ["operation"]}}]),
        )
        .await;
    harness
        .until_list("CompositionRevision", |l| {
            l.iter()
                .any(|r| condition(r, "ValidPipeline").starts_with("False"))
        })
        .await;
    harness.create(&disk("d", 1)).await;
    let xr = harness
        .until("Disk", NS, "d", |xr| condition(xr, "Synced") != "none")
        .await;
    let text = condition(&xr, "Synced");
    assert!(
        text.contains("does not have a valid function pipeline")
            && text.contains("missing required capabilities: composition"),
        "{text}"
    );
}
