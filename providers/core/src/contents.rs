//! What SECA resources there are in each namespace, kept by watches.
//!
//! The kinds are those of all namespaced CRDs in groups `*.secapi.cloud`, but for managed
//! resources (`*.m.secapi.cloud`): kinds that are installed later are counted from then on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ecp_provider::{Change, Key, watch, watch_selected};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::info;

use ecp_meta::keys;

use crate::limits::COUNT_INTERVAL_MIN;
use crate::teardown;

/// A SECA resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// Its kind.
    pub(crate) kind: Arc<ApiResource>,
    /// Its name.
    pub(crate) name: String,
    /// Whether it is being deleted already.
    pub(crate) deleting: bool,
    /// SECA name of the network it is below (`spec.network`).
    pub(crate) network: Option<Arc<str>>,
}

/// Some of the items.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Part {
    namespace: Arc<str>,
    network: Option<Arc<str>>,
}

impl Part {
    /// All items of a namespace.
    pub(crate) fn namespace(namespace: &str) -> Self {
        Self {
            namespace: namespace.into(),
            network: None,
        }
    }

    /// The items of a namespace that are below a network.
    pub(crate) fn network(namespace: &str, network: &str) -> Self {
        Self {
            namespace: namespace.into(),
            network: Some(network.into()),
        }
    }
}

/// Kinds of managed resources that own parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnerKind {
    /// `WorkspaceNamespace`.
    Workspace,
    /// `NetworkContents`.
    Network,
}

/// Who wants to know about a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Kind of the managed resource.
    pub(crate) kind: OwnerKind,
    /// The managed resource.
    pub(crate) key: Key,
    /// Whether it is being deleted, and the part with it.
    pub(crate) deleting: bool,
}

impl Owner {
    /// Whether both are the same managed resource.
    fn is(&self, other: &Self) -> bool {
        self.kind == other.kind && self.key == other.key
    }
}

/// The contents of all namespaces. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    state: Arc<Mutex<State>>,
    stirred: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    kinds: BTreeMap<String, KindState>,
    kinds_listed: bool,
    /// Several while one that is being deleted has a successor of the same name.
    owners: BTreeMap<Part, Vec<Owner>>,
    /// Parts that changed.
    dirty: BTreeSet<Part>,
}

#[derive(Debug)]
struct KindState {
    resource: Arc<ApiResource>,
    listed: bool,
    /// By namespace and name.
    objects: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Entry>>,
}

/// What is remembered of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    deleting: bool,
    network: Option<Arc<str>>,
}

impl Entry {
    fn of(object: &DynamicObject, kind: &ApiResource) -> Self {
        let network = object.data.pointer("/spec/network").and_then(Value::as_str);
        Self {
            deleting: object.metadata.deletion_timestamp.is_some(),
            network: network
                .filter(|_| teardown::is_below_network(&kind.kind))
                .map(Into::into),
        }
    }

    /// The parts that it belongs to.
    fn parts(&self, namespace: &Arc<str>) -> impl Iterator<Item = Part> {
        let part = |network| Part {
            namespace: Arc::clone(namespace),
            network,
        };
        let below = self.network.clone().map(|network| part(Some(network)));
        std::iter::once(part(None)).chain(below)
    }
}

impl Contents {
    /// The items of a part; `None` until everything has been listed once.
    pub(crate) fn of(&self, part: &Part) -> Option<Vec<Item>> {
        let state = self.state.lock();
        if !state.kinds_listed || !state.kinds.values().all(|k| k.listed) {
            return None;
        }
        let mut items = Vec::new();
        for kind in state.kinds.values() {
            for (name, entry) in kind.objects.get(&part.namespace).into_iter().flatten() {
                if part.network.is_none() || part.network == entry.network {
                    items.push(Item {
                        kind: Arc::clone(&kind.resource),
                        name: name.as_ref().into(),
                        deleting: entry.deleting,
                        network: entry.network.clone(),
                    });
                }
            }
        }
        Some(items)
    }

