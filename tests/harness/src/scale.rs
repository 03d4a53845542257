//! Many resources at once over REST, and what they cost the control plane.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

/// Where the resources are made.
const WORKSPACE: &str = "tenants/scale/workspaces/all";
/// How often the lists are read until all is active.
const POLL: Duration = Duration::from_millis(250);
/// Longest until all is active, and until nothing is written any more.
const DEADLINE: Duration = Duration::from_secs(300);
/// Clock ticks of `/proc/PID/stat` in a second, on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// A running `ecp up`, as the load sees it.
#[derive(Clone, Debug)]
pub struct Plane {
    /// A client that trusts the server and sends an administrator's token.
    pub http: reqwest::Client,
    /// Base URL of the REST API.
    pub rest: String,
    /// Base URL of the Kubernetes API.
    pub api: String,
    /// Its process.
    pub pid: u32,
}

/// How much is made, and by how many clients at once.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Block storages; instances start from the first ones, one each.
    pub volumes: usize,
    /// Instances, no more than volumes.
    pub instances: usize,
    /// Clients that send at once.
    pub clients: usize,
    /// For how long nothing must be written when all is done.
    pub idle: Duration,
}

/// What it took.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// From the first request to the last answer.
    pub accepted: Duration,
    /// From the first request until a list showed all active.
    pub active: Duration,
    /// From the first request to the last write.
    pub settled: Duration,
    /// Writes to the store.
    pub writes: u64,
    /// Processor time of the server.
    pub cpu: Duration,
    /// Most memory it ever had, in MiB.
    pub peak_mib: f64,
}

/// Makes all of it, each client one request after another, and waits until all is active and the
/// control plane is idle.
///
/// # Errors
/// A request is refused, a resource is not active in time, was in state `error`, or writes do not
/// end.
pub async fn fill(plane: &Plane, size: Size) -> anyhow::Result<Cost> {
    let workspace = format!("seca.workspace/v1/{WORKSPACE}");
    plane.put(&workspace, json!({})).await?;
    plane
        .until_active("seca.workspace/v1/tenants/scale/workspaces", 1)
        .await?;
    let before = (plane.revision().await?, plane.cpu()?);
    let started = Instant::now();
    let next = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..size.clients)
        .map(|_| tokio::spawn(client(plane.clone(), size, next.clone())))
        .collect();
    for client in clients {
        client.await.context("a client panicked")??;
    }
    let accepted = started.elapsed();
    let (volumes, instances) = (
        collection("storage", "block-storages"),
        collection("compute", "instances"),
    );
    plane.until_active(&volumes, size.volumes).await?;
    plane.until_active(&instances, size.instances).await?;
    let active = started.elapsed();
    let (last, at) = plane.until_idle(size.idle).await?;
    Ok(Cost {
        accepted,
        active,
        settled: at.duration_since(started),
        writes: last - before.0,
        cpu: plane.cpu()?.saturating_sub(before.1),
        peak_mib: plane.peak_mib()?,
    })
}

fn collection(provider: &str, plural: &str) -> String {
    format!("seca.{provider}/v1/{WORKSPACE}/{plural}")
}

/// Volumes come first, so that what an instance refers to has been asked for.
async fn client(plane: Plane, size: Size, next: Arc<AtomicUsize>) -> anyhow::Result<()> {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if let Some(number) = number.checked_sub(size.volumes) {
            if number >= size.instances {
                return Ok(());
            }
            let path = format!("{}/vm-{number}", collection("compute", "instances"));
            let spec = json!({
                "skuRef": { "resource": "skus/DS" },
                "zone": "zone-a",
                "bootVolume": { "deviceRef": { "resource": format!("block-storages/disk-{number}") } },
            });
            plane.put(&path, spec).await?;
        } else {
            let path = format!("{}/disk-{number}", collection("storage", "block-storages"));
            plane.put(&path, crate::volume_spec(10)).await?;
        }
    }
}

