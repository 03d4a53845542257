//! GET and LIST.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use ecp_store::{Entry, ListRequest, ListResponse, Revision, StoreError};
use futures::stream;
use http::{Response, StatusCode};
use serde::{Deserialize, Serialize};

use super::metadata::list_meta;
use super::selection::Selection;
use super::{
    Answer, Place, Request, json_response, object_response, pretty, store_error, too_large,
    wildcard,
};
use crate::body::ApiBody;
use crate::limits;
use crate::registry::Resource;
use crate::request::VersionMatch;
use crate::server::ApiServer;
use crate::status::Status;
use crate::storage;
use crate::table::{self, ListMeta, Representation};

/// Answers GET.
pub(super) async fn get(request: &Request<'_>) -> Answer {
    let place = &request.place;
    let name = request.name.unwrap_or_default();
    if let Some(revision) = request.params.revision()? {
        wait_for(place.server, revision).await?;
    }
    let entry = place
        .server
        .store
        .get(&place.key(name))
        .await
        .map_err(store_error)?
        .ok_or_else(|| place.not_found(name))?;
    let object = storage::json(place.resource, &entry.value, entry.modified);
    Ok(object_response(request, StatusCode::OK, object))
}

/// Waits, for a short time, until a revision has happened.
///
/// # Errors
/// 504: it has not.
pub(super) async fn wait_for(server: &ApiServer, revision: Revision) -> Result<(), Status> {
    let deadline = tokio::time::Instant::now() + server.config.future_revision_wait;
    let mut pause = Duration::from_millis(5);
    while server.store.revision() < revision {
        if tokio::time::Instant::now() >= deadline {
            return Err(too_large(revision, server.store.revision()));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(100));
    }
    Ok(())
}

/// Where a paged list goes on: apiserver's continue token.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Token {
    v: String,
    /// Revision of the first page; -1 to go on at the current one.
    rv: i64,
    /// The last key of the page before, below the list's prefix, then a zero byte.
    start: String,
}

impl Token {
    fn encode(revision: i64, after: &str, prefix: &str) -> String {
        let token = Self {
            v: "meta.k8s.io/v1".into(),
            rv: revision,
            start: format!("{}\0", after.strip_prefix(prefix).unwrap_or_default()),
        };
        serde_json::to_vec(&token).map_or_else(|_| String::new(), |t| URL_SAFE_NO_PAD.encode(t))
    }

    fn decode(text: &str) -> Result<Self, Status> {
        let malformed = || Status::bad_request("continue key is not valid");
        let bytes = URL_SAFE_NO_PAD
            .decode(text.trim_end_matches('='))
            .map_err(|_| malformed())?;
        let token: Self = serde_json::from_slice(&bytes).map_err(|_| malformed())?;
        let start = token.start.trim_end_matches('\0');
        let clean = !start.is_empty()
            && !start.starts_with('/')
            && !start.contains('\0')
            && start.split('/').all(|s| !matches!(s, "" | "." | ".."));
        if token.v != "meta.k8s.io/v1" || !clean || token.rv == 0 || token.rv < -1 {
            return Err(malformed());
        }
        Ok(token)
    }
}

/// What a list found, before encoding.
pub(super) struct Page {
    pub(super) entries: Vec<Entry>,
    pub(super) revision: Revision,
    pub(super) next: String,
    pub(super) remaining: Option<u64>,
}

/// Finds a page of a list.
pub(super) async fn find(request: &Request<'_>) -> Result<Page, Status> {
    let place = &request.place;
    let params = &request.params;
    let selection = Selection::of(place.resource, params)?;
    let prefix = place.prefix();
    let (mut after, at) = begin(request, &prefix).await?;
    if let Some(name) = selection.exact_name()
        && !place.all_clusters
        && (place.namespace.is_some() || !place.resource.namespaced)
        && at.is_none()
        && after.is_none()
    {
        return exact(request, &selection, name).await;
    }
    let limit = usize::try_from(params.limit).unwrap_or(usize::MAX);
    let mut page = Page {
        entries: Vec::new(),
        revision: Revision(0),
        next: String::new(),
        remaining: None,
    };
    let mut at = at;
    loop {
        let wanted = match limit {
            0 => 0,
            _ if selection.is_everything() => limit,
            // What is not selected must not cost a call for each object.
            _ => limit.max(limits::LIST_SCAN_MIN),
        };
        let list = ListRequest {
            prefix: prefix.clone(),
            after: after.take(),
            limit: wanted,
            at,
        };
        let found = place
            .server
            .store
            .list(list)
            .await
            .map_err(|e| list_error(e, params.continue_token.as_deref(), &prefix))?;
        page.revision = found.revision;
        // All pages show the revision of the first.
        at = Some(found.revision);
        after = found.entries.last().map(|e| e.key.to_string());
        let more = found.remaining > 0;
        if take(&mut page, found, &selection, &request.place, limit) || !more {
            return Ok(page);
        }
        // A long search must not hold up other requests, nor outlive its timeout.
        tokio::task::yield_now().await;
    }
}

