//! Finding what a resource depends on.

use std::collections::BTreeMap;

use ecp_meta::gvk::GroupVersionKind;
use ecp_meta::{condition, keys, names, object};
use ecp_xrds::reference::{self, Resolved};
use ecp_xrds::{CloudRef, KindInfo, Reference, Scope, StorageSkuSpec};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Inputs, Plan, Wait};
use crate::clouds::{self, Cloud, Region};
use crate::limits::NAMES_LISTED_MAX;
use crate::managed::{self, ManagedKind};
use crate::needs::Found;
use crate::numbers::whole;

/// Whose resource it is. Both are empty for cluster-scoped kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) tenant: String,
    pub(crate) workspace: Option<String>,
}

impl Owner {
    fn place(&self) -> reference::Place {
        reference::Place {
            tenant: self.tenant.clone(),
            workspace: self.workspace.clone(),
            network: None,
        }
    }
}

/// Labels of the managed resources of a SECA resource.
pub(crate) fn labels(
    kind: &KindInfo,
    tenant: Option<&str>,
    workspace: Option<&str>,
    name: &str,
) -> BTreeMap<String, String> {
    let pairs = [
        (keys::TENANT, tenant),
        (keys::WORKSPACE, workspace),
        (keys::KIND, Some(kind.seca_kind)),
        (keys::NAME, Some(name)),
    ];
    pairs
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), names::label_value(value?))))
        .collect()
}

/// Whose the XR is, from its namespace.
pub(crate) fn owner(inputs: &mut Inputs<'_, '_>) -> Result<Owner, Wait> {
    let Some(namespace) = inputs.xr.namespace else {
        return Ok(Owner::default());
    };
    let gvk = GroupVersionKind::new("", "v1", "Namespace");
    let found = match inputs.needs.by_name("namespace", &gvk, None, namespace) {
        Found::Object(found) => found,
        Found::Missing => return Err(Wait(format!("waiting for namespace {namespace} to exist"))),
        Found::Unknown => return Err(Wait(format!("waiting to read namespace {namespace}"))),
    };
    if object::is_deleting(found) {
        return Err(Wait(format!("namespace {namespace} is being deleted")));
    }
    let whole = |annotation, label| {
        object::annotation(found, annotation)
            .or_else(|| object::label(found, label))
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
    };
    let noun = inputs.xr.info.noun;
    let tenant = whole(keys::TENANT_NAME, keys::TENANT).ok_or_else(|| {
        Wait(format!(
            "waiting for namespace {namespace} to be a tenant's: it has no label {}",
            keys::TENANT
        ))
    })?;
    let workspace = whole(keys::WORKSPACE_NAME, keys::WORKSPACE);
    match (inputs.xr.info.scope, workspace) {
        (Scope::Workspace | Scope::Network, None) => Err(Wait(format!(
            "namespace {namespace} is of no workspace, where every {noun} belongs: it has no \
             label {}",
            keys::WORKSPACE
        ))),
        (Scope::Tenant, Some(workspace)) => Err(Wait(format!(
            "namespace {namespace} is of workspace {workspace}, but every {noun} belongs in the \
             namespace of a tenant"
        ))),
        (_, workspace) => Ok(Owner { tenant, workspace }),
    }
}

/// A field of an object's `spec`, typed.
pub(crate) fn typed<T: DeserializeOwned>(object: &Value, what: &str) -> Result<T, Wait> {
    let spec = object.get("spec").map(whole).unwrap_or_default();
    serde_json::from_value(spec).map_err(|e| Wait(format!("{what} cannot be read: {e}")))
}

