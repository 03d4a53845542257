//! What is measured.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use ecp_harness::scale::Size;
use futures::StreamExt as _;
use futures::stream::{self, TryStreamExt as _};
use serde_json::{Value, json};

use crate::Options;
use crate::control_plane::{ControlPlane, send};
use crate::load::{Load, closed_loop, percentile};
use crate::reference;
use crate::report::{Row, milliseconds};

const STORAGE: &str = "/apis/storage.v1.secapi.cloud/v1";
const WORKSPACES: &str = "/providers/seca.workspace/v1/tenants/bench/workspaces";
const DEADLINE: Duration = Duration::from_secs(120);

/// Takes every measurement.
pub(crate) async fn all(options: &Options) -> anyhow::Result<Vec<Row>> {
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("data");
    let mut rows = scale(options, &dir.path().join("scale")).await?;
    if options.scale_only {
        return Ok(rows);
    }

    let plane = ControlPlane::start(&options.ecp, &data)?;
    rows.push(Row::plain(
        "start to ready, first start (keys, kinds, catalogue)",
        milliseconds(plane.start),
    ));
    plane.stop()?;
    let mut starts = Vec::new();
    for _ in 0..5 {
        let plane = ControlPlane::start(&options.ecp, &data)?;
        starts.push(plane.start);
        plane.stop()?;
    }
    starts.sort_unstable();
    let median = milliseconds(percentile(&starts, 50));
    rows.push(Row::plain(
        "start to ready, later start, median of 5",
        median,
    ));

    let plane = ControlPlane::start(&options.ecp, &data)?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    rows.push(Row::plain(
        "idle, all kinds installed",
        format!("{:.0} MiB", plane.resident_mib()?),
    ));
    rows.extend(ready(&plane, options).await?);
    rows.extend(api(&plane, options).await?);
    rows.extend(facade(&plane, options).await?);
    fill(&plane, options.objects).await?;
    let mib = plane.resident_mib()?;
    rows.push(Row::plain(
        &format!("after all that, {} more objects", options.objects),
        format!("{mib:.0} MiB"),
    ));
    plane.stop()?;
    let plane = ControlPlane::start(&options.ecp, &data)?;
    rows.push(Row::plain(
        &format!("start to ready with {} objects", options.objects),
        format!(
            "{}, {:.0} MiB",
            milliseconds(plane.start),
            plane.resident_mib()?
        ),
    ));
    plane.stop()?;
    Ok(rows)
}

/// Many resources of 20 clients at once, until all are active and nothing is written any more.
async fn scale(options: &Options, data: &Path) -> anyhow::Result<Vec<Row>> {
    let plane = ControlPlane::start(&options.ecp, data)?;
    let size = Size {
        volumes: options.scale_volumes,
        instances: options.scale_instances,
        clients: 20,
        idle: Duration::from_secs(30),
    };
    let cost = ecp_harness::scale::fill(&plane.plane(), size).await?;
    let resident = plane.resident_mib()?;
    plane.stop()?;
    let resources = (size.volumes + size.instances) as f64;
    let what = format!(
        "{} block storages and {} instances of {} REST clients",
        size.volumes, size.instances, size.clients
    );
    Ok(vec![
        Row::plain(
            &format!("{what}: all accepted, all active, last write"),
            format!(
                "{:.1} s, {:.1} s, {:.1} s; then none for {} s",
                cost.accepted.as_secs_f64(),
                cost.active.as_secs_f64(),
                cost.settled.as_secs_f64(),
                size.idle.as_secs()
            ),
        ),
        Row::plain(
            &format!("{what}: each"),
            format!(
                "{:.1} writes, {} of processor time",
                cost.writes as f64 / resources,
                milliseconds(cost.cpu.div_f64(resources))
            ),
        ),
        Row::plain(
            &format!("{what}: memory at most, after"),
            format!("{:.0} MiB, {resident:.0} MiB", cost.peak_mib),
        ),
    ])
}

fn seconds(options: &Options) -> Duration {
    Duration::from_secs(options.seconds)
}

/// The bare server, answering `body`.
async fn bare(options: &Options, body: Bytes) -> anyhow::Result<Load> {
    let address = reference::serve(body).await?;
    let http = reqwest::Client::builder().no_proxy().http1_only().build()?;
    let url = format!("http://{address}/");
    closed_loop(options.clients, seconds(options), move |_| {
        let request = http.get(&url);
        async move { send(request).await.map(drop) }
    })
    .await
}

