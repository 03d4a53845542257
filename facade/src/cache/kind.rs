//! All objects of one kind, by namespace and SECA name.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound;
use std::sync::Arc;

use ecp_meta::object;
use ecp_xrds::KindInfo;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use tokio::sync::watch;

use super::entry::Entry;
use super::link::Link;
use super::mentions::Mentions;
use super::watch::Sink;
use crate::control::Collection;

/// Entries of one namespace, by key.
type Shelf = BTreeMap<String, Arc<Entry>>;

#[derive(Default)]
struct State {
    shelves: BTreeMap<String, Shelf>,
    /// Objects whose key an older one has, by namespace and key.
    hidden: HashMap<(String, String), Vec<Arc<Entry>>>,
    /// Where each object is, so that a renamed one is found.
    place_of: HashMap<String, (String, String)>,
    mentions: Mentions,
    /// How far the watch has come.
    reached: u64,
    /// Objects known to be gone before the watch said so.
    gone: HashSet<String>,
}

/// All objects of one kind.
///
/// # Guarantees
/// It is never older than a write that was handed to [`KindCache::written`] or
/// [`KindCache::gone`]: those take effect at once, and no older event or list undoes them.
pub(crate) struct KindCache {
    info: &'static KindInfo,
    collection: Collection,
    state: RwLock<State>,
    waiters: Mutex<HashMap<String, watch::Sender<u64>>>,
    link: Link,
}

impl KindCache {
    pub(crate) fn new(info: &'static KindInfo) -> Self {
        let gvk = info.gvk();
        Self {
            info,
            collection: Collection::new(&gvk.group, &gvk.version, info.plural),
            state: RwLock::default(),
            waiters: Mutex::default(),
            link: Link::new(),
        }
    }

    /// A cache of these objects that nothing keeps in step.
    pub(crate) fn filled(info: &'static KindInfo, objects: Vec<Value>) -> Self {
        let cache = Self::new(info);
        cache.replace(objects, 0);
        cache
    }

    pub(crate) fn info(&self) -> &'static KindInfo {
        self.info
    }

    pub(crate) fn collection(&self) -> &Collection {
        &self.collection
    }

    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    /// The entry with a key in a namespace (empty for cluster-scoped kinds).
    pub(crate) fn get(&self, namespace: &str, key: &str) -> Option<Arc<Entry>> {
        self.state.read().shelves.get(namespace)?.get(key).cloned()
    }

    /// Up to `wanted` entries of a namespace whose keys start with `prefix` and come after
    /// `after`, that `matches` takes; and whether one more would follow.
    pub(crate) fn page(
        &self,
        namespace: &str,
        prefix: &str,
        after: Option<&str>,
        wanted: usize,
        matches: impl Fn(&Entry) -> bool,
    ) -> (Vec<Arc<Entry>>, bool) {
        let from = match after {
            Some(after) => Bound::Excluded(after),
            None => Bound::Included(prefix),
        };
        let state = self.state.read();
        let mut found = Vec::new();
        let shelf = state.shelves.get(namespace).into_iter();
        let rest = shelf.flat_map(|s| s.range::<str, _>((from, Bound::Unbounded)));
        for (_, entry) in rest.take_while(|(key, _)| key.starts_with(prefix)) {
            if !matches(entry) {
                continue;
            }
            if found.len() == wanted {
                return (found, true);
            }
            found.push(Arc::clone(entry));
        }
        (found, false)
    }

    /// The entries of a namespace that mention a name in one of the fields that are searched:
    /// subjects of role assignments, volumes and NICs of instances.
    pub(crate) fn mentioning(&self, namespace: &str, name: &str) -> Vec<Arc<Entry>> {
        let state = self.state.read();
        let shown = |entry: &&Arc<Entry>| {
            let shelf = state.shelves.get(namespace);
            let holder = shelf.and_then(|shelf| shelf.get(entry.key()));
            holder.is_some_and(|holder| holder.uid() == entry.uid())
        };
        let all = state.mentions.of(namespace, name);
        all.filter(shown).cloned().collect()
    }

    /// How many objects are held.
    pub(crate) fn len(&self) -> usize {
        self.state.read().place_of.len()
    }

    /// Takes in an object that this process just wrote or read, unless the cache knows better.
    pub(crate) fn written(&self, object: Value) -> Arc<Entry> {
        let entry = Arc::new(Entry::new(self.info, object));
        let mut state = self.state.write();
        // What the watch has passed, it has told: inserting could bring back a deleted object.
        if entry.resource_version() > state.reached && !state.gone.contains(entry.uid()) {
            state.insert(Arc::clone(&entry));
            drop(state);
            self.notify(entry.uid());
        }
        entry
    }

    /// Forgets an object that this process learned is gone.
    pub(crate) fn gone(&self, uid: &str) {
        let mut state = self.state.write();
        if state.remove(uid) {
            state.gone.insert(uid.into());
        }
        drop(state);
        self.notify(uid);
    }

    /// Signals every change of an object until dropped.
    pub(crate) fn subscribe(self: &Arc<Self>, uid: &str) -> Subscription {
        let changes = self
            .waiters
            .lock()
            .entry(uid.into())
            .or_insert_with(|| watch::Sender::new(0))
            .subscribe();
        Subscription {
            cache: Arc::clone(self),
            uid: uid.into(),
            changes,
        }
    }

    fn notify(&self, uid: &str) {
        if let Some(waiter) = self.waiters.lock().get(uid) {
            waiter.send_modify(|n| *n = n.wrapping_add(1));
        }
    }

    fn notify_all(&self) {
        for waiter in self.waiters.lock().values() {
            waiter.send_modify(|n| *n = n.wrapping_add(1));
        }
    }
}

