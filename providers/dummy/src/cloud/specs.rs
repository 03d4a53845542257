//! What can be asked of the cloud, kind by kind: the types of its API.
//!
//! Ids of other objects are the cloud's. In an address block, `0.0.0.0/n` or `::/n` lets the cloud
//! choose one of that size; as an address, `0.0.0.0` or `::` lets it choose one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares the types: each can be compared, kept and described.
macro_rules! specs {
    ($($(#[$meta:meta])* pub struct $name:ident { $($fields:tt)* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct $name { $($fields)* }
    )*};
}

specs! {
    /// A location in use.
    pub struct LocationSpec {
        /// Its name in the cloud.
        pub location: String,
    }

    /// A group of resources.
    pub struct ProjectSpec {
        /// Where.
        pub location: String,
        /// Name for people.
        #[serde(alias = "display_name")]
        pub display_name: String,
    }

    /// A kind of volume on offer.
    pub struct VolumeTypeSpec {
        /// Where.
        pub location: String,
        /// Its name in the cloud.
        #[serde(rename = "type", alias = "name")]
        pub name: String,
        /// Operations a second.
        #[schemars(range(min = 0))]
        pub iops: i64,
        /// Smallest volume.
        #[serde(rename = "minSizeGB", alias = "min_size_gb")]
        #[schemars(range(min = 1))]
        pub min_size_gb: i64,
    }

    /// A kind of machine on offer.
    pub struct MachineTypeSpec {
        /// Where.
        pub location: String,
        /// Its name in the cloud.
        #[serde(rename = "type")]
        pub name: String,
        /// Processors.
        #[serde(rename = "vCPU")]
        #[schemars(range(min = 1))]
        pub vcpu: i64,
        /// Memory.
        #[serde(rename = "ramGB")]
        #[schemars(range(min = 1))]
        pub ram_gb: i64,
    }

    /// A kind of network on offer.
    pub struct NetworkTypeSpec {
        /// Where.
        pub location: String,
        /// Its name in the cloud.
        #[serde(rename = "type")]
        pub name: String,
        /// Megabits a second.
        #[schemars(range(min = 1))]
        pub bandwidth_mbps: i64,
        /// Packets a second.
        #[schemars(range(min = 1))]
        pub packets_per_second: i64,
    }

    /// A block device.
    pub struct VolumeSpec {
        /// Where.
        pub location: String,
        /// Cloud id of its project.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub project: Option<String>,
        /// Name for people.
        #[serde(alias = "display_name")]
        pub display_name: String,
        /// Size. It can grow and not shrink.
        #[serde(rename = "sizeGB", alias = "size_gb")]
        #[schemars(range(min = 1))]
        pub size_gb: i64,
        /// Name of its volume type.
        #[serde(alias = "volume_type")]
        pub volume_type: String,
        /// Operations a second; what the type has by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0))]
        pub iops: Option<i64>,
        /// Cloud id of the image that it starts from. It can be given later, once.
        #[serde(alias = "source_image", default, skip_serializing_if = "Option::is_none")]
        pub source_image: Option<String>,
    }

    /// A copy of a volume that others can be made from.
    pub struct ImageSpec {
        /// Where.
        pub location: String,
        /// Name for people.
        #[serde(alias = "display_name")]
        pub display_name: String,
        /// Cloud id of the volume that it is a copy of. It can be given later, once; the image is
        /// empty until then.
        #[serde(alias = "source_volume", default, skip_serializing_if = "Option::is_none")]
        pub source_volume: Option<String>,
        /// Processor, such as amd64.
        #[serde(alias = "cpu_architecture")]
        pub cpu_architecture: String,
        /// Firmware, such as UEFI.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub boot: Option<String>,
        /// What runs at first boot.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub initializer: Option<String>,
    }

    /// Address blocks, at most one of each family.
    #[derive(Default)]
    pub struct Cidr {
        /// IPv4, such as 10.1.0.0/16.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub ipv4: Option<String>,
        /// IPv6, such as fd00:1::/56.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub ipv6: Option<String>,
    }

    /// A private network.
    pub struct NetworkSpec {
        /// Where.
        pub location: String,
        /// Cloud id of its project.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub project: Option<String>,
        /// Name for people.
        pub display_name: String,
        /// Its address blocks.
        pub cidr: Cidr,
        /// More address blocks.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub additional_cidrs: Vec<Cidr>,
        /// Name of its network type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub network_type: Option<String>,
    }

    /// A part of a network.
    pub struct SubnetSpec {
        /// Where.
        pub location: String,
        /// Cloud id of its network.
        pub network: String,
        /// Name for people.
        pub display_name: String,
        /// Its address blocks, inside those of the network.
        pub cidr: Cidr,
        /// Cloud id of its route table, one of the same network.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub route_table: Option<String>,
        /// Zone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub zone: Option<String>,
        /// Name of its network type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub network_type: Option<String>,
    }

    /// Where packets go.
    pub struct RouteTableSpec {
        /// Where.
        pub location: String,
        /// Cloud id of its network.
        pub network: String,
        /// Name for people.
        pub display_name: String,
        /// The routes.
        pub routes: Vec<Route>,
    }

    /// One way for packets, through at most one of a gateway, a machine and an address. It has no
    /// effect while its target does not exist.
    pub struct Route {
        /// Address block that they are for.
        pub destination: String,
        /// Cloud id of a gateway.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub gateway: Option<String>,
        /// Cloud id of a machine.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub machine: Option<String>,
        /// An address.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub address: Option<String>,
    }

    /// A way to the internet.
    pub struct GatewaySpec {
        /// Where.
        pub location: String,
        /// Cloud id of its project.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub project: Option<String>,
        /// Name for people.
        pub display_name: String,
        /// Whether connections can be opened from inside only.
        #[serde(default)]
        pub egress_only: bool,
    }

    /// What a machine is connected to a subnet with.
    pub struct NetworkInterfaceSpec {
        /// Where.
        pub location: String,
        /// Cloud id of its subnet.
        pub subnet: String,
        /// Name for people.
        pub display_name: String,
        /// Addresses inside the subnet; one that the cloud chooses when there is none.
        #[serde(default)]
        pub addresses: Vec<String>,
        /// Cloud ids of public addresses. One that does not exist has no effect.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub public_addresses: Vec<String>,
        /// Cloud ids of security groups.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub security_groups: Vec<String>,
        /// Name of its network type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub network_type: Option<String>,
    }

    /// An address on the internet.
    pub struct PublicAddressSpec {
        /// Where.
        pub location: String,
        /// Cloud id of its project.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub project: Option<String>,
        /// Name for people.
        pub display_name: String,
        /// Family.
        pub version: IpVersion,
        /// The customer's own address; one of the cloud's by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub address: Option<String>,
    }

    /// Rules for packets, as a whole.
    pub struct SecurityGroupSpec {
        /// Where.
        pub location: String,
        /// Cloud id of its project.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub project: Option<String>,
        /// Name for people.
        pub display_name: String,
        /// Rules of its own.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub rules: Vec<Rule>,
        /// Cloud ids of security rules. One that does not exist has no effect.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub security_rules: Vec<String>,
    }

    /// A rule for packets, to be shared by security groups.
    pub struct SecurityRuleSpec {
        /// Where.
        pub location: String,
        /// Cloud id of its project.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub project: Option<String>,
        /// Name for people.
        pub display_name: String,
        /// The rule.
        #[serde(flatten)]
        pub rule: Rule,
    }

    /// Lets packets pass.
    pub struct Rule {
        /// Which way.
        pub direction: Direction,
        /// Protocol; every one by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub protocol: Option<Protocol>,
        /// Family; both by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub version: Option<IpVersion>,
        /// Ports; every one by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub ports: Option<Ports>,
        /// Kind of ICMP message; every one by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub icmp: Option<Icmp>,
        /// Addresses, address blocks and cloud ids of gateways, machines, network interfaces,
        /// public addresses, security groups, subnets and networks; every one by default. The rule
        /// has no effect while one of them does not exist.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub sources: Vec<String>,
    }

    /// Ports: a range (or one, when an end is missing), and single ones.
    #[derive(Default)]
    pub struct Ports {
        /// First.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = 65_535))]
        pub from: Option<i64>,
        /// Last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = 65_535))]
        pub to: Option<i64>,
        /// Single ones.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub list: Vec<i64>,
    }

    /// A kind of ICMP message.
    pub struct Icmp {
        /// Type.
        #[serde(rename = "type")]
        #[schemars(range(min = 0, max = 255))]
        pub kind: i64,
        /// Code.
        #[schemars(range(min = 0, max = 255))]
        pub code: i64,
    }

    /// A computer.
    pub struct MachineSpec {
        /// Where.
        pub location: String,
        /// Cloud id of its project.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub project: Option<String>,
        /// Name for people.
        pub display_name: String,
        /// Zone.
        pub zone: String,
        /// Name of its machine type.
        pub machine_type: String,
        /// What it starts from.
        pub boot_volume: VolumeUse,
        /// More volumes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub data_volumes: Vec<VolumeUse>,
        /// Cloud ids of its network interfaces, the primary one first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub interfaces: Vec<String>,
        /// Cloud id of its security group.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub security_group: Option<String>,
        /// Machines of one such group run on different hosts as far as there are any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub anti_affinity_group: Option<String>,
        /// Public keys of those who may log in.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub ssh_keys: Vec<String>,
        /// Given to what runs at first boot.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub user_data: Option<String>,
        /// Whether it runs. It is made off by default, and left as it is afterwards.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub power: Option<Power>,
        /// A later time than before starts it again, if it runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("format" = "date-time"))]
        pub restarted_at: Option<String>,
    }

    /// A volume of a machine.
    pub struct VolumeUse {
        /// Cloud id of the volume.
        pub volume: String,
        /// How it is connected, such as virtio.
        #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
        pub kind: Option<String>,
    }
}

/// Declares an enumeration of words.
macro_rules! words {
    ($($(#[$meta:meta])* pub enum $name:ident {
        $($(#[$doc:meta])* $variant:ident = $word:literal,)*
    })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum $name {$(
            $(#[$doc])*
            #[serde(rename = $word)]
            $variant,
        )*}

        impl $name {
            /// The word for it.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }
    )*};
}

words! {
    /// A family of addresses.
    pub enum IpVersion {
        /// Version 4.
        V4 = "IPv4",
        /// Version 6.
        V6 = "IPv6",
    }

    /// Which way packets go.
    pub enum Direction {
        /// To the machine.
        Ingress = "ingress",
        /// From the machine.
        Egress = "egress",
    }

    /// A protocol, or two.
    pub enum Protocol {
        /// TCP.
        Tcp = "tcp",
        /// UDP.
        Udp = "udp",
        /// Both.
        Both = "tcp+udp",
        /// ICMP.
        Icmp = "icmp",
    }

    /// Whether a machine runs.
    pub enum Power {
        /// It runs.
        On = "on",
        /// It does not.
        Off = "off",
    }

    /// Whether a part of something has an effect.
    pub enum PartState {
        /// It has.
        Active = "active",
        /// It has not, yet.
        Pending = "pending",
    }
}
