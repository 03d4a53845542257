//! What a resource refers to: SKUs, and the cloud's ids of other resources.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use ecp_meta::{condition, keys, names, object};
use ecp_xrds::reference::{self, Parsed, Resolved};
use ecp_xrds::{KindInfo, RefField, Reference, Scope};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::place::Home;
use super::{Draft, Obstacle, Owner, Site, kind, typed};
use crate::limits::LOOKUPS_MAX;
use crate::managed::{self, ManagedKind};
use crate::needs::Found;
use crate::xr::SYSTEM_NAMESPACE;

/// A SKU that a resource refers to.
#[derive(Clone, Debug)]
pub(super) struct Sku<T> {
    pub(super) name: String,
    pub(super) spec: T,
}

/// What a reference leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// Nothing: it is empty.
    Nothing,
    /// A text that is no resource.
    Text(String),
    /// A resource, with the cloud's id.
    Id(&'static KindInfo, String),
    /// Something that is not there, but is not waited for.
    Lacking(String),
}

impl Link {
    /// The cloud's id, if it is there.
    pub(super) fn id(self) -> Option<String> {
        match self {
            Self::Id(_, id) => Some(id),
            Self::Nothing | Self::Text(_) | Self::Lacking(_) => None,
        }
    }
}

/// What a reference means.
enum Target {
    Nothing,
    Text(String),
    Resource(Resolved),
    /// Nothing that the field can refer to, but nothing waits for it either.
    Odd(String),
}