/// The workspace that the volumes are made in; returns its namespace.
async fn workspace(plane: &ControlPlane) -> anyhow::Result<String> {
    let url = format!("{}{WORKSPACES}/bench", plane.rest);
    send(plane.http.put(&url).json(&json!({ "spec": {} }))).await?;
    let started = Instant::now();
    loop {
        let document: Value = serde_json::from_slice(&send(plane.http.get(&url)).await?)?;
        if document["status"]["state"] == "active" {
            break;
        }
        ensure!(
            started.elapsed() < DEADLINE,
            "the workspace is not active: {document:#}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let url = format!(
        "{}/api/v1/namespaces?labelSelector=secapi.cloud/workspace%3Dbench",
        plane.api
    );
    let list: Value = serde_json::from_slice(&send(plane.http.get(url)).await?)?;
    let name = list["items"][0]["metadata"]["name"]
        .as_str()
        .context("no namespace")?;
    Ok(name.to_owned())
}

fn volume(name: &str) -> Value {
    json!({
        "apiVersion": "storage.v1.secapi.cloud/v1",
        "kind": "BlockStorage",
        "metadata": { "name": name },
        "spec": { "sizeGB": 10, "skuRef": { "resource": "skus/RD500" } },
    })
}

/// From the answer to a create of an XR until a watch shows it Ready, one XR after another.
async fn ready(plane: &ControlPlane, options: &Options) -> anyhow::Result<Vec<Row>> {
    let namespace = workspace(plane).await?;
    let url = format!(
        "{}{STORAGE}/namespaces/{namespace}/block-storages",
        plane.api
    );
    let response = plane
        .http
        .get(format!("{url}?watch=true&timeoutSeconds=600"))
        .send()
        .await?;
    let mut frames = response.bytes_stream();
    let (mut buffer, mut times) = (Vec::new(), Vec::new());
    for i in 0..options.volumes {
        let name = format!("ready-{i}");
        let started = Instant::now();
        send(plane.http.post(&url).json(&volume(&name))).await?;
        while !next_shows_ready(&mut buffer, &name)? {
            match tokio::time::timeout(DEADLINE, frames.next()).await {
                Ok(Some(bytes)) => buffer.extend_from_slice(&bytes?),
                Ok(None) => bail!("the watch ended"),
                Err(_) => bail!("{name} is not ready"),
            }
        }
        times.push(started.elapsed());
    }
    times.sort_unstable();
    let figure = format!(
        "p50 {}, p99 {}",
        milliseconds(percentile(&times, 50)),
        milliseconds(percentile(&times, 99))
    );
    Ok(vec![Row::plain(
        &format!(
            "XR created to Ready on the dummy cloud, {} one by one",
            options.volumes
        ),
        figure,
    )])
}

/// Takes whole watch frames from the buffer until one shows the object Ready.
fn next_shows_ready(buffer: &mut Vec<u8>, name: &str) -> anyhow::Result<bool> {
    while let Some(end) = buffer.iter().position(|b| *b == b'\n') {
        let frame: Value = serde_json::from_slice(&buffer[..end])?;
        buffer.drain(..=end);
        let object = &frame["object"];
        let conditions = object["status"]["conditions"].as_array();
        let ready = conditions
            .into_iter()
            .flatten()
            .any(|c| c["type"] == "Ready" && c["status"] == "True");
        if object["metadata"]["name"] == name && ready {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A Kubernetes API and a client that may do everything there.
#[derive(Clone)]
struct Target {
    http: reqwest::Client,
    url: String,
}

/// Rates of one Kubernetes API, and two of its answers.
struct Rates {
    get: Load,
    list: Load,
    create: Load,
    one: Bytes,
    hundred: Bytes,
}

/// GET, LIST of 100 and CREATE of a custom resource that nothing reconciles.
async fn api(plane: &ControlPlane, options: &Options) -> anyhow::Result<Vec<Row>> {
    let ours = Target {
        http: plane.http.clone(),
        url: plane.api.clone(),
    };
    let rates = api_rates(&ours, options).await?;
    let kube = match (&options.kube_apiserver, &options.kube_token) {
        (Some(url), Some(token)) => {
            let mut headers = reqwest::header::HeaderMap::new();
            headers.insert("authorization", format!("Bearer {token}").parse()?);
            // A reference on loopback, with a certificate of its own making.
            let http = reqwest::Client::builder()
                .no_proxy()
                .http1_only()
                .tls_danger_accept_invalid_certs(true)
                .default_headers(headers)
                .build()?;
            Some(
                api_rates(
                    &Target {
                        http,
                        url: url.clone(),
                    },
                    options,
                )
                .await?,
            )
        }
        _ => None,
    };
    let bare_one = bare(options, rates.one.clone()).await?;
    let bare_list = bare(options, rates.hundred.clone()).await?;
    let kube = kube.as_ref();
    Ok(vec![
        Row::rate(
            "API server GET of a custom resource (TLS)",
            &rates.get,
            &bare_one,
            kube.map(|k| &k.get),
        ),
        Row::rate(
            "API server LIST of 100 (TLS)",
            &rates.list,
            &bare_list,
            kube.map(|k| &k.list),
        ),
        Row::rate(
            "API server CREATE, durable (TLS)",
            &rates.create,
            &bare_one,
            kube.map(|k| &k.create),
        ),
    ])
}

async fn api_rates(target: &Target, options: &Options) -> anyhow::Result<Rates> {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.bench.example.org" },
        "spec": {
            "group": "bench.example.org", "scope": "Namespaced",
            "names": {
                "plural": "widgets", "singular": "widget",
                "kind": "Widget", "listKind": "WidgetList",
            },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {
                    "type": "object", "properties": { "spec": { "type": "object", "properties": {
                        "size": { "type": "integer", "minimum": 1 },
                        "text": { "type": "string", "maxLength": 1000 },
                        "tags": {
                            "type": "object", "additionalProperties": { "type": "string" },
                        },
                    } } },
                },
            } }],
        },
    });
    let crds = format!(
        "{}/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        target.url
    );
    send(target.http.post(crds).json(&crd)).await?;
    let url = format!(
        "{}/apis/bench.example.org/v1/namespaces/default/widgets",
        target.url
    );
    let started = Instant::now();
    while send(target.http.get(&url)).await.is_err() {
        ensure!(started.elapsed() < DEADLINE, "{url} is not served");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for i in 0..100 {
        send(target.http.post(&url).json(&widget(&format!("w-{i:03}")))).await?;
    }
    let one = send(target.http.get(format!("{url}/w-050"))).await?;
    let hundred = send(target.http.get(format!("{url}?limit=100"))).await?;

    let (http, base) = (target.http.clone(), url.clone());
    let get = closed_loop(options.clients, seconds(options), move |i| {
        let request = http.get(format!("{base}/w-{:03}", i % 100));
        async move { send(request).await.map(drop) }
    });
    let get = get.await?;
    let (http, base) = (target.http.clone(), url.clone());
    let list = closed_loop(options.clients, seconds(options), move |_| {
        let request = http.get(format!("{base}?limit=100"));
        async move { send(request).await.map(drop) }
    });
    let list = list.await?;
    let (http, base) = (target.http.clone(), url.clone());
    let create = closed_loop(options.clients, seconds(options), move |i| {
        let request = http.post(&base).json(&widget(&format!("new-{i}")));
        async move { send(request).await.map(drop) }
    });
    Ok(Rates {
        get,
        list,
        create: create.await?,
        one,
        hundred,
    })
}

