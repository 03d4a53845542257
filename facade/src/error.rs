//! What can go wrong with a request, and the problem document it becomes (SECA section 1.5).
//!
//! [`ErrorKind`] names the situation. The status code follows from it and from the [`Profile`],
//! in one table: the conformance suite wants 412 where the specification wants 404, 409 or 422
//! (SECA section 3.1).

use std::time::Duration;

use axum::body::Body;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;

use crate::config::Profile;
use crate::limits;

/// The situation a request ran into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Not understood: malformed JSON, query or header.
    Malformed,
    /// No or wrong credentials.
    Unauthorized,
    /// Credentials that do not allow this.
    Forbidden,
    /// The addressed resource, or the path itself, does not exist.
    NotFound,
    /// The path exists without this method.
    MethodNotAllowed,
    /// Nothing the client accepts can be produced.
    NotAcceptable,
    /// The workspace or network in the path of a write does not exist.
    ParentMissing,
    /// The content breaks a constraint.
    Invalid,
    /// The content refers to something that does not exist.
    ReferenceMissing,
    /// The state of the resource, or of one that depends on it, forbids this.
    Conflict,
    /// `if-unmodified-since` does not hold.
    Precondition,
    /// The body is too large.
    TooLarge,
    /// The body is not JSON.
    UnsupportedMedia,
    /// Too many requests at once.
    TooMany,
    /// A fault of this server.
    Internal,
    /// The control plane does not answer.
    Unavailable,
    /// The client did not send its request in time.
    Timeout,
}

impl ErrorKind {
    /// Every situation.
    pub const ALL: [Self; 17] = [
        Self::Malformed,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::NotAcceptable,
        Self::ParentMissing,
        Self::Invalid,
        Self::ReferenceMissing,
        Self::Conflict,
        Self::Precondition,
        Self::TooLarge,
        Self::UnsupportedMedia,
        Self::TooMany,
        Self::Internal,
        Self::Unavailable,
        Self::Timeout,
    ];

    /// The status code under a profile.
    pub fn status(self, profile: Profile) -> StatusCode {
        let by_profile = |spec| match profile {
            Profile::Conformance => StatusCode::PRECONDITION_FAILED,
            Profile::Spec => spec,
        };
        match self {
            Self::Malformed => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
            Self::ParentMissing => by_profile(StatusCode::NOT_FOUND),
            Self::Invalid | Self::ReferenceMissing => by_profile(StatusCode::UNPROCESSABLE_ENTITY),
            Self::Conflict => by_profile(StatusCode::CONFLICT),
            Self::Precondition => StatusCode::PRECONDITION_FAILED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMedia => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Timeout => StatusCode::REQUEST_TIMEOUT,
        }
    }
}

/// The part of the request that is at fault: a JSON pointer into the body, or a parameter's name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Source {
    /// JSON pointer into the body, or empty.
    pub pointer: String,
    /// Name of a query parameter, header or path parameter, or empty.
    pub parameter: String,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct ApiError {
    kind: ErrorKind,
    detail: String,
    sources: Vec<Source>,
    allow: Option<&'static str>,
    retry_after: Duration,
}

impl ApiError {
    /// An error of a kind; `detail` is shown to the client.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            sources: Vec::new(),
            allow: None,
            retry_after: limits::RETRY_AFTER,
        }
    }

    /// The same error, with the time after which trying again helps, where the status tells it.
    pub(crate) fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = after;
        self
    }

    /// The same error, blaming a place in the body.
    pub fn at_pointer(mut self, pointer: impl Into<String>) -> Self {
        self.push_source(Source {
            pointer: cut(pointer.into(), limits::PROBLEM_POINTER_LEN_MAX),
            parameter: String::new(),
        });
        self
    }

    /// The same error, blaming a parameter.
    pub fn at_parameter(mut self, parameter: &str) -> Self {
        self.push_source(Source {
            pointer: String::new(),
            parameter: parameter.into(),
        });
        self
    }

    fn push_source(&mut self, source: Source) {
        if self.sources.len() < limits::PROBLEM_SOURCES_MAX {
            self.sources.push(source);
        }
    }

    /// A method that the path does not have; `allow` lists those it has.
    pub fn method_not_allowed(allow: &'static str) -> Self {
        Self {
            allow: Some(allow),
            ..Self::new(
                ErrorKind::MethodNotAllowed,
                format!("this path allows only {allow}"),
            )
        }
    }

    /// A fault of this server. The cause goes to the log, never to the client.
    pub fn internal(cause: impl std::fmt::Display) -> Self {
        tracing::error!(%cause, "request failed inside the facade");
        Self::new(ErrorKind::Internal, "the request failed inside the server")
    }

    /// The control plane does not answer. The cause goes to the log, never to the client.
    pub fn unavailable(cause: impl std::fmt::Display) -> Self {
        tracing::warn!(%cause, "control plane does not answer");
        Self::new(
            ErrorKind::Unavailable,
            "the control plane does not answer; try again",
        )
    }

    /// Which situation it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What the client is told.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The places at fault.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The response: a problem document with the headers its status asks for. `instance` is the
    /// path of the request, and `request_id` its name in the log.
    pub fn into_response(
        self,
        profile: Profile,
        instance: &str,
        request_id: &str,
    ) -> Response<Body> {
        let status = self.kind.status(profile);
        let problem = Problem {
            kind: problem_type(status),
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: cut(self.detail, limits::PROBLEM_DETAIL_LEN_MAX),
            instance: cut(instance.to_owned(), limits::PROBLEM_POINTER_LEN_MAX),
            sources: self.sources,
            meta: Meta { request_id },
        };
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some(allow) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(
                    WWW_AUTHENTICATE,
                    HeaderValue::from_static("Bearer realm=\"seca\""),
                );
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                let seconds = self.retry_after.as_secs_f64().ceil().max(1.0) as u64;
                headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
            }
            _ => {}
        }
        response
    }
}

