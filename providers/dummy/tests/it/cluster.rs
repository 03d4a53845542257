//! A cluster in process, with a gate in front of it, and a provider that can be killed.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ecp_apiserver::Identity;
use ecp_provider::Metrics;
use kube::Client;
use kube::api::PostParams;
use kube::client::Body;
use provider_dummy::cloud::Cloud;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::Service as _;

pub(crate) use ecp_test_cluster::until;

/// What happens to a request of the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    /// It is never answered.
    Hang,
}

type Gate = Arc<dyn Fn(&http::Request<Body>) -> Verdict + Send + Sync>;

/// A cluster with the provider's CRDs, a namespace `ns` and a default configuration.
pub(crate) struct Cluster {
    cluster: ecp_test_cluster::Cluster,
    pub(crate) cloud: Cloud,
    /// Writes by providers.
    pub(crate) writes: Arc<AtomicUsize>,
}

impl Deref for Cluster {
    type Target = ecp_test_cluster::Cluster;

    fn deref(&self) -> &Self::Target {
        &self.cluster
    }
}

/// A running provider.
pub(crate) struct Provider {
    runtime: Option<tokio::runtime::Runtime>,
    stop: CancellationToken,
    pub(crate) metrics: Metrics,
}

pub(crate) const POLL: Duration = Duration::from_millis(50);

impl Cluster {
    pub(crate) async fn new() -> Self {
        let cluster = Self {
            cluster: ecp_test_cluster::Cluster::new(provider_dummy::crds(), &["ns"]).await,
            cloud: Cloud::in_memory(Cloud::wall_clock()),
            writes: Arc::default(),
        };
        cluster
            .configure_new("ClusterProviderConfig", "default", json!({}))
            .await;
        cluster
    }

    /// Starts a provider.
    pub(crate) fn start(&self) -> Provider {
        self.start_polling(POLL)
    }

    /// Starts a provider that polls so often.
    pub(crate) fn start_polling(&self, poll: Duration) -> Provider {
        self.run(Arc::new(|_: &http::Request<Body>| Verdict::Pass), poll)
    }

    /// Starts a provider whose requests pass a gate.
    pub(crate) fn start_behind(&self, gate: Gate) -> Provider {
        self.run(gate, POLL)
    }

