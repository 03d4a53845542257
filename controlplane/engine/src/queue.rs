//! A work queue: each key is worked on by one worker at a time, and once more if it was added
//! meanwhile.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A queue of keys.
///
/// # Guarantees
/// A key that is added is handed out at least once after that. It is never with two workers.
#[derive(Debug)]
pub(crate) struct Queue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
}

#[derive(Debug)]
struct State<K> {
    ready: VecDeque<K>,
    waiting: BTreeSet<K>,
    working: BTreeSet<K>,
    delayed: BTreeMap<(Instant, u64), K>,
    due: BTreeMap<K, (Instant, u64)>,
    failures: BTreeMap<K, u32>,
    sequence: u64,
}

impl<K: Ord + Clone> Queue<K> {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                ready: VecDeque::new(),
                waiting: BTreeSet::new(),
                working: BTreeSet::new(),
                delayed: BTreeMap::new(),
                due: BTreeMap::new(),
                failures: BTreeMap::new(),
                sequence: 0,
            }),
            changed: Notify::new(),
        }
    }

    /// Adds a key, unless it already waits.
    pub(crate) fn add(&self, key: K) {
        self.state.lock().add(key);
        self.changed.notify_one();
    }

    /// Adds a key after a while. The earliest time counts.
    pub(crate) fn add_after(&self, key: K, delay: Duration) {
        {
            let mut state = self.state.lock();
            let at = Instant::now() + delay;
            if state.due.get(&key).is_some_and(|(due, _)| *due <= at) {
                return;
            }
            state.sequence += 1;
            let slot = (at, state.sequence);
            if let Some(old) = state.due.insert(key.clone(), slot) {
                state.delayed.remove(&old);
            }
            state.delayed.insert(slot, key);
        }
        self.changed.notify_one();
    }

    /// Counts one more failure of a key; returns how many there were in a row.
    pub(crate) fn failed(&self, key: &K) -> u32 {
        let mut state = self.state.lock();
        let count = state.failures.entry(key.clone()).or_insert(0);
        *count = count.saturating_add(1);
        *count
    }

    /// Forgets the failures of a key.
    pub(crate) fn succeeded(&self, key: &K) {
        self.state.lock().failures.remove(key);
    }

    /// The next key. The caller must say when it is [done](Self::done).
    ///
    /// # Cancellation
    /// No key is lost.
    pub(crate) async fn next(&self) -> K {
        loop {
            let changed = self.changed.notified();
            let sleep = {
                let mut state = self.state.lock();
                match state.take(Instant::now()) {
                    Ok(key) => {
                        // Others may be ready, too, and one permit wakes one waiter.
                        if !state.ready.is_empty() {
                            self.changed.notify_one();
                        }
                        return key;
                    }
                    Err(due) => due,
                }
            };
            match sleep {
                Some(at) => tokio::select! {
                    () = changed => {}
                    () = tokio::time::sleep_until(at) => {}
                },
                None => changed.await,
            }
        }
    }

    /// Gives back a key.
    pub(crate) fn done(&self, key: &K) {
        {
            let mut state = self.state.lock();
            state.working.remove(key);
            if !state.waiting.contains(key) {
                return;
            }
            state.ready.push_back(key.clone());
        }
        self.changed.notify_one();
    }

    /// How many keys are worked on or could be.
    pub(crate) fn busy(&self) -> usize {
        let state = self.state.lock();
        state.working.len() + state.ready.len()
    }

    /// How many keys wait.
    pub(crate) fn depth(&self) -> usize {
        self.state.lock().waiting.len()
    }
}

impl<K: Ord + Clone> State<K> {
    fn add(&mut self, key: K) {
        if let Some(slot) = self.due.remove(&key) {
            self.delayed.remove(&slot);
        }
        if !self.waiting.insert(key.clone()) || self.working.contains(&key) {
            return;
        }
        self.ready.push_back(key);
    }

    /// A key that is ready, or when the next one will be.
    fn take(&mut self, now: Instant) -> Result<K, Option<Instant>> {
        while let Some(entry) = self.delayed.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let key = entry.remove();
            self.due.remove(&key);
            self.add(key);
        }
        let Some(key) = self.ready.pop_front() else {
            return Err(self.delayed.first_key_value().map(|((at, _), _)| *at));
        };
        self.waiting.remove(&key);
        self.working.insert(key.clone());
        Ok(key)
    }
}

/// The pause after the `count`th failure in a row: doubling, with up to a tenth more or less.
pub(crate) fn backoff(bounds: (Duration, Duration), count: u32) -> Duration {
    let doublings = count.saturating_sub(1).min(16);
    jitter(bounds.0.saturating_mul(1 << doublings).min(bounds.1))
}

/// A duration, up to a tenth more or less.
pub(crate) fn jitter(duration: Duration) -> Duration {
    duration.mul_f64(rand::random_range(0.9..=1.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_key_is_handed_out_once_however_often_it_is_added() {
        let queue = Queue::new();
        queue.add("a");
        queue.add("a");
        queue.add("b");
        assert_eq!(queue.next().await, "a");
        assert_eq!(queue.next().await, "b");
        assert_eq!((queue.depth(), queue.busy()), (0, 2));
        queue.done(&"a");
        assert_eq!(queue.busy(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_is_worked_on_waits_for_its_worker() {
        let queue = Queue::new();
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        queue.add("a");
        let second = tokio::time::timeout(Duration::from_secs(1), queue.next()).await;
        assert!(second.is_err());
        queue.done(&"a");
        assert_eq!(queue.next().await, "a");
        queue.done(&"a");
        let third = tokio::time::timeout(Duration::from_secs(1), queue.next()).await;
        assert!(third.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_delay_counts_and_adding_overtakes_it() {
        let queue = Queue::new();
        let start = Instant::now();
        queue.add_after("a", Duration::from_secs(5));
        queue.add_after("a", Duration::from_secs(9));
        queue.add_after("a", Duration::from_secs(2));
        assert_eq!(queue.next().await, "a");
        assert_eq!(start.elapsed().as_secs(), 2);
        queue.done(&"a");
        queue.add_after("a", Duration::from_secs(5));
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        queue.done(&"a");
        let nothing = tokio::time::timeout(Duration::from_secs(60), queue.next()).await;
        assert!(nothing.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn every_waiter_gets_a_key() {
        let queue = std::sync::Arc::new(Queue::new());
        let waiters: Vec<_> = (0..4)
            .map(|_| {
                let queue = std::sync::Arc::clone(&queue);
                tokio::spawn(async move { queue.next().await })
            })
            .collect();
        tokio::task::yield_now().await;
        for key in 0..4 {
            queue.add(key);
        }
        let mut got = Vec::new();
        for waiter in waiters {
            got.push(waiter.await.expect("no panic"));
        }
        got.sort_unstable();
        assert_eq!(got, [0, 1, 2, 3]);
    }

    #[test]
    fn backoff_doubles_up_to_its_bound() {
        let bounds = (Duration::from_secs(1), Duration::from_secs(30));
        for (count, want) in [(1, 1.0), (2, 2.0), (5, 16.0), (6, 30.0), (u32::MAX, 30.0)] {
            let got = backoff(bounds, count).as_secs_f64();
            assert!((want * 0.89..=want * 1.11).contains(&got), "{count}: {got}");
        }
    }
}
