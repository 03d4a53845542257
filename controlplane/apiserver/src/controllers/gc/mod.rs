//! Garbage collection by owner references, in every logical cluster.
//!
//! Rules follow `k8s.io/kubernetes/pkg/controller/garbagecollector`: an object goes when all its
//! owners are gone; foreground deletion removes dependents that block it first; orphaning takes the
//! reference off the dependents. An owner is looked for in the dependent's own cluster and
//! namespace (or among objects without namespace) and must have the uid that the reference names.
//! References to kinds the cluster does not know are left alone.

mod graph;

use std::sync::Arc;

use ecp_meta::cluster::ClusterName;
use ecp_meta::gvk::GroupVersionKind;
use ecp_meta::object;
use ecp_store::Revision;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{RwLock, RwLockWriteGuard, watch};

use super::feed::Seen;
use super::queue::Queue;
use super::resource_of;
use super::stored::{Meta, OwnerRef};
use crate::handlers::{DeleteOptions, Propagation};
use crate::internal::{Internal, Object};
use crate::registry::Resource;
use crate::server::ApiServer;
use crate::status::Status;
use crate::storage;
use graph::{Blocking, Graph, OwnerId};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// The garbage collector.
#[derive(Debug)]
pub(super) struct Collector {
    server: Arc<ApiServer>,
    internal: Internal,
    graph: Mutex<Graph>,
    queue: Queue<Arc<str>>,
    /// Held to read while the graph is worked with, and to write while it is made anew.
    whole: RwLock<()>,
    /// Revision up to which the graph knows what happened.
    applied: watch::Sender<Revision>,
    /// Revision of the last change of a definition.
    definitions: watch::Sender<Revision>,
}

/// What has become of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// It is there.
    Solid,
    /// It is being deleted and waits for its dependents.
    Waiting,
    /// It is gone, or never was.
    Dangling,
    /// It cannot be looked for.
    Unknown,
}

impl Collector {
    pub(super) fn new(server: &Arc<ApiServer>) -> Arc<Self> {
        Arc::new(Self {
            server: Arc::clone(server),
            internal: server.internal(),
            graph: Mutex::default(),
            queue: Queue::new(),
            whole: RwLock::default(),
            applied: watch::Sender::new(Revision(0)),
            definitions: watch::Sender::new(Revision(0)),
        })
    }

