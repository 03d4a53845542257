//! Where a resource is: whose it is, which namespaces belong to them, and which region it is in.

use std::collections::BTreeMap;

use ecp_meta::gvk::GroupVersionKind;
use ecp_meta::{keys, names, object};
use ecp_xrds::reference::{self, Resolved};
use ecp_xrds::{CloudRef, Scope};
use serde_json::Value;

use super::{Draft, Obstacle, kind, typed};
use crate::clouds::{self, Cloud, Region};
use crate::limits::NAMES_LISTED_MAX;
use crate::needs::Found;

/// Whose resource it is. All is empty for cluster-scoped kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) tenant: String,
    pub(crate) workspace: Option<String>,
    pub(crate) network: Option<String>,
}

impl Owner {
    pub(super) fn place(&self) -> reference::Place {
        reference::Place {
            tenant: self.tenant.clone(),
            workspace: self.workspace.clone(),
            network: self.network.clone(),
        }
    }
}

/// A namespace that belongs to a tenant or workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// It is this one.
    Known(String),
    /// It may be this one: what is found in it counts once that is known.
    Likely(String),
    /// It has not been looked for yet.
    Unknown,
    /// There is none.
    Nowhere,
}

/// The region that a resource is in, and its cloud, which may be known earlier.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) region: Result<Region, Obstacle>,
    pub(crate) cloud: Result<&'static dyn Cloud, Obstacle>,
}

