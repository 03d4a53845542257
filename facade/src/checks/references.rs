//! Whether what a spec refers to exists (SECA section 3.7).
//!
//! The table of reference fields is that of the kinds. References are never changed: they are
//! echoed exactly as they were sent.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use ecp_meta::{keys, object};
use ecp_xrds::reference::{self, Parsed, Place as Home, ReferenceError, Resolved, resolve};
use ecp_xrds::{KindInfo, RefField, Reference, Scope};
use serde_json::Value;

use super::{Change, Faults};
use crate::cache::Entry;
use crate::config::{ReferencePolicies, ReferencePolicy};
use crate::error::{ApiError, ErrorKind};
use crate::facade::Facade;
use crate::fields;
use crate::path::Target;

/// Fields that can name anything, there or not.
const FREE: [(&str, &str); 2] = [
    ("SecurityGroup", "rules[].sourceRef[]"),
    ("SecurityGroupRule", "sourceRef[]"),
];

/// What became of a reference.
enum Verdict {
    /// It names what is there, or nothing that has to be.
    Fine,
    /// It names nothing, which its field may do.
    Deferred,
    /// It is refused.
    Wrong(String),
}

impl Facade {
    /// Notes references to what is missing, and answers with the paths of those that are accepted
    /// all the same.
    ///
    /// Resources need not be active to be referred to (section 3.6).
    pub(super) async fn check_references(
        &self,
        change: Change<'_>,
        faults: &mut Faults,
    ) -> Result<Vec<String>, ApiError> {
        let info = change.target.info;
        let mut deferred = Vec::new();
        for field in info.references {
            if FREE.contains(&(info.kind, field.path)) {
                continue;
            }
            let had = had(change.existing, field);
            for (path, value) in fields::find(change.spec, field.path) {
                if faults.full() {
                    return Ok(deferred);
                }
                let before = had.get(&value.to_string());
                if before == Some(&false) {
                    continue;
                }
                match (self.judge(change.target, field, value).await?, before) {
                    (Verdict::Fine, _) => {}
                    (Verdict::Deferred, _) | (Verdict::Wrong(_), Some(_)) => deferred.push(path),
                    (Verdict::Wrong(detail), None) => {
                        let at = match value {
                            Value::String(_) => format!("spec.{path}"),
                            _ => format!("spec.{path}.resource"),
                        };
                        faults.push(ErrorKind::ReferenceMissing, at, detail);
                    }
                }
            }
        }
        Ok(deferred)
    }

    async fn judge(
        &self,
        target: &Target,
        field: &RefField,
        value: &Value,
    ) -> Result<Verdict, ApiError> {
        let reference = match value {
            Value::String(name) => Reference::to(name.as_str()),
            other => match serde_json::from_value(other.clone()) {
                Ok(reference) => reference,
                Err(_) => return Ok(Verdict::Wrong("must be a reference".into())),
            },
        };
        let to = match meant(field, &reference) {
            Meant::Nothing => return Ok(Verdict::Fine),
            Meant::Kind(to) => to,
        };
        let resolved = match resolve(&reference, to, &home(target)) {
            Ok(resolved) => resolved,
            // Only what is in no workspace itself can leave it open, and then it cannot be found.
            Err(ReferenceError::NoWorkspace(_)) => return Ok(Verdict::Deferred),
            Err(error) => return Ok(Verdict::Wrong(error.to_string())),
        };
        if value.as_str().is_some_and(|name| name != resolved.name) {
            return Ok(Verdict::Wrong(format!("must be the name of a {}", to.noun)));
        }
        let missing = || Verdict::Wrong(format!("{resolved} does not exist"));
        if !to.catalogue && resolved.tenant != target.tenant {
            // Another tenant's resources are nobody's business, their existence included.
            return Ok(missing());
        }
        let named = Target::of(&resolved, target);
        if !to.catalogue && !self.has_parents(&named).await? {
            return Ok(missing());
        }
        Ok(match self.look_up(&named).await? {
            Some(entry) if !entry.deleting() => Verdict::Fine,
            _ if self.defers(target.info, field) => Verdict::Deferred,
            _ => missing(),
        })
    }

    fn defers(&self, info: &KindInfo, field: &RefField) -> bool {
        let top = top(field);
        ReferencePolicies::FIELDS.contains(&(info.kind, top))
            && self.config().references.of(info.kind, top) == ReferencePolicy::Defer
    }
}

