//! What requests for objects do.

mod body;
mod delete;
pub(crate) mod events;
mod frames;
mod kinds;
mod metadata;
mod patch;
mod plain;
mod read;
mod scale;
mod selection;
mod update;
mod watch;
mod wildcard;
mod write;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ecp_meta::cluster::ClusterName;
use ecp_schema::FieldError;
use ecp_store::{Revision, StoreError};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

pub use delete::{DeleteOptions, Deleted, Propagation};

pub(crate) use body::discard;
pub(crate) use delete::{CRD_CLEANUP, delete_object};
pub(crate) use frames::Frames;
pub(crate) use metadata::time;
pub(crate) use update::write_raw;
pub(crate) use wildcard::handle as handle_wildcard;
pub(crate) use write::commit_error;

use crate::body::ApiBody;
use crate::limits;
use crate::registry::{Resource, Rules};
use crate::request::{Params, ResourcePath};
use crate::server::{ApiServer, Identity, Scope};
use crate::status::Status;
use crate::table::{self, Representation};

type Answer = Result<Response<ApiBody>, Status>;

/// A request for objects.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) scope: Scope<'a>,
    pub(crate) method: &'a Method,
    pub(crate) identity: &'a Identity,
    pub(crate) path: ResourcePath<'a>,
}

/// A collection: a resource of a cluster, or of one of its namespaces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) server: &'a Arc<ApiServer>,
    pub(crate) cluster: &'a ClusterName,
    pub(crate) resource: &'a Resource,
    pub(crate) namespace: Option<&'a str>,
    /// Whether it is the collection of all clusters, not only of `cluster`.
    pub(crate) all_clusters: bool,
}

impl Place<'_> {
    /// Prefix of the keys of the collection.
    pub(crate) fn prefix(&self) -> String {
        let cluster = (!self.all_clusters).then_some(self.cluster);
        crate::storage::prefix(self.resource, cluster, self.namespace)
    }

    pub(crate) fn key(&self, name: &str) -> Arc<str> {
        crate::storage::key(self.resource, self.cluster, self.namespace, name)
    }

    pub(crate) fn not_found(&self, name: &str) -> Status {
        Status::not_found(&self.resource.group_resource(), name)
    }

    pub(crate) fn invalid(&self, name: &str, errors: &[FieldError]) -> Status {
        let gvk = &self.resource.gvk;
        Status::invalid(&gvk.group, &gvk.kind, name, errors)
    }

    pub(crate) fn conflict(&self, name: &str, why: &str) -> Status {
        Status::conflict(&self.resource.group_resource(), name, why)
    }
}

/// A request, ready to be done.
pub(crate) struct Request<'a> {
    place: Place<'a>,
    name: Option<&'a str>,
    subresource: Option<&'a str>,
    params: Params,
    representation: Representation,
    headers: &'a HeaderMap,
    body: Bytes,
}

/// What is done to objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

/// Answers a request for objects.
pub(crate) async fn handle<B>(call: Call<'_>, body: B) -> Response<ApiBody>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match answer(&call, body).await {
        Ok(response) => response,
        Err(status) => {
            tracing::debug!(
                user = call.identity.user,
                path = call.scope.path,
                code = status.http_status().as_u16(),
                reason = status.reason(),
                "request refused"
            );
            status.into_response()
        }
    }
}

/// What is known of a request before its body is read.
struct Prepared<'a> {
    resource: &'a Resource,
    params: Params,
    verb: Verb,
    representation: Representation,
    permit: OwnedSemaphorePermit,
}

fn prepare<'a>(call: &'a Call<'_>) -> Result<Prepared<'a>, Status> {
    let path = &call.path;
    let resource = call
        .scope
        .resources
        .find(&path.group, &path.version, &path.resource)
        .ok_or_else(Status::no_such_resource)?;
    let params = Params::parse_as(options_kind(call.method), call.scope.query)?;
    let verb = verb(call.method, path, &params, resource)?;
    if let Some(subresource) = path.subresource.as_deref()
        && !resource
            .subresources()
            .iter()
            .any(|s| s.name == subresource)
    {
        return Err(Status::no_such_resource());
    }
    let representation = table::negotiate(call.scope.headers, call.scope.query)?;
    let load = &call.scope.server.load;
    let bound = if verb == Verb::Watch {
        &load.watches
    } else {
        &load.requests
    };
    let permit = Arc::clone(bound)
        .try_acquire_owned()
        .map_err(|_| Status::too_many_requests())?;
    Ok(Prepared {
        resource,
        params,
        verb,
        representation,
        permit,
    })
}

