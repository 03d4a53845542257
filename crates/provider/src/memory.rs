//! What a controller remembers about each object between reconciles. Losing it costs a few extra
//! observations and nothing else.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use kube::api::DynamicObject;
use parking_lot::Mutex;
use tokio::time::Instant;

use ecp_meta::keys;

use crate::config::ConfigRef;
use crate::key::Key;
use crate::limits::OWN_WRITES_MAX;
use crate::metrics::Counts;

/// When an object is looked at again without being asked to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Due {
    /// Never seen: now.
    #[default]
    Now,
    /// At a time.
    At(Instant),
    /// Only when something changes.
    Never,
}

/// What is remembered about one object.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// Failures in a row.
    pub(crate) failures: u32,
    /// Observations in a row in which the cloud was working on it.
    pub(crate) settles: u32,
    /// Hash of the last event about its state, so that it is not repeated.
    pub(crate) last_said: Option<u64>,
    /// Configuration it uses.
    pub(crate) config: Option<ConfigRef>,
    /// When it was last seen in sync.
    pub(crate) in_sync_at: Option<Instant>,
    pub(crate) ready: bool,
    pub(crate) synced: bool,
    /// Counted in the metrics.
    counted: bool,
    due: Due,
    forced: bool,
    event: Option<(String, u64)>,
    /// Resource versions of own writes, oldest first.
    own: VecDeque<String>,
    /// Digest of the object as last handled.
    seen: Option<u64>,
    /// External name.
    name: Option<String>,
}

/// Whether a turn has something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Run,
    /// Nothing new; wake again at this time, if at all.
    Skip(Option<Instant>),
}

/// The memory of one controller.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    records: Mutex<Records>,
}

#[derive(Debug, Default)]
struct Records {
    by_key: BTreeMap<Key, Record>,
    /// Keys by external name. Objects that only observe may share one.
    by_name: BTreeMap<String, BTreeSet<Key>>,
    counts: Counts,
}

impl Records {
    /// Changes the external name that a key is found by.
    fn rename(&mut self, key: &Key, name: Option<&String>) {
        let Some(record) = self.by_key.get_mut(key) else {
            return;
        };
        if record.name.as_ref() == name {
            return;
        }
        let old = std::mem::replace(&mut record.name, name.cloned());
        self.forget_name(key, old);
        if let Some(name) = name {
            let keys = self.by_name.entry(name.clone()).or_default();
            keys.insert(key.clone());
        }
    }

    fn forget_name(&mut self, key: &Key, name: Option<String>) {
        let Some(name) = name else {
            return;
        };
        if let Some(keys) = self.by_name.get_mut(&name) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_name.remove(&name);
            }
        }
    }
}

impl Memory {
    /// A watch told that an object was added or changed.
    pub(crate) fn on_event(&self, key: &Key, object: &DynamicObject) {
        let mut records = self.records.lock();
        let record = records.by_key.entry(key.clone()).or_default();
        let known = std::mem::replace(&mut record.counted, true);
        record.event = Some((resource_version(object), digest(object)));
        records.counts.exists += i64::from(!known);
        records.rename(key, external_name(object));
    }

    /// A watch told that an object is gone.
    pub(crate) fn on_removed(&self, key: &Key) {
        let mut records = self.records.lock();
        if let Some(record) = records.by_key.remove(key) {
            records.counts.exists -= i64::from(record.counted);
            records.counts.ready -= i64::from(record.ready);
            records.counts.synced -= i64::from(record.synced);
            records.forget_name(key, record.name);
        }
    }

    /// The object must be looked at, whatever the watch says; failures are forgiven.
    pub(crate) fn force(&self, key: &Key) {
        if let Some(record) = self.records.lock().by_key.get_mut(key) {
            record.forced = true;
            record.failures = 0;
        }
    }

    /// All keys whose objects use a configuration.
    pub(crate) fn users_of(&self, config: &ConfigRef) -> Vec<Key> {
        let records = self.records.lock();
        let uses = |r: &Record| r.config.as_ref() == Some(config);
        let users = records.by_key.iter().filter(|(_, r)| uses(r));
        users.map(|(key, _)| key.clone()).collect()
    }

    /// The keys of the objects with an external name.
    pub(crate) fn named(&self, name: &str) -> Vec<Key> {
        let records = self.records.lock();
        let keys = records.by_name.get(name);
        keys.into_iter().flatten().cloned().collect()
    }

