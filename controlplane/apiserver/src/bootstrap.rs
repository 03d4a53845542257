//! What every logical cluster has from its first write on.

use ecp_meta::cluster::ClusterName;
use ecp_store::{CommitError, Expect, Op};
use serde_json::{Value, json};

use crate::handlers::{commit_error, time};
use crate::registry::Resource;
use crate::server::ApiServer;
use crate::status::Status;
use crate::storage;

const NAMESPACES: &[&str] = &["default", "kube-system"];

impl ApiServer {
    /// Makes sure that a cluster has its default namespaces.
    ///
    /// # Errors
    /// The store failed.
    pub(crate) async fn ensure_cluster(&self, cluster: &ClusterName) -> Result<(), Status> {
        if self.known_clusters.read().contains(cluster) {
            return Ok(());
        }
        let resources = self.registry.resources(cluster);
        let Some(namespaces) = resources.find("", "v1", "namespaces") else {
            return Ok(());
        };
        let ops: Vec<Op> = NAMESPACES
            .iter()
            .map(|name| self.namespace(namespaces, cluster, name))
            .collect();
        match self.store.commit(ops.clone()).await {
            Ok(_) => {}
            Err(CommitError::Precondition { .. }) => self.each(ops).await?,
            Err(error) => return Err(commit_error(error)),
        }
        self.known_clusters.write().insert(cluster.clone());
        Ok(())
    }

    /// Some exist: writes the others.
    async fn each(&self, ops: Vec<Op>) -> Result<(), Status> {
        for op in ops {
            match self.store.commit(vec![op]).await {
                Ok(_) | Err(CommitError::Precondition { .. }) => {}
                Err(error) => return Err(commit_error(error)),
            }
        }
        Ok(())
    }

    fn namespace(&self, namespaces: &Resource, cluster: &ClusterName, name: &str) -> Op {
        let object: Value = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": name,
                "uid": uuid::Uuid::new_v4().to_string(),
                "creationTimestamp": time(self.now()),
                "labels": {"kubernetes.io/metadata.name": name},
            },
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        });
        Op::Put {
            key: storage::key(namespaces, cluster, None, name),
            value: storage::encode(namespaces, &object),
            expect: Expect::Absent,
        }
    }
}
