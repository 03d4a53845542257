//! The end of namespaces: their contents are deleted, then they are.
//!
//! As `k8s.io/kubernetes/pkg/controller/namespace/deletion`: the finalizer `kubernetes` in
//! `spec.finalizers` holds a namespace until nothing is left in it; conditions say what is.
//!
//! A create that was committed while its namespace went is taken back by who made it. Where a
//! process ended in between, the next start finds what is in no namespace, and deletes it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use ecp_meta::cluster::ClusterName;
use ecp_meta::condition::{self, Condition};
use ecp_meta::object;
use ecp_store::Revision;
use parking_lot::Mutex;
use serde_json::Value;

use super::feed::Seen;
use super::queue::Queue;
use crate::handlers::{self, DeleteOptions, Propagation};
use crate::internal::{Internal, Object};
use crate::registry::{Resource, Resources};
use crate::server::ApiServer;
use crate::status::Status;

/// Finalizer of namespaces that this controller removes.
const FINALIZER: &str = "kubernetes";

/// A namespace of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Namespace {
    cluster: ClusterName,
    name: Arc<str>,
}

/// Ends namespaces.
#[derive(Debug)]
pub(super) struct Lifecycle {
    server: Arc<ApiServer>,
    internal: Internal,
    /// Namespaces that are being deleted.
    terminating: Mutex<HashSet<Namespace>>,
    loading: Mutex<Loading>,
    /// Namespaces that were missing, though something was in them, at a revision.
    missing: Mutex<HashMap<Namespace, Revision>>,
    queue: Queue<Namespace>,
}

/// Namespaces seen while everything there is is shown.
#[derive(Debug, Default)]
struct Loading {
    existing: HashSet<Namespace>,
    used: HashSet<Namespace>,
    /// That of the last object: they come sorted.
    last: Option<Namespace>,
}

/// What is left in a namespace.
#[derive(Debug, Default)]
struct Remaining {
    /// Objects by resource.
    by_resource: BTreeMap<String, usize>,
    /// Objects by finalizer.
    by_finalizer: BTreeMap<String, usize>,
}

impl Lifecycle {
    pub(super) fn new(server: &Arc<ApiServer>) -> Arc<Self> {
        Arc::new(Self {
            server: Arc::clone(server),
            internal: server.internal(),
            terminating: Mutex::default(),
            loading: Mutex::default(),
            missing: Mutex::default(),
            queue: Queue::new(),
        })
    }

    /// Forgets what it was shown: it will be shown everything again.
    pub(super) fn reset(&self) {
        self.terminating.lock().clear();
        *self.loading.lock() = Loading::default();
    }

    /// An object is there, in the list of all that is.
    pub(super) fn listed(&self, seen: &Seen<'_>) {
        self.put(seen);
        let mut loading = self.loading.lock();
        if is_namespace(seen) {
            let existing = namespace(seen, seen.parts.name);
            loading.existing.insert(existing);
        } else if let Some(name) = seen.parts.namespace {
            let is_last = |last: &Namespace| *last.name == *name && last.cluster == *seen.cluster;
            if !loading.last.as_ref().is_some_and(is_last) {
                let used = namespace(seen, name);
                loading.last = Some(used.clone());
                loading.used.insert(used);
            }
        }
    }

    /// All that is has been listed, at a revision.
    pub(super) fn loaded(&self, revision: Revision) {
        let Loading { existing, used, .. } = std::mem::take(&mut *self.loading.lock());
        for missing in used.difference(&existing) {
            self.missing.lock().insert(missing.clone(), revision);
            self.queue.add(missing.clone());
        }
    }

    /// An object is there.
    pub(super) fn put(&self, seen: &Seen<'_>) {
        if !is_namespace(seen) {
            return;
        }
        let namespace = namespace(seen, seen.parts.name);
        if seen.meta.is_deleting() {
            self.terminating.lock().insert(namespace.clone());
            self.queue.add(namespace);
        } else {
            self.terminating.lock().remove(&namespace);
        }
    }

    /// An object is gone.
    pub(super) fn deleted(&self, seen: &Seen<'_>) {
        if is_namespace(seen) {
            self.terminating
                .lock()
                .remove(&namespace(seen, seen.parts.name));
        } else if let Some(name) = seen.parts.namespace {
            let terminating = self.terminating.lock();
            if terminating.is_empty() {
                return;
            }
            let namespace = namespace(seen, name);
            if let Some(known) = terminating.get(&namespace) {
                self.queue.add(known.clone());
            }
        }
    }

    /// Works for ever.
    pub(super) async fn work(self: Arc<Self>) {
        loop {
            let namespace = self.queue.next().await;
            match self.process(&namespace).await {
                Ok(()) => self.queue.done(&namespace),
                Err(status) => {
                    if status.reason() != "Conflict" {
                        let (cluster, name) = (&namespace.cluster, &namespace.name);
                        tracing::warn!(%cluster, %name, error = %status, "namespace is not gone yet");
                    }
                    self.queue.failed(&namespace);
                }
            }
        }
    }

    async fn process(&self, namespace: &Namespace) -> Result<(), Status> {
        let cluster = &namespace.cluster;
        let resources = self.server.registry().resources(cluster);
        let missing = self.missing.lock().get(namespace).copied();
        if let Some(at) = missing {
            for resource in kinds(&resources).values() {
                self.delete_all(namespace, resource, at).await?;
            }
            self.missing.lock().remove(namespace);
        }
        let Some(kind) = resources.find("", "v1", "namespaces") else {
            return Ok(());
        };
        let found = self
            .internal
            .get(cluster, kind, None, &namespace.name)
            .await?;
        let Some(found) = found.filter(|found| object::is_deleting(&found.value)) else {
            return Ok(());
        };
        let kinds = kinds(&resources);
        for resource in kinds.values() {
            self.delete_all(namespace, resource, Revision(u64::MAX))
                .await?;
        }
        let mut remaining = Remaining::default();
        for resource in kinds.values() {
            let (objects, _) = self
                .internal
                .list(cluster, resource, Some(&namespace.name))
                .await?;
            remaining.add(resource, &objects);
        }
        self.finish(found, &remaining).await
    }

