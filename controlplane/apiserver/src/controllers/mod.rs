//! Controllers that are part of the API: garbage collection and the end of namespaces.
//!
//! ```text
//! store ──list, watch──▶ feed ──▶ gc::Graph ────▶ queue ──▶ gc workers ────────┐
//!                          └────▶ Terminating ──▶ queue ──▶ namespace workers ─┴─▶ store
//! ```
//!
//! One feed and a few workers serve all logical clusters. Nothing is polled: an item is worked on
//! because something happened, or again later because it failed. After a restart the feed's first
//! list brings everything back.

mod feed;
mod gc;
mod namespace;
mod queue;
mod stored;

use std::sync::Arc;

use ecp_meta::cluster::ClusterName;

use crate::registry::Resource;
use crate::server::ApiServer;
use crate::storage::KeyParts;

/// Starts the controllers. They end when the server stops.
pub(crate) fn start(server: &Arc<ApiServer>) {
    let gc = gc::Collector::new(server);
    let namespaces = namespace::Lifecycle::new(server);
    for _ in 0..crate::limits::CONTROLLER_WORKERS {
        spawn(server, Arc::clone(&gc).work());
        spawn(server, Arc::clone(&namespaces).work());
    }
    spawn(server, feed::run(Arc::clone(server), gc, namespaces));
}

fn spawn(server: &Arc<ApiServer>, work: impl Future<Output = ()> + Send + 'static) {
    let stopping = server.stopping().clone();
    server.tasks().spawn(async move {
        // Work may be dropped anywhere: every step is one commit, and the next start finds the rest.
        tokio::select! {
            () = stopping.cancelled() => {}
            () = work => {}
        }
    });
}

/// The resource of a store key, at the version its objects are stored in.
fn resource_of(
    server: &ApiServer,
    cluster: &ClusterName,
    parts: &KeyParts<'_>,
) -> Option<Resource> {
    let resources = server.registry().resources(cluster);
    let mut stored = resources.iter().filter(|resource| {
        resource.storage.group == parts.group && resource.storage.resource == parts.resource
    });
    let first = stored.next()?;
    let best = std::iter::once(first)
        .chain(stored)
        .find(|resource| resource.storage_version);
    Some(best.unwrap_or(first).clone())
}
