//! One request from its first byte to its answer: limits, authentication, routing, log, metrics.

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use axum::body::{Body, HttpBody as _};
use axum::extract::State;
use bytes::Bytes;
use futures::FutureExt as _;
use http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use tracing::Instrument as _;

use crate::access_log::{Access, Origin};
use crate::auth::{Claim, Identity, bearer_token};
use crate::config;
use crate::error::{ApiError, ErrorKind};
use crate::facade::{Facade, Slot};
use crate::limits;
use crate::metrics;
use crate::openapi;
use crate::path::{self, Route, Target};
use crate::query;
use crate::reads::json_response;
use crate::writes::Put;

/// Names a request in the log and to the client.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

impl Facade {
    /// All routes, as a router that needs no socket.
    pub fn router(&self) -> axum::Router {
        axum::Router::new()
            .fallback(handle)
            .with_state(self.clone())
    }
}

async fn handle(State(facade): State<Facade>, request: Request<Body>) -> Response<Body> {
    let started = Instant::now();
    if let Some(response) = facade.operations(&request) {
        return response;
    }
    let (parts, body) = request.into_parts();
    let origin = Origin::of(&parts.headers);
    let path = parts.uri.path();
    let route = path::parse(path, &facade.config().served);
    let (label, tenant) = match &route {
        Ok(Route::Seca(target)) => (facade.metrics().route(target), target.tenant.clone()),
        Ok(Route::WellKnown { .. }) | Err(_) => (facade.metrics().other(), String::new()),
    };
    let counted = facade.metrics().begin();
    let mut subject = String::new();
    let outcome = match facade.slot() {
        None => Err(ApiError::new(
            ErrorKind::TooMany,
            "too many requests at once; try again",
        )),
        Some(slot) => {
            let work = facade.dispatch(slot, route, &parts, body, &mut subject);
            AssertUnwindSafe(work.instrument(origin.span()))
                .catch_unwind()
                .await
                .unwrap_or_else(|_| Err(ApiError::internal("a handler panicked")))
        }
    };
    let profile = facade.config().profile;
    let mut response =
        outcome.unwrap_or_else(|e| e.into_response(profile, path, origin.request_id()));
    if parts.method == Method::HEAD {
        response = without_body(response);
    }
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID, origin.request_id.clone());
    drop(counted);
    let took = started.elapsed();
    let (method, status) = (parts.method.as_str(), response.status().as_u16());
    origin.log(&Access {
        method,
        route: &label,
        status,
        took,
        bytes: response.body().size_hint().exact().unwrap_or(0),
        tenant: &tenant,
        subject: &subject,
    });
    facade.metrics().observe(label, method, status, took);
    response
}

/// What OPTIONS answers: the methods of the path.
fn options(target: &Target) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let methods = HeaderValue::from_static(target.methods());
    response.headers_mut().insert(ALLOW, methods);
    response
}

fn text_response(text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    let media = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, media);
    response
}

/// What HEAD answers: the headers of a GET, length included.
fn without_body(response: Response<Body>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    if let Some(len) = body.size_hint().exact() {
        parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(len));
    }
    Response::from_parts(parts, Body::empty())
}

impl Facade {
    /// Health, metrics and the OpenAPI document: for operators and tools, without authentication and limits.
    fn operations(&self, request: &Request<Body>) -> Option<Response<Body>> {
        let get = matches!(*request.method(), Method::GET | Method::HEAD);
        let path = request.uri().path();
        if !matches!(
            path,
            "/healthz" | "/livez" | "/readyz" | "/metrics" | openapi::PATH
        ) {
            return None;
        }
        let origin = Origin::of(request.headers());
        let mut response = match path {
            _ if !get => {
                let error = ApiError::method_not_allowed("GET, HEAD");
                error.into_response(self.config().profile, path, origin.request_id())
            }
            "/readyz" => self.readiness(),
            "/metrics" => {
                let mut response = Response::new(Body::from(self.metrics().text(self.cache())));
                let media = HeaderValue::from_static(metrics::MEDIA_TYPE);
                response.headers_mut().insert(CONTENT_TYPE, media);
                response
            }
            openapi::PATH => json_response(StatusCode::OK, self.openapi()),
            _ => text_response("ok".into()),
        };
        if request.method() == Method::HEAD {
            response = without_body(response);
        }
        response.headers_mut().insert(REQUEST_ID, origin.request_id);
        Some(response)
    }

    /// Ready while the caches are filled and in touch, and no drain has begun.
    fn readiness(&self) -> Response<Body> {
        let problem = if self.draining().is_cancelled() {
            "draining".to_owned()
        } else {
            self.cache().not_ready().join(", ")
        };
        if problem.is_empty() {
            return text_response("ok".into());
        }
        let mut response = text_response(format!("not ready: {problem}"));
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        response
    }

