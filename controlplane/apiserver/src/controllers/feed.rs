//! Tells the controllers what is in the store and what happens there.

use std::sync::Arc;

use ecp_meta::cluster::ClusterName;
use ecp_store::{Event, EventKind, ListRequest, Revision, StoreError, Watch, WatchError};
use futures::StreamExt as _;

use super::gc::Collector;
use super::namespace::Lifecycle;
use super::stored::Meta;
use crate::limits;
use crate::server::ApiServer;
use crate::storage::{self, KeyParts};

/// One object, as it is or as it was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub key: &'a Arc<str>,
    pub parts: &'a KeyParts<'a>,
    pub cluster: &'a ClusterName,
    pub meta: &'a Meta,
    /// Revision of what happened.
    pub revision: Revision,
}

/// Runs until the store is closed.
pub(super) async fn run(
    server: Arc<ApiServer>,
    collector: Arc<Collector>,
    namespaces: Arc<Lifecycle>,
) {
    let feed = Feed {
        server,
        collector,
        namespaces,
    };
    let mut pause = limits::CONTROLLER_RETRY_MIN;
    loop {
        let mut watch = match feed.load().await {
            Ok(watch) => watch,
            Err(StoreError::Closed(_)) => return,
            Err(error) => {
                // Many writes meanwhile compact the revision that is read: soon again.
                tracing::warn!(%error, "controllers cannot read the store yet");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(limits::CONTROLLER_RETRY_MAX);
                continue;
            }
        };
        pause = limits::CONTROLLER_RETRY_MIN;
        loop {
            match watch.next().await {
                Some(Ok(event)) => feed.event(&event),
                // Too much happened at once: begin again.
                Some(Err(WatchError::Lagged)) => break,
                Some(Err(WatchError::Closed)) | None => return,
            }
        }
    }
}

/// How the controllers come to know of an object.
#[derive(Clone, Copy, Debug)]
enum Told {
    /// It was there when everything was listed.
    Listed,
    /// It was written or removed.
    Happened(EventKind),
}

struct Feed {
    server: Arc<ApiServer>,
    collector: Arc<Collector>,
    namespaces: Arc<Lifecycle>,
}

impl Feed {
    /// Shows the controllers everything there is, in pages at one revision, and watches from there.
    async fn load(&self) -> Result<Watch, StoreError> {
        let _loading = self.collector.reset().await;
        self.namespaces.reset();
        let mut request = ListRequest {
            prefix: "/".to_owned(),
            limit: limits::CONTROLLER_PAGE,
            ..ListRequest::default()
        };
        loop {
            let page = self.server.store().list(request.clone()).await?;
            for entry in &page.entries {
                self.show(&entry.key, &entry.value, entry.modified, Told::Listed);
            }
            request.at = Some(page.revision);
            match page.entries.last() {
                Some(last) if page.remaining > 0 => request.after = Some(last.key.to_string()),
                _ => {
                    let watch = self.server.store().watch("/", page.revision).await?;
                    self.collector.advance(page.revision);
                    self.namespaces.loaded(page.revision);
                    return Ok(watch);
                }
            }
            // The first start on a large store must not hold up requests.
            tokio::task::yield_now().await;
        }
    }

    fn event(&self, event: &Event) {
        let value = match event.kind {
            EventKind::Put => Some(&event.value),
            EventKind::Delete => event.previous.as_ref().map(|entry| &entry.value),
        };
        if let Some(value) = value {
            let told = Told::Happened(event.kind);
            self.show(&event.key, value, event.revision, told);
        }
        self.collector.advance(event.revision);
    }

    fn show(&self, key: &Arc<str>, value: &[u8], revision: Revision, told: Told) {
        let Some(parts) = storage::parse_key(key) else {
            return;
        };
        // Events own nothing, and there are many of them.
        if (parts.group, parts.resource) == ("", "events") {
            return;
        }
        let Ok(cluster) = parts.cluster.parse() else {
            return;
        };
        let Some(meta) = Meta::of(value) else { return };
        let seen = Seen {
            key,
            parts: &parts,
            cluster: &cluster,
            meta: &meta,
            revision,
        };
        match told {
            Told::Listed => {
                self.collector.put(&seen);
                self.namespaces.listed(&seen);
            }
            Told::Happened(EventKind::Put) => {
                self.collector.put(&seen);
                self.namespaces.put(&seen);
            }
            Told::Happened(EventKind::Delete) => {
                self.collector.deleted(&seen);
                self.namespaces.deleted(&seen);
            }
        }
    }
}