/// Signals changes of one object. See [`KindCache::subscribe`].
pub(crate) struct Subscription {
    cache: Arc<KindCache>,
    uid: String,
    changes: watch::Receiver<u64>,
}

impl Subscription {
    /// The object as it is, if it still is there.
    pub(crate) fn current(&mut self) -> Option<Arc<Entry>> {
        self.changes.borrow_and_update();
        self.cache.state.read().entry(&self.uid).cloned()
    }

    /// Waits for the next change after the last [`Self::current`].
    pub(crate) async fn changed(&mut self) {
        // The sender stays in the map while this subscription lives.
        if self.changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut waiters = self.cache.waiters.lock();
        // This subscription itself is the last receiver.
        if waiters
            .get(&self.uid)
            .is_some_and(|w| w.receiver_count() <= 1)
        {
            waiters.remove(&self.uid);
        }
    }
}

impl State {
    /// Takes an entry in. Of two objects that are one SECA resource the older one is it, unless
    /// they have one name: then the other is gone.
    fn insert(&mut self, entry: Arc<Entry>) {
        self.remove(entry.uid());
        let place = (entry.namespace().to_owned(), entry.key().to_owned());
        if let Some(holder) = self.holder(&place)
            && holder.object_name() == entry.object_name()
        {
            let uid = holder.uid().to_owned();
            self.remove(&uid);
        }
        self.place_of.insert(entry.uid().to_owned(), place.clone());
        self.mentions.insert(&entry);
        let shelf = self.shelves.entry(place.0.clone()).or_default();
        let shown = match shelf.remove(&place.1) {
            Some(holder) => {
                let (shown, hidden) = in_order(holder, entry);
                self.hidden.entry(place.clone()).or_default().push(hidden);
                shown
            }
            None => entry,
        };
        shelf.insert(place.1, shown);
    }

    fn remove(&mut self, uid: &str) -> bool {
        if let Some(entry) = self.entry(uid).cloned() {
            self.mentions.remove(&entry);
        }
        let Some(place) = self.place_of.remove(uid) else {
            return false;
        };
        let mut hidden = self.hidden.remove(&place).unwrap_or_default();
        hidden.retain(|e| e.uid() != uid);
        if let Some(shelf) = self.shelves.get_mut(&place.0) {
            if shelf.get(&place.1).is_some_and(|e| e.uid() == uid) {
                shelf.remove(&place.1);
                if let Some(next) = take_oldest(&mut hidden) {
                    shelf.insert(place.1.clone(), next);
                }
            }
            if shelf.is_empty() {
                self.shelves.remove(&place.0);
            }
        }
        if !hidden.is_empty() {
            self.hidden.insert(place, hidden);
        }
        true
    }

    /// The entry that is shown at a place.
    fn holder(&self, (namespace, key): &(String, String)) -> Option<&Arc<Entry>> {
        self.shelves.get(namespace)?.get(key)
    }

    fn entry(&self, uid: &str) -> Option<&Arc<Entry>> {
        let place = self.place_of.get(uid)?;
        let hidden = self.hidden.get(place).into_iter().flatten();
        let mut all = self.holder(place).into_iter().chain(hidden);
        all.find(|e| e.uid() == uid)
    }

    fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        let shown = self.shelves.values().flat_map(BTreeMap::values);
        shown.chain(self.hidden.values().flatten())
    }

    fn known_version(&self, uid: &str) -> u64 {
        self.entry(uid).map_or(0, |e| e.resource_version())
    }
}

/// The age of an object, oldest first.
fn age(entry: &Entry) -> (&str, &str) {
    let created = object::meta_str(entry.object(), "creationTimestamp");
    (created.unwrap_or_default(), entry.uid())
}

