//! Which objects depend on which.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use ecp_meta::cluster::ClusterName;

use crate::controllers::stored::OwnerRef;
use crate::limits;

/// An owner, by identity: a uid counts only in its own cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct OwnerId {
    pub cluster: ClusterName,
    pub uid: Arc<str>,
}

impl OwnerId {
    pub(super) fn new(cluster: &ClusterName, uid: &str) -> Self {
        Self {
            cluster: cluster.clone(),
            uid: uid.into(),
        }
    }
}

/// Owners and dependents. Only objects that have owners take space.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// Dependents by owner; the value says whether the reference blocks the owner's deletion.
    dependents: HashMap<OwnerId, BTreeMap<Arc<str>, bool>>,
    /// Owners by dependent.
    owners: HashMap<Arc<str>, Vec<OwnerId>>,
    /// Dependents whose owner's kind is not known, by cluster: looked at again when the cluster
    /// gets a new kind.
    unresolved: HashMap<ClusterName, BTreeSet<Arc<str>>>,
    /// Owners whose foreground deletion waits for dependents, with their keys.
    waiting: HashMap<OwnerId, Arc<str>>,
    absent: Absent,
}

/// Owners that were seen to be deleted, so that a dependent need not look for a kind that may be
/// gone as well. Bounded: the oldest is forgotten.
#[derive(Debug, Default)]
struct Absent {
    known: HashSet<OwnerId>,
    order: VecDeque<OwnerId>,
}

impl Graph {
    /// Takes the owners of an object. Whether they differ from before.
    pub(super) fn set(&mut self, key: &Arc<str>, cluster: &ClusterName, refs: &[OwnerRef]) -> bool {
        if refs.is_empty() && !self.owners.contains_key(key) {
            return false;
        }
        let owners: Vec<OwnerId> = refs.iter().map(|r| OwnerId::new(cluster, &r.uid)).collect();
        let blocks = |dependents: &Self| {
            owners
                .iter()
                .map(|o| {
                    dependents
                        .dependents
                        .get(o)
                        .and_then(|d| d.get(key))
                        .copied()
                })
                .collect::<Vec<_>>()
        };
        let same_owners = self.owners.get(key).is_some_and(|old| *old == owners);
        let new_blocks: Vec<_> = refs.iter().map(|r| Some(r.block_owner_deletion)).collect();
        if same_owners && blocks(self) == new_blocks {
            return false;
        }
        self.forget(key);
        for (owner, reference) in owners.iter().zip(refs) {
            let dependents = self.dependents.entry(owner.clone()).or_default();
            let blocking = dependents.entry(Arc::clone(key)).or_default();
            *blocking |= reference.block_owner_deletion;
        }
        if !owners.is_empty() {
            self.owners.insert(Arc::clone(key), owners);
        }
        true
    }

    /// Forgets an object as a dependent. Its owners.
    pub(super) fn forget(&mut self, key: &Arc<str>) -> Vec<OwnerId> {
        let owners = self.owners.remove(key).unwrap_or_default();
        for owner in &owners {
            if let Some(dependents) = self.dependents.get_mut(owner) {
                dependents.remove(key);
                if dependents.is_empty() {
                    self.dependents.remove(owner);
                }
            }
        }
        owners
    }

    /// The owners of an object.
    pub(super) fn owners(&self, key: &Arc<str>) -> Vec<OwnerId> {
        self.owners.get(key).cloned().unwrap_or_default()
    }

    /// The dependents of an owner; with `blocking`, those that block its deletion.
    pub(super) fn dependents(&self, owner: &OwnerId, blocking: Blocking) -> Vec<Arc<str>> {
        let Some(dependents) = self.dependents.get(owner) else {
            return Vec::new();
        };
        let wanted = |blocks: bool| blocking == Blocking::Any || blocks;
        dependents
            .iter()
            .filter(|(_, b)| wanted(**b))
            .map(|(key, _)| Arc::clone(key))
            .collect()
    }

    /// Notes that an owner waits for its dependents to go.
    pub(super) fn set_waiting(&mut self, owner: OwnerId, key: Arc<str>) {
        self.waiting.insert(owner, key);
    }

    /// Notes that an owner does not wait any more.
    pub(super) fn unset_waiting(&mut self, owner: &OwnerId) {
        self.waiting.remove(owner);
    }

    /// The key of an owner that waits.
    pub(super) fn waiting(&self, owner: &OwnerId) -> Option<Arc<str>> {
        self.waiting.get(owner).cloned()
    }

