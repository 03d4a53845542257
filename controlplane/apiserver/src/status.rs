//! Kubernetes `Status`: the form of every error and of some successes.
//!
//! Codes, reasons and messages follow apimachinery's `pkg/api/errors`.

use ecp_meta::gvk::GroupResource;
use ecp_schema::FieldError;
use http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;

use crate::body::ApiBody;
use crate::limits;

/// A `metav1.Status`. One pointer wide: it is the error of most functions.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Status(Box<Fields>);

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Fields {
    kind: &'static str,
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    metadata: ListMeta,
    status: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
    #[serde(skip_serializing_if = "is_zero")]
    code: u16,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct ListMeta {
    #[serde(rename = "continue", skip_serializing_if = "String::is_empty")]
    next: String,
}

fn is_zero(code: &u16) -> bool {
    *code == 0
}

/// What a status speaks of.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Details {
    /// Object name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Resource or kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Object uid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// What is wrong, field by field.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// When to try again.
    #[serde(rename = "retryAfterSeconds", skip_serializing_if = "is_none_or_zero")]
    pub retry_after_seconds: u32,
}

fn is_none_or_zero(seconds: &u32) -> bool {
    *seconds == 0
}

/// One cause of an error.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cause {
    /// Machine-readable reason, such as `FieldValueInvalid`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Message.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

impl Cause {
    /// A cause.
    pub fn new(reason: &str, message: &str, field: &str) -> Self {
        Self {
            reason: reason.into(),
            message: message.into(),
            field: field.into(),
        }
    }
}

impl From<&FieldError> for Cause {
    fn from(error: &FieldError) -> Self {
        Self {
            reason: error.kind.cause().into(),
            message: error.body(),
            field: error.field.clone(),
        }
    }
}

