//! Networks, what is in them, and what leads to them.

use ecp_meta::object;
use ecp_xrds::reference::Resolved;
use ecp_xrds::{
    InternetGatewaySpec, NetworkSkuSpec, NetworkSpec, NicSpec, PublicIpSpec, Reference,
    RouteTableSpec, SubnetSpec,
};
use serde_json::json;

use super::refer::{Link, Sku};
use super::{Draft, Obstacle, Site, kind};
use crate::clouds::{self, NetworkSku, Region, RouteTarget};
use crate::managed::{Managed, ManagedKind};
use crate::needs::Found;

/// Subnets and route tables go with their network. They are resources of their own, so their
/// deletion is provider-ecp's work on behalf of this managed resource.
pub(super) static CONTENTS: ManagedKind = ManagedKind {
    api_version: "ecp.m.secapi.cloud/v1alpha1",
    kind: "NetworkContents",
    noun: "network's contents",
    fields: &["network"],
};

pub(super) fn network(draft: &mut Draft<'_, '_>) -> Result<(), Obstacle> {
    let spec: NetworkSpec = draft.spec()?;
    let site = draft.site();
    let sku = draft.sku(&spec.sku_ref, "NetworkSKU", &site);
    let workspace = draft.workspace_id(&site)?;
    let (region, cloud) = site.placed()?;
    draft.plan.cloud = Some(cloud);
    let (workspace, sku) = (workspace?, sku?);
    draft.plan.managed = cloud.network(&clouds::Network {
        region: &region,
        name: draft.xr.name,
        workspace,
        cidr: spec.cidr,
        additional_cidrs: spec.additional_cidrs.unwrap_or_default(),
        sku: plain(&sku, &region),
    });
    draft.plan.managed.push(Managed {
        key: "contents".into(),
        kind: &CONTENTS,
        for_provider: json!({"network": draft.xr.name}),
        region: None,
    });
    Ok(())
}

pub(super) fn subnet(draft: &mut Draft<'_, '_>) -> Result<(), Obstacle> {
    let spec: SubnetSpec = draft.spec()?;
    let site = draft.site();
    let sku = draft.maybe_sku(spec.sku_ref.as_ref(), &site);
    let network = draft.network_id(&site)?;
    let route_table = draft.link("routeTableRef", &spec.route_table_ref, &site);
    let (region, cloud) = site.placed()?;
    draft.plan.cloud = Some(cloud);
    let zone = Some(spec.zone.as_str()).filter(|zone| !zone.is_empty());
    if let Some(zone) = zone {
        check_zone(&region, zone)?;
    }
    let (network, route_table, sku) = (network?, route_table?, sku?);
    let linked = route_table.iter().cloned().zip([spec.route_table_ref]);
    draft.plan.linked = Some(linked.collect());
    draft.plan.managed = cloud.subnet(&clouds::Subnet {
        region: &region,
        name: draft.xr.name,
        network,
        cidr: spec.cidr,
        route_table,
        zone,
        sku: sku.as_ref().map(|sku| plain(sku, &region)),
    });
    Ok(())
}

/// A route whose target is not there is sent without it, so that the others are in order.
pub(super) fn route_table(draft: &mut Draft<'_, '_>) -> Result<(), Obstacle> {
    let spec: RouteTableSpec = draft.spec()?;
    let routes = spec.routes.unwrap_or_default();
    let site = draft.site();
    let network = draft.network_id(&site)?;
    let targets: Vec<Reference> = routes.iter().map(|r| r.target_ref.clone()).collect();
    let targets = draft.links("routes[].targetRef", &targets, &site);
    let (region, cloud) = site.placed()?;
    draft.plan.cloud = Some(cloud);
    let network = network?;
    let (mut wanted, mut parts) = (Vec::new(), Vec::new());
    for (route, link) in routes.iter().zip(targets?) {
        let target = target(link);
        parts.push(target.as_ref().err().cloned());
        wanted.push(clouds::Route {
            destination: &route.destination_cidr_block,
            target: target.ok(),
        });
    }
    draft.plan.managed = cloud.route_table(&clouds::RouteTable {
        region: &region,
        name: draft.xr.name,
        network,
        routes: wanted,
    });
    draft.plan.parts = Some(parts);
    Ok(())
}

/// Where a route leads to, or why nowhere.
fn target(link: Link) -> Result<RouteTarget, String> {
    match link {
        Link::Text(text) if text.parse::<std::net::IpAddr>().is_ok() => {
            Ok(RouteTarget::Address(text))
        }
        Link::Text(text) => Err(format!("{text:?} is neither an address nor a resource")),
        Link::Nothing => Err("it has no target".into()),
        Link::Lacking(why) => Err(why),
        Link::Id(kind, id) => match kind.kind {
            "InternetGateway" => Ok(RouteTarget::Gateway(id)),
            "Instance" => Ok(RouteTarget::Instance(id)),
            "NIC" => Ok(RouteTarget::Nic(id)),
            _ => Err(format!("no route leads to a {}", kind.noun)),
        },
    }
}

