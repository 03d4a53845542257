//! What the control plane holds, kept in memory by one watch per kind.

mod entry;
mod kind;
mod link;
mod mentions;
mod namespaces;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;

use ecp_xrds::KindInfo;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use entry::{Entry, is_replaced, item_key, regional_key};
pub(crate) use kind::KindCache;
pub(crate) use namespaces::{Namespaces, derived_name};

use crate::control::{Collection, ControlPlane};

/// The caches of all kinds and of the namespaces.
pub(crate) struct Cache {
    kinds: BTreeMap<&'static str, Arc<KindCache>>,
    namespaces: Arc<Namespaces>,
}

impl Cache {
    /// Empty caches.
    pub(crate) fn new() -> Self {
        let kinds = ecp_xrds::kinds()
            .iter()
            .map(|info| (info.kind, Arc::new(KindCache::new(info))))
            .collect();
        Self {
            kinds,
            namespaces: Arc::new(Namespaces::new()),
        }
    }

    /// Starts one watch per cache; they end at `shutdown`.
    pub(crate) fn start(
        &self,
        control: &ControlPlane,
        tasks: &TaskTracker,
        shutdown: &CancellationToken,
    ) {
        for kind in self.kinds.values() {
            let sink: Arc<dyn watch::Sink> = Arc::clone(kind) as _;
            tasks.spawn(watch::run(
                control.clone(),
                kind.collection().clone(),
                sink,
                shutdown.clone(),
            ));
        }
        let sink: Arc<dyn watch::Sink> = Arc::clone(&self.namespaces) as _;
        tasks.spawn(watch::run(
            control.clone(),
            namespaces_collection(),
            sink,
            shutdown.clone(),
        ));
    }

    /// The cache of a kind.
    pub(crate) fn kind(&self, info: &KindInfo) -> &Arc<KindCache> {
        &self.kinds[info.kind]
    }

    /// The cache of a kind by its Kubernetes name, where there is such a kind.
    pub(crate) fn by_kind(&self, kind: &str) -> Option<&Arc<KindCache>> {
        self.kinds.get(kind)
    }

    /// All kinds.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &Arc<KindCache>> {
        self.kinds.values()
    }

    pub(crate) fn namespaces(&self) -> &Arc<Namespaces> {
        &self.namespaces
    }

    /// Waits until every cache was filled once.
    pub(crate) async fn wait_synced(&self) {
        for kind in self.kinds.values() {
            kind.link().wait_synced().await;
        }
        self.namespaces.link().wait_synced().await;
    }

    /// What is not ready to answer: unfilled, or cut off from the control plane.
    pub(crate) fn not_ready(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self
            .kinds
            .values()
            .filter(|k| !k.link().fresh())
            .map(|k| k.info().kind)
            .collect();
        if !self.namespaces.link().fresh() {
            names.push("Namespace");
        }
        names
    }
}

/// Where namespaces are in the Kubernetes API.
pub(crate) fn namespaces_collection() -> Collection {
    Collection::new("", "v1", "namespaces")
}