    /// Remembers whom to wake when a part changes.
    pub(crate) fn own(&self, part: Part, owner: Owner) {
        let mut state = self.state.lock();
        let owners = state.owners.entry(part).or_default();
        match owners.iter_mut().find(|o| o.is(&owner)) {
            Some(known) => *known = owner,
            None => owners.push(owner),
        }
    }

    /// Forgets an owner of a part. Others are woken: they may have waited for it to go.
    pub(crate) fn disown(&self, part: &Part, owner: &Owner) {
        let mut state = self.state.lock();
        let Some(owners) = state.owners.get_mut(part) else {
            return;
        };
        owners.retain(|o| !o.is(owner));
        if owners.is_empty() {
            state.owners.remove(part);
            return;
        }
        drop(state);
        self.stir(part.clone());
    }

    /// The other owners of a part that are being deleted, and the part with them.
    pub(crate) fn others_going(&self, part: &Part, owner: &Owner) -> Vec<Owner> {
        let state = self.state.lock();
        let all = state.owners.get(part).into_iter().flatten();
        let others = all.filter(|o| o.deleting && !o.is(owner));
        others.cloned().collect()
    }

    fn stir(&self, part: Part) {
        self.state.lock().dirty.insert(part);
        self.stirred.notify_one();
    }

    /// A kind was installed or changed. Returns the resource to watch if it is new.
    fn add_kind(&self, crd: &DynamicObject) -> Option<Arc<ApiResource>> {
        let resource = Arc::new(counted_resource(crd)?);
        let name = crd.metadata.name.clone()?;
        let mut state = self.state.lock();
        if state
            .kinds
            .get(&name)
            .is_some_and(|k| k.resource == resource)
        {
            return None;
        }
        let new = KindState {
            resource: Arc::clone(&resource),
            listed: false,
            objects: BTreeMap::new(),
        };
        state.kinds.insert(name, new);
        Some(resource)
    }

    fn remove_kind(&self, crd: &str) {
        let mut state = self.state.lock();
        if let Some(kind) = state.kinds.remove(crd) {
            for (namespace, entries) in &kind.objects {
                let parts = entries.values().flat_map(|e| e.parts(namespace));
                state.dirty.extend(parts);
            }
            drop(state);
            self.stirred.notify_one();
        }
    }

    fn on_kinds_listed(&self) {
        let mut state = self.state.lock();
        state.kinds_listed = true;
        state.dirty = state.owners.keys().cloned().collect();
        drop(state);
        self.stirred.notify_one();
    }

    /// An object of a kind changed.
    fn on_change(&self, crd: &str, change: &Change) {
        let mut state = self.state.lock();
        let state = &mut *state;
        let Some(kind) = state.kinds.get_mut(crd) else {
            return;
        };
        match change {
            Change::Applied(object) => {
                let key = Key::of(object);
                let entry = Entry::of(object, &kind.resource);
                let parts = entry.parts(&key.namespace);
                let entries = kind.objects.entry(Arc::clone(&key.namespace)).or_default();
                let old = entries.insert(key.name, entry.clone());
                if old.as_ref() == Some(&entry) {
                    return;
                }
                state.dirty.extend(parts);
                let old = old.iter().flat_map(|old| old.parts(&key.namespace));
                state.dirty.extend(old);
            }
            Change::Removed(key) => {
                let Some(entries) = kind.objects.get_mut(&key.namespace) else {
                    return;
                };
                let Some(old) = entries.remove(&key.name) else {
                    return;
                };
                if entries.is_empty() {
                    kind.objects.remove(&key.namespace);
                }
                state.dirty.extend(old.parts(&key.namespace));
            }
            Change::Listed => {
                kind.listed = true;
                state.dirty.extend(state.owners.keys().cloned());
            }
        }
        self.stirred.notify_one();
    }

