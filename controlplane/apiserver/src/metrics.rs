//! Metrics of the server, in the text format of OpenMetrics.
//!
//! Names are kube-apiserver's where it has the same thing. No series carries a logical cluster, and
//! the number of resources with series of their own is bounded: series must not grow with tenants.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ecp_store::ListRequest;
use http::{HeaderValue, Response, StatusCode, header};
use parking_lot::Mutex;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::auth::Scoped;
use crate::body::ApiBody;
use crate::limits;
use crate::server::ApiServer;
use crate::status::Status;

/// Upper bounds of the latency buckets, in seconds.
const LATENCY_BUCKETS: [f64; 12] = [
    0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5, 10.0,
];

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What a request was about, as far as metrics tell requests apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Operation {
    /// Verb.
    verb: Text,
    /// Group of the resource, or empty.
    group: Text,
    /// Resource, or empty for other paths.
    resource: Text,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    verb: Text,
    group: Text,
    resource: Text,
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Stored {
    group: Text,
    resource: Text,
}

/// A shared label value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Text(Arc<str>);

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl EncodeLabelValue for Text {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        EncodeLabelValue::encode(&&*self.0, encoder)
    }
}

/// Metrics of the server.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// Of other parts in the same process.
    others: Mutex<Vec<Registry>>,
    requests: Family<Outcome, Counter>,
    latencies: Family<Operation, Histogram, fn() -> Histogram>,
    watches: Gauge,
    revision: Gauge,
    objects: Family<Stored, Gauge>,
    known_resources: Mutex<BTreeSet<(String, String)>>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Fresh metrics.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let requests = Family::default();
        let latencies: Family<_, _, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(LATENCY_BUCKETS));
        let (watches, revision) = (Gauge::default(), Gauge::default());
        let objects = Family::default();
        registry.register("apiserver_request", "Answered requests", requests.clone());
        registry.register(
            "apiserver_request_duration_seconds",
            "Time to the answer; to its headers, for a watch",
            latencies.clone(),
        );
        registry.register("apiserver_longrunning_requests", "Watches", watches.clone());
        registry.register(
            "apiserver_storage_objects",
            "Stored objects",
            objects.clone(),
        );
        registry.register(
            "ecp_store_revision",
            "Revision of the last write",
            revision.clone(),
        );
        Self {
            registry,
            others: Mutex::default(),
            requests,
            latencies,
            watches,
            revision,
            objects,
            known_resources: Mutex::default(),
        }
    }

    /// Serves the metrics of another part of the process beside the server's own. Their names must
    /// not clash.
    pub fn serve_too(&self, registry: Registry) {
        self.others.lock().push(registry);
    }

    fn to_text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode_registry(&mut text, &self.registry)?;
        for registry in &*self.others.lock() {
            encode_registry(&mut text, registry)?;
        }
        encode_eof(&mut text)?;
        Ok(text)
    }

    /// What a request is about. `served` says whether the resource exists: names that clients make
    /// up get no series.
    pub(crate) fn operation(&self, verb: &str, scope: &Scoped<'_>, served: bool) -> Operation {
        let (group, resource) = match *scope {
            Scoped::Path(_) => ("", ""),
            Scoped::Resource { .. } if !served => ("", "unknown"),
            Scoped::Resource {
                group, resource, ..
            } => {
                let mut known = self.known_resources.lock();
                let key = (group.to_owned(), resource.to_owned());
                if known.contains(&key) || known.len() < limits::METRIC_RESOURCES_MAX {
                    known.insert(key);
                    (group, resource)
                } else {
                    ("", "other")
                }
            }
        };
        Operation {
            verb: verb.into(),
            group: group.into(),
            resource: resource.into(),
        }
    }

    /// Counts one answered request.
    pub(crate) fn request(
        &self,
        operation: Option<&Operation>,
        status: StatusCode,
        took: Duration,
    ) {
        let unknown;
        let operation = match operation {
            Some(operation) => operation,
            // Refused before it was known what it is about.
            None => {
                unknown = self.operation("", &Scoped::Path(""), false);
                &unknown
            }
        };
        let outcome = Outcome {
            verb: operation.verb.clone(),
            group: operation.group.clone(),
            resource: operation.resource.clone(),
            code: status.as_u16(),
        };
        self.requests.get_or_create(&outcome).inc();
        self.latencies
            .get_or_create(operation)
            .observe(took.as_secs_f64());
    }

    /// Counts a watch that starts (`1`) or ends (`-1`).
    pub fn watches(&self, change: i64) {
        self.watches.inc_by(change);
    }
}

