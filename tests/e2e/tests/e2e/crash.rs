//! kill -9 in the middle of the work.

use std::collections::BTreeSet;

use futures::stream::{self, StreamExt as _};
use serde_json::json;

use ecp_harness::{Ecp, volume, volume_spec, workspace};

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_during_200_creates_loses_nothing_acknowledged_and_makes_nothing_twice() {
    let temp = tempfile::tempdir().unwrap();
    let ecp = Ecp::start_in(temp.path(), &[]).await;
    ecp.put(&workspace("prod"), json!({})).await;
    ecp.until_active(&workspace("prod")).await;
    let acknowledged = {
        let creates = stream::iter(0..200)
            .map(|i| {
                let request = ecp
                    .request("PUT", &volume("prod", &format!("disk-{i}")))
                    .bearer_auth(&ecp.token)
                    .header("prefer", "respond-async")
                    .json(&json!({ "spec": volume_spec(10) }));
                async move {
                    request
                        .send()
                        .await
                        .is_ok_and(|r| r.status() == 201)
                        .then_some(i)
                }
            })
            .buffer_unordered(16);
        // Half of them, then the kill, with others under way.
        creates
            .filter_map(|i| async move { i })
            .take(100)
            .collect::<BTreeSet<_>>()
            .await
    };
    ecp.kill();

    let ecp = Ecp::start_in(temp.path(), &[]).await;
    for i in &acknowledged {
        ecp.until_active(&volume("prod", &format!("disk-{i}")))
            .await;
    }
    let list = "seca.storage/v1/tenants/acme/workspaces/prod/block-storages";
    let all_active = |a: &ecp_harness::Answer| {
        a.body["items"].as_array().is_some_and(|items| {
            items.len() >= 100 && items.iter().all(|i| i["status"]["state"] == "active")
        })
    };
    let known = ecp.until(list, "all active", all_active).await.body;
    let known = known["items"].as_array().unwrap().len();
    let volumes = ecp.items("dummy.m.secapi.cloud/v1alpha1", "volumes").await;
    let ids: BTreeSet<_> = volumes
        .iter()
        .map(|v| v["status"]["atProvider"]["id"].to_string())
        .collect();
    assert_eq!((volumes.len(), ids.len()), (known, known));
    let cloud = std::fs::read_dir(ecp.dir.join("dummy-cloud"))
        .unwrap()
        .count();
    assert!(cloud > 0, "the cloud keeps its state on disk");
}
