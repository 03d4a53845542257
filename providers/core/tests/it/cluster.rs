//! A cluster in process with provider-ecp and two SECA kinds.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ecp_apiserver::{ApiServer, Config, Identity};
use ecp_store::MemoryStore;
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) const ECP: &str = "ecp.m.secapi.cloud/v1alpha1";
pub(crate) const STORAGE: &str = "storage.v1.secapi.cloud/v1";
pub(crate) const NETWORK: &str = "network.v1.secapi.cloud/v1";
pub(crate) const COMPUTE: &str = "compute.v1.secapi.cloud/v1";
const CRDS: &str = "apiextensions.k8s.io/v1";

/// The cluster.
pub(crate) struct Cluster {
    client: Client,
    stop: CancellationToken,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Cluster {
    /// A cluster with `BlockStorage` installed and `Instance` not yet.
    pub(crate) async fn new() -> Self {
        let server = ApiServer::new(Arc::new(MemoryStore::new()), Config::default())
            .await
            .expect("a server");
        let client = Client::new(server.service(Identity::admin()), "default");
        let stop = CancellationToken::new();
        let cluster = Self {
            client: client.clone(),
            stop: stop.clone(),
        };
        for crd in provider_ecp::crds() {
            cluster
                .create(CRDS, "customresourcedefinitions", "", crd)
                .await;
        }
        cluster
            .install("storage.v1.secapi.cloud", "BlockStorage", "block-storages")
            .await;
        let namespace = json!({"metadata": {"name": "tenant"}});
        cluster.create("v1", "namespaces", "", namespace).await;
        let options = provider_ecp::Options::default();
        tokio::spawn(provider_ecp::run(client, options, stop));
        cluster
    }

    /// Installs a namespaced kind that takes anything.
    pub(crate) async fn install(&self, group: &str, kind: &str, plural: &str) {
        let crd = json!({
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {
                    "kind": kind, "plural": plural, "singular": kind.to_lowercase(),
                    "listKind": format!("{kind}List"),
                },
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {
                        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    }},
                }],
            },
        });
        self.create(CRDS, "customresourcedefinitions", "", crd)
            .await;
        let name = format!("{plural}.{group}");
        until("the kind is served", async || {
            let crd = self
                .get(CRDS, "customresourcedefinitions", "", &name)
                .await?;
            ecp_meta::condition::is_true(&crd, "Established").then_some(())
        })
        .await;
    }

    fn api(&self, api_version: &str, plural: &str, namespace: &str) -> Api<DynamicObject> {
        let (group, version) = ecp_meta::gvk::split_api_version(api_version);
        let resource = ApiResource {
            group: group.into(),
            version: version.into(),
            api_version: api_version.into(),
            kind: kind_of(plural).into(),
            plural: plural.into(),
        };
        if namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), namespace, &resource)
        }
    }

    pub(crate) async fn create(&self, version: &str, plural: &str, ns: &str, object: Value) {
        let api = self.api(version, plural, ns);
        let mut object: DynamicObject = serde_json::from_value(object).expect("an object");
        object.types = Some(kube::api::TypeMeta {
            api_version: version.into(),
            kind: kind_of(plural).into(),
        });
        api.create(&PostParams::default(), &object)
            .await
            .expect("created");
    }

    pub(crate) async fn get(
        &self,
        version: &str,
        plural: &str,
        ns: &str,
        name: &str,
    ) -> Option<Value> {
        let found = self
            .api(version, plural, ns)
            .get_opt(name)
            .await
            .expect("an answer")?;
        Some(serde_json::to_value(found).expect("JSON"))
    }

    pub(crate) async fn patch(
        &self,
        version: &str,
        plural: &str,
        ns: &str,
        name: &str,
        patch: Value,
    ) {
        self.api(version, plural, ns)
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .expect("patched");
    }

    pub(crate) async fn delete(&self, version: &str, plural: &str, ns: &str, name: &str) {
        self.api(version, plural, ns)
            .delete(name, &DeleteParams::default())
            .await
            .expect("deleted");
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

fn kind_of(plural: &str) -> &str {
    match plural {
        "customresourcedefinitions" => "CustomResourceDefinition",
        "namespaces" => "Namespace",
        "workspacenamespaces" => "WorkspaceNamespace",
        "block-storages" => "BlockStorage",
        "instances" => "Instance",
        "networkcontents" => "NetworkContents",
        "subnets" => "Subnet",
        "route-tables" => "RouteTable",
        other => other,
    }
}

/// Waits until `probe` finds something, at most ten seconds.
pub(crate) async fn until<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(found) = probe().await {
            return found;
        }
        assert!(Instant::now() < deadline, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
