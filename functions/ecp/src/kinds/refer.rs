//! What a resource refers to: SKUs, and the cloud's ids of other resources.

use std::collections::BTreeMap;

use ecp_meta::{condition, keys, names, object};
use ecp_xrds::reference::{self, Resolved};
use ecp_xrds::{KindInfo, Reference, Scope};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::place::Home;
use super::{Draft, Obstacle, Owner, Site, kind, typed};
use crate::managed::{self, ManagedKind};
use crate::needs::Found;
use crate::xr::SYSTEM_NAMESPACE;

/// A SKU that a resource refers to.
#[derive(Clone, Debug)]
pub(super) struct Sku<T> {
    pub(super) name: String,
    pub(super) spec: T,
}

/// Labels of the managed resources of a SECA resource.
pub(crate) fn labels(kind: &KindInfo, owner: &Owner, name: &str) -> BTreeMap<String, String> {
    let tenant = Some(owner.tenant.as_str()).filter(|t| !t.is_empty());
    let pairs = [
        (keys::TENANT, tenant),
        (keys::WORKSPACE, owner.workspace.as_deref()),
        (keys::NETWORK, owner.network.as_deref()),
        (keys::KIND, Some(kind.seca_kind)),
        (keys::NAME, Some(name)),
    ];
    pairs
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), names::label_value(value?))))
        .collect()
}

