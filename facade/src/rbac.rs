//! What the roles of a tenant allow (SECA section 3.10).
//!
//! A request is allowed when a role assignment of the tenant has the caller among its `subs`, has a
//! scope that holds for the request, and names a role that has a permission for it. Nothing else
//! is: there are no deny rules, no implied grants, and whatever cannot be understood grants
//! nothing.

use std::sync::Arc;

use serde_json::Value;

use crate::auth::Claim;
use crate::cache::Entry;
use crate::error::ApiError;
use crate::facade::Facade;

impl Facade {
    /// Whether the roles of the claim's tenant allow it, as the caches have them. Roles and
    /// assignments that are being deleted grant nothing.
    ///
    /// # Errors
    /// The caches are out of touch with the control plane, so that a grant may be gone.
    pub(crate) fn granted(&self, subject: &str, claim: &Claim<'_>) -> Result<bool, ApiError> {
        let cache = self.cache();
        let (Some(roles), Some(assignments)) =
            (cache.by_kind("Role"), cache.by_kind("RoleAssignment"))
        else {
            return Ok(false);
        };
        let links = [roles.link(), assignments.link(), cache.namespaces().link()];
        if !links.iter().all(|link| link.fresh()) {
            return Err(ApiError::unavailable("roles cannot be read"));
        }
        let Some(namespace) = cache.namespaces().find(claim.tenant, "") else {
            return Ok(false);
        };
        let role = |name: &str| {
            let entry = roles.get(&namespace.name, name);
            entry.filter(|e| !e.deleting())
        };
        let granting = |assignment: &Entry| {
            let spec = assignment.object().get("spec");
            !assignment.deleting() && spec.is_some_and(|spec| grants(spec, role, subject, claim))
        };
        // Of everybody, and of the subject; the caches need not be looked through.
        let mut own = ["*", subject]
            .into_iter()
            .flat_map(|sub| assignments.mentioning(&namespace.name, sub));
        Ok(own.any(|assignment| granting(&assignment)))
    }
}

/// Something with the spec of a role.
trait HasSpec {
    fn spec(&self) -> Option<&Value>;
}

impl HasSpec for Arc<Entry> {
    fn spec(&self) -> Option<&Value> {
        self.object().get("spec")
    }
}

/// Whether one assignment, with the roles it names, grants a claim to a subject.
///
/// `role` gives the spec of a role of the same tenant.
fn grants<R: HasSpec>(
    assignment: &Value,
    role: impl Fn(&str) -> Option<R>,
    subject: &str,
    claim: &Claim<'_>,
) -> bool {
    texts(assignment, "subs").any(|sub| sub == "*" || sub == subject)
        && items(assignment, "scopes").any(|scope| in_scope(scope, claim))
        && texts(assignment, "roles").filter_map(role).any(|role| {
            let spec = role.spec().into_iter();
            spec.flat_map(|s| items(s, "permissions"))
                .any(|p| permits(p, claim))
        })
}

/// Whether a scope holds: every list it has must name the claim's. A claim that is in no region or
/// workspace is in none that a list could name.
fn in_scope(scope: &Value, claim: &Claim<'_>) -> bool {
    let within = |list: &str, value: &str| match scope.get(list) {
        None | Some(Value::Null) => true,
        Some(_) => !value.is_empty() && texts(scope, list).any(|named| named == value),
    };
    scope.is_object()
        && within("tenants", claim.tenant)
        && within("regions", claim.region)
        && within("workspaces", claim.workspace)
}

fn permits(permission: &Value, claim: &Claim<'_>) -> bool {
    let provider = permission.get("provider").and_then(Value::as_str);
    // `seca.storage/v1`, as in metadata, or without the version.
    let name = provider.map(|p| p.strip_suffix("/v1").unwrap_or(p));
    name == Some(claim.provider)
        && texts(permission, "verb").any(|verb| covers(verb, claim.verb))
        && texts(permission, "resources").any(|glob| matches(glob, claim))
}

/// Verbs ignore case. `post` covers all actions.
fn covers(granted: &str, asked: &str) -> bool {
    granted == "*"
        || granted.eq_ignore_ascii_case(asked)
        || (granted.eq_ignore_ascii_case("post") && asked.starts_with("post."))
}

/// Whether a glob matches `collection`, or `collection/name` where the claim has a name.
fn matches(glob: &str, claim: &Claim<'_>) -> bool {
    if claim.name.is_empty() {
        ecp_xrds::selector::glob(glob, claim.collection)
    } else {
        let target = format!("{}/{}", claim.collection, claim.name);
        ecp_xrds::selector::glob(glob, &target)
    }
}

fn items<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    let all = value.get(field).and_then(Value::as_array);
    all.into_iter().flatten()
}

fn texts<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    items(value, field).filter_map(Value::as_str)
}

#[cfg(test)]
#[path = "rbac_tests.rs"]
mod tests;
