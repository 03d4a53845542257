//! The Compositions and revisions there are, as snapshots that cost nothing to take.

use std::collections::BTreeMap;
use std::sync::Arc;

use ecp_meta::object;
use parking_lot::RwLock;
use serde_json::Value;

use crate::context::{composition_kind, revision_kind};
use crate::informer::{Change, Handler, Informers, Subscription};

/// Objects by name.
pub(crate) type Snapshot = Arc<BTreeMap<String, Arc<Value>>>;

/// The Compositions and revisions there are.
#[derive(Debug)]
pub(crate) struct Catalogue {
    compositions: Watched,
    revisions: Watched,
}

#[derive(Debug)]
struct Watched {
    snapshot: Arc<RwLock<Snapshot>>,
    subscription: Subscription,
}

impl Watched {
    fn start(informers: &Informers, kind: &crate::api::Kind) -> Self {
        let snapshot: Arc<RwLock<Snapshot>> = Arc::default();
        let shared = Arc::clone(&snapshot);
        let handler: Handler = Arc::new(move |change| update(&shared, change));
        Self {
            snapshot,
            subscription: informers.subscribe(kind, handler),
        }
    }
}

/// There are few of them and they change rarely: a new map for each change is cheap.
fn update(snapshot: &RwLock<Snapshot>, change: Change<'_>) {
    let Some(object) = change.object() else {
        return;
    };
    let mut snapshot = snapshot.write();
    let mut map = BTreeMap::clone(&snapshot);
    match change.new {
        Some(new) => map.insert(object::name(new).to_owned(), Arc::clone(new)),
        None => map.remove(object::name(object)),
    };
    *snapshot = Arc::new(map);
}

impl Catalogue {
    /// Starts to watch. Must come before other subscribers, so that it knows what they hear.
    pub(crate) fn start(informers: &Informers) -> Self {
        Self {
            compositions: Watched::start(informers, &composition_kind()),
            revisions: Watched::start(informers, &revision_kind()),
        }
    }

    /// Waits until both lists are through, as long as it takes.
    pub(crate) async fn wait_synced(&self) {
        for watched in [&self.compositions, &self.revisions] {
            while !watched.subscription.informer().wait_synced().await {
                tracing::debug!("waiting for the Composition CRDs");
            }
        }
    }

    /// All Compositions.
    pub(crate) fn compositions(&self) -> Snapshot {
        Arc::clone(&self.compositions.snapshot.read())
    }

    /// All revisions.
    pub(crate) fn revisions(&self) -> Snapshot {
        Arc::clone(&self.revisions.snapshot.read())
    }

    /// Takes the answer to an own write of a revision.
    pub(crate) fn learn_revision(&self, revision: &Value) {
        self.revisions.subscription.informer().learn(revision);
    }
}
