//! What a request asks for: cluster, resource, verb parameters.

use std::borrow::Cow;

use ecp_meta::cluster::ClusterName;
use ecp_meta::selector::{FieldSelector, LabelSelector};
use ecp_schema::{FieldError, FieldErrorKind};
use ecp_store::Revision;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::registry::Resources;
use crate::status::Status;

/// The path below `/clusters/*`, which addresses all logical clusters at once.
pub fn below_wildcard(path: &str) -> Option<&str> {
    let below = path
        .strip_prefix("/clusters/*")
        .or_else(|| path.strip_prefix("/clusters/%2A"))?;
    below.starts_with('/').then_some(below)
}

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// `/api`, `/apis` and the group and version documents below.
    Discovery,
    /// `/openapi/...`.
    OpenApi,
    /// `/healthz`, `/livez`, `/readyz`.
    Health,
    /// `/version`.
    Version,
    /// `/metrics`.
    Metrics,
    /// Objects.
    Resource(ResourcePath<'a>),
}

impl Target<'_> {
    /// Whether there is such a resource; paths that lead to no resource always exist.
    pub(crate) fn is_served(&self, resources: &Resources) -> bool {
        let Self::Resource(path) = self else {
            return true;
        };
        let (group, version) = (&path.group, &path.version);
        let found = resources.find(group, version, &path.resource);
        found.is_some() || crate::auth::review::find(path).is_some()
    }
}

/// The path of a resource request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourcePath<'a> {
    /// Group; empty for core.
    pub group: Cow<'a, str>,
    /// Version.
    pub version: Cow<'a, str>,
    /// Plural.
    pub resource: Cow<'a, str>,
    /// Namespace, where the path has one.
    pub namespace: Option<Cow<'a, str>>,
    /// Object name.
    pub name: Option<Cow<'a, str>>,
    /// Subresource.
    pub subresource: Option<Cow<'a, str>>,
    /// Whether the path is a legacy `/watch/` path.
    pub watch: bool,
}

/// Splits `/clusters/<path>` off; without it the cluster is `root`.
///
/// # Errors
/// 400: the cluster path is malformed.
pub fn split_cluster(path: &str) -> Result<(ClusterName, &str), Status> {
    let Some(rest) = path.strip_prefix("/clusters/") else {
        return Ok((ClusterName::root(), path));
    };
    let (cluster, below) = match rest.find('/') {
        Some(i) => rest.split_at(i),
        None => (rest, "/"),
    };
    let cluster = decode(cluster)?
        .parse()
        .map_err(|e| Status::bad_request(format!("{e}")))?;
    Ok((cluster, below))
}

/// What a path below the cluster leads to.
///
/// # Errors
/// 404 for an unknown path, 400 for a malformed one.
pub fn route(path: &str) -> Result<Target<'_>, Status> {
    let mut segments = path.trim_matches('/').split('/');
    let first = segments.next().unwrap_or_default();
    let rest: Vec<&str> = segments.collect();
    match (first, rest.as_slice()) {
        ("healthz" | "livez" | "readyz", _) => Ok(Target::Health),
        ("version", []) => Ok(Target::Version),
        ("metrics", []) => Ok(Target::Metrics),
        ("openapi", _) => Ok(Target::OpenApi),
        ("api", [] | [_]) | ("apis", [] | [_] | [_, _]) => Ok(Target::Discovery),
        ("api", [version, rest @ ..]) => resource("", version, rest).map(Target::Resource),
        ("apis", [group, version, rest @ ..]) => {
            resource(group, version, rest).map(Target::Resource)
        }
        _ => Err(Status::no_such_resource()),
    }
}

fn resource<'a>(
    group: &'a str,
    version: &'a str,
    rest: &[&'a str],
) -> Result<ResourcePath<'a>, Status> {
    let (watch, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        _ => (false, rest),
    };
    let mut path = ResourcePath {
        group: decode(group)?,
        version: decode(version)?,
        watch,
        ..ResourcePath::default()
    };
    let rest = match rest {
        // `namespaces/x/status` is a subresource of the namespace, not a resource in it.
        ["namespaces", _, "status" | "finalize"] => rest,
        ["namespaces", namespace, resource, rest @ ..] => {
            path.namespace = Some(segment(namespace, "namespace")?);
            path.resource = decode(resource)?;
            return finish(path, rest);
        }
        rest => rest,
    };
    if let [resource, rest @ ..] = rest {
        path.resource = decode(resource)?;
        return finish(path, rest);
    }
    Err(Status::no_such_resource())
}

