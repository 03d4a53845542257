//! A keyed work queue.
//!
//! # Guarantees
//! - A key is worked on by one at a time; a key added meanwhile is worked on once more afterwards.
//! - A key that is added many times before its turn has one turn.
//! - A key added now overtakes its own delayed turn. Of two delays the earlier wins.
//! - No task and no timer per key.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A queue of keys, shared by those who add and the one who takes.
#[derive(Debug)]
pub struct Queue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
}

#[derive(Debug)]
struct State<K> {
    ready: VecDeque<K>,
    queued: BTreeSet<K>,
    running: BTreeSet<K>,
    /// Keys added while they run.
    dirty: BTreeSet<K>,
    delayed: BTreeSet<(Instant, K)>,
    due: BTreeMap<K, Instant>,
}

impl<K: Clone + Ord> Default for Queue<K> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                ready: VecDeque::new(),
                queued: BTreeSet::new(),
                running: BTreeSet::new(),
                dirty: BTreeSet::new(),
                delayed: BTreeSet::new(),
                due: BTreeMap::new(),
            }),
            changed: Notify::new(),
        }
    }
}

impl<K: Clone + Ord> Queue<K> {
    /// Adds a key, for now.
    pub fn add(&self, key: K) {
        self.state.lock().add(key);
        self.changed.notify_one();
    }

    /// Adds a key, for later.
    pub fn add_after(&self, key: K, delay: Duration) {
        if delay.is_zero() {
            return self.add(key);
        }
        self.state.lock().delay(key, Instant::now() + delay);
        self.changed.notify_one();
    }

    /// Ends the turn of a key that [`Queue::next`] gave out.
    pub fn done(&self, key: &K) {
        let mut state = self.state.lock();
        state.running.remove(key);
        if state.dirty.remove(key) {
            state.add(key.clone());
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Drops the delayed turn of a key.
    pub fn forget(&self, key: &K) {
        let mut state = self.state.lock();
        state.undelay(key);
    }

    /// Waits for the next key. Dropping the future loses nothing.
    pub async fn next(&self) -> K {
        loop {
            let changed = self.changed.notified();
            let due = {
                let mut state = self.state.lock();
                state.release_due(Instant::now());
                if let Some(key) = state.take() {
                    // Another taker may wait for what is left.
                    if !state.ready.is_empty() {
                        self.changed.notify_one();
                    }
                    return key;
                }
                state.delayed.first().map(|(at, _)| *at)
            };
            match due {
                Some(at) => {
                    tokio::select! {
                        () = changed => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
                None => changed.await,
            }
        }
    }

    /// Keys waiting now, running, and delayed.
    pub fn depth(&self) -> (usize, usize, usize) {
        let state = self.state.lock();
        (state.ready.len(), state.running.len(), state.due.len())
    }
}

impl<K: Clone + Ord> State<K> {
    fn add(&mut self, key: K) {
        self.undelay(&key);
        if self.running.contains(&key) {
            self.dirty.insert(key);
        } else if self.queued.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    fn delay(&mut self, key: K, at: Instant) {
        if self.queued.contains(&key) || self.dirty.contains(&key) {
            return;
        }
        match self.due.get(&key) {
            Some(earlier) if *earlier <= at => return,
            Some(_) => self.undelay(&key),
            None => {}
        }
        self.due.insert(key.clone(), at);
        self.delayed.insert((at, key));
    }

    fn undelay(&mut self, key: &K) {
        if let Some(at) = self.due.remove(key) {
            self.delayed.remove(&(at, key.clone()));
        }
    }

    fn release_due(&mut self, now: Instant) {
        while self.delayed.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, key)) = self.delayed.pop_first() {
                self.due.remove(&key);
                self.add(key);
            }
        }
    }

    fn take(&mut self) -> Option<K> {
        let key = self.ready.pop_front()?;
        self.queued.remove(&key);
        self.running.insert(key.clone());
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn none_now(queue: &Queue<&'static str>) {
        let next = tokio::time::timeout(Duration::from_millis(1), queue.next()).await;
        assert!(next.is_err(), "{next:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_added_twice_has_one_turn() {
        let queue = Queue::default();
        queue.add("a");
        queue.add("a");
        queue.add("b");
        assert_eq!(queue.next().await, "a");
        assert_eq!(queue.next().await, "b");
        none_now(&queue).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_added_while_it_runs_has_one_more_turn_afterwards() {
        let queue = Queue::default();
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        queue.add("a");
        queue.add("a");
        none_now(&queue).await;
        queue.done(&"a");
        assert_eq!(queue.next().await, "a");
        queue.done(&"a");
        none_now(&queue).await;
        assert_eq!(queue.depth(), (0, 0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_delayed_key_comes_when_it_is_due() {
        let queue = Queue::default();
        let start = Instant::now();
        queue.add_after("later", Duration::from_secs(60));
        queue.add_after("soon", Duration::from_secs(10));
        assert_eq!(queue.next().await, "soon");
        assert_eq!(start.elapsed().as_secs(), 10);
        assert_eq!(queue.next().await, "later");
        assert_eq!(start.elapsed().as_secs(), 60);
    }

    #[tokio::test(start_paused = true)]
    async fn now_overtakes_later_and_earlier_wins() {
        let queue = Queue::default();
        let start = Instant::now();
        queue.add_after("a", Duration::from_secs(60));
        queue.add_after("a", Duration::from_secs(5));
        queue.add_after("a", Duration::from_secs(30));
        assert_eq!(queue.next().await, "a");
        assert_eq!(start.elapsed().as_secs(), 5);
        queue.done(&"a");
        queue.add_after("a", Duration::from_secs(60));
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        assert_eq!(start.elapsed().as_secs(), 5);
        queue.done(&"a");
        none_now(&queue).await;
        assert_eq!(queue.depth(), (0, 0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_delay_set_while_running_waits_for_the_end() {
        let queue = Queue::default();
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        queue.add_after("a", Duration::from_secs(1));
        tokio::time::advance(Duration::from_secs(2)).await;
        none_now(&queue).await;
        queue.done(&"a");
        assert_eq!(queue.next().await, "a");
    }

    #[tokio::test(start_paused = true)]
    async fn a_forgotten_key_does_not_come_back() {
        let queue = Queue::default();
        queue.add_after("a", Duration::from_secs(1));
        queue.forget(&"a");
        tokio::time::advance(Duration::from_secs(2)).await;
        none_now(&queue).await;
    }
}
