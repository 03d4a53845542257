//! A queue of things to work on.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::limits;

/// Items to work on, each at most once and by one worker at a time. An item that is added while
/// it is worked on is worked on again; one that failed comes back after a growing delay.
#[derive(Debug)]
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Notify,
}

#[derive(Debug)]
struct State<T> {
    ready: VecDeque<T>,
    /// Items in `ready`, and those to be worked on again when their worker is done.
    wanted: HashSet<T>,
    active: HashSet<T>,
    later: BTreeMap<(Instant, u64), T>,
    failures: HashMap<T, u32>,
    /// Keeps items with equal times apart.
    sequence: u64,
}

impl<T: Clone + Eq + Hash> Queue<T> {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                ready: VecDeque::new(),
                wanted: HashSet::new(),
                active: HashSet::new(),
                later: BTreeMap::new(),
                failures: HashMap::new(),
                sequence: 0,
            }),
            changed: Notify::new(),
        }
    }

    /// Adds an item.
    pub(super) fn add(&self, item: T) {
        if self.state.lock().add(item) {
            self.changed.notify_one();
        }
    }

    /// The next item; it must be given back with [`Queue::done`] or [`Queue::failed`].
    pub(super) async fn next(&self) -> T {
        loop {
            let changed = self.changed.notified();
            let wake_at = {
                let mut state = self.state.lock();
                state.promote(Instant::now());
                if let Some(item) = state.ready.pop_front() {
                    state.wanted.remove(&item);
                    state.active.insert(item.clone());
                    if !state.ready.is_empty() {
                        // A notification may have stood for several items.
                        self.changed.notify_one();
                    }
                    return item;
                }
                state.later.keys().next().map(|(at, _)| *at)
            };
            match wake_at {
                None => changed.await,
                Some(at) => tokio::select! {
                    () = changed => {}
                    () = tokio::time::sleep_until(at) => {}
                },
            }
        }
    }

    /// The item is dealt with.
    pub(super) fn done(&self, item: &T) {
        let mut state = self.state.lock();
        state.failures.remove(item);
        if state.finish(item) {
            self.changed.notify_one();
        }
    }

    /// The item could not be dealt with; it comes back.
    pub(super) fn failed(&self, item: &T) {
        let mut state = self.state.lock();
        let failures = state.failures.entry(item.clone()).or_default();
        *failures = failures.saturating_add(1);
        let delay = delay(*failures);
        if state.finish(item) {
            self.changed.notify_one();
            return;
        }
        state.sequence += 1;
        let key = (Instant::now() + delay, state.sequence);
        state.later.insert(key, item.clone());
        // Somebody must know of the new time.
        self.changed.notify_one();
    }
}

impl<T: Clone + Eq + Hash> State<T> {
    /// Whether a worker has something new to do.
    fn add(&mut self, item: T) -> bool {
        if !self.wanted.insert(item.clone()) || self.active.contains(&item) {
            return false;
        }
        self.ready.push_back(item);
        true
    }

    fn finish(&mut self, item: &T) -> bool {
        self.active.remove(item);
        let again = self.wanted.contains(item);
        if again {
            self.ready.push_back(item.clone());
        }
        again
    }

    fn promote(&mut self, now: Instant) {
        while let Some(entry) = self.later.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let item = entry.remove();
            self.add(item);
        }
    }
}

fn delay(failures: u32) -> Duration {
    let factor = 1u32
        .checked_shl(failures.saturating_sub(1))
        .unwrap_or(u32::MAX);
    let delay = limits::CONTROLLER_RETRY_MIN.saturating_mul(factor);
    delay.min(limits::CONTROLLER_RETRY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_item_added_twice_is_worked_on_once() {
        let queue = Queue::new();
        queue.add(1);
        queue.add(1);
        queue.add(2);
        assert_eq!((queue.next().await, queue.next().await), (1, 2));
        assert!(queue.state.lock().ready.is_empty());
    }

    #[tokio::test]
    async fn an_item_added_while_it_is_worked_on_comes_again_afterwards() {
        let queue = Queue::new();
        queue.add(1);
        let item = queue.next().await;
        queue.add(1);
        assert!(queue.state.lock().ready.is_empty());
        queue.done(&item);
        assert_eq!(queue.next().await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_item_comes_back_later_and_later() {
        let queue = Queue::new();
        queue.add(1);
        let mut waits = Vec::new();
        for _ in 0..3 {
            let before = Instant::now();
            let item = queue.next().await;
            waits.push(before.elapsed());
            queue.failed(&item);
        }
        let unit = limits::CONTROLLER_RETRY_MIN;
        assert!(waits[0].is_zero());
        assert!(waits[1] >= unit && waits[2] >= unit * 2, "{waits:?}");
        assert_eq!(delay(1000), limits::CONTROLLER_RETRY_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn every_worker_gets_something_to_do() {
        let queue = std::sync::Arc::new(Queue::new());
        let workers: Vec<_> = (0..3)
            .map(|_| {
                let queue = std::sync::Arc::clone(&queue);
                tokio::spawn(async move { queue.next().await })
            })
            .collect();
        tokio::task::yield_now().await;
        for item in 0..3 {
            queue.add(item);
        }
        let mut found = Vec::new();
        for worker in workers {
            found.push(worker.await.unwrap());
        }
        found.sort_unstable();
        assert_eq!(found, [0, 1, 2]);
    }
}
