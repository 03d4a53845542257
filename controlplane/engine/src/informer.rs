//! Watch caches: one list and watch per kind, shared by everybody who wants to know.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use ecp_meta::gvk::GroupVersionKind;
use ecp_meta::object;
use futures::StreamExt as _;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api::{Api, ApiError, Kind, Watched};
use crate::limits::{SYNC_TIMEOUT, TOMBSTONES_MAX, WATCH_BACKOFF};
use crate::objects::{Labels, Objects, has_labels};
use crate::queue::backoff;

/// Namespace (empty for cluster-scoped objects) and name.
pub(crate) type Key = (String, String);

/// The key of an object.
pub(crate) fn key_of(object: &Value) -> Key {
    (
        object::namespace(object).unwrap_or_default().to_owned(),
        object::name(object).to_owned(),
    )
}

/// A change of one object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change<'a> {
    /// What it was, if it was known.
    pub(crate) old: Option<&'a Arc<Value>>,
    /// What it is, unless it is gone.
    pub(crate) new: Option<&'a Arc<Value>>,
    /// Whether the answer to an own write has told of it.
    pub(crate) own: bool,
}

impl<'a> Change<'a> {
    /// What it is, or was before it went.
    pub(crate) fn object(&self) -> Option<&'a Arc<Value>> {
        self.new.or(self.old)
    }

    /// Whether it may wait for what follows it: it is an own write, or of metadata alone, such as
    /// an annotation that says what the provider is about to do.
    pub(crate) fn can_wait(&self) -> bool {
        let (Some(old), Some(new)) = (self.old, self.new) else {
            return self.own;
        };
        let same = |field| old.get(field) == new.get(field);
        let is_deleting = |object| object::is_deleting(object);
        self.own || same("spec") && same("status") && is_deleting(old) == is_deleting(new)
    }
}

/// Told of each change. Must not block: it runs in the watch's task.
pub(crate) type Handler = Arc<dyn Fn(Change<'_>) + Send + Sync>;

/// The objects of one kind, as of the last event.
pub(crate) struct Informer {
    kind: Kind,
    state: RwLock<State>,
    synced: watch::Sender<bool>,
    stop: CancellationToken,
}

#[derive(Default)]
struct State {
    objects: Objects,
    /// Resource versions of deletions, so that the answer to an older write does not bring an
    /// object back.
    tombstones: BTreeMap<Key, u64>,
    tombstone_order: VecDeque<Key>,
    /// What handlers last heard of the objects that own writes changed since.
    learned: BTreeMap<Key, Option<Arc<Value>>>,
    handlers: BTreeMap<u64, Handler>,
}

impl fmt::Debug for Informer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informer")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// An object without its `managedFields`, which nothing here reads and which make up half of it.
pub(crate) fn slim(mut object: Value) -> Value {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("managedFields");
    }
    object
}

fn version(object: &Value) -> u64 {
    object::resource_version(object).parse().unwrap_or(0)
}

