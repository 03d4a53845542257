//! kill -9 in the middle of the work.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use futures::stream::{self, StreamExt as _};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

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

/// A request that asks for no wait: whether it was accepted, or nothing where the server has gone.
async fn accepted(ecp: &Ecp, method: &str, path: &str, spec: Option<&Value>) -> Option<()> {
    let request = ecp
        .request(method, path)
        .bearer_auth(&ecp.token)
        .header("prefer", "respond-async");
    let request = match spec {
        Some(spec) => request.json(&json!({ "spec": spec })),
        None => request,
    };
    let status = request.send().await.ok()?.status();
    assert!(status.is_success(), "{method} {path}: {status}");
    Some(())
}

/// What was answered, and how often.
struct Answers {
    /// Whether a path is to stay, by the last answer about it.
    kept: Mutex<BTreeMap<String, bool>>,
    count: Semaphore,
}

impl Answers {
    fn note(&self, path: &str, stays: bool) {
        self.kept.lock().unwrap().insert(path.to_owned(), stays);
        self.count.add_permits(1);
    }
}

/// Makes a server with all it needs, and deletes something of two of three.
async fn server(ecp: &Ecp, i: usize, answers: &Answers) -> Option<()> {
    let in_workspace = |provider: &str, rest: &str| {
        format!("seca.{provider}/v1/tenants/acme/workspaces/prod/{rest}")
    };
    let of = |resource: String| json!({ "resource": resource });
    let network = in_workspace("network", &format!("networks/n{i}"));
    let instance = in_workspace("compute", &format!("instances/i{i}"));
    let disk = volume("prod", &format!("b{i}"));
    let nic = in_workspace("network", &format!("nics/c{i}"));
    let puts = [
        (
            network.clone(),
            json!({"cidr": {"ipv4": "10.0.0.0/16"}, "skuRef": of("skus/N1K".into())}),
        ),
        (
            in_workspace("network", &format!("internet-gateways/g{i}")),
            json!({}),
        ),
        (
            format!("{network}/route-tables/r"),
            json!({"routes": [{"destinationCidrBlock": "0.0.0.0/0", "targetRef": of(format!("internet-gateways/g{i}"))}]}),
        ),
        (
            format!("{network}/subnets/s"),
            json!({"cidr": {"ipv4": "10.0.1.0/24"}, "zone": "zone-a", "routeTableRef": of("route-tables/r".into())}),
        ),
        (
            in_workspace("network", &format!("public-ips/p{i}")),
            json!({"version": "IPv4"}),
        ),
        (
            nic.clone(),
            json!({"subnetRef": of(format!("networks/n{i}/subnets/s")), "addresses": ["0.0.0.0"], "publicIpRefs": [of(format!("public-ips/p{i}"))]}),
        ),
        (disk.clone(), volume_spec(10)),
        (
            instance.clone(),
            json!({"skuRef": of("skus/D2XS".into()), "zone": "zone-a", "primaryNicRef": of(format!("nics/c{i}")), "bootVolume": {"deviceRef": of(format!("block-storages/b{i}"))}}),
        ),
    ];
    for (path, spec) in &puts {
        accepted(ecp, "PUT", path, Some(spec)).await?;
        answers.note(path, true);
    }
    let deletes: &[&String] = match i % 3 {
        0 => &[],
        1 => &[&instance],
        _ => &[&instance, &nic, &disk],
    };
    for path in deletes {
        // Not known until it is answered, so nothing is expected of it before.
        answers.kept.lock().unwrap().remove(*path);
        accepted(ecp, "DELETE", path, None).await?;
        answers.note(path, false);
    }
    Some(())
}

/// Ids of what the simulated cloud has.
fn in_the_cloud(ecp: &Ecp) -> BTreeSet<String> {
    let journal = std::fs::read_to_string(ecp.dir.join("dummy-cloud/cloud.jsonl")).unwrap();
    let mut ids = BTreeSet::new();
    for line in journal.lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        if let Some(id) = entry["put"]["id"].as_str() {
            ids.insert(id.to_owned());
        } else if let Some(id) = entry["gone"].as_str() {
            ids.remove(id);
        }
    }
    ids
}

/// Cloud ids of all managed resources of the dummy cloud.
async fn managed_ids(ecp: &Ecp) -> Vec<String> {
    let group = "dummy.m.secapi.cloud/v1alpha1";
    let served = ecp.raw(&format!("/apis/{group}")).await;
    let mut ids = Vec::new();
    for resource in served["resources"].as_array().unwrap() {
        let categories = resource["categories"].as_array();
        if categories.is_some_and(|c| c.contains(&"managed".into())) {
            let plural = resource["name"].as_str().unwrap();
            ids.extend(ecp.items(group, plural).await.iter().map(|m| {
                let id = &m["metadata"]["annotations"]["crossplane.io/external-name"];
                id.as_str().unwrap_or_default().to_owned()
            }));
        }
    }
    ids.sort();
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_between_creates_and_deletes_of_many_kinds_lose_nothing_and_double_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let answers = Answers {
        kept: Mutex::default(),
        count: Semaphore::new(0),
    };
    for (round, wanted) in [20, 75].into_iter().enumerate() {
        let ecp = Ecp::start_in(temp.path(), &[]).await;
        if round == 0 {
            ecp.put(&workspace("prod"), json!({})).await;
            ecp.until_active(&workspace("prod")).await;
        }
        let servers = stream::iter(0..16)
            .map(|i| server(&ecp, round * 16 + i, &answers))
            .buffer_unordered(4)
            .collect::<Vec<_>>();
        // The kill comes with others under way.
        tokio::select! {
            _ = servers => panic!("all were answered before the kill"),
            permits = answers.count.acquire_many(wanted) => permits.unwrap().forget(),
        }
        ecp.kill();
    }

    let ecp = Ecp::start_in(temp.path(), &[]).await;
    let kept = answers.kept.into_inner().unwrap();
    assert!(kept.len() > 60, "{kept:?}");
    for (path, stays) in &kept {
        if *stays {
            ecp.until_active(path).await;
        } else {
            ecp.until_gone(path).await;
        }
    }
    // What was not answered may be there or not, and settles as well.
    let started = std::time::Instant::now();
    loop {
        let managed = managed_ids(&ecp).await;
        let cloud: Vec<String> = in_the_cloud(&ecp).into_iter().collect();
        if managed == cloud {
            break;
        }
        assert!(
            started.elapsed() < ecp_harness::DEADLINE,
            "{managed:#?} are managed, and the cloud has {cloud:#?}"
        );
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