pub(super) fn internet_gateway(draft: &mut Draft<'_, '_>) -> Result<(), Obstacle> {
    let spec: InternetGatewaySpec = draft.spec()?;
    let site = draft.site();
    let workspace = draft.workspace_id(&site)?;
    let (region, cloud) = site.placed()?;
    draft.plan.cloud = Some(cloud);
    draft.plan.managed = cloud.internet_gateway(&clouds::InternetGateway {
        region: &region,
        name: draft.xr.name,
        workspace: workspace?,
        egress_only: spec.egress_only,
    });
    Ok(())
}

pub(super) fn nic(draft: &mut Draft<'_, '_>) -> Result<(), Obstacle> {
    let spec: NicSpec = draft.spec()?;
    let site = draft.site();
    let sku = draft.maybe_sku(spec.sku_ref.as_ref(), &site);
    let subnet = draft.must_link("subnetRef", &spec.subnet_ref, &site);
    let public_refs = spec.public_ip_refs.unwrap_or_default();
    let public_ips = draft.links("publicIpRefs[]", &public_refs, &site);
    let groups = spec.security_group_refs.unwrap_or_default();
    let groups = draft.links("securityGroupRefs[]", &groups, &site);
    draft.owner.as_ref().map_err(Clone::clone)?;
    let (region, cloud) = site.placed()?;
    draft.plan.cloud = Some(cloud);
    let (subnet, groups, sku) = (subnet?, groups?, sku?);
    let public_ips: Vec<(String, Reference)> = public_ips?
        .into_iter()
        .zip(public_refs)
        .filter_map(|(link, reference)| Some((link.id()?, reference)))
        .collect();
    draft.plan.managed = cloud.nic(&clouds::Nic {
        region: &region,
        name: draft.xr.name,
        subnet,
        addresses: spec.addresses.unwrap_or_default(),
        public_ips: public_ips.iter().map(|(id, _)| id.clone()).collect(),
        security_groups: groups.into_iter().filter_map(Link::id).collect(),
        sku: sku.as_ref().map(|sku| plain(sku, &region)),
    });
    draft.plan.linked = Some(public_ips);
    Ok(())
}

pub(super) fn public_ip(draft: &mut Draft<'_, '_>) -> Result<(), Obstacle> {
    let spec: PublicIpSpec = draft.spec()?;
    let site = draft.site();
    let workspace = draft.workspace_id(&site)?;
    let (region, cloud) = site.placed()?;
    draft.plan.cloud = Some(cloud);
    draft.plan.managed = cloud.public_ip(&clouds::PublicIp {
        region: &region,
        name: draft.xr.name,
        workspace: workspace?,
        version: spec.version,
        address: spec.address.filter(|address| !address.is_empty()),
    });
    Ok(())
}

impl Draft<'_, '_> {
    /// The network that the resource is in, as if referred to.
    fn network(&self) -> Result<Resolved, Obstacle> {
        let owner = self.owner.as_ref().map_err(Clone::clone)?;
        let name = owner.network.clone().unwrap_or_default();
        if name.is_empty() {
            return Err(Obstacle::Refused("spec.network is missing".into()));
        }
        Ok(Resolved {
            kind: kind("Network")?,
            tenant: owner.tenant.clone(),
            workspace: owner.workspace.clone(),
            network: None,
            region: None,
            name,
        })
    }

    /// The cloud's id of the network that the resource is in. The outer error is that it is in
    /// none.
    ///
    /// Nothing is put anew into a network that is being deleted or gone: what it is made of in the
    /// cloud may be there a while longer, and could not go with something new in it.
    fn network_id(&mut self, site: &Site) -> Result<Result<String, Obstacle>, Obstacle> {
        let network = self.network()?;
        let id = self.id(&network, site);
        let is_new = self.observed.is_empty();
        Ok(match self.itself(&network) {
            Found::Object(found) if !object::is_deleting(found) => id,
            Found::Object(_) | Found::Missing | Found::Unknown if is_new => {
                Err(self.explain(&network))
            }
            Found::Object(_) | Found::Missing | Found::Unknown => id,
        })
    }

    fn maybe_sku(
        &mut self,
        reference: Option<&Reference>,
        site: &Site,
    ) -> Result<Option<Sku<NetworkSkuSpec>>, Obstacle> {
        reference
            .map(|reference| self.sku(reference, "NetworkSKU", site))
            .transpose()
    }
}

fn plain<'a>(sku: &'a Sku<NetworkSkuSpec>, region: &'a Region) -> NetworkSku<'a> {
    NetworkSku {
        region,
        name: &sku.name,
        bandwidth_mbps: sku.spec.bandwidth,
        packets_per_second: sku.spec.packets,
    }
}

/// Refuses a zone that the region does not have.
pub(super) fn check_zone(region: &Region, zone: &str) -> Result<(), Obstacle> {
    if region.zones.iter().any(|known| known == zone) {
        return Ok(());
    }
    Err(Obstacle::Refused(format!(
        "spec.zone: region {} has no zone {zone:?}, only {}",
        region.name,
        region.zones.join(", ")
    )))
}
