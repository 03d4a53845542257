//! Events are kept for a limited time (kube-apiserver's `--event-ttl`).

use std::sync::Arc;

use ecp_store::{CommitError, Entry, Expect, ListRequest, Op};
use jiff::Timestamp;
use serde::Deserialize;

use crate::handlers::{commit_error, store_error};
use crate::limits::{EVENT_SWEEP_INTERVAL, EVENT_TTL, SWEEP_BATCH};
use crate::server::ApiServer;
use crate::status::Status;
use crate::storage;

/// Stored Events of all clusters.
const PREFIX: &str = "/core/events/";

/// The times of a stored Event.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Times {
    last_timestamp: Option<Timestamp>,
    event_time: Option<Timestamp>,
    series: Option<Series>,
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Series {
    last_observed_time: Option<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    creation_timestamp: Option<Timestamp>,
}

/// Starts the one task that removes old Events of all clusters.
pub(crate) fn start(server: &Arc<ApiServer>) {
    let task = Arc::clone(server);
    server.tasks.spawn(async move {
        let stopping = task.stopping.clone();
        loop {
            tokio::select! {
                () = stopping.cancelled() => return,
                () = tokio::time::sleep(EVENT_SWEEP_INTERVAL) => {}
            }
            if let Err(status) = sweep(&task).await {
                tracing::warn!(%status, "old events not removed");
            }
        }
    });
}

/// Removes the Events that are older than their time to live.
pub(crate) async fn sweep(server: &ApiServer) -> Result<(), Status> {
    let before = server
        .now()
        .checked_sub(jiff::SignedDuration::try_from(EVENT_TTL).unwrap_or_default())
        .unwrap_or(Timestamp::MIN);
    let mut after = None;
    loop {
        let request = ListRequest {
            prefix: PREFIX.into(),
            after: after.take(),
            limit: SWEEP_BATCH,
            at: None,
        };
        let found = server.store.list(request).await.map_err(store_error)?;
        for entry in found.entries.iter().filter(|e| is_older(e, before)) {
            let op = Op::Delete {
                key: entry.key.clone(),
                expect: Expect::Modified(entry.modified),
            };
            match server.store.commit(vec![op]).await {
                // One that has changed is young again.
                Ok(_) | Err(CommitError::Precondition { .. }) => {}
                Err(error) => return Err(commit_error(error)),
            }
        }
        match found.entries.last() {
            Some(last) if found.remaining > 0 => after = Some(last.key.to_string()),
            _ => return Ok(()),
        }
    }
}

fn is_older(entry: &Entry, before: Timestamp) -> bool {
    let times: Times = serde_json::from_slice(storage::raw_json(&entry.value)).unwrap_or_default();
    let seen = [
        times.last_timestamp,
        times.event_time,
        times.series.and_then(|s| s.last_observed_time),
        times.metadata.creation_timestamp,
    ];
    seen.into_iter().flatten().max().is_some_and(|t| t < before)
}

#[cfg(test)]
mod tests {
    use ecp_meta::cluster::ClusterName;
    use ecp_store::MemoryStore;
    use serde_json::json;

    use super::*;
    use crate::server::Config;

    #[tokio::test]
    async fn only_events_past_their_time_are_removed() {
        let store = Arc::new(MemoryStore::new());
        let config = Config {
            clock: || "2026-01-01T02:00:00Z".parse().expect("a time"),
            ..Config::default()
        };
        let server = ApiServer::new(store, config).await.unwrap();
        let root = ClusterName::root();
        let resources = server.registry.resources(&root);
        let events = resources.find("", "v1", "events").unwrap();
        for (name, made, last) in [
            ("old", "2026-01-01T00:00:00Z", "2026-01-01T00:59:00Z"),
            ("repeated", "2026-01-01T00:00:00Z", "2026-01-01T01:30:00Z"),
        ] {
            let event = json!({
                "kind": "Event", "lastTimestamp": last,
                "metadata": {"name": name, "namespace": "default", "creationTimestamp": made}
            });
            let op = Op::Put {
                key: storage::key(events, &root, Some("default"), name),
                value: storage::encode(events, &event),
                expect: Expect::Absent,
            };
            server.store.commit(vec![op]).await.unwrap();
        }
        sweep(&server).await.unwrap();
        let (left, _) = server.internal().list(&root, events, None).await.unwrap();
        let names: Vec<&str> = left.iter().map(|o| o.name()).collect();
        assert_eq!(names, ["repeated"]);
    }
}
