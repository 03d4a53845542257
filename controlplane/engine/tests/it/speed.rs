//! That it is fast enough to be noticed if it stops being so; figures are for `make bench`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ecp_xr::function::{Ready, Request, Resource, Response};
use serde_json::json;

use crate::harness::{Harness, disk, is_ready};

/// Composes ten volumes that are ready at once.
fn ten() -> Arc<dyn Fn(Request) -> Response + Send + Sync> {
    Arc::new(|request: Request| {
        let mut desired = request.desired;
        for n in 0..10 {
            let object = json!({"apiVersion": "dummy.test/v1", "kind": "Volume",
                "spec": {"size": 1}});
            desired.resources.insert(
                format!("volume-{n}"),
                Resource {
                    ready: Ready::True,
                    ..Resource::of(object)
                },
            );
        }
        Response {
            desired,
            ..Response::default()
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_xrs_of_ten_resources_become_ready() {
    let harness = Harness::with_disks(ten()).await;
    harness.create(&disk("warm", 1)).await;
    harness.until("Disk", Some("ns"), "warm", is_ready).await;
    let started = Instant::now();
    for n in 0..30 {
        harness.create(&disk(&format!("d{n}"), 1)).await;
    }
    harness.until_list("Disk", |l| l.iter().all(is_ready)).await;
    let took = started.elapsed();
    tracing::info!(?took, "30 XRs of ten resources");
    assert!(took < Duration::from_secs(15), "{took:?}");
    assert_eq!(harness.list("Volume").await.len(), 310);
}

#[tokio::test]
async fn a_fresh_xr_costs_one_write_of_itself_and_one_of_its_status() {
    let harness = Harness::with_disks(ten()).await;
    let before = harness.settled().await;
    harness.create(&disk("d", 1)).await;
    harness.until("Disk", Some("ns"), "d", is_ready).await;
    let mut cost = harness.settled().await;
    for (what, before) in before {
        if let Some(count) = cost.get_mut(what) {
            *count -= before;
        }
    }
    cost.retain(|_, count| *count > 0);
    assert_eq!(
        cost.into_iter().collect::<Vec<_>>(),
        [("composed", 10), ("composite", 1), ("status", 1)]
    );
}
