//! A registry in this process, which can serve what is wrong.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ecp_oci::Digest;
use tokio::sync::Mutex;

/// What the registry has, by path below `/v2/`.
pub(crate) type Content = Arc<Mutex<BTreeMap<String, (String, Bytes)>>>;

pub(crate) struct Registry {
    /// Host and port.
    pub(crate) host: String,
    pub(crate) content: Content,
}

impl Registry {
    pub(crate) async fn start() -> Self {
        let content = Content::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let router = Router::new().fallback(handle).with_state(content.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { host, content }
    }

    /// Changes what is served at the first path that ends so.
    pub(crate) async fn spoil(&self, end: &str, change: impl FnOnce(Bytes) -> Bytes) {
        let mut content = self.content.lock().await;
        let found = content.iter_mut().find(|(path, _)| path.ends_with(end));
        let (_, (_, bytes)) = found.unwrap();
        *bytes = change(bytes.clone());
    }
}

async fn handle(State(content): State<Content>, request: Request) -> Response {
    let method = request.method().clone();
    let uri = request.uri().clone();
    let path = uri.path().trim_start_matches("/v2/").to_owned();
    let kind = request
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    let body = axum::body::to_bytes(request.into_body(), 1 << 26)
        .await
        .unwrap();
    let mut content = content.lock().await;
    match method {
        Method::POST => {
            let to = format!("{}session", uri.path());
            (StatusCode::ACCEPTED, [(header::LOCATION, to)]).into_response()
        }
        Method::PUT => {
            let to = match uri.query().and_then(|query| query.strip_prefix("digest=")) {
                Some(digest) => path.replace("uploads/session", &digest.replace("%3A", ":")),
                None => path.clone(),
            };
            if let Some((repository, _)) = to.split_once("/manifests/") {
                let by_digest = format!("{repository}/manifests/{}", Digest::of(&body));
                content.insert(by_digest, (kind.clone(), body.clone()));
            }
            content.insert(to, (kind, body));
            // Like go-containerregistry's, it does not say where.
            StatusCode::CREATED.into_response()
        }
        _ if path.ends_with("/tags/list") => {
            let prefix = path.replace("tags/list", "manifests/");
            let tags: Vec<_> = content
                .keys()
                .filter_map(|key| key.strip_prefix(&prefix))
                .filter(|tag| !tag.contains(':'))
                .collect();
            axum::Json(serde_json::json!({"name": "x", "tags": tags})).into_response()
        }
        _ => match content.get(&path) {
            Some((kind, bytes)) => {
                ([(header::CONTENT_TYPE, kind.clone())], bytes.clone()).into_response()
            }
            None if path.is_empty() => StatusCode::OK.into_response(),
            None => StatusCode::NOT_FOUND.into_response(),
        },
    }
}
