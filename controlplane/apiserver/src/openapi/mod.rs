//! OpenAPI v3: an index, and one document for each group version.
//!
//! Documents are built when first asked for and cached by a digest of what they are made from, so
//! that logical clusters with equal definitions share them. The index carries that digest, and a
//! document under its digest never changes.

mod document;
pub(crate) mod kinds;
mod legacy;
mod paths;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use ecp_meta::cluster::ClusterName;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION, VARY};
use http::{HeaderValue, Response, StatusCode};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::auth::review::{REVIEWS, VERSION};
use crate::body::ApiBody;
use crate::limits;
use crate::registry::{ResourceInfo, Resources};
use crate::server::Scope;
use crate::status::Status;
use crate::table::accept::accepted;

const JSON: &str = "application/json";

/// Documents that were asked for lately, by digest.
#[derive(Debug, Default)]
pub struct Documents(Mutex<Cache>);

#[derive(Debug, Default)]
struct Cache {
    by_digest: BTreeMap<String, Bytes>,
    /// Oldest first.
    order: VecDeque<String>,
    bytes: usize,
}

impl Documents {
    fn get_or_build(&self, digest: &str, build: impl FnOnce() -> Bytes) -> Bytes {
        if let Some(known) = self.0.lock().by_digest.get(digest) {
            return known.clone();
        }
        // Not under the lock: two clients may build the same document, which is harmless.
        let built = build();
        self.0.lock().insert(digest, built.clone());
        built
    }
}

impl Cache {
    fn insert(&mut self, digest: &str, document: Bytes) {
        if document.len() > limits::OPENAPI_CACHE_BYTES_MAX {
            return;
        }
        self.bytes += document.len();
        if let Some(old) = self.by_digest.insert(digest.to_owned(), document) {
            self.bytes -= old.len();
        } else {
            self.order.push_back(digest.to_owned());
        }
        while self.bytes > limits::OPENAPI_CACHE_BYTES_MAX {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            if let Some(old) = self.by_digest.remove(&oldest) {
                self.bytes -= old.len();
            }
        }
    }
}

/// Answers a request below the openapi paths.
pub fn handle(scope: &Scope<'_>) -> Response<ApiBody> {
    answer(scope).unwrap_or_else(Status::into_response)
}

fn answer(scope: &Scope<'_>) -> Result<Response<ApiBody>, Status> {
    let segments: Vec<&str> = scope.path.split('/').filter(|s| !s.is_empty()).collect();
    let (group, version) = match segments.as_slice() {
        ["openapi", "v3", ..] if !accepts_json(scope) => {
            return Err(Status::not_acceptable(
                "only the following media types are accepted: application/json",
            ));
        }
        ["openapi", "v2"] => return legacy::handle(scope),
        ["openapi", "v3"] => return Ok(index(scope)),
        ["openapi", "v3", "api", version] => ("", *version),
        ["openapi", "v3", "apis", group, version] => (*group, *version),
        _ => return Err(Status::no_such_resource()),
    };
    let versions = group_versions(scope.resources);
    let key = (group.to_owned(), version.to_owned());
    let resources = versions.get(&key).ok_or_else(Status::no_such_resource)?;
    let digest = digest(&key, resources);
    let asked = url::form_urlencoded::parse(scope.query.as_bytes())
        .find_map(|(name, value)| (name == "hash").then_some(value));
    if asked.as_deref().is_some_and(|asked| asked != digest) {
        return Ok(moved(&location(scope.cluster, &key, &digest)));
    }
    let document = scope.server.documents.get_or_build(&digest, || {
        document::build(group, version, resources)
            .to_string()
            .into()
    });
    Ok(immutable(scope, &digest, document, asked.is_some()))
}

fn accepts_json(scope: &Scope<'_>) -> bool {
    accepted(scope.headers)
        .iter()
        .any(|range| range.covers(JSON))
}

fn index(scope: &Scope<'_>) -> Response<ApiBody> {
    let paths: Map<String, Value> = group_versions(scope.resources)
        .iter()
        .map(|(key, resources)| {
            let link = location(scope.cluster, key, &digest(key, resources));
            (document_path(key), json!({"serverRelativeURL": link}))
        })
        .collect();
    crate::discovery::cached(scope.headers, JSON.to_owned(), &json!({"paths": paths}))
}

type GroupVersions = BTreeMap<(String, String), Vec<Arc<ResourceInfo>>>;

fn group_versions(resources: &Resources) -> GroupVersions {
    let mut versions = GroupVersions::new();
    for resource in resources.iter() {
        let key = (resource.gvk.group.clone(), resource.gvk.version.clone());
        versions
            .entry(key)
            .or_default()
            .push(Arc::clone(resource.info()));
    }
    for review in REVIEWS {
        versions
            .entry((review.group.to_owned(), VERSION.to_owned()))
            .or_default();
    }
    versions
}

/// Digest of everything a document is made from. Built-ins only change with the program.
fn digest((group, version): &(String, String), resources: &[Arc<ResourceInfo>]) -> String {
    let mut digest = Sha256::new();
    for part in [env!("CARGO_PKG_VERSION"), group, version] {
        digest.update(part);
        digest.update([0]);
    }
    for info in resources {
        digest.update(&info.plural);
        digest.update([0]);
        digest.update(info.digest);
    }
    hex::encode_upper(digest.finalize())
}

fn document_path((group, version): &(String, String)) -> String {
    match group.as_str() {
        "" => format!("api/{version}"),
        group => format!("apis/{group}/{version}"),
    }
}

/// Where a document is, as seen from the root of the server.
fn location(cluster: &ClusterName, key: &(String, String), digest: &str) -> String {
    let prefix = match *cluster == ClusterName::root() {
        true => String::new(),
        false => format!("/clusters/{cluster}"),
    };
    format!("{prefix}/openapi/v3/{}?hash={digest}", document_path(key))
}

fn moved(location: &str) -> Response<ApiBody> {
    let mut response = Response::new(ApiBody::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    if let Ok(location) = HeaderValue::try_from(location) {
        response.headers_mut().insert(LOCATION, location);
    }
    // The next definition makes this answer wrong.
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn immutable(
    scope: &Scope<'_>,
    digest: &str,
    document: Bytes,
    by_digest: bool,
) -> Response<ApiBody> {
    let tag = format!("\"{digest}\"");
    let known = scope
        .headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|value| value.trim().trim_start_matches("W/") == tag);
    let mut response = Response::new(match known {
        true => ApiBody::empty(),
        false => ApiBody::from(document),
    });
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    if let Ok(tag) = HeaderValue::try_from(tag) {
        headers.insert(ETAG, tag);
    }
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    let cache = if by_digest {
        "private, max-age=31536000, immutable"
    } else {
        "no-cache, private"
    };
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    response
}

/// Reference to a schema of the same document.
fn reference(name: &str) -> String {
    format!("#/components/schemas/{name}")
}

#[cfg(test)]
mod tests;
