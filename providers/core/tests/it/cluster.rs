//! A cluster in process with provider-ecp and two SECA kinds.

use std::ops::Deref;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) use ecp_test_cluster::until;

pub(crate) const ECP: &str = "ecp.m.secapi.cloud/v1alpha1";
pub(crate) const STORAGE: &str = "storage.v1.secapi.cloud/v1";
pub(crate) const NETWORK: &str = "network.v1.secapi.cloud/v1";
pub(crate) const COMPUTE: &str = "compute.v1.secapi.cloud/v1";

/// The cluster.
pub(crate) struct Cluster {
    cluster: ecp_test_cluster::Cluster,
    stop: CancellationToken,
}

impl Deref for Cluster {
    type Target = ecp_test_cluster::Cluster;

    fn deref(&self) -> &Self::Target {
        &self.cluster
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Cluster {
    /// A cluster with `BlockStorage` installed and `Instance` not yet.
    pub(crate) async fn new() -> Self {
        let cluster = ecp_test_cluster::Cluster::new(provider_ecp::crds(), &["tenant"]).await;
        cluster
            .install_any("storage.v1.secapi.cloud", "BlockStorage", "block-storages")
            .await;
        let stop = CancellationToken::new();
        let options = provider_ecp::Options::default();
        tokio::spawn(provider_ecp::run(cluster.client(), options, stop.clone()));
        Self { cluster, stop }
    }

    /// Creates the managed resource of workspace `prod` of tenant `acme`.
    pub(crate) async fn workspace(&self) {
        let object = json!({
            "metadata": {"name": "prod", "namespace": "tenant"},
            "spec": {"forProvider": {"tenant": "acme", "workspace": "prod"}},
        });
        self.create(ECP, "workspacenamespaces", "tenant", object)
            .await;
    }

    pub(crate) async fn get_workspace(&self) -> Option<Value> {
        self.get(ECP, "workspacenamespaces", "tenant", "prod").await
    }

    /// Waits until the managed resource is as wanted.
    pub(crate) async fn workspace_is(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        until(what, async || self.get_workspace().await.filter(|w| is(w))).await
    }
}
