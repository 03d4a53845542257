//! A cluster in process, for tests of what runs on one.
//!
//! Invariant: knows no provider; is a dependency of tests alone.
//!
//! Entry points: [`Cluster`], [`until`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ecp_apiserver::{ApiServer, Config, Identity};
use ecp_store::MemoryStore;
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// `apiVersion` of CRDs.
const CRDS: &str = "apiextensions.k8s.io/v1";
/// How long [`until`] waits.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// How often it looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// A cluster that is empty at first. What does not work ends the test.
pub struct Cluster {
    server: Arc<ApiServer>,
    client: Client,
    /// Kinds by plural.
    kinds: Mutex<BTreeMap<String, String>>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kinds = self.kinds.lock();
        f.debug_struct("Cluster")
            .field("kinds", &*kinds)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    /// A cluster with these CRDs, which are served when this returns, and these namespaces.
    pub async fn new(crds: Vec<Value>, namespaces: &[&str]) -> Self {
        let server = ApiServer::new(Arc::new(MemoryStore::new()), Config::default())
            .await
            .expect("a server");
        let known = [
            ("customresourcedefinitions", "CustomResourceDefinition"),
            ("namespaces", "Namespace"),
        ];
        let cluster = Self {
            client: Client::new(server.service(Identity::admin()), "default"),
            server,
            kinds: Mutex::new(known.map(|(p, k)| (p.to_owned(), k.to_owned())).into()),
        };
        cluster.install(crds).await;
        for name in namespaces {
            let namespace = json!({"metadata": {"name": name}});
            cluster.create("v1", "namespaces", "", namespace).await;
        }
        cluster
    }

    /// A client with all rights.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The server, for other clients.
    pub fn server(&self) -> &Arc<ApiServer> {
        &self.server
    }

    /// Installs kinds, and waits until they are served.
    pub async fn install(&self, crds: Vec<Value>) {
        let mut names = Vec::new();
        for crd in crds {
            let text = |path| crd.pointer(path).and_then(Value::as_str).expect("a name");
            let (plural, kind) = (text("/spec/names/plural"), text("/spec/names/kind"));
            names.push(text("/metadata/name").to_owned());
            self.kinds.lock().insert(plural.into(), kind.into());
            self.create(CRDS, "customresourcedefinitions", "", crd)
                .await;
        }
        for name in names {
            until(&format!("{name} is served"), async || {
                let crd = self.get(CRDS, "customresourcedefinitions", "", &name).await;
                ecp_meta::condition::is_true(&crd?, "Established").then_some(())
            })
            .await;
        }
    }

    /// Installs a namespaced kind of version `v1` that takes anything.
    pub async fn install_any(&self, group: &str, kind: &str, plural: &str) {
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
        self.install(vec![crd]).await;
    }

    /// The API of a resource; of cluster-scoped ones, or in all namespaces, if `namespace` is
    /// empty.
    pub fn api(&self, api_version: &str, plural: &str, namespace: &str) -> Api<DynamicObject> {
        let (group, version) = ecp_meta::gvk::split_api_version(api_version);
        let resource = ApiResource {
            group: group.into(),
            version: version.into(),
            api_version: api_version.into(),
            kind: self.kinds.lock().get(plural).cloned().unwrap_or_default(),
            plural: plural.into(),
        };
        if namespace.is_empty() {
            Api::all_with(self.client(), &resource)
        } else {
            Api::namespaced_with(self.client(), namespace, &resource)
        }
    }

    /// Creates an object, which need not say its `apiVersion` and `kind`.
    pub async fn create(&self, version: &str, plural: &str, ns: &str, mut object: Value) -> Value {
        let api = self.api(version, plural, ns);
        if object.get("kind").is_none() {
            object["apiVersion"] = version.into();
            object["kind"] = self.kinds.lock().get(plural).cloned().into();
        }
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        let made = api.create(&PostParams::default(), &object).await;
        serde_json::to_value(made.expect("created")).expect("JSON")
    }

    /// An object, if it is there.
    pub async fn get(&self, version: &str, plural: &str, ns: &str, name: &str) -> Option<Value> {
        let found = self.api(version, plural, ns).get_opt(name).await;
        Some(serde_json::to_value(found.expect("an answer")?).expect("JSON"))
    }

    /// All objects.
    pub async fn list(&self, version: &str, plural: &str, ns: &str) -> Vec<Value> {
        let api = self.api(version, plural, ns);
        let list = api.list(&Default::default()).await.expect("a list");
        let items = list.items.into_iter();
        items
            .map(|o| serde_json::to_value(o).expect("JSON"))
            .collect()
    }

    /// Changes an object by a merge patch.
    pub async fn patch(&self, version: &str, plural: &str, ns: &str, name: &str, patch: Value) {
        let api = self.api(version, plural, ns);
        let patch = Patch::Merge(patch);
        let patched = api.patch(name, &PatchParams::default(), &patch).await;
        patched.expect("patched");
    }

    /// Asks for the deletion of an object.
    pub async fn delete(&self, version: &str, plural: &str, ns: &str, name: &str) {
        let api = self.api(version, plural, ns);
        let deleted = api.delete(name, &DeleteParams::default()).await;
        deleted.expect("deleted");
    }

    /// Waits until an object is gone.
    pub async fn gone(&self, version: &str, plural: &str, ns: &str, name: &str) {
        until(&format!("{plural}/{name} is gone"), async || {
            let left = self.get(version, plural, ns, name).await;
            left.is_none().then_some(())
        })
        .await;
    }

    /// Reasons of the warnings in a namespace.
    pub async fn warnings(&self, ns: &str) -> Vec<String> {
        let events = self.list("v1", "events", ns).await;
        let warnings = events.iter().filter(|e| e["type"] == "Warning");
        let reasons = warnings.filter_map(|e| e["reason"].as_str());
        reasons.map(str::to_owned).collect()
    }
}

/// Waits until `probe` finds something.
///
/// # Panics
/// It does not in ten seconds.
pub async fn until<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        if let Some(found) = probe().await {
            return found;
        }
        assert!(Instant::now() < deadline, "in vain: {what}");
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}
