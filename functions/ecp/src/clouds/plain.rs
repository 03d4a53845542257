//! SECA resources as plain values: references are the cloud's ids.

use ecp_xrds::{
    Boot, Cidr, ConfigRef, CpuArchitecture, Direction, DiskBus, Icmp, Initializer, IpVersion,
    Ports, PowerState, Protocol, VolumeType,
};

/// A region as a cloud sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// SECA name.
    pub name: String,
    /// The cloud's own name of the region.
    pub location: String,
    /// How managed resources reach the cloud.
    pub config: ConfigRef,
    /// Zones that resources can be put into.
    pub zones: Vec<String>,
}

/// A workspace, resolved.
#[derive(Clone, Debug)]
pub struct Workspace<'a> {
    /// Region it is in.
    pub region: &'a Region,
    /// SECA name.
    pub name: &'a str,
}

/// A storage SKU, resolved.
#[derive(Clone, Debug)]
pub struct StorageSku<'a> {
    /// Region it is offered in.
    pub region: &'a Region,
    /// SECA name.
    pub name: &'a str,
    /// Where the data is.
    pub kind: VolumeType,
    /// Operations a second.
    pub iops: i64,
    /// Smallest sensible volume.
    pub min_volume_size_gb: i64,
}

/// An instance SKU, resolved.
#[derive(Clone, Debug)]
pub struct InstanceSku<'a> {
    /// Region it is offered in.
    pub region: &'a Region,
    /// SECA name.
    pub name: &'a str,
    /// Virtual processors.
    pub vcpu: i64,
    /// Memory.
    pub ram_gb: i64,
}

/// A network SKU, resolved.
#[derive(Clone, Debug)]
pub struct NetworkSku<'a> {
    /// Region it is offered in.
    pub region: &'a Region,
    /// SECA name.
    pub name: &'a str,
    /// Bandwidth.
    pub bandwidth_mbps: i64,
    /// Packets a second.
    pub packets_per_second: i64,
}

/// A block storage, resolved.
#[derive(Clone, Debug)]
pub struct BlockStorage<'a> {
    /// Region it is in.
    pub region: &'a Region,
    /// SECA name.
    pub name: &'a str,
    /// The cloud's id of the workspace.
    pub workspace: String,
    /// Size.
    pub size_gb: i64,
    /// SKU.
    pub sku: StorageSku<'a>,
    /// The cloud's id of the image it is filled from.
    pub source_image: Option<String>,
}

/// An image, resolved.
#[derive(Clone, Debug)]
pub struct Image<'a> {
    /// Region it is in.
    pub region: &'a Region,
    /// SECA name.
    pub name: &'a str,
    /// The cloud's id of the block storage it is taken of; `None` while that does not exist.
    pub source_volume: Option<String>,
    /// CPU architecture.
    pub cpu_architecture: CpuArchitecture,
    /// How a machine starts from it.
    pub boot: Boot,
    /// What sets a machine up.
    pub initializer: Initializer,
}

/// A network, resolved. `0.0.0.0/n` and `::/n` ask for any block of that size.
#[derive(Clone, Debug)]
pub struct Network<'a> {
    /// Region it is in.
    pub region: &'a Region,
    /// SECA name.
    pub name: &'a str,
    /// The cloud's id of the workspace.
    pub workspace: String,
    /// Addresses.
    pub cidr: Cidr,
    /// More addresses.
    pub additional_cidrs: Vec<Cidr>,
    /// SKU.
    pub sku: NetworkSku<'a>,
}

/// A subnet, resolved.
#[derive(Clone, Debug)]
pub struct Subnet<'a> {
    /// Region it is in.
    pub region: &'a Region,
    /// SECA name.
    pub name: &'a str,
    /// The cloud's id of the network.
    pub network: String,
    /// Addresses, inside those of the network.
    pub cidr: Cidr,
    /// The cloud's id of the route table.
    pub route_table: Option<String>,
    /// Zone of the region; `None` for any.
    pub zone: Option<&'a str>,
    /// SKU; `None` for that of the network.
    pub sku: Option<NetworkSku<'a>>,
}

/// A route table, resolved.
#[derive(Clone, Debug)]
pub struct RouteTable<'a> {
    /// Region it is in.
    pub region: &'a Region,
    /// SECA name.
    pub name: &'a str,
    /// The cloud's id of the network.
    pub network: String,
    /// Routes.
    pub routes: Vec<Route<'a>>,
}

