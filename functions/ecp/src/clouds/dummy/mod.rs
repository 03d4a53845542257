//! The reference cloud (`dummy.m.secapi.cloud`, provider-dummy). Nothing in it costs money.

mod facts;
mod tables;

use ecp_xrds::{Cidr, KindInfo};
use serde_json::{Value, json};

use self::tables::{
    ADDRESS, GATEWAY, IMAGE, INTERFACE, LOCATION, MACHINE, MACHINE_TYPE, MANAGED, NETWORK,
    NETWORK_TYPE, NO_ADDRESS, PROJECT, ROUTE_TABLE, SECURITY_GROUP, SECURITY_RULE, SUBNET, VOLUME,
    VOLUME_SIZE_GB_MIN, VOLUME_TYPE, type_name,
};
use crate::clouds::{
    BlockStorage, Cloud, Disk, Facts, Image, Instance, InstanceSku, InternetGateway, Network,
    NetworkSku, Nic, Observed, PublicIp, Region, Route, RouteTable, RouteTarget, Rule,
    SecurityGroup, SecurityGroupRule, StorageSku, Subnet, Workspace,
};
use crate::managed::{Managed, ManagedKind};

/// See the module.
#[derive(Debug)]
pub(super) struct Dummy;

impl Cloud for Dummy {
    fn name(&self) -> &'static str {
        "dummy"
    }

    fn managed_kinds(&self) -> &'static [ManagedKind] {
        &MANAGED
    }

    fn identity(&self, kind: &KindInfo) -> Option<&'static ManagedKind> {
        match kind.kind {
            "StorageSKU" => Some(VOLUME_TYPE),
            "InstanceSKU" => Some(MACHINE_TYPE),
            "NetworkSKU" => Some(NETWORK_TYPE),
            "Workspace" => Some(PROJECT),
            "BlockStorage" => Some(VOLUME),
            "Image" => Some(IMAGE),
            "Network" => Some(NETWORK),
            "Subnet" => Some(SUBNET),
            "RouteTable" => Some(ROUTE_TABLE),
            "InternetGateway" => Some(GATEWAY),
            "NIC" => Some(INTERFACE),
            "PublicIP" => Some(ADDRESS),
            "SecurityGroup" => Some(SECURITY_GROUP),
            "SecurityGroupRule" => Some(SECURITY_RULE),
            "Instance" => Some(MACHINE),
            _ => None,
        }
    }

    fn region(&self, region: &Region) -> Vec<Managed> {
        one("location", LOCATION, region, json!({}))
    }

    fn workspace(&self, workspace: &Workspace<'_>) -> Vec<Managed> {
        let wanted = json!({"displayName": workspace.name});
        one("project", PROJECT, workspace.region, wanted)
    }

    fn storage_sku(&self, sku: &StorageSku<'_>) -> Vec<Managed> {
        let wanted = json!({
            "type": type_name(sku.name),
            "iops": sku.iops,
            "minSizeGB": VOLUME_SIZE_GB_MIN,
        });
        one("volume-type", VOLUME_TYPE, sku.region, wanted)
    }

    fn instance_sku(&self, sku: &InstanceSku<'_>) -> Vec<Managed> {
        let wanted = json!({
            "type": type_name(sku.name),
            "vCPU": sku.vcpu,
            "ramGB": sku.ram_gb,
        });
        one("machine-type", MACHINE_TYPE, sku.region, wanted)
    }

    fn network_sku(&self, sku: &NetworkSku<'_>) -> Vec<Managed> {
        let wanted = json!({
            "type": type_name(sku.name),
            "bandwidthMbps": sku.bandwidth_mbps,
            "packetsPerSecond": sku.packets_per_second,
        });
        one("network-type", NETWORK_TYPE, sku.region, wanted)
    }

    fn block_storage(&self, storage: &BlockStorage<'_>) -> Vec<Managed> {
        let wanted = json!({
            "project": storage.workspace,
            "displayName": storage.name,
            "sizeGB": storage.size_gb,
            "volumeType": type_name(storage.sku.name),
            "iops": storage.sku.iops,
            "sourceImage": storage.source_image,
        });
        one("volume", VOLUME, storage.region, wanted)
    }

    fn image(&self, image: &Image<'_>) -> Vec<Managed> {
        let wanted = json!({
            "displayName": image.name,
            "sourceVolume": image.source_volume,
            "cpuArchitecture": image.cpu_architecture,
            "boot": image.boot,
            "initializer": image.initializer,
        });
        one("image", IMAGE, image.region, wanted)
    }

    fn network(&self, network: &Network<'_>) -> Vec<Managed> {
        let more: Vec<_> = network.additional_cidrs.iter().map(cidr).collect();
        let wanted = json!({
            "project": network.workspace,
            "displayName": network.name,
            "cidr": cidr(&network.cidr),
            "additionalCidrs": more,
            "networkType": type_name(network.sku.name),
        });
        one("network", NETWORK, network.region, wanted)
    }

    fn subnet(&self, subnet: &Subnet<'_>) -> Vec<Managed> {
        let wanted = json!({
            "network": subnet.network,
            "displayName": subnet.name,
            "cidr": cidr(&subnet.cidr),
            "routeTable": subnet.route_table,
            "zone": subnet.zone,
            "networkType": subnet.sku.as_ref().map(|sku| type_name(sku.name)),
        });
        one("subnet", SUBNET, subnet.region, wanted)
    }

    fn route_table(&self, table: &RouteTable<'_>) -> Vec<Managed> {
        let routes: Vec<_> = table.routes.iter().map(route).collect();
        let wanted = json!({
            "network": table.network,
            "displayName": table.name,
            "routes": routes,
        });
        one("route-table", ROUTE_TABLE, table.region, wanted)
    }

    fn internet_gateway(&self, gateway: &InternetGateway<'_>) -> Vec<Managed> {
        let wanted = json!({
            "project": gateway.workspace,
            "displayName": gateway.name,
            "egressOnly": gateway.egress_only,
        });
        one("gateway", GATEWAY, gateway.region, wanted)
    }

    fn nic(&self, nic: &Nic<'_>) -> Vec<Managed> {
        let wanted = json!({
            "subnet": nic.subnet,
            "displayName": nic.name,
            "addresses": nic.addresses,
            "publicAddresses": nic.public_ips,
            "securityGroups": nic.security_groups,
            "networkType": nic.sku.as_ref().map(|sku| type_name(sku.name)),
        });
        one("interface", INTERFACE, nic.region, wanted)
    }

    fn public_ip(&self, ip: &PublicIp<'_>) -> Vec<Managed> {
        let wanted = json!({
            "project": ip.workspace,
            "displayName": ip.name,
            "version": ip.version,
            "address": ip.address,
        });
        one("address", ADDRESS, ip.region, wanted)
    }

    fn security_group(&self, group: &SecurityGroup<'_>) -> Vec<Managed> {
        let rules: Vec<_> = group.rules.iter().map(rule).collect();
        let wanted = json!({
            "project": group.workspace,
            "displayName": group.name,
            "rules": rules,
            "securityRules": group.shared_rules,
        });
        one("group", SECURITY_GROUP, group.region, wanted)
    }

    fn security_group_rule(&self, shared: &SecurityGroupRule<'_>) -> Vec<Managed> {
        let mut wanted = rule(&shared.rule);
        wanted["project"] = json!(shared.workspace);
        wanted["displayName"] = json!(shared.name);
        one("rule", SECURITY_RULE, shared.region, wanted)
    }

    fn instance(&self, instance: &Instance<'_>) -> Vec<Managed> {
        let more: Vec<_> = instance.data_volumes.iter().map(disk).collect();
        let wanted = json!({
            "project": instance.workspace,
            "displayName": instance.name,
            "zone": instance.zone,
            "machineType": type_name(instance.sku.name),
            "bootVolume": disk(&instance.boot_volume),
            "dataVolumes": more,
            "interfaces": instance.nics,
            "securityGroup": instance.security_group,
            "antiAffinityGroup": instance.anti_affinity_group,
            "sshKeys": instance.ssh_keys,
            "userData": instance.user_data,
            "power": instance.power,
            "restartedAt": instance.restarted_at,
        });
        one("machine", MACHINE, instance.region, wanted)
    }

    fn facts(&self, kind: &KindInfo, observed: &Observed<'_>) -> Facts {
        facts::facts(kind, observed)
    }
}

