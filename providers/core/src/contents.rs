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

use crate::limits::COUNT_DEBOUNCE;

/// A SECA resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// Its kind.
    pub(crate) kind: Arc<ApiResource>,
    /// Its name.
    pub(crate) name: String,
    /// Whether it is being deleted already.
    pub(crate) deleting: bool,
}

/// Who wants to know about a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Owner {
    key: Key,
    deleting: bool,
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
    owners: BTreeMap<String, Owner>,
    /// Namespaces whose contents changed.
    dirty: BTreeSet<String>,
}

#[derive(Debug)]
struct KindState {
    resource: Arc<ApiResource>,
    listed: bool,
    /// Whether it is being deleted, by namespace and name.
    objects: BTreeMap<String, BTreeMap<String, bool>>,
}

impl Contents {
    /// All items of a namespace; `None` until everything has been listed once.
    pub(crate) fn of(&self, namespace: &str) -> Option<Vec<Item>> {
        let state = self.state.lock();
        if !state.kinds_listed || !state.kinds.values().all(|k| k.listed) {
            return None;
        }
        let mut items = Vec::new();
        for kind in state.kinds.values() {
            for (name, deleting) in kind.objects.get(namespace).into_iter().flatten() {
                items.push(Item {
                    kind: Arc::clone(&kind.resource),
                    name: name.clone(),
                    deleting: *deleting,
                });
            }
        }
        Some(items)
    }

    /// Remembers whom to wake when the contents of a namespace change.
    pub(crate) fn own(&self, namespace: &str, key: Key, deleting: bool) {
        let owner = Owner { key, deleting };
        self.state.lock().owners.insert(namespace.into(), owner);
    }

    /// Forgets about a namespace.
    pub(crate) fn disown(&self, namespace: &str) {
        self.state.lock().owners.remove(namespace);
    }

    fn stir(&self, namespace: &str) {
        self.state.lock().dirty.insert(namespace.into());
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
            state.dirty.extend(kind.objects.into_keys());
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
                let deleting = object.metadata.deletion_timestamp.is_some();
                let names = kind
                    .objects
                    .entry(key.namespace.as_ref().into())
                    .or_default();
                if names.insert(key.name.as_ref().into(), deleting) == Some(deleting) {
                    return;
                }
                state.dirty.insert(key.namespace.as_ref().into());
            }
            Change::Removed(key) => {
                if let Some(names) = kind.objects.get_mut(key.namespace.as_ref()) {
                    names.remove(key.name.as_ref());
                    if names.is_empty() {
                        kind.objects.remove(key.namespace.as_ref());
                    }
                }
                state.dirty.insert(key.namespace.as_ref().into());
            }
            Change::Listed => {
                kind.listed = true;
                state.dirty.extend(state.owners.keys().cloned());
            }
        }
        self.stirred.notify_one();
    }

    /// The owners of namespaces that changed; with `torn_down` only of those being deleted.
    fn take_dirty(&self, torn_down: bool) -> Vec<Key> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let mut woken = Vec::new();
        let owners = &state.owners;
        state.dirty.retain(|namespace| match owners.get(namespace) {
            Some(owner) if torn_down && !owner.deleting => true,
            Some(owner) => {
                woken.push(owner.key.clone());
                false
            }
            None => false,
        });
        woken
    }

    /// Watches until `shutdown`, and wakes the owners of namespaces whose contents change.
    pub(crate) async fn run(
        &self,
        client: Client,
        wake: impl Fn(Key),
        shutdown: CancellationToken,
    ) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.follow_kinds(client.clone()) => {}
            () = self.follow_namespaces(client) => {}
            () = self.notify(wake) => {}
        }
    }

    async fn notify(&self, wake: impl Fn(Key)) {
        loop {
            self.stirred.notified().await;
            // A teardown goes on at once; counting can wait for more, but not for ever.
            self.take_dirty(true).into_iter().for_each(&wake);
            let counted = tokio::time::sleep(COUNT_DEBOUNCE);
            tokio::pin!(counted);
            loop {
                tokio::select! {
                    biased;
                    () = &mut counted => break,
                    () = self.stirred.notified() => {
                        self.take_dirty(true).into_iter().for_each(&wake);
                    }
                }
            }
            self.take_dirty(false).into_iter().for_each(&wake);
        }
    }

    async fn follow_namespaces(&self, client: Client) {
        let resource = ApiResource::erase::<k8s_openapi::api::core::v1::Namespace>(&());
        let api: Api<DynamicObject> = Api::all_with(client, &resource);
        watch_selected(api, keys::WORKSPACE, |change| match change {
            Change::Applied(object) if object.metadata.deletion_timestamp.is_some() => {
                self.stir(object.metadata.name.as_deref().unwrap_or_default());
            }
            Change::Removed(key) => self.stir(&key.name),
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

    #[test]
    fn contents_are_unknown_until_listed_and_then_follow() {
        let contents = Contents::default();
        contents.own("ns", Key::new("tenant", "mr"), false);
        let name = "things.storage.v1.secapi.cloud";
        let crd = crd("storage.v1.secapi.cloud", "Namespaced");
        assert!(contents.add_kind(&crd).is_some());
        assert!(contents.add_kind(&crd).is_none(), "it is watched once");
        contents.on_kinds_listed();
        assert_eq!(contents.of("ns"), None);
        contents.on_change(name, &thing("ns", "a"));
        contents.on_change(name, &thing("other", "b"));
        contents.on_change(name, &Change::Listed);
        assert_eq!(contents.of("ns").expect("listed").len(), 1);
        assert_eq!(contents.take_dirty(false), [Key::new("tenant", "mr")]);
        contents.on_change(name, &thing("ns", "a"));
        assert!(contents.take_dirty(false).is_empty(), "nothing changed");
        contents.on_change(name, &Change::Removed(Key::new("ns", "a")));
        assert!(contents.take_dirty(true).is_empty(), "it is not torn down");
        assert_eq!(contents.take_dirty(false).len(), 1);
        assert_eq!(contents.of("ns"), Some(Vec::new()));
        contents.on_change(name, &thing("ns", "a"));
        contents.remove_kind(name);
        assert_eq!(contents.of("ns"), Some(Vec::new()));
        assert_eq!(contents.take_dirty(false).len(), 1);
    }

    #[test]
    fn a_teardown_is_told_at_once() {
        let contents = Contents::default();
        contents.own("ns", Key::new("tenant", "mr"), true);
        contents.stir("ns");
        assert_eq!(contents.take_dirty(true).len(), 1);
        contents.disown("ns");
        contents.stir("ns");
        assert!(contents.take_dirty(false).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn contents_are_counted_also_while_they_never_rest() {
        let contents = Contents::default();
        contents.own("ns", Key::new("tenant", "mr"), false);
        let woken = Arc::new(Mutex::new(0));
        let (told, follower) = (Arc::clone(&woken), contents.clone());
        let task = tokio::spawn(async move { follower.notify(|_| *told.lock() += 1).await });
        for _ in 0..20 {
            contents.stir("ns");
            tokio::time::sleep(COUNT_DEBOUNCE / 4).await;
        }
        task.abort();
        let woken = *woken.lock();
        assert!((4..=6).contains(&woken), "{woken}");
    }
}