/// A region, and the cloud it is in.
pub(crate) type Placed = (Region, &'static dyn Cloud);

/// The regions that a catalogue entry is offered in: that of `spec.region`, else all of them.
pub(crate) fn regions(inputs: &mut Inputs<'_, '_>) -> Result<Vec<Result<Placed, Wait>>, Wait> {
    if inputs.xr.spec_str("region").is_some() {
        return Ok(vec![region(inputs)]);
    }
    let mut all = all_regions(inputs)?;
    if all.is_empty() {
        return Err(Wait("waiting for a region to exist".into()));
    }
    all.sort_by_key(|region| ecp_xrds::seca_name(region));
    let pinned = inputs.pinned;
    Ok(all.into_iter().map(|r| region_of(r, pinned)).collect())
}

fn all_regions<'a>(inputs: &mut Inputs<'a, '_>) -> Result<Vec<&'a Value>, Wait> {
    inputs
        .needs
        .by_labels("regions", &kind("Region")?.gvk(), BTreeMap::new())
        .ok_or_else(|| Wait("waiting to read the regions".into()))
}

/// The region of the XR: that of `spec.region`, else the only one.
pub(crate) fn region(inputs: &mut Inputs<'_, '_>) -> Result<Placed, Wait> {
    let info = kind("Region")?;
    let found = match inputs.xr.spec_str("region") {
        Some(name) => match inputs.needs.by_name(
            "region",
            &info.gvk(),
            None,
            &ecp_xrds::object_name(info, name),
        ) {
            Found::Object(found) => found,
            Found::Missing => return Err(Wait(format!("region {name} does not exist"))),
            Found::Unknown => return Err(Wait(format!("waiting to read region {name}"))),
        },
        None => only_region(inputs)?,
    };
    region_of(found, inputs.pinned)
}

fn only_region<'a>(inputs: &mut Inputs<'a, '_>) -> Result<&'a Value, Wait> {
    match all_regions(inputs)?.as_slice() {
        [only] => Ok(only),
        [] => Err(Wait("waiting for a region to exist".into())),
        several => {
            let mut names: Vec<_> = several.iter().map(|r| ecp_xrds::seca_name(r)).collect();
            names.sort_unstable();
            let more = if names.len() > NAMES_LISTED_MAX {
                ", ..."
            } else {
                ""
            };
            names.truncate(NAMES_LISTED_MAX);
            Err(Wait(format!(
                "set spec.region: there is more than one, {}{more}",
                names.join(", ")
            )))
        }
    }
}

/// What a Region object says.
pub(crate) fn region_of(found: &Value, pinned: Option<&str>) -> Result<Placed, Wait> {
    #[derive(serde::Deserialize)]
    struct Spec {
        cloud: CloudRef,
    }
    let name = ecp_xrds::seca_name(found);
    let Spec { cloud: of } = typed(found, &format!("region {name}"))?;
    if let Some(pinned) = pinned
        && pinned != of.name
    {
        return Err(Wait(format!(
            "region {name} is in cloud {}, but the Composition is for cloud {pinned}",
            of.name
        )));
    }
    let cloud = clouds::by_name(&of.name).ok_or_else(|| {
        let known: Vec<_> = clouds::names().collect();
        Wait(format!(
            "region {name} is in cloud {}, which is not supported (only {})",
            of.name,
            known.join(", ")
        ))
    })?;
    let region = Region {
        name: name.into(),
        location: of.location,
        config: of.provider_config_ref,
    };
    Ok((region, cloud))
}

/// A storage SKU that is offered in a region.
pub(crate) fn storage_sku(
    inputs: &mut Inputs<'_, '_>,
    reference: &Reference,
    region: Option<&Region>,
) -> Result<(Resolved, StorageSkuSpec), Wait> {
    let info = kind("StorageSKU")?;
    // Every tenant sees the same SKUs, so it does not matter whose they are said to be.
    let sku = resolve(reference, info, &Owner::default(), "spec.skuRef")?;
    let name = &sku.name;
    let object_name = ecp_xrds::object_name(info, name);
    let found = match inputs
        .needs
        .by_name("storage-sku", &info.gvk(), None, &object_name)
    {
        Found::Object(found) if ecp_xrds::seca_name(found) == *name => found,
        Found::Object(_) | Found::Missing => {
            return Err(Wait(format!("storage SKU {name} does not exist")));
        }
        Found::Unknown => return Err(Wait(format!("waiting to read storage SKU {name}"))),
    };
    let offered = found.get("spec").and_then(|s| s.get("region"));
    if let (Some(offered), Some(region)) = (offered.and_then(Value::as_str), region)
        && offered != region.name
    {
        return Err(Wait(format!(
            "storage SKU {name} is offered in region {offered}, not in {}",
            region.name
        )));
    }
    let spec = typed(found, &format!("storage SKU {name}"))?;
    Ok((sku, spec))
}

/// What a reference in a field of the XR means.
pub(crate) fn resolve(
    reference: &Reference,
    kind: &'static KindInfo,
    owner: &Owner,
    field: &str,
) -> Result<Resolved, Wait> {
    let resolved = reference::resolve(reference, kind, &owner.place())
        .map_err(|e| Wait(format!("{field}: {e}")))?;
    // Catalogues are everybody's; all else is its tenant's alone.
    if kind.scope != Scope::Cluster && resolved.tenant != owner.tenant {
        return Err(Wait(format!(
            "{field}: resources of another tenant cannot be used"
        )));
    }
    Ok(resolved)
}

/// The cloud's id of another SECA resource: the external name of its managed resource, once that
/// is ready.
///
/// The id in use is noted on the managed resources of the plan. So a resource that exists keeps
/// it when what it was made from is gone or not ready, until it refers to something else.
pub(crate) fn cloud_id(
    inputs: &mut Inputs<'_, '_>,
    plan: &mut Plan,
    (region, cloud): (&Region, &'static dyn Cloud),
    target: &Resolved,
) -> Result<String, Wait> {
    let info = target.kind;
    let (noun, name) = (info.noun, &target.name);
    let Some(kind) = cloud.identity(info) else {
        return Err(Wait(format!("cloud {} has no {noun}", cloud.name())));
    };
    let wanted = match info.scope {
        Scope::Cluster => {
            let mut wanted = labels(info, None, None, name);
            wanted.insert(keys::REGION.into(), names::label_value(&region.name));
            wanted
        }
        Scope::Tenant | Scope::Workspace | Scope::Network => {
            let workspace = target.workspace.as_deref();
            labels(info, Some(&target.tenant), workspace, name)
        }
    };
    let key = format!("{}-managed", info.seca_kind);
    let found = inputs.needs.by_labels(&key, &kind.gvk(), wanted);
    let ready = found.as_deref().and_then(|all| ready_id(all, kind));
    let note = format!("{}{}", managed::USES_PREFIX, info.seca_kind);
    let used = || {
        let noted = inputs
            .observed
            .values()
            .find_map(|o| object::annotation(o, &note))?;
        let (urn, id) = noted.split_once('#')?;
        (urn == target.to_string()).then_some(id)
    };
    if let Some(id) = ready.or_else(used) {
        plan.uses.insert(note, format!("{target}#{id}"));
        return Ok(id.into());
    }
    match found.as_deref() {
        None => Err(Wait(format!("waiting to read {noun} {name}"))),
        Some([]) => Err(explain_missing(inputs, target)),
        Some(_) => Err(Wait(format!("waiting for {noun} {name} to be active"))),
    }
}

fn ready_id<'a>(all: &[&'a Value], kind: &ManagedKind) -> Option<&'a str> {
    all.iter()
        .filter(|o| kind.is(o) && !object::is_deleting(o) && condition::is_true(o, "Ready"))
        .find_map(|o| managed::external_name(o))
}

/// Whether a resource without managed resource is missing or only not that far.
fn explain_missing(inputs: &mut Inputs<'_, '_>, target: &Resolved) -> Wait {
    let (noun, name) = (target.kind.noun, &target.name);
    let namespace = match (target.kind.scope, &target.workspace) {
        (Scope::Cluster, _) => None,
        (_, Some(workspace)) => Some(names::workspace_namespace(&target.tenant, workspace)),
        (_, None) => Some(names::tenant_namespace(&target.tenant)),
    };
    let found = inputs.needs.by_name(
        target.kind.seca_kind,
        &target.kind.gvk(),
        namespace.as_deref(),
        &ecp_xrds::object_name(target.kind, name),
    );
    Wait(match found {
        Found::Missing => format!("waiting for {noun} {name} to exist"),
        Found::Object(_) | Found::Unknown => format!("waiting for {noun} {name} to be active"),
    })
}

/// A kind of the table.
pub(crate) fn kind(kind: &str) -> Result<&'static KindInfo, Wait> {
    ecp_xrds::by_kind(kind).ok_or_else(|| Wait(format!("{kind} is not supported yet")))
}