    /// The owners of parts that changed; with `torn_down` only of those being deleted.
    fn take_dirty(&self, torn_down: bool) -> Vec<Owner> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let mut woken = Vec::new();
        let owners = &state.owners;
        state.dirty.retain(|part| match owners.get(part) {
            Some(owners) if torn_down && !owners.iter().any(|o| o.deleting) => true,
            Some(owners) => {
                woken.extend(owners.iter().cloned());
                false
            }
            None => false,
        });
        woken
    }

    /// Watches until `shutdown`, and wakes the owners of parts that change.
    pub(crate) async fn run(
        &self,
        client: Client,
        wake: impl Fn(Owner),
        shutdown: CancellationToken,
    ) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.follow_kinds(client.clone()) => {}
            () = self.follow_namespaces(client) => {}
            () = self.notify(wake) => {}
        }
    }

    async fn notify(&self, wake: impl Fn(Owner)) {
        loop {
            self.stirred.notified().await;
            self.take_dirty(false).into_iter().for_each(&wake);
            // A teardown goes on at once; counting again can wait for more.
            let counting = tokio::time::sleep(COUNT_INTERVAL_MIN);
            tokio::pin!(counting);
            let mut stirred = false;
            loop {
                tokio::select! {
                    biased;
                    () = &mut counting => break,
                    () = self.stirred.notified() => {
                        stirred = true;
                        self.take_dirty(true).into_iter().for_each(&wake);
                    }
                }
            }
            if stirred {
                self.stirred.notify_one();
            }
        }
    }

    async fn follow_namespaces(&self, client: Client) {
        let resource = ApiResource::erase::<k8s_openapi::api::core::v1::Namespace>(&());
        let api: Api<DynamicObject> = Api::all_with(client, &resource);
        watch_selected(api, keys::WORKSPACE, |change| match change {
            Change::Applied(object) if object.metadata.deletion_timestamp.is_some() => {
                let name = object.metadata.name.as_deref().unwrap_or_default();
                self.stir(Part::namespace(name));
            }
            Change::Removed(key) => self.stir(Part::namespace(&key.name)),
            Change::Applied(_) | Change::Listed => {}
        })
        .await;
    }

    async fn follow_kinds(&self, client: Client) {
        let crds: Api<DynamicObject> = Api::all_with(
            client.clone(),
            &ApiResource {
                group: "apiextensions.k8s.io".into(),
                version: "v1".into(),
                api_version: "apiextensions.k8s.io/v1".into(),
                kind: "CustomResourceDefinition".into(),
                plural: "customresourcedefinitions".into(),
            },
        );
        // The set ends its tasks when this future is dropped.
        let tasks = Mutex::new(JoinSet::new());
        let mut running: BTreeMap<String, AbortHandle> = BTreeMap::new();
        watch(crds, |change| match change {
            Change::Applied(crd) => {
                let name = crd.metadata.name.clone().unwrap_or_default();
                if let Some(resource) = self.add_kind(&crd) {
                    info!(
                        kind = resource.kind,
                        group = resource.group,
                        "counts the resources of workspaces"
                    );
                    let api: Api<DynamicObject> = Api::all_with(client.clone(), resource.as_ref());
                    let (contents, crd) = (self.clone(), name.clone());
                    let task = tasks.lock().spawn(async move {
                        watch(api, |change| contents.on_change(&crd, &change)).await;
                    });
                    if let Some(old) = running.insert(name, task) {
                        old.abort();
                    }
                }
            }
            Change::Removed(key) => {
                if let Some(task) = running.remove(key.name.as_ref()) {
                    task.abort();
                }
                self.remove_kind(&key.name);
            }
            Change::Listed => self.on_kinds_listed(),
        })
        .await;
    }
}

