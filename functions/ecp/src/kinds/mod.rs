//! Each SECA kind: what it depends on, and the plan for its cloud.

mod catalogue;
mod resolve;
mod storage;
mod workspace;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::clouds::{self, Cloud, Observed};
use crate::managed::{Managed, ManagedKind};
use crate::needs::Needs;
use crate::xr::Xr;

pub(crate) use resolve::{Owner, labels, owner};

/// Everything that a plan is made from.
#[derive(Debug)]
pub(crate) struct Inputs<'a, 'n> {
    pub(crate) xr: Xr<'a>,
    pub(crate) needs: &'n mut Needs<'a>,
    pub(crate) observed: &'n Observed<'a>,
    /// The cloud that the Composition is for; `None` for that of the region.
    pub(crate) pinned: Option<&'a str>,
}

/// What a resource needs.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Managed resources. Not all of them, if it waits.
    pub(crate) managed: Vec<Managed>,
    /// Annotations that note which other resources are used.
    pub(crate) uses: BTreeMap<String, String>,
    /// What it waits for before the rest can be wanted.
    pub(crate) waiting: Option<Wait>,
    /// Cloud of the region.
    pub(crate) cloud: Option<&'static dyn Cloud>,
}

/// Something a resource depends on is not there, in words for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wait(pub(crate) String);

/// The plan for an XR. Each kind asks at once for all it can, also while its owner is not known
/// yet, since every round of asking costs a call.
pub(crate) fn plan(inputs: &mut Inputs<'_, '_>, owner: &Result<Owner, Wait>) -> Plan {
    let mut plan = Plan::default();
    let outcome = match inputs.xr.info.kind {
        "Region" => catalogue::region(inputs, &mut plan),
        "StorageSKU" => catalogue::storage_sku(inputs, &mut plan),
        "Workspace" => workspace::workspace(inputs, owner, &mut plan),
        "BlockStorage" => storage::block_storage(inputs, owner, &mut plan),
        "Image" => storage::image(inputs, owner, &mut plan),
        other => Err(Wait(format!("{other} is not supported yet"))),
    };
    plan.waiting = outcome.err();
    plan
}

/// The status fields that only this kind has.
pub(crate) fn facts(xr: &Xr<'_>, plan: &Plan, observed: &Observed<'_>) -> Map<String, Value> {
    // Without a plan, the cloud is still that of what is there.
    let cloud = plan.cloud.or_else(|| clouds::of(observed));
    let mut facts = cloud
        .map(|cloud| cloud.facts(xr.info, observed))
        .unwrap_or_default();
    if xr.info.kind == "Workspace" {
        facts.extend(workspace::facts(observed));
    }
    facts
}

/// Every kind of managed resource the function makes.
pub(crate) fn managed_kinds() -> impl Iterator<Item = &'static ManagedKind> {
    clouds::managed_kinds().chain([&workspace::NAMESPACE])
}