/// Answers `/metrics`.
pub(crate) async fn handle(server: &ApiServer) -> Response<ApiBody> {
    let metrics = &server.metrics;
    metrics
        .revision
        .set(i64::try_from(server.store.revision().0).unwrap_or(i64::MAX));
    if let Err(error) = count_objects(server).await {
        tracing::warn!(%error, "stored objects cannot be counted");
    }
    let Ok(text) = metrics.to_text() else {
        return Status::internal("metrics cannot be written").into_response();
    };
    let mut response = Response::new(ApiBody::from(text));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
    response
}

/// Counts stored objects by resource: the store counts keys without reading values.
async fn count_objects(server: &ApiServer) -> Result<(), ecp_store::StoreError> {
    let mut prefixes = std::collections::BTreeMap::new();
    let root = ecp_meta::cluster::ClusterName::root();
    for cluster in std::iter::once(root).chain(server.registry.clusters()) {
        for resource in server.registry.resources(&cluster).iter() {
            let storage = (
                resource.storage.group.clone(),
                resource.storage.resource.clone(),
            );
            prefixes
                .entry(storage)
                .or_insert_with(|| resource.key_prefix());
        }
        if prefixes.len() > limits::METRIC_RESOURCES_MAX {
            break;
        }
    }
    for ((group, resource), prefix) in prefixes.into_iter().take(limits::METRIC_RESOURCES_MAX) {
        let request = ListRequest {
            prefix,
            limit: 1,
            ..ListRequest::default()
        };
        let found = server.store.list(request).await?;
        let count = found.remaining.saturating_add(found.entries.len() as u64);
        let labels = Stored {
            group: group.as_str().into(),
            resource: resource.as_str().into(),
        };
        let gauge = server.metrics.objects.get_or_create(&labels);
        gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource<'a>(group: &'a str, resource: &'a str) -> Scoped<'a> {
        Scoped::Resource {
            group,
            resource,
            subresource: "",
            namespace: None,
            name: None,
        }
    }

    fn text(metrics: &Metrics) -> String {
        metrics.to_text().unwrap()
    }

    #[test]
    fn metrics_of_other_parts_are_served_too() {
        let (metrics, mut other) = (Metrics::new(), Registry::default());
        other.register("other_things", "Things", Gauge::<i64>::default());
        metrics.serve_too(other);
        let text = text(&metrics);
        assert!(
            text.contains("\nother_things 0\n") && text.contains("ecp_store_revision"),
            "{text}"
        );
        assert_eq!(text.matches("# EOF").count(), 1);
    }

    #[test]
    fn requests_are_counted_by_verb_resource_and_code() {
        let metrics = Metrics::new();
        let operation = metrics.operation("get", &resource("", "secrets"), true);
        metrics.request(Some(&operation), StatusCode::OK, Duration::from_millis(1));
        metrics.request(Some(&operation), StatusCode::OK, Duration::from_millis(1));
        metrics.request(None, StatusCode::BAD_REQUEST, Duration::ZERO);
        let text = text(&metrics);
        let line = "apiserver_request_total{verb=\"get\",group=\"\",resource=\"secrets\",\
                    code=\"200\"} 2";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("code=\"400\"} 1"), "{text}");
    }

    #[test]
    fn made_up_resources_get_no_series_and_real_ones_a_bounded_number() {
        let metrics = Metrics::new();
        let made_up = metrics.operation("get", &resource("x", "made-up"), false);
        metrics.request(Some(&made_up), StatusCode::NOT_FOUND, Duration::ZERO);
        assert!(!text(&metrics).contains("made-up"));
        for n in 0..limits::METRIC_RESOURCES_MAX + 5 {
            metrics.operation("get", &resource("g", &format!("r{n}")), true);
        }
        let over = metrics.operation("get", &resource("g", "one-more"), true);
        assert_eq!(&*over.resource.0, "other");
    }
}