fn finish<'a>(mut path: ResourcePath<'a>, rest: &[&'a str]) -> Result<ResourcePath<'a>, Status> {
    match rest {
        [] => {}
        [name] => path.name = Some(segment(name, "name")?),
        [name, subresource] => {
            path.name = Some(segment(name, "name")?);
            path.subresource = Some(decode(subresource)?);
        }
        _ => return Err(Status::no_such_resource()),
    }
    Ok(path)
}

/// A name from a path. Rules of apimachinery's `IsValidPathSegmentName`; they also keep store keys
/// apart.
fn segment<'a>(raw: &'a str, what: &str) -> Result<Cow<'a, str>, Status> {
    let name = decode(raw)?;
    if name.is_empty()
        || matches!(&*name, "." | "..")
        || name.contains(['/', '%', '\0'])
        || name.len() > ecp_meta::limits::SUBDOMAIN_LEN_MAX
    {
        return Err(Status::bad_request(format!(
            "invalid {what} in request path: {:?}",
            name.chars().take(64).collect::<String>()
        )));
    }
    Ok(name)
}

fn decode(raw: &str) -> Result<Cow<'_, str>, Status> {
    percent_decode_str(raw)
        .decode_utf8()
        .map_err(|_| Status::bad_request("the request path is not UTF-8"))
}

/// How `resourceVersion` of a list is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// The most recent state.
    Latest,
    /// Any state, however old.
    Any,
    /// At least as new as this.
    NotOlderThan(Revision),
    /// Exactly this.
    Exact(Revision),
}

/// Query parameters of all verbs.
#[derive(Clone, Debug, Default)]
pub struct Params {
    /// The kind of options they are, such as `CreateOptions`, for messages.
    pub kind: &'static str,
    /// `labelSelector`.
    pub labels: LabelSelector,
    /// `fieldSelector`.
    pub fields: FieldSelector,
    /// `resourceVersion`.
    pub resource_version: Option<String>,
    /// `resourceVersionMatch`.
    pub resource_version_match: Option<String>,
    /// `limit`; 0 is none.
    pub limit: u64,
    /// `continue`.
    pub continue_token: Option<String>,
    /// `watch`.
    pub watch: bool,
    /// `allowWatchBookmarks`.
    pub bookmarks: bool,
    /// `sendInitialEvents`.
    pub send_initial_events: Option<bool>,
    /// `timeoutSeconds`.
    pub timeout_seconds: Option<u64>,
    /// `dryRun`.
    pub dry_run: bool,
    /// `fieldManager`.
    pub field_manager: Option<String>,
    /// `force`.
    pub force: Option<bool>,
    /// `fieldValidation`.
    pub field_validation: Option<String>,
    /// `pretty`.
    pub pretty: bool,
    /// `propagationPolicy`.
    pub propagation_policy: Option<String>,
    /// `orphanDependents`, the old form of `propagationPolicy`.
    pub orphan_dependents: Option<bool>,
    /// `gracePeriodSeconds`.
    pub grace_period_seconds: Option<i64>,
}

impl Params {
    /// Parses a query. Unknown parameters are ignored, as upstream does.
    ///
    /// # Errors
    /// 400: a value is malformed.
    pub fn parse(query: &str) -> Result<Self, Status> {
        Self::parse_as("ListOptions", query)
    }