impl Plane {
    async fn put(&self, path: &str, spec: Value) -> anyhow::Result<()> {
        let url = format!("{}/providers/{path}", self.rest);
        let request = self.http.put(url).json(&json!({ "spec": spec }));
        answer(request).await.map(drop)
    }

    /// Reads a collection until it has `count` members and all are active.
    async fn until_active(&self, collection: &str, count: usize) -> anyhow::Result<()> {
        let started = Instant::now();
        loop {
            let members = self.list(collection).await?;
            let state = |member: &Value| member["status"]["state"] == "active";
            if members.len() == count && members.iter().all(state) {
                let failed = members.iter().find(|m| crate::states(m).contains(&"error"));
                ensure!(failed.is_none(), "it failed on the way: {failed:#?}");
                return Ok(());
            }
            ensure!(
                started.elapsed() < DEADLINE,
                "{} of {count} {collection}, one of those that are not active: {:#?}",
                members.len(),
                members.iter().find(|m| !state(m))
            );
            tokio::time::sleep(POLL).await;
        }
    }

    /// All members of a collection, page by page.
    async fn list(&self, collection: &str) -> anyhow::Result<Vec<Value>> {
        let mut members = Vec::new();
        let mut token = None;
        loop {
            let mut url = format!("{}/providers/{collection}?limit=1000", self.rest);
            if let Some(token) = &token {
                url = format!("{url}&skipToken={token}");
            }
            let mut page = answer(self.http.get(url)).await?;
            if let Value::Array(items) = page["items"].take() {
                members.extend(items);
            }
            match page["metadata"]["skipToken"].as_str() {
                Some(more) if !more.is_empty() => token = Some(more.to_owned()),
                _ => return Ok(members),
            }
        }
    }

    /// Waits until nothing has been written for a while; returns the revision and since when.
    async fn until_idle(&self, idle: Duration) -> anyhow::Result<(u64, Instant)> {
        let started = Instant::now();
        let mut last = (self.revision().await?, Instant::now());
        while last.1.elapsed() < idle {
            ensure!(started.elapsed() < DEADLINE + idle, "writes do not end");
            tokio::time::sleep(POLL).await;
            let revision = self.revision().await?;
            if revision != last.0 {
                last = (revision, Instant::now());
            }
        }
        Ok(last)
    }

    /// The store's revision: each write makes it one more.
    async fn revision(&self) -> anyhow::Result<u64> {
        let url = format!("{}/api/v1/namespaces?limit=1", self.api);
        let list = answer(self.http.get(url)).await?;
        let revision = list["metadata"]["resourceVersion"].as_str();
        Ok(revision.context("no resourceVersion")?.parse()?)
    }

    /// Processor time used so far, by the program and by the system for it.
    ///
    /// # Errors
    /// The process is gone, or this is no Linux.
    pub fn cpu(&self) -> anyhow::Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid))?;
        // The name, in parentheses, may have spaces.
        let (_, fields) = stat.rsplit_once(')').context("no name")?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks = |index: usize| -> anyhow::Result<f64> {
            Ok(fields.get(index).context("too few fields")?.parse()?)
        };
        Ok(Duration::from_secs_f64(
            (ticks(11)? + ticks(12)?) / TICKS_PER_SECOND,
        ))
    }

    /// The most memory it ever had, in MiB.
    ///
    /// # Errors
    /// The process is gone, or this is no Linux.
    pub fn peak_mib(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|p| p.split_whitespace().next());
        Ok(kib.context("no VmHWM")?.parse::<f64>()? / 1024.0)
    }
}

/// The JSON of a successful answer.
async fn answer(request: reqwest::RequestBuilder) -> anyhow::Result<Value> {
    let response = request.send().await?;
    let (status, url) = (response.status(), response.url().clone());
    let text = response.text().await?;
    ensure!(status.is_success(), "{url}: {status}: {text}");
    Ok(serde_json::from_str(&text)?)
}
