//! Metrics of the managed resource runtime, named as crossplane-runtime names them.

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use ecp_meta::gvk::GroupVersionKind;

/// The kind a sample is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct KindLabel {
    /// `group/version, Kind=Kind`.
    pub(crate) gvk: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    gvk: String,
    outcome: &'static str,
}

/// Metrics of all kinds that one process serves. Cheap to clone; clones share the samples.
#[derive(Clone, Debug)]
pub struct Metrics {
    exists: Family<KindLabel, Gauge>,
    ready: Family<KindLabel, Gauge>,
    synced: Family<KindLabel, Gauge>,
    first_reconcile: Family<KindLabel, Histogram, fn() -> Histogram>,
    first_readiness: Family<KindLabel, Histogram, fn() -> Histogram>,
    deletion: Family<KindLabel, Histogram, fn() -> Histogram>,
    drift: Family<KindLabel, Histogram, fn() -> Histogram>,
    reconciles: Family<OutcomeLabel, Counter>,
}

/// The numbers of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) exists: i64,
    pub(crate) ready: i64,
    pub(crate) synced: i64,
}

fn histogram() -> Histogram {
    // Upstream's kubebuilder buckets start at seconds; a fast cloud needs milliseconds too.
    Histogram::new([
        0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0,
    ])
}

impl Default for Metrics {
    fn default() -> Self {
        let family = || Family::new_with_constructor(histogram as fn() -> Histogram);
        Self {
            exists: Family::default(),
            ready: Family::default(),
            synced: Family::default(),
            first_reconcile: family(),
            first_readiness: family(),
            deletion: family(),
            drift: family(),
            reconciles: Family::default(),
        }
    }
}

impl Metrics {
    /// Adds the metrics to a registry.
    pub fn register(&self, registry: &mut Registry) {
        let prefix = "crossplane_managed_resource";
        let mut gauge = |name: &str, help: &str, family: &Family<KindLabel, Gauge>| {
            registry.register(format!("{prefix}_{name}"), help, family.clone());
        };
        gauge("exists", "The number of managed resources", &self.exists);
        gauge(
            "ready",
            "The number of managed resources in Ready=True state",
            &self.ready,
        );
        gauge(
            "synced",
            "The number of managed resources in Synced=True state",
            &self.synced,
        );
        let mut seconds =
            |name: &str, help: &str, family: &Family<KindLabel, Histogram, fn() -> Histogram>| {
                registry.register(format!("{prefix}_{name}_seconds"), help, family.clone());
            };
        seconds(
            "first_time_to_reconcile",
            "The time it took for a managed resource to be detected by the controller",
            &self.first_reconcile,
        );
        seconds(
            "first_time_to_readiness",
            "The time it took for a managed resource to become ready first time after creation",
            &self.first_readiness,
        );
        seconds(
            "deletion",
            "The time it took for a managed resource to be deleted",
            &self.deletion,
        );
        seconds(
            "drift",
            "How long ago a managed resource was in sync when it was found out of sync",
            &self.drift,
        );
        registry.register(
            format!("{prefix}_reconciles"),
            "Reconciles by outcome",
            self.reconciles.clone(),
        );
    }

    /// The metrics as OpenMetrics text.
    pub fn encode(&self) -> String {
        let mut registry = Registry::default();
        self.register(&mut registry);
        let mut out = String::new();
        match text::encode(&mut out, &registry) {
            Ok(()) => out,
            Err(std::fmt::Error) => String::new(),
        }
    }

    pub(crate) fn of(&self, gvk: &GroupVersionKind) -> KindMetrics {
        KindMetrics {
            all: self.clone(),
            label: KindLabel {
                gvk: gvk.to_string(),
            },
        }
    }
}

/// The metrics of one kind.
#[derive(Clone, Debug)]
pub(crate) struct KindMetrics {
    all: Metrics,
    label: KindLabel,
}

impl KindMetrics {
    pub(crate) fn set_counts(&self, counts: Counts) {
        self.all
            .exists
            .get_or_create(&self.label)
            .set(counts.exists);
        self.all.ready.get_or_create(&self.label).set(counts.ready);
        self.all
            .synced
            .get_or_create(&self.label)
            .set(counts.synced);
    }

    pub(crate) fn first_reconcile(&self, seconds: f64) {
        self.all
            .first_reconcile
            .get_or_create(&self.label)
            .observe(seconds);
    }

    pub(crate) fn first_readiness(&self, seconds: f64) {
        self.all
            .first_readiness
            .get_or_create(&self.label)
            .observe(seconds);
    }

    pub(crate) fn deletion(&self, seconds: f64) {
        self.all
            .deletion
            .get_or_create(&self.label)
            .observe(seconds);
    }

    pub(crate) fn drift(&self, seconds: f64) {
        self.all.drift.get_or_create(&self.label).observe(seconds);
    }

    pub(crate) fn reconciled(&self, outcome: &'static str) {
        self.all
            .reconciles
            .get_or_create(&OutcomeLabel {
                gvk: self.label.gvk.clone(),
                outcome,
            })
            .inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_upstreams_names() {
        let metrics = Metrics::default();
        let kind = metrics.of(&GroupVersionKind::new("g", "v1", "Thing"));
        kind.set_counts(Counts {
            exists: 3,
            ready: 2,
            synced: 1,
        });
        kind.first_readiness(0.02);
        kind.reconciled("synced");
        let text = metrics.encode();
        for line in [
            "crossplane_managed_resource_exists{gvk=\"g/v1, Kind=Thing\"} 3",
            "crossplane_managed_resource_ready{gvk=\"g/v1, Kind=Thing\"} 2",
            "crossplane_managed_resource_synced{gvk=\"g/v1, Kind=Thing\"} 1",
            "crossplane_managed_resource_first_time_to_readiness_seconds_count{gvk=\"g/v1, Kind=Thing\"} 1",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
