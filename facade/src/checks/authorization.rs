//! Roles and role assignments (SECA sections 3.7 and 6).

use serde_json::Value;

use super::{Change, Faults};
use crate::config::Access;
use crate::error::{ApiError, ErrorKind};
use crate::facade::Facade;
use crate::fields;
use crate::path::Target;

/// Providers that are not served here and that a permission may still name (section 1.1).
const EXTENSIONS: [&str; 6] = [
    "seca.activitylog",
    "seca.kubernetes",
    "seca.loadbalancer",
    "seca.natgateway",
    "seca.objectstorage",
    "seca.wellknown",
];

/// Verbs of a permission, in upper or lower case.
const VERBS: [&str; 9] = [
    "*", "delete", "get", "head", "list", "options", "patch", "post", "put",
];

/// Whether a provider exists: `seca.storage` or `seca.storage/v1`.
fn is_provider(text: &str) -> bool {
    let (name, version) = match text.split_once('/') {
        Some((name, version)) => (name, Some(version)),
        None => (text, None),
    };
    let served = ecp_xrds::by_provider(name).next().is_some();
    let right_version = match version {
        None => true,
        Some("v1") => served || name == "seca.wellknown",
        Some("v1beta1") => !served && name != "seca.wellknown",
        Some(_) => false,
    };
    right_version && (served || EXTENSIONS.contains(&name))
}

fn is_verb(text: &str) -> bool {
    let verb = text.to_ascii_lowercase();
    VERBS.contains(&verb.as_str())
}

/// Permissions must be such that some request can need them.
pub(super) fn check_role(change: Change<'_>, faults: &mut Faults) {
    if change.same("permissions") {
        return;
    }
    let mut check = |path: &str, what: &str, right: fn(&str) -> bool| {
        for (path, value) in fields::find(change.spec, path) {
            if let Some(text) = value.as_str().filter(|text| !right(text)) {
                let detail = format!("there is no {what} {text:?}");
                faults.push(ErrorKind::Invalid, format!("spec.{path}"), detail);
            }
        }
    };
    check("permissions[].provider", "provider", is_provider);
    check("permissions[].verb[]", "verb", is_verb);
}

impl Facade {
    /// Scopes and subjects must be known. Workspaces are looked for where the scope is about this
    /// tenant alone: those of others are nobody's business.
    pub(super) async fn check_role_assignment(
        &self,
        change: Change<'_>,
        faults: &mut Faults,
    ) -> Result<(), ApiError> {
        self.check_subjects(change, faults);
        if change.same("scopes") {
            return Ok(());
        }
        let scopes = change.spec.get("scopes").and_then(Value::as_array);
        for (i, scope) in scopes.into_iter().flatten().enumerate() {
            let texts = |list: &str| -> Vec<String> {
                let all = scope.get(list).and_then(Value::as_array);
                let all = all.into_iter().flatten().filter_map(Value::as_str);
                all.map(Into::into).collect()
            };
            let tenants = texts("tenants");
            for (j, tenant) in tenants.iter().enumerate() {
                if faults.full() {
                    return Ok(());
                }
                if !self.tenant_exists(change.target, tenant).await? {
                    missing(
                        faults,
                        format!("spec.scopes[{i}].tenants[{j}]"),
                        "tenant",
                        tenant,
                    );
                }
            }
            for (j, region) in texts("regions").iter().enumerate() {
                if !self.region_exists(region) {
                    missing(
                        faults,
                        format!("spec.scopes[{i}].regions[{j}]"),
                        "region",
                        region,
                    );
                }
            }
            let own = |tenant: &String| *tenant == change.target.tenant;
            if tenants.is_empty() || !tenants.iter().all(own) {
                continue;
            }
            for (j, workspace) in texts("workspaces").iter().enumerate() {
                if faults.full() {
                    return Ok(());
                }
                if !self.workspace_exists(change.target, workspace).await? {
                    let at = format!("spec.scopes[{i}].workspaces[{j}]");
                    missing(faults, at, "workspace", workspace);
                }
            }
        }
        Ok(())
    }

    /// Where the users are a closed list, subjects must be among them.
    fn check_subjects(&self, change: Change<'_>, faults: &mut Faults) {
        let Access::Tokens(users) = &self.config().access else {
            return;
        };
        if change.same("subs") {
            return;
        }
        for (path, value) in fields::find(change.spec, "subs[]") {
            let known = |sub: &str| sub == "*" || users.knows(sub) != Some(false);
            if let Some(sub) = value.as_str().filter(|sub| !known(sub)) {
                missing(faults, format!("spec.{path}"), "user", sub);
            }
        }
    }

    /// A tenant exists as soon as something of it does; that of the request is one in any case.
    async fn tenant_exists(&self, target: &Target, tenant: &str) -> Result<bool, ApiError> {
        if tenant == target.tenant {
            return Ok(true);
        }
        let of_tenant = Target {
            tenant: tenant.into(),
            name: None,
            ..target.clone()
        };
        Ok(self.namespace_of(&of_tenant).await?.is_some())
    }

    async fn workspace_exists(&self, target: &Target, name: &str) -> Result<bool, ApiError> {
        let Some(info) = ecp_xrds::by_kind("Workspace") else {
            return Ok(false);
        };
        let named = Target {
            info,
            name: Some(name.into()),
            ..target.clone()
        };
        let found = self.look_up(&named).await?;
        Ok(found.is_some_and(|workspace| !workspace.deleting()))
    }
}

fn missing(faults: &mut Faults, field: String, what: &str, name: &str) {
    let detail = format!("{what} {name:?} does not exist");
    faults.push(ErrorKind::ReferenceMissing, field, detail);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_are_known_with_and_without_their_version() {
        for known in [
            "seca.storage",
            "seca.storage/v1",
            "seca.region/v1",
            "seca.kubernetes/v1beta1",
            "seca.loadbalancer",
            "seca.wellknown/v1",
        ] {
            assert!(is_provider(known), "{known}");
        }
        for unknown in [
            "",
            "*",
            "storage",
            "seca.nope",
            "non-existent-provider",
            "seca.storage/v2",
            "seca.storage/v1beta1",
            "seca.kubernetes/v1",
            "seca.wellknown/v1beta1",
            "seca.storage/v1/x",
            "Seca.storage",
        ] {
            assert!(!is_provider(unknown), "{unknown}");
        }
    }

    #[test]
    fn verbs_are_known_in_any_case() {
        for known in [
            "get", "GET", "list", "Put", "DELETE", "post", "patch", "head", "options", "*",
        ] {
            assert!(is_verb(known), "{known}");
        }
        for unknown in [
            "",
            "connect",
            "CONNECT",
            "trace",
            "post.start",
            "get,put",
            "**",
        ] {
            assert!(!is_verb(unknown), "{unknown}");
        }
    }
}