impl Status {
    /// A failure with a reason and a message.
    pub fn failure(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Fields {
            kind: "Status",
            api_version: "v1",
            metadata: ListMeta::default(),
            status: "Failure",
            message: message.into(),
            reason,
            details: None,
            code: code.as_u16(),
        }))
    }

    /// The answer to a delete that removed the object.
    pub fn deleted(resource: &GroupResource, name: &str, uid: &str) -> Self {
        Self::success()
            .about(resource, name)
            .with(|d| d.uid = uid.into())
    }

    /// A success without details.
    pub fn success() -> Self {
        let mut status = Self::failure(StatusCode::OK, "", "");
        status.0.status = "Success";
        status.0.code = 0;
        status
    }

    /// 404 for an object.
    pub fn not_found(resource: &GroupResource, name: &str) -> Self {
        Self::failure(
            StatusCode::NOT_FOUND,
            "NotFound",
            format!("{resource} {name:?} not found"),
        )
        .about(resource, name)
    }

    /// 404 for a path that no resource has.
    pub fn no_such_resource() -> Self {
        Self::failure(
            StatusCode::NOT_FOUND,
            "NotFound",
            "the server could not find the requested resource",
        )
        .with(|_| {})
    }

    /// 409: the object exists.
    pub fn already_exists(resource: &GroupResource, name: &str) -> Self {
        Self::failure(
            StatusCode::CONFLICT,
            "AlreadyExists",
            format!("{resource} {name:?} already exists"),
        )
        .about(resource, name)
    }

    /// 409: a concurrent write or a failed precondition.
    pub fn conflict(resource: &GroupResource, name: &str, why: &str) -> Self {
        Self::failure(
            StatusCode::CONFLICT,
            "Conflict",
            format!("Operation cannot be fulfilled on {resource} {name:?}: {why}"),
        )
        .about(resource, name)
    }

    /// 403.
    pub fn forbidden(resource: &GroupResource, name: &str, why: &str) -> Self {
        Self::failure(
            StatusCode::FORBIDDEN,
            "Forbidden",
            format!("{resource} {name:?} is forbidden: {why}"),
        )
        .about(resource, name)
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::failure(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// 422 for an object.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let errors = errors.get(..limits::FAULTS_MAX).unwrap_or(errors);
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let list = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let what = GroupResource::new(group, kind);
        Self::failure(
            StatusCode::UNPROCESSABLE_ENTITY,
            "Invalid",
            format!("{what} {name:?} is invalid: {list}"),
        )
        .about(&what, name)
        .with(|d| d.causes = errors.iter().map(Cause::from).collect())
    }

    /// 405.
    pub fn method_not_allowed(what: &str) -> Self {
        Self::failure(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            format!("{what} is not supported"),
        )
        .with(|_| {})
    }

    /// 406.
    pub fn not_acceptable(message: impl Into<String>) -> Self {
        Self::failure(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// 410: the revision is too old.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::failure(StatusCode::GONE, "Expired", message)
    }

    /// 413.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::failure(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            message,
        )
    }

    /// 415.
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::failure(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            message,
        )
    }

    /// 500. The message must not carry internal detail.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::failure(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            format!("Internal error occurred: {}", message.into()),
        )
    }

    /// 503.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::failure(
            StatusCode::SERVICE_UNAVAILABLE,
            "ServiceUnavailable",
            message,
        )
        .with(|d| d.retry_after_seconds = 1)
    }

    /// 429.
    pub fn too_many_requests() -> Self {
        Self::failure(
            StatusCode::TOO_MANY_REQUESTS,
            "TooManyRequests",
            "too many requests, please try again later",
        )
        .with(|d| d.retry_after_seconds = 1)
    }

    /// 504.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::failure(StatusCode::GATEWAY_TIMEOUT, "Timeout", message)
            .with(|d| d.retry_after_seconds = 1)
    }

    /// The same status, speaking of an object.
    pub fn about(self, resource: &GroupResource, name: &str) -> Self {
        self.with(|d| {
            d.name = name.into();
            d.group.clone_from(&resource.group);
            d.kind.clone_from(&resource.resource);
        })
    }

    /// The same status with another cause.
    pub fn cause(self, cause: Cause) -> Self {
        self.with(|d| d.causes.push(cause))
    }

    /// The same status with its details changed.
    pub fn with(mut self, change: impl FnOnce(&mut Details)) -> Self {
        change(self.0.details.get_or_insert_default());
        self
    }

    /// The same status, with a token at which a list may go on.
    pub fn continue_at(mut self, token: String) -> Self {
        self.0.metadata.next = token;
        self
    }

    /// The HTTP status.
    pub fn http_status(&self) -> StatusCode {
        StatusCode::from_u16(self.0.code).unwrap_or(StatusCode::OK)
    }

    /// The reason, such as `NotFound`.
    pub fn reason(&self) -> &'static str {
        self.0.reason
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The details, if any.
    pub fn details(&self) -> Option<&Details> {
        self.0.details.as_ref()
    }

    /// The JSON text.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The response.
    pub fn into_response(self) -> Response<ApiBody> {
        let mut response = Response::new(ApiBody::from(self.to_json()));
        *response.status_mut() = self.http_status();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        if let Some(seconds) = self
            .0
            .details
            .map(|d| d.retry_after_seconds)
            .filter(|s| *s > 0)
        {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Status {}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_missing_object_reads_as_kubernetes_writes_it() {
        let status = Status::not_found(&GroupResource::new("g.io", "foos"), "x");
        let json: Value = serde_json::from_slice(&status.to_json()).unwrap();
        assert_eq!(
            json,
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "foos.g.io \"x\" not found", "reason": "NotFound",
                "details": {"name": "x", "group": "g.io", "kind": "foos"}, "code": 404
            })
        );
    }

    #[test]
    fn a_success_has_no_code() {
        let json: Value = serde_json::from_slice(&Status::success().to_json()).unwrap();
        assert_eq!(
            json,
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})
        );
    }
}