async fn answer<B>(call: &Call<'_>, body: B) -> Answer
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let path = &call.path;
    let Prepared {
        resource,
        params,
        verb,
        representation,
        permit,
    } = match prepare(call) {
        Ok(prepared) => prepared,
        Err(status) => {
            discard(call.scope.headers, body).await;
            return Err(status);
        }
    };
    let timeout = match verb {
        Verb::Get | Verb::List | Verb::Watch => timeout(call.scope.server, call.scope.query),
        // What the client has patience for ends the answer, not the write.
        Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection => {
            call.scope.server.config.request_timeout
        }
    };
    let work = async {
        let request = Request {
            place: Place {
                server: call.scope.server,
                cluster: call.scope.cluster,
                resource,
                namespace: path.namespace.as_deref(),
                all_clusters: false,
            },
            name: path.name.as_deref(),
            subresource: path.subresource.as_deref(),
            params,
            representation,
            headers: call.scope.headers,
            body: match verb {
                Verb::Get | Verb::List | Verb::Watch => Bytes::new(),
                Verb::Create
                | Verb::Update
                | Verb::Patch
                | Verb::Delete
                | Verb::DeleteCollection => body::read(call.scope.headers, body).await?,
            },
        };
        dispatch(verb, request, permit).await
    };
    let mut response = tokio::time::timeout(timeout, work)
        .await
        .unwrap_or_else(|_| Err(timed_out(timeout)))?;
    if let Some(text) = &resource.deprecation_warning {
        warn(response.headers_mut(), text);
    }
    Ok(response)
}

/// The kind of options that the parameters of a method are.
fn options_kind(method: &Method) -> &'static str {
    match method.as_str() {
        "POST" => "CreateOptions",
        "PUT" => "UpdateOptions",
        "PATCH" => "PatchOptions",
        "DELETE" => "DeleteOptions",
        _ => "ListOptions",
    }
}

async fn dispatch(verb: Verb, request: Request<'_>, permit: OwnedSemaphorePermit) -> Answer {
    if request.subresource == Some("scale") {
        return scale::handle(verb == Verb::Get, verb == Verb::Patch, request).await;
    }
    match verb {
        Verb::Get => read::get(&request).await,
        Verb::List => read::list(&request).await,
        Verb::Watch => watch::watch(&request, permit).await,
        Verb::Create => write::create(&request).await,
        Verb::Update => update::update(&request).await,
        Verb::Patch => patch::patch(&request).await,
        Verb::Delete => delete::delete(&request).await,
        Verb::DeleteCollection => delete::delete_collection(&request).await,
    }
}

fn verb(
    method: &Method,
    path: &ResourcePath<'_>,
    params: &Params,
    resource: &Resource,
) -> Result<Verb, Status> {
    let not_allowed =
        || Status::method_not_allowed(&format!("{method} on {}", resource.group_resource()));
    // A cluster-scoped resource below a namespace, or an object without its namespace, does not
    // exist; lists go across namespaces.
    if path.namespace.is_some() && !resource.namespaced {
        return Err(Status::no_such_resource());
    }
    let missing_namespace = resource.namespaced && path.namespace.is_none();
    if missing_namespace && path.name.is_some() {
        return Err(Status::no_such_resource());
    }
    let watching = path.watch || params.watch;
    match (
        method.as_str(),
        path.name.is_some(),
        path.subresource.as_deref(),
    ) {
        ("GET", false, None) if watching => Ok(Verb::Watch),
        // `watch` says nothing about one object, only the legacy path does.
        ("GET", true, None) if path.watch => Ok(Verb::Watch),
        ("GET" | "HEAD", true, None | Some("status" | "scale")) => Ok(Verb::Get),
        ("GET" | "HEAD", false, None) => Ok(Verb::List),
        ("POST", false, None) if !missing_namespace => Ok(Verb::Create),
        ("PUT", true, _) => Ok(Verb::Update),
        ("PATCH", true, sub) if sub != Some("finalize") => Ok(Verb::Patch),
        ("DELETE", true, None) => Ok(Verb::Delete),
        ("DELETE", false, None) if !missing_namespace && resource.rules != Rules::Namespace => {
            Ok(Verb::DeleteCollection)
        }
        _ => Err(not_allowed()),
    }
}

/// 504: a request takes too long.
pub(crate) fn timed_out(timeout: Duration) -> Status {
    Status::timeout(format!(
        "request did not complete within {} s",
        timeout.as_secs()
    ))
}

/// How long a request may take: as its client asks, within the server's limit.
pub(crate) fn timeout(server: &ApiServer, query: &str) -> Duration {
    let max = server.config.request_timeout;
    url::form_urlencoded::parse(query.as_bytes())
        .find(|(key, _)| key == "timeout")
        .and_then(|(_, value)| seconds(&value))
        .map_or(max, |asked| asked.min(max))
}