fn widget(name: &str) -> Value {
    json!({
        "apiVersion": "bench.example.org/v1",
        "kind": "Widget",
        "metadata": { "name": name, "labels": { "app": "bench" } },
        "spec": { "size": 3, "text": "x".repeat(400), "tags": { "a": "b", "c": "d" } },
    })
}

/// GET, LIST of 100 and PUT through the facade.
async fn facade(plane: &ControlPlane, options: &Options) -> anyhow::Result<Vec<Row>> {
    let base = format!(
        "{}/providers/seca.storage/v1/tenants/bench/workspaces/bench/block-storages",
        plane.rest
    );
    let one = send(plane.http.get(format!("{base}/ready-0"))).await?;
    let list = send(plane.http.get(format!("{base}?limit=100"))).await?;
    let bare_one = bare(options, one).await?;
    let bare_list = bare(options, list).await?;

    let (http, url) = (plane.http.clone(), format!("{base}/ready-0"));
    let get = closed_loop(options.clients, seconds(options), move |_| {
        let request = http.get(&url);
        async move { send(request).await.map(drop) }
    });
    let get = get.await?;
    let (http, url) = (plane.http.clone(), format!("{base}?limit=100"));
    let list = closed_loop(options.clients, seconds(options), move |_| {
        let request = http.get(&url);
        async move { send(request).await.map(drop) }
    });
    let list = list.await?;
    let mut rows = vec![
        Row::rate("facade GET", &get, &bare_one, None),
        Row::rate("facade LIST of 100", &list, &bare_list, None),
    ];
    for (what, prefer) in [
        ("facade PUT (create), `respond-async`", "respond-async"),
        ("facade PUT (create), waits until active", "wait=5"),
    ] {
        let (http, base, prefix) = (plane.http.clone(), base.clone(), prefer.replace('=', "-"));
        let put = closed_loop(options.clients, seconds(options), move |i| {
            let request = http
                .put(format!("{base}/{prefix}-{i}"))
                .header("prefer", prefer)
                .json(&json!({ "spec": volume("x")["spec"] }));
            async move { send(request).await.map(drop) }
        });
        rows.push(Row::rate(what, &put.await?, &bare_one, None));
    }
    Ok(rows)
}

/// Fills the store with small objects.
async fn fill(plane: &ControlPlane, objects: usize) -> anyhow::Result<()> {
    let url = format!(
        "{}/apis/bench.example.org/v1/namespaces/default/widgets",
        plane.api
    );
    stream::iter(0..objects)
        .map(|i| {
            let request = plane.http.post(&url).json(&widget(&format!("fill-{i}")));
            async move { send(request).await.map(drop) }
        })
        .buffer_unordered(64)
        .try_collect()
        .await
}
