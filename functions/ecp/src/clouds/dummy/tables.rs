//! What the dummy cloud has, as data.

use crate::managed::ManagedKind;

/// A kind of managed resource of this cloud.
const fn kind(
    kind: &'static str,
    noun: &'static str,
    fields: &'static [&'static str],
) -> ManagedKind {
    ManagedKind {
        api_version: "dummy.m.secapi.cloud/v1alpha1",
        kind,
        noun,
        fields,
    }
}

/// Its managed resources, in the order of the constants below.
pub(super) static MANAGED: [ManagedKind; 16] = [
    kind("Location", "location", &["location"]),
    kind("Project", "project", &["location", "displayName"]),
    kind(
        "VolumeType",
        "volume type",
        &["location", "type", "iops", "minSizeGB"],
    ),
    kind(
        "MachineType",
        "machine type",
        &["location", "type", "vCPU", "ramGB"],
    ),
    kind(
        "NetworkType",
        "network type",
        &["location", "type", "bandwidthMbps", "packetsPerSecond"],
    ),
    kind(
        "Volume",
        "volume",
        &[
            "location",
            "project",
            "displayName",
            "sizeGB",
            "volumeType",
            "iops",
            "sourceImage",
        ],
    ),
    kind(
        "VolumeImage",
        "image",
        &[
            "location",
            "displayName",
            "sourceVolume",
            "cpuArchitecture",
            "boot",
            "initializer",
        ],
    ),
    kind(
        "VirtualNetwork",
        "network",
        &[
            "location",
            "project",
            "displayName",
            "cidr",
            "additionalCidrs",
            "networkType",
        ],
    ),
    kind(
        "VirtualSubnet",
        "subnet",
        &[
            "location",
            "network",
            "displayName",
            "cidr",
            "routeTable",
            "zone",
            "networkType",
        ],
    ),
    kind(
        "RoutingTable",
        "route table",
        &["location", "network", "displayName", "routes"],
    ),
    kind(
        "Gateway",
        "gateway",
        &["location", "project", "displayName", "egressOnly"],
    ),
    kind(
        "NetworkInterface",
        "network interface",
        &[
            "location",
            "subnet",
            "displayName",
            "addresses",
            "publicAddresses",
            "securityGroups",
            "networkType",
        ],
    ),
    kind(
        "PublicAddress",
        "public address",
        &["location", "project", "displayName", "version", "address"],
    ),
    kind(
        "Firewall",
        "security group",
        &[
            "location",
            "project",
            "displayName",
            "rules",
            "securityRules",
        ],
    ),
    kind(
        "SecurityRule",
        "security rule",
        &[
            "location",
            "project",
            "displayName",
            "direction",
            "protocol",
            "version",
            "ports",
            "icmp",
            "sources",
        ],
    ),
    kind(
        "Machine",
        "machine",
        &[
            "location",
            "project",
            "displayName",
            "zone",
            "machineType",
            "bootVolume",
            "dataVolumes",
            "interfaces",
            "securityGroup",
            "antiAffinityGroup",
            "sshKeys",
            "userData",
            "power",
            "restartedAt",
        ],
    ),
];

pub(super) static LOCATION: &ManagedKind = &MANAGED[0];
pub(super) static PROJECT: &ManagedKind = &MANAGED[1];
pub(super) static VOLUME_TYPE: &ManagedKind = &MANAGED[2];
pub(super) static MACHINE_TYPE: &ManagedKind = &MANAGED[3];
pub(super) static NETWORK_TYPE: &ManagedKind = &MANAGED[4];
pub(super) static VOLUME: &ManagedKind = &MANAGED[5];
pub(super) static IMAGE: &ManagedKind = &MANAGED[6];
pub(super) static NETWORK: &ManagedKind = &MANAGED[7];
pub(super) static SUBNET: &ManagedKind = &MANAGED[8];
pub(super) static ROUTE_TABLE: &ManagedKind = &MANAGED[9];
pub(super) static GATEWAY: &ManagedKind = &MANAGED[10];
pub(super) static INTERFACE: &ManagedKind = &MANAGED[11];
pub(super) static ADDRESS: &ManagedKind = &MANAGED[12];
pub(super) static SECURITY_GROUP: &ManagedKind = &MANAGED[13];
pub(super) static SECURITY_RULE: &ManagedKind = &MANAGED[14];
pub(super) static MACHINE: &ManagedKind = &MANAGED[15];

/// The cloud's name of a type of volume, machine or network, for a SKU.
pub(super) fn type_name(sku: &str) -> String {
    sku.to_ascii_lowercase()
}

/// Smallest volume of every type. The SKU's own figure is a hint for people, not a limit (SECA
/// section 3.6 has volumes of 20 GB on SKUs with 50).
pub(super) const VOLUME_SIZE_GB_MIN: i64 = 1;

/// An address that no packet comes from or goes to, for a rule that lets nothing through.
pub(super) const NO_ADDRESS: &str = "0.0.0.0/32";