    fn run(&self, gate: Gate, poll: Duration) -> Provider {
        let service = self.server().service(Identity::admin());
        let writes = Arc::clone(&self.writes);
        let gated = tower::service_fn(move |request: http::Request<Body>| {
            let verdict = gate(&request);
            let is_read = *request.method() == http::Method::GET;
            // Events are told to people; they are no writes of the object.
            if !is_read && !request.uri().path().ends_with("/events") {
                writes.fetch_add(1, Ordering::SeqCst);
            }
            let mut service = service.clone();
            async move {
                match verdict {
                    Verdict::Pass => service.call(request).await,
                    Verdict::Hang => std::future::pending().await,
                }
            }
        });
        let client = Client::new(gated, "default");
        let stop = CancellationToken::new();
        let metrics = Metrics::default();
        let options = provider_dummy::Options {
            data_dir: None,
            runtime: ecp_provider::Options {
                poll,
                ..ecp_provider::Options::default()
            },
            metrics: metrics.clone(),
        };
        // Its own runtime, so that it can be killed like a process.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.spawn(provider_dummy::run_with(
            client,
            self.cloud.clone(),
            options,
            stop.clone(),
        ));
        Provider {
            runtime: Some(runtime),
            stop,
            metrics,
        }
    }

    pub(crate) async fn configure_new(&self, kind: &str, name: &str, spec: Value) {
        let (plural, ns) = match kind {
            "ProviderConfig" => ("providerconfigs", "ns"),
            _ => ("clusterproviderconfigs", ""),
        };
        let object = json!({
            "apiVersion": DUMMY, "kind": kind, "metadata": {"name": name}, "spec": spec,
        });
        self.create(DUMMY, plural, ns, object).await;
    }

    /// Replaces the spec of the default configuration.
    pub(crate) async fn configure(&self, spec: Value) {
        let api = self.api(DUMMY, "clusterproviderconfigs", "");
        until("the configuration is written", async || {
            let mut config = api.get("default").await.expect("a configuration");
            config.data["spec"] = spec.clone();
            // The provider writes it, too.
            api.replace("default", &PostParams::default(), &config)
                .await
                .ok()
        })
        .await;
    }

    /// Creates a volume of 5 GB, with changes.
    pub(crate) async fn volume(&self, name: &str, changes: Value) -> Value {
        let mut object = json!({
            "apiVersion": DUMMY,
            "kind": "Volume",
            "metadata": {"name": name, "namespace": "ns"},
            "spec": {"forProvider": {
                "location": "eu-1", "displayName": name, "sizeGB": 5, "volumeType": "fast",
            }},
        });
        merge(&mut object, &changes);
        self.create(DUMMY, "volumes", "ns", object).await
    }

    pub(crate) async fn get_volume(&self, name: &str) -> Option<Value> {
        self.get(DUMMY, "volumes", "ns", name).await
    }

    pub(crate) async fn patch_volume(&self, name: &str, patch: Value) {
        self.patch(DUMMY, "volumes", "ns", name, patch).await;
    }

    pub(crate) async fn delete_volume(&self, name: &str) {
        self.delete(DUMMY, "volumes", "ns", name).await;
    }

    /// Waits until a volume is ready and in sync, for its current generation.
    pub(crate) async fn ready(&self, name: &str) -> Value {
        self.ready_of("volumes", name).await
    }

    async fn ready_of(&self, plural: &str, name: &str) -> Value {
        until(&format!("{plural}/{name} is ready"), async || {
            let object = self.get(DUMMY, plural, "ns", name).await?;
            let generation = &object["metadata"]["generation"];
            let all = ["Ready", "Synced"].iter().all(|kind| {
                condition(&object, kind).is_some_and(|c| {
                    c["status"] == "True" && c["observedGeneration"] == *generation
                })
            });
            all.then_some(object)
        })
        .await
    }

    /// Creates a resource called `x` of a kind in location eu-1, waits until it is ready, and
    /// returns its cloud id.
    pub(crate) async fn made(&self, kind: &str, for_provider: Value) -> String {
        let plural = plural(kind);
        let mut object = json!({
            "apiVersion": DUMMY,
            "kind": kind,
            "metadata": {"name": "x", "namespace": "ns"},
            "spec": {"forProvider": {"location": "eu-1", "displayName": "x"}},
        });
        merge(&mut object["spec"]["forProvider"], &for_provider);
        self.create(DUMMY, &plural, "ns", object).await;
        let object = self.ready_of(&plural, "x").await;
        let id = annotation(&object, "crossplane.io/external-name");
        id.expect("an external name").to_owned()
    }

    /// Changes what the resource `x` of a kind should be, and waits until it is.
    pub(crate) async fn change(&self, kind: &str, for_provider: Value) {
        let patch = json!({"spec": {"forProvider": for_provider}});
        self.patch(DUMMY, &plural(kind), "ns", "x", patch).await;
        self.ready_of(&plural(kind), "x").await;
    }

    /// What is said about the resource `x` of a kind.
    pub(crate) async fn at_provider(&self, kind: &str) -> Option<Value> {
        let object = self.get(DUMMY, &plural(kind), "ns", "x").await?;
        Some(object["status"]["atProvider"].clone())
    }

    /// Waits until something is said about the resource `x` of a kind.
    pub(crate) async fn says(&self, kind: &str, field: &str, wanted: Value) {
        until(&format!("{kind} has {field} {wanted}"), async || {
            let said = self.at_provider(kind).await?;
            (said.get(field).unwrap_or(&Value::Null) == &wanted).then_some(())
        })
        .await;
    }

    /// Deletes the resource `x` of a kind and waits until it is gone.
    pub(crate) async fn remove(&self, kind: &str) {
        self.delete(DUMMY, &plural(kind), "ns", "x").await;
        self.gone(DUMMY, &plural(kind), "ns", "x").await;
    }

    /// Waits until a condition of a volume has a reason, and returns the volume.
    pub(crate) async fn reason(&self, name: &str, kind: &str, reason: &str) -> Value {
        until(&format!("{name} has {kind} {reason}"), async || {
            let volume = self.get_volume(name).await?;
            let is = condition(&volume, kind).is_some_and(|c| c["reason"] == reason);
            is.then_some(volume)
        })
        .await
    }

    pub(crate) async fn volume_gone(&self, name: &str) {
        self.gone(DUMMY, "volumes", "ns", name).await;
    }

    /// Reasons of the events about an object.
    pub(crate) async fn events(&self, name: &str) -> Vec<String> {
        let events = self.list("v1", "events", "ns").await;
        let about = events
            .iter()
            .filter(|e| e["involvedObject"]["name"] == name);
        about
            .map(|e| e["reason"].as_str().expect("a reason").to_owned())
            .collect()
    }

    pub(crate) fn volumes_in_cloud(&self) -> usize {
        let counts = self.cloud.counts();
        counts
            .get(&provider_dummy::cloud::Kind::Volume)
            .copied()
            .unwrap_or(0)
    }
}

impl Provider {
    /// Ends it without letting it do anything more.
    pub(crate) fn kill(mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    /// Number of reconciles that found everything in order.
    pub(crate) fn synced(&self) -> u64 {
        let text = self.metrics.encode();
        text.lines()
            .filter(|l| l.starts_with("crossplane_managed_resource_reconciles_total"))
            .filter(|l| l.contains("outcome=\"synced\""))
            .filter_map(|l| l.rsplit(' ').next()?.parse::<u64>().ok())
            .sum()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

pub(crate) const DUMMY: &str = "dummy.m.secapi.cloud/v1alpha1";

/// A condition of an object.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    ecp_meta::condition::find(object, kind)
}

pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    ecp_meta::object::annotation(object, key)
}

fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.strip_suffix("address") {
        Some(stem) => format!("{stem}addresses"),
        None => format!("{kind}s"),
    }
}

fn merge(object: &mut Value, changes: &Value) {
    match (object, changes) {
        (Value::Object(object), Value::Object(changes)) => {
            for (key, value) in changes {
                if value.is_null() {
                    object.remove(key);
                } else {
                    merge(object.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (object, changes) => *object = changes.clone(),
    }
}
