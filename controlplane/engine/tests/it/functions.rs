//! What functions require, and what they ask of the engine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ecp_xr::function::{Match, Ready, Request, Requirements, Resource, ResourceSelector, Response};
use serde_json::{Value, json};

use crate::harness::{Harness, condition, disk};

const NS: Option<&str> = Some("ns");

fn net(name: &str, zone: &str) -> Value {
    json!({"apiVersion": "dummy.test/v1", "kind": "Net",
        "metadata": {"name": name, "namespace": "ns", "labels": {"zone": zone}},
        "spec": {"zone": zone}})
}

/// Requires nets and puts what it sees of them into the status; ready when it sees any.
fn requires(matching: Match) -> Arc<dyn Fn(Request) -> Response + Send + Sync> {
    Arc::new(move |request: Request| {
        let found = request.required.get("net").cloned().unwrap_or_default();
        let seen: Vec<String> = found
            .iter()
            .filter_map(|r| r.object.pointer("/spec/zone")?.as_str().map(str::to_owned))
            .collect();
        let mut desired = request.desired;
        desired.composite = Some(Resource {
            ready: if seen.is_empty() {
                Ready::False
            } else {
                Ready::True
            },
            ..Resource::of(json!({"status": {"net": seen.join(",")}}))
        });
        Response {
            desired,
            requirements: Requirements {
                resources: BTreeMap::from([(
                    "net".to_owned(),
                    ResourceSelector {
                        api_version: "dummy.test/v1".into(),
                        kind: "Net".into(),
                        namespace: Some("ns".into()),
                        matching: matching.clone(),
                    },
                )]),
                schemas: BTreeMap::new(),
            },
            ..Response::default()
        }
    })
}

fn sees(want: &str) -> impl Fn(&Value) -> bool {
    move |xr| xr["status"]["net"] == want
}

#[tokio::test]
async fn an_xr_is_woken_by_what_it_requires_by_name() {
    let harness = Harness::with_disks(requires(Match::Name("n".into()))).await;
    harness.create(&disk("d", 1)).await;
    let xr = harness.until("Disk", NS, "d", sees("")).await;
    assert_eq!(condition(&xr, "Ready"), "False Creating");
    harness.create(&net("n", "a")).await;
    harness.until("Disk", NS, "d", sees("a")).await;
    harness.create(&net("other", "x")).await;
    let patch = json!([{"op": "replace", "path": "/spec/zone", "value": "b"}]);
    harness.edit(&net("n", "a"), patch).await;
    let xr = harness.until("Disk", NS, "d", sees("b")).await;
    assert_eq!(condition(&xr, "Ready"), "True Available");
    harness.delete(&net("n", "b")).await;
    harness.until("Disk", NS, "d", sees("")).await;
}

#[tokio::test]
async fn an_xr_is_woken_by_what_it_requires_by_labels() {
    let labels = BTreeMap::from([("zone".to_owned(), "a".to_owned())]);
    let harness = Harness::with_disks(requires(Match::Labels(labels))).await;
    harness.create(&disk("d", 1)).await;
    harness.until("Disk", NS, "d", sees("")).await;
    harness.create(&net("n2", "a")).await;
    harness.create(&net("n1", "a")).await;
    harness.create(&net("n3", "b")).await;
    harness.until("Disk", NS, "d", sees("a,a")).await;
    let patch = json!([{"op": "replace", "path": "/metadata/labels/zone", "value": "c"}]);
    harness.edit(&net("n1", "a"), patch).await;
    harness.until("Disk", NS, "d", sees("a")).await;
}

#[tokio::test]
async fn a_short_ttl_asks_for_a_reconcile_and_a_long_one_does_not() {
    let calls = Arc::new(AtomicUsize::new(0));
    let function = {
        let calls = Arc::clone(&calls);
        Arc::new(move |request: Request| {
            let n = calls.fetch_add(1, Ordering::SeqCst);
            Response {
                desired: request.desired,
                ttl: Some(Duration::from_secs(if n < 4 { 1 } else { 60 })),
                ..Response::default()
            }
        })
    };
    let harness = Harness::with_disks(function).await;
    harness.create(&disk("d", 1)).await;
    let wait = async {
        while calls.load(Ordering::SeqCst) < 5 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait)
        .await
        .expect("a short TTL wakes the XR");
    harness.settled().await;
    let before = calls.load(Ordering::SeqCst);
    harness.settled().await;
    assert_eq!(calls.load(Ordering::SeqCst), before);
}

#[tokio::test]
async fn an_unknown_kind_is_told() {
    let function = Arc::new(|request: Request| {
        let mut desired = request.desired;
        let object = json!({"apiVersion": "none.test/v1", "kind": "Nothing"});
        desired.resources.insert("x".into(), Resource::of(object));
        Response {
            desired,
            ..Response::default()
        }
    });
    let harness = Harness::with_disks(function).await;
    harness.create(&disk("d", 1)).await;
    let xr = harness
        .until("Disk", NS, "d", |xr| condition(xr, "Synced") != "none")
        .await;
    let text = condition(&xr, "Synced");
    assert!(text.contains("no matches for kind \"Nothing\""), "{text}");
}
