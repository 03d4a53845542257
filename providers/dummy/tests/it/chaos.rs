//! Everything that can go wrong, at once.

use std::collections::BTreeMap;

use provider_dummy::cloud::Spec;
use serde_json::json;

use crate::cluster::{Cluster, DUMMY, until};

/// Numbers that look random and are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Creates, changes or deletes one volume; `wanted` has the sizes of those that are wanted.
async fn act(cluster: &Cluster, random: &mut Random, wanted: &mut BTreeMap<String, i64>) {
    let name = format!("v{}", random.below(50));
    match wanted.get_mut(&name) {
        // Its name may still be taken by one that is on its way out.
        None if cluster.get_volume(&name).await.is_some() => {}
        None => {
            cluster.volume(&name, json!({})).await;
            wanted.insert(name, 5);
        }
        Some(_) if random.below(3) == 0 => {
            cluster.delete_volume(&name).await;
            wanted.remove(&name);
        }
        Some(size) => {
            *size += 1;
            let patch = json!({"spec": {"forProvider": {"sizeGB": *size}}});
            cluster.patch_volume(&name, patch).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_cloud_lost_replies_and_kills_lose_double_and_leak_nothing() {
    let cluster = Cluster::new().await;
    let mut provider = cluster.start();
    let mut random = Random(7);
    let mut wanted = BTreeMap::new();
    for round in 0..300 {
        if round % 100 == 50 {
            provider.kill();
            provider = cluster.start();
        }
        if round % 20 == 0 {
            let failure = json!({
                "operations": ["create", "update", "delete", "observe"],
                "rate": 0.3,
                "replyLost": round % 40 == 0,
            });
            let slow = json!({"createDelay": "20ms", "deleteDelay": "20ms", "failure": failure});
            cluster.configure(slow).await;
        }
        act(&cluster, &mut random, &mut wanted).await;
    }
    cluster.configure(json!({})).await;
    let objects = async || {
        let volumes = cluster.list(DUMMY, "volumes", "ns").await;
        let of = |v: &serde_json::Value| {
            let name = v["metadata"]["name"].as_str().expect("a name").to_owned();
            (
                name,
                v["status"]["atProvider"]["sizeGB"].as_i64().unwrap_or(0),
            )
        };
        volumes.iter().map(of).collect::<BTreeMap<_, _>>()
    };
    until("what is there is what is wanted", async || {
        (objects().await == wanted).then_some(())
    })
    .await;
    for name in wanted.keys() {
        cluster.ready(name).await;
    }
    let in_cloud = cluster.cloud.list_all();
    let sizes: BTreeMap<String, i64> = in_cloud
        .iter()
        .filter_map(|o| match &o.spec {
            Spec::Volume(volume) => Some((volume.display_name.clone(), volume.size_gb)),
            _ => None,
        })
        .collect();
    assert_eq!(sizes, wanted);
    assert_eq!(in_cloud.len(), wanted.len(), "one each");
    drop(provider);
}
