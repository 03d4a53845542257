//! The registry: the resources of every logical cluster, kept current.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use ecp_meta::cluster::ClusterName;
use ecp_meta::object;
use ecp_store::Revision;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::custom::{CompiledCrd, SpecDigest, compile, spec_digest};
use super::{CrdState, Resource, Resources, builtin, sort_key};

/// The resources of every logical cluster.
#[derive(Debug)]
pub struct Registry {
    base: Arc<Resources>,
    clusters: RwLock<HashMap<ClusterName, Cluster>>,
    /// Compiled definitions by digest, shared by clusters and dropped with their last user.
    compiled: Mutex<HashMap<SpecDigest, Weak<CompiledCrd>>>,
    applied: watch::Sender<Revision>,
}

#[derive(Debug, Default)]
struct Cluster {
    crds: BTreeMap<String, Definition>,
    /// Made on first use after a change, so that installing n definitions costs O(n).
    snapshot: Option<Arc<Resources>>,
}

#[derive(Debug)]
struct Definition {
    state: Arc<CrdState>,
    compiled: Arc<CompiledCrd>,
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// A registry that has only the built-in resources.
    pub fn new() -> Self {
        Self {
            base: Arc::new(Resources {
                version: 0,
                builtin: builtin::table(),
                custom: Vec::new(),
            }),
            clusters: RwLock::default(),
            compiled: Mutex::default(),
            applied: watch::Sender::new(Revision(0)),
        }
    }

    /// The resources of a cluster, as of now.
    pub fn resources(&self, cluster: &ClusterName) -> Arc<Resources> {
        {
            let clusters = self.clusters.read();
            match clusters.get(cluster) {
                None => return Arc::clone(&self.base),
                Some(Cluster {
                    snapshot: Some(snapshot),
                    ..
                }) => return Arc::clone(snapshot),
                Some(_) => {}
            }
        }
        let mut clusters = self.clusters.write();
        let Some(cluster) = clusters.get_mut(cluster) else {
            return Arc::clone(&self.base);
        };
        let snapshot = cluster
            .snapshot
            .get_or_insert_with(|| Arc::new(snapshot(&self.base, &cluster.crds)));
        Arc::clone(snapshot)
    }

    /// A resource of any cluster that has it.
    pub fn find_anywhere(&self, group: &str, version: &str, plural: &str) -> Option<Resource> {
        if let Some(builtin) = self.base.find(group, version, plural) {
            return Some(builtin.clone());
        }
        self.clusters()
            .iter()
            .find_map(|c| self.resources(c).find(group, version, plural).cloned())
    }

    /// Stops serving every definition that `keep` does not know.
    pub(crate) fn retain(&self, keep: impl Fn(&ClusterName, &str) -> bool) {
        let gone: Vec<(ClusterName, String)> = {
            let clusters = self.clusters.read();
            let all = clusters
                .iter()
                .flat_map(|(c, entry)| entry.crds.keys().map(move |name| (c, name)));
            all.filter(|(c, name)| !keep(c, name))
                .map(|(c, name)| (c.clone(), name.clone()))
                .collect()
        };
        for (cluster, name) in gone {
            self.remove(&cluster, &name);
        }
    }

    /// The clusters that have custom resources.
    pub fn clusters(&self) -> Vec<ClusterName> {
        self.clusters.read().keys().cloned().collect()
    }

    /// Waits until every definition written at or before `revision` is served.
    pub async fn wait_for(&self, revision: Revision) {
        let mut applied = self.applied.subscribe();
        // The sender lives in self, so the wait can only end by reaching the revision.
        let _ = applied.wait_for(|at| *at >= revision).await;
    }