/// Resources of one kind in one namespace.
type Shelf = (&'static str, String, Option<String>);

/// Managed resources by network and name of whom they are for.
type Index<'a> = BTreeMap<(String, String), Vec<&'a Value>>;

fn shelf(target: &Resolved) -> Shelf {
    (
        target.kind.kind,
        target.tenant.clone(),
        target.workspace.clone(),
    )
}

fn named(target: &Resolved) -> (String, String) {
    let network = target.network.as_deref().map(names::label_value);
    (
        network.unwrap_or_default(),
        names::label_value(&target.name),
    )
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
        of: &str,
        site: &Site,
    ) -> Result<Sku<T>, Obstacle> {
        let info = kind(of)?;
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

    /// The cloud's id of what a field refers to, or none if that is not waited for.
    pub(super) fn link(
        &mut self,
        path: &str,
        reference: &Reference,
        site: &Site,
    ) -> Result<Option<String>, Obstacle> {
        let links = self.links(path, std::slice::from_ref(reference), site)?;
        Ok(links.into_iter().find_map(Link::id))
    }

    /// As [`Draft::link`], of a field that may be left out.
    pub(super) fn maybe_link(
        &mut self,
        path: &str,
        reference: Option<&Reference>,
        site: &Site,
    ) -> Result<Option<String>, Obstacle> {
        match reference {
            Some(reference) => self.link(path, reference, site),
            None => Ok(None),
        }
    }

    /// What a field refers to that must be there.
    pub(super) fn must_link(
        &mut self,
        path: &str,
        reference: &Reference,
        site: &Site,
    ) -> Result<String, Obstacle> {
        let id = self.link(path, reference, site)?;
        id.ok_or_else(|| Obstacle::Missing(format!("waiting for spec.{path} to be active")))
    }

    /// What the references of one field lead to, in their order. All are asked for before the
    /// first one that is missing is an obstacle.
    pub(super) fn links(
        &mut self,
        path: &str,
        references: &[Reference],
        site: &Site,
    ) -> Result<Vec<Link>, Obstacle> {
        let field = self.field(path)?;
        let targets: Vec<_> = references
            .iter()
            .map(|reference| self.target(field, reference))
            .collect();
        let mut counts = BTreeMap::new();
        for target in &targets {
            if let Ok(Target::Resource(target)) = target {
                *counts.entry(shelf(target)).or_insert(0_usize) += 1;
            }
        }
        let mut shelves = BTreeMap::new();
        let asked: Vec<_> = targets
            .into_iter()
            .map(|target| {
                let target = target?;
                let Target::Resource(resource) = &target else {
                    return Ok((target, None));
                };
                let many = counts.get(&shelf(resource)).copied() > Some(LOOKUPS_MAX);
                let id = if many {
                    self.id_among(&mut shelves, resource, site, !field.soft)
                } else {
                    self.find_id(resource, site, !field.soft)
                };
                Ok((target, Some(id)))
            })
            .collect();
        asked
            .into_iter()
            .map(|asked| {
                let (target, id) = asked?;
                self.settle(field, target, id)
            })
            .collect()
    }

    fn field(&self, path: &str) -> Result<&'static RefField, Obstacle> {
        let mut all = self.xr.info.references.iter();
        all.find(|field| field.path == path)
            .ok_or_else(|| Obstacle::Refused(format!("spec.{path} is no reference")))
    }

    /// What a reference in a field of the XR means.
    fn target(&self, field: &RefField, reference: &Reference) -> Result<Target, Obstacle> {
        let owner = self.owner.as_ref().map_err(Clone::clone)?;
        let path = field.path;
        match Parsed::parse(&reference.resource).target {
            reference::Target::Empty if field.empty => return Ok(Target::Nothing),
            reference::Target::Text(text) if field.text => return Ok(Target::Text(text)),
            reference::Target::Empty
            | reference::Target::Text(_)
            | reference::Target::Named { .. } => {}
        }
        let mut wrong = None;
        for of in field.to {
            match reference::resolve(reference, kind(of)?, &owner.place()) {
                // Catalogues are everybody's; all else is its tenant's alone.
                Ok(found) if found.kind.namespaced() && found.tenant != owner.tenant => {
                    return Err(Obstacle::Refused(format!(
                        "spec.{path}: resources of another tenant cannot be used"
                    )));
                }
                Ok(found) => return Ok(Target::Resource(found)),
                Err(why) => wrong = wrong.or(Some(why)),
            }
        }
        let why = wrong.map(|why| why.to_string()).unwrap_or_default();
        if field.soft || self.is_deferred(path) {
            Ok(Target::Odd(why))
        } else {
            Err(Obstacle::Refused(format!("spec.{path}: {why}")))
        }
    }

    /// What comes of a reference: of one that nothing waits for, no obstacle.
    fn settle(
        &mut self,
        field: &RefField,
        target: Target,
        id: Option<Result<Option<String>, Obstacle>>,
    ) -> Result<Link, Obstacle> {
        let target = match target {
            Target::Nothing => return Ok(Link::Nothing),
            Target::Text(text) => return Ok(Link::Text(text)),
            Target::Odd(why) => return Ok(self.lacking(field.path, why)),
            Target::Resource(target) => target,
        };
        let kind = target.kind;
        match id.unwrap_or(Ok(None)) {
            Ok(Some(id)) => Ok(Link::Id(kind, id)),
            Ok(None) | Err(Obstacle::Missing(_)) if field.soft || self.is_deferred(field.path) => {
                let why = format!("{} {} is not active", kind.noun, target.name);
                Ok(self.lacking(field.path, why))
            }
            Ok(None) => Err(self.explain(&target)),
            Err(why) => Err(why),
        }
    }

    fn lacking(&mut self, path: &str, why: String) -> Link {
        self.plan
            .lacking
            .push(format!("spec.{path}: {why}, so it has no effect"));
        Link::Lacking(why)
    }

    /// Whether the field's missing target was accepted, and so is not waited for.
    fn is_deferred(&self, path: &str) -> bool {
        object::annotation(self.xr.object, keys::DEFERRED_REFERENCES)
            .is_some_and(|paths| paths.split(',').any(|deferred| deferred.trim() == path))
    }

    /// The cloud's id of another SECA resource: the external name of its managed resource, once
    /// that is ready.
    ///
    /// The id in use is noted on the managed resources of the plan. So a resource that exists
    /// keeps it when what it was made from is gone or not ready, until it refers to something
    /// else.
    pub(super) fn id(&mut self, target: &Resolved, site: &Site) -> Result<String, Obstacle> {
        match self.find_id(target, site, true)? {
            Some(id) => Ok(id),
            None => Err(self.explain(target)),
        }
    }

    /// As [`Draft::id`], or none if there is no such resource; `keep` says whether the id is kept
    /// then.
    fn find_id(
        &mut self,
        target: &Resolved,
        site: &Site,
        keep: bool,
    ) -> Result<Option<String>, Obstacle> {
        let kind = identity(target, site)?;
        let found = self.managed_for(kind, target);
        self.pick(kind, target, site, keep, found.as_deref())
    }

    /// As [`Draft::find_id`], out of all resources of the kind.
    fn id_among(
        &mut self,
        shelves: &mut BTreeMap<Shelf, Option<Index<'a>>>,
        target: &Resolved,
        site: &Site,
        keep: bool,
    ) -> Result<Option<String>, Obstacle> {
        let kind = identity(target, site)?;
        let index = match shelves.entry(shelf(target)) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(free) => free.insert(self.managed_index(kind, target)),
        };
        let whose = named(target);
        let found = index
            .as_ref()
            .map(|index| index.get(&whose).map(Vec::as_slice).unwrap_or_default());
        self.pick(kind, target, site, keep, found)
    }

    /// The id that counts, of the managed resources found; `None` if there are none.
    fn pick(
        &mut self,
        kind: &ManagedKind,
        target: &Resolved,
        site: &Site,
        keep: bool,
        found: Option<&[&'a Value]>,
    ) -> Result<Option<String>, Obstacle> {
        let info = target.kind;
        let (noun, name) = (info.noun, &target.name);
        let mut here: Option<Vec<&Value>> = found.map(<[_]>::to_vec);
        if info.scope == Scope::Cluster {
            let region = names::label_value(&site.region.as_ref().map_err(Clone::clone)?.name);
            if let Some(all) = &mut here {
                all.retain(|o| object::label(o, keys::REGION) == Some(region.as_str()));
            }
        }
        let ready = here.as_deref().and_then(|all| ready_id(all, kind));
        let lives = here
            .as_deref()
            .is_none_or(|all| all.iter().any(|o| !object::is_deleting(o)));
        let noted = || self.noted(target).filter(|_| keep || lives);
        if let Some(id) = ready.or_else(noted) {
            let (key, value) = note(target, id);
            self.plan.uses.insert(key, value);
            return Ok(Some(id.into()));
        }
        match here.as_deref() {
            None => Err(Obstacle::Missing(format!("waiting to read {noun} {name}"))),
            Some([]) => Ok(None),
            Some(_) => Err(Obstacle::Missing(format!(
                "waiting for {noun} {name} to be active"
            ))),
        }
    }

    /// All managed resources of a kind where those of a resource must be, by whom they are for.
    fn managed_index(&mut self, kind: &ManagedKind, target: &Resolved) -> Option<Index<'a>> {
        let (namespace, counts) = self.namespace_of(target)?;
        if namespace.is_empty() {
            return Some(Index::new());
        }
        let key = format!("{}-all-{}", target.kind.seca_kind, names::hash8(&namespace));
        let wanted = BTreeMap::from([(keys::KIND.to_owned(), target.kind.seca_kind.to_owned())]);
        let found = self
            .needs
            .by_labels(&key, &kind.gvk(), Some(&namespace), wanted)
            .filter(|_| counts)?;
        let mut index = Index::new();
        for object in found {
            let label = |key| object::label(object, key).unwrap_or_default().to_owned();
            let whose = (label(keys::NETWORK), label(keys::NAME));
            index.entry(whose).or_default().push(object);
        }
        Some(index)
    }

    /// Where the managed resources of a resource must be, and whether what is found there counts
    /// already. An empty name is nowhere.
    fn namespace_of(&mut self, target: &Resolved) -> Option<(String, bool)> {
        if target.kind.scope == Scope::Cluster {
            return Some((SYSTEM_NAMESPACE.into(), true));
        }
        match self.home(&target.tenant, target.workspace.as_deref()) {
            Home::Known(namespace) => Some((namespace, true)),
            Home::Likely(namespace) => Some((namespace, false)),
            Home::Unknown => None,
            Home::Nowhere => Some((String::new(), true)),
        }
    }

    /// The managed resources of a kind that were made for another SECA resource. `None` until
    /// they were looked for where they must be.
    pub(super) fn managed_for(
        &mut self,
        kind: &ManagedKind,
        target: &Resolved,
    ) -> Option<Vec<&'a Value>> {
        let (namespace, counts) = self.namespace_of(target)?;
        if namespace.is_empty() {
            return Some(Vec::new());
        }
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
        self.needs
            .by_labels(&key, &kind.gvk(), Some(&namespace), wanted)
            .filter(|_| counts)
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
        // What is in a network may have any object name.
        if target.kind.scope == Scope::Network {
            return Obstacle::Missing(format!(
                "waiting for {noun} {name} to exist and to be active"
            ));
        }
        Obstacle::Missing(match self.itself(target) {
            Found::Missing => format!("waiting for {noun} {name} to exist"),
            Found::Object(found) if object::is_deleting(found) => {
                format!("{noun} {name} is being deleted")
            }
            Found::Object(_) => format!("waiting for {noun} {name} to be active"),
            Found::Unknown => format!("waiting to read {noun} {name}"),
        })
    }

    /// A resource that is not in a network, as its user wrote it.
    pub(super) fn itself(&mut self, target: &Resolved) -> Found<'a> {
        let namespace = match target.kind.scope {
            Scope::Cluster => None,
            Scope::Tenant | Scope::Workspace | Scope::Network => {
                match self.home(&target.tenant, target.workspace.as_deref()) {
                    Home::Known(namespace) => Some(namespace),
                    Home::Likely(_) | Home::Unknown => return Found::Unknown,
                    Home::Nowhere => return Found::Missing,
                }
            }
        };
        let hash = names::hash8(&target.to_string());
        self.needs.by_name(
            &format!("{}-itself-{hash}", target.kind.seca_kind),
            &target.kind.gvk(),
            namespace.as_deref(),
            &ecp_xrds::object_name(target.kind, &target.name),
        )
    }
}

/// The kind of managed resource that has the id of a resource.
fn identity(target: &Resolved, site: &Site) -> Result<&'static ManagedKind, Obstacle> {
    let cloud = site.cloud.clone()?;
    cloud.identity(target.kind).ok_or_else(|| {
        let noun = target.kind.noun;
        Obstacle::Missing(format!("cloud {} has no {noun}", cloud.name()))
    })
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
