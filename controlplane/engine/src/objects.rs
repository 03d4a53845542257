//! Objects of one kind: by namespace and name, and by the labels that are asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use ecp_meta::object;
use serde_json::Value;

use crate::informer::Key;
use crate::limits::LABEL_INDEXES_MAX;

/// Labels that an object must have.
pub(crate) type Labels = BTreeMap<String, String>;

/// Whether an object has all these labels.
pub(crate) fn has_labels(object: &Value, labels: &Labels) -> bool {
    labels
        .iter()
        .all(|(key, value)| object::label(object, key) == Some(value))
}

/// The objects of one kind.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    by_key: BTreeMap<Key, Arc<Value>>,
    /// Which have which values of some labels, by the keys of the labels and a hash of the values.
    /// What has not all of the labels is in none.
    by_labels: BTreeMap<Vec<String>, BTreeMap<u64, BTreeSet<Key>>>,
    hasher: RandomState,
}

impl Objects {
    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.by_key.get(key)
    }

    /// By namespace and name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        self.by_key.iter()
    }

    /// All (of one namespace, where given), by namespace and name.
    pub(crate) fn of(&self, namespace: Option<&str>) -> impl Iterator<Item = &Arc<Value>> {
        let from = (namespace.unwrap_or_default().to_owned(), String::new());
        self.by_key
            .range(from..)
            .take_while(move |(key, _)| namespace.is_none_or(|ns| key.0 == ns))
            .map(|(_, object)| object)
    }

    /// Adds or replaces an object; returns what it was.
    pub(crate) fn insert(&mut self, key: Key, object: Arc<Value>) -> Option<Arc<Value>> {
        let old = self.by_key.insert(key.clone(), Arc::clone(&object));
        for (labels, index) in &mut self.by_labels {
            let before = old.as_ref().and_then(|o| hash(&self.hasher, labels, o));
            let now = hash(&self.hasher, labels, &object);
            if before == now {
                continue;
            }
            if let Some(before) = before {
                take(index, before, &key);
            }
            if let Some(now) = now {
                index.entry(now).or_default().insert(key.clone());
            }
        }
        old
    }

    /// Removes an object; returns it.
    pub(crate) fn remove(&mut self, key: &Key) -> Option<Arc<Value>> {
        let old = self.by_key.remove(key)?;
        for (labels, index) in &mut self.by_labels {
            if let Some(before) = hash(&self.hasher, labels, &old) {
                take(index, before, key);
            }
        }
        Some(old)
    }

    /// From now on, what has labels with these keys is found without looking at all objects.
    pub(crate) fn index(&mut self, labels: &Labels) {
        let keys: Vec<String> = labels.keys().cloned().collect();
        if self.by_labels.len() >= LABEL_INDEXES_MAX || self.by_labels.contains_key(&keys) {
            return;
        }
        let mut index: BTreeMap<u64, BTreeSet<Key>> = BTreeMap::new();
        for (key, object) in &self.by_key {
            if let Some(hash) = hash(&self.hasher, &keys, object) {
                index.entry(hash).or_default().insert(key.clone());
            }
        }
        self.by_labels.insert(keys, index);
    }

    /// Those (of one namespace, where given) with these labels, by namespace and name; `None`
    /// without an index.
    pub(crate) fn labelled(
        &self,
        namespace: Option<&str>,
        labels: &Labels,
    ) -> Option<Vec<Arc<Value>>> {
        if labels.is_empty() {
            return Some(self.of(namespace).cloned().collect());
        }
        let keys: Vec<String> = labels.keys().cloned().collect();
        let index = self.by_labels.get(&keys)?;
        let hash = self.hasher.hash_one(labels.values().collect::<Vec<_>>());
        let found = index.get(&hash).into_iter().flatten();
        let found = found
            .filter(|key| namespace.is_none_or(|ns| key.0 == ns))
            .filter_map(|key| self.by_key.get(key))
            .filter(|object| has_labels(object, labels));
        Some(found.cloned().collect())
    }
}

/// A hash of the values of some labels, unless one is missing.
fn hash(hasher: &RandomState, keys: &[String], object: &Value) -> Option<u64> {
    let values = keys.iter().map(|key| object::label(object, key));
    Some(hasher.hash_one(values.collect::<Option<Vec<&str>>>()?))
}

fn take(index: &mut BTreeMap<u64, BTreeSet<Key>>, hash: u64, key: &Key) {
    if let Some(keys) = index.get_mut(&hash) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(&hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(labels: Value) -> Arc<Value> {
        Arc::new(json!({"metadata": {"labels": labels}}))
    }

    fn key(namespace: &str, name: &str) -> Key {
        (namespace.to_owned(), name.to_owned())
    }

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        let own = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
        pairs.iter().map(own).collect()
    }

    #[test]
    fn an_index_finds_what_a_look_at_all_finds() {
        let mut objects = Objects::default();
        let zone = labels(&[("zone", "a")]);
        let both = labels(&[("disk", "ssd"), ("zone", "a")]);
        let mut step = |change: &mut dyn FnMut(&mut Objects)| {
            change(&mut objects);
            for wanted in [&zone, &both] {
                for namespace in [None, Some("one"), Some("two")] {
                    let looked: Vec<_> = objects
                        .of(namespace)
                        .filter(|o| has_labels(o, wanted))
                        .cloned()
                        .collect();
                    let found = objects.labelled(namespace, wanted);
                    assert!(found.is_none_or(|found| found == looked), "{wanted:?}");
                }
            }
        };
        let put = |namespace: &'static str, name: &'static str, labels: Value| {
            move |o: &mut Objects| drop(o.insert(key(namespace, name), object(labels.clone())))
        };
        step(&mut put("one", "b", json!({"zone": "a", "disk": "ssd"})));
        step(&mut |o| o.index(&zone));
        step(&mut put("one", "a", json!({"zone": "a", "disk": "hdd"})));
        step(&mut put("two", "a", json!({"zone": "b", "disk": "ssd"})));
        step(&mut |o| o.index(&both));
        step(&mut put("two", "a", json!({"zone": "a", "disk": "ssd"})));
        step(&mut put("one", "b", json!({"disk": "ssd"})));
        step(&mut |o| drop(o.remove(&key("one", "a"))));
        let names = objects.labelled(None, &zone).expect("an index").len();
        assert_eq!(names, 1);
        assert_eq!(objects.remove(&key("two", "a")).iter().count(), 1);
        assert!(objects.by_labels.values().all(BTreeMap::is_empty));
    }

    #[test]
    fn indexes_are_no_more_than_their_limit() {
        let mut objects = Objects::default();
        for n in 0..2 * LABEL_INDEXES_MAX {
            objects.index(&labels(&[(&format!("key-{n}"), "x")]));
        }
        assert_eq!(objects.by_labels.len(), LABEL_INDEXES_MAX);
    }
}