/// The key to go on after, and the revision to read at.
async fn begin(
    request: &Request<'_>,
    prefix: &str,
) -> Result<(Option<String>, Option<Revision>), Status> {
    let params = &request.params;
    let version = params.list_version()?;
    let Some(token) = &params.continue_token else {
        return Ok((None, at(request.place.server, version).await?));
    };
    if params.resource_version.as_deref().is_some_and(|v| v != "0") {
        return Err(Status::bad_request(
            "specifying resource version is not allowed when using continue",
        ));
    }
    let token = Token::decode(token)?;
    let after = format!("{prefix}{}", token.start.trim_end_matches('\0'));
    Ok((Some(after), u64::try_from(token.rv).ok().map(Revision)))
}

/// Adds what is selected. Whether that fills the page; then it says where to go on, if there is more.
fn take(
    page: &mut Page,
    found: ListResponse,
    selection: &Selection,
    place: &Place<'_>,
    limit: usize,
) -> bool {
    let everything = selection.is_everything();
    if limit == 0 && everything {
        page.entries.extend(found.entries);
        return false;
    }
    let mut left = found.remaining.saturating_add(found.entries.len() as u64);
    for entry in found.entries {
        left = left.saturating_sub(1);
        if !everything && !selection.matches(place.resource, &entry.key, &entry.value) {
            continue;
        }
        let full = page.entries.len() + 1 == limit;
        if full && left > 0 {
            page.next = Token::encode(page.revision.0 as i64, &entry.key, &place.prefix());
            page.remaining = everything.then_some(left);
        }
        page.entries.push(entry);
        if full {
            return true;
        }
    }
    false
}

/// A list that can find one object at most, by its name.
async fn exact(request: &Request<'_>, selection: &Selection, name: &str) -> Result<Page, Status> {
    let place = &request.place;
    let key = place.key(name);
    // The revision goes first: the list must not claim to be newer than what it saw.
    let revision = place.server.store.revision();
    let entry = place.server.store.get(&key).await.map_err(store_error)?;
    let entry = entry.filter(|e| selection.matches(place.resource, &e.key, &e.value));
    Ok(Page {
        revision: entry
            .as_ref()
            .map_or(revision, |e| revision.max(e.modified)),
        entries: entry.into_iter().collect(),
        next: String::new(),
        remaining: None,
    })
}

/// The revision to read at; `None` is the current one.
async fn at(server: &ApiServer, version: VersionMatch) -> Result<Option<Revision>, Status> {
    match version {
        VersionMatch::Latest | VersionMatch::Any => Ok(None),
        VersionMatch::NotOlderThan(revision) => {
            wait_for(server, revision).await?;
            Ok(None)
        }
        VersionMatch::Exact(revision) => {
            wait_for(server, revision).await?;
            Ok(Some(revision))
        }
    }
}

/// An expired token comes back with one that goes on at the current revision (apiserver
/// `handleCompactedErrorForPaging`).
fn list_error(error: StoreError, token: Option<&str>, prefix: &str) -> Status {
    let (StoreError::Compacted { .. }, Some(token)) = (&error, token) else {
        return store_error(error);
    };
    let Ok(token) = Token::decode(token) else {
        return store_error(error);
    };
    let start = token.start.trim_end_matches('\0');
    let fresh = Token::encode(-1, &format!("{prefix}{start}"), prefix);
    Status::expired(
        "The provided continue parameter is too old to display a consistent list result. You can \
         start a new list without the continue parameter, or use the continue token in this \
         response to retrieve the remainder of the results. Continuing with the provided token \
         results in an inconsistent list - objects that were created, modified, or deleted between \
         the time the first chunk was returned and now may show up in the list.",
    )
    .continue_at(fresh)
}

