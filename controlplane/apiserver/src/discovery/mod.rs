//! Discovery: which groups, versions and resources a logical cluster has.
//!
//! The legacy documents (`/api`, `/apis`, `/apis/<group>`, `/apis/<group>/<version>`) and the
//! aggregated ones (`Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList`
//! on `/api` and `/apis`) show the same model.

mod aggregated;
mod legacy;
mod model;

pub(crate) use model::priority;

use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::body::ApiBody;
use crate::server::Scope;
use crate::status::Status;
use crate::table::accept::{MediaRange, accepted};

use model::{Group, groups};

const JSON: &str = "application/json";

/// Answers a request below the discovery paths.
pub fn handle(scope: &Scope<'_>) -> Response<ApiBody> {
    answer(scope).unwrap_or_else(Status::into_response)
}

fn answer(scope: &Scope<'_>) -> Result<Response<ApiBody>, Status> {
    let segments: Vec<&str> = scope.path.split('/').filter(|s| !s.is_empty()).collect();
    let groups = groups(scope.resources);
    let find = |name: &str| {
        groups
            .iter()
            .find(|group| group.name == name)
            .ok_or_else(Status::no_such_resource)
    };
    let document = match segments.as_slice() {
        ["api" | "apis"] => return list(scope, &groups, segments.first() == Some(&"api")),
        ["apis", name] if !name.is_empty() => legacy::group(find(name)?),
        ["api", version] => legacy::resources(find("")?, version)?,
        ["apis", name, version] => legacy::resources(find(name)?, version)?,
        _ => return Err(Status::no_such_resource()),
    };
    if !accepted(scope.headers)
        .iter()
        .any(|range| range.covers(JSON))
    {
        return Err(not_acceptable());
    }
    Ok(cached(scope.headers, JSON.to_owned(), &document))
}

/// `/api` or `/apis`, in the first accepted form.
fn list(scope: &Scope<'_>, groups: &[Group], core: bool) -> Result<Response<ApiBody>, Status> {
    for range in accepted(scope.headers)
        .iter()
        .filter(|range| range.covers(JSON))
    {
        let Some(version) = aggregated_version(range) else {
            if range.param("as").is_some() {
                continue;
            }
            let document = match core {
                true => legacy::core_versions(),
                false => legacy::group_list(groups),
            };
            return Ok(cached(scope.headers, JSON.to_owned(), &document));
        };
        // The type is echoed with exactly these parameters: clients compare them.
        let content_type =
            format!("{JSON};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList");
        let shown = groups.iter().filter(|group| group.name.is_empty() == core);
        let document = aggregated::list(version, shown);
        return Ok(cached(scope.headers, content_type, &document));
    }
    Err(not_acceptable())
}

/// The version of aggregated discovery that a range asks for, if it is one we speak.
fn aggregated_version(range: &MediaRange<'_>) -> Option<&'static str> {
    let is = |name: &str, value: &str| range.param(name) == Some(value);
    if !is("g", "apidiscovery.k8s.io") || !is("as", "APIGroupDiscoveryList") {
        return None;
    }
    // `profile=nopeer` asks for this server's own view, which is all there is.
    if range
        .param("profile")
        .is_some_and(|profile| profile != "nopeer")
    {
        return None;
    }
    ["v2", "v2beta1"]
        .into_iter()
        .find(|version| is("v", version))
}

fn not_acceptable() -> Status {
    Status::not_acceptable("only the following media types are accepted: application/json")
}

/// A document with its entity tag; 304 if the client has it.
pub(crate) fn cached(
    headers: &HeaderMap,
    content_type: String,
    document: &Value,
) -> Response<ApiBody> {
    let body = document.to_string();
    let mut digest = Sha256::new();
    digest.update(&content_type);
    digest.update(&body);
    let tag = format!("\"{}\"", hex::encode_upper(digest.finalize()));
    let known = headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|value| matches!(value.trim().trim_start_matches("W/"), known if known == tag));
    let mut response = match known {
        true => Response::new(ApiBody::empty()),
        false => Response::new(ApiBody::from(body)),
    };
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let shown = response.headers_mut();
    let value = |text: String| HeaderValue::try_from(text).ok();
    if let (Some(content_type), Some(tag)) = (value(content_type), value(tag)) {
        shown.insert(CONTENT_TYPE, content_type);
        shown.insert(ETAG, tag);
    }
    shown.insert(VARY, HeaderValue::from(ACCEPT));
    shown.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

#[cfg(test)]
mod tests;
