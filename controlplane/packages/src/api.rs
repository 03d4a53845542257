//! JSON objects over a Kubernetes client.

use ecp_meta::object;
use kube::api::{DeleteParams, GetParams, ListParams, PostParams, Preconditions, Request};
use serde_json::{Value, json};

use crate::kinds::Kind;

/// Field manager, as upstream's binary is called.
const MANAGER: &str = "crossplane";

/// Why the API did not do something.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// It answered with a failure.
    #[error("{message}")]
    Status {
        code: u16,
        reason: String,
        message: String,
    },
    /// It did not answer, or not with what was expected.
    #[error("{0}")]
    Transport(String),
}

impl ApiError {
    fn code(&self) -> u16 {
        match self {
            Self::Status { code, .. } => *code,
            Self::Transport(_) => 0,
        }
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.code() == 404
    }

    /// A lost race.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Status { code: 409, reason, .. } if reason != "AlreadyExists")
    }

    pub(crate) fn already_exists(&self) -> bool {
        matches!(self, Self::Status { code: 409, reason, .. } if reason == "AlreadyExists")
    }
}

impl From<kube::Error> for ApiError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Status {
                code: status.code,
                reason: status.reason.clone(),
                message: status.message.clone(),
            },
            other => Self::Transport(other.to_string()),
        }
    }
}

impl From<kube::core::request::Error> for ApiError {
    fn from(error: kube::core::request::Error) -> Self {
        Self::Transport(error.to_string())
    }
}

/// Whether something is done, or only found out to be possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Do,
    DryRun,
}

/// JSON objects over a Kubernetes client.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) client: kube::Client,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Api")
    }
}

impl Api {
    fn request(kind: &Kind, namespace: Option<&str>) -> Request {
        let (group, version) = (&kind.gvk.group, &kind.gvk.version);
        let root = if group.is_empty() {
            format!("/api/{version}")
        } else {
            format!("/apis/{group}/{version}")
        };
        Request::new(match namespace.filter(|_| kind.namespaced) {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{}", kind.plural),
            None => format!("{root}/{}", kind.plural),
        })
    }

    /// The object, or `None` if it is not there.
    pub(crate) async fn find(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Value>, ApiError> {
        let request = Self::request(kind, namespace).get(name, &GetParams::default())?;
        match self.client.request::<Value>(request).await {
            Ok(object) => Ok(Some(object)),
            Err(error) => match ApiError::from(error) {
                error if error.is_not_found() => Ok(None),
                error => Err(error),
            },
        }
    }

    /// All objects of a kind with these labels.
    pub(crate) async fn list(&self, kind: &Kind, labels: &str) -> Result<Vec<Value>, ApiError> {
        let request = Self::request(kind, None).list(&ListParams::default().labels(labels))?;
        let mut list: Value = self.client.request(request).await?;
        let Some(Value::Array(mut items)) = list.get_mut("items").map(Value::take) else {
            return Ok(Vec::new());
        };
        for item in &mut items {
            item["apiVersion"] = kind.gvk.api_version().into();
            item["kind"] = kind.gvk.kind.as_str().into();
        }
        Ok(items)
    }

    pub(crate) async fn create(
        &self,
        kind: &Kind,
        object: &Value,
        mode: Mode,
    ) -> Result<Value, ApiError> {
        let request = Self::request(kind, object::namespace(object));
        let request = request.create(&post(mode), encode(object))?;
        Ok(self.client.request(request).await?)
    }

    /// Replaces an object at the resource version it has.
    pub(crate) async fn replace(
        &self,
        kind: &Kind,
        object: &Value,
        mode: Mode,
    ) -> Result<Value, ApiError> {
        let request = Self::request(kind, object::namespace(object));
        let request = request.replace(object::name(object), &post(mode), encode(object))?;
        Ok(self.client.request(request).await?)
    }

    /// Replaces an object's status at the resource version it has.
    pub(crate) async fn replace_status(
        &self,
        kind: &Kind,
        object: &Value,
    ) -> Result<Value, ApiError> {
        let name = object::name(object);
        let request = Self::request(kind, object::namespace(object));
        let request =
            request.replace_subresource("status", name, &post(Mode::Do), encode(object))?;
        Ok(self.client.request(request).await?)
    }

    /// Deletes this very object, if it is still there.
    pub(crate) async fn delete(&self, kind: &Kind, object: &Value) -> Result<(), ApiError> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                resource_version: None,
                uid: Some(object::uid(object).to_owned()),
            }),
            ..DeleteParams::background()
        };
        let request = Self::request(kind, object::namespace(object));
        let request = request.delete(object::name(object), &params)?;
        match self
            .client
            .request::<Value>(request)
            .await
            .map_err(ApiError::from)
        {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    /// Adds or removes a finalizer; returns the object as it is then.
    pub(crate) async fn set_finalizer(
        &self,
        kind: &Kind,
        object: Value,
        finalizer: &str,
        present: bool,
    ) -> Result<Value, ApiError> {
        if object::finalizers(&object).any(|f| f == finalizer) == present {
            return Ok(object);
        }
        let mut all: Vec<String> = object::finalizers(&object)
            .filter(|f| *f != finalizer)
            .map(str::to_owned)
            .collect();
        if present {
            all.push(finalizer.to_owned());
        }
        let mut changed = object;
        changed["metadata"]["finalizers"] = json!(all);
        self.replace(kind, &changed, Mode::Do).await
    }
}

fn post(mode: Mode) -> PostParams {
    PostParams {
        dry_run: mode == Mode::DryRun,
        field_manager: Some(MANAGER.into()),
    }
}

fn encode(object: &Value) -> Vec<u8> {
    object.to_string().into_bytes()
}