    /// Notes that an owner is gone for good.
    pub(super) fn set_absent(&mut self, owner: OwnerId) {
        if self.absent.known.insert(owner.clone()) {
            self.absent.order.push_back(owner);
        }
        if self.absent.order.len() > limits::GC_ABSENT_OWNERS_MAX
            && let Some(oldest) = self.absent.order.pop_front()
        {
            self.absent.known.remove(&oldest);
        }
    }

    /// Whether an owner was seen to be deleted.
    pub(super) fn is_absent(&self, owner: &OwnerId) -> bool {
        self.absent.known.contains(owner)
    }

    /// Notes that an owner of an object has a kind that its cluster does not know.
    pub(super) fn set_unresolved(&mut self, cluster: &ClusterName, key: Arc<str>) {
        self.unresolved
            .entry(cluster.clone())
            .or_default()
            .insert(key);
    }

    /// Forgets what was noted of an object that is gone, as an owner and as a dependent.
    pub(super) fn unset_gone(&mut self, cluster: &ClusterName, key: &Arc<str>, uid: &str) {
        if let Some(keys) = self.unresolved.get_mut(cluster) {
            keys.remove(key);
            if keys.is_empty() {
                self.unresolved.remove(cluster);
            }
        }
        if !self.waiting.is_empty() {
            self.waiting.remove(&OwnerId::new(cluster, uid));
        }
    }

    /// Takes what waits for a new kind in a cluster.
    pub(super) fn take_unresolved(&mut self, cluster: &ClusterName) -> BTreeSet<Arc<str>> {
        self.unresolved.remove(cluster).unwrap_or_default()
    }
}

/// Which dependents are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocking {
    /// All.
    Any,
    /// Those whose reference has `blockOwnerDeletion`.
    Only,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(uid: &str, block_owner_deletion: bool) -> OwnerRef {
        OwnerRef {
            uid: uid.into(),
            block_owner_deletion,
            ..OwnerRef::default()
        }
    }

    #[test]
    fn dependents_follow_the_references_of_objects() {
        let mut graph = Graph::default();
        let root = ClusterName::root();
        let (a, b): (Arc<str>, Arc<str>) = ("/a".into(), "/b".into());
        let owner = OwnerId::new(&root, "u");
        assert!(graph.set(&a, &root, &[reference("u", true)]));
        assert!(!graph.set(&a, &root, &[reference("u", true)]));
        assert!(graph.set(&b, &root, &[reference("u", false), reference("v", false)]));
        assert_eq!(
            graph.dependents(&owner, Blocking::Any),
            [a.clone(), b.clone()]
        );
        assert_eq!(
            graph.dependents(&owner, Blocking::Only),
            std::slice::from_ref(&a)
        );
        assert!(graph.set(&a, &root, &[reference("u", false)]));
        assert!(graph.dependents(&owner, Blocking::Only).is_empty());
        assert_eq!(graph.forget(&b).len(), 2);
        assert!(graph.set(&a, &root, &[]));
        assert!(graph.dependents.is_empty() && graph.owners.is_empty());
    }

    #[test]
    fn nothing_is_remembered_of_objects_that_are_gone() {
        let mut graph = Graph::default();
        let root = ClusterName::root();
        let key: Arc<str> = "/a".into();
        graph.set(&key, &root, &[reference("u", true)]);
        graph.set_unresolved(&root, Arc::clone(&key));
        graph.set_waiting(OwnerId::new(&root, "own"), Arc::clone(&key));
        graph.forget(&key);
        graph.unset_gone(&root, &key, "own");
        assert!(graph.unresolved.is_empty() && graph.waiting.is_empty());
        assert!(graph.dependents.is_empty() && graph.owners.is_empty());
    }

    #[test]
    fn equal_uids_in_other_clusters_are_other_owners() {
        let mut graph = Graph::default();
        let other: ClusterName = "root:b".parse().unwrap();
        let key: Arc<str> = "/b".into();
        graph.set(&key, &other, &[reference("u", false)]);
        let here = OwnerId::new(&ClusterName::root(), "u");
        assert!(graph.dependents(&here, Blocking::Any).is_empty());
    }

    #[test]
    fn absent_owners_are_remembered_up_to_a_limit() {
        let mut graph = Graph::default();
        let id = |n: usize| OwnerId::new(&ClusterName::root(), &n.to_string());
        for n in 0..=limits::GC_ABSENT_OWNERS_MAX {
            graph.set_absent(id(n));
        }
        assert!(!graph.is_absent(&id(0)));
        assert!(graph.is_absent(&id(1)));
        assert_eq!(graph.absent.known.len(), limits::GC_ABSENT_OWNERS_MAX);
    }
}
