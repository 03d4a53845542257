//! Each SECA kind: what it depends on, and the plan for its cloud.

mod authorization;
mod catalogue;
mod compute;
mod facts;
mod network;
mod place;
mod refer;
mod security;
mod storage;
mod workspace;

use std::collections::BTreeMap;

use ecp_meta::{names, object};
use ecp_xrds::{KindInfo, Reference};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::clouds::{self, Cloud, Observed};
use crate::managed::{Managed, ManagedKind};
use crate::needs::{Found, Needs};
use crate::numbers::whole;
use crate::xr::Xr;

pub(crate) use facts::facts;
pub(crate) use place::{Owner, Site};
pub(crate) use refer::labels;

/// A plan in the making, and everything that it is made from.
#[derive(Debug)]
pub(crate) struct Draft<'a, 'n> {
    pub(crate) xr: Xr<'a>,
    pub(crate) needs: &'n mut Needs<'a>,
    pub(crate) observed: &'n Observed<'a>,
    /// The cloud that the Composition is for; `None` for that of the region.
    pub(crate) pinned: Option<&'a str>,
    /// Whose it is.
    pub(crate) owner: Result<Owner, Obstacle>,
    pub(crate) plan: Plan,
}

/// What a resource needs.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Managed resources. Not all of them, if there is an obstacle.
    pub(crate) managed: Vec<Managed>,
    /// Annotations that note which other resources are used.
    pub(crate) uses: BTreeMap<String, String>,
    /// Why the rest cannot be wanted.
    pub(crate) obstacle: Option<Obstacle>,
    /// What has no effect yet, though nothing waits for it.
    pub(crate) lacking: Vec<String>,
    /// Of each part, such as a route, why it has no effect yet; `None` if there is no plan.
    pub(crate) parts: Option<Vec<Option<String>>>,
    /// References that the status tells of, by the cloud's id; `None` if there is no plan.
    pub(crate) linked: Option<Vec<(String, Reference)>>,
    /// Cloud of the region.
    pub(crate) cloud: Option<&'static dyn Cloud>,
}

/// Why a plan is not whole, in words for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// Something it depends on is not there.
    Missing(String),
    /// It makes no sense, and only a change of the resource helps.
    Refused(String),
}

/// The plan for an XR. Each kind asks at once for all it can, also while its owner is not known
/// yet, since every round of asking costs a call.
pub(crate) fn plan<'a>(
    xr: Xr<'a>,
    needs: &mut Needs<'a>,
    observed: &Observed<'a>,
    pinned: Option<&'a str>,
) -> (Result<Owner, Obstacle>, Plan) {
    let mut draft = Draft {
        xr,
        needs,
        observed,
        pinned,
        owner: Ok(Owner::default()),
        plan: Plan::default(),
    };
    let outcome = match xr.misnamed() {
        Some(why) => Err(Obstacle::Refused(why)),
        None => {
            draft.owner = draft.find_owner();
            draft.is_only_one().and_then(|()| draft.fill())
        }
    };
    draft.plan.obstacle = outcome.err();
    (draft.owner, draft.plan)
}

impl Draft<'_, '_> {
    fn fill(&mut self) -> Result<(), Obstacle> {
        match self.xr.info.kind {
            "Region" => catalogue::region(self),
            "StorageSKU" => catalogue::storage_sku(self),
            "InstanceSKU" => catalogue::instance_sku(self),
            "NetworkSKU" => catalogue::network_sku(self),
            "Role" => authorization::role(self),
            "RoleAssignment" => authorization::role_assignment(self),
            "Workspace" => workspace::workspace(self),
            "BlockStorage" => storage::block_storage(self),
            "Image" => storage::image(self),
            "Network" => network::network(self),
            "Subnet" => network::subnet(self),
            "RouteTable" => network::route_table(self),
            "InternetGateway" => network::internet_gateway(self),
            "NIC" => network::nic(self),
            "PublicIP" => network::public_ip(self),
            "SecurityGroup" => security::security_group(self),
            "SecurityGroupRule" => security::security_group_rule(self),
            "Instance" => compute::instance(self),
            other => Err(Obstacle::Missing(format!("{other} is not supported yet"))),
        }
    }

    /// Refuses the younger of two objects for one thing in a network: with kubectl such an object
    /// has any name, and over REST the name that follows from network and name.
    fn is_only_one(&mut self) -> Result<(), Obstacle> {
        let xr = self.xr;
        let Some(network) = xr.network else {
            return Ok(());
        };
        let by_rest = names::network_object_name(network, xr.name);
        let other = if xr.object_name == by_rest {
            xr.name
        } else {
            by_rest.as_str()
        };
        let found = self
            .needs
            .by_name("namesake", &xr.info.gvk(), xr.namespace, other);
        // An XR does not say how old its claim is.
        let own = if xr.is_claimed() {
            self.needs
                .by_name("claim", &xr.info.gvk(), xr.namespace, xr.object_name)
                .object()
        } else {
            Some(xr.object)
        };
        let Found::Object(found) = found else {
            return Ok(());
        };
        let spec = |field| found.get("spec")?.get(field)?.as_str();
        if other == xr.object_name
            || ecp_xrds::seca_name(found) != xr.name
            || spec("network") != Some(network)
        {
            return Ok(());
        }
        let Some(own) = own else {
            let noun = xr.info.noun;
            return Err(Obstacle::Missing(format!(
                "waiting to read {noun} {}",
                xr.name
            )));
        };
        let younger = age(own) > age(found);
        if younger {
            let noun = xr.info.noun;
            return Err(Obstacle::Refused(format!(
                "{noun} {} of network {network} is already {other}",
                xr.name
            )));
        }
        Ok(())
    }

    /// The SECA spec, typed.
    fn spec<T: DeserializeOwned>(&self) -> Result<T, Obstacle> {
        typed(self.xr.object, "spec")
    }
}

/// The age of an object: the oldest is the least.
fn age(object: &Value) -> (&str, &str) {
    let created = object::meta_str(object, "creationTimestamp");
    (created.unwrap_or_default(), object::uid(object))
}

/// The `spec` of an object, typed.
fn typed<T: DeserializeOwned>(object: &Value, what: &str) -> Result<T, Obstacle> {
    let spec = object.get("spec").map(whole).unwrap_or_default();
    serde_json::from_value(spec)
        .map_err(|e| Obstacle::Refused(format!("{what} cannot be read: {e}")))
}

/// A kind of the table.
fn kind(kind: &str) -> Result<&'static KindInfo, Obstacle> {
    ecp_xrds::by_kind(kind).ok_or_else(|| Obstacle::Missing(format!("{kind} is not supported yet")))
}

/// Every kind of managed resource the function makes.
pub(crate) fn managed_kinds() -> impl Iterator<Item = &'static ManagedKind> {
    clouds::managed_kinds().chain([&workspace::NAMESPACE, &network::CONTENTS])
}
