//! Which namespace belongs to which tenant and workspace.
//!
//! Found by annotations and labels, never by parsing names (DESIGN D3).

use std::collections::BTreeMap;

use ecp_meta::{keys, names, object};
use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::watch;

use super::link::Link;
use super::watch::{Sink, parse_version};

/// A namespace of a tenant or workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Namespace {
    pub(crate) name: String,
    pub(crate) terminating: bool,
    resource_version: u64,
}

/// Tenant, and workspace (empty for the tenant's own namespace).
type Place = (String, String);

#[derive(Default)]
struct State {
    by_place: BTreeMap<Place, BTreeMap<String, Namespace>>,
    place_of: BTreeMap<String, Place>,
}

/// The namespaces of all tenants and workspaces.
pub(crate) struct Namespaces {
    state: RwLock<State>,
    link: Link,
    changes: watch::Sender<u64>,
}

impl Namespaces {
    pub(crate) fn new() -> Self {
        Self {
            state: RwLock::default(),
            link: Link::new(),
            changes: watch::Sender::new(0),
        }
    }

    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    /// The namespace of a tenant (`workspace` empty) or workspace.
    ///
    /// Should several claim the place, the one with the derived name wins.
    pub(crate) fn find(&self, tenant: &str, workspace: &str) -> Option<Namespace> {
        let state = self.state.read();
        let all = state.by_place.get(&(tenant.into(), workspace.into()))?;
        if all.len() == 1 {
            return all.values().next().cloned();
        }
        all.get(&derived_name(tenant, workspace))
            .or_else(|| all.values().next())
            .cloned()
    }

    /// The workspaces of a tenant and their namespaces.
    pub(crate) fn workspaces(&self, tenant: &str) -> Vec<(String, String)> {
        let state = self.state.read();
        let from = (tenant.to_owned(), String::new());
        let of_tenant = state
            .by_place
            .range(from..)
            .map(|((t, w), all)| (t, w, all));
        of_tenant
            .take_while(|(t, ..)| *t == tenant)
            .filter(|(_, workspace, _)| !workspace.is_empty())
            .flat_map(|(_, w, all)| all.keys().map(|name| (w.clone(), name.clone())))
            .collect()
    }

    /// Takes in a namespace that this process wrote or read.
    pub(crate) fn insert(&self, object: &Value) {
        self.state.write().insert(object);
        self.changed();
    }

    /// Signals every change.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn changed(&self) {
        self.changes.send_modify(|n| *n = n.wrapping_add(1));
    }
}

impl State {
    fn insert(&mut self, object: &Value) {
        let name = object::name(object).to_owned();
        let resource_version = parse_version(object::resource_version(object));
        let known = self
            .place_of
            .get(&name)
            .and_then(|place| self.by_place.get(place)?.get(&name));
        if known.is_some_and(|n| n.resource_version > resource_version) {
            return;
        }
        self.remove(&name);
        let Some(place) = place_of(object) else {
            return;
        };
        let namespace = Namespace {
            name: name.clone(),
            terminating: object::is_deleting(object),
            resource_version,
        };
        self.by_place
            .entry(place.clone())
            .or_default()
            .insert(name.clone(), namespace);
        self.place_of.insert(name, place);
    }

    fn remove(&mut self, name: &str) {
        let Some(place) = self.place_of.remove(name) else {
            return;
        };
        if let Some(all) = self.by_place.get_mut(&place) {
            all.remove(name);
            if all.is_empty() {
                self.by_place.remove(&place);
            }
        }
    }
}

/// The place a namespace says it is for: whole names from annotations, else from labels.
fn place_of(object: &Value) -> Option<Place> {
    let read = |annotation, label| {
        object::annotation(object, annotation)
            .or_else(|| object::label(object, label))
            .filter(|v| !v.is_empty())
    };
    let tenant = read(keys::TENANT_NAME, keys::TENANT)?;
    let workspace = read(keys::WORKSPACE_NAME, keys::WORKSPACE).unwrap_or_default();
    Some((tenant.into(), workspace.into()))
}

/// The name a namespace is given when it is made.
pub(crate) fn derived_name(tenant: &str, workspace: &str) -> String {
    if workspace.is_empty() {
        names::tenant_namespace(tenant)
    } else {
        names::workspace_namespace(tenant, workspace)
    }
}

impl Sink for Namespaces {
    fn replace(&self, objects: Vec<Value>, resource_version: u64) {
        let mut fresh = State::default();
        for object in &objects {
            fresh.insert(object);
        }
        let mut state = self.state.write();
        // A namespace this process wrote after the list was made is not in it.
        for (name, place) in &state.place_of {
            let newer = state
                .by_place
                .get(place)
                .and_then(|all| all.get(name))
                .filter(|n| n.resource_version > resource_version);
            if let Some(namespace) = newer {
                fresh
                    .by_place
                    .entry(place.clone())
                    .or_default()
                    .insert(name.clone(), namespace.clone());
                fresh.place_of.insert(name.clone(), place.clone());
            }
        }
        *state = fresh;
        drop(state);
        self.changed();
    }

    fn apply(&self, object: Value) {
        self.insert(&object);
    }

    fn delete(&self, object: Value) {
        self.state.write().remove(object::name(&object));
        self.changed();
    }

    fn reached(&self, _: u64) {}

    fn connected(&self, connected: bool) {
        self.link.set(connected);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn namespace(name: &str, tenant: &str, workspace: &str, version: u64) -> Value {
        let mut object =
            json!({"metadata": {"name": name, "resourceVersion": version.to_string()}});
        object::set_label(&mut object, keys::TENANT, &names::label_value(tenant));
        object::set_annotation(&mut object, keys::TENANT_NAME, tenant);
        if !workspace.is_empty() {
            object::set_label(&mut object, keys::WORKSPACE, &names::label_value(workspace));
            object::set_annotation(&mut object, keys::WORKSPACE_NAME, workspace);
        }
        object
    }

    #[test]
    fn places_are_found_by_whole_name() {
        let all = Namespaces::new();
        let long = "w".repeat(128);
        all.apply(namespace("t-1", "t", "", 1));
        all.apply(namespace("odd", "t", &long, 2));
        all.apply(json!({"metadata": {"name": "default", "resourceVersion": "3"}}));
        assert_eq!(all.find("t", "").expect("tenant").name, "t-1");
        assert_eq!(all.find("t", &long).expect("workspace").name, "odd");
        assert_eq!(all.find("", ""), None);
        all.apply(namespace("u-v", "u", "v", 5));
        assert_eq!(all.workspaces("t"), [(long.clone(), "odd".to_owned())]);
        assert!(all.workspaces("s").is_empty());
        all.delete(namespace("odd", "t", &long, 4));
        assert_eq!(all.find("t", &long), None);
    }

    #[test]
    fn the_derived_name_wins_over_a_squatter() {
        let all = Namespaces::new();
        all.apply(namespace("aaa", "t", "w", 1));
        let derived = derived_name("t", "w");
        all.apply(namespace(&derived, "t", "w", 2));
        assert_eq!(all.find("t", "w").expect("found").name, derived);
    }

    #[test]
    fn a_list_does_not_forget_a_younger_write() {
        let all = Namespaces::new();
        all.insert(&namespace("young", "t", "w", 10));
        all.insert(&namespace("old", "t", "v", 5));
        all.replace(Vec::new(), 7);
        assert!(all.find("t", "w").is_some());
        assert!(all.find("t", "v").is_none());
    }
}
