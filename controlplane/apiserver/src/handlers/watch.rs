//! WATCH.

use std::sync::Arc;

use bytes::Bytes;
use ecp_store::{Entry, Event, EventKind, ListRequest, Revision, StoreError, Watch, WatchError};
use futures::{FutureExt as _, StreamExt as _, stream};
use http::StatusCode;
use rand::Rng as _;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::frames::{FrameId, TAIL, head};
use super::selection::Selection;
use super::{Answer, Request, json_response, read, store_error, wildcard};
use crate::body::ApiBody;
use crate::limits;
use crate::registry::Resource;
use crate::request::{Params, invalid_option};
use crate::server::ApiServer;
use crate::status::Status;
use crate::storage;
use crate::table::{self, Representation};

/// How a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// With what exists now, as ADDED events; at least as new as the revision. `mark` says whether
    /// a bookmark shows where that ends.
    State { not_older: Revision, mark: bool },
    /// With the events after a revision.
    After(Revision),
    /// With the events from now on.
    Now,
}

/// Where a watch begins (apimachinery `ValidateListOptions`, KEP-3157).
fn start(params: &Params) -> Result<Start, Status> {
    let revision = params.revision()?.unwrap_or(Revision(0));
    let matching = params.resource_version_match.as_deref();
    match params.send_initial_events {
        None if matching.is_some() => Err(invalid_option(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        )),
        None if revision == Revision(0) => Ok(Start::State {
            not_older: revision,
            mark: false,
        }),
        None => Ok(Start::After(revision)),
        Some(_) if matching != Some("NotOlderThan") => Err(invalid_option(
            "resourceVersionMatch",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        )),
        Some(true) => Ok(Start::State {
            not_older: revision,
            mark: params.bookmarks,
        }),
        Some(false) if revision == Revision(0) => Ok(Start::Now),
        Some(false) => Ok(Start::After(revision)),
    }
}

/// Answers WATCH.
pub(super) async fn watch(request: &Request<'_>, permit: OwnedSemaphorePermit) -> Answer {
    let place = &request.place;
    let params = &request.params;
    let start = start(params)?;
    let mut params_named = params.clone();
    if let Some(name) = request.name {
        // The legacy `/watch/.../<name>` form.
        let text = format!("metadata.name={name}");
        params_named.fields = ecp_meta::selector::FieldSelector::parse(&text)
            .map_err(|e| Status::bad_request(e.to_string()))?;
    }
    let selection = Selection::of(place.resource, &params_named)?;
    let prefix = place.prefix();
    let opened = open(place.server, &prefix, start).await;
    let opened = match opened {
        Ok(opened) => opened,
        // The client sees the same as when its watch expires later.
        Err(StoreError::Compacted { requested, oldest }) => {
            let status = store_error(StoreError::Compacted { requested, oldest });
            let frame = error_frame(&status);
            let body = ApiBody::stream(stream::once(async { frame }));
            return Ok(json_response(StatusCode::OK, body, request.representation));
        }
        Err(error) => return Err(store_error(error)),
    };
    let watcher = Watcher::new(request, selection, opened, permit);
    let frames = stream::unfold(watcher, |mut watcher| async move {
        let chunk = watcher.next().await?;
        Some((chunk, watcher))
    });
    let body = ApiBody::stream(frames);
    Ok(json_response(StatusCode::OK, body, request.representation))
}

struct Opened {
    initial: Vec<Entry>,
    mark: bool,
    revision: Revision,
    events: Watch,
}

async fn open(server: &ApiServer, prefix: &str, start: Start) -> Result<Opened, StoreError> {
    let wait = |revision: Revision| async move {
        read::wait_for(server, revision)
            .await
            .map_err(|_| StoreError::Future {
                requested: revision,
                current: server.store.revision(),
            })
    };
    let (initial, mark, revision) = match start {
        Start::Now => (Vec::new(), false, server.store.revision()),
        Start::After(revision) => {
            wait(revision).await?;
            (Vec::new(), false, revision)
        }
        Start::State { not_older, mark } => {
            wait(not_older).await?;
            let found = server
                .store
                .list(ListRequest {
                    prefix: prefix.into(),
                    ..ListRequest::default()
                })
                .await?;
            (found.entries, mark, found.revision)
        }
    };
    let events = server.store.watch(prefix, revision).await?;
    Ok(Opened {
        initial,
        mark,
        revision,
        events,
    })
}