    async fn dispatch(
        &self,
        slot: Slot<'_>,
        route: Result<Route, String>,
        parts: &Parts,
        body: Body,
        subject: &mut String,
    ) -> Result<Response<Body>, ApiError> {
        if let Ok(Route::WellKnown { region }) = &route {
            // The specification knows no 401 here: clients ask before they have a token.
            return match parts.method {
                Method::GET | Method::HEAD => Ok(self.well_known(region)),
                _ => Err(ApiError::method_not_allowed("GET, HEAD")),
            };
        }
        let identity = self.authenticate(&parts.headers).await?;
        subject.clone_from(&identity.subject);
        self.admit(&identity)?;
        let target = match route {
            Ok(Route::Seca(target)) => target,
            Ok(Route::WellKnown { .. }) => {
                return Err(ApiError::internal("discovery was answered"));
            }
            Err(why) => return Err(ApiError::new(ErrorKind::NotFound, why)),
        };
        let headers = &parts.headers;
        let path = parts.uri.path();
        if parts.method == Method::OPTIONS {
            return Ok(options(&target));
        }
        if let (Some(action), Some(name)) = (target.action, &target.name) {
            if parts.method != Method::POST {
                return Err(ApiError::method_not_allowed(target.methods()));
            }
            let verb = format!("post.{}", action.as_str());
            self.authorize(&identity, &target, &verb)?;
            return self.power(slot, &target, name, action, headers).await;
        }
        match (&parts.method, target.name.as_deref()) {
            (&Method::GET | &Method::HEAD, Some(name)) => {
                self.authorize(&identity, &target, "get")?;
                self.get(&target, name, headers).await
            }
            (&Method::GET | &Method::HEAD, None) => {
                self.authorize(&identity, &target, "list")?;
                let query = parts.uri.query().unwrap_or_default();
                self.list(&target, path, query, headers).await
            }
            (&Method::PUT, Some(name)) if !target.info.catalogue => {
                self.authorize(&identity, &target, "put")?;
                query::require_json(headers)?;
                let body = self.read_body(headers, body).await?;
                let put = Put {
                    target: &target,
                    name,
                    path,
                    headers,
                    body: &body,
                };
                self.put(slot, put).await
            }
            (&Method::DELETE, Some(name)) if !target.info.catalogue => {
                self.authorize(&identity, &target, "delete")?;
                self.delete(slot, &target, name, headers).await
            }
            _ => Err(ApiError::method_not_allowed(target.methods())),
        }
    }

    async fn authenticate(&self, headers: &HeaderMap) -> Result<Identity, ApiError> {
        match &self.config().access {
            config::Access::InsecureDev => Ok(Identity::admin("insecure-dev")),
            config::Access::Tokens(authenticator) => authenticator
                .authenticate(bearer_token(headers)?)
                .await?
                .ok_or_else(|| ApiError::new(ErrorKind::Unauthorized, "the token is not valid")),
        }
    }

    fn authorize(&self, identity: &Identity, target: &Target, verb: &str) -> Result<(), ApiError> {
        // Everybody may know the regions (section 3.10).
        if identity.admin || target.info.provider == "seca.region" {
            return Ok(());
        }
        let name = target.name.as_deref().unwrap_or_default();
        // A path that names a workspace is one of that workspace: a grant or cap on workspaces
        // covers it.
        let workspace = match target.info.kind {
            "Workspace" => name,
            _ => target.workspace.as_str(),
        };
        let collection = match target.network.as_str() {
            "" => target.info.collection.to_owned(),
            _ => format!("networks/{}", target.info.collection),
        };
        let claim = Claim {
            provider: target.info.provider,
            tenant: &target.tenant,
            workspace,
            region: &target.region,
            collection: &collection,
            name,
            verb,
        };
        if self.granted(&identity.subject, &claim)? {
            Ok(())
        } else {
            let detail = format!("no role of {:?} allows {claim}", identity.subject);
            Err(ApiError::new(ErrorKind::Forbidden, detail))
        }
    }

    /// Reads a body within its limits of size and time.
    async fn read_body(&self, headers: &HeaderMap, body: Body) -> Result<Bytes, ApiError> {
        let max = self.config().body_bytes_max;
        let too_large = || {
            ApiError::new(
                ErrorKind::TooLarge,
                format!("the body is larger than {max} bytes"),
            )
        };
        let announced = headers
            .get(CONTENT_LENGTH)
            .and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
        if announced.is_some_and(|len| len > max) {
            discard(body, max).await;
            return Err(too_large());
        }
        let mut limited = Limited::new(body, max);
        let reading = (&mut limited).collect();
        match tokio::time::timeout(self.config().body_read_timeout, reading).await {
            Err(_) => Err(ApiError::new(
                ErrorKind::Timeout,
                "the body did not arrive in time",
            )),
            Ok(Ok(collected)) => Ok(collected.to_bytes()),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_large()),
            Ok(Err(_)) => Err(ApiError::new(
                ErrorKind::Malformed,
                "the body could not be read to its end",
            )),
        }
    }
}

/// Reads some of a body that is refused: most clients read the answer only after they have sent
/// everything. What is a lot too large is cut off.
async fn discard(mut body: Body, max: usize) {
    let mut left = max.saturating_mul(4);
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                return;
            }
        }
    };
    // Whether it ended in time makes no difference to the answer.
    let _ = tokio::time::timeout(limits::BODY_READ_TIMEOUT, reading).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_keeps_the_length_of_the_body_it_leaves_out() {
        let response = without_body(Response::new(Body::from("12345")));
        assert_eq!(response.headers()[CONTENT_LENGTH], "5");
        assert!(response.body().is_end_stream());
    }
}
