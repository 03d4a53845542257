//! Watchers, and the dispatch of events to those who want them.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures::Stream;
use tokio::sync::mpsc;

use crate::api::{Event, Watch, WatchError};
use crate::limits::{WATCH_QUEUE_BYTES_MAX, WATCH_QUEUE_LEN_MAX};

const LIVE: u8 = 0;
const LAGGED: u8 = 1;
/// Prefixes that are not worth a sweep.
const SWEEP_MIN: usize = 64;

/// Watchers by prefix.
///
/// Prefixes that end at a `/` are found by looking up each such prefix of a key, so that an event
/// touches only the watchers that want it; other prefixes are compared one by one.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    by_segment: HashMap<String, Vec<Sender>>,
    by_prefix: Vec<(String, Sender)>,
    /// Prefixes that were left when those of dropped watches were last looked for.
    swept: usize,
}

#[derive(Debug)]
struct Sender {
    queue: mpsc::Sender<Arc<Event>>,
    /// Bytes that wait in the queue.
    bytes: Arc<AtomicUsize>,
    end: Arc<AtomicU8>,
}

impl Hub {
    /// Adds a watcher that first gets `replay`.
    pub(crate) fn add(&mut self, prefix: &str, replay: VecDeque<Arc<Event>>) -> Watch {
        let (queue, events) = mpsc::channel(WATCH_QUEUE_LEN_MAX);
        let end = Arc::new(AtomicU8::new(LIVE));
        let bytes = Arc::new(AtomicUsize::new(0));
        let sender = Sender {
            queue,
            bytes: bytes.clone(),
            end: end.clone(),
        };
        self.sweep();
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
                bytes,
                end,
                ended: false,
            }),
        }
    }

    /// Forgets dropped watches of prefixes where nothing happens any more. Done each time the
    /// prefixes have doubled, so that it costs next to nothing.
    fn sweep(&mut self) {
        if self.by_segment.len() <= 2 * self.swept.max(SWEEP_MIN) {
            return;
        }
        self.by_segment.retain(|_, senders| {
            senders.retain(|s| !s.queue.is_closed());
            !senders.is_empty()
        });
        self.swept = self.by_segment.len();
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
        let size = event.size();
        // One event fits an empty queue, however large it is.
        let waiting = self.bytes.fetch_add(size, Ordering::AcqRel);
        if waiting > 0 && waiting.saturating_add(size) > WATCH_QUEUE_BYTES_MAX {
            self.end.store(LAGGED, Ordering::Release);
            return false;
        }
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
    bytes: Arc<AtomicUsize>,
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
            Poll::Ready(Some(event)) => {
                self.bytes.fetch_sub(event.size(), Ordering::AcqRel);
                Poll::Ready(Some(Ok(event)))
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_watches_of_quiet_prefixes_are_forgotten() {
        let mut hub = Hub::default();
        let kept = hub.add("/kept/", VecDeque::new());
        for n in 0..10_000 {
            drop(hub.add(&format!("/{n}/"), VecDeque::new()));
        }
        assert!(hub.by_segment.len() <= 2 * SWEEP_MIN + 1);
        assert!(hub.by_segment.contains_key("/kept/"));
        drop(kept);
    }
}