/// Two entries, the older one first.
fn in_order(a: Arc<Entry>, b: Arc<Entry>) -> (Arc<Entry>, Arc<Entry>) {
    if age(&a) <= age(&b) { (a, b) } else { (b, a) }
}

fn take_oldest(entries: &mut Vec<Arc<Entry>>) -> Option<Arc<Entry>> {
    let oldest = (0..entries.len()).min_by(|a, b| age(&entries[*a]).cmp(&age(&entries[*b])))?;
    Some(entries.swap_remove(oldest))
}

impl Sink for KindCache {
    fn replace(&self, objects: Vec<Value>, resource_version: u64) {
        let mut fresh = State {
            reached: resource_version,
            ..State::default()
        };
        for object in objects {
            fresh.insert(Arc::new(Entry::new(self.info, object)));
        }
        let mut state = self.state.write();
        for uid in std::mem::take(&mut state.gone) {
            // The list may be from before the deletion; the watch will tell.
            if fresh.remove(&uid) {
                fresh.gone.insert(uid);
            }
        }
        for entry in state.entries() {
            if entry.resource_version() > resource_version {
                fresh.insert(Arc::clone(entry));
            }
        }
        *state = fresh;
        drop(state);
        self.notify_all();
    }

    fn apply(&self, object: Value) {
        let entry = Arc::new(Entry::new(self.info, object));
        let mut state = self.state.write();
        state.reached = state.reached.max(entry.resource_version());
        let stale = state.known_version(entry.uid()) >= entry.resource_version()
            || state.gone.contains(entry.uid());
        if !stale {
            state.insert(Arc::clone(&entry));
        }
        drop(state);
        self.notify(entry.uid());
    }

    fn delete(&self, object: Value) {
        let uid = object::uid(&object);
        let version = super::watch::parse_version(object::resource_version(&object));
        let mut state = self.state.write();
        state.reached = state.reached.max(version);
        state.remove(uid);
        state.gone.remove(uid);
        drop(state);
        self.notify(uid);
    }

    fn reached(&self, resource_version: u64) {
        let mut state = self.state.write();
        state.reached = state.reached.max(resource_version);
    }

