//! Provider configurations: what resources connect with, and who uses them.
//!
//! A `ProviderConfigUsage` records that a resource uses a configuration; it is owned by the
//! resource, so it goes with it. A configuration in use keeps its finalizer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use ecp_meta::condition::{self, Condition};
use ecp_meta::names::label_value;

use crate::arrivals::Arrivals;
use crate::clock::Clock;
use crate::creation::rfc3339;
use crate::external::ProviderConfig;
use crate::key::Key;
use crate::kind::Provider;
use crate::limits::{USERS_DEBOUNCE, WATCH_BACKOFF};
use crate::owner;
use crate::status::diff;
use crate::watching::{Change, watch_arriving};

/// Finalizer of configurations.
pub const IN_USE_FINALIZER: &str = "in-use.crossplane.io";
/// Label of usages: name of the configuration.
pub const LABEL_CONFIG: &str = "crossplane.io/provider-config";
/// Label of usages: kind of the configuration.
pub const LABEL_CONFIG_KIND: &str = "crossplane.io/provider-config-kind";

/// Kinds of configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfigKind {
    /// `ProviderConfig`, in the resource's namespace.
    Namespaced,
    /// `ClusterProviderConfig`.
    Cluster,
}

impl ConfigKind {
    /// The Kubernetes kind.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Namespaced => "ProviderConfig",
            Self::Cluster => "ClusterProviderConfig",
        }
    }

    /// The plural.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Namespaced => "providerconfigs",
            Self::Cluster => "clusterproviderconfigs",
        }
    }
}

/// A reference to a configuration. The namespace of a cluster-scoped one is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigRef {
    /// Kind.
    pub kind: ConfigKind,
    /// Where and what.
    pub key: Key,
}

impl ConfigRef {
    /// `spec.providerConfigRef` of a managed resource, with its defaults.
    ///
    /// # Errors
    /// The kind is neither of the two; it is returned.
    pub fn of(object: &DynamicObject) -> Result<Self, String> {
        let field = |f: &str| {
            object
                .data
                .pointer("/spec/providerConfigRef")
                .and_then(|r| r.get(f))
                .and_then(Value::as_str)
                .filter(|v| !v.is_empty())
        };
        let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
        let name = field("name").unwrap_or("default");
        match field("kind").unwrap_or("ClusterProviderConfig") {
            "ClusterProviderConfig" => Ok(Self {
                kind: ConfigKind::Cluster,
                key: Key::new("", name),
            }),
            "ProviderConfig" => Ok(Self {
                kind: ConfigKind::Namespaced,
                key: Key::new(namespace, name),
            }),
            other => Err(other.into()),
        }
    }
}

