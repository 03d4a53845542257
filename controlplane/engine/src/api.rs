//! JSON objects over a Kubernetes client.

use ecp_meta::gvk::GroupVersionKind;
use ecp_meta::object;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use kube::api::{
    DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, Preconditions,
    PropagationPolicy, Request, WatchEvent, WatchParams,
};
use serde_json::Value;

use crate::limits::{LIST_PAGE, WATCH_TIMEOUT_S};

/// Field manager of plain updates, as upstream's binary is called.
pub(crate) const UPDATE_MANAGER: &str = "crossplane";

/// A kind with what its URLs need.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    /// Group, version and kind.
    pub(crate) gvk: GroupVersionKind,
    /// Plural.
    pub(crate) plural: String,
    /// Whether objects live in namespaces.
    pub(crate) namespaced: bool,
}

impl Kind {
    pub(crate) fn new(gvk: GroupVersionKind, plural: &str, namespaced: bool) -> Self {
        Self {
            gvk,
            plural: plural.to_owned(),
            namespaced,
        }
    }

    fn request(&self, namespace: Option<&str>) -> Request {
        let GroupVersionKind { group, version, .. } = &self.gvk;
        let root = if group.is_empty() {
            format!("/api/{version}")
        } else {
            format!("/apis/{group}/{version}")
        };
        let path = match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{}", self.plural),
            None => format!("{root}/{}", self.plural),
        };
        Request::new(path)
    }

    fn request_for(&self, of: &Value) -> Request {
        self.request(object::namespace(of))
    }
}

/// Why the API did not do something.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// It answered with a failure.
    #[error("{message}")]
    Status {
        /// HTTP status.
        code: u16,
        /// Kubernetes' reason.
        reason: String,
        /// Kubernetes' message.
        message: String,
    },
    /// It did not answer, or not with what was expected.
    #[error("{0}")]
    Transport(String),
}

impl ApiError {
    pub(crate) fn is_not_found(&self) -> bool {
        self.code() == 404
    }

    /// A lost race: to be tried again without a word.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Status { code: 409, reason, .. } if reason != "AlreadyExists")
    }

    pub(crate) fn already_exists(&self) -> bool {
        matches!(self, Self::Status { code: 409, reason, .. } if reason == "AlreadyExists")
    }

    pub(crate) fn is_invalid(&self) -> bool {
        self.code() == 422
    }

    /// The resource version asked for is gone.
    pub(crate) fn is_expired(&self) -> bool {
        self.code() == 410
    }

    fn code(&self) -> u16 {
        match self {
            Self::Status { code, .. } => *code,
            Self::Transport(_) => 0,
        }
    }
}

impl From<kube::Error> for ApiError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => (*status).into(),
            other => {
                let mut text = other.to_string();
                let mut source = std::error::Error::source(&other);
                while let Some(cause) = source {
                    let cause_text = cause.to_string();
                    if !text.contains(&cause_text) {
                        text = format!("{text}: {cause_text}");
                    }
                    source = cause.source();
                }
                Self::Transport(text)
            }
        }
    }
}

impl From<kube::core::Status> for ApiError {
    fn from(status: kube::core::Status) -> Self {
        Self::Status {
            code: status.code,
            reason: status.reason,
            message: status.message,
        }
    }
}

impl From<kube::core::request::Error> for ApiError {
    fn from(error: kube::core::request::Error) -> Self {
        Self::Transport(error.to_string())
    }
}

/// One thing a watch tells.
#[derive(Debug)]
pub(crate) enum Watched {
    /// An object was added or changed.
    Applied(Value),
    /// An object is gone; this is its last state.
    Deleted(Value),
    /// Nothing happened up to this resource version.
    Bookmark(String),
}

/// How an object is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// Dependents go later.
    Background,
    /// Dependents go first.
    Foreground,
}

/// JSON objects over a Kubernetes client.
#[derive(Clone)]
pub(crate) struct Api {
    client: kube::Client,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Api")
    }
}

impl Api {
    pub(crate) fn new(client: kube::Client) -> Self {
        Self { client }
    }

