//! An API server, the engine and a few kinds, in one process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ecp_apiserver::{ApiServer, Identity};
use ecp_engine::{Config, Metrics, crds, run};
use ecp_fnproto::{InProcess, PlainFunction};
use ecp_meta::object;
use ecp_store::MemoryStore;
use ecp_xr::function::{Ready, Request, Resource, Response};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Longest anything may take.
const DEADLINE: Duration = Duration::from_secs(20);

/// A running control plane.
pub(crate) struct Harness {
    _server: Arc<ApiServer>,
    pub(crate) client: kube::Client,
    pub(crate) metrics: Metrics,
    runner: Arc<InProcess>,
    stop: CancellationToken,
    engine: Option<tokio::task::JoinHandle<()>>,
}

/// Paths of the kinds in these tests.
fn path(kind: &str, namespace: Option<&str>) -> String {
    let (root, plural) = match kind {
        "Namespace" => ("/api/v1", "namespaces"),
        "ConfigMap" => ("/api/v1", "configmaps"),
        "Secret" => ("/api/v1", "secrets"),
        "Event" => ("/api/v1", "events"),
        "Volume" => ("/apis/dummy.test/v1", "volumes"),
        "Net" => ("/apis/dummy.test/v1", "nets"),
        "Disk" => ("/apis/ex.test/v1", "disks"),
        "XDisk" => ("/apis/ex.test/v1", "xdisks"),
        "Region" => ("/apis/ex.test/v1", "regions"),
        "CustomResourceDefinition" => {
            ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions")
        }
        "CompositeResourceDefinition" => (
            "/apis/apiextensions.crossplane.io/v1",
            "compositeresourcedefinitions",
        ),
        "CompositeResourceDefinition/v2" => (
            "/apis/apiextensions.crossplane.io/v2",
            "compositeresourcedefinitions",
        ),
        "Composition" => ("/apis/apiextensions.crossplane.io/v1", "compositions"),
        "CompositionRevision" => (
            "/apis/apiextensions.crossplane.io/v1",
            "compositionrevisions",
        ),
        "FunctionRevision" => ("/apis/pkg.crossplane.io/v1", "functionrevisions"),
        other => panic!("unknown kind {other}"),
    };
    match namespace {
        Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}"),
        None => format!("{root}/{plural}"),
    }
}

