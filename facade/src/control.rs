//! Calls to the control plane: any Kubernetes API behind a [`kube::Client`].
//!
//! Objects travel as JSON. Every call has a deadline, and every failure becomes a [`CallError`]
//! that says what a caller can do about it.

use std::fmt;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use url::form_urlencoded::Serializer;

use crate::limits;

/// Field manager of everything the facade writes but [`POWER_MANAGER`]'s.
pub(crate) const FIELD_MANAGER: &str = "ecp-facade";
/// Field manager of `spec.power`, which no PUT touches.
pub(crate) const POWER_MANAGER: &str = "ecp-facade-power";

/// What a path segment may hold unescaped (RFC 3986, unreserved).
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Where objects of one kind live in the Kubernetes API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Collection {
    /// `/api/v1` or `/apis/<group>/<version>`.
    base: String,
    plural: String,
}

impl Collection {
    /// A collection of an API group; the core group is empty.
    pub(crate) fn new(group: &str, version: &str, plural: &str) -> Self {
        let base = if group.is_empty() {
            format!("/api/{version}")
        } else {
            format!("/apis/{group}/{version}")
        };
        Self {
            base,
            plural: plural.into(),
        }
    }

    /// The path of all objects, or of those in one namespace.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        match namespace {
            Some(ns) => format!("{}/namespaces/{}/{}", self.base, segment(ns), self.plural),
            None => format!("{}/{}", self.base, self.plural),
        }
    }

    /// The path of one object.
    pub(crate) fn item(&self, namespace: Option<&str>, name: &str) -> String {
        format!("{}/{}", self.path(namespace), segment(name))
    }
}

fn segment(text: &str) -> impl fmt::Display + '_ {
    utf8_percent_encode(text, SEGMENT)
}

/// A page of a list.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) items: Vec<Value>,
    pub(crate) resource_version: String,
    pub(crate) continue_token: Option<String>,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// No such object, namespace or kind.
    #[error("not found: {0}")]
    NotFound(String),
    /// A precondition of the call does not hold, or the object exists already.
    #[error("conflict: {0}")]
    Conflict(String),
    /// An admission webhook or policy refused the call, in its own words: a Crossplane Usage, say.
    #[error("denied: {0}")]
    Denied(String),
    /// The namespace is being deleted.
    #[error("namespace is being deleted: {0}")]
    Terminating(String),
    /// The object is not valid; the causes name fields.
    #[error("invalid: {message}")]
    Invalid {
        /// What the server says.
        message: String,
        /// Field path and message of each cause.
        causes: Vec<(String, String)>,
    },
    /// The resource version is too old to watch or to continue from.
    #[error("expired: {0}")]
    Expired(String),
    /// Too many calls.
    #[error("too many calls: {0}")]
    TooMany(String),
    /// No answer, or an answer that says to try again.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// Anything else.
    #[error("unexpected answer {code}: {message}")]
    Unexpected {
        /// Status code.
        code: u16,
        /// What the server says.
        message: String,
    },
}

/// The control plane.
#[derive(Clone)]
pub(crate) struct ControlPlane {
    client: kube::Client,
}

impl ControlPlane {
    pub(crate) fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// The client itself, for watches.
    pub(crate) fn client(&self) -> &kube::Client {
        &self.client
    }