    /// Deletes the objects of a namespace that were created up to a revision.
    async fn delete_all(
        &self,
        namespace: &Namespace,
        resource: &Resource,
        until: Revision,
    ) -> Result<(), Status> {
        let cluster = &namespace.cluster;
        let (objects, _) = self
            .internal
            .list(cluster, resource, Some(&namespace.name))
            .await?;
        for object in objects
            .iter()
            .filter(|object| !object::is_deleting(&object.value) && object.created <= until)
        {
            let options = DeleteOptions {
                propagation: Some(Propagation::Background),
                uid: Some(object.uid().to_owned()),
                ..DeleteOptions::default()
            };
            let name = object.name();
            let deleted = self
                .internal
                .delete(cluster, resource, Some(&namespace.name), name, &options)
                .await;
            match deleted {
                Err(status) if status.reason() != "NotFound" => return Err(status),
                _ => {}
            }
        }
        Ok(())
    }

    /// Lets the namespace go if it is empty, else says what is left.
    async fn finish(&self, mut found: Object, remaining: &Remaining) -> Result<(), Status> {
        if remaining.by_resource.is_empty() {
            let finalizers = found.value.pointer_mut("/spec/finalizers");
            if let Some(finalizers) = finalizers.and_then(Value::as_array_mut) {
                finalizers.retain(|finalizer| finalizer.as_str() != Some(FINALIZER));
            }
        }
        let now = handlers::time(self.server.now());
        let mut conditions = condition::of(&found.value);
        for condition in remaining.conditions(&now) {
            condition::set(&mut conditions, condition);
        }
        let conditions = serde_json::to_value(conditions).unwrap_or_default();
        object::entry_map(&mut found.value, "status").insert("conditions".to_owned(), conditions);
        match self.internal.update(&found).await {
            Err(status) if status.reason() != "NotFound" => Err(status),
            _ => Ok(()),
        }
    }
}

/// The namespaced resources, at the version that is stored, by key prefix.
fn kinds(resources: &Resources) -> BTreeMap<String, &Resource> {
    let mut kinds: BTreeMap<String, &Resource> = BTreeMap::new();
    for resource in resources.iter().filter(|resource| resource.namespaced) {
        let of_kind = kinds.entry(resource.key_prefix()).or_insert(resource);
        if resource.storage_version {
            *of_kind = resource;
        }
    }
    kinds
}

fn is_namespace(seen: &Seen<'_>) -> bool {
    (seen.parts.group, seen.parts.resource) == ("", "namespaces")
}

fn namespace(seen: &Seen<'_>, name: &str) -> Namespace {
    Namespace {
        cluster: seen.cluster.clone(),
        name: name.into(),
    }
}

impl Remaining {
    fn add(&mut self, resource: &Resource, objects: &[Object]) {
        if objects.is_empty() {
            return;
        }
        // Upstream writes core resources with the trailing dot of their empty group.
        let name = format!("{}.{}", resource.plural, resource.gvk.group);
        self.by_resource.insert(name, objects.len());
        for object in objects {
            for finalizer in object::finalizers(&object.value) {
                *self.by_finalizer.entry(finalizer.to_owned()).or_default() += 1;
            }
        }
    }

    fn conditions(&self, now: &str) -> [Condition; 5] {
        let list = |counts: &BTreeMap<String, usize>, word: &str| {
            let parts: Vec<String> = counts
                .iter()
                .map(|(what, count)| format!("{what} {word} {count} resource instances"))
                .collect();
            parts.join(", ")
        };
        let content = match self.by_resource.is_empty() {
            true => (
                false,
                "ContentRemoved",
                "All content successfully removed".to_owned(),
            ),
            false => (
                true,
                "SomeResourcesRemain",
                format!(
                    "Some resources are remaining: {}",
                    list(&self.by_resource, "has")
                ),
            ),
        };
        let finalizers = match self.by_finalizer.is_empty() {
            true => (
                false,
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished".to_owned(),
            ),
            false => (
                true,
                "SomeFinalizersRemain",
                format!(
                    "Some content in the namespace has finalizers remaining: {}",
                    list(&self.by_finalizer, "in")
                ),
            ),
        };
        let fine = |kind, reason, message| Condition::new(kind, false, reason, message, now);
        [
            fine(
                "NamespaceDeletionDiscoveryFailure",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            fine(
                "NamespaceDeletionGroupVersionParsingFailure",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            fine(
                "NamespaceDeletionContentFailure",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            Condition::new(
                "NamespaceContentRemaining",
                content.0,
                content.1,
                &content.2,
                now,
            ),
            Condition::new(
                "NamespaceFinalizersRemaining",
                finalizers.0,
                finalizers.1,
                &finalizers.2,
                now,
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_say_what_is_left() {
        let remaining = Remaining {
            by_resource: [("configmaps.".to_owned(), 2)].into(),
            by_finalizer: [("ex.test/f".to_owned(), 1)].into(),
        };
        let conditions = remaining.conditions("2026-01-01T00:00:00Z");
        let texts: Vec<_> = conditions.iter().map(|c| c.message.as_str()).collect();
        assert_eq!(
            texts[3..],
            [
                "Some resources are remaining: configmaps. has 2 resource instances",
                "Some content in the namespace has finalizers remaining: ex.test/f in 1 resource \
                 instances",
            ]
        );
    }
}