    /// All keys.
    pub(crate) fn keys(&self) -> Vec<Key> {
        self.records.lock().by_key.keys().cloned().collect()
    }

    /// Whether a turn that has come needs to run. Echoes of own writes do not.
    pub(crate) fn begin(&self, key: &Key, now: Instant) -> Turn {
        let mut records = self.records.lock();
        let Some(record) = records.by_key.get_mut(key) else {
            return Turn::Skip(None);
        };
        let forced = std::mem::take(&mut record.forced);
        let news = record.event.take().is_some_and(|(version, digest)| {
            !record.own.contains(&version) && record.seen != Some(digest)
        });
        let due = match record.due {
            Due::Now => true,
            Due::At(at) => at <= now,
            Due::Never => false,
        };
        if news {
            // What failed may have been changed because it failed.
            record.failures = 0;
        }
        if forced || news || due {
            return Turn::Run;
        }
        match record.due {
            Due::At(at) => Turn::Skip(Some(at)),
            Due::Now | Due::Never => Turn::Skip(None),
        }
    }

    /// When to look again.
    pub(crate) fn end(&self, key: &Key, due: Due) {
        if let Some(record) = self.records.lock().by_key.get_mut(key) {
            record.due = due;
        }
    }

    /// The object as it was read, or as an update wrote that fails when somebody else was faster:
    /// events that show it again are no news.
    pub(crate) fn handled(&self, key: &Key, object: &DynamicObject) {
        self.update(key, |record| {
            record.seen = Some(digest(object));
            if record.own.len() >= OWN_WRITES_MAX {
                record.own.pop_front();
            }
            record.own.push_back(resource_version(object));
        });
        // The cloud may tell of it before the watch does.
        self.records.lock().rename(key, external_name(object));
    }

    /// The answer to a patch of `before` that should have left `expected`. A patch does not fail
    /// when somebody else was faster, so the answer may hold a change that nobody has looked at:
    /// then the event that tells of it must stay news.
    pub(crate) fn patched(&self, key: &Key, expected: &DynamicObject, answer: &DynamicObject) {
        if digest(expected) == digest(answer) {
            self.handled(key, answer);
        } else {
            // A later patch of this turn is made from the answer and would count it as handled.
            self.update(key, |record| record.forced = true);
        }
    }

    /// Changes a record, if the object is still there.
    pub(crate) fn update<T>(&self, key: &Key, change: impl FnOnce(&mut Record) -> T) -> Option<T> {
        let mut records = self.records.lock();
        let records = &mut *records;
        let record = records.by_key.get_mut(key)?;
        let (ready, synced) = (record.ready, record.synced);
        let result = change(record);
        records.counts.ready += i64::from(record.ready) - i64::from(ready);
        records.counts.synced += i64::from(record.synced) - i64::from(synced);
        Some(result)
    }

    pub(crate) fn counts(&self) -> Counts {
        self.records.lock().counts
    }
}

fn resource_version(object: &DynamicObject) -> String {
    object.metadata.resource_version.clone().unwrap_or_default()
}

fn external_name(object: &DynamicObject) -> Option<&String> {
    let annotations = object.metadata.annotations.as_ref()?;
    annotations.get(keys::EXTERNAL_NAME)
}