    /// Parses a query as options of a kind.
    ///
    /// # Errors
    /// 400: a value is malformed; 422: it is not one of those allowed.
    pub fn parse_as(kind: &'static str, query: &str) -> Result<Self, Status> {
        let mut params = Self {
            kind,
            ..Self::default()
        };
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            params.set(&key, value)?;
        }
        Ok(params)
    }

    fn set(&mut self, key: &str, value: Cow<'_, str>) -> Result<(), Status> {
        let text = || Some(value.to_string()).filter(|v| !v.is_empty());
        match key {
            "labelSelector" => {
                self.labels = LabelSelector::parse(&value).map_err(bad)?;
            }
            "fieldSelector" => {
                self.fields = FieldSelector::parse(&value).map_err(bad)?;
            }
            "resourceVersion" => self.resource_version = text(),
            "resourceVersionMatch" => self.resource_version_match = text(),
            // A negative limit is none.
            "limit" => {
                self.limit = u64::try_from(number::<i64>(key, &value)?).unwrap_or_default();
            }
            "continue" => self.continue_token = text(),
            "watch" => self.watch = boolean(key, &value)?,
            "allowWatchBookmarks" => self.bookmarks = boolean(key, &value)?,
            "sendInitialEvents" => self.send_initial_events = Some(boolean(key, &value)?),
            "timeoutSeconds" => self.timeout_seconds = Some(number(key, &value)?),
            "dryRun" => self.dry_run = self.dry_run_of(&value)?,
            "fieldManager" => self.field_manager = text(),
            "force" => self.force = Some(boolean(key, &value)?),
            "fieldValidation" => self.field_validation = text(),
            "pretty" => self.pretty = boolean(key, &value).unwrap_or(false),
            "propagationPolicy" => self.propagation_policy = text(),
            "orphanDependents" => self.orphan_dependents = Some(boolean(key, &value)?),
            "gracePeriodSeconds" => self.grace_period_seconds = Some(number(key, &value)?),
            _ => {}
        }
        Ok(())
    }

    /// How the resource version of a list is meant (apimachinery `ValidateListOptions` and the
    /// table in "Resource versions" of the API concepts).
    ///
    /// # Errors
    /// 422 or 400: parameters that do not go together.
    pub fn list_version(&self) -> Result<VersionMatch, Status> {
        let version = self.revision()?;
        let invalid = |why: &str| Err(invalid_option("resourceVersionMatch", why));
        if self.send_initial_events.is_some() && !self.watch {
            return Err(invalid_option(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for list",
            ));
        }
        match (self.resource_version_match.as_deref(), version) {
            (Some(_), _) if self.continue_token.is_some() => {
                invalid("resourceVersionMatch is forbidden when continue is provided")
            }
            (Some(_), None) => {
                invalid("resourceVersionMatch is forbidden unless resourceVersion is provided")
            }
            (Some("Exact"), Some(Revision(0))) => {
                invalid("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"")
            }
            (Some("Exact"), Some(revision)) => Ok(VersionMatch::Exact(revision)),
            (Some("NotOlderThan") | None, Some(Revision(0))) => Ok(VersionMatch::Any),
            (Some("NotOlderThan"), Some(revision)) => Ok(VersionMatch::NotOlderThan(revision)),
            (Some(other), _) => Err(self.unsupported(
                "resourceVersionMatch",
                other.into(),
                "\"Exact\", \"NotOlderThan\", \"\"",
            )),
            (None, None) => Ok(VersionMatch::Latest),
            (None, Some(revision)) if self.limit > 0 => Ok(VersionMatch::Exact(revision)),
            (None, Some(revision)) => Ok(VersionMatch::NotOlderThan(revision)),
        }
    }

    /// 422 for one of the parameters.
    pub(crate) fn invalid(&self, error: FieldError) -> Status {
        Status::invalid("meta.k8s.io", self.kind, "", &[error])
    }

    /// 422 for a value that is not one of those supported.
    pub(crate) fn unsupported(&self, field: &str, value: Value, supported: &str) -> Status {
        let detail = format!("supported values: {supported}");
        let error = FieldError::new(FieldErrorKind::NotSupported, field, detail);
        self.invalid(error.with_value(value))
    }

    fn dry_run_of(&self, value: &str) -> Result<bool, Status> {
        match value {
            "" => Ok(false),
            "All" => Ok(true),
            _ => Err(self.unsupported("dryRun", vec![value].into(), "\"All\"")),
        }
    }

    /// `resourceVersion` as a number.
    ///
    /// # Errors
    /// 400: it is not one.
    pub fn revision(&self) -> Result<Option<Revision>, Status> {
        self.resource_version
            .as_deref()
            .map(|v| {
                v.parse().map(Revision).map_err(|_| {
                    Status::bad_request(format!("invalid resource version {v:?}: not a number"))
                })
            })
            .transpose()
    }
}