impl<'a> Draft<'a, '_> {
    /// A SKU that is offered where the resource is.
    pub(super) fn sku<T: DeserializeOwned>(
        &mut self,
        reference: &Reference,
        info: &'static KindInfo,
        site: &Site,
    ) -> Result<Sku<T>, Obstacle> {
        // Every tenant sees the same SKUs, so it does not matter whose they are said to be.
        let mut target = reference::resolve(reference, info, &reference::Place::default())
            .map_err(|e| Obstacle::Refused(format!("spec.skuRef: {e}")))?;
        target.tenant.clear();
        let (noun, name) = (info.noun, target.name.clone());
        let id = match site.cloud.as_ref().map(|c| c.identity(info)) {
            Ok(Some(_)) => self.id(&target, site).map(|_| ()),
            Ok(None) | Err(_) => Ok(()),
        };
        let object_name = ecp_xrds::object_name(info, &name);
        let found = match self
            .needs
            .by_name(info.seca_kind, &info.gvk(), None, &object_name)
        {
            Found::Object(found) if ecp_xrds::seca_name(found) == name => found,
            Found::Object(_) | Found::Missing => {
                return Err(Obstacle::Missing(format!("{noun} {name} does not exist")));
            }
            Found::Unknown => {
                return Err(Obstacle::Missing(format!("waiting to read {noun} {name}")));
            }
        };
        let offered = found.get("spec").and_then(|s| s.get("region"));
        if let (Some(offered), Ok(region)) = (offered.and_then(Value::as_str), &site.region)
            && offered != region.name
        {
            return Err(Obstacle::Missing(format!(
                "{noun} {name} is offered in region {offered}, not in {}",
                region.name
            )));
        }
        let spec = typed(found, &format!("{noun} {name}"))?;
        id?;
        Ok(Sku { name, spec })
    }

    /// What a reference in a field of the XR means.
    pub(super) fn resolve(
        &self,
        reference: &Reference,
        kind: &'static KindInfo,
        field: &str,
    ) -> Result<Resolved, Obstacle> {
        let owner = self.owner.as_ref().map_err(Clone::clone)?;
        let resolved = reference::resolve(reference, kind, &owner.place())
            .map_err(|e| Obstacle::Refused(format!("spec.{field}: {e}")))?;
        // Catalogues are everybody's; all else is its tenant's alone.
        if kind.scope != Scope::Cluster && resolved.tenant != owner.tenant {
            return Err(Obstacle::Refused(format!(
                "spec.{field}: resources of another tenant cannot be used"
            )));
        }
        Ok(resolved)
    }

    /// The cloud's id of what a field refers to.
    pub(super) fn id_of(
        &mut self,
        reference: &Reference,
        of: &str,
        field: &str,
        site: &Site,
    ) -> Result<String, Obstacle> {
        let target = self.resolve(reference, kind(of)?, field)?;
        self.id(&target, site)
    }

    /// The cloud's id of another SECA resource: the external name of its managed resource, once
    /// that is ready.
    ///
    /// The id in use is noted on the managed resources of the plan. So a resource that exists
    /// keeps it when what it was made from is gone or not ready, until it refers to something
    /// else.
    pub(super) fn id(&mut self, target: &Resolved, site: &Site) -> Result<String, Obstacle> {
        let info = target.kind;
        let (noun, name) = (info.noun, &target.name);
        let cloud = site.cloud.clone()?;
        let Some(kind) = cloud.identity(info) else {
            let why = format!("cloud {} has no {noun}", cloud.name());
            return Err(Obstacle::Missing(why));
        };
        let mut found = self.managed_for(kind, target);
        if info.scope == Scope::Cluster {
            let region = names::label_value(&site.region.as_ref().map_err(Clone::clone)?.name);
            let here = |o: &&Value| object::label(o, keys::REGION) == Some(region.as_str());
            found = found.map(|all| all.into_iter().filter(here).collect());
        }
        let ready = found.as_deref().and_then(|all| ready_id(all, kind));
        if let Some(id) = ready.or_else(|| self.noted(target)) {
            let (key, value) = note(target, id);
            self.plan.uses.insert(key, value);
            return Ok(id.into());
        }
        match found.as_deref() {
            None => Err(Obstacle::Missing(format!("waiting to read {noun} {name}"))),
            Some([]) => Err(self.explain(target)),
            Some(_) => Err(Obstacle::Missing(format!(
                "waiting for {noun} {name} to be active"
            ))),
        }
    }

    /// The managed resources of a kind that were made for another SECA resource. `None` until
    /// they were looked for where they must be.
    pub(super) fn managed_for(
        &mut self,
        kind: &ManagedKind,
        target: &Resolved,
    ) -> Option<Vec<&'a Value>> {
        let home = match target.kind.scope {
            Scope::Cluster => Home::Known(SYSTEM_NAMESPACE.into()),
            Scope::Tenant | Scope::Workspace | Scope::Network => {
                self.home(&target.tenant, target.workspace.as_deref())
            }
        };
        let (namespace, counts) = match home {
            Home::Known(namespace) => (namespace, true),
            Home::Likely(namespace) => (namespace, false),
            Home::Unknown => return None,
            Home::Nowhere => return Some(Vec::new()),
        };
        // The namespace says whose they are.
        let whose = Owner {
            network: target.network.clone(),
            ..Owner::default()
        };
        let key = format!(
            "{}-{}",
            target.kind.seca_kind,
            names::hash8(&target.to_string())
        );
        let wanted = labels(target.kind, &whose, &target.name);
        let found = self
            .needs
            .by_labels(&key, &kind.gvk(), Some(&namespace), wanted);
        found.filter(|_| counts)
    }

    /// The id that was in use of a resource.
    fn noted(&self, target: &Resolved) -> Option<&'a str> {
        let (key, mine) = note(target, "");
        self.observed
            .values()
            .find_map(|o| object::annotation(o, &key)?.strip_prefix(&mine))
            .filter(|id| !id.is_empty())
    }

    /// Whether a resource without managed resource is missing or only not that far.
    pub(super) fn explain(&mut self, target: &Resolved) -> Obstacle {
        let (noun, name) = (target.kind.noun, &target.name);
        let namespace = match target.kind.scope {
            Scope::Cluster => None,
            // What is in a network may have any object name.
            Scope::Network => {
                return Obstacle::Missing(format!(
                    "waiting for {noun} {name} to exist and to be active"
                ));
            }
            Scope::Tenant | Scope::Workspace => {
                match self.home(&target.tenant, target.workspace.as_deref()) {
                    Home::Known(namespace) => Some(namespace),
                    Home::Likely(_) | Home::Unknown => {
                        return Obstacle::Missing(format!("waiting to read {noun} {name}"));
                    }
                    Home::Nowhere => {
                        return Obstacle::Missing(format!("waiting for {noun} {name} to exist"));
                    }
                }
            }
        };
        let found = self.needs.by_name(
            &format!("{}-itself", target.kind.seca_kind),
            &target.kind.gvk(),
            namespace.as_deref(),
            &ecp_xrds::object_name(target.kind, name),
        );
        Obstacle::Missing(match found {
            Found::Missing => format!("waiting for {noun} {name} to exist"),
            Found::Object(_) | Found::Unknown => {
                format!("waiting for {noun} {name} to be active")
            }
        })
    }
}

/// The annotation that notes that an id is used of a resource. The key tells resources apart, and
/// the value is for people.
fn note(target: &Resolved, id: &str) -> (String, String) {
    let info = target.kind;
    let hash = names::hash8(&target.to_string());
    (
        format!("{}{}-{hash}", managed::USES_PREFIX, info.seca_kind),
        format!("{}/{}#{id}", info.collection, target.name),
    )
}

fn ready_id<'a>(all: &[&'a Value], kind: &ManagedKind) -> Option<&'a str> {
    all.iter()
        .filter(|o| kind.is(o) && !object::is_deleting(o) && condition::is_true(o, "Ready"))
        .find_map(|o| managed::external_name(o))
}
