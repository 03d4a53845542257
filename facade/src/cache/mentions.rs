//! Which resources mention a name, so that those that could matter are found without a look at all.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use ecp_xrds::KindInfo;
use ecp_xrds::reference::{Parsed, Target};
use serde_json::Value;

use super::entry::Entry;
use crate::deletes::protecting;
use crate::fields;

/// The fields whose names are looked for, by kind: who has roles, and what a live resource keeps
/// from being deleted.
fn searched(info: &'static KindInfo) -> impl Iterator<Item = &'static str> {
    let subjects = (info.kind == "RoleAssignment").then_some("subs[]");
    subjects.into_iter().chain(protecting(info))
}

/// The names that an object mentions: a text as it is, and of a reference its last part.
pub(super) fn names(info: &'static KindInfo, object: &Value) -> BTreeSet<String> {
    let Some(spec) = object.get("spec") else {
        return BTreeSet::new();
    };
    let found = searched(info).flat_map(|path| fields::find(spec, path));
    found
        .filter_map(|(_, value)| match value {
            Value::String(text) => Some(text.clone()),
            reference => {
                let text = reference.get("resource")?.as_str()?;
                match Parsed::parse(text).target {
                    Target::Named { name, .. } => Some(name),
                    Target::Empty | Target::Text(_) => None,
                }
            }
        })
        .collect()
}

/// The entries of all namespaces, by namespace and by the names they mention.
#[derive(Default)]
pub(super) struct Mentions(HashMap<String, HashMap<String, HashMap<String, Arc<Entry>>>>);

impl Mentions {
    pub(super) fn insert(&mut self, entry: &Arc<Entry>) {
        if entry.mentions().is_empty() {
            return;
        }
        let names = self.0.entry(entry.namespace().to_owned()).or_default();
        for name in entry.mentions() {
            let all = names.entry(name.clone()).or_default();
            all.insert(entry.uid().to_owned(), Arc::clone(entry));
        }
    }

    pub(super) fn remove(&mut self, entry: &Entry) {
        let Some(names) = self.0.get_mut(entry.namespace()) else {
            return;
        };
        for name in entry.mentions() {
            if let Some(all) = names.get_mut(name) {
                all.remove(entry.uid());
                if all.is_empty() {
                    names.remove(name);
                }
            }
        }
        if names.is_empty() {
            self.0.remove(entry.namespace());
        }
    }

    /// The entries of a namespace that mention a name.
    pub(super) fn of(&self, namespace: &str, name: &str) -> impl Iterator<Item = &Arc<Entry>> {
        let all = self.0.get(namespace).and_then(|names| names.get(name));
        all.into_iter().flat_map(HashMap::values)
    }
}