/// Kinds of what an instance cannot name twice.
const ONCE: [&str; 2] = ["BlockStorage", "NIC"];

/// An instance has each of its volumes and NICs once.
pub(super) fn check_once(change: Change<'_>, faults: &mut Faults) {
    let home = home(change.target);
    for kind in ONCE {
        let Some(kind) = ecp_xrds::by_kind(kind) else {
            continue;
        };
        let fields = change.target.info.references.iter();
        let fields = fields.filter(|field| field.to.contains(&kind.kind));
        let named = |spec| fields.clone().flat_map(move |f| fields::find(spec, f.path));
        let had = change.existing.and_then(|e| e.object().get("spec"));
        if had.is_some_and(|had| named(had).eq(named(change.spec))) {
            continue;
        }
        let mut seen = BTreeMap::new();
        for (path, value) in named(change.spec) {
            let reference = serde_json::from_value::<Reference>(value.clone());
            let Ok(Ok(found)) = reference.map(|r| resolve(&r, kind, &home)) else {
                continue;
            };
            let first = seen
                .entry((found.tenant, found.workspace, found.name.clone()))
                .or_insert_with(|| path.clone());
            if *first != path {
                let (noun, name) = (kind.noun, found.name);
                let detail = format!("{noun} {name:?} is in spec.{first} already");
                faults.push(ErrorKind::Invalid, format!("spec.{path}"), detail);
            }
        }
    }
}

/// The field of `spec` that a reference field is in.
fn top(field: &RefField) -> &'static str {
    field.path.split(['.', '[']).next().unwrap_or_default()
}

/// Where a resource of a target is: what its references do not say is taken from here.
pub(super) fn home(target: &Target) -> Home {
    let some = |name: &String| Some(name.clone()).filter(|n| !n.is_empty());
    Home {
        tenant: target.tenant.clone(),
        workspace: some(&target.workspace),
        network: some(&target.network),
    }
}

/// The references of a field that a resource has, and whether each is deferred.
fn had(existing: Option<&Entry>, field: &RefField) -> HashMap<String, bool> {
    let Some(entry) = existing else {
        return HashMap::new();
    };
    let Some(spec) = entry.object().get("spec") else {
        return HashMap::new();
    };
    let deferred = object::annotation(entry.object(), keys::DEFERRED_REFERENCES);
    let deferred: Vec<&str> = deferred.unwrap_or_default().split(',').collect();
    fields::find(spec, field.path)
        .into_iter()
        .map(|(path, value)| (value.to_string(), deferred.contains(&path.as_str())))
        .collect()
}

