//! What the facade counts, for Prometheus.

use std::sync::Arc;
use std::time::Duration;

use ecp_xrds::KindInfo;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::cache::Cache;
use crate::path::Target;
use crate::power::{Action, has_power};

/// Media type of the exposition.
pub(crate) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds of the latency histogram, in seconds.
const BUCKETS: [f64; 14] = [
    0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: Arc<str>,
    method: &'static str,
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: Arc<str>,
    method: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: &'static str,
}

/// Counters and histograms of one facade.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    latency: Family<RouteLabels, Histogram, fn() -> Histogram>,
    in_flight: Gauge,
    objects: Family<KindLabels, Gauge>,
    routes: Vec<(&'static KindInfo, [Arc<str>; 2])>,
    actions: Vec<(Action, Arc<str>)>,
    other: Arc<str>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("ecp_facade");
        let requests = Family::default();
        registry.register(
            "requests",
            "Requests by route, method and code",
            requests.clone(),
        );
        let histogram: fn() -> Histogram = || Histogram::new(BUCKETS);
        let latency = Family::new_with_constructor(histogram);
        registry.register_with_unit(
            "request_duration",
            "Time from the first byte of a request to its answer",
            Unit::Seconds,
            latency.clone(),
        );
        let in_flight = Gauge::default();
        registry.register(
            "requests_in_flight",
            "Requests being worked on",
            in_flight.clone(),
        );
        let objects = Family::default();
        registry.register("cached_objects", "Objects held in memory", objects.clone());
        let routes = ecp_xrds::kinds()
            .iter()
            .map(|info| {
                let collection = format!("{}/v1/{}", info.provider, info.collection);
                let item = format!("{collection}/{{name}}");
                (info, [collection.into(), item.into()])
            })
            .collect();
        let actions = ecp_xrds::kinds()
            .iter()
            .filter(|info| has_power(info))
            .flat_map(|info| {
                Action::ALL.map(|action| {
                    let (api, all) = (info.provider, info.collection);
                    let route = format!("{api}/v1/{all}/{{name}}/{}", action.as_str());
                    (action, route.into())
                })
            })
            .collect();
        Self {
            registry,
            requests,
            latency,
            in_flight,
            objects,
            routes,
            actions,
            other: "other".into(),
        }
    }

    /// The label of a target's route: bounded, without names.
    pub(crate) fn route(&self, target: &Target) -> Arc<str> {
        let item = usize::from(target.name.is_some());
        let of_action = |asked| self.actions.iter().find(|(known, _)| *known == asked);
        let of_kind = || self.routes.iter().find(|(known, _)| *known == target.info);
        let route = match target.action {
            Some(action) => of_action(action).map(|(_, route)| route),
            None => of_kind().map(|(_, routes)| &routes[item]),
        };
        route.unwrap_or(&self.other).clone()
    }

    /// The label of everything that is no kind's.
    pub(crate) fn other(&self) -> Arc<str> {
        self.other.clone()
    }

    /// Counts a request as being worked on while the answer lives.
    pub(crate) fn begin(&self) -> InFlight {
        self.in_flight.inc();
        InFlight(self.in_flight.clone())
    }

    /// Counts an answered request.
    pub(crate) fn observe(&self, route: Arc<str>, method: &str, code: u16, took: Duration) {
        let method = bounded(method);
        self.requests
            .get_or_create(&RequestLabels {
                route: route.clone(),
                method,
                code,
            })
            .inc();
        self.latency
            .get_or_create(&RouteLabels { route, method })
            .observe(took.as_secs_f64());
    }

    /// The exposition, in OpenMetrics text.
    pub(crate) fn text(&self, cache: &Cache) -> String {
        for kind in cache.kinds() {
            let held = i64::try_from(kind.len()).unwrap_or(i64::MAX);
            let labels = KindLabels {
                kind: kind.info().kind,
            };
            self.objects.get_or_create(&labels).set(held);
        }
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// Counts down when dropped.
pub(crate) struct InFlight(Gauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// A method of a fixed set, so that clients cannot make new series.
fn bounded(method: &str) -> &'static str {
    const METHODS: [&str; 7] = ["GET", "HEAD", "PUT", "DELETE", "POST", "PATCH", "OPTIONS"];
    METHODS
        .into_iter()
        .find(|known| *known == method)
        .unwrap_or("OTHER")
}
