//! What a client may do.

use ecp_meta::cluster::ClusterName;
use ecp_meta::gvk::GroupResource;
use http::{Method, Response, StatusCode};

use super::{AUTHENTICATED_GROUP, review};
use crate::body::ApiBody;
use crate::pki::MASTERS_GROUP;
use crate::request::{ResourcePath, Target};
use crate::server::Identity;
use crate::status::Status;

/// What a client wants to do.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// The client.
    pub identity: &'a Identity,
    /// The logical cluster; `None` for what belongs to no cluster.
    pub cluster: Option<&'a ClusterName>,
    /// Verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`,
    /// `impersonate`; for paths, the method in lower case.
    pub verb: &'a str,
    /// To what.
    pub scope: Scoped<'a>,
}

/// What an action is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scoped<'a> {
    /// Objects.
    Resource {
        /// Group.
        group: &'a str,
        /// Plural.
        resource: &'a str,
        /// Subresource, or empty.
        subresource: &'a str,
        /// Namespace; `None` for all of them, or for resources without.
        namespace: Option<&'a str>,
        /// Object; `None` for all of them.
        name: Option<&'a str>,
    },
    /// Another path of the server, such as `/metrics`.
    Path(&'a str),
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Allowed, with the reason.
    Allowed(String),
    /// Nothing allows it.
    NoOpinion,
}

/// Decides what clients may do. Everything that nothing allows is denied.
pub trait Authorizer: Send + Sync + std::fmt::Debug {
    /// Decides one action.
    fn authorize(&self, attributes: &Attributes<'_>) -> Decision;
}

/// Members of `system:masters` may do everything; the rest see what upstream's roles
/// `system:discovery`, `system:basic-user` and `system:public-info-viewer` show them.
#[derive(Clone, Copy, Debug, Default)]
pub struct MastersOnly;

impl Authorizer for MastersOnly {
    fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        let has = |group: &str| attributes.identity.groups.iter().any(|have| have == group);
        let allowed = |reason: &str| Decision::Allowed(reason.to_owned());
        if has(MASTERS_GROUP) {
            return allowed("members of system:masters may do everything");
        }
        match attributes.scope {
            Scoped::Path(path) if attributes.verb == "get" || attributes.verb == "head" => {
                if is_public_path(path) {
                    allowed("health and version are open to all")
                } else if has(AUTHENTICATED_GROUP) && is_discovery_path(path) {
                    allowed("discovery is open to all authenticated users")
                } else {
                    Decision::NoOpinion
                }
            }
            Scoped::Resource {
                group,
                resource,
                subresource: "",
                ..
            } if attributes.verb == "create"
                && has(AUTHENTICATED_GROUP)
                && review::is_about_oneself(group, resource) =>
            {
                allowed("authenticated users may ask about themselves")
            }
            Scoped::Resource { .. } | Scoped::Path(_) => Decision::NoOpinion,
        }
    }
}

/// Paths that tell nothing about anybody's objects.
fn is_public_path(path: &str) -> bool {
    let first = path
        .trim_start_matches('/')
        .split('/')
        .next()
        .unwrap_or_default();
    matches!(first, "healthz" | "livez" | "readyz" | "version")
}

fn is_discovery_path(path: &str) -> bool {
    let first = path
        .trim_start_matches('/')
        .split('/')
        .next()
        .unwrap_or_default();
    matches!(first, "api" | "apis" | "openapi")
}

/// Attributes of a request.
pub(crate) fn attributes<'a>(
    identity: &'a Identity,
    cluster: &'a ClusterName,
    method: &Method,
    path: &'a str,
    query: &str,
    target: &'a Target<'a>,
) -> Attributes<'a> {
    let Target::Resource(resource) = target else {
        let verb = match *method {
            Method::GET => "get",
            Method::HEAD => "head",
            Method::POST => "post",
            Method::PUT => "put",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ => "other",
        };
        return Attributes {
            identity,
            cluster: Some(cluster),
            verb,
            scope: Scoped::Path(path),
        };
    };
    let scope = Scoped::Resource {
        group: &resource.group,
        resource: &resource.resource,
        subresource: resource.subresource.as_deref().unwrap_or_default(),
        namespace: resource.namespace.as_deref(),
        name: resource.name.as_deref(),
    };
    Attributes {
        identity,
        cluster: Some(cluster),
        verb: verb(method, resource, query),
        scope,
    }
}

fn verb(method: &Method, path: &ResourcePath<'_>, query: &str) -> &'static str {
    match (method, path.name.is_some()) {
        (&Method::GET | &Method::HEAD, _) if is_watch(path, query) => "watch",
        (&Method::GET | &Method::HEAD, true) => "get",
        (&Method::GET | &Method::HEAD, false) => "list",
        (&Method::POST, _) => "create",
        (&Method::PUT, _) => "update",
        (&Method::PATCH, _) => "patch",
        (&Method::DELETE, true) => "delete",
        (&Method::DELETE, false) => "deletecollection",
        // Refused later: no resource has other methods.
        _ => "other",
    }
}

fn is_watch(path: &ResourcePath<'_>, query: &str) -> bool {
    path.watch
        || url::form_urlencoded::parse(query.as_bytes())
            .any(|(key, value)| key == "watch" && !matches!(&*value, "false" | "0"))
}

/// Lets an action pass, or says who may not do what.
///
/// # Errors
/// 403.
pub(crate) fn check(
    authorizer: &dyn Authorizer,
    attributes: &Attributes<'_>,
) -> Result<(), Status> {
    match authorizer.authorize(attributes) {
        Decision::Allowed(_) => Ok(()),
        Decision::NoOpinion => Err(forbidden(attributes)),
    }
}

/// Lets a request pass, or answers it: 401 to a client that showed no credentials and needs some,
/// 403 to one that may not do this.
pub(crate) fn admit(
    authorizer: &dyn Authorizer,
    attributes: &Attributes<'_>,
) -> Result<(), Box<Response<ApiBody>>> {
    check(authorizer, attributes).map_err(|status| {
        Box::new(match super::is_anonymous(attributes.identity) {
            true => super::Unauthorized.into_response(),
            false => status.into_response(),
        })
    })
}

/// Message as `k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go` makes it.
fn forbidden(attributes: &Attributes<'_>) -> Status {
    let (user, verb) = (&attributes.identity.user, attributes.verb);
    match attributes.scope {
        Scoped::Path(path) => Status::failure(
            StatusCode::FORBIDDEN,
            "Forbidden",
            format!("forbidden: User {user:?} cannot {verb} path {path:?}"),
        )
        .with(|_| {}),
        Scoped::Resource {
            group,
            resource,
            subresource,
            namespace,
            name,
        } => {
            let what = match subresource {
                "" => resource.to_owned(),
                subresource => format!("{resource}/{subresource}"),
            };
            let place = match namespace {
                Some(namespace) => format!(" in the namespace {namespace:?}"),
                None => " at the cluster scope".to_owned(),
            };
            let why = format!(
                "User {user:?} cannot {verb} resource {what:?} in API group {group:?}{place}"
            );
            let about = GroupResource::new(group, resource);
            match name {
                Some(name) => Status::forbidden(&about, name, &why),
                None => Status::failure(
                    StatusCode::FORBIDDEN,
                    "Forbidden",
                    format!("{about} is forbidden: {why}"),
                )
                .about(&about, ""),
            }
        }
    }
}
