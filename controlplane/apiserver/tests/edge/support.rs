//! A server, a listener in front of it, and short ways to ask both.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ecp_apiserver::auth::Authenticator;
use ecp_apiserver::pki::Pki;
use ecp_apiserver::serve::{self, ServeError, Transport};
use ecp_apiserver::{ApiServer, Config, Identity};
use ecp_store::{MemoryStore, Store};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// How long a test waits for something that must happen.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

/// A server, asked in process.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) server: Arc<ApiServer>,
    identity: Identity,
    prefix: String,
}

impl Api {
    pub(crate) async fn start() -> Self {
        Self::over(Arc::new(MemoryStore::new())).await
    }

    pub(crate) async fn over(store: Arc<dyn Store>) -> Self {
        let server = ApiServer::new(store, Config::default()).await.unwrap();
        Self {
            server,
            identity: Identity::admin(),
            prefix: String::new(),
        }
    }

    /// The same server, seen from another logical cluster.
    pub(crate) fn cluster(&self, path: &str) -> Self {
        Self {
            prefix: format!("/clusters/{path}"),
            ..self.clone()
        }
    }

    /// The same server, seen by somebody else.
    pub(crate) fn as_user(&self, identity: Identity) -> Self {
        Self {
            identity,
            ..self.clone()
        }
    }

    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Value,
    ) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.prefix))
            .header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let request = request.body(Full::new(bytes::Bytes::from(body))).unwrap();
        let service = self.server.service(self.identity.clone());
        let (parts, body) = service.oneshot(request).await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let body = serde_json::from_str(&text).unwrap_or_else(|_| text.into());
        Answer {
            code: parts.status.as_u16(),
            headers: parts.headers,
            body,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, &[], Value::Null).await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Answer {
        self.call("GET", path, &[("accept", accept)], Value::Null)
            .await
    }

    /// Creates an object, which must work.
    pub(crate) async fn create(&self, path: &str, object: Value) -> Value {
        let answer = self.call("POST", path, &[], object).await;
        assert_eq!(answer.code, 201, "{:#}", answer.body);
        answer.body
    }

    pub(crate) async fn merge(&self, path: &str, patch: Value) -> Answer {
        let kind = [("content-type", "application/merge-patch+json")];
        let mut request = Request::builder()
            .method("PATCH")
            .uri(format!("{}{path}", self.prefix));
        for (name, value) in kind {
            request = request.header(name, value);
        }
        let body = Full::new(bytes::Bytes::from(patch.to_string()));
        let service = self.server.service(self.identity.clone());
        let response = service.oneshot(request.body(body).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        Answer {
            code: parts.status.as_u16(),
            headers: parts.headers,
            body,
        }
    }

    /// Deletes an object with a propagation policy, which must work.
    pub(crate) async fn delete(&self, path: &str, policy: &str) {
        let options = json!({"kind": "DeleteOptions", "propagationPolicy": policy});
        let answer = self.call("DELETE", path, &[], options).await;
        assert_eq!(answer.code, 200, "{:#}", answer.body);
    }

    pub(crate) async fn exists(&self, path: &str) -> bool {
        match self.get(path).await.code {
            200 => true,
            404 => false,
            code => panic!("GET {path}: {code}"),
        }
    }

    /// Waits until an object is as wanted.
    pub(crate) async fn until(&self, path: &str, what: &str, test: impl Fn(&Answer) -> bool) {
        let wait = async {
            let mut last = self.get(path).await;
            while !test(&last) {
                tokio::time::sleep(Duration::from_millis(5)).await;
                last = self.get(path).await;
            }
        };
        if tokio::time::timeout(DEADLINE, wait).await.is_err() {
            panic!("{path} is not {what}: {:#}", self.get(path).await.body);
        }
    }

    pub(crate) async fn until_gone(&self, path: &str) {
        self.until(path, "gone", |answer| answer.code == 404).await;
    }
}

/// A definition of namespaced `Disk`s in `ex.test/v1`.
pub(crate) fn disk_crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "disks.ex.test"},
        "spec": {
            "group": "ex.test", "scope": "Namespaced",
            "names": {"kind": "Disk", "plural": "disks", "shortNames": ["dk"], "categories": ["all"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.sizeGB"},
                    {"name": "Ready", "type": "string",
                     "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {"openAPIV3Schema": {
                    "type": "object", "description": "A disk.",
                    "properties": {
                        "spec": {"type": "object", "properties": {
                            "sizeGB": {"type": "integer", "description": "Size in GB.", "minimum": 1},
                        }},
                        "status": {"type": "object", "properties": {"conditions": {
                            "type": "array", "items": {"type": "object", "properties": {
                                "type": {"type": "string"}, "status": {"type": "string"},
                            }},
                        }}},
                    },
                }},
            }],
        },
    })
}

pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A server behind a listener on a free port of the loopback interface.
pub(crate) struct Front {
    pub(crate) api: Api,
    pub(crate) pki: Pki,
    pub(crate) address: SocketAddr,
    pub(crate) shutdown: CancellationToken,
    pub(crate) done: JoinHandle<Result<(), ServeError>>,
}

impl Front {
    /// With TLS; the administrator's token and `user-token` of user `jane` are known.
    pub(crate) async fn start() -> Self {
        let pki = Pki::ephemeral(&[], SystemTime::now()).unwrap();
        let authenticator = Authenticator::new()
            .with_token(pki.token(), Identity::admin())
            .with_token("user-token", Identity::user("jane"));
        let transport = pki.server_config().unwrap().into();
        Self::with(pki, transport, authenticator).await
    }

    pub(crate) async fn with(pki: Pki, transport: Transport, authenticator: Authenticator) -> Self {
        let api = Api::start().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let serving = serve::serve(
            Arc::clone(&api.server),
            listener,
            transport,
            Arc::new(authenticator),
            shutdown.clone(),
        );
        Self {
            api,
            pki,
            address,
            done: tokio::spawn(serving),
            shutdown,
        }
    }

    pub(crate) fn kubeconfig(&self, token: &str) -> String {
        let url = format!("https://{}", self.address);
        ecp_apiserver::pki::kubeconfig(&url, Some(self.pki.ca_pem()), Some(token))
    }
}
