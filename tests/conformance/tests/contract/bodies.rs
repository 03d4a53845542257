//! Specs that are valid, of each kind.

use serde_json::{Value, json};

use crate::kinds::*;
use crate::site::Site;

/// A reference by text alone.
pub(crate) fn reference(resource: &str) -> Value {
    json!({ "resource": resource })
}

/// The least that a spec must have.
pub(crate) fn minimal(site: &Site, kind: &Kind) -> Value {
    let to = |kind: &Kind| reference(&site.urn(kind, kind.sample));
    match kind.name {
        "role" => json!({ "permissions": [
            { "provider": "seca.storage/v1", "resources": ["*"], "verb": ["GET"] },
        ] }),
        "role-assignment" => json!({
            "subs": ["alice@example.com"],
            "scopes": [{ "tenants": [site.tenant] }],
            "roles": [ROLE.sample],
        }),
        "block-storage" => json!({
            "sizeGB": 20,
            "skuRef": reference(&site.sku("storage", "RD500")),
        }),
        "image" => json!({
            "blockStorageRef": to(&BLOCK_STORAGE),
            "cpuArchitecture": "amd64",
        }),
        "instance" => json!({
            "skuRef": reference(&site.sku("compute", "DS")),
            "zone": "zone-a",
            "bootVolume": { "deviceRef": to(&BLOCK_STORAGE) },
        }),
        "network" => json!({
            "cidr": { "ipv4": "10.1.0.0/16", "ipv6": "fd00:1::/56" },
            "skuRef": reference(&site.sku("network", "N1K")),
        }),
        "routing-table" => json!({ "routes": [
            { "destinationCidrBlock": "0.0.0.0/0", "targetRef": to(&INTERNET_GATEWAY) },
        ] }),
        "subnet" => json!({
            "cidr": { "ipv4": "10.1.1.0/24" },
            "routeTableRef": to(&ROUTE_TABLE),
            "zone": "zone-a",
        }),
        "nic" => json!({ "addresses": ["10.1.1.10"], "subnetRef": to(&SUBNET) }),
        "public-ip" => json!({ "version": "IPv4" }),
        "security-group-rule" => json!({ "direction": "ingress" }),
        "workspace" | "internet-gateway" | "security-group" => json!({}),
        other => panic!("no spec for {other}"),
    }
}

/// Every field that a kind has; references in several of the forms that they can have.
pub(crate) fn full(site: &Site, kind: &Kind) -> Value {
    let urn = |kind: &Kind| reference(&site.urn(kind, kind.sample));
    match kind.name {
        "role" => json!({ "permissions": [
            { "provider": "seca.storage/v1", "resources": ["block-storages/*", "images/x"],
              "verb": ["GET", "list", "put", "delete"] },
            { "provider": "seca.compute/v1", "resources": ["*"], "verb": ["POST"] },
        ] }),
        "role-assignment" => json!({
            "subs": ["alice@example.com", "*"],
            "scopes": [
                { "tenants": [site.tenant], "regions": ["region-1"], "workspaces": [WORKSPACE.sample] },
                {},
            ],
            "roles": [ROLE.sample],
        }),
        "workspace" => json!({ "costCentre": "4711", "owner": { "team": ["a", "b"] } }),
        "block-storage" => json!({
            "sizeGB": 20,
            "skuRef": reference("skus/RD500"),
            "sourceImageRef": { "resource": "images/image", "tenant": site.tenant },
        }),
        "image" => json!({
            "blockStorageRef": {
                "provider": "seca.storage/v1", "tenant": site.tenant, "workspace": site.workspace,
                "resource": "block-storages/disk",
            },
            "cpuArchitecture": "amd64",
            "boot": "BIOS",
            "initializer": "cloudinit-22",
        }),
        "instance" => json!({
            "skuRef": reference("skus/DS"),
            "zone": "zone-a",
            "bootVolume": { "deviceRef": reference("disk"), "type": "virtio" },
            "dataVolumes": [{ "deviceRef": reference("block-storages/disk-2"), "type": "virtio" }],
            "primaryNicRef": reference("nics/nic"),
            "additionalNicRefs": [reference(&site.urn(&NIC, "nic-2"))],
            "securityGroupRef": reference("security-groups/group"),
            "antiAffinityGroup": "apart",
            "sshKeys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 me@example.com"],
            "userData": "#cloud-config\n",
        }),
        "network" => json!({
            "cidr": { "ipv4": "10.1.0.0/16", "ipv6": "fd00:1::/56" },
            "additionalCidrs": [{ "ipv4": "10.3.0.0/16" }, { "ipv4": "10.2.0.0/16" }],
            "skuRef": reference("skus/N5K"),
        }),
        "internet-gateway" => json!({ "egressOnly": true }),
        "routing-table" => json!({ "routes": [
            { "destinationCidrBlock": "0.0.0.0/0", "targetRef": reference("internet-gateways/gw") },
            { "destinationCidrBlock": "10.9.0.0/16", "targetRef": reference("10.1.1.7") },
        ] }),
        "subnet" => json!({
            "cidr": { "ipv4": "10.1.1.0/24", "ipv6": "fd00:1:0:1::/64" },
            "routeTableRef": reference("rt"),
            "zone": "zone-a",
            "skuRef": reference("N1K"),
        }),
        "nic" => json!({
            "addresses": ["10.1.1.10", "10.1.1.11"],
            "subnetRef": reference("networks/net/subnets/sn"),
            "publicIpRefs": [reference("public-ips/pip")],
            "securityGroupRefs": [urn(&SECURITY_GROUP)],
            "skuRef": reference("skus/N1K"),
        }),
        "public-ip" => json!({ "version": "IPv4", "address": "52.93.126.1" }),
        "security-group-rule" => json!({
            "direction": "ingress",
            "protocol": "tcp",
            "version": "IPv4",
            "ports": { "from": 80, "to": 90, "list": [443, 8443] },
            "sourceRef": [reference("10.0.0.0/8"), reference("55.44.33.11")],
        }),
        "security-group" => json!({
            "rules": [
                { "direction": "egress" },
                { "direction": "ingress", "protocol": "icmp", "icmp": { "type": 8, "code": 0 } },
            ],
            "ruleRefs": [reference("security-group-rules/rule")],
        }),
        other => panic!("no spec for {other}"),
    }
}

/// A change of a spec that the contract allows.
pub(crate) fn changed(kind: &Kind, mut spec: Value) -> Value {
    let (pointer, value) = match kind.name {
        "role" => ("/permissions/0/verb", json!(["GET", "PUT"])),
        "role-assignment" => ("/subs", json!(["bob@example.com"])),
        "workspace" => ("/costCentre", json!("4712")),
        "block-storage" => ("/sizeGB", json!(30)),
        "image" => ("/cpuArchitecture", json!("arm64")),
        "instance" => ("/zone", json!("zone-b")),
        "network" => ("/skuRef/resource", json!("skus/N10K")),
        "internet-gateway" => ("/egressOnly", json!(false)),
        "routing-table" => ("/routes/0/destinationCidrBlock", json!("10.8.0.0/16")),
        "subnet" => ("/zone", json!("zone-b")),
        "nic" => ("/addresses", json!(["10.1.1.12"])),
        "public-ip" => ("/address", json!("52.93.126.2")),
        "security-group-rule" => ("/direction", json!("egress")),
        "security-group" => ("/rules", json!([{ "direction": "ingress" }])),
        other => panic!("no change for {other}"),
    };
    *spec.pointer_mut(pointer).unwrap() = value;
    spec
}