/// A route, resolved.
#[derive(Clone, Debug)]
pub struct Route<'a> {
    /// Addresses that it is for.
    pub destination: &'a str,
    /// Where to; `None` while that does not exist.
    pub target: Option<RouteTarget>,
}

/// Where a route leads to: an address, or what has an id in the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteTarget {
    /// An internet gateway.
    Gateway(String),
    /// An instance.
    Instance(String),
    /// A NIC.
    Nic(String),
    /// An IP address.
    Address(String),
}

/// An internet gateway, resolved.
#[derive(Clone, Debug)]
pub struct InternetGateway<'a> {
    /// Region it is in.
    pub region: &'a Region,
    /// SECA name.
    pub name: &'a str,
    /// The cloud's id of the workspace.
    pub workspace: String,
    /// Whether connections can only be made from inside.
    pub egress_only: bool,
}

/// A NIC, resolved.
#[derive(Clone, Debug)]
pub struct Nic<'a> {
    /// Region it is in.
    pub region: &'a Region,
    /// SECA name.
    pub name: &'a str,
    /// The cloud's id of the subnet.
    pub subnet: String,
    /// Addresses; `0.0.0.0` and `::` ask for any.
    pub addresses: Vec<String>,
    /// The cloud's ids of the public IPs that exist.
    pub public_ips: Vec<String>,
    /// The cloud's ids of the security groups.
    pub security_groups: Vec<String>,
    /// SKU; `None` for that of the subnet.
    pub sku: Option<NetworkSku<'a>>,
}

/// A public IP, resolved.
#[derive(Clone, Debug)]
pub struct PublicIp<'a> {
    /// Region it is in.
    pub region: &'a Region,
    /// SECA name.
    pub name: &'a str,
    /// The cloud's id of the workspace.
    pub workspace: String,
    /// IP version.
    pub version: IpVersion,
    /// The tenant's own address.
    pub address: Option<String>,
}

/// A security group, resolved.
#[derive(Clone, Debug)]
pub struct SecurityGroup<'a> {
    /// Region it is in.
    pub region: &'a Region,
    /// SECA name.
    pub name: &'a str,
    /// The cloud's id of the workspace.
    pub workspace: String,
    /// Rules of its own.
    pub rules: Vec<Rule<'a>>,
    /// The cloud's ids of the rules that it shares.
    pub shared_rules: Vec<String>,
}

/// A security group rule, resolved.
#[derive(Clone, Debug)]
pub struct SecurityGroupRule<'a> {
    /// Region it is in.
    pub region: &'a Region,
    /// SECA name.
    pub name: &'a str,
    /// The cloud's id of the workspace.
    pub workspace: String,
    /// The rule.
    pub rule: Rule<'a>,
}

/// Which traffic is let through.
#[derive(Clone, Debug)]
pub struct Rule<'a> {
    /// Which way.
    pub direction: Direction,
    /// Protocol; any by default.
    pub protocol: Option<Protocol>,
    /// IP version; both by default.
    pub version: Option<IpVersion>,
    /// Ports; any by default.
    pub ports: Option<&'a Ports>,
    /// Kind of ICMP message; any by default.
    pub icmp: Option<&'a Icmp>,
    /// Addresses, ranges and the cloud's ids of resources that exist. `None` is any source; an
    /// empty list is none, so that nothing may be let through.
    pub sources: Option<Vec<String>>,
}

/// An instance, resolved.
#[derive(Clone, Debug)]
pub struct Instance<'a> {
    /// Region it is in.
    pub region: &'a Region,
    /// SECA name.
    pub name: &'a str,
    /// The cloud's id of the workspace.
    pub workspace: String,
    /// Zone of the region.
    pub zone: &'a str,
    /// SKU.
    pub sku: InstanceSku<'a>,
    /// Volume that it starts from.
    pub boot_volume: Disk,
    /// More volumes.
    pub data_volumes: Vec<Disk>,
    /// The cloud's ids of the NICs, the primary one first.
    pub nics: Vec<String>,
    /// The cloud's id of the security group of NICs that have none.
    pub security_group: Option<String>,
    /// Instances of one such group run on different hardware.
    pub anti_affinity_group: Option<&'a str>,
    /// Public SSH keys.
    pub ssh_keys: Vec<String>,
    /// What the image's initializer is given.
    pub user_data: Option<&'a str>,
    /// Whether it is to run.
    pub power: PowerState,
    /// A later time than before restarts it.
    pub restarted_at: Option<&'a str>,
}

/// A disk of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// The cloud's id of the volume.
    pub volume: String,
    /// How it is connected.
    pub bus: DiskBus,
}
