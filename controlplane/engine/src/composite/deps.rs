//! Which XR depends on which objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ecp_meta::gvk::GroupVersionKind;
use ecp_meta::object;
use ecp_xr::function::{Match, ResourceSelector};
use ecp_xr::machinery::ResourceRef;
use parking_lot::Mutex;
use serde_json::Value;

use crate::informer::{Change, Key};
use crate::objects::{Labels, has_labels};

/// An index from objects to the XRs of one controller that composed or required them.
#[derive(Debug, Default)]
pub(crate) struct Deps {
    index: Mutex<Index>,
}

#[derive(Debug, Default)]
struct Index {
    by_name: BTreeMap<(GroupVersionKind, Key), BTreeSet<Key>>,
    /// By kind and namespace (empty: all).
    by_labels: BTreeMap<(GroupVersionKind, String), Selectors>,
    of: BTreeMap<Key, BTreeSet<Dependency>>,
    uses: BTreeMap<GroupVersionKind, usize>,
    /// The object whose change last woke an XR.
    woken_by: BTreeMap<Key, Arc<Value>>,
}

/// Selectors by labels, found by one label each: that which the fewest others were found by when
/// it came. So an object is compared with few selectors, however many there are.
#[derive(Debug, Default)]
struct Selectors {
    /// Key and value of a label to the selectors that are found by it.
    by_label: BTreeMap<(String, String), BTreeMap<Labels, BTreeSet<Key>>>,
    /// The label that a selector is found by.
    label_of: BTreeMap<Labels, (String, String)>,
    /// XRs that select everything.
    all: BTreeSet<Key>,
}

impl Selectors {
    fn add(&mut self, labels: Labels, xr: Key) {
        if let Some(label) = self.label_of.get(&labels) {
            if let Some(selectors) = self.by_label.get_mut(label) {
                selectors.entry(labels).or_default().insert(xr);
            }
            return;
        }
        let found_by = |label: &(String, String)| self.by_label.get(label).map_or(0, BTreeMap::len);
        let label = labels.clone().into_iter().min_by_key(found_by);
        let Some(label) = label else {
            self.all.insert(xr);
            return;
        };
        let selectors = self.by_label.entry(label.clone()).or_default();
        selectors.insert(labels.clone(), BTreeSet::from([xr]));
        self.label_of.insert(labels, label);
    }

    fn remove(&mut self, labels: &Labels, xr: &Key) {
        if labels.is_empty() {
            self.all.remove(xr);
        }
        let Some(label) = self.label_of.get(labels) else {
            return;
        };
        let Some(selectors) = self.by_label.get_mut(label) else {
            return;
        };
        let Some(xrs) = selectors.get_mut(labels) else {
            return;
        };
        xrs.remove(xr);
        if xrs.is_empty() {
            selectors.remove(labels);
            if selectors.is_empty() {
                self.by_label.remove(label);
            }
            self.label_of.remove(labels);
        }
    }

    fn is_empty(&self) -> bool {
        self.all.is_empty() && self.label_of.is_empty()
    }

    fn find(&self, object: &Value, found: &mut BTreeSet<Key>) {
        found.extend(self.all.iter().cloned());
        let labels = object.get("metadata").and_then(|m| m.get("labels"));
        for (key, value) in object::string_map(labels) {
            let selectors = self.by_label.get(&(key.to_owned(), value.to_owned()));
            for (labels, xrs) in selectors.into_iter().flatten() {
                if has_labels(object, labels) {
                    found.extend(xrs.iter().cloned());
                }
            }
        }
    }
}

/// What an XR depends on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dependency {
    /// One object.
    Name(GroupVersionKind, Key),
    /// All objects with labels, in a namespace (empty: all).
    Labels(GroupVersionKind, String, Labels),
}

impl Dependency {
    /// A composed resource; `namespace` is the XR's, if it is namespaced.
    pub(crate) fn composed(reference: &ResourceRef, namespace: Option<&str>) -> Self {
        let gvk = GroupVersionKind::from_api_version(&reference.api_version, &reference.kind);
        let namespace = namespace.or(reference.namespace.as_deref());
        let key = (
            namespace.unwrap_or_default().to_owned(),
            reference.name.clone(),
        );
        Self::Name(gvk, key)
    }