impl Harness {
    /// Starts everything, with one function named `fn`.
    pub(crate) async fn start(function: PlainFunction) -> Self {
        let runner = InProcess::default().with("fn", function);
        let store = Arc::new(MemoryStore::new());
        let server = ApiServer::new(store, ecp_apiserver::Config::default())
            .await
            .expect("API server");
        let client = kube::Client::new(server.service(Identity::admin()), "default");
        let mut harness = Self {
            _server: server,
            client,
            metrics: Metrics::default(),
            runner: Arc::new(runner),
            stop: CancellationToken::new(),
            engine: None,
        };
        for crd in crds()
            .into_iter()
            .chain([volume_crd("Volume"), volume_crd("Net")])
        {
            harness.create(&crd).await;
            harness.established(object::name(&crd)).await;
        }
        harness
            .create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}))
            .await;
        harness.start_engine();
        harness
    }

    /// Starts the engine.
    pub(crate) fn start_engine(&mut self) {
        self.stop = CancellationToken::new();
        let mut config = Config::new(self.client.clone(), self.runner.clone());
        config.metrics = self.metrics.clone();
        let stop = self.stop.clone();
        let engine = async move { run(config, stop).await.expect("engine") };
        self.engine = Some(tokio::spawn(engine));
    }

    /// Stops the engine, in good order.
    pub(crate) async fn stop_engine(&mut self) {
        self.stop.cancel();
        if let Some(engine) = self.engine.take() {
            tokio::time::timeout(DEADLINE, engine)
                .await
                .expect("the engine stops in time")
                .expect("no panic");
        }
    }

    /// A started control plane with the namespaced kind `Disk` and a Composition for it.
    pub(crate) async fn with_disks(function: PlainFunction) -> Self {
        let harness = Self::start(function).await;
        harness.create(&xrd_v2("Namespaced")).await;
        harness.create(&composition("disks", "Disk")).await;
        harness.established("disks.ex.test").await;
        harness
    }

    async fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, String> {
        let mut request = http::Request::builder().method(method).uri(path);
        if method == "PATCH" {
            request = request.header("content-type", "application/apply-patch+yaml");
            if body.is_some_and(Value::is_array) {
                request = http::Request::builder().method(method).uri(path);
                request = request.header("content-type", "application/json-patch+json");
            }
        }
        let body = body.map(|b| b.to_string().into_bytes()).unwrap_or_default();
        let request = request.body(body).expect("request");
        let answer = self.client.request::<Value>(request).await;
        answer.map_err(|e| e.to_string())
    }

    fn path_of(of: &Value) -> String {
        let kind = object::gvk(of);
        let key = if kind.version == "v2" {
            format!("{}/v2", kind.kind)
        } else {
            kind.kind
        };
        path(&key, object::namespace(of))
    }

    pub(crate) async fn try_create(&self, of: &Value) -> Result<Value, String> {
        self.request("POST", &Self::path_of(of), Some(of)).await
    }

    pub(crate) async fn create(&self, of: &Value) -> Value {
        match self.try_create(of).await {
            Ok(created) => created,
            Err(error) => panic!("cannot create {}: {error}", object::name(of)),
        }
    }

    /// Edits an object with a JSON patch.
    pub(crate) async fn edit(&self, of: &Value, patch: Value) -> Value {
        let path = format!("{}/{}", Self::path_of(of), object::name(of));
        self.request("PATCH", &path, Some(&patch))
            .await
            .expect("patch")
    }

    /// Edits an object's status with a JSON patch.
    pub(crate) async fn edit_status(&self, of: &Value, patch: Value) -> Value {
        let path = format!("{}/{}/status", Self::path_of(of), object::name(of));
        self.request("PATCH", &path, Some(&patch))
            .await
            .expect("patch")
    }

    pub(crate) async fn delete(&self, of: &Value) {
        let path = format!("{}/{}", Self::path_of(of), object::name(of));
        self.request("DELETE", &path, None).await.expect("delete");
    }

    pub(crate) async fn get(
        &self,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<Value> {
        let path = format!("{}/{name}", path(kind, namespace));
        self.request("GET", &path, None).await.ok()
    }

    pub(crate) async fn list(&self, kind: &str) -> Vec<Value> {
        let list = self.request("GET", &path(kind, None), None).await;
        let list = list.expect("list");
        let items = list["items"].as_array().cloned().unwrap_or_default();
        items
            .into_iter()
            .map(|mut item| {
                item["kind"] = kind.into();
                item
            })
            .collect()
    }

    /// Waits until an object is as wanted.
    pub(crate) async fn until(
        &self,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
        want: impl Fn(&Value) -> bool,
    ) -> Value {
        let mut last = None;
        let wait = async {
            loop {
                last = self.get(kind, namespace, name).await;
                if let Some(object) = &last
                    && want(object)
                {
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

    /// Waits until an object is gone.
    pub(crate) async fn gone(&self, kind: &str, namespace: Option<&str>, name: &str) {
        let wait = async {
            while self.get(kind, namespace, name).await.is_some() {
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
        };
        if tokio::time::timeout(DEADLINE, wait).await.is_err() {
            let last = self.get(kind, namespace, name).await;
            panic!("{kind} {name} is still there: {last:#?}");
        }
    }

    /// Waits until a list is as wanted.
    pub(crate) async fn until_list(
        &self,
        kind: &str,
        want: impl Fn(&[Value]) -> bool,
    ) -> Vec<Value> {
        let mut last = vec![];
        let wait = async {
            loop {
                last = self.list(kind).await;
                if want(&last) {
                    return last.clone();
                }
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
        };
        match tokio::time::timeout(DEADLINE, wait).await {
            Ok(list) => list,
            Err(_) => panic!("{kind}s are not as wanted: {last:#?}"),
        }
    }

    /// Waits until a CRD is established and served.
    pub(crate) async fn established(&self, name: &str) {
        let crd = self.until("CustomResourceDefinition", None, name, |crd| {
            ecp_meta::condition::is_true(crd, "Established")
        });
        let crd = crd.await;
        let text = |path: &str| {
            crd.pointer(path)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let path = format!(
            "/apis/{}/{}/{}",
            text("/spec/group"),
            text("/spec/versions/0/name"),
            text("/spec/names/plural")
        );
        let served = async {
            while self.request("GET", &path, None).await.is_err() {
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
        };
        tokio::time::timeout(DEADLINE, served)
            .await
            .unwrap_or_else(|_| panic!("{path} is not served"));
    }

    /// All writes the engine made so far, but for events.
    pub(crate) fn writes(&self) -> BTreeMap<&'static str, u64> {
        [
            "composite",
            "references",
            "composed",
            "status",
            "claim",
            "delete",
            "definition",
            "revision",
            "secret",
        ]
        .into_iter()
        .map(|what| (what, self.metrics.writes(what)))
        .collect()
    }

    /// Waits until the engine has made no write for a while.
    pub(crate) async fn settled(&self) -> BTreeMap<&'static str, u64> {
        let mut before = self.writes();
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_millis(150)).await;
            let now = self.writes();
            if now == before {
                return now;
            }
            before = now;
        }
        panic!("the engine writes without end: {before:?}");
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A condition as `status reason message`.
pub(crate) fn condition(object: &Value, kind: &str) -> String {
    let Some(condition) = ecp_meta::condition::find(object, kind) else {
        return "none".into();
    };
    let text = |field: &str| condition[field].as_str().unwrap_or_default();
    format!("{} {} {}", text("status"), text("reason"), text("message"))
        .trim_end()
        .to_owned()
}

pub(crate) fn is_ready(object: &Value) -> bool {
    ecp_meta::condition::is_true(object, "Ready")
}

/// A namespaced kind with a free spec and status, like a managed resource.
fn volume_crd(kind: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.dummy.test")},
        "spec": {
            "group": "dummy.test",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                        "properties": {"size": {"type": "integer", "maximum": 100}}},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }],
        },
    })
}

fn disk_schema() -> Value {
    json!({"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer"}, "count": {"type": "integer"},
            "n": {"type": "integer", "x-kubernetes-validations": [
                {"rule": "self >= oldSelf", "message": "n never shrinks"}]},
        }, "x-kubernetes-validations": [
            {"rule": "!has(oldSelf.n) || has(self.n)", "message": "n stays"}]},
        "status": {"type": "object", "properties": {
            "size": {"type": "integer"}, "seen": {"type": "integer"},
            "net": {"type": "string"}}},
    }}})
}

