//! Watchers, and the dispatch of events to those who want them.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use futures::Stream;
use tokio::sync::mpsc;

use crate::api::{Event, Watch, WatchError};
use crate::limits::WATCH_QUEUE_LEN_MAX;

const LIVE: u8 = 0;
const LAGGED: u8 = 1;

/// Watchers by prefix.
///
/// Prefixes that end at a `/` are found by looking up each such prefix of a key, so that an event
/// touches only the watchers that want it; other prefixes are compared one by one.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    by_segment: HashMap<String, Vec<Sender>>,
    by_prefix: Vec<(String, Sender)>,
}

#[derive(Debug)]
struct Sender {
    queue: mpsc::Sender<Arc<Event>>,
    end: Arc<AtomicU8>,
}

impl Hub {
    /// Adds a watcher that first gets `replay`.
    pub(crate) fn add(&mut self, prefix: &str, replay: VecDeque<Arc<Event>>) -> Watch {
        let (queue, events) = mpsc::channel(WATCH_QUEUE_LEN_MAX);
        let end = Arc::new(AtomicU8::new(LIVE));
        let sender = Sender {
            queue,
            end: end.clone(),
        };
        if prefix.ends_with('/') {
            let senders = self.by_segment.entry(prefix.to_owned()).or_default();
            senders.retain(|s| !s.queue.is_closed());
            senders.push(sender);
        } else {
            self.by_prefix.retain(|(_, s)| !s.queue.is_closed());
            self.by_prefix.push((prefix.to_owned(), sender));
        }
        Watch {
            receiver: Box::pin(Receiver {
                replay,
                events,
                end,
                ended: false,
            }),
        }
    }

    /// Sends one event to every watcher of its key; ends watchers that are gone or too slow.
    pub(crate) fn dispatch(&mut self, event: &Arc<Event>) {
        let key = &*event.key;
        for (at, _) in key.match_indices('/') {
            let prefix = &key[..=at];
            if let Some(senders) = self.by_segment.get_mut(prefix) {
                senders.retain(|s| s.send(event));
                if senders.is_empty() {
                    self.by_segment.remove(prefix);
                }
            }
        }
        self.by_prefix
            .retain(|(prefix, s)| !key.starts_with(prefix.as_str()) || s.send(event));
    }

    /// Ends every watch.
    pub(crate) fn clear(&mut self) {
        self.by_segment.clear();
        self.by_prefix.clear();
    }
}

impl Sender {
    fn send(&self, event: &Arc<Event>) -> bool {
        match self.queue.try_send(event.clone()) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.end.store(LAGGED, Ordering::Release);
                false
            }
            Err(mpsc::error::TrySendError::Closed(_)) => false,
        }
    }
}

struct Receiver {
    replay: VecDeque<Arc<Event>>,
    events: mpsc::Receiver<Arc<Event>>,
    end: Arc<AtomicU8>,
    ended: bool,
}

impl Stream for Receiver {
    type Item = Result<Arc<Event>, WatchError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(event) = self.replay.pop_front() {
            return Poll::Ready(Some(Ok(event)));
        }
        match self.events.poll_recv(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(event)) => Poll::Ready(Some(Ok(event))),
            Poll::Ready(None) if self.ended => Poll::Ready(None),
            Poll::Ready(None) => {
                self.ended = true;
                let lagged = self.end.load(Ordering::Acquire) == LAGGED;
                Poll::Ready(Some(Err(if lagged {
                    WatchError::Lagged
                } else {
                    WatchError::Closed
                })))
            }
        }
    }
}