/// What a reference speaks of, before anything is looked up.
enum Meant {
    /// A resource of this kind.
    Kind(&'static KindInfo),
    /// Nothing that could be missing.
    Nothing,
}

/// The kind that a reference in a field means.
///
/// A field that takes text takes what other APIs have, too: only what is said to be of this API
/// is looked up (section 3.7: a route may lead to an instance that never was).
fn meant(field: &RefField, reference: &Reference) -> Meant {
    let parsed = Parsed::parse(&reference.resource);
    let kinds: Vec<_> = field
        .to
        .iter()
        .filter_map(|k| ecp_xrds::by_kind(k))
        .collect();
    // A path of an API that is not known here is text, which still says the API.
    let of_text = match &parsed.target {
        reference::Target::Text(text) => Some(text.clone()).filter(|t| t.starts_with("seca.")),
        reference::Target::Empty | reference::Target::Named { .. } => None,
    };
    let said = (parsed.provider.clone())
        .or(of_text)
        .or_else(|| reference.provider.clone().filter(|p| !p.is_empty()))
        .map(|p| p.split('/').next().unwrap_or_default().to_owned());
    let first = match kinds.first() {
        Some(first) => *first,
        None => return Meant::Nothing,
    };
    let kind = match &parsed.target {
        reference::Target::Empty if field.empty => return Meant::Nothing,
        reference::Target::Text(text) if field.text && is_address(text) => return Meant::Nothing,
        reference::Target::Named {
            collection: Some(collection),
            ..
        } => {
            let fits = |k: &&&KindInfo| {
                k.collection == collection && said.as_ref().is_none_or(|p| p == k.provider)
            };
            kinds.iter().find(fits).copied()
        }
        _ => None,
    };
    let provider = match (kind, &said) {
        (Some(kind), _) => kind.provider,
        (None, Some(said)) => said,
        (None, None) => first.provider,
    };
    if field.text && provider != first.provider {
        return Meant::Nothing;
    }
    Meant::Kind(kind.unwrap_or(first))
}

/// Whether a text is an address or range.
fn is_address(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok() || text.parse::<ipnet::IpNet>().is_ok()
}

/// Whether a resource refers to another one, in any of its fields.
pub(crate) fn uses(user: &Target, entry: &Entry, used: &Resolved) -> bool {
    let Some(spec) = entry.object().get("spec") else {
        return false;
    };
    let home = home(user);
    let to = |field: &&RefField| field.to.contains(&used.kind.kind);
    let same = |value: &Value| {
        let reference = serde_json::from_value::<Reference>(value.clone());
        reference.is_ok_and(|reference| {
            resolve(&reference, used.kind, &home).is_ok_and(|found| {
                let place = |r: &Resolved| {
                    let parts = (r.tenant.clone(), r.workspace.clone(), r.network.clone());
                    (parts, r.name.clone())
                };
                place(&found) == place(used)
            })
        })
    };
    let fields = user.info.references.iter().filter(to);
    fields
        .flat_map(|field| fields::find(spec, field.path))
        .any(|(_, value)| same(value))
}

impl From<&Target> for Resolved {
    /// What a reference to the resource of a URL would mean.
    fn from(target: &Target) -> Self {
        let parent = |name: &String, lives_in: bool| Some(name.clone()).filter(|_| lives_in);
        let scope = target.info.scope;
        Self {
            kind: target.info,
            tenant: target.tenant.clone(),
            workspace: parent(
                &target.workspace,
                matches!(scope, Scope::Workspace | Scope::Network),
            ),
            network: parent(&target.network, scope == Scope::Network),
            region: None,
            name: target.name.clone().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exception_is_a_field_of_its_kind() {
        for (kind, path) in FREE {
            let info = ecp_xrds::by_kind(kind).expect("kind");
            let known = info.references.iter().any(|field| field.path == path);
            assert!(known, "{kind}.{path}");
        }
        for (kind, name) in ReferencePolicies::FIELDS {
            let info = ecp_xrds::by_kind(kind).expect("kind");
            let all = info.references.iter().filter(|field| top(field) == name);
            assert_eq!(all.count(), 1, "{kind}.{name}");
        }
    }

    #[test]
    fn only_what_is_said_to_be_of_the_network_api_is_looked_up_for_routes() {
        let table = ecp_xrds::by_kind("RouteTable").expect("kind");
        let kind = |text: &str| match meant(&table.references[0], &Reference::to(text)) {
            Meant::Kind(info) => info.kind,
            Meant::Nothing => "",
        };
        for (text, want) in [
            ("internet-gateways/g", "InternetGateway"),
            (
                "seca.network/v1/tenants/t/workspaces/w/internet-gateways/g",
                "InternetGateway",
            ),
            ("nics/n", "NIC"),
            ("seca.network/v1/tenants/t/workspaces/w/nics/n", "NIC"),
            ("g", "InternetGateway"),
            // Of the wrong kind, which resolving then says.
            (
                "seca.network/v1/tenants/t/workspaces/w/public-ips/p",
                "InternetGateway",
            ),
            ("networks/n", "InternetGateway"),
            ("any text", "InternetGateway"),
            ("", "InternetGateway"),
            ("instances/i", ""),
            ("seca.compute/v1/tenants/t/workspaces/w/instances/i", ""),
            ("seca.storage/v1/tenants/t/images/i", ""),
            (
                "seca.natgateway/v1beta1/tenants/t/workspaces/w/gateways/g",
                "",
            ),
            (
                "seca.network/v1/tenants/t/workspaces/w/routers/r",
                "InternetGateway",
            ),
            ("10.0.0.1", ""),
            ("fd00::/8", ""),
        ] {
            assert_eq!(kind(text), want, "{text}");
        }
        let elsewhere = Reference {
            provider: Some("seca.compute/v1".into()),
            ..Reference::to("i")
        };
        assert!(matches!(
            meant(&table.references[0], &elsewhere),
            Meant::Nothing
        ));
    }

    #[test]
    fn an_empty_reference_is_none_where_it_may_be() {
        let subnet = ecp_xrds::by_kind("Subnet").expect("kind");
        let meant = |field: &RefField| meant(field, &Reference::to(""));
        assert!(matches!(meant(&subnet.references[0]), Meant::Nothing));
        assert!(matches!(meant(&subnet.references[1]), Meant::Kind(_)));
    }
}