    fn connected(&self, connected: bool) {
        self.link.set(connected);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cache() -> Arc<KindCache> {
        Arc::new(KindCache::new(
            ecp_xrds::by_kind("BlockStorage").expect("kind"),
        ))
    }

    fn disk(name: &str, version: u64) -> Value {
        json!({"metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"),
            "resourceVersion": version.to_string(),
        }, "spec": {}})
    }

    fn names(page: &[Arc<Entry>]) -> Vec<&str> {
        page.iter().map(|e| e.name()).collect()
    }

    #[test]
    fn a_write_is_seen_at_once_and_no_older_event_undoes_it() {
        let cache = cache();
        cache.replace(vec![disk("a", 1)], 5);
        cache.written(disk("a", 9));
        let version = || cache.get("ns", "a").map(|e| e.resource_version());
        assert_eq!(version(), Some(9));
        cache.apply(disk("a", 7));
        assert_eq!(version(), Some(9));
        cache.replace(vec![disk("a", 7)], 8);
        assert_eq!(version(), Some(9));
        cache.replace(Vec::new(), 10);
        assert_eq!(version(), None);
    }

    #[test]
    fn a_late_write_does_not_bring_back_what_the_watch_saw_deleted() {
        let cache = cache();
        cache.replace(Vec::new(), 5);
        cache.apply(disk("a", 6));
        cache.delete(disk("a", 8));
        cache.written(disk("a", 6));
        assert!(cache.get("ns", "a").is_none());
    }

    #[test]
    fn of_two_objects_with_one_key_the_older_is_shown() {
        let cache = cache();
        let named = |name: &str, created: &str, version: u64| {
            let mut object = disk(name, version);
            object["metadata"]["creationTimestamp"] = json!(created);
            object["spec"]["name"] = json!("d");
            object
        };
        let shown = || cache.get("ns", "d").map(|e| e.object_name().to_owned());
        let (first, second) = ("2026-11-30T10:00:00Z", "2026-11-30T11:00:00Z");
        cache.apply(named("young", second, 2));
        cache.apply(named("old", first, 3));
        cache.apply(named("young", second, 4));
        assert_eq!(shown().as_deref(), Some("old"));
        assert_eq!(cache.len(), 2);
        let mut young = cache.subscribe("uid-young");
        assert_eq!(young.current().expect("hidden").resource_version(), 4);
        cache.replace(vec![named("old", first, 3)], 3);
        assert_eq!(shown().as_deref(), Some("old"));
        cache.delete(named("old", first, 5));
        assert_eq!(shown().as_deref(), Some("young"));
        cache.delete(named("young", second, 6));
        assert_eq!(shown(), None);
        assert_eq!(cache.len(), 0);
        assert!(cache.state.read().hidden.is_empty());
    }

    #[test]
    fn an_object_that_was_made_again_is_not_hidden_by_what_was_there() {
        let cache = cache();
        cache.apply(disk("a", 1));
        let mut again = disk("a", 5);
        again["metadata"]["uid"] = json!("uid-again");
        cache.written(again);
        assert_eq!(cache.get("ns", "a").expect("a").uid(), "uid-again");
        cache.delete(disk("a", 4));
        assert_eq!(cache.get("ns", "a").expect("a").uid(), "uid-again");
        assert_eq!(cache.len(), 1);
    }

    #[test]
    fn what_is_gone_stays_gone_whatever_late_events_say() {
        let cache = cache();
        cache.replace(vec![disk("a", 1)], 5);
        cache.gone("uid-a");
        assert!(cache.get("ns", "a").is_none());
        cache.apply(disk("a", 6));
        cache.replace(vec![disk("a", 6)], 6);
        assert!(cache.get("ns", "a").is_none());
        cache.delete(disk("a", 7));
        assert!(cache.state.read().gone.is_empty());
    }

    #[test]
    fn pages_follow_keys_and_know_whether_more_matches_follow() {
        let cache = cache();
        let all = ["a", "b", "c", "d"];
        cache.replace(all.iter().map(|n| disk(n, 1)).collect(), 1);
        let (page, more) = cache.page("ns", "", None, 2, |_| true);
        assert_eq!((names(&page), more), (vec!["a", "b"], true));
        let (page, more) = cache.page("ns", "", Some("b"), 2, |_| true);
        assert_eq!((names(&page), more), (vec!["c", "d"], false));
        let (page, more) = cache.page("ns", "", None, 1, |e| e.name() == "a");
        assert_eq!((names(&page), more), (vec!["a"], false));
        assert_eq!(cache.page("other", "", None, 2, |_| true).0.len(), 0);
    }

    #[test]
    fn what_mentions_a_name_is_found_until_it_does_not() {
        let cache = KindCache::new(ecp_xrds::by_kind("Instance").expect("kind"));
        let vm = |name: &str, version: u64, boot: &str, more: &[&str]| {
            let mut object = disk(name, version);
            let to = |resource: &str| json!({"resource": resource});
            let nics: Vec<_> = more.iter().map(|nic| to(nic)).collect();
            object["spec"] = json!({
                "bootVolume": {"deviceRef": to(boot)}, "additionalNicRefs": nics,
            });
            object
        };
        let found = |name: &str| {
            let mut all: Vec<_> = cache
                .mentioning("ns", name)
                .iter()
                .map(|e| e.name().to_owned())
                .collect();
            all.sort();
            all
        };
        let urn = "seca.storage/v1/tenants/t/workspaces/w/block-storages/boot";
        cache.replace(
            vec![
                vm("a", 1, urn, &["nics/x", "y"]),
                vm("b", 1, "boot", &["y"]),
            ],
            1,
        );
        assert_eq!(found("boot"), ["a", "b"]);
        assert_eq!(found("x"), ["a"]);
        assert_eq!(found("y"), ["a", "b"]);
        assert!(cache.mentioning("other", "boot").is_empty());
        cache.apply(vm("a", 2, "boot", &[]));
        assert!(found("x").is_empty());
        assert_eq!(found("y"), ["b"]);
        // What another object of the same name hides mentions nothing.
        let mut hidden = vm("c", 3, "boot", &[]);
        hidden["spec"]["name"] = json!("b");
        hidden["metadata"]["creationTimestamp"] = json!("2026-11-30T10:00:00Z");
        cache.apply(hidden);
        assert_eq!(found("boot"), ["a", "b"]);
        cache.delete(vm("b", 4, "boot", &["y"]));
        assert!(found("y").is_empty());
        cache.replace(Vec::new(), 5);
        assert!(found("boot").is_empty());
    }

    #[tokio::test]
    async fn subscribers_hear_of_their_object_only() {
        let cache = cache();
        cache.replace(vec![disk("a", 1), disk("b", 1)], 1);
        let mut a = cache.subscribe("uid-a");
        assert_eq!(a.current().expect("a").resource_version(), 1);
        cache.apply(disk("b", 2));
        assert!(!a.changes.has_changed().expect("open"));
        cache.apply(disk("a", 3));
        a.changed().await;
        assert_eq!(a.current().expect("a").resource_version(), 3);
        cache.delete(disk("a", 4));
        a.changed().await;
        assert!(a.current().is_none());
        drop(a);
        assert!(cache.waiters.lock().is_empty());
    }
}