/// A Go duration of one unit, such as `30s`.
fn seconds(text: &str) -> Option<Duration> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let value: u64 = number.parse().ok()?;
    let duration = match &text[number.len()..] {
        "s" | "" => Duration::from_secs(value),
        "ms" => Duration::from_millis(value),
        "m" => Duration::from_secs(value.checked_mul(60)?),
        "h" => Duration::from_secs(value.checked_mul(3600)?),
        _ => return None,
    };
    Some(duration).filter(|d| !d.is_zero())
}

/// The answer that shows one object.
fn object_response(request: &Request<'_>, code: StatusCode, object: Bytes) -> Response<ApiBody> {
    let body = match request.representation {
        Representation::Object => object,
        other => {
            let now = request.place.server.now();
            table::object(other, request.place.resource, &object, true, now)
        }
    };
    json_response(code, pretty(&request.params, body), request.representation)
}

fn pretty(params: &Params, body: Bytes) -> Bytes {
    if !params.pretty {
        return body;
    }
    serde_json::from_slice::<Value>(&body)
        .and_then(|v| serde_json::to_vec_pretty(&v))
        .map_or(body, Into::into)
}

fn json_response(
    code: StatusCode,
    body: impl Into<ApiBody>,
    representation: Representation,
) -> Response<ApiBody> {
    let mut response = Response::new(body.into());
    *response.status_mut() = code;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(table::content_type(representation)),
    );
    response
}

/// Adds a `Warning` header (RFC 7234 section 5.5, code 299 as Kubernetes uses it).
fn warn(headers: &mut HeaderMap, text: &str) {
    if headers.get_all(header::WARNING).iter().count() >= limits::WARNINGS_MAX {
        return;
    }
    let quoted: String = text
        .chars()
        .filter(|c| !c.is_control())
        .flat_map(|c| match c {
            '"' | '\\' => vec!['\\', c],
            c => vec![c],
        })
        .collect();
    if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
        headers.append(header::WARNING, value);
    }
}

/// Reads and parses a posted object.
pub(crate) async fn read_object<B>(headers: &HeaderMap, body: B) -> Result<Value, Status>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let bytes = body::read(headers, body).await?;
    Ok(body::parse(headers, &bytes)?.value)
}

/// The status of a store failure.
pub(crate) fn store_error(error: StoreError) -> Status {
    match error {
        StoreError::Compacted { requested, oldest } => {
            Status::expired(format!("too old resource version: {requested} ({oldest})"))
        }
        StoreError::Future { requested, current } => too_large(requested, current),
        StoreError::Closed(_) => Status::unavailable("the server is shutting down"),
        StoreError::Corrupt(_) | StoreError::Io(_) => {
            tracing::error!(%error, "store failed");
            Status::internal("the store failed")
        }
    }
}

/// 504 for a revision that has not happened (apiserver `NewTooLargeResourceVersionError`).
fn too_large(requested: Revision, current: Revision) -> Status {
    Status::timeout(format!(
        "Timeout: Too large resource version: {requested}, current: {current}"
    ))
    .cause(crate::status::Cause::new(
        "ResourceVersionTooLarge",
        "Too large resource version",
        "",
    ))
}

/// `/healthz`, `/livez`, `/readyz`.
pub(crate) fn health(scope: &Scope<'_>) -> Response<ApiBody> {
    let stopping = scope.server.stopping.is_cancelled();
    let mut response = Response::new(if stopping {
        ApiBody::from("stopping")
    } else {
        ApiBody::from("ok")
    });
    if stopping && scope.path.starts_with("/readyz") {
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    }
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}

/// `/version`.
pub(crate) fn version() -> Response<ApiBody> {
    // Clients parse gitVersion to know which features exist: the Kubernetes release whose API
    // this server follows comes first.
    let body = json!({
        "major": "1",
        "minor": "36",
        "gitVersion": concat!("v1.36.0+ecp-", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    });
    json_response(StatusCode::OK, body.to_string(), Representation::Object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations_of_one_unit_parse() {
        assert_eq!(seconds("30s"), Some(Duration::from_secs(30)));
        assert_eq!(seconds("2m"), Some(Duration::from_secs(120)));
        assert_eq!(seconds("0s"), None);
        assert_eq!(seconds("x"), None);
    }

    #[test]
    fn warnings_are_quoted() {
        let mut headers = HeaderMap::new();
        warn(&mut headers, "unknown field \"a\"\n");
        assert_eq!(headers[header::WARNING], r#"299 - "unknown field \"a\"""#);
    }
}
