//! An API server and the package manager, with packages from memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use ecp_apiserver::{ApiServer, Identity};
use ecp_meta::{condition, object};
use ecp_package::xpkg::Package;
use ecp_packages::{Config, Contents, Packages, PullPolicy, run};
use ecp_store::MemoryStore;
use serde_json::{Value, json};
use sha2::Digest as _;
use tokio_util::sync::CancellationToken;

const DEADLINE: Duration = Duration::from_secs(20);

/// Packages by source.
#[derive(Debug, Default)]
pub(crate) struct Shelf(Mutex<BTreeMap<String, String>>);

impl Shelf {
    /// Puts a package there, as a stream of documents.
    pub(crate) fn put(&self, source: &str, documents: &[Value]) {
        let stream: Vec<String> = documents.iter().map(ToString::to_string).collect();
        let stream = stream.join("\n---\n");
        self.0.lock().expect("a lock").insert(source.into(), stream);
    }
}

#[async_trait]
impl Packages for Shelf {
    async fn get(&self, source: &str, _: PullPolicy) -> Result<Arc<Contents>, String> {
        let stream = self.0.lock().expect("a lock").get(source).cloned();
        let stream = stream.ok_or_else(|| format!("{source}: MANIFEST_UNKNOWN"))?;
        let package = Package::parse(stream.as_bytes()).map_err(|e| e.to_string())?;
        Ok(Arc::new(Contents {
            digest: format!("sha256:{}", hex::encode(sha2::Sha256::digest(&stream))),
            resolved: source.into(),
            package,
        }))
    }

    async fn tags(&self, repository: &str) -> Result<Vec<String>, String> {
        let shelf = self.0.lock().expect("a lock");
        let prefix = format!("{repository}:");
        let tags = shelf.keys().filter_map(|s| s.strip_prefix(&prefix));
        Ok(tags.map(str::to_owned).collect())
    }
}

/// A running package manager.
pub(crate) struct Harness {
    client: kube::Client,
    pub(crate) shelf: Arc<Shelf>,
    stop: CancellationToken,
    manager: Option<tokio::task::JoinHandle<()>>,
    _server: Arc<ApiServer>,
}

impl Drop for Harness {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn path(kind: &str) -> String {
    let plural = format!("{}s", kind.to_lowercase());
    match kind {
        "CustomResourceDefinition" => format!("/apis/apiextensions.k8s.io/v1/{plural}"),
        "CompositeResourceDefinition" | "Composition" => {
            format!("/apis/apiextensions.crossplane.io/v1/{plural}")
        }
        "Lock" => format!("/apis/pkg.crossplane.io/v1beta1/{plural}"),
        "Event" => format!("/api/v1/namespaces/default/{plural}"),
        _ => format!("/apis/pkg.crossplane.io/v1/{plural}"),
    }
}

impl Harness {
    pub(crate) async fn start() -> Self {
        let store = Arc::new(MemoryStore::new());
        let server = ApiServer::new(store, ecp_apiserver::Config::default());
        let server = server.await.expect("API server");
        let client = kube::Client::new(server.service(Identity::admin()), "default");
        let mut harness = Self {
            client,
            shelf: Arc::default(),
            stop: CancellationToken::new(),
            manager: None,
            _server: server,
        };
        for crd in ecp_engine::crds() {
            harness.create(&crd).await;
            let name = object::name(&crd);
            let established = |crd: &Value| condition::is_true(crd, "Established");
            harness
                .until("CustomResourceDefinition", name, established)
                .await;
        }
        let config = Config {
            client: harness.client.clone(),
            packages: Arc::clone(&harness.shelf) as Arc<dyn Packages>,
        };
        harness.manager = Some(tokio::spawn(run(config, harness.stop.clone())));
        harness
    }

    /// Stops the package manager, in good order.
    pub(crate) async fn stop(&mut self) {
        self.stop.cancel();
        let manager = self.manager.take().expect("it runs");
        tokio::time::timeout(DEADLINE, manager)
            .await
            .expect("it stops in time")
            .expect("no panic");
    }

    async fn request(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let mut request = http::Request::builder().method(method).uri(path);
        if method == "PATCH" {
            request = request.header("content-type", "application/merge-patch+json");
        }
        let request = request
            .body(body.to_string().into_bytes())
            .expect("request");
        let answer = self.client.request::<Value>(request).await;
        answer.map_err(|e| e.to_string())
    }