/// The configuration of a resource cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Unknown kind of configuration.
    #[error("providerConfigRef.kind {0:?} is neither ProviderConfig nor ClusterProviderConfig")]
    Kind(String),
    /// It does not exist.
    #[error("cannot get {0} {1}: it does not exist")]
    NotFound(&'static str, Key),
    /// The API refused.
    #[error("cannot get {0} {1}")]
    Get(&'static str, Key, #[source] kube::Error),
    /// The usage cannot be recorded.
    #[error("cannot track usage of {0} {1}")]
    Track(&'static str, Key, #[source] kube::Error),
}

/// The configurations of one provider.
pub(crate) struct Configs {
    client: Client,
    provider: Provider,
    clock: Clock,
    state: Mutex<State>,
    /// Woken when a configuration or a usage changes.
    stirred: Notify,
    /// Tells which configuration has a new spec.
    changed: broadcast::Sender<ConfigRef>,
}

#[derive(Debug, Default)]
struct State {
    configs: BTreeMap<ConfigRef, Arc<DynamicObject>>,
    /// Usage (namespace and uid of the resource) to configuration.
    usages: BTreeMap<Key, ConfigRef>,
    users: BTreeMap<ConfigRef, usize>,
    /// Objects on their way out, by kind: their usages may go before they do, with a namespace.
    leaving: BTreeMap<(&'static str, Key), ConfigRef>,
    /// Usages have been listed, so that absence means something.
    usages_listed: bool,
    dirty: BTreeSet<ConfigRef>,
}

impl Configs {
    pub(crate) fn new(client: Client, provider: Provider, clock: Clock) -> Self {
        Self {
            client,
            provider,
            clock,
            state: Mutex::default(),
            stirred: Notify::new(),
            changed: broadcast::channel(256).0,
        }
    }

    /// Configurations whose spec changed, from now on.
    pub(crate) fn changes(&self) -> broadcast::Receiver<ConfigRef> {
        self.changed.subscribe()
    }

    fn api(&self, kind: ConfigKind, namespace: &str) -> Api<DynamicObject> {
        let resource = self.provider.api_resource(kind.kind(), kind.plural());
        match kind {
            ConfigKind::Cluster => Api::all_with(self.client.clone(), &resource),
            ConfigKind::Namespaced => {
                Api::namespaced_with(self.client.clone(), namespace, &resource)
            }
        }
    }

    fn usages_api(&self, namespace: Option<&str>) -> Api<DynamicObject> {
        let resource = self
            .provider
            .api_resource("ProviderConfigUsage", "providerconfigusages");
        match namespace {
            Some(ns) => Api::namespaced_with(self.client.clone(), ns, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// Records that `object` uses its configuration, then returns the configuration. An object
    /// that is being deleted is not recorded any more.
    pub(crate) async fn connect(
        &self,
        object: &DynamicObject,
        reference: &ConfigRef,
    ) -> Result<ProviderConfig, ConfigError> {
        let config = self.get(reference).await?;
        // Nothing can be created in a namespace that is being deleted, and its usages go first:
        // what is on its way out must still be able to connect.
        if object.metadata.deletion_timestamp.is_none() {
            self.track(object, reference)
                .await
                .map_err(|e| ConfigError::Track(reference.kind.kind(), reference.key.clone(), e))?;
        }
        Ok(config)
    }

    async fn get(&self, reference: &ConfigRef) -> Result<ProviderConfig, ConfigError> {
        let kind = reference.kind.kind();
        let cached = self.state.lock().configs.get(reference).cloned();
        let object = match cached {
            Some(object) => object,
            None => {
                let key = &reference.key;
                // The watch may be behind; it must not make a resource wait.
                let found = self
                    .api(reference.kind, &key.namespace)
                    .get_opt(&key.name)
                    .await
                    .map_err(|e| ConfigError::Get(kind, key.clone(), e))?
                    .ok_or_else(|| ConfigError::NotFound(kind, key.clone()))?;
                Arc::new(found)
            }
        };
        let namespace = &reference.key.namespace;
        Ok(ProviderConfig {
            kind: kind.into(),
            namespace: (!namespace.is_empty()).then(|| namespace.as_ref().into()),
            name: reference.key.name.as_ref().into(),
            spec: object
                .data
                .get("spec")
                .cloned()
                .unwrap_or_else(|| json!({})),
        })
    }

    async fn track(&self, object: &DynamicObject, reference: &ConfigRef) -> kube::Result<()> {
        let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
        let uid = object.metadata.uid.as_deref().unwrap_or_default();
        let key = Key::new(namespace, uid);
        let known = self.state.lock().usages.get(&key).cloned();
        if known.as_ref() == Some(reference) {
            return Ok(());
        }
        let api = self.usages_api(Some(namespace));
        let usage = self.usage(object, reference);
        let params = PostParams {
            field_manager: Some(self.provider.field_manager()),
            ..PostParams::default()
        };
        match api.create(&params, &usage).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 409 => {
                // It exists already, perhaps for another configuration.
                let params = PatchParams {
                    field_manager: Some(self.provider.field_manager()),
                    ..PatchParams::default()
                };
                let patch = json!({
                    "metadata": {"labels": usage.metadata.labels},
                    "providerConfigRef": usage.data.get("providerConfigRef"),
                });
                api.patch(uid, &params, &Patch::Merge(patch)).await?;
            }
            Err(error) => return Err(error),
        }
        self.set_usage(key, Some(reference.clone()));
        Ok(())
    }

    fn usage(&self, object: &DynamicObject, reference: &ConfigRef) -> DynamicObject {
        let meta = &object.metadata;
        let types = object.types.clone().unwrap_or_default();
        let resource = self
            .provider
            .api_resource("ProviderConfigUsage", "providerconfigusages");
        let uid = meta.uid.clone().unwrap_or_default();
        let mut usage = DynamicObject::new(&uid, &resource).data(json!({
            "providerConfigRef": {
                "kind": reference.kind.kind(),
                "name": reference.key.name.as_ref(),
            },
            "resourceRef": {
                "apiVersion": types.api_version,
                "kind": types.kind,
                "name": meta.name,
                "uid": uid,
            },
        }));
        usage.metadata.namespace = meta.namespace.clone();
        usage.metadata.labels = Some(BTreeMap::from([
            (LABEL_CONFIG.to_owned(), label_value(&reference.key.name)),
            (
                LABEL_CONFIG_KIND.to_owned(),
                reference.kind.kind().to_owned(),
            ),
        ]));
        usage.metadata.owner_references = Some(vec![owner::controller(object)]);
        usage
    }

    fn set_usage(&self, key: Key, reference: Option<ConfigRef>) {
        let mut state = self.state.lock();
        let old = match reference.clone() {
            Some(new) => state.usages.insert(key, new),
            None => state.usages.remove(&key),
        };
        if old == reference {
            return;
        }
        for (side, add) in [(old, false), (reference, true)] {
            let Some(config) = side else { continue };
            let users = state.users.entry(config.clone()).or_default();
            *users = if add {
                *users + 1
            } else {
                users.saturating_sub(1)
            };
            state.dirty.insert(config);
        }
        drop(state);
        self.stirred.notify_one();
    }

    /// An object was added or changed. While it is being deleted, its configuration stays.
    pub(crate) fn seen(&self, kind: &'static str, key: &Key, object: &DynamicObject) {
        if object.metadata.deletion_timestamp.is_none() {
            return self.gone(kind, key);
        }
        if let Ok(reference) = ConfigRef::of(object) {
            let mut state = self.state.lock();
            state.leaving.insert((kind, key.clone()), reference);
        }
    }

    /// An object is gone.
    pub(crate) fn gone(&self, kind: &'static str, key: &Key) {
        let mut state = self.state.lock();
        if let Some(reference) = state.leaving.remove(&(kind, key.clone())) {
            state.dirty.insert(reference);
            drop(state);
            self.stirred.notify_one();
        }
    }

    fn set_config(&self, reference: ConfigRef, object: Option<DynamicObject>) {
        let mut state = self.state.lock();
        let spec_of = |o: &DynamicObject| o.data.get("spec").cloned();
        let new_spec = object.as_ref().map(spec_of);
        let old = match object {
            Some(object) => state.configs.insert(reference.clone(), Arc::new(object)),
            None => state.configs.remove(&reference),
        };
        state.dirty.insert(reference.clone());
        drop(state);
        self.stirred.notify_one();
        if old.map(|o| spec_of(&o)) != new_spec {
            // No receiver is no fault: there may be no kinds yet.
            let _ = self.changed.send(reference);
        }
    }

    /// Watches configurations and usages, and keeps finalizers and `status.users`, until
    /// `shutdown`.
    pub(crate) async fn run(&self, arrivals: &Arrivals, shutdown: CancellationToken) {
        let configs = |kind: ConfigKind| {
            let resource = self.provider.api_resource(kind.kind(), kind.plural());
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
            watch_arriving(api, arrivals.listen(), move |change| match change {
                Change::Applied(object) => {
                    let key = Key::of(&object);
                    self.set_config(ConfigRef { kind, key }, Some(*object));
                }
                Change::Removed(key) => self.set_config(ConfigRef { kind, key }, None),
                Change::Listed => {}
            })
        };
        let usages = watch_arriving(
            self.usages_api(None),
            arrivals.listen(),
            |change| match change {
                Change::Applied(object) => {
                    let key = Key::of(&object);
                    self.set_usage(key, usage_config(&object));
                }
                Change::Removed(key) => self.set_usage(key, None),
                Change::Listed => {
                    let mut state = self.state.lock();
                    state.usages_listed = true;
                    state.dirty = state.configs.keys().cloned().collect();
                    drop(state);
                    self.stirred.notify_one();
                }
            },
        );
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = configs(ConfigKind::Cluster) => {}
            () = configs(ConfigKind::Namespaced) => {}
            () = usages => {}
            () = self.keep() => {}
        }
    }

    /// Writes what changed, collecting changes for a short while.
    async fn keep(&self) {
        loop {
            self.stirred.notified().await;
            tokio::time::sleep(USERS_DEBOUNCE).await;
            let work = {
                let mut state = self.state.lock();
                if !state.usages_listed {
                    continue;
                }
                std::mem::take(&mut state.dirty)
            };
            for reference in work {
                if let Err(error) = self.keep_one(&reference).await {
                    debug!(?reference, %error, "configuration not updated, will try again");
                    self.state.lock().dirty.insert(reference);
                    tokio::time::sleep(WATCH_BACKOFF.0).await;
                    self.stirred.notify_one();
                }
            }
        }
    }

    async fn keep_one(&self, reference: &ConfigRef) -> kube::Result<()> {
        let (config, users, is_used) = {
            let state = self.state.lock();
            let Some(config) = state.configs.get(reference).cloned() else {
                return Ok(());
            };
            let users = state.users.get(reference).copied().unwrap_or(0);
            let is_used = users > 0 || state.leaving.values().any(|r| r == reference);
            (config, users, is_used)
        };
        let api = self.api(reference.kind, &reference.key.namespace);
        let deleting = config.metadata.deletion_timestamp.is_some();
        let has_finalizer = config
            .metadata
            .finalizers
            .iter()
            .flatten()
            .any(|f| f == IN_USE_FINALIZER);
        let wanted = !deleting || is_used;
        if wanted != has_finalizer && (wanted || deleting) {
            let mut changed = DynamicObject::clone(&config);
            let finalizers = changed.metadata.finalizers.get_or_insert_default();
            finalizers.retain(|f| f != IN_USE_FINALIZER);
            if wanted {
                if deleting {
                    // A finalizer cannot be added to what is being deleted.
                    return Ok(());
                }
                finalizers.push(IN_USE_FINALIZER.into());
            }
            let params = PostParams {
                field_manager: Some(self.provider.field_manager()),
                ..PostParams::default()
            };
            match api.replace(&reference.key.name, &params, &changed).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
                Err(error) => return Err(error),
            }
            if !wanted {
                return Ok(());
            }
        }
        let Some(patch) = status_patch(&config, users, deleting, self.clock.now()) else {
            return Ok(());
        };
        let params = PatchParams {
            field_manager: Some(self.provider.field_manager()),
            ..PatchParams::default()
        };
        match api
            .patch_status(&reference.key.name, &params, &Patch::Merge(patch))
            .await
        {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The configuration that a usage speaks of.
fn usage_config(usage: &DynamicObject) -> Option<ConfigRef> {
    let reference = usage.data.get("providerConfigRef")?;
    let name = reference.get("name")?.as_str()?;
    let namespace = usage.metadata.namespace.as_deref().unwrap_or_default();
    match reference.get("kind").and_then(Value::as_str) {
        Some("ProviderConfig") => Some(ConfigRef {
            kind: ConfigKind::Namespaced,
            key: Key::new(namespace, name),
        }),
        Some("ClusterProviderConfig") | None => Some(ConfigRef {
            kind: ConfigKind::Cluster,
            key: Key::new("", name),
        }),
        Some(other) => {
            warn!(kind = other, "usage of an unknown kind of configuration");
            None
        }
    }
}

/// The patch that makes a configuration's status tell its users; `None` when it does.
fn status_patch(
    config: &DynamicObject,
    users: usize,
    deleting: bool,
    now: Timestamp,
) -> Option<Value> {
    let old = config
        .data
        .get("status")
        .filter(|status| status.is_object())
        .cloned()
        .unwrap_or_else(|| json!({}));
    let mut new = old.clone();
    new["users"] = users.into();
    if deleting {
        let mut conditions = condition::of(&json!({ "status": old }));
        let message = format!("delete blocked: in use by {users} resources");
        condition::set(
            &mut conditions,
            Condition::new("Terminating", true, "InUse", &message, &rfc3339(now)),
        );
        new["conditions"] = json!(conditions);
    }
    diff(&old, &new).map(|status| json!({ "status": status }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).expect("an object")
    }

    #[test]
    fn references_have_defaults() {
        let mr = object(json!({"metadata": {"name": "a", "namespace": "ns"}, "spec": {}}));
        assert_eq!(
            ConfigRef::of(&mr),
            Ok(ConfigRef {
                kind: ConfigKind::Cluster,
                key: Key::new("", "default"),
            })
        );
        let mr = object(json!({
            "metadata": {"name": "a", "namespace": "ns"},
            "spec": {"providerConfigRef": {"kind": "ProviderConfig", "name": "c"}},
        }));
        assert_eq!(
            ConfigRef::of(&mr),
            Ok(ConfigRef {
                kind: ConfigKind::Namespaced,
                key: Key::new("ns", "c"),
            })
        );
        let mr = object(json!({
            "metadata": {"name": "a"},
            "spec": {"providerConfigRef": {"kind": "Secret", "name": "c"}},
        }));
        assert_eq!(ConfigRef::of(&mr), Err("Secret".into()));
    }

    #[test]
    fn status_tells_users_once() {
        let config = object(json!({"metadata": {"name": "a"}}));
        let now = Timestamp::UNIX_EPOCH;
        let patch = status_patch(&config, 2, false, now).expect("a change");
        assert_eq!(patch, json!({"status": {"users": 2}}));
        let config = object(json!({"metadata": {"name": "a"}, "status": {"users": 2}}));
        assert_eq!(status_patch(&config, 2, false, now), None);
        let blocked = status_patch(&config, 2, true, now).expect("a change");
        assert_eq!(blocked["status"]["conditions"][0]["reason"], "InUse");
    }
}