/// 422 for a parameter of list options.
pub fn invalid_option(field: &str, why: &str) -> Status {
    Status::invalid(
        "meta.k8s.io",
        "ListOptions",
        "",
        &[FieldError::new(FieldErrorKind::Forbidden, field, why)],
    )
}

fn bad(error: impl std::fmt::Display) -> Status {
    Status::bad_request(error.to_string())
}

fn number<T: std::str::FromStr>(key: &str, value: &str) -> Result<T, Status> {
    value
        .parse()
        .map_err(|_| Status::bad_request(format!("query parameter {key}: {value:?} is no number")))
}

fn boolean(key: &str, value: &str) -> Result<bool, Status> {
    match value {
        "" | "true" | "1" | "True" | "TRUE" | "t" | "T" => Ok(true),
        "false" | "0" | "False" | "FALSE" | "f" | "F" => Ok(false),
        _ => Err(Status::bad_request(format!(
            "query parameter {key}: {value:?} is neither true nor false"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource_path(path: &str) -> ResourcePath<'_> {
        match route(path) {
            Ok(Target::Resource(path)) => path,
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn clusters_are_split_off_and_checked() {
        let (cluster, path) = split_cluster("/clusters/root:a/api/v1").unwrap();
        assert_eq!((cluster.as_str(), path), ("root:a", "/api/v1"));
        let (cluster, path) = split_cluster("/api/v1").unwrap();
        assert_eq!((cluster.as_str(), path), ("root", "/api/v1"));
        for bad in ["/clusters//api", "/clusters/..%2Fx/api", "/clusters/A/api"] {
            assert_eq!(split_cluster(bad).unwrap_err().http_status(), 400, "{bad}");
        }
    }

    #[test]
    fn resource_paths_name_their_parts() {
        let p = resource_path("/api/v1/namespaces/a/secrets/s");
        assert_eq!(
            (&*p.resource, p.namespace.as_deref()),
            ("secrets", Some("a"))
        );
        assert_eq!(p.name.as_deref(), Some("s"));
        let p = resource_path("/api/v1/namespaces/a/status");
        assert_eq!(
            (&*p.resource, p.subresource.as_deref()),
            ("namespaces", Some("status"))
        );
        let p = resource_path("/api/v1/namespaces/a");
        assert_eq!((&*p.resource, p.name.as_deref()), ("namespaces", Some("a")));
        let p = resource_path("/apis/g.io/v1/foos/x/scale");
        assert_eq!(
            (&*p.group, p.subresource.as_deref()),
            ("g.io", Some("scale"))
        );
        let p = resource_path("/api/v1/watch/namespaces/a/secrets");
        assert!(p.watch);
        assert_eq!(p.namespace.as_deref(), Some("a"));
    }

    #[test]
    fn traversal_in_names_is_refused() {
        for bad in [
            "/api/v1/namespaces/..%2f..%2fx/secrets/s",
            "/api/v1/namespaces/a/secrets/%2e%2e",
            "/api/v1/namespaces/a/secrets/a%2fb",
            "/api/v1/namespaces/a/secrets/a%00",
        ] {
            assert_eq!(route(bad).unwrap_err().http_status(), 400, "{bad}");
        }
    }

    #[test]
    fn list_versions_follow_the_table() {
        let of = |q: &str| Params::parse(q).unwrap().list_version();
        assert_eq!(of("").unwrap(), VersionMatch::Latest);
        assert_eq!(of("resourceVersion=0").unwrap(), VersionMatch::Any);
        assert_eq!(
            of("resourceVersion=5").unwrap(),
            VersionMatch::NotOlderThan(Revision(5))
        );
        assert_eq!(
            of("resourceVersion=5&limit=2").unwrap(),
            VersionMatch::Exact(Revision(5))
        );
        for bad in [
            "resourceVersionMatch=Exact",
            "resourceVersionMatch=Exact&resourceVersion=0",
            "resourceVersionMatch=Exact&resourceVersion=3&continue=x",
            "resourceVersionMatch=Sometimes&resourceVersion=3",
            "sendInitialEvents=true",
        ] {
            assert_eq!(of(bad).unwrap_err().http_status(), 422, "{bad}");
        }
        assert_eq!(of("resourceVersion=x").unwrap_err().http_status(), 400);
    }
}
