//! Answers: refusals by status code, and what successes carry.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::schemas::reference;
use crate::config::Profile;
use crate::error::ErrorKind;

pub(super) const PROFILES: [Profile; 2] = [Profile::Conformance, Profile::Spec];

/// What every path below `/providers/{provider}/v1` can refuse for.
pub(super) const ALWAYS: &[ErrorKind] = &[
    ErrorKind::Malformed,
    ErrorKind::Unauthorized,
    ErrorKind::Forbidden,
    ErrorKind::NotFound,
    ErrorKind::NotAcceptable,
    ErrorKind::TooMany,
    ErrorKind::Internal,
    ErrorKind::Unavailable,
];
/// What DELETE can be refused for beside [`ALWAYS`].
pub(super) const DELETE: &[ErrorKind] = &[ErrorKind::Conflict, ErrorKind::Precondition];
/// What PUT can be refused for beside [`ALWAYS`].
pub(super) const PUT: &[ErrorKind] = &[
    ErrorKind::ParentMissing,
    ErrorKind::Invalid,
    ErrorKind::ReferenceMissing,
    ErrorKind::Conflict,
    ErrorKind::Precondition,
    ErrorKind::TooLarge,
    ErrorKind::UnsupportedMedia,
    ErrorKind::Timeout,
];
/// What a path without authentication can be refused for.
pub(super) const DISCOVERY: &[ErrorKind] = &[ErrorKind::TooMany, ErrorKind::Internal];

/// What the HTTP layer refuses before the facade sees it, without a body: status, name, situation.
const UNREAD: [(&str, &str, &str); 2] = [
    ("414", "UriTooLong", "The URI is too long to be read."),
    (
        "431",
        "HeadersTooLarge",
        "The headers are too large or too many to be read.",
    ),
];

/// The situation in words.
fn situation(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Malformed => "The body, the query or a header is malformed.",
        ErrorKind::Unauthorized => "There is no valid token.",
        ErrorKind::Forbidden => "No role of the caller allows this.",
        ErrorKind::NotFound => "The resource or the path does not exist.",
        ErrorKind::MethodNotAllowed => "The path does not have this method.",
        ErrorKind::NotAcceptable => "JSON is not accepted.",
        ErrorKind::ParentMissing => "The workspace or network of the path does not exist.",
        ErrorKind::Invalid => "The content breaks a constraint.",
        ErrorKind::ReferenceMissing => "The content refers to something that does not exist.",
        ErrorKind::Conflict => "The state forbids this: being deleted, in use, or just changed.",
        ErrorKind::Precondition => "if-unmodified-since does not hold.",
        ErrorKind::TooLarge => "The body is too large.",
        ErrorKind::UnsupportedMedia => "The body is not JSON by its Content-Type.",
        ErrorKind::TooMany => "Too many requests at once.",
        ErrorKind::Internal => "A fault of the server.",
        ErrorKind::Unavailable => "The control plane does not answer, or is not ready yet.",
        ErrorKind::Timeout => "The body did not arrive in time.",
    }
}

/// The name of a refusal that is alone in having its status code.
fn name(kind: ErrorKind) -> String {
    format!("{kind:?}")
}

/// Refusals that operations share.
pub(super) fn shared(profile: Profile) -> Value {
    let mut kinds = [ALWAYS, DELETE, PUT].concat();
    kinds.retain(|kind| {
        let status = kind.status(profile);
        let sharing = ErrorKind::ALL
            .iter()
            .filter(|k| k.status(profile) == status);
        sharing.count() == 1
    });
    let unread = UNREAD.map(|(_, name, what)| (name.to_owned(), json!({"description": what})));
    let all = kinds.into_iter();
    all.map(|kind| (name(kind), refusal(profile, &[kind])))
        .chain(unread)
        .collect()
}

/// The refusals of an operation, by status code.
pub(super) fn refusals(profile: Profile, kinds: &[ErrorKind]) -> Map<String, Value> {
    let shared = shared(profile);
    let mut by_status: BTreeMap<u16, Vec<ErrorKind>> = BTreeMap::new();
    for kind in kinds {
        let status = kind.status(profile).as_u16();
        by_status.entry(status).or_default().push(*kind);
    }
    by_status
        .into_iter()
        .map(|(status, kinds)| {
            let response = match kinds.as_slice() {
                [kind] if shared.get(name(*kind)).is_some() => reference("responses", &name(*kind)),
                _ => refusal(profile, &kinds),
            };
            (status.to_string(), response)
        })
        .chain(UNREAD.map(|(status, name, _)| (status.into(), reference("responses", name))))
        .collect()
}

fn refusal(profile: Profile, kinds: &[ErrorKind]) -> Value {
    let situations: Vec<&str> = kinds.iter().copied().map(situation).collect();
    let mut headers = vec!["x-request-id"];
    for kind in kinds {
        match kind.status(profile) {
            StatusCode::UNAUTHORIZED => headers.push("www-authenticate"),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.push("retry-after");
            }
            _ => {}
        }
    }
    json!({
        "description": situations.join(" "),
        "headers": header_references(&headers),
        "content": {"application/problem+json": {"schema": reference("schemas", "Problem")}},
    })
}

/// An answer with a body of a media type.
pub(super) fn success(description: &str, media: &str, schema: Value, headers: &[&str]) -> Value {
    let mut content = Map::new();
    content.insert(media.into(), json!({"schema": schema}));
    let mut response = json!({"description": description, "content": content});
    if !headers.is_empty() {
        response["headers"] = header_references(headers);
    }
    response
}

pub(super) fn header_references(names: &[&str]) -> Value {
    let to = |name: &&str| ((*name).to_owned(), reference("headers", name));
    names.iter().map(to).collect()
}

/// Headers of answers. One that an answer always has is required.
pub(super) fn headers() -> Value {
    let header = |required: bool, kind: &str, what: &str| json!({"description": what, "required": required, "schema": {"type": kind}});
    json!({
        "x-request-id": header(true, "string", "Names the request in the server's log: the client's where it sent a plain one."),
        "location": header(true, "string", "Path of what was made."),
        "warning": header(false, "string", "Code 299: a member of the body that was ignored."),
        "www-authenticate": header(true, "string", "The scheme to use."),
        "retry-after": header(true, "integer", "Seconds to wait."),
    })
}
