//! GET of a resource and of a collection (SECA sections 1.7 and 3.4).

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use ecp_xrds::selector::Selector;
use ecp_xrds::{KindInfo, Scope};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};

use crate::cache::{Entry, KindCache};
use crate::error::{ApiError, ErrorKind};
use crate::facade::{Facade, not_found};
use crate::path::Target;
use crate::query::{self, ListQuery, SkipTokens};
use crate::view::{Lens, document, resource};

impl Facade {
    /// One resource.
    pub(crate) async fn get(
        &self,
        target: &Target,
        name: &str,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, ApiError> {
        query::accept(headers)?;
        let missing = || not_found(target, name);
        let namespace = self.namespace_of(target).await?.ok_or_else(missing)?;
        let entry = if query::no_cache(headers) {
            self.find_now(target, &namespace, name).await?
        } else {
            self.find(target, &namespace, name).await?
        };
        let entry = entry.ok_or_else(missing)?;
        Ok(json_response(
            StatusCode::OK,
            shown(self.lens(target), &entry),
        ))
    }

    /// A page of a collection.
    pub(crate) async fn list(
        &self,
        target: &Target,
        path: &str,
        query: &str,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, ApiError> {
        let deleted = query::accept(headers)?;
        let query = ListQuery::parse(query)?;
        let selector = Selector::parse(&query.labels).map_err(|e| {
            ApiError::new(ErrorKind::Malformed, format!("labels: {e}")).at_parameter("labels")
        })?;
        let tokens = SkipTokens::new(path, &query.labels, deleted);
        let after = query.skip_token.map(|t| tokens.read(&t)).transpose()?;
        let lens = self.lens(target);
        let wanted = |entry: &Entry| {
            deleted.shows(entry.deleting() || lens.doomed.is_some())
                && self.sees(target, entry)
                && selects(&selector, entry)
        };
        let (entries, more) = match self.list_namespace(target).await? {
            Some(namespace) if target.info.catalogue => {
                let kind = self.list_cache(target, &namespace, headers).await?;
                let (all, _) = kind.page(&namespace, "", None, usize::MAX, wanted);
                let first = self.config().served.first_region();
                catalogue_page(all, target.info, first, after.as_deref(), query.limit)
            }
            Some(namespace) => {
                let kind = self.list_cache(target, &namespace, headers).await?;
                let prefix = match target.info.scope {
                    Scope::Network => format!("{}/", target.network),
                    Scope::Cluster | Scope::Tenant | Scope::Workspace => String::new(),
                };
                kind.page(&namespace, &prefix, after.as_deref(), query.limit, wanted)
            }
            None => (Vec::new(), false),
        };
        let skip_token = entries
            .last()
            .filter(|_| more)
            .map(|last| tokens.make(last.key()));
        let page = page(lens, &entries, skip_token);
        Ok(json_response(StatusCode::OK, page))
    }

    /// The namespace to list; none for a tenant that has nothing yet.
    async fn list_namespace(&self, target: &Target) -> Result<Option<String>, ApiError> {
        let namespace = self.namespace_of(target).await?;
        let inside = matches!(target.info.scope, Scope::Workspace | Scope::Network);
        if inside && let Some(elsewhere) = self.workspace_elsewhere(target) {
            return Err(ApiError::new(ErrorKind::NotFound, elsewhere));
        }
        match (target.info.scope, &namespace) {
            (Scope::Workspace | Scope::Network, None) if !self.parents_exist(target) => {
                Err(ApiError::new(
                    ErrorKind::NotFound,
                    format!("workspace {:?} does not exist", target.workspace),
                ))
            }
            _ => Ok(namespace),
        }
    }

    /// The cache to list from: the watched one, or one just filled where that may not answer.
    async fn list_cache(
        &self,
        target: &Target,
        namespace: &str,
        headers: &HeaderMap,
    ) -> Result<Arc<KindCache>, ApiError> {
        let kind = self.kind(target.info);
        if kind.link().fresh() && !query::no_cache(headers) {
            return Ok(Arc::clone(kind));
        }
        let inside = Some(namespace).filter(|ns| !ns.is_empty());
        let objects = self
            .control()
            .list_all(kind.collection(), inside)
            .await
            .map_err(|e| self.failed(e))?;
        Ok(Arc::new(KindCache::filled(target.info, objects)))
    }

    /// `/.wellknown/secapi` (section 1.1).
    pub(crate) fn well_known(&self, region: &str) -> Response<Body> {
        let served = &self.config().served;
        let endpoints: Vec<_> = served
            .providers()
            .into_iter()
            .map(|provider| {
                json!({
                    "provider": format!("{provider}/v1"),
                    "url": served.url(region, provider),
                })
            })
            .collect();
        let body = json!({"version": "v1", "endpoints": endpoints});
        json_response(StatusCode::OK, Bytes::from(body.to_string()))
    }
}

/// A page of a catalogue. Regions come own first (section 4.3), and an entry that a region has of
/// its own stands for one of the same name that all have.
fn catalogue_page(
    mut all: Vec<Arc<Entry>>,
    info: &KindInfo,
    first: &str,
    after: Option<&str>,
    limit: usize,
) -> (Vec<Arc<Entry>>, bool) {
    let place = |name: &str| (info.kind != "Region" || name != first, name.to_owned());
    all.sort_by_cached_key(|e| (place(e.name()), e.spec("region").is_none()));
    all.dedup_by(|next, kept| next.name() == kept.name());
    let after = after.map(|key| place(key.split('\n').next().unwrap_or(key)));
    all.retain(|e| after.as_ref().is_none_or(|after| place(e.name()) > *after));
    let more = all.len() > limit;
    all.truncate(limit);
    (all, more)
}

fn selects(selector: &Selector, entry: &Entry) -> bool {
    if selector.is_empty() {
        return true;
    }
    let labels = entry.common("labels").and_then(Value::as_object);
    let labels = labels.into_iter().flatten();
    selector.matches(labels.filter_map(|(k, v)| Some((k.as_str(), v.as_str()?))))
}

/// The document of a GET. It depends on the object alone and is made once, except for catalogues
/// that every tenant sees under its own path, and for what goes with its parent.
fn shown(lens: Lens<'_>, entry: &Entry) -> Bytes {
    let of_tenant = lens.info.scope == Scope::Cluster && !lens.place.tenant.is_empty();
    if of_tenant || lens.doomed.is_some() {
        return document(lens, entry, "GET");
    }
    entry.document(|| document(lens, entry, "GET"))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    provider: String,
    resource: String,
    verb: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    skip_token: Option<String>,
}

/// The body of a list, put together from documents that are text already.
fn page(lens: Lens<'_>, entries: &[Arc<Entry>], skip_token: Option<String>) -> Bytes {
    let metadata = ListMetadata {
        provider: lens.info.provider_version(),
        resource: resource(lens.info, lens.place.network, ""),
        verb: "GET",
        skip_token,
    };
    let documents: Vec<Bytes> = entries.iter().map(|e| shown(lens, e)).collect();
    let len: usize = documents.iter().map(|d| d.len() + 1).sum();
    let mut body = Vec::with_capacity(len + 256);
    body.extend_from_slice(b"{\"items\":[");
    for (i, document) in documents.iter().enumerate() {
        if i > 0 {
            body.push(b',');
        }
        body.extend_from_slice(document);
    }
    body.extend_from_slice(b"],\"metadata\":");
    // Plain text fields always serialize.
    body.extend(serde_json::to_vec(&metadata).unwrap_or_default());
    body.push(b'}');
    Bytes::from(body)
}

/// A response with a JSON body.
pub(crate) fn json_response(status: StatusCode, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