/// A digest of what a provider reacts to: the spec (by its generation), labels, annotations,
/// finalizers, deletion. Not the status.
fn digest(object: &DynamicObject) -> u64 {
    let meta = &object.metadata;
    let mut hasher = DefaultHasher::new();
    meta.uid.hash(&mut hasher);
    meta.generation.hash(&mut hasher);
    meta.deletion_timestamp.is_some().hash(&mut hasher);
    meta.labels.hash(&mut hasher);
    meta.annotations.hash(&mut hasher);
    meta.finalizers.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn object(version: &str, generation: i64) -> DynamicObject {
        serde_json::from_value(json!({
            "metadata": {
                "name": "a", "namespace": "n", "uid": "u",
                "resourceVersion": version, "generation": generation,
            },
        }))
        .expect("an object")
    }

    fn key() -> Key {
        Key::new("n", "a")
    }

    #[tokio::test(start_paused = true)]
    async fn echoes_of_own_writes_are_skipped() {
        let memory = Memory::default();
        let now = Instant::now();
        memory.on_event(&key(), &object("1", 1));
        assert_eq!(memory.begin(&key(), now), Turn::Run);
        memory.handled(&key(), &object("1", 1));
        memory.handled(&key(), &object("2", 1));
        memory.end(&key(), Due::Never);
        memory.on_event(&key(), &object("2", 1));
        assert_eq!(memory.begin(&key(), now), Turn::Skip(None));
        memory.on_event(&key(), &object("3", 1));
        assert_eq!(
            memory.begin(&key(), now),
            Turn::Skip(None),
            "status by others"
        );
        memory.on_event(&key(), &object("4", 2));
        assert_eq!(memory.begin(&key(), now), Turn::Run, "a new spec");
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_by_others_in_the_answer_to_a_patch_stays_news() {
        let memory = Memory::default();
        let now = Instant::now();
        let mut read = object("1", 1);
        read.metadata.finalizers = Some(vec!["ours".into(), "foregroundDeletion".into()]);
        memory.on_event(&key(), &read);
        assert_eq!(memory.begin(&key(), now), Turn::Run);
        memory.handled(&key(), &read);
        // Between the read and the status patch the garbage collector takes its finalizer away.
        let mut collected = object("2", 1);
        collected.metadata.finalizers = Some(vec!["ours".into()]);
        let mut answer = collected.clone();
        answer.metadata.resource_version = Some("3".into());
        memory.patched(&key(), &read, &answer);
        memory.end(&key(), Due::Never);
        memory.on_event(&key(), &collected);
        memory.on_event(&key(), &answer);
        assert_eq!(memory.begin(&key(), now), Turn::Run);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_between_two_patches_of_one_turn_stays_news() {
        let memory = Memory::default();
        let now = Instant::now();
        let read = object("1", 1);
        memory.on_event(&key(), &read);
        assert_eq!(memory.begin(&key(), now), Turn::Run);
        memory.handled(&key(), &read);
        // The answer to the first holds somebody's change, and the second is made from it.
        memory.patched(&key(), &read, &object("3", 2));
        memory.patched(&key(), &object("3", 2), &object("4", 2));
        memory.end(&key(), Due::Never);
        memory.on_event(&key(), &object("4", 2));
        assert_eq!(memory.begin(&key(), now), Turn::Run);
    }

    #[tokio::test(start_paused = true)]
    async fn a_skipped_turn_keeps_its_time() {
        let memory = Memory::default();
        let now = Instant::now();
        memory.on_event(&key(), &object("1", 1));
        assert_eq!(memory.begin(&key(), now), Turn::Run);
        memory.handled(&key(), &object("1", 1));
        let later = now + Duration::from_secs(60);
        memory.end(&key(), Due::At(later));
        memory.on_event(&key(), &object("1", 1));
        assert_eq!(memory.begin(&key(), now), Turn::Skip(Some(later)));
        assert_eq!(memory.begin(&key(), later), Turn::Run);
        memory.force(&key());
        assert_eq!(memory.begin(&key(), now), Turn::Run);
    }

    #[test]
    fn objects_are_found_by_their_external_names() {
        let memory = Memory::default();
        let named = |version, name: &str| {
            let mut object = object(version, 1);
            let annotations = [(keys::EXTERNAL_NAME.to_owned(), name.to_owned())];
            object.metadata.annotations = Some(annotations.into());
            object
        };
        memory.on_event(&key(), &object("1", 1));
        assert_eq!(memory.named("vol-1"), []);
        memory.handled(&key(), &named("2", "vol-1"));
        assert_eq!(memory.named("vol-1"), [key()]);
        let other = Key::new("n", "b");
        memory.on_event(&other, &named("3", "vol-1"));
        assert_eq!(memory.named("vol-1"), [key(), other.clone()]);
        memory.on_event(&key(), &named("4", "vol-2"));
        assert_eq!(memory.named("vol-1"), std::slice::from_ref(&other));
        memory.on_removed(&other);
        assert_eq!(memory.named("vol-1"), []);
        assert_eq!(memory.named("vol-2"), [key()]);
    }

    #[test]
    fn counts_follow_the_objects() {
        let memory = Memory::default();
        memory.on_event(&key(), &object("1", 1));
        memory.on_event(&key(), &object("2", 1));
        memory.update(&key(), |r| r.ready = true);
        let counts = memory.counts();
        assert_eq!((counts.exists, counts.ready, counts.synced), (1, 1, 0));
        memory.on_removed(&key());
        assert_eq!(memory.counts(), Counts::default());
        assert_eq!(memory.begin(&key(), Instant::now()), Turn::Skip(None));
    }
}
