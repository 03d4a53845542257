//! A provider that runs before its kinds exist: the capability `safe-start`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ecp_provider::{Options, managed_crd};
use http_body_util::{Either, Full};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tower::ServiceExt as _;

use crate::fake::{Cluster, Thing, until};

/// A client that may not see a resource, and how often it tried.
fn without(cluster: &Cluster, resource: &'static str) -> (Client, Arc<AtomicUsize>) {
    let tries = Arc::new(AtomicUsize::new(0));
    let (server, counted) = (Arc::clone(cluster.server()), Arc::clone(&tries));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let refused = request.uri().path().contains(resource);
        if refused {
            counted.fetch_add(1, Ordering::Relaxed);
        }
        let server = server.service(ecp_apiserver::Identity::admin());
        async move {
            if !refused {
                let answer = server.oneshot(request).await?;
                return Ok::<_, std::convert::Infallible>(answer.map(Either::Left));
            }
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403,
                "reason": "Forbidden", "message": "forbidden",
            });
            let body = Either::Right(Full::new(Bytes::from(status.to_string())));
            let answer = http::Response::builder().status(403);
            let answer = answer.header("content-type", "application/json");
            Ok(answer.body(body).expect("an answer"))
        }
    });
    (Client::new(service, "default"), tries)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_is_reconciled_as_soon_as_its_crd_comes() {
    let cluster = Cluster::bare(Vec::new()).await;
    cluster.run(cluster.client(), Options::default());
    cluster.install(vec![managed_crd::<Thing>()]).await;
    cluster.thing("a", json!({}), json!({})).await;
    cluster.reason("a", "Ready", "Available").await;
}

/// crossplane#6668: Crossplane 1.20 never lets a provider see CRDs.
#[tokio::test(flavor = "multi_thread")]
async fn a_kind_is_reconciled_without_the_right_to_see_crds() {
    let cluster = Cluster::bare(Vec::new()).await;
    let (client, tries) = without(&cluster, "customresourcedefinitions");
    cluster.run(client, Options::default());
    until("it asked for CRDs", async || {
        (tries.load(Ordering::Relaxed) > 0).then_some(())
    })
    .await;
    cluster.install(vec![managed_crd::<Thing>()]).await;
    cluster.thing("a", json!({}), json!({})).await;
    cluster.reason("a", "Ready", "Available").await;
}

/// Rights may be given after the provider has started; until then it must not storm the API.
#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_is_forbidden_is_tried_less_and_less() {
    let cluster = Cluster::bare(vec![managed_crd::<Thing>()]).await;
    let (client, tries) = without(&cluster, "things");
    let start = Instant::now();
    cluster.run(client, Options::default());
    until("it tried seven times", async || {
        (tries.load(Ordering::Relaxed) >= 7).then_some(())
    })
    .await;
    // Delays double from 50 ms and are at least half of that.
    assert!(start.elapsed() >= Duration::from_millis(25 * 63));
}