/// The resource of a CRD whose objects count as SECA resources of a workspace.
fn counted_resource(crd: &DynamicObject) -> Option<ApiResource> {
    let spec = crd.data.get("spec")?;
    let text = |path: &str| spec.pointer(path).and_then(Value::as_str);
    let group = text("/group")?;
    let is_seca = group.ends_with(".secapi.cloud") && !group.ends_with(".m.secapi.cloud");
    if !is_seca || text("/scope") != Some("Namespaced") {
        return None;
    }
    let versions = spec.get("versions")?.as_array()?;
    let served = |v: &&Value| v.get("served").and_then(Value::as_bool) == Some(true);
    let stored = |v: &&Value| v.get("storage").and_then(Value::as_bool) == Some(true);
    let version = versions
        .iter()
        .filter(served)
        .find(stored)
        .or_else(|| versions.iter().find(served))?
        .get("name")?
        .as_str()?;
    Some(ApiResource {
        group: group.into(),
        version: version.into(),
        api_version: format!("{group}/{version}"),
        kind: text("/names/kind")?.into(),
        plural: text("/names/plural")?.into(),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// An item of some kind.
    pub(crate) fn item(kind: &str, name: &str) -> Item {
        Item {
            kind: Arc::new(ApiResource {
                group: "x.v1.secapi.cloud".into(),
                version: "v1".into(),
                api_version: "x.v1.secapi.cloud/v1".into(),
                kind: kind.into(),
                plural: kind.to_lowercase(),
            }),
            name: name.into(),
            deleting: false,
            network: None,
        }
    }

    fn crd(group: &str, scope: &str) -> DynamicObject {
        serde_json::from_value(json!({
            "metadata": {"name": format!("things.{group}")},
            "spec": {
                "group": group,
                "scope": scope,
                "names": {"kind": "Thing", "plural": "things"},
                "versions": [
                    {"name": "v0", "served": false, "storage": false},
                    {"name": "v1", "served": true, "storage": true},
                ],
            },
        }))
        .expect("an object")
    }

    fn thing(namespace: &str, name: &str) -> Change {
        let object = json!({"metadata": {"namespace": namespace, "name": name}});
        Change::Applied(Box::new(serde_json::from_value(object).expect("an object")))
    }

    #[test]
    fn seca_kinds_count_and_managed_resources_do_not() {
        let found = counted_resource(&crd("storage.v1.secapi.cloud", "Namespaced"));
        assert_eq!(
            found.expect("counted").api_version,
            "storage.v1.secapi.cloud/v1"
        );
        assert_eq!(
            counted_resource(&crd("storage.v1.secapi.cloud", "Cluster")),
            None
        );
        assert_eq!(
            counted_resource(&crd("dummy.m.secapi.cloud", "Namespaced")),
            None
        );
        assert_eq!(counted_resource(&crd("example.org", "Namespaced")), None);
        assert_eq!(
            counted_resource(&crd("notsecapi.cloud", "Namespaced")),
            None
        );
    }

    fn owner(deleting: bool) -> Owner {
        Owner {
            kind: OwnerKind::Workspace,
            key: Key::new("tenant", "mr"),
            deleting,
        }
    }

    fn ns() -> Part {
        Part::namespace("ns")
    }

    #[test]
    fn contents_are_unknown_until_listed_and_then_follow() {
        let contents = Contents::default();
        contents.own(ns(), owner(false));
        let name = "things.storage.v1.secapi.cloud";
        let crd = crd("storage.v1.secapi.cloud", "Namespaced");
        assert!(contents.add_kind(&crd).is_some());
        assert!(contents.add_kind(&crd).is_none(), "it is watched once");
        contents.on_kinds_listed();
        assert_eq!(contents.of(&ns()), None);
        contents.on_change(name, &thing("ns", "a"));
        contents.on_change(name, &thing("other", "b"));
        contents.on_change(name, &Change::Listed);
        assert_eq!(contents.of(&ns()).expect("listed").len(), 1);
        assert_eq!(contents.take_dirty(false), [owner(false)]);
        contents.on_change(name, &thing("ns", "a"));
        assert!(contents.take_dirty(false).is_empty(), "nothing changed");
        contents.on_change(name, &Change::Removed(Key::new("ns", "a")));
        assert!(contents.take_dirty(true).is_empty(), "it is not torn down");
        assert_eq!(contents.take_dirty(false).len(), 1);
        assert_eq!(contents.of(&ns()), Some(Vec::new()));
        contents.on_change(name, &thing("ns", "a"));
        contents.remove_kind(name);
        assert_eq!(contents.of(&ns()), Some(Vec::new()));
        assert_eq!(contents.take_dirty(false).len(), 1);
    }

    #[test]
    fn what_is_below_a_network_belongs_to_it_and_to_the_namespace() {
        let contents = Contents::default();
        for kind in ["Subnet", "Other"] {
            let mut crd = crd("network.v1.secapi.cloud", "Namespaced");
            crd.metadata.name = Some(kind.into());
            crd.data["spec"]["names"]["kind"] = kind.into();
            contents.add_kind(&crd);
            contents.on_change(kind, &Change::Listed);
        }
        contents.on_kinds_listed();
        let below = |network: &str| {
            let mut change = thing("ns", "a");
            if let Change::Applied(object) = &mut change {
                object.data = json!({"spec": {"network": network}});
            }
            change
        };
        let part = |network| Part::network("ns", network);
        let count = |part: &Part| contents.of(part).map(|items| items.len());
        for part in [part("n1"), part("n2"), ns()] {
            contents.own(part, owner(true));
        }
        contents.take_dirty(false);
        contents.on_change("Subnet", &below("n1"));
        contents.on_change("Other", &below("n2"));
        assert_eq!(count(&part("n1")), Some(1));
        assert_eq!(count(&part("n2")), Some(0), "not of a kind below networks");
        assert_eq!(count(&ns()), Some(2));
        assert_eq!(contents.take_dirty(true).len(), 2, "n1 and the namespace");
        contents.on_change("Subnet", &Change::Removed(Key::new("ns", "a")));
        assert_eq!(contents.take_dirty(true).len(), 2);
        assert_eq!(count(&part("n1")), Some(0));
    }

    #[test]
    fn a_teardown_is_told_at_once() {
        let contents = Contents::default();
        contents.own(ns(), owner(true));
        contents.stir(ns());
        assert_eq!(contents.take_dirty(true).len(), 1);
        contents.disown(&ns(), &owner(true));
        contents.stir(ns());
        assert!(contents.take_dirty(false).is_empty());
    }

    #[test]
    fn who_comes_after_another_knows_of_it_until_it_is_gone() {
        let contents = Contents::default();
        let (old, mut new) = (owner(true), owner(false));
        new.key = Key::new("tenant", "mr-2");
        contents.own(ns(), owner(false));
        contents.own(ns(), old.clone());
        contents.own(ns(), new.clone());
        assert_eq!(
            contents.others_going(&ns(), &new),
            std::slice::from_ref(&old)
        );
        assert_eq!(contents.others_going(&ns(), &old), []);
        contents.stir(ns());
        assert_eq!(contents.take_dirty(true), [old.clone(), new.clone()]);
        contents.disown(&ns(), &old);
        assert_eq!(contents.others_going(&ns(), &new), []);
        assert_eq!(
            contents.take_dirty(false),
            [new],
            "it need not wait any more"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn contents_are_counted_also_while_they_never_rest() {
        let contents = Contents::default();
        contents.own(ns(), owner(false));
        let woken = Arc::new(Mutex::new(0));
        let (told, follower) = (Arc::clone(&woken), contents.clone());
        let task = tokio::spawn(async move { follower.notify(|_| *told.lock() += 1).await });
        for _ in 0..20 {
            contents.stir(ns());
            tokio::time::sleep(COUNT_INTERVAL_MIN / 4).await;
        }
        task.abort();
        let woken = *woken.lock();
        assert!((4..=6).contains(&woken), "{woken}");
    }
}