    /// Reads one object.
    pub(crate) async fn get(
        &self,
        of: &Collection,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Value, CallError> {
        let (_, object) = self
            .call(Method::GET, of.item(namespace, name), None)
            .await?;
        Ok(object)
    }

    /// Reads one page of a list.
    pub(crate) async fn list(
        &self,
        of: &Collection,
        namespace: Option<&str>,
        continue_token: Option<&str>,
    ) -> Result<Page, CallError> {
        let path = page_path(&of.path(namespace), continue_token);
        let (_, mut list) = self.call(Method::GET, path, None).await?;
        let text = |v: &Value, field: &str| {
            v.get("metadata")
                .and_then(|m| m.get(field))
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let resource_version = text(&list, "resourceVersion");
        let continue_token = Some(text(&list, "continue")).filter(|t| !t.is_empty());
        let items = match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        Ok(Page {
            items,
            resource_version,
            continue_token,
        })
    }

    /// Reads all pages of a list.
    pub(crate) async fn list_all(
        &self,
        of: &Collection,
        namespace: Option<&str>,
    ) -> Result<Vec<Value>, CallError> {
        let mut items = Vec::new();
        let mut token = None;
        loop {
            let page = self.list(of, namespace, token.as_deref()).await?;
            items.extend(page.items);
            token = page.continue_token;
            if token.is_none() {
                return Ok(items);
            }
        }
    }

    /// Applies an object (server-side apply, by force) for a field manager; true when that created
    /// it.
    pub(crate) async fn apply(
        &self,
        manager: &str,
        of: &Collection,
        namespace: Option<&str>,
        name: &str,
        object: &Value,
    ) -> Result<(bool, Value), CallError> {
        let path = format!(
            "{}?fieldManager={manager}&force=true",
            of.item(namespace, name)
        );
        let body = (encode(object)?, "application/apply-patch+yaml");
        let (status, object) = self.call(Method::PATCH, path, Some(body)).await?;
        Ok((status == StatusCode::CREATED, object))
    }

    /// Merges a patch into an object that exists.
    pub(crate) async fn merge(
        &self,
        of: &Collection,
        namespace: Option<&str>,
        name: &str,
        patch: &Value,
    ) -> Result<Value, CallError> {
        let path = format!("{}?fieldManager={FIELD_MANAGER}", of.item(namespace, name));
        let body = (encode(patch)?, "application/merge-patch+json");
        let (_, object) = self.call(Method::PATCH, path, Some(body)).await?;
        Ok(object)
    }

    /// Creates an object.
    pub(crate) async fn create(
        &self,
        of: &Collection,
        namespace: Option<&str>,
        object: &Value,
    ) -> Result<Value, CallError> {
        let path = format!("{}?fieldManager={FIELD_MANAGER}", of.path(namespace));
        let body = (encode(object)?, "application/json");
        let (_, object) = self.call(Method::POST, path, Some(body)).await?;
        Ok(object)
    }

    /// Deletes an object after its dependents (foreground), if it is still the one meant.
    ///
    /// Answers with what is left of the object, or with a `Status` when nothing is.
    pub(crate) async fn delete(
        &self,
        of: &Collection,
        namespace: Option<&str>,
        name: &str,
        preconditions: Value,
    ) -> Result<Value, CallError> {
        let options = serde_json::json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Foreground",
            "preconditions": preconditions,
        });
        let body = (encode(&options)?, "application/json");
        let (_, left) = self
            .call(Method::DELETE, of.item(namespace, name), Some(body))
            .await?;
        Ok(left)
    }

    async fn call(
        &self,
        method: Method,
        path: String,
        body: Option<(Vec<u8>, &'static str)>,
    ) -> Result<(StatusCode, Value), CallError> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(ACCEPT, "application/json");
        let body = match body {
            Some((bytes, content_type)) => {
                request = request.header(CONTENT_TYPE, content_type);
                Body::from(bytes)
            }
            None => Body::empty(),
        };
        let request = request.body(body).map_err(|e| CallError::Unexpected {
            code: 0,
            message: e.to_string(),
        })?;
        let answer = async {
            let response = self.client.send(request).await?;
            let status = response.status();
            let bytes = response.into_body().collect().await?.to_bytes();
            Ok::<_, kube::Error>((status, bytes))
        };
        let (status, bytes) = tokio::time::timeout(limits::CONTROL_PLANE_TIMEOUT, answer)
            .await
            .map_err(|_| CallError::Unavailable("no answer in time".into()))?
            .map_err(CallError::from)?;
        if status.is_success() {
            let object = serde_json::from_slice(&bytes).map_err(|e| CallError::Unexpected {
                code: status.as_u16(),
                message: e.to_string(),
            })?;
            return Ok((status, object));
        }
        Err(refusal(status, &bytes))
    }
}

fn page_path(collection: &str, continue_token: Option<&str>) -> String {
    let mut query = Serializer::new(String::new());
    query.append_pair("limit", &limits::CACHE_PAGE_LEN.to_string());
    if let Some(token) = continue_token {
        query.append_pair("continue", token);
    }
    format!("{collection}?{}", query.finish())
}

fn encode(object: &Value) -> Result<Vec<u8>, CallError> {
    serde_json::to_vec(object).map_err(|e| CallError::Unexpected {
        code: 0,
        message: e.to_string(),
    })
}

fn refusal(code: StatusCode, body: &Bytes) -> CallError {
    let status = serde_json::from_slice(body).unwrap_or(Value::Null);
    classify(code.as_u16(), &status)
}