/// A region, and the cloud it is in.
pub(super) type Placed = (Region, &'static dyn Cloud);

impl Site {
    fn nowhere(why: Obstacle) -> Self {
        Self {
            region: Err(why.clone()),
            cloud: Err(why),
        }
    }

    /// Region and cloud, once both are known.
    pub(crate) fn placed(&self) -> Result<Placed, Obstacle> {
        Ok((self.region.clone()?, self.cloud.clone()?))
    }
}

impl<'a> Draft<'a, '_> {
    /// Whose the XR is, from its namespace.
    pub(super) fn find_owner(&mut self) -> Result<Owner, Obstacle> {
        let Some(namespace) = self.xr.namespace else {
            return Ok(Owner::default());
        };
        let missing = |why| Err(Obstacle::Missing(why));
        let found = match self
            .needs
            .by_name("namespace", &namespace_kind(), None, namespace)
        {
            Found::Object(found) => found,
            Found::Missing => {
                return missing(format!("waiting for namespace {namespace} to exist"));
            }
            Found::Unknown => return missing(format!("waiting to read namespace {namespace}")),
        };
        if object::is_deleting(found) {
            return missing(format!("namespace {namespace} is being deleted"));
        }
        let noun = self.xr.info.noun;
        match (self.xr.info.scope, whose(found)) {
            (_, (None, _)) => missing(format!(
                "waiting for namespace {namespace} to be a tenant's: it has no label {}",
                keys::TENANT
            )),
            (Scope::Workspace | Scope::Network, (_, None)) => missing(format!(
                "namespace {namespace} is of no workspace, where every {noun} belongs: it has no \
                 label {}",
                keys::WORKSPACE
            )),
            (Scope::Tenant, (_, Some(workspace))) => missing(format!(
                "namespace {namespace} is of workspace {workspace}, but every {noun} belongs in \
                 the namespace of a tenant"
            )),
            (_, (Some(tenant), workspace)) => Ok(Owner {
                tenant: tenant.into(),
                workspace: workspace.map(Into::into),
                network: self.xr.network.map(Into::into),
            }),
        }
    }

    /// The namespace where a tenant's or a workspace's objects are. Nobody but who may label
    /// namespaces can make one, so what is found elsewhere is not theirs, whatever it says.
    ///
    /// The namespace that we would make is tried first, since asking for a name is cheap; others
    /// are found by their labels.
    pub(super) fn home(&mut self, tenant: &str, workspace: Option<&str>) -> Home {
        let own = self.owner.as_ref().ok();
        if let (Some(own), Some(namespace)) = (own, self.xr.namespace)
            && (own.tenant.as_str(), own.workspace.as_deref()) == (tenant, workspace)
        {
            return Home::Known(namespace.into());
        }
        let (name, mut wanted) = match workspace {
            Some(workspace) => (
                names::workspace_namespace(tenant, workspace),
                BTreeMap::from([(keys::WORKSPACE.to_owned(), names::label_value(workspace))]),
            ),
            None => (names::tenant_namespace(tenant), BTreeMap::new()),
        };
        wanted.insert(keys::TENANT.into(), names::label_value(tenant));
        let theirs = |o: &Value| whose(o) == (Some(tenant), workspace);
        let key = format!("namespace-{name}");
        match self.needs.by_name(&key, &namespace_kind(), None, &name) {
            Found::Unknown => return Home::Likely(name),
            Found::Object(found) if theirs(found) => return Home::Known(name),
            Found::Object(_) | Found::Missing => {}
        }
        let key = format!("namespaces-like-{name}");
        let Some(found) = self.needs.by_labels(&key, &namespace_kind(), None, wanted) else {
            return Home::Unknown;
        };
        found
            .into_iter()
            .filter(|o| theirs(o))
            .map(object::name)
            .min()
            .map_or(Home::Nowhere, |name| Home::Known(name.into()))
    }

    /// Where the resource is: in the region of `spec.region`, else where what was made for it is,
    /// else in that of its workspace, else in the only one.
    pub(super) fn site(&mut self) -> Site {
        if let Some(name) = self.xr.spec_str("region") {
            let placed = self.region_named(name);
            return Site {
                cloud: placed.as_ref().map(|(_, c)| *c).map_err(Clone::clone),
                region: placed.map(|(region, _)| region),
            };
        }
        let all = match self.all_regions() {
            Ok(all) => all,
            Err(why) => return Site::nowhere(why),
        };
        let pinned = self.pinned;
        let cloud = only_cloud(&all, pinned);
        let labelled = |label: &str| {
            all.iter()
                .find(|r| names::label_value(ecp_xrds::seca_name(r)) == label)
                .copied()
        };
        let before = self
            .observed
            .values()
            .find_map(|o| object::label(o, keys::REGION))
            .and_then(labelled);
        let found = match (before, self.xr.info.scope) {
            (Some(before), _) => Ok(before),
            (None, Scope::Workspace | Scope::Network) if all.len() > 1 => self
                .workspace_region(&cloud)
                .and_then(|label| match label.as_deref().map(labelled) {
                    Some(Some(region)) => Ok(region),
                    Some(None) => Err(Obstacle::Missing(
                        "waiting for the region of the workspace to exist".into(),
                    )),
                    None => only_region(&all),
                }),
            (None, _) => only_region(&all),
        };
        match found.and_then(|found| region_of(found, pinned)) {
            Ok((region, cloud)) => Site {
                region: Ok(region),
                cloud: Ok(cloud),
            },
            Err(why) => Site {
                region: Err(why),
                cloud,
            },
        }
    }

    /// The label of the region that the cloud's idea of the workspace is in; `None` where the
    /// cloud has no such thing.
    fn workspace_region(
        &mut self,
        cloud: &Result<&'static dyn Cloud, Obstacle>,
    ) -> Result<Option<String>, Obstacle> {
        let workspace = self.workspace()?;
        let Some(kind) = cloud.clone()?.identity(workspace.kind) else {
            return Ok(None);
        };
        let found = self.managed_for(kind, &workspace).unwrap_or_default();
        match found.iter().find_map(|o| object::label(o, keys::REGION)) {
            Some(label) => Ok(Some(label.into())),
            None => Err(self.explain(&workspace)),
        }
    }

    /// The workspace that the resource is in, as if referred to.
    pub(super) fn workspace(&self) -> Result<Resolved, Obstacle> {
        let owner = self.owner.as_ref().map_err(Clone::clone)?;
        Ok(Resolved {
            kind: kind("Workspace")?,
            tenant: owner.tenant.clone(),
            workspace: None,
            network: None,
            region: None,
            name: owner
                .workspace
                .clone()
                .ok_or_else(|| Obstacle::Missing("waiting for the workspace to be known".into()))?,
        })
    }

    /// The cloud's id of the workspace that the resource is in. The outer error is that it is in
    /// none.
    pub(super) fn workspace_id(
        &mut self,
        site: &Site,
    ) -> Result<Result<String, Obstacle>, Obstacle> {
        let workspace = self.workspace()?;
        Ok(self.id(&workspace, site))
    }

    /// The regions that a catalogue entry is offered in: that of `spec.region`, else all of them.
    pub(super) fn regions(&mut self) -> Result<Vec<Result<Placed, Obstacle>>, Obstacle> {
        if let Some(name) = self.xr.spec_str("region") {
            return Ok(vec![self.region_named(name)]);
        }
        let mut all = self.all_regions()?;
        if all.is_empty() {
            return Err(Obstacle::Missing("waiting for a region to exist".into()));
        }
        all.sort_by_key(|region| ecp_xrds::seca_name(region));
        let pinned = self.pinned;
        Ok(all.into_iter().map(|r| region_of(r, pinned)).collect())
    }

    fn all_regions(&mut self) -> Result<Vec<&'a Value>, Obstacle> {
        self.needs
            .by_labels("regions", &kind("Region")?.gvk(), None, BTreeMap::new())
            .ok_or_else(|| Obstacle::Missing("waiting to read the regions".into()))
    }

    fn region_named(&mut self, name: &str) -> Result<Placed, Obstacle> {
        let info = kind("Region")?;
        let object = ecp_xrds::object_name(info, name);
        match self.needs.by_name("region", &info.gvk(), None, &object) {
            Found::Object(found) => region_of(found, self.pinned),
            Found::Missing => Err(Obstacle::Missing(format!("region {name} does not exist"))),
            Found::Unknown => Err(Obstacle::Missing(format!("waiting to read region {name}"))),
        }
    }
}