    /// Forgets what it was shown: it will be shown everything again. Nothing is decided until the
    /// guard is dropped: with half of the dependents known, an owner would let go of the others.
    pub(super) async fn reset(&self) -> RwLockWriteGuard<'_, ()> {
        let guard = self.whole.write().await;
        *self.graph.lock() = Graph::default();
        guard
    }

    /// Everything up to a revision was shown.
    pub(super) fn advance(&self, revision: Revision) {
        self.applied
            .send_if_modified(|at| std::mem::replace(at, revision.max(*at)) < revision);
    }

    /// An object is there.
    pub(super) fn put(&self, seen: &Seen<'_>) {
        let mut graph = self.graph.lock();
        let before = graph.owners(seen.key);
        let changed = graph.set(seen.key, seen.cluster, &seen.meta.owner_references);
        let deletes_dependents = seen.meta.is_deleting()
            && (seen.meta.has_finalizer(FOREGROUND) || seen.meta.has_finalizer(ORPHAN));
        if changed || deletes_dependents {
            self.queue.add(Arc::clone(seen.key));
        }
        if seen.meta.is_deleting() && !seen.meta.uid.is_empty() {
            // Dependents learn that their owner waits for them.
            let id = OwnerId::new(seen.cluster, &seen.meta.uid);
            if seen.meta.has_finalizer(FOREGROUND) {
                self.add_all(graph.dependents(&id, Blocking::Any));
            }
        }
        if changed {
            // An owner that waited for this object may not have to any more.
            self.wake_owners(&graph, &before);
        }
        if (seen.parts.group, seen.parts.resource)
            == ("apiextensions.k8s.io", "customresourcedefinitions")
        {
            self.definitions.send_replace(seen.revision);
            self.add_all(graph.take_unresolved(seen.cluster));
        }
    }

    /// An object is gone.
    pub(super) fn deleted(&self, seen: &Seen<'_>) {
        let mut graph = self.graph.lock();
        let owners = graph.forget(seen.key);
        self.wake_owners(&graph, &owners);
        graph.unset_gone(seen.cluster, seen.key, &seen.meta.uid);
        if seen.meta.uid.is_empty() {
            return;
        }
        let id = OwnerId::new(seen.cluster, &seen.meta.uid);
        let dependents = graph.dependents(&id, Blocking::Any);
        if !dependents.is_empty() {
            graph.set_absent(id);
            self.add_all(dependents);
        }
    }

    fn add_all(&self, keys: impl IntoIterator<Item = Arc<str>>) {
        keys.into_iter().for_each(|key| self.queue.add(key));
    }

    /// Lets owners that wait for their dependents look again.
    fn wake_owners(&self, graph: &Graph, owners: &[OwnerId]) {
        for owner in owners {
            if let Some(key) = graph.waiting(owner) {
                self.queue.add(key);
            }
        }
    }

    /// Works for ever.
    pub(super) async fn work(self: Arc<Self>) {
        loop {
            let key = self.queue.next().await;
            match self.process(&key).await {
                Ok(()) => self.queue.done(&key),
                Err(status) => {
                    // Conflicts are everyday: somebody else wrote meanwhile.
                    if status.reason() != "Conflict" {
                        tracing::warn!(%key, error = %status, "garbage collection is put off");
                    }
                    self.queue.failed(&key);
                }
            }
        }
    }

    async fn process(&self, key: &Arc<str>) -> Result<(), Status> {
        let Some(object) = self.object(key).await? else {
            return Ok(());
        };
        // The graph must be at least as new as the object: dependents that were there when it was
        // deleted must be known. The sender lives in self, so the wait ends by reaching it.
        let _ = self
            .applied
            .subscribe()
            .wait_for(|at| *at >= object.revision)
            .await;
        let _whole = self.whole.read().await;
        let meta = meta_of(&object.value);
        let id = OwnerId::new(&object.cluster, &meta.uid);
        if meta.is_deleting() {
            if meta.has_finalizer(ORPHAN) {
                return self.orphan_dependents(&object, &id).await;
            }
            if meta.has_finalizer(FOREGROUND) {
                return self.await_dependents(key, &object, &id).await;
            }
            return Ok(());
        }
        if meta.owner_references.is_empty() {
            return Ok(());
        }
        self.judge(key, &object, &meta, &id).await
    }

    async fn object(&self, key: &str) -> Result<Option<Object>, Status> {
        let Some(parts) = storage::parse_key(key) else {
            return Ok(None);
        };
        let Ok(cluster) = parts.cluster.parse::<ClusterName>() else {
            return Ok(None);
        };
        let Some(resource) = resource_of(&self.server, &cluster, &parts) else {
            return Ok(None);
        };
        self.internal
            .get(&cluster, &resource, parts.namespace, parts.name)
            .await
    }

    /// Decides whether an object stays.
    async fn judge(
        &self,
        key: &Arc<str>,
        object: &Object,
        meta: &Meta,
        id: &OwnerId,
    ) -> Result<(), Status> {
        let mut gone = Vec::new();
        let (mut solid, mut waiting) = (false, false);
        for reference in &meta.owner_references {
            match self.owner(object, reference).await? {
                Owner::Solid => solid = true,
                Owner::Waiting => {
                    waiting = true;
                    gone.push(reference.uid.as_str());
                }
                Owner::Dangling => gone.push(reference.uid.as_str()),
                Owner::Unknown => {
                    // Nothing is decided on half the facts.
                    self.graph
                        .lock()
                        .set_unresolved(&object.cluster, Arc::clone(key));
                    return Ok(());
                }
            }
        }
        if solid {
            if !gone.is_empty() {
                self.drop_references(object, &gone).await?;
            }
            return Ok(());
        }
        // An owner that waits wants everything below gone first, too.
        let dependents = self.graph.lock().dependents(id, Blocking::Any);
        let has_dependents = !dependents.is_empty();
        if waiting && self.any_waits(&dependents).await? {
            // Owner and dependent wait for each other.
            return self.unblock_owners(object).await;
        }
        let propagation = match () {
            () if waiting && has_dependents => Propagation::Foreground,
            () if meta.has_finalizer(ORPHAN) => Propagation::Orphan,
            () if meta.has_finalizer(FOREGROUND) => Propagation::Foreground,
            () => Propagation::Background,
        };
        self.delete(object, propagation).await
    }

    async fn any_waits(&self, keys: &[Arc<str>]) -> Result<bool, Status> {
        for key in keys {
            if self
                .object(key)
                .await?
                .is_some_and(|object| waits(&object.value))
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lets the owners of an object go before it.
    async fn unblock_owners(&self, object: &Object) -> Result<(), Status> {
        let mut object = object.clone();
        let references = object::metadata_mut(&mut object.value).get_mut("ownerReferences");
        for reference in references
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            if let Some(reference) = reference.as_object_mut() {
                reference.insert("blockOwnerDeletion".to_owned(), false.into());
            }
        }
        ignore_missing(self.internal.update(&object).await)
    }

    async fn owner(&self, dependent: &Object, reference: &OwnerRef) -> Result<Owner, Status> {
        let cluster = &dependent.cluster;
        if self
            .graph
            .lock()
            .is_absent(&OwnerId::new(cluster, &reference.uid))
        {
            return Ok(Owner::Dangling);
        }
        // Definitions that the graph has seen must be served.
        let definitions = *self.definitions.borrow();
        self.server.registry().wait_for(definitions).await;
        let Some(resource) = self.resource(cluster, reference) else {
            return Ok(Owner::Unknown);
        };
        let namespace = match (resource.namespaced, dependent.namespace()) {
            (false, _) => None,
            (true, Some(namespace)) => Some(namespace),
            // No namespace to look in: such a reference means nothing.
            (true, None) => return Ok(Owner::Unknown),
        };
        let found = self
            .internal
            .get(cluster, &resource, namespace, &reference.name)
            .await?;
        let Some(owner) = found.filter(|owner| owner.uid() == reference.uid) else {
            return Ok(Owner::Dangling);
        };
        Ok(if waits(&owner.value) {
            Owner::Waiting
        } else {
            Owner::Solid
        })
    }

    /// The resource of a kind: at the version named, else at any.
    fn resource(&self, cluster: &ClusterName, reference: &OwnerRef) -> Option<Resource> {
        let gvk = GroupVersionKind::from_api_version(&reference.api_version, &reference.kind);
        let resources = self.server.registry().resources(cluster);
        let any = || {
            resources
                .iter()
                .find(|r| r.gvk.group == gvk.group && r.gvk.kind == gvk.kind)
        };
        resources.find_kind(&gvk).or_else(any).cloned()
    }

    async fn delete(&self, object: &Object, propagation: Propagation) -> Result<(), Status> {
        let options = DeleteOptions {
            uid: Some(object.uid().to_owned()),
            // Owners added since the decision must not be overlooked.
            resource_version: Some(object::resource_version(&object.value).to_owned()),
            propagation: Some(propagation),
            ..DeleteOptions::default()
        };
        let (cluster, resource) = (&object.cluster, &object.resource);
        let deleted = self
            .internal
            .delete(
                cluster,
                resource,
                object.namespace(),
                object.name(),
                &options,
            )
            .await;
        match deleted {
            Err(status) if status.reason() != "NotFound" => Err(status),
            _ => {
                tracing::debug!(
                    %cluster,
                    resource = %resource.group_resource(),
                    namespace = object.namespace(),
                    name = object.name(),
                    ?propagation,
                    "deleted: its owners are gone"
                );
                Ok(())
            }
        }
    }

    /// Takes references to owners off an object.
    async fn drop_references(&self, object: &Object, uids: &[&str]) -> Result<(), Status> {
        let mut object = object.clone();
        let metadata = object::metadata_mut(&mut object.value);
        retain(metadata, "ownerReferences", |reference| {
            let uid = reference.get("uid").and_then(Value::as_str);
            !uid.is_some_and(|uid| uids.contains(&uid))
        });
        ignore_missing(self.internal.update(&object).await)
    }

    /// Takes the references to a deleted owner off its dependents, then lets it go.
    async fn orphan_dependents(&self, owner: &Object, id: &OwnerId) -> Result<(), Status> {
        let dependents = self.graph.lock().dependents(id, Blocking::Any);
        for key in dependents {
            if let Some(dependent) = self.object(&key).await? {
                self.drop_references(&dependent, &[owner.uid()]).await?;
            }
        }
        self.remove_finalizer(owner, ORPHAN).await
    }

    /// Deletes the dependents that hold a deleted owner; lets it go when there are none.
    async fn await_dependents(
        &self,
        key: &Arc<str>,
        owner: &Object,
        id: &OwnerId,
    ) -> Result<(), Status> {
        {
            let mut graph = self.graph.lock();
            let blocking = graph.dependents(id, Blocking::Only);
            if !blocking.is_empty() {
                // They wake this owner when they are gone.
                graph.set_waiting(id.clone(), Arc::clone(key));
                self.add_all(blocking);
                return Ok(());
            }
            graph.unset_waiting(id);
        }
        self.remove_finalizer(owner, FOREGROUND).await
    }

    async fn remove_finalizer(&self, object: &Object, finalizer: &str) -> Result<(), Status> {
        let mut object = object.clone();
        let metadata = object::metadata_mut(&mut object.value);
        retain(metadata, "finalizers", |have| {
            have.as_str() != Some(finalizer)
        });
        ignore_missing(self.internal.update(&object).await)
    }
}

/// Whether an object is being deleted after its dependents.
fn waits(object: &Value) -> bool {
    object::is_deleting(object) && object::finalizers(object).any(|name| name == FOREGROUND)
}

fn meta_of(object: &Value) -> Meta {
    let metadata = object.get("metadata").cloned().unwrap_or_default();
    serde_json::from_value(metadata).unwrap_or_default()
}

/// Keeps the members of a list that a test accepts; removes the list when none are left.
fn retain(
    metadata: &mut serde_json::Map<String, Value>,
    field: &str,
    keep: impl Fn(&Value) -> bool,
) {
    if let Some(Value::Array(items)) = metadata.get_mut(field) {
        items.retain(keep);
        if items.is_empty() {
            metadata.remove(field);
        }
    }
}

fn ignore_missing(result: Result<Object, Status>) -> Result<(), Status> {
    match result {
        Err(status) if status.reason() != "NotFound" => Err(status),
        _ => Ok(()),
    }
}