    /// A required resource.
    pub(crate) fn required(selector: &ResourceSelector) -> Self {
        let gvk = GroupVersionKind::from_api_version(&selector.api_version, &selector.kind);
        let namespace = selector.namespace.clone().unwrap_or_default();
        match &selector.matching {
            Match::Name(name) => Self::Name(gvk, (namespace, name.clone())),
            Match::Labels(labels) => Self::Labels(gvk, namespace, labels.clone()),
        }
    }

    fn gvk(&self) -> &GroupVersionKind {
        match self {
            Self::Name(gvk, _) | Self::Labels(gvk, _, _) => gvk,
        }
    }
}

impl Deps {
    /// Adds dependencies of an XR.
    pub(crate) fn add(&self, xr: &Key, dependencies: impl IntoIterator<Item = Dependency>) {
        let mut index = self.index.lock();
        for dependency in dependencies {
            index.add(xr, dependency);
        }
    }

    /// Makes the dependencies of an XR exactly these.
    pub(crate) fn set(&self, xr: &Key, dependencies: BTreeSet<Dependency>) {
        let mut index = self.index.lock();
        let old = index.of.get(xr).cloned().unwrap_or_default();
        for gone in old.difference(&dependencies) {
            index.remove(xr, gone);
        }
        for new in dependencies {
            index.add(xr, new);
        }
    }

    /// Forgets an XR.
    pub(crate) fn forget(&self, xr: &Key) {
        self.set(xr, BTreeSet::new());
        let mut index = self.index.lock();
        index.of.remove(xr);
        index.woken_by.remove(xr);
    }

    /// The XRs a change concerns: those that depend on what the object is or was.
    pub(crate) fn dependants(&self, gvk: &GroupVersionKind, change: Change<'_>) -> BTreeSet<Key> {
        let mut index = self.index.lock();
        let mut found = BTreeSet::new();
        for object in [change.old, change.new].into_iter().flatten() {
            index.find(gvk, object, &mut found);
        }
        if let Some(object) = change.object() {
            for xr in &found {
                index.woken_by.insert(xr.clone(), Arc::clone(object));
            }
        }
        found
    }

    /// The kinds something depends on.
    pub(crate) fn kinds(&self) -> BTreeSet<GroupVersionKind> {
        self.index.lock().uses.keys().cloned().collect()
    }

    /// What last woke an XR, as upstream names it.
    pub(crate) fn woken_by(&self, xr: &Key) -> String {
        let index = self.index.lock();
        let Some(object) = index.woken_by.get(xr) else {
            return "unknown".into();
        };
        let kind = object::gvk(object).kind;
        let name = object::name(object);
        match object::namespace(object) {
            Some(namespace) => format!("{kind}/{name} ({namespace})"),
            None => format!("{kind}/{name}"),
        }
    }
}

impl Index {
    fn add(&mut self, xr: &Key, dependency: Dependency) {
        let known = self.of.entry(xr.clone()).or_default();
        if !known.insert(dependency.clone()) {
            return;
        }
        *self.uses.entry(dependency.gvk().clone()).or_default() += 1;
        match dependency {
            Dependency::Name(gvk, key) => {
                let xrs = self.by_name.entry((gvk, key)).or_default();
                xrs.insert(xr.clone());
            }
            Dependency::Labels(gvk, namespace, labels) => {
                let selectors = self.by_labels.entry((gvk, namespace)).or_default();
                selectors.add(labels, xr.clone());
            }
        }
    }

    fn remove(&mut self, xr: &Key, dependency: &Dependency) {
        if !self.of.get_mut(xr).is_some_and(|of| of.remove(dependency)) {
            return;
        }
        if let Some(count) = self.uses.get_mut(dependency.gvk()) {
            *count -= 1;
            if *count == 0 {
                self.uses.remove(dependency.gvk());
            }
        }
        match dependency.clone() {
            Dependency::Name(gvk, key) => {
                let slot = (gvk, key);
                if let Some(xrs) = self.by_name.get_mut(&slot) {
                    xrs.remove(xr);
                    if xrs.is_empty() {
                        self.by_name.remove(&slot);
                    }
                }
            }
            Dependency::Labels(gvk, namespace, labels) => {
                let slot = (gvk, namespace);
                if let Some(selectors) = self.by_labels.get_mut(&slot) {
                    selectors.remove(&labels, xr);
                    if selectors.is_empty() {
                        self.by_labels.remove(&slot);
                    }
                }
            }
        }
    }

