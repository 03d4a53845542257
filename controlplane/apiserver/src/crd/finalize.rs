//! Deletion of a definition: first all its objects, then itself.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use ecp_meta::cluster::ClusterName;
use ecp_meta::object;
use ecp_store::{EventKind, ListRequest};
use futures::StreamExt as _;
use parking_lot::Mutex;
use serde_json::Value;

use super::{establish, follow};
use crate::handlers::{self, CRD_CLEANUP, DeleteOptions, Place, store_error, time};
use crate::registry::{Resource, compile_storage};
use crate::server::ApiServer;
use crate::status::Status;
use crate::storage;

/// Definitions whose deletion is under way, by cluster and uid.
pub(crate) type UnderWay = Mutex<HashSet<(ClusterName, String)>>;

const RETRY: Duration = Duration::from_millis(500);

/// Begins to finish the deletion of a definition, once.
pub(super) fn start(server: &Arc<ApiServer>, cluster: ClusterName, crd: &Value) {
    if !object::finalizers(crd).any(|f| f == CRD_CLEANUP) {
        return;
    }
    let id = (cluster.clone(), object::uid(crd).to_owned());
    if !server.deleting.lock().insert(id.clone()) {
        return;
    }
    let task = Arc::clone(server);
    let crd = crd.clone();
    server.tasks.spawn(async move {
        let stopping = task.stopping.clone();
        tokio::select! {
            () = stopping.cancelled() => {}
            () = finish(&task, &cluster, &crd) => {}
        }
        task.deleting.lock().remove(&id);
    });
}

async fn finish(server: &Arc<ApiServer>, cluster: &ClusterName, crd: &Value) {
    while let Err(status) = try_finish(server, cluster, crd).await {
        tracing::warn!(%cluster, crd = object::name(crd), %status, "definition not deleted yet");
        tokio::time::sleep(RETRY).await;
    }
}

async fn try_finish(
    server: &Arc<ApiServer>,
    cluster: &ClusterName,
    crd: &Value,
) -> Result<(), Status> {
    // Whatever compiles of it: deletion needs no schema.
    if let Some(resource) = compile_storage(crd) {
        delete_objects(server, cluster, &resource).await?;
    }
    let Some(definitions) = follow::definitions(server) else {
        return Ok(());
    };
    let internal = server.internal();
    loop {
        let found = internal
            .get(cluster, &definitions, None, object::name(crd))
            .await?;
        let Some(mut current) = found else {
            return Ok(());
        };
        if current.uid() != object::uid(crd) {
            return Ok(());
        }
        let kept: Vec<String> = object::finalizers(&current.value)
            .filter(|f| *f != CRD_CLEANUP)
            .map(Into::into)
            .collect();
        object::metadata_mut(&mut current.value).insert("finalizers".into(), kept.into());
        match internal.update(&current).await {
            Err(status) if status.reason() == "Conflict" => {}
            Err(status) if status.reason() == "NotFound" => return Ok(()),
            other => return other.map(drop),
        }
    }
}

/// Deletes all objects and waits until the last one, which finalizers may hold, is gone.
async fn delete_objects(
    server: &Arc<ApiServer>,
    cluster: &ClusterName,
    resource: &Resource,
) -> Result<(), Status> {
    let prefix = storage::prefix(resource, Some(cluster), None);
    loop {
        let request = ListRequest {
            prefix: prefix.clone(),
            ..ListRequest::default()
        };
        let found = server.store.list(request).await.map_err(store_error)?;
        if found.entries.is_empty() {
            return Ok(());
        }
        let mut watch = server
            .store
            .watch(&prefix, found.revision)
            .await
            .map_err(store_error)?;
        for entry in &found.entries {
            let Some(parts) = storage::parse_key(&entry.key) else {
                continue;
            };
            if storage::is_deleting(&entry.value) {
                continue;
            }
            let place = Place {
                server,
                cluster,
                resource,
                namespace: parts.namespace,
                all_clusters: false,
            };
            match handlers::delete_object(&place, parts.name, &DeleteOptions::default()).await {
                Err(status) if status.reason() != "NotFound" => return Err(status),
                _ => {}
            }
        }
        // As many removals as there were objects: then it is worth looking again.
        let mut left = found.entries.len();
        while left > 0 {
            match watch.next().await {
                Some(Ok(event)) if event.kind == EventKind::Delete => left -= 1,
                Some(Ok(_)) => {}
                Some(Err(_)) | None => break,
            }
        }
    }
}

/// A definition is gone: others that wanted its names may have them now.
pub(super) fn freed(server: &Arc<ApiServer>, cluster: ClusterName) {
    let task = Arc::clone(server);
    server.tasks.spawn(async move {
        if let Err(status) = accept_waiting(&task, &cluster).await {
            tracing::warn!(%cluster, %status, "names of definitions not decided");
        }
    });
}

async fn accept_waiting(server: &Arc<ApiServer>, cluster: &ClusterName) -> Result<(), Status> {
    let Some(definitions) = follow::definitions(server) else {
        return Ok(());
    };
    let internal = server.internal();
    // Names are decided one definition after the other, each with what the ones before got.
    let _naming = server.naming.lock().await;
    let (mut all, _) = internal.list(cluster, &definitions, None).await?;
    let now = time(server.now());
    for at in 0..all.len() {
        let Some(mut waiting) = all.get(at).cloned() else {
            break;
        };
        if ecp_meta::condition::is_true(&waiting.value, "NamesAccepted") {
            continue;
        }
        let name = waiting.name().to_owned();
        let others: Vec<Value> = all
            .iter()
            .filter(|o| o.name() != name && super::same_group(o.name(), &name))
            .map(|o| o.value.clone())
            .collect();
        establish(&mut waiting.value, &others, &now);
        match internal.update(&waiting).await {
            Ok(written) => {
                if let Some(known) = all.get_mut(at) {
                    *known = written;
                }
            }
            // It changed meanwhile, so that its names were decided again.
            Err(status) if matches!(status.reason(), "Conflict" | "NotFound") => {}
            Err(status) => return Err(status),
        }
    }
    Ok(())
}
