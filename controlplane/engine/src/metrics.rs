//! What the engine counts.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// The engine's metrics. Clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    reconciles: Family<ReconcileLabels, Counter>,
    duration: Family<ControllerLabels, Histogram>,
    depth: Family<ControllerLabels, Gauge>,
    writes: Family<WriteLabels, Counter>,
    events_dropped: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerLabels {
    controller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReconcileLabels {
    controller: String,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabels {
    what: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            reconciles: Family::default(),
            duration: Family::new_with_constructor(|| {
                Histogram::new([0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0])
            }),
            depth: Family::default(),
            writes: Family::default(),
            events_dropped: Counter::default(),
        }
    }
}

impl Metrics {
    /// Adds the metrics to a registry, to be served with the rest of the process's.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("ecp_engine");
        registry.register(
            "reconciles",
            "Reconciles by controller and result",
            self.reconciles.clone(),
        );
        registry.register(
            "reconcile_duration_seconds",
            "How long reconciles take",
            self.duration.clone(),
        );
        registry.register(
            "queue_depth",
            "Objects that wait to be reconciled",
            self.depth.clone(),
        );
        registry.register(
            "writes",
            "Writes to the API by what is written",
            self.writes.clone(),
        );
        registry.register(
            "events_dropped",
            "Events that were not written because too many wait",
            self.events_dropped.clone(),
        );
    }

    pub(crate) fn reconciled(&self, controller: &str, result: &'static str, took: Duration) {
        let controller = controller.to_owned();
        self.duration
            .get_or_create(&ControllerLabels {
                controller: controller.clone(),
            })
            .observe(took.as_secs_f64());
        let labels = ReconcileLabels { controller, result };
        self.reconciles.get_or_create(&labels).inc();
    }

    pub(crate) fn queued(&self, controller: &str, depth: usize) {
        let labels = ControllerLabels {
            controller: controller.to_owned(),
        };
        let depth = i64::try_from(depth).unwrap_or(i64::MAX);
        self.depth.get_or_create(&labels).set(depth);
    }

    pub(crate) fn wrote(&self, what: &'static str) {
        self.writes.get_or_create(&WriteLabels { what }).inc();
    }

    pub(crate) fn event_dropped(&self) {
        self.events_dropped.inc();
    }

    /// How often something was written so far: `composite`, `references`, `composed`, `status`,
    /// `claim`, `delete`, `definition`, `revision`, `secret` or `event`.
    pub fn writes(&self, what: &'static str) -> u64 {
        self.writes.get_or_create(&WriteLabels { what }).get()
    }
}