/// What a `Status` object means for a caller.
fn classify(code: u16, status: &Value) -> CallError {
    let text = |field: &str| {
        status
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let causes: Vec<&Value> = status
        .get("details")
        .and_then(|d| d.get("causes"))
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .collect();
    let cause_text = |cause: &Value, field: &str| {
        cause
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let terminating = causes
        .iter()
        .any(|c| cause_text(c, "reason") == "NamespaceTerminating");
    let message = text("message");
    match code {
        403 if terminating || message.contains("because it is being terminated") => {
            CallError::Terminating(message)
        }
        // Whatever code it chose: Crossplane's Usages deny with 409, others with 403.
        400..500 if let Some(words) = denied(&message) => CallError::Denied(words),
        404 => CallError::NotFound(message),
        409 => CallError::Conflict(message),
        410 => CallError::Expired(message),
        422 => CallError::Invalid {
            causes: causes
                .iter()
                .map(|c| (cause_text(c, "field"), cause_text(c, "message")))
                .collect(),
            message,
        },
        429 => CallError::TooMany(message),
        500 | 502..=504 => CallError::Unavailable(message),
        _ => CallError::Unexpected { code, message },
    }
}

/// The words of an admission webhook or policy that denied a call (apiserver's
/// `admission/plugin/webhook/errors` and `admission/plugin/policy/validating`).
fn denied(message: &str) -> Option<String> {
    let by_webhook = message
        .strip_prefix("admission webhook ")
        .and_then(|rest| rest.split_once(" denied the request: "));
    let by_policy = || message.split_once(" denied request: ");
    let (_, words) = by_webhook.or_else(by_policy)?;
    Some(words.to_owned())
}

impl From<kube::Error> for CallError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => {
                let code = status.code;
                let status = serde_json::to_value(&*status).unwrap_or(Value::Null);
                classify(code, &status)
            }
            other => Self::Unavailable(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_escape_what_could_leave_the_segment() {
        let disks = Collection::new("storage.v1.secapi.cloud", "v1", "block-storages");
        assert_eq!(
            disks.item(Some("ns"), "disk-1"),
            "/apis/storage.v1.secapi.cloud/v1/namespaces/ns/block-storages/disk-1"
        );
        assert_eq!(
            Collection::new("", "v1", "namespaces").item(None, "a/b?c"),
            "/api/v1/namespaces/a%2Fb%3Fc"
        );
    }

    #[test]
    fn a_status_says_what_to_do_next() {
        let invalid = json!({
            "message": "BlockStorage \"d\" is invalid",
            "details": {"causes": [
                {"reason": "FieldValueInvalid", "field": "spec.sizeGB", "message": "too small"},
            ]},
        });
        match classify(422, &invalid) {
            CallError::Invalid { causes, .. } => {
                assert_eq!(causes, [("spec.sizeGB".to_owned(), "too small".to_owned())]);
            }
            other => panic!("{other}"),
        }
        let terminating = json!({"details": {"causes": [{"reason": "NamespaceTerminating"}]}});
        assert!(matches!(
            classify(403, &terminating),
            CallError::Terminating(_)
        ));
        assert!(matches!(
            classify(403, &json!(null)),
            CallError::Unexpected { .. }
        ));
        // What Crossplane's core answers: its words are also the reason.
        let in_use =
            "This resource is in-use by 1 usage(s), including the *v1beta1.Usage \"keep\".";
        let usage = json!({
            "reason": in_use,
            "message": format!(
                "admission webhook \"nousages.protection.crossplane.io\" denied the request: {in_use}"
            ),
        });
        assert!(matches!(classify(409, &usage), CallError::Denied(words) if words == in_use));
        let policy = json!({
            "reason": "Invalid",
            "message": "skus \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' \
                        denied request: not on Fridays",
        });
        assert!(matches!(
            classify(422, &policy),
            CallError::Denied(words) if words == "not on Fridays"
        ));
        assert!(matches!(
            classify(
                409,
                &json!({"reason": "Conflict", "message": "the object has been modified"})
            ),
            CallError::Conflict(_)
        ));
        assert!(matches!(
            classify(503, &json!(null)),
            CallError::Unavailable(_)
        ));
        assert!(matches!(classify(410, &json!(null)), CallError::Expired(_)));
    }
}