    pub(crate) async fn get(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Value, ApiError> {
        let request = kind.request(namespace).get(name, &GetParams::default())?;
        Ok(self.client.request(request).await?)
    }

    /// The object, or `None` if it is not there.
    pub(crate) async fn find(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Value>, ApiError> {
        match self.get(kind, namespace, name).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All objects of a kind, and the resource version of the list.
    pub(crate) async fn list(&self, kind: &Kind) -> Result<(Vec<Value>, String), ApiError> {
        let mut objects = Vec::new();
        let mut params = ListParams::default().limit(LIST_PAGE);
        loop {
            let request = kind.request(None).list(&params)?;
            let mut page: Value = self.client.request(request).await?;
            let meta = |field: &str| {
                let text = page.get("metadata")?.get(field)?.as_str()?;
                (!text.is_empty()).then(|| text.to_owned())
            };
            let version = meta("resourceVersion").unwrap_or_default();
            let next = meta("continue");
            if let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) {
                objects.extend(items.into_iter().map(|o| with_kind(o, &kind.gvk)));
            }
            match next {
                Some(token) => params.continue_token = Some(token),
                None => return Ok((objects, version)),
            }
        }
    }

    /// What happens to a kind after a resource version.
    pub(crate) async fn watch(
        &self,
        kind: &Kind,
        version: &str,
    ) -> Result<BoxStream<'static, Result<Watched, ApiError>>, ApiError> {
        let params = WatchParams::default().timeout(WATCH_TIMEOUT_S);
        let request = kind.request(None).watch(&params, version)?;
        let stream = self.client.request_events::<Value>(request).await?;
        let gvk = kind.gvk.clone();
        let events = stream.map(move |event: Result<_, kube::Error>| match event? {
            WatchEvent::Added(o) | WatchEvent::Modified(o) => {
                Ok(Watched::Applied(with_kind(o, &gvk)))
            }
            WatchEvent::Deleted(o) => Ok(Watched::Deleted(with_kind(o, &gvk))),
            WatchEvent::Bookmark(b) => Ok(Watched::Bookmark(b.metadata.resource_version)),
            WatchEvent::Error(status) => Err((*status).into()),
        });
        Ok(events.boxed())
    }

    pub(crate) async fn create(&self, kind: &Kind, object: &Value) -> Result<Value, ApiError> {
        let request = kind.request_for(object).create(&post(), encode(object))?;
        Ok(self.client.request(request).await?)
    }

    /// Replaces an object at the resource version it has.
    pub(crate) async fn replace(&self, kind: &Kind, object: &Value) -> Result<Value, ApiError> {
        let name = object::name(object);
        let request = kind
            .request_for(object)
            .replace(name, &post(), encode(object))?;
        Ok(self.client.request(request).await?)
    }

    /// Replaces an object's status at the resource version it has.
    pub(crate) async fn replace_status(
        &self,
        kind: &Kind,
        object: &Value,
    ) -> Result<Value, ApiError> {
        let name = object::name(object);
        let request = kind.request_for(object).replace_subresource(
            "status",
            name,
            &post(),
            encode(object),
        )?;
        Ok(self.client.request(request).await?)
    }

    /// Server-side applies an object, forcing ownership.
    pub(crate) async fn apply(
        &self,
        kind: &Kind,
        object: &Value,
        manager: &str,
    ) -> Result<Value, ApiError> {
        let params = PatchParams::apply(manager).force();
        let name = object::name(object);
        let request = kind
            .request_for(object)
            .patch(name, &params, &Patch::Apply(object))?;
        Ok(self.client.request(request).await?)
    }

    /// Server-side applies an object's status, forcing ownership.
    pub(crate) async fn apply_status(
        &self,
        kind: &Kind,
        object: &Value,
        manager: &str,
    ) -> Result<Value, ApiError> {
        let params = PatchParams::apply(manager).force();
        let name = object::name(object);
        let request = kind.request_for(object).patch_subresource(
            "status",
            name,
            &params,
            &Patch::Apply(object),
        )?;
        Ok(self.client.request(request).await?)
    }

    /// Deletes this very object, if it is still there.
    pub(crate) async fn delete(
        &self,
        kind: &Kind,
        object: &Value,
        propagation: Propagation,
    ) -> Result<(), ApiError> {
        let uid = object::uid(object);
        let params = DeleteParams {
            propagation_policy: Some(match propagation {
                Propagation::Background => PropagationPolicy::Background,
                Propagation::Foreground => PropagationPolicy::Foreground,
            }),
            preconditions: (!uid.is_empty()).then(|| Preconditions {
                resource_version: None,
                uid: Some(uid.to_owned()),
            }),
            ..DeleteParams::default()
        };
        let request = kind
            .request_for(object)
            .delete(object::name(object), &params)?;
        match self.client.request::<Value>(request).await {
            Ok(_) => Ok(()),
            Err(error) => match ApiError::from(error) {
                error if error.is_not_found() => Ok(()),
                error => Err(error),
            },
        }
    }

    /// The resources of one group and version; `None` if there is no such version.
    pub(crate) async fn resources(&self, api_version: &str) -> Result<Option<Value>, ApiError> {
        let path = if api_version.contains('/') {
            format!("/apis/{api_version}")
        } else {
            format!("/api/{api_version}")
        };
        self.document(&path).await
    }

    /// A document at a path; `None` if it is not there.
    pub(crate) async fn document(&self, path: &str) -> Result<Option<Value>, ApiError> {
        let request = http_get(path)?;
        match self.client.request::<Value>(request).await {
            Ok(value) => Ok(Some(value)),
            Err(error) => match ApiError::from(error) {
                error if error.is_not_found() => Ok(None),
                error => Err(error),
            },
        }
    }
}

fn http_get(path: &str) -> Result<http::Request<Vec<u8>>, ApiError> {
    http::Request::get(path)
        .body(Vec::new())
        .map_err(|e| ApiError::Transport(e.to_string()))
}

fn post() -> PostParams {
    PostParams {
        dry_run: false,
        field_manager: Some(UPDATE_MANAGER.into()),
    }
}

fn encode(object: &Value) -> Vec<u8> {
    object.to_string().into_bytes()
}

/// Items of typed lists do not say what they are.
fn with_kind(mut object: Value, gvk: &GroupVersionKind) -> Value {
    if object.get("kind").is_none()
        && let Value::Object(map) = &mut object
    {
        map.insert("apiVersion".into(), gvk.api_version().into());
        map.insert("kind".into(), gvk.kind.as_str().into());
    }
    object
}
