//! Keeps one cache in step with one collection: list, then watch, for ever.
//!
//! kube's `watcher` hides the resource version of a list and of bookmarks. The caches need both:
//! they promise never to be older than a write this process made, so they must know how far the
//! watch has come. Hence this loop, over kube's raw event stream.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::TryStreamExt as _;
use http::Request;
use kube::core::WatchEvent;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::control::{CallError, Collection, ControlPlane};
use crate::limits;

/// What a watch tells a cache. Calls come from one task, in the order of resource versions.
pub(crate) trait Sink: Send + Sync {
    /// The whole collection as of a resource version.
    fn replace(&self, objects: Vec<Value>, resource_version: u64);
    /// An object was added or changed.
    fn apply(&self, object: Value);
    /// An object is gone; this is its last state.
    fn delete(&self, object: Value);
    /// Nothing older than this resource version will follow.
    fn reached(&self, resource_version: u64);
    /// The connection was lost (or found again).
    fn connected(&self, connected: bool);
}

/// Resource versions of one API server are ordered integers (KEP-5504); 0 when it is not one.
pub(crate) fn parse_version(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

/// Runs until `shutdown`.
pub(crate) async fn run(
    control: ControlPlane,
    of: Collection,
    sink: Arc<dyn Sink>,
    shutdown: CancellationToken,
) {
    let forever = async {
        let mut backoff = Backoff::default();
        loop {
            let error = match list(&control, &of, &*sink).await {
                Ok(version) => follow(&control, &of, &*sink, version, &mut backoff).await,
                Err(error) => error,
            };
            // An expired version is news of the server, not a lost connection.
            sink.connected(matches!(error, CallError::Expired(_)));
            tracing::debug!(path = %of.path(None), %error, "list again");
            backoff.wait().await;
        }
    };
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = forever => {}
    }
}

async fn list(
    control: &ControlPlane,
    of: &Collection,
    sink: &dyn Sink,
) -> Result<String, CallError> {
    let mut page = control.list(of, None, None).await?;
    let version = page.resource_version;
    let mut items = page.items;
    while let Some(token) = page.continue_token {
        page = control.list(of, None, Some(&token)).await?;
        items.append(&mut page.items);
    }
    sink.replace(items, parse_version(&version));
    sink.connected(true);
    Ok(version)
}

/// Watches from a version on until only a new list can help; returns why.
async fn follow(
    control: &ControlPlane,
    of: &Collection,
    sink: &dyn Sink,
    mut version: String,
    backoff: &mut Backoff,
) -> CallError {
    let mut stuck = 0;
    loop {
        let started = Instant::now();
        let from = version.clone();
        let mut opened = false;
        let Err(error) = watch(control, of, sink, &mut version, &mut opened).await else {
            // The server ends every watch after a while.
            stuck = 0;
            if started.elapsed() < limits::WATCH_SHORT {
                backoff.wait().await;
            }
            continue;
        };
        if started.elapsed() >= limits::WATCH_SHORT {
            *backoff = Backoff::default();
        }
        if matches!(error, CallError::Expired(_) | CallError::NotFound(_)) {
            return error;
        }
        // What follows the version may be what the server cannot tell or we cannot read. While the
        // server is just not there, a list would be no better.
        stuck = match (version == from, opened) {
            (false, _) => 0,
            (true, true) => stuck + 1,
            (true, false) => stuck,
        };
        if stuck >= limits::WATCH_STUCK_MAX {
            return error;
        }
        sink.connected(false);
        tracing::debug!(path = %of.path(None), %error, "watch failed");
        backoff.wait().await;
    }
}

/// One watch, until the stream fails or the server ends it; `version` follows, and `opened` says
/// whether the server took it.
async fn watch(
    control: &ControlPlane,
    of: &Collection,
    sink: &dyn Sink,
    version: &mut String,
    opened: &mut bool,
) -> Result<(), CallError> {
    let uri = format!(
        "{}?watch=true&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds={}",
        of.path(None),
        limits::WATCH_TIMEOUT.as_secs()
    );
    let request = Request::get(uri)
        .header(http::header::ACCEPT, "application/json")
        .body(Vec::new())
        .map_err(|e| CallError::Unexpected {
            code: 0,
            message: e.to_string(),
        })?;
    let opening = control.client().request_events::<Value>(request);
    let events = tokio::time::timeout(limits::CONTROL_PLANE_TIMEOUT, opening)
        .await
        .map_err(|_| CallError::Unavailable("the watch did not open in time".into()))??;
    *opened = true;
    sink.connected(true);
    let mut events = pin!(events);
    // The server ends the watch after the timeout it was asked for. Silence well beyond that is a
    // dead connection.
    let deadline = tokio::time::sleep(limits::WATCH_TIMEOUT + limits::CONTROL_PLANE_TIMEOUT);
    let mut deadline = pin!(deadline);
    loop {
        let event = tokio::select! {
            event = events.try_next() => event?,
            () = &mut deadline => {
                return Err(CallError::Unavailable("the watch went silent".into()));
            }
        };
        match event {
            None => return Ok(()),
            Some(event) => on_event(event, sink, version)?,
        }
    }
}

fn on_event(
    event: WatchEvent<Value>,
    sink: &dyn Sink,
    version: &mut String,
) -> Result<(), CallError> {
    match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) => {
            ecp_meta::object::resource_version(&object).clone_into(version);
            sink.apply(object);
        }
        WatchEvent::Deleted(object) => {
            ecp_meta::object::resource_version(&object).clone_into(version);
            sink.delete(object);
        }
        WatchEvent::Bookmark(bookmark) => {
            *version = bookmark.metadata.resource_version;
            sink.reached(parse_version(version));
        }
        WatchEvent::Error(status) => return Err(CallError::from(kube::Error::Api(status))),
    }
    Ok(())
}

/// Doubling waits between attempts.
struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            next: limits::WATCH_BACKOFF.0,
        }
    }
}

impl Backoff {
    async fn wait(&mut self) {
        tokio::time::sleep(self.next).await;
        self.next = (self.next * 2).min(limits::WATCH_BACKOFF.1);
    }
}