    fn find(&self, gvk: &GroupVersionKind, object: &Value, found: &mut BTreeSet<Key>) {
        let namespace = object::namespace(object).unwrap_or_default();
        let name = object::name(object);
        // A cluster-scoped object is found with and without a namespace in the selector.
        let key = (namespace.to_owned(), name.to_owned());
        if let Some(xrs) = self.by_name.get(&(gvk.clone(), key)) {
            found.extend(xrs.iter().cloned());
        }
        let mut scopes = vec![""];
        if !namespace.is_empty() {
            scopes.push(namespace);
        }
        for scope in scopes {
            if let Some(selectors) = self.by_labels.get(&(gvk.clone(), scope.to_owned())) {
                selectors.find(object, found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn gvk() -> GroupVersionKind {
        GroupVersionKind::new("ex.test", "v1", "Net")
    }

    fn net(name: &str, zone: &str) -> Arc<Value> {
        Arc::new(
            json!({"kind": "Net", "metadata": {"name": name, "namespace": "ns",
            "labels": {"zone": zone}}}),
        )
    }

    fn key(name: &str) -> Key {
        ("ns".into(), name.into())
    }

    fn woken(deps: &Deps, old: Option<&Arc<Value>>, new: Option<&Arc<Value>>) -> Vec<String> {
        let own = false;
        let change = Change { old, new, own };
        let found = deps.dependants(&gvk(), change);
        found.into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn xrs_are_found_by_name_and_by_labels_it_has_or_had() {
        let deps = Deps::default();
        deps.set(
            &key("by-name"),
            BTreeSet::from([Dependency::Name(gvk(), key("n1"))]),
        );
        let labels = BTreeMap::from([("zone".to_owned(), "a".to_owned())]);
        deps.set(
            &key("by-labels"),
            BTreeSet::from([Dependency::Labels(gvk(), String::new(), labels)]),
        );
        assert_eq!(
            woken(&deps, None, Some(&net("n1", "b"))),
            ["by-name".to_owned()]
        );
        assert_eq!(
            woken(&deps, Some(&net("n2", "a")), Some(&net("n2", "b"))),
            ["by-labels".to_owned()]
        );
        assert_eq!(woken(&deps, Some(&net("n1", "a")), None).len(), 2);
        assert!(woken(&deps, None, Some(&net("n3", "c"))).is_empty());
        assert_eq!(deps.woken_by(&key("by-name")), "Net/n1 (ns)");
    }

    #[test]
    fn many_selectors_are_told_apart_by_what_differs() {
        let mut selectors = Selectors::default();
        let labels = |n: usize| {
            let name = (String::from("name"), format!("n{n}"));
            BTreeMap::from([name, ("kind".to_owned(), "net".to_owned())])
        };
        for n in 0..1000 {
            selectors.add(labels(n), key(&format!("xr-{n}")));
        }
        let compared = selectors.by_label.values().map(BTreeMap::len).max();
        assert!(compared <= Some(2), "{compared:?}");
        let object = json!({"metadata": {"labels": {"name": "n7", "kind": "net", "x": "y"}}});
        let mut found = BTreeSet::new();
        selectors.find(&object, &mut found);
        assert_eq!(found, BTreeSet::from([key("xr-7")]));
        selectors.add(BTreeMap::new(), key("all"));
        selectors.find(&object, &mut found);
        assert_eq!(found.len(), 2);
        selectors.remove(&BTreeMap::new(), &key("all"));
        for n in 0..1000 {
            selectors.remove(&labels(n), &key(&format!("xr-{n}")));
        }
        assert!(selectors.is_empty() && selectors.by_label.is_empty());
    }

    #[test]
    fn what_is_forgotten_wakes_nobody_and_needs_no_watch() {
        let deps = Deps::default();
        let one = Dependency::Name(gvk(), key("n1"));
        deps.add(&key("a"), [one.clone()]);
        deps.add(&key("b"), [one.clone(), one.clone()]);
        assert_eq!(deps.kinds().len(), 1);
        deps.forget(&key("a"));
        assert_eq!(deps.kinds().len(), 1);
        assert_eq!(woken(&deps, None, Some(&net("n1", "a"))), ["b".to_owned()]);
        deps.set(&key("b"), BTreeSet::new());
        assert!(deps.kinds().is_empty());
        assert!(woken(&deps, None, Some(&net("n1", "a"))).is_empty());
    }
}
