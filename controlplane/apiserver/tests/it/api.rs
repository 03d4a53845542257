//! The server under test, and short ways to ask it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ecp_apiserver::{ApiBody, ApiServer, ApiService, Config, Identity};
use ecp_store::{MemoryStore, Store};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// How long a test waits for something that must happen.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

pub(crate) struct Api {
    pub(crate) server: Arc<ApiServer>,
    service: ApiService,
    prefix: String,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    /// The object, which must have come with this code.
    #[track_caller]
    pub(crate) fn expect(self, code: u16) -> Value {
        assert_eq!(self.code, code, "{:#}", self.body);
        self.body
    }

    pub(crate) fn reason(&self) -> &str {
        self.body["reason"].as_str().unwrap_or_default()
    }
}

impl Api {
    pub(crate) async fn start() -> Self {
        Self::with(Config::default()).await
    }

    pub(crate) async fn with(config: Config) -> Self {
        Self::of(Arc::new(MemoryStore::new()), config).await
    }

    /// A server on a store that may hold something.
    pub(crate) async fn on(store: Arc<MemoryStore>) -> Self {
        Self::of(store, Config::default()).await
    }

    pub(crate) async fn of(store: Arc<dyn Store>, config: Config) -> Self {
        let server = ApiServer::new(store, config).await.unwrap();
        Self {
            service: server.service(Identity::admin()),
            server,
            prefix: String::new(),
        }
    }

    /// The same server, seen from a logical cluster.
    pub(crate) fn cluster(&self, path: &str) -> Self {
        Self {
            server: Arc::clone(&self.server),
            service: self.service.clone(),
            prefix: format!("/clusters/{path}"),
        }
    }

    /// The same server, seen by a user without rights.
    pub(crate) fn user(&self, name: &str) -> Self {
        Self {
            server: Arc::clone(&self.server),
            service: self.server.service(Identity::user(name)),
            prefix: self.prefix.clone(),
        }
    }

    pub(crate) fn kube(&self) -> kube::Client {
        kube::Client::new(self.service.clone(), "default")
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> Response<ApiBody> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.prefix))
            .header("content-type", content_type)
            .header("user-agent", "it/1.0")
            .body(Full::new(body.into()))
            .unwrap();
        self.service.clone().oneshot(request).await.unwrap()
    }

    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> Answer {
        let (parts, body) = self
            .send(method, path, content_type, body)
            .await
            .into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into_owned().into());
        Answer {
            code: parts.status.as_u16(),
            headers: parts.headers,
            body,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, "application/json", "").await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.call("POST", path, "application/json", body.to_string())
            .await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.call("PUT", path, "application/json", body.to_string())
            .await
    }

    pub(crate) async fn merge(&self, path: &str, body: Value) -> Answer {
        self.call(
            "PATCH",
            path,
            "application/merge-patch+json",
            body.to_string(),
        )
        .await
    }

    pub(crate) async fn json_patch(&self, path: &str, body: Value) -> Answer {
        self.call(
            "PATCH",
            path,
            "application/json-patch+json",
            body.to_string(),
        )
        .await
    }

    pub(crate) async fn apply(&self, path: &str, manager: &str, body: Value) -> Answer {
        let sep = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{sep}fieldManager={manager}");
        self.call(
            "PATCH",
            &path,
            "application/apply-patch+yaml",
            body.to_string(),
        )
        .await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path, "application/json", "").await
    }

    pub(crate) async fn watch(&self, path: &str) -> Watch {
        let response = self.send("GET", path, "application/json", "").await;
        assert_eq!(response.status(), 200);
        Watch {
            body: response.into_body(),
            rest: Vec::new(),
        }
    }

    /// Waits until a path answers with a code.
    pub(crate) async fn until(&self, path: &str, code: u16) -> Value {
        let wait = async {
            loop {
                let answer = self.get(path).await;
                if answer.code == code {
                    return answer.body;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(DEADLINE, wait).await.unwrap()
    }
}

pub(crate) struct Watch {
    body: ApiBody,
    rest: Vec<u8>,
}

impl Watch {
    /// The next event; `None` at the end of the watch.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        tokio::time::timeout(DEADLINE, async {
            loop {
                if let Some(end) = self.rest.iter().position(|b| *b == b'\n') {
                    let line: Vec<u8> = self.rest.drain(..=end).collect();
                    return Some(serde_json::from_slice(&line).unwrap());
                }
                let frame = self.body.frame().await?.unwrap();
                self.rest.extend_from_slice(frame.data_ref().unwrap());
            }
        })
        .await
        .unwrap()
    }

    /// Type, name and resource version of the next event.
    pub(crate) async fn event(&mut self) -> (String, String, u64) {
        let event = self.next().await.unwrap();
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        (
            text(&event["type"]),
            text(&event["object"]["metadata"]["name"]),
            rv(&event["object"]),
        )
    }
}

/// The resource version of an object or list.
pub(crate) fn rv(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"]
        .as_str()
        .and_then(|v| v.parse().ok())
        .unwrap_or(0)
}

pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const FOOS: &str = "/apis/ex.test/v1/namespaces/default/foos";
pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A definition of `foos.ex.test`; the version can be changed.
pub(crate) fn foo_crd(change: impl FnOnce(&mut Value)) -> Value {
    let mut version = json!({
        "name": "v1", "served": true, "storage": true,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {
            "type": "object",
            "properties": {
                "spec": {"type": "object", "properties": {
                    "n": {"type": "integer"},
                    "color": {"type": "string"},
                    "size": {"type": "string", "default": "small"},
                    "items": {"type": "array", "x-kubernetes-list-type": "map",
                              "x-kubernetes-list-map-keys": ["name"],
                              "items": {"type": "object", "required": ["name"],
                                        "properties": {"name": {"type": "string"}, "v": {"type": "string"}}}},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}
                }},
                "data": {"type": "object", "additionalProperties": {"type": "string"}},
                "status": {"type": "object", "properties": {"phase": {"type": "string"}}}
            }
        }}
    });
    change(&mut version);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.ex.test"},
        "spec": {
            "group": "ex.test", "scope": "Namespaced",
            "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "shortNames": ["fo"]},
            "versions": [version]
        }
    })
}

pub(crate) fn foo(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "ex.test/v1", "kind": "Foo", "metadata": {"name": name}, "spec": spec})
}

pub(crate) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

/// A server that has `foos.ex.test`.
pub(crate) async fn with_foos() -> Api {
    let api = Api::start().await;
    api.post(CRDS, foo_crd(|_| {})).await.expect(201);
    api
}