    pub(crate) async fn create(&self, of: &Value) -> Value {
        let path = path(of["kind"].as_str().expect("a kind"));
        let created = self.request("POST", &path, of).await;
        created.unwrap_or_else(|why| panic!("cannot create {}: {why}", object::name(of)))
    }

    pub(crate) async fn get(&self, kind: &str, name: &str) -> Option<Value> {
        let path = format!("{}/{name}", path(kind));
        self.request("GET", &path, &Value::Null).await.ok()
    }

    pub(crate) async fn list(&self, kind: &str) -> Vec<Value> {
        let list = self.request("GET", &path(kind), &Value::Null).await;
        list.expect("a list")["items"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    }

    pub(crate) async fn delete(&self, kind: &str, name: &str) {
        let path = format!("{}/{name}", path(kind));
        self.request("DELETE", &path, &json!({}))
            .await
            .expect("deleted");
    }

    pub(crate) async fn edit(&self, kind: &str, name: &str, patch: Value) {
        let path = format!("{}/{name}", path(kind));
        self.request("PATCH", &path, &patch).await.expect("edited");
    }

    /// Installs a package.
    pub(crate) async fn install(&self, kind: &str, name: &str, source: &str) {
        self.create(&json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": kind,
            "metadata": {"name": name}, "spec": {"package": source},
        }))
        .await;
    }

    /// Gives a package another source.
    pub(crate) async fn change(&self, kind: &str, name: &str, source: &str) {
        self.edit(kind, name, json!({"spec": {"package": source}}))
            .await;
    }

    /// Waits until an object is as wanted.
    pub(crate) async fn until(
        &self,
        kind: &str,
        name: &str,
        want: impl Fn(&Value) -> bool,
    ) -> Value {
        let mut last = None;
        let wait = async {
            loop {
                last = self.get(kind, name).await;
                if let Some(object) = last.as_ref().filter(|o| want(o)) {
                    return object.clone();
                }
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
        };
        match tokio::time::timeout(DEADLINE, wait).await {
            Ok(object) => object,
            Err(_) => panic!("{kind} {name} is not as wanted: {last:#?}"),
        }
    }

    /// Waits until a list is as wanted.
    pub(crate) async fn until_list(&self, kind: &str, want: impl Fn(&[Value]) -> bool) {
        let mut last = Vec::new();
        let wait = async {
            loop {
                last = self.list(kind).await;
                if want(&last) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
        };
        if tokio::time::timeout(DEADLINE, wait).await.is_err() {
            panic!("{kind}s are not as wanted: {last:#?}");
        }
    }

    /// Waits until a package is healthy for what it is now.
    pub(crate) async fn healthy(&self, kind: &str, name: &str) -> Value {
        self.until(kind, name, |package| {
            condition::is_true(package, "Healthy")
                && package["status"]["currentIdentifier"] == package["spec"]["package"]
        })
        .await
    }

    /// Waits until a package is unhealthy for a reason with these words.
    pub(crate) async fn unhealthy(&self, kind: &str, name: &str, words: &str) -> Value {
        self.until(kind, name, |package| {
            let healthy = condition::find(package, "Healthy");
            healthy.is_some_and(|c| {
                c["status"] == "False" && c["message"].as_str().is_some_and(|m| m.contains(words))
            })
        })
        .await
    }
}

/// The meta document of a package.
pub(crate) fn meta(kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "meta.pkg.crossplane.io/v1", "kind": kind,
        "metadata": {"name": name}, "spec": spec,
    })
}

/// A dependency on a configuration.
pub(crate) fn needs(repository: &str, version: &str) -> Value {
    json!({"dependsOn": [{"apiVersion": "pkg.crossplane.io/v1", "kind": "Configuration",
        "package": repository, "version": version}]})
}

/// An XRD of a kind.
pub(crate) fn xrd(kind: &str, description: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": format!("{plural}.ex.test")},
        "spec": {
            "scope": "Namespaced", "group": "ex.test",
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": true, "referenceable": true,
                "schema": {"openAPIV3Schema": {"type": "object", "description": description}}}],
        },
    })
}

/// A Composition for a kind.
pub(crate) fn composition(name: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": name},
        "spec": {
            "compositeTypeRef": {"apiVersion": "ex.test/v1", "kind": kind},
            "mode": "Pipeline",
            "pipeline": [{"step": "make", "functionRef": {"name": "fn"}}],
        },
    })
}
