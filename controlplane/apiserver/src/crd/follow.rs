//! Keeps the registry equal to the definitions in the store.

use std::collections::BTreeSet;
use std::sync::Arc;

use ecp_meta::cluster::ClusterName;
use ecp_store::{EventKind, ListRequest, Revision, StoreError, Watch, WatchError};
use futures::StreamExt as _;
use serde_json::Value;

use super::finalize;
use crate::registry::Resource;
use crate::server::ApiServer;
use crate::storage;

/// Loads all definitions and keeps following them in one task.
///
/// # Errors
/// The store cannot be read.
pub(crate) async fn start(server: &Arc<ApiServer>) -> Result<(), StoreError> {
    let Some(definitions) = definitions(server) else {
        return Ok(());
    };
    let (watch, revision) = load(server, &definitions).await?;
    server.registry.advance(revision);
    let task = Arc::clone(server);
    server.tasks.spawn(async move {
        let stopping = task.stopping.clone();
        tokio::select! {
            () = stopping.cancelled() => {}
            () = follow(&task, &definitions, watch) => {}
        }
    });
    Ok(())
}

/// The resource of definitions themselves.
pub(super) fn definitions(server: &ApiServer) -> Option<Resource> {
    server
        .registry
        .resources(&ClusterName::root())
        .find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        .cloned()
}

async fn load(
    server: &Arc<ApiServer>,
    definitions: &Resource,
) -> Result<(Watch, Revision), StoreError> {
    let prefix = storage::prefix(definitions, None, None);
    let found = server
        .store
        .list(ListRequest {
            prefix: prefix.clone(),
            ..ListRequest::default()
        })
        .await?;
    // Before the definitions are compiled: meanwhile this revision could be compacted.
    let watch = server.store.watch(&prefix, found.revision).await?;
    for entry in &found.entries {
        put(
            server,
            definitions,
            &entry.key,
            &entry.value,
            entry.modified,
        );
    }
    let present: BTreeSet<(ClusterName, &str)> =
        found.entries.iter().filter_map(|e| place(&e.key)).collect();
    server
        .registry
        .retain(|cluster, name| present.contains(&(cluster.clone(), name)));
    Ok((watch, found.revision))
}

async fn follow(server: &Arc<ApiServer>, definitions: &Resource, mut watch: Watch) {
    loop {
        match watch.next().await {
            Some(Ok(event)) => {
                match event.kind {
                    EventKind::Put => {
                        put(
                            server,
                            definitions,
                            &event.key,
                            &event.value,
                            event.revision,
                        );
                    }
                    EventKind::Delete => {
                        if let Some((cluster, name)) = place(&event.key) {
                            server.registry.remove(&cluster, name);
                            finalize::freed(server, cluster);
                        }
                    }
                }
                server.registry.advance(event.revision);
            }
            Some(Err(WatchError::Lagged)) => match load(server, definitions).await {
                Ok((fresh, revision)) => {
                    watch = fresh;
                    server.registry.advance(revision);
                }
                Err(error) => {
                    tracing::error!(%error, "definitions cannot be read");
                    return;
                }
            },
            Some(Err(WatchError::Closed)) | None => return,
        }
    }
}

fn put(
    server: &Arc<ApiServer>,
    definitions: &Resource,
    key: &str,
    value: &[u8],
    revision: Revision,
) {
    let Some((cluster, _)) = place(key) else {
        return;
    };
    let crd: Value = storage::decode_at(definitions, value, revision);
    server.registry.put(&cluster, &crd);
    if ecp_meta::object::is_deleting(&crd) {
        finalize::start(server, cluster, &crd);
    }
}

fn place(key: &str) -> Option<(ClusterName, &str)> {
    let parts = storage::parse_key(key)?;
    Some((parts.cluster.parse().ok()?, parts.name))
}