/// A managed resource in a region, alone.
fn one(
    key: &str,
    kind: &'static ManagedKind,
    region: &Region,
    mut for_provider: Value,
) -> Vec<Managed> {
    for_provider["location"] = json!(region.location);
    vec![Managed {
        key: key.into(),
        kind,
        for_provider,
        region: Some(region.clone()),
    }]
}

fn cidr(cidr: &Cidr) -> Value {
    let text = |text: &Option<String>| text.clone().filter(|t| !t.is_empty());
    json!({"ipv4": text(&cidr.ipv4), "ipv6": text(&cidr.ipv6)})
}

/// A route to a NIC has no target here: the cloud routes to machines.
fn route(route: &Route<'_>) -> Value {
    let mut wanted = json!({"destination": route.destination});
    match &route.target {
        Some(RouteTarget::Gateway(id)) => wanted["gateway"] = json!(id),
        Some(RouteTarget::Instance(id)) => wanted["machine"] = json!(id),
        Some(RouteTarget::Address(address)) => wanted["address"] = json!(address),
        Some(RouteTarget::Nic(_)) | None => {}
    }
    wanted
}

fn rule(rule: &Rule<'_>) -> Value {
    let sources = match &rule.sources {
        None => json!([]),
        Some(sources) if sources.is_empty() => json!([NO_ADDRESS]),
        Some(sources) => json!(sources),
    };
    json!({
        "direction": rule.direction,
        "protocol": rule.protocol,
        "version": rule.version,
        "ports": rule.ports,
        "icmp": rule.icmp,
        "sources": sources,
    })
}

fn disk(disk: &Disk) -> Value {
    json!({"volume": disk.volume, "type": disk.bus})
}