/// One client's watch.
struct Watcher {
    server: Arc<ApiServer>,
    resource: Resource,
    selection: Selection,
    representation: Representation,
    all_clusters: bool,
    initial: std::vec::IntoIter<Entry>,
    mark: bool,
    bookmarks: Option<Interval>,
    deadline: Instant,
    /// Cancelled when the definition of the resource changes or goes.
    changed: CancellationToken,
    events: Watch,
    /// Revision that everything sent so far shows.
    sent: Revision,
    first: bool,
    done: bool,
    /// Counts the watch while it lasts.
    _permit: OwnedSemaphorePermit,
}

impl Watcher {
    fn new(
        request: &Request<'_>,
        selection: Selection,
        opened: Opened,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let server = Arc::clone(request.place.server);
        server.metrics.watches(1);
        let min = server.config.watch_timeout_min;
        let life = match request.params.timeout_seconds {
            Some(seconds) if seconds > 0 => {
                std::time::Duration::from_secs(seconds.min(limits::WATCH_SECONDS_MAX))
            }
            _ => min.mul_f64(rand::rng().random_range(1.0..2.0)),
        };
        let period = server.config.bookmark_interval;
        let bookmarks = request.params.bookmarks.then(|| {
            let mut ticks = interval_at(Instant::now() + period, period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        });
        Self {
            resource: request.place.resource.clone(),
            selection,
            representation: request.representation,
            all_clusters: request.place.all_clusters,
            initial: opened.initial.into_iter(),
            mark: opened.mark,
            bookmarks,
            deadline: Instant::now() + life,
            // A watch of all clusters does not end with the definition of one.
            changed: request
                .place
                .resource
                .crd()
                .filter(|_| !request.place.all_clusters)
                .map(|c| c.changed.clone())
                .unwrap_or_default(),
            events: opened.events,
            sent: opened.revision,
            first: true,
            done: false,
            _permit: permit,
            server,
        }
    }

    /// The next chunk; `None` ends the response.
    async fn next(&mut self) -> Option<Bytes> {
        if self.done {
            return None;
        }
        if let Some(chunk) = self.next_initial() {
            return Some(chunk);
        }
        let server = Arc::clone(&self.server);
        loop {
            let wake = tokio::select! {
                biased;
                event = self.events.next() => Wake::Event(event),
                () = server.stopping.cancelled() => Wake::End,
                () = self.changed.cancelled() => Wake::End,
                () = tick(&mut self.bookmarks) => Wake::Bookmark,
                () = tokio::time::sleep_until(self.deadline) => Wake::Deadline,
            };
            let chunk = match wake {
                Wake::Event(event) => self.take(event),
                Wake::End => {
                    let left = self.drain();
                    self.done = true;
                    Some(left.into())
                }
                Wake::Bookmark => Some(self.bookmark()),
                Wake::Deadline => {
                    let last = self.bookmarks.is_some().then(|| self.bookmark());
                    self.done = true;
                    last
                }
            };
            match chunk.filter(|c| !c.is_empty()) {
                Some(chunk) => return Some(chunk),
                None if self.done => return None,
                None => {}
            }
        }
    }

    /// The next chunk of the initial state.
    fn next_initial(&mut self) -> Option<Bytes> {
        let mut out = Vec::new();
        while out.len() < limits::LIST_CHUNK_BYTES {
            let Some(entry) = self.initial.next() else {
                if std::mem::take(&mut self.mark) {
                    let end = json!({"k8s.io/initial-events-end": "true"});
                    self.frame_bookmark(&mut out, Some(end));
                }
                break;
            };
            if self
                .selection
                .matches(&self.resource, &entry.key, &entry.value)
            {
                self.frame(&mut out, "ADDED", &entry.key, &entry.value, entry.modified);
            }
        }
        (!out.is_empty()).then(|| out.into())
    }

    fn take(&mut self, event: Option<Result<Arc<Event>, WatchError>>) -> Option<Bytes> {
        match event {
            Some(Ok(event)) => {
                self.sent = event.revision;
                self.event(&event)
            }
            Some(Err(WatchError::Lagged)) => {
                self.done = true;
                let status = Status::expired("too old resource version: the watch fell behind");
                Some(error_frame(&status))
            }
            Some(Err(WatchError::Closed)) | None => {
                self.done = true;
                None
            }
        }
    }

    /// What one change of the store is to this watch: a selected object may also come into or go
    /// out of the selection.
    fn event(&mut self, event: &Event) -> Option<Bytes> {
        let selected = |value: &[u8]| self.selection.matches(&self.resource, &event.key, value);
        let now = event.kind == EventKind::Put && selected(&event.value);
        let before = event.previous.as_ref().filter(|e| selected(&e.value));
        let (kind, value) = match (now, before) {
            (true, None) => ("ADDED", &event.value),
            (true, Some(_)) => ("MODIFIED", &event.value),
            (false, Some(last)) => ("DELETED", &last.value),
            (false, None) => return None,
        };
        if self.representation == Representation::Object && !self.all_clusters {
            let id = FrameId {
                kind,
                info: self.resource.info(),
                key: &event.key,
                revision: event.revision,
            };
            return Some(self.server.frames.frame(&id, value));
        }
        let mut out = Vec::new();
        self.frame(&mut out, kind, &event.key, value, event.revision);
        Some(out.into())
    }

    /// What is there already, without waiting.
    fn drain(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        // Without the task budget, which could make a channel look empty that is not.
        while !self.done
            && let Some(event) = tokio::task::coop::unconstrained(self.events.next()).now_or_never()
        {
            out.extend(self.take(event).into_iter().flatten());
        }
        out
    }

    /// A bookmark is never ahead of an event that is not sent: the revision is read first, then all
    /// events up to it, which the store has queued by then, are sent.
    fn bookmark(&mut self) -> Bytes {
        let revision = self.server.store.revision();
        let mut out = self.drain();
        if !self.done {
            self.sent = self.sent.max(revision);
            self.frame_bookmark(&mut out, None);
        }
        out.into()
    }

    fn frame_bookmark(&mut self, out: &mut Vec<u8>, annotations: Option<Value>) {
        let mut metadata = json!({"resourceVersion": self.sent.to_string()});
        if let Some(annotations) = annotations {
            metadata["annotations"] = annotations;
        }
        let object = json!({
            "apiVersion": self.resource.api_version(),
            "kind": self.resource.gvk.kind,
            "metadata": metadata,
        });
        self.frame_json(out, "BOOKMARK", object.to_string().as_bytes());
    }

    fn frame(
        &mut self,
        out: &mut Vec<u8>,
        kind: &str,
        key: &str,
        value: &[u8],
        revision: Revision,
    ) {
        if self.all_clusters {
            let object = wildcard::json(&self.server, &self.resource, key, value, revision);
            self.frame_json(out, kind, &object);
        } else if self.representation == Representation::Object {
            head(out, kind);
            storage::write_json(out, &self.resource, value, revision);
            out.extend_from_slice(TAIL);
        } else {
            let object = storage::json(&self.resource, value, revision);
            self.frame_json(out, kind, &object);
        }
    }

    fn frame_json(&mut self, out: &mut Vec<u8>, kind: &str, object: &[u8]) {
        head(out, kind);
        match self.representation {
            Representation::Object => out.extend_from_slice(object),
            other => {
                let first = std::mem::take(&mut self.first);
                let now = self.server.now();
                let shown = table::object(other, &self.resource, object, first, now);
                out.extend_from_slice(&shown);
            }
        }
        out.extend_from_slice(TAIL);
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.server.metrics.watches(-1);
    }
}

enum Wake {
    Event(Option<Result<Arc<Event>, WatchError>>),
    Bookmark,
    Deadline,
    End,
}

async fn tick(interval: &mut Option<Interval>) {
    match interval {
        Some(interval) => {
            interval.tick().await;
        }
        None => std::future::pending().await,
    }
}

fn error_frame(status: &Status) -> Bytes {
    let mut out = Vec::new();
    head(&mut out, "ERROR");
    out.extend_from_slice(&status.to_json());
    out.extend_from_slice(TAIL);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(query: &str) -> Result<Start, u16> {
        start(&Params::parse(query).unwrap()).map_err(|s| s.http_status().as_u16())
    }

    #[test]
    fn watches_begin_where_the_parameters_say() {
        let state = |n, mark| {
            Ok(Start::State {
                not_older: Revision(n),
                mark,
            })
        };
        assert_eq!(of(""), state(0, false));
        assert_eq!(of("resourceVersion=0"), state(0, false));
        assert_eq!(of("resourceVersion=7"), Ok(Start::After(Revision(7))));
        let list = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        assert_eq!(of(list), state(0, false));
        assert_eq!(
            of(&format!("{list}&allowWatchBookmarks=true")),
            state(0, true)
        );
        assert_eq!(of(&format!("{list}&resourceVersion=3")), state(3, false));
        assert_eq!(
            of("sendInitialEvents=false&resourceVersionMatch=NotOlderThan"),
            Ok(Start::Now)
        );
        // Ignoring these would hang informers.
        assert_eq!(of("sendInitialEvents=true"), Err(422));
        assert_eq!(
            of("resourceVersionMatch=NotOlderThan&resourceVersion=3"),
            Err(422)
        );
        assert_eq!(
            of("sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=3"),
            Err(422)
        );
    }
}
