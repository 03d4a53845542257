//! A real Kubernetes API takes all that we ship, and all that the engine makes of it, without a
//! warning, but that on XRDs of the older version, which Crossplane 1.20 needs.

use std::time::Instant;

use ecp_engine::crds;
use ecp_harness::DEADLINE;
use ecp_package::{Flavour, compositions};
use ecp_upstream::Cluster;
use ecp_xr::crd::{claim_crd, composite_crd};
use ecp_xr::xrd::Xrd;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CROSSPLANE: &str = "/apis/apiextensions.crossplane.io";

/// The warning of Crossplane's own CRD.
const OLDER: &str = "CompositeResourceDefinition v1 is deprecated";

/// Status, and the API's words on it: its warnings and its error.
async fn call(client: &Client, method: &str, path: &str, object: &Value) -> (u16, String) {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Body::from(serde_json::to_vec(object).unwrap()))
        .unwrap();
    let answer = client.send(request).await.unwrap();
    let status = answer.status().as_u16();
    let warnings = answer.headers().get_all("warning").iter();
    let mut words: Vec<String> = warnings
        .map(|w| String::from_utf8_lossy(w.as_bytes()).into_owned())
        .filter(|w| !w.contains(OLDER))
        .collect();
    let body = answer.into_body().collect_bytes().await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    if status >= 400 {
        words.push(body["message"].to_string());
    }
    (status, words.join("\n"))
}

/// Creates an object, of which nothing stays with `dry_run`; tells what the API says against it.
async fn create(client: &Client, path: &str, object: &Value, dry_run: bool) -> Option<String> {
    let dry_run = if dry_run { "&dryRun=All" } else { "" };
    let path = format!("{path}?fieldValidation=Strict{dry_run}");
    let (status, words) = call(client, "POST", &path, object).await;
    let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
    (status != 201 || !words.is_empty()).then(|| format!("{kind} {name}: {status} {words}"))
}

async fn until_served(client: &Client, path: &str) {
    let started = Instant::now();
    while call(client, "GET", path, &Value::Null).await.0 != 200 {
        assert!(started.elapsed() < DEADLINE, "{path} is not served");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_real_api_warns_of_nothing_that_ships() {
    let Some(cluster) = Cluster::start().await.unwrap() else {
        return;
    };
    let client = cluster.client().await.unwrap();
    let mut words = Vec::new();
    let mut bad = crds().remove(0);
    bad["spec"]["scopes"] = "Cluster".into();
    let said = create(&client, CRDS, &bad, true).await.unwrap();
    assert!(said.contains("400") && said.contains("scopes"), "{said}");
    let path = format!("{CRDS}?fieldValidation=Warn&dryRun=All");
    let (status, said) = call(&client, "POST", &path, &bad).await;
    assert!(status == 201 && said.contains("scopes"), "{said}");

    for crd in crds() {
        words.extend(create(&client, CRDS, &crd, false).await);
    }
    for crd in [provider_ecp::crds(), provider_dummy::crds()].concat() {
        words.extend(create(&client, CRDS, &crd, true).await);
    }
    for (flavour, version) in [(Flavour::V2, "v2"), (Flavour::Claims, "v1")] {
        let xrds = format!("{CROSSPLANE}/{version}/compositeresourcedefinitions");
        until_served(&client, &xrds).await;
        for mut object in ecp_xrds::xrds(flavour) {
            words.extend(create(&client, &xrds, &object, true).await);
            object["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000".into();
            let xrd = Xrd::parse(&object).unwrap();
            let composite = composite_crd(&xrd).unwrap();
            words.extend(create(&client, CRDS, &composite, true).await);
            if xrd.spec.claim_names.is_some() {
                let claim = claim_crd(&xrd).unwrap();
                words.extend(create(&client, CRDS, &claim, true).await);
            }
        }
        let path = format!("{CROSSPLANE}/v1/compositions");
        until_served(&client, &path).await;
        for composition in compositions(flavour) {
            words.extend(create(&client, &path, &composition, true).await);
        }
    }
    assert!(words.is_empty(), "{}", words.join("\n"));
}