/// The XRD of `Disk` (`Region` for scope `Cluster`).
pub(crate) fn xrd_v2(scope: &str) -> Value {
    let (kind, plural) = match scope {
        "Cluster" => ("Region", "regions"),
        _ => ("Disk", "disks"),
    };
    json!({
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": format!("{plural}.ex.test")},
        "spec": {
            "scope": scope, "group": "ex.test",
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": true, "referenceable": true,
                "schema": disk_schema()}],
        },
    })
}

/// The XRD of `XDisk` with claim `Disk`.
pub(crate) fn xrd_v1() -> Value {
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xdisks.ex.test"},
        "spec": {
            "group": "ex.test",
            "names": {"kind": "XDisk", "plural": "xdisks"},
            "claimNames": {"kind": "Disk", "plural": "disks"},
            "versions": [{"name": "v1", "served": true, "referenceable": true,
                "schema": disk_schema()}],
        },
    })
}

/// A Composition with one step.
pub(crate) fn composition(name: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": name},
        "spec": {
            "compositeTypeRef": {"apiVersion": "ex.test/v1", "kind": kind},
            "mode": "Pipeline",
            "pipeline": [{"step": "make", "functionRef": {"name": "fn"}}],
        },
    })
}

/// A namespaced XR, or a claim: the same manifest serves both.
pub(crate) fn disk(name: &str, size: i64) -> Value {
    json!({
        "apiVersion": "ex.test/v1", "kind": "Disk",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"size": size},
    })
}

/// Composes `spec.count` (or one) volumes of the XR's size; each is ready when its own `Ready` is
/// True. The XR's status has the size, and how many volumes are seen.
pub(crate) fn volumes() -> PlainFunction {
    Arc::new(|request: Request| {
        let xr = request
            .observed
            .composite
            .clone()
            .unwrap_or_default()
            .object;
        let size = xr.pointer("/spec/size").cloned().unwrap_or(json!(1));
        let count = xr
            .pointer("/spec/count")
            .and_then(Value::as_i64)
            .unwrap_or(1);
        let mut desired = request.desired;
        for n in 0..count {
            let key = format!("volume-{n}");
            let ready = request
                .observed
                .resources
                .get(&key)
                .is_some_and(|o| is_ready(&o.object));
            let object = json!({"apiVersion": "dummy.test/v1", "kind": "Volume",
                "spec": {"size": size}});
            desired.resources.insert(
                key,
                Resource {
                    ready: if ready { Ready::True } else { Ready::False },
                    ..Resource::of(object)
                },
            );
        }
        let status = json!({"size": size, "seen": request.observed.resources.len()});
        desired.composite = Some(Resource::of(json!({"status": status})));
        Response {
            tag: request.tag,
            desired,
            context: Some(request.context),
            ..Response::default()
        }
    })
}