fn namespace_kind() -> GroupVersionKind {
    GroupVersionKind::new("", "v1", "Namespace")
}

/// Tenant and workspace that a namespace belongs to.
fn whose(namespace: &Value) -> (Option<&str>, Option<&str>) {
    let whole = |annotation, label| {
        object::annotation(namespace, annotation)
            .or_else(|| object::label(namespace, label))
            .filter(|name| !name.is_empty())
    };
    (
        whole(keys::TENANT_NAME, keys::TENANT),
        whole(keys::WORKSPACE_NAME, keys::WORKSPACE),
    )
}

/// The cloud of a resource whose region is not known yet: that of all regions.
fn only_cloud(regions: &[&Value], pinned: Option<&str>) -> Result<&'static dyn Cloud, Obstacle> {
    let unknown = || Obstacle::Missing("waiting for the region to be known".into());
    let mut found: Option<&'static dyn Cloud> = None;
    for (_, cloud) in regions.iter().filter_map(|r| region_of(r, pinned).ok()) {
        match found {
            Some(other) if other.name() != cloud.name() => return Err(unknown()),
            Some(_) | None => found = Some(cloud),
        }
    }
    found.ok_or_else(unknown)
}

fn only_region<'a>(all: &[&'a Value]) -> Result<&'a Value, Obstacle> {
    match all {
        [only] => Ok(only),
        [] => Err(Obstacle::Missing("waiting for a region to exist".into())),
        several => {
            let mut names: Vec<_> = several.iter().map(|r| ecp_xrds::seca_name(r)).collect();
            names.sort_unstable();
            let more = if names.len() > NAMES_LISTED_MAX {
                ", ..."
            } else {
                ""
            };
            names.truncate(NAMES_LISTED_MAX);
            Err(Obstacle::Missing(format!(
                "set spec.region: there is more than one, {}{more}",
                names.join(", ")
            )))
        }
    }
}

/// What a Region object says.
pub(super) fn region_of(found: &Value, pinned: Option<&str>) -> Result<Placed, Obstacle> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        cloud: CloudRef,
        #[serde(default)]
        available_zones: Vec<String>,
    }
    let name = ecp_xrds::seca_name(found);
    let spec: Spec = typed(found, &format!("region {name}"))?;
    let of = spec.cloud;
    if let Some(pinned) = pinned
        && pinned != of.name
    {
        return Err(Obstacle::Missing(format!(
            "region {name} is in cloud {}, but the Composition is for cloud {pinned}",
            of.name
        )));
    }
    let cloud = clouds::by_name(&of.name).ok_or_else(|| {
        let known: Vec<_> = clouds::names().collect();
        Obstacle::Missing(format!(
            "region {name} is in cloud {}, which is not supported (only {})",
            of.name,
            known.join(", ")
        ))
    })?;
    let region = Region {
        name: name.into(),
        location: of.location,
        config: of.provider_config_ref,
        zones: spec.available_zones,
    };
    Ok((region, cloud))
}