    /// Takes a definition as it is now stored. One that is not established is not served.
    pub(crate) fn put(&self, cluster: &ClusterName, crd: &Value) {
        if !ecp_meta::condition::is_true(crd, "Established") {
            self.remove(cluster, object::name(crd));
            return;
        }
        let compiled = match self.compiled(crd) {
            Ok(compiled) => compiled,
            Err(error) => {
                // Cannot happen for a definition that this version validated.
                tracing::error!(%cluster, crd = object::name(crd), %error, "definition not served");
                self.remove(cluster, object::name(crd));
                return;
            }
        };
        let (name, uid) = (object::name(crd), object::uid(crd));
        let mut clusters = self.clusters.write();
        let cluster = clusters.entry(cluster.clone()).or_default();
        let before = cluster.crds.remove(name);
        let changed = match before {
            Some(old) if old.compiled.digest == compiled.digest && old.state.uid == uid => {
                old.state.changed.clone()
            }
            old => {
                if let Some(old) = old {
                    old.state.changed.cancel();
                }
                CancellationToken::new()
            }
        };
        let state = Arc::new(CrdState {
            name: name.into(),
            uid: uid.into(),
            terminating: object::is_deleting(crd),
            changed,
        });
        cluster.snapshot = None;
        cluster
            .crds
            .insert(name.into(), Definition { state, compiled });
    }

    /// Stops serving a definition.
    pub(crate) fn remove(&self, cluster: &ClusterName, name: &str) {
        let mut unused = None;
        let mut clusters = self.clusters.write();
        if let Some(entry) = clusters.get_mut(cluster) {
            if let Some(old) = entry.crds.remove(name) {
                old.state.changed.cancel();
                unused = Some(old.compiled.digest);
            }
            entry.snapshot = None;
            if entry.crds.is_empty() {
                clusters.remove(cluster);
            }
        }
        drop(clusters);
        if let Some(digest) = unused {
            let mut compiled = self.compiled.lock();
            if compiled.get(&digest).is_some_and(|c| c.strong_count() == 0) {
                compiled.remove(&digest);
            }
        }
    }

    /// Notes that all definitions up to `revision` are taken.
    pub(crate) fn advance(&self, revision: Revision) {
        self.applied
            .send_if_modified(|at| std::mem::replace(at, revision.max(*at)) < revision);
    }

    fn compiled(&self, crd: &Value) -> Result<Arc<CompiledCrd>, super::CompileError> {
        let digest = spec_digest(crd);
        if let Some(known) = self.compiled.lock().get(&digest).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let compiled = Arc::new(compile(crd)?);
        let mut known = self.compiled.lock();
        // Those that newer texts have replaced.
        known.retain(|_, compiled| compiled.strong_count() > 0);
        known.insert(digest, Arc::downgrade(&compiled));
        drop(known);
        Ok(compiled)
    }
}

fn snapshot(base: &Resources, crds: &BTreeMap<String, Definition>) -> Resources {
    let mut digest = Sha256::new();
    let mut custom = Vec::new();
    for definition in crds.values() {
        digest.update(definition.compiled.digest);
        for info in &definition.compiled.versions {
            custom.push(Resource {
                info: Arc::clone(info),
                crd: Some(Arc::clone(&definition.state)),
            });
        }
    }
    custom.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
    let mut version = [0; 8];
    for (to, from) in version.iter_mut().zip(digest.finalize()) {
        *to = from;
    }
    Resources {
        version: u64::from_le_bytes(version),
        builtin: Arc::clone(&base.builtin),
        custom,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn replaced_texts_of_a_definition_are_forgotten() {
        let registry = Registry::new();
        for n in 0..5 {
            let crd = json!({
                "metadata": {"name": "foos.ex.test", "uid": "u"},
                "spec": {
                    "group": "ex.test", "scope": "Namespaced",
                    "names": {"plural": "foos", "kind": "Foo"},
                    "versions": [{
                        "name": "v1", "served": true, "storage": true,
                        "schema": {"openAPIV3Schema": {
                            "type": "object", "description": n.to_string()
                        }}
                    }]
                },
                "status": {"conditions": [{"type": "Established", "status": "True"}]}
            });
            registry.put(&ClusterName::root(), &crd);
        }
        // One may be forgotten with the next.
        assert!(registry.compiled.lock().len() <= 2);
        assert_eq!(registry.resources(&ClusterName::root()).custom.len(), 1);
    }
}