#[derive(Serialize)]
struct Problem<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    status: u16,
    detail: String,
    instance: String,
    sources: Vec<Source>,
    meta: Meta<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Meta<'a> {
    request_id: &'a str,
}

/// The `type` of a problem follows the code that is sent (SECA sections 1.5 and 3.1).
pub(crate) fn problem_type(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 => "http://secapi.cloud/errors/invalid-request",
        401 => "http://secapi.cloud/errors/unauthorized",
        403 => "http://secapi.cloud/errors/forbidden",
        404 => "http://secapi.cloud/errors/resource-not-found",
        405 => "http://secapi.cloud/errors/method-not-allowed",
        406 => "http://secapi.cloud/errors/not-acceptable",
        408 => "http://secapi.cloud/errors/request-timeout",
        409 => "http://secapi.cloud/errors/resource-conflict",
        412 => "http://secapi.cloud/errors/precondition-failed",
        413 => "http://secapi.cloud/errors/content-too-large",
        415 => "http://secapi.cloud/errors/unsupported-media-type",
        422 => "http://secapi.cloud/errors/validation-error",
        429 => "http://secapi.cloud/errors/too-many-requests",
        503 => "http://secapi.cloud/errors/service-unavailable",
        _ => "http://secapi.cloud/errors/internal-server-error",
    }
}

/// At most `chars_max` characters of a text.
fn cut(mut text: String, chars_max: usize) -> String {
    if let Some((at, _)) = text.char_indices().nth(chars_max) {
        text.truncate(at);
    }
    text
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use serde_json::{Value, json};

    use super::*;

    async fn body(response: Response<Body>) -> Value {
        let bytes = response
            .into_body()
            .collect()
            .await
            .expect("body")
            .to_bytes();
        serde_json::from_slice(&bytes).expect("JSON")
    }

    #[tokio::test]
    async fn a_problem_has_every_required_member() {
        let error = ApiError::new(ErrorKind::Invalid, "spec.sizeGB must be at most 1000000")
            .at_pointer("/spec/sizeGB");
        let response = error.into_response(Profile::Conformance, "/v1/x", "id-1");
        assert_eq!(response.status(), 412);
        assert_eq!(
            body(response).await,
            json!({
                "type": "http://secapi.cloud/errors/precondition-failed",
                "title": "Precondition Failed",
                "status": 412,
                "detail": "spec.sizeGB must be at most 1000000",
                "instance": "/v1/x",
                "sources": [{"pointer": "/spec/sizeGB", "parameter": ""}],
                "meta": {"requestId": "id-1"},
            })
        );
    }

    #[test]
    fn the_profiles_differ_only_where_the_suite_contradicts_the_specification() {
        use ErrorKind::*;
        for (kind, conformance, spec) in [
            (Invalid, 412, 422),
            (ReferenceMissing, 412, 422),
            (ParentMissing, 412, 404),
            (Conflict, 412, 409),
            (Precondition, 412, 412),
            (Malformed, 400, 400),
            (NotFound, 404, 404),
            (Unauthorized, 401, 401),
            (TooLarge, 413, 413),
            (Unavailable, 503, 503),
        ] {
            assert_eq!(kind.status(Profile::Conformance), conformance, "{kind:?}");
            assert_eq!(kind.status(Profile::Spec), spec, "{kind:?}");
        }
    }

    #[test]
    fn headers_follow_the_status() {
        let header = |error: ApiError, name| {
            error
                .into_response(Profile::Spec, "/", "id")
                .headers()
                .get(name)
                .and_then(|v| v.to_str().ok().map(str::to_owned))
        };
        let unauthorized = ApiError::new(ErrorKind::Unauthorized, "no token");
        assert!(header(unauthorized, WWW_AUTHENTICATE).is_some_and(|v| v.starts_with("Bearer")));
        let busy = ApiError::new(ErrorKind::TooMany, "busy");
        assert_eq!(header(busy, RETRY_AFTER).as_deref(), Some("1"));
        let later = ApiError::new(ErrorKind::TooMany, "busy");
        let later = later.retry_after(Duration::from_millis(2001));
        assert_eq!(header(later, RETRY_AFTER).as_deref(), Some("3"));
        let method = ApiError::method_not_allowed("GET, HEAD");
        assert_eq!(header(method, ALLOW).as_deref(), Some("GET, HEAD"));
    }

    #[test]
    fn long_texts_are_cut_on_character_boundaries() {
        assert_eq!(cut("äöü".into(), 2), "äö");
        assert_eq!(cut("abc".into(), 3), "abc");
    }
}
