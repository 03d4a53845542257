//! Deletions that the cloud refuses while something uses the resource, and what ends that.
//!
//! Managed resources refer to each other by external name. So when one is gone, those that it
//! referred to and that wait to be deleted are tried again at once instead of when their backoff
//! ends.

use std::collections::{BTreeMap, BTreeSet};

use kube::api::DynamicObject;
use parking_lot::Mutex;
use serde_json::Value;

use ecp_meta::keys;

use crate::key::Key;

/// A resource that waits to be deleted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Waiting {
    /// Its kind.
    pub(crate) kind: &'static str,
    /// Where and what.
    pub(crate) key: Key,
}

/// The resources of one provider that wait to be deleted, by external name.
#[derive(Debug, Default)]
pub(crate) struct Blocked {
    by_name: Mutex<BTreeMap<String, BTreeSet<Waiting>>>,
}

impl Blocked {
    /// A deletion is about to be asked for. It is noted before, so that what goes while the cloud
    /// refuses is not missed.
    pub(crate) fn add(&self, object: &DynamicObject, waiting: Waiting) {
        if let Some(name) = external_name(object) {
            let mut by_name = self.by_name.lock();
            by_name.entry(name.to_owned()).or_default().insert(waiting);
        }
    }

    /// It does not wait for others any more.
    pub(crate) fn remove(&self, object: &DynamicObject, waiting: &Waiting) {
        let Some(name) = external_name(object) else {
            return;
        };
        let mut by_name = self.by_name.lock();
        if let Some(all) = by_name.get_mut(name) {
            all.remove(waiting);
            if all.is_empty() {
                by_name.remove(name);
            }
        }
    }

    /// An object's external resource is gone: takes out those that it referred to.
    pub(crate) fn released(&self, object: &DynamicObject) -> BTreeSet<Waiting> {
        let mut by_name = self.by_name.lock();
        let mut found = BTreeSet::new();
        if !by_name.is_empty()
            && let Some(spec) = object.data.pointer("/spec/forProvider")
        {
            take(&mut by_name, spec, &mut found);
        }
        found
    }
}

fn external_name(object: &DynamicObject) -> Option<&str> {
    let annotations = object.metadata.annotations.as_ref()?;
    annotations.get(keys::EXTERNAL_NAME).map(String::as_str)
}

/// Takes out those whose names are among the texts of `value`.
fn take(
    by_name: &mut BTreeMap<String, BTreeSet<Waiting>>,
    value: &Value,
    found: &mut BTreeSet<Waiting>,
) {
    match value {
        Value::String(text) => found.extend(by_name.remove(text).into_iter().flatten()),
        Value::Array(items) => items.iter().for_each(|v| take(by_name, v, found)),
        Value::Object(map) => map.values().for_each(|v| take(by_name, v, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str, for_provider: Value) -> DynamicObject {
        serde_json::from_value(json!({
            "metadata": {"name": name, "annotations": {(keys::EXTERNAL_NAME): name}},
            "spec": {"forProvider": for_provider},
        }))
        .expect("an object")
    }

    fn waiting(name: &str) -> Waiting {
        Waiting {
            kind: "Volume",
            key: Key::new("ns", name),
        }
    }

    #[test]
    fn what_is_gone_frees_what_it_referred_to_wherever_it_said_so() {
        let blocked = Blocked::default();
        for name in ["vol-1", "vol-2", "vol-3"] {
            blocked.add(&object(name, json!({})), waiting(name));
        }
        let machine = object(
            "m",
            json!({"bootVolume": {"volume": "vol-1"}, "dataVolumes": [{"volume": "vol-3"}]}),
        );
        let freed = blocked.released(&machine);
        assert_eq!(freed, BTreeSet::from([waiting("vol-1"), waiting("vol-3")]));
        assert!(blocked.released(&machine).is_empty(), "once each");
        blocked.add(&object("vol-1", json!({})), waiting("vol-1"));
        blocked.remove(&object("vol-1", json!({})), &waiting("vol-1"));
        assert!(blocked.released(&machine).is_empty());
        assert!(blocked.released(&object("n", json!({}))).is_empty());
    }
}