/// Answers LIST.
pub(super) async fn list(request: &Request<'_>) -> Answer {
    let page = find(request).await?;
    Ok(listed(request, page))
}

/// The answer that shows a page.
pub(super) fn listed(request: &Request<'_>, page: Page) -> Response<ApiBody> {
    let resource = request.place.resource;
    let revision = page.revision.to_string();
    if request.representation == Representation::Object {
        let head = format!(
            "{{\"apiVersion\":{},\"kind\":{},\"metadata\":{},\"items\":[",
            serde_json::Value::from(resource.api_version()),
            serde_json::Value::from(resource.list_kind.as_str()),
            list_meta(&revision, &page.next, page.remaining)
        );
        if request.place.all_clusters {
            let items = wildcard::items(&request.place, &page.entries);
            let body = [head.as_bytes(), &items.join(&b","[..]), b"]}"].concat();
            return json_response(StatusCode::OK, body, request.representation);
        }
        let body = encode(resource, head, page.entries, request.params.pretty);
        return json_response(StatusCode::OK, body, request.representation);
    }
    let items = wildcard::items(&request.place, &page.entries);
    let meta = ListMeta {
        resource_version: revision,
        next: page.next,
        remaining: page.remaining,
    };
    let body = table::list(
        request.representation,
        resource,
        items,
        &meta,
        request.place.server.now(),
    );
    json_response(
        StatusCode::OK,
        pretty(&request.params, body),
        request.representation,
    )
}

/// A list's JSON, made chunk by chunk so that a long list is never whole in memory.
fn encode(resource: &Resource, head: String, entries: Vec<Entry>, indented: bool) -> ApiBody {
    let mut chunks = Chunks {
        resource: resource.clone(),
        head: Some(head),
        entries: entries.into_iter(),
        done: false,
        first: true,
    };
    let Some(chunk) = chunks.next() else {
        return ApiBody::empty();
    };
    if chunks.done && !indented {
        return chunk.into();
    }
    if indented {
        let mut whole = chunk.to_vec();
        whole.extend(chunks.flatten());
        let params = crate::request::Params {
            pretty: true,
            ..Default::default()
        };
        return pretty(&params, whole.into()).into();
    }
    ApiBody::stream(stream::iter(std::iter::once(chunk).chain(chunks)))
}

struct Chunks {
    resource: Resource,
    head: Option<String>,
    entries: std::vec::IntoIter<Entry>,
    done: bool,
    first: bool,
}

impl Iterator for Chunks {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.done {
            return None;
        }
        let expected = self
            .entries
            .as_slice()
            .iter()
            .map(|e| e.value.len() + 40)
            .sum::<usize>()
            .min(limits::LIST_CHUNK_BYTES);
        let mut out = Vec::with_capacity(expected + 256);
        if let Some(head) = self.head.take() {
            out.extend_from_slice(head.as_bytes());
        }
        while out.len() < limits::LIST_CHUNK_BYTES {
            let Some(entry) = self.entries.next() else {
                out.extend_from_slice(b"]}");
                self.done = true;
                break;
            };
            if !std::mem::take(&mut self.first) {
                out.push(b',');
            }
            storage::write_json(&mut out, &self.resource, &entry.value, entry.modified);
        }
        Some(out.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_round_trip_and_refuse_unclean_paths() {
        let text = Token::encode(7, "/core/secrets/root/ns/a", "/core/secrets/root/");
        let token = Token::decode(&text).unwrap();
        assert_eq!((token.rv, token.start.as_str()), (7, "ns/a\0"));
        for start in ["", "../x", "/x", "a//b", "a/../b"] {
            let bad = Token {
                v: "meta.k8s.io/v1".into(),
                rv: 1,
                start: start.into(),
            };
            let text = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&bad).unwrap());
            assert_eq!(
                Token::decode(&text).unwrap_err().http_status(),
                400,
                "{start}"
            );
        }
        assert_eq!(Token::decode("%%%").unwrap_err().http_status(), 400);
    }
}
