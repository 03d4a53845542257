//! What all controllers share.

use std::sync::Arc;

use ecp_fnproto::{FunctionRunner, GrpcRunner};
use ecp_meta::gvk::GroupVersionKind;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Config;
use crate::api::{Api, Kind};
use crate::catalogue::Catalogue;
use crate::events::Recorder;
use crate::informer::Informers;
use crate::mapper::Mapper;
use crate::metrics::Metrics;

/// What all controllers share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) api: Api,
    pub(crate) mapper: Mapper,
    pub(crate) informers: Informers,
    pub(crate) catalogue: Catalogue,
    pub(crate) recorder: Recorder,
    pub(crate) runner: Arc<dyn FunctionRunner>,
    pub(crate) endpoints: Option<GrpcRunner>,
    pub(crate) reconciles_max: usize,
    pub(crate) metrics: Metrics,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

impl Context {
    pub(crate) fn start(config: Config, stop: CancellationToken) -> Arc<Self> {
        let api = Api::new(config.client);
        let tasks = TaskTracker::new();
        let (recorder, writer) = Recorder::new(api.clone(), config.metrics.clone(), stop.clone());
        tasks.spawn(writer);
        let informers = Informers::new(api.clone(), tasks.clone(), stop.clone());
        Arc::new(Self {
            catalogue: Catalogue::start(&informers),
            mapper: Mapper::new(api.clone()),
            api,
            informers,
            recorder,
            runner: config.runner,
            endpoints: config.endpoints,
            reconciles_max: config.reconciles_max.max(1),
            metrics: config.metrics,
            tasks,
            stop,
        })
    }
}

fn apiextensions(version: &str, kind: &str, plural: &str) -> Kind {
    let gvk = GroupVersionKind::new("apiextensions.crossplane.io", version, kind);
    Kind::new(gvk, plural, false)
}

/// XRDs; v1 is the stored version.
pub(crate) fn xrd_kind() -> Kind {
    apiextensions(
        "v1",
        "CompositeResourceDefinition",
        "compositeresourcedefinitions",
    )
}

/// Compositions.
pub(crate) fn composition_kind() -> Kind {
    apiextensions("v1", "Composition", "compositions")
}

/// CompositionRevisions.
pub(crate) fn revision_kind() -> Kind {
    apiextensions("v1", "CompositionRevision", "compositionrevisions")
}

/// FunctionRevisions.
pub(crate) fn function_revision_kind() -> Kind {
    let gvk = GroupVersionKind::new("pkg.crossplane.io", "v1", "FunctionRevision");
    Kind::new(gvk, "functionrevisions", false)
}

/// CustomResourceDefinitions.
pub(crate) fn crd_kind() -> Kind {
    let gvk = GroupVersionKind::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    Kind::new(gvk, "customresourcedefinitions", false)
}

/// Secrets.
pub(crate) fn secret_kind() -> Kind {
    Kind::new(GroupVersionKind::new("", "v1", "Secret"), "secrets", true)
}