impl Informer {
    /// One object.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Value>> {
        self.state.read().objects.get(key).cloned()
    }

    /// All objects (of one namespace, where given) that satisfy a condition, by namespace and name.
    pub(crate) fn select(
        &self,
        namespace: Option<&str>,
        want: impl Fn(&Value) -> bool,
    ) -> Vec<Arc<Value>> {
        let state = self.state.read();
        let all = state.objects.of(namespace);
        all.filter(|o| want(o)).cloned().collect()
    }

    /// All objects (of one namespace, where given) that have all these labels, by namespace and
    /// name.
    pub(crate) fn labelled(&self, namespace: Option<&str>, labels: &Labels) -> Vec<Arc<Value>> {
        let find = || self.state.read().objects.labelled(namespace, labels);
        find()
            .or_else(|| {
                self.state.write().objects.index(labels);
                find()
            })
            .unwrap_or_else(|| self.select(namespace, |object| has_labels(object, labels)))
    }

    /// Whether the first list is through.
    pub(crate) fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Waits for the first list; `false` if it takes too long.
    pub(crate) async fn wait_synced(&self) -> bool {
        let mut synced = self.synced.subscribe();
        let wait = synced.wait_for(|synced| *synced);
        matches!(tokio::time::timeout(SYNC_TIMEOUT, wait).await, Ok(Ok(_)))
    }

    /// Takes the answer to an own write, which the watch will tell later: one reads what one wrote.
    pub(crate) fn learn(&self, object: &Value) {
        let key = key_of(object);
        let new = version(object);
        let mut state = self.state.write();
        let known = state.objects.get(&key).map_or(0, |o| version(o));
        let gone = state.tombstones.get(&key).copied().unwrap_or(0);
        // Without comparable versions the watch decides alone. Handlers hear of it from the watch.
        if new > known && new > gone {
            let old = state
                .objects
                .insert(key.clone(), Arc::new(slim(object.clone())));
            state.learned.entry(key).or_insert(old);
        }
    }

    fn apply(&self, object: Value) {
        let key = key_of(&object);
        let object = Arc::new(slim(object));
        let (old, own, handlers) = {
            let mut state = self.state.write();
            let known = state.objects.get(&key);
            // An own write may be ahead of the watch.
            if known.is_some_and(|k| version(k) > version(&object)) {
                return;
            }
            state.tombstones.remove(&key);
            let told = state.learned.remove(&key);
            let known = state.objects.insert(key, Arc::clone(&object));
            let own = told.is_some();
            let old = told.unwrap_or(known);
            let handlers: Vec<_> = state.handlers.values().cloned().collect();
            (old, own, handlers)
        };
        for handler in handlers {
            handler(Change {
                old: old.as_ref(),
                new: Some(&object),
                own,
            });
        }
    }

    fn remove(&self, key: &Key, at: u64) {
        let (old, handlers) = {
            let mut state = self.state.write();
            // It may have been made again since.
            if state.objects.get(key).is_some_and(|o| version(o) > at) {
                return;
            }
            state.bury(key, at);
            state.learned.remove(key);
            let Some(old) = state.objects.remove(key) else {
                return;
            };
            (old, state.handlers.values().cloned().collect::<Vec<_>>())
        };
        for handler in handlers {
            handler(Change {
                old: Some(&old),
                new: None,
                own: false,
            });
        }
    }

    /// Registers a handler; returns the objects it must be told of.
    fn register(&self, id: u64, handler: Handler) -> Vec<Arc<Value>> {
        let mut state = self.state.write();
        state.handlers.insert(id, handler);
        state.objects.of(None).cloned().collect()
    }

    /// Returns whether nobody listens any more.
    fn unsubscribe(&self, id: u64) -> bool {
        let mut state = self.state.write();
        state.handlers.remove(&id);
        state.handlers.is_empty()
    }

    async fn run(self: Arc<Self>, api: Api) {
        let mut failures = 0;
        while !self.stop.is_cancelled() {
            let round = tokio::select! {
                () = self.stop.cancelled() => return,
                round = self.list_and_watch(&api, &mut failures) => round,
            };
            let Err(error) = round else { continue };
            failures += 1;
            let pause = backoff(WATCH_BACKOFF, failures);
            tracing::debug!(gvk = %self.kind.gvk, %error, ?pause, "watch broke off");
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Lists, then watches until the version it has is too old.
    async fn list_and_watch(&self, api: &Api, failures: &mut u32) -> Result<(), ApiError> {
        let (objects, mut version) = match api.list(&self.kind).await {
            Err(error) if error.is_not_found() => {
                // The kind is gone: so are its objects.
                self.clear();
                return Err(error);
            }
            listed => listed?,
        };
        self.replace_all(objects, version.parse().unwrap_or(0));
        self.synced.send_replace(true);
        loop {
            let started = Instant::now();
            let mut events = match api.watch(&self.kind, &version).await {
                Err(error) if error.is_expired() => return Ok(()),
                watched => watched?,
            };
            while let Some(event) = events.next().await {
                match event {
                    Ok(Watched::Applied(object)) => {
                        version = object::resource_version(&object).to_owned();
                        self.apply(object);
                    }
                    Ok(Watched::Deleted(object)) => {
                        version = object::resource_version(&object).to_owned();
                        self.remove(&key_of(&object), version.parse().unwrap_or(0));
                    }
                    Ok(Watched::Bookmark(at)) => version = at,
                    Err(error) if error.is_expired() => return Ok(()),
                    Err(error) => return Err(error),
                }
                *failures = 0;
            }
            if started.elapsed() < WATCH_BACKOFF.1 {
                // Watches last minutes: whoever ends them at once is not asked at once again.
                return Err(ApiError::Transport("the watch ended early".into()));
            }
        }
    }

    fn clear(&self) {
        let state = self.state.read();
        let keys: Vec<Key> = state.objects.iter().map(|(key, _)| key.clone()).collect();
        drop(state);
        for key in keys {
            let last = self.get(&key).map_or(0, |o| version(&o));
            self.remove(&key, last);
        }
    }

    fn replace_all(&self, objects: Vec<Value>, at: u64) {
        let listed: BTreeMap<Key, Value> = objects.into_iter().map(|o| (key_of(&o), o)).collect();
        let gone: Vec<Key> = {
            let state = self.state.read();
            state
                .objects
                .iter()
                .filter(|(key, known)| !listed.contains_key(*key) && version(known) <= at)
                .map(|(key, _)| key.clone())
                .collect()
        };
        for key in gone {
            self.remove(&key, at);
        }
        for object in listed.into_values() {
            let is_news = {
                let (state, key) = (self.state.read(), key_of(&object));
                let known = state.objects.get(&key).map(|known| version(known));
                // The answer to an own write may hold a change of somebody else, too.
                known != Some(version(&object)) || state.learned.contains_key(&key)
            };
            if is_news {
                self.apply(object);
            }
        }
    }
}

impl State {
    fn bury(&mut self, key: &Key, at: u64) {
        if self.tombstones.insert(key.clone(), at).is_none() {
            self.tombstone_order.push_back(key.clone());
        }
        while self.tombstone_order.len() > TOMBSTONES_MAX {
            if let Some(oldest) = self.tombstone_order.pop_front() {
                self.tombstones.remove(&oldest);
            }
        }
    }
}

/// The informers of all kinds that somebody wants to know of.
#[derive(Clone, Debug)]
pub(crate) struct Informers {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    api: Api,
    informers: Mutex<BTreeMap<GroupVersionKind, Arc<Informer>>>,
    next_id: AtomicU64,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// Somebody's interest in a kind; ends when dropped. The watch ends with the last one.
#[derive(Debug)]
pub(crate) struct Subscription {
    informer: Arc<Informer>,
    id: u64,
    shared: Arc<Shared>,
}

impl Subscription {
    /// The cache.
    pub(crate) fn informer(&self) -> &Arc<Informer> {
        &self.informer
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        // Under the lock, so that nobody subscribes to an informer that is about to stop.
        let mut informers = self.shared.informers.lock();
        if self.informer.unsubscribe(self.id) {
            self.informer.stop.cancel();
            let gvk = &self.informer.kind.gvk;
            if informers
                .get(gvk)
                .is_some_and(|i| Arc::ptr_eq(i, &self.informer))
            {
                informers.remove(gvk);
            }
        }
    }
}

impl Informers {
    pub(crate) fn new(api: Api, tasks: TaskTracker, stop: CancellationToken) -> Self {
        Self {
            shared: Arc::new(Shared {
                api,
                informers: Mutex::default(),
                next_id: AtomicU64::new(0),
                tasks,
                stop,
            }),
        }
    }

    /// The cache of a kind, if somebody watches it.
    pub(crate) fn get(&self, gvk: &GroupVersionKind) -> Option<Arc<Informer>> {
        self.shared.informers.lock().get(gvk).cloned()
    }

    /// The cache of a kind, if somebody watches it and its first list is through.
    pub(crate) fn synced(&self, gvk: &GroupVersionKind) -> Option<Arc<Informer>> {
        let informers = self.shared.informers.lock();
        informers.get(gvk).filter(|i| i.is_synced()).cloned()
    }

    /// Watches a kind. The handler is told of all objects there are, then of each change.
    pub(crate) fn subscribe(&self, kind: &Kind, handler: Handler) -> Subscription {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let mut informers = self.shared.informers.lock();
        let informer = informers.entry(kind.gvk.clone()).or_insert_with(|| {
            let informer = Arc::new(Informer {
                kind: kind.clone(),
                state: RwLock::default(),
                synced: watch::Sender::new(false),
                stop: self.shared.stop.child_token(),
            });
            let task = Arc::clone(&informer).run(self.shared.api.clone());
            self.shared.tasks.spawn(task);
            informer
        });
        let informer = Arc::clone(informer);
        let existing = informer.register(id, Arc::clone(&handler));
        drop(informers);
        for object in &existing {
            handler(Change {
                old: None,
                new: Some(object),
                own: false,
            });
        }
        Subscription {
            informer,
            id,
            shared: Arc::clone(&self.shared),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn disk(version: u64) -> Value {
        json!({"metadata": {"name": "d", "namespace": "ns", "resourceVersion": version.to_string()}})
    }

    fn informer() -> (Informer, Arc<Mutex<Vec<u64>>>) {
        let informer = Informer {
            kind: Kind::new(
                GroupVersionKind::new("ex.test", "v1", "Disk"),
                "disks",
                true,
            ),
            state: RwLock::default(),
            synced: watch::Sender::new(false),
            stop: CancellationToken::new(),
        };
        let told: Arc<Mutex<Vec<u64>>> = Arc::default();
        let tell = Arc::clone(&told);
        informer.register(
            0,
            Arc::new(move |change| tell.lock().push(change.object().map_or(0, |o| version(o)))),
        );
        (informer, told)
    }

    #[test]
    fn an_own_write_is_told_by_the_next_list_if_the_watch_broke_off_before_it() {
        let (informer, told) = informer();
        informer.replace_all(vec![disk(1)], 1);
        informer.learn(&disk(3));
        informer.replace_all(vec![disk(3)], 3);
        assert_eq!(*told.lock(), [1, 3]);
        informer.replace_all(vec![disk(3)], 4);
        assert_eq!(*told.lock(), [1, 3], "once");
    }

    #[test]
    fn a_change_is_told_from_what_was_told_before_whatever_was_written_meanwhile() {
        let (informer, _) = informer();
        informer.apply(disk(1));
        let olds: Arc<Mutex<Vec<Option<u64>>>> = Arc::default();
        let tell = Arc::clone(&olds);
        let handler: Handler =
            Arc::new(move |change| tell.lock().push(change.old.map(|o| version(o))));
        informer.register(1, handler);
        informer.learn(&disk(3));
        informer.learn(&disk(4));
        informer.apply(disk(4));
        informer.apply(disk(5));
        assert_eq!(*olds.lock(), [Some(1), Some(4)]);
    }

    #[test]
    fn own_writes_and_changes_of_metadata_can_wait() {
        let can_wait = |old: Option<Value>, new: Option<Value>, own| {
            let (old, new) = (old.map(Arc::new), new.map(Arc::new));
            let (old, new) = (old.as_ref(), new.as_ref());
            Change { old, new, own }.can_wait()
        };
        let with = |field: &str, value: Value| {
            let mut disk = disk(2);
            disk[field] = value;
            Some(disk)
        };
        let (one, two) = (Some(disk(1)), Some(disk(2)));
        assert!(can_wait(one.clone(), two.clone(), false));
        assert!(can_wait(None, one.clone(), true));
        assert!(can_wait(one.clone(), with("status", json!({})), true));
        for (old, new) in [
            (None, one.clone()),
            (one.clone(), None),
            (one.clone(), with("status", json!({}))),
            (one.clone(), with("spec", json!({}))),
            (one, with("metadata", json!({"deletionTimestamp": "x"}))),
        ] {
            assert!(
                !can_wait(old.clone(), new.clone(), false),
                "{old:?} {new:?}"
            );
        }
    }

    #[test]
    fn handlers_are_told_which_changes_are_own() {
        let (informer, _) = informer();
        let owns: Arc<Mutex<Vec<bool>>> = Arc::default();
        let tell = Arc::clone(&owns);
        informer.register(1, Arc::new(move |change| tell.lock().push(change.own)));
        informer.apply(disk(1));
        informer.learn(&disk(2));
        informer.apply(disk(2));
        informer.apply(disk(3));
        assert_eq!(*owns.lock(), [false, true, false]);
    }

    #[test]
    fn late_events_do_not_undo_own_writes_nor_bring_back_what_is_gone() {
        let (informer, told) = informer();
        informer.apply(disk(1));
        informer.learn(&disk(3));
        informer.apply(disk(2));
        let key = key_of(&disk(0));
        assert_eq!(informer.get(&key).map(|o| version(&o)), Some(3));
        informer.apply(disk(3));
        informer.remove(&key, 5);
        informer.learn(&disk(4));
        assert!(informer.get(&key).is_none());
        assert_eq!(*told.lock(), [1, 3, 3]);
    }
}
