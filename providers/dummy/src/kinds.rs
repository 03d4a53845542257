//! The managed resources of the dummy cloud. What each should be is a type of the cloud's API.

use std::time::Duration;

use ecp_provider::{Configs, Managed, Provider};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cloud::specs::{
    Cidr, GatewaySpec, ImageSpec, LocationSpec, MachineSpec, MachineTypeSpec, NetworkInterfaceSpec,
    NetworkSpec, NetworkTypeSpec, PartState, Power, ProjectSpec, PublicAddressSpec, RouteTableSpec,
    SecurityGroupSpec, SecurityRuleSpec, SubnetSpec, VolumeSpec, VolumeTypeSpec,
};
use crate::cloud::{Attached, State};

/// The provider.
pub const PROVIDER: Provider = Provider {
    name: "dummy",
    group: "dummy.m.secapi.cloud",
    version: "v1alpha1",
    configs: Configs::Tracked,
};

macro_rules! managed {
    ($($(#[$doc:meta])* $kind:ident, $plural:literal, $for:ty, $at:ty;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $kind;

            impl Managed for $kind {
                const PROVIDER: Provider = PROVIDER;
                const KIND: &'static str = stringify!($kind);
                const PLURAL: &'static str = $plural;
                // The cloud's reads are consistent.
                const CREATION_GRACE: Duration = Duration::ZERO;
                type ForProvider = $for;
                type AtProvider = $at;
            }
        )*

        /// Does the same for every kind, in order.
        macro_rules! for_each_kind {
            ($each:ident) => {
                $($each!($kind);)*
            };
        }
        pub(crate) use for_each_kind;
    };
}

managed! {
    /// A location in use.
    Location, "locations", LocationSpec, CatalogueObservation;
    /// A group of resources.
    Project, "projects", ProjectSpec, PlainObservation;
    /// A kind of volume on offer.
    VolumeType, "volumetypes", VolumeTypeSpec, CatalogueObservation;
    /// A kind of machine on offer.
    MachineType, "machinetypes", MachineTypeSpec, CatalogueObservation;
    /// A kind of network on offer.
    NetworkType, "networktypes", NetworkTypeSpec, CatalogueObservation;
    /// A block device.
    Volume, "volumes", VolumeSpec, VolumeObservation;
    /// A copy of a volume.
    VolumeImage, "volumeimages", ImageSpec, ImageObservation;
    /// A private network.
    VirtualNetwork, "virtualnetworks", NetworkSpec, NetworkObservation;
    /// A part of a network.
    VirtualSubnet, "virtualsubnets", SubnetSpec, SubnetObservation;
    /// Where packets go.
    RoutingTable, "routingtables", RouteTableSpec, RouteTableObservation;
    /// A way to the internet.
    Gateway, "gateways", GatewaySpec, PlainObservation;
    /// What a machine is connected to a subnet with.
    NetworkInterface, "networkinterfaces", NetworkInterfaceSpec, NetworkInterfaceObservation;
    /// An address on the internet.
    PublicAddress, "publicaddresses", PublicAddressSpec, PublicAddressObservation;
    /// Rules for packets.
    Firewall, "firewalls", SecurityGroupSpec, SecurityGroupObservation;
    /// A rule for packets, to be shared.
    SecurityRule, "securityrules", SecurityRuleSpec, PlainObservation;
    /// A computer.
    Machine, "machines", MachineSpec, MachineObservation;
}

/// Declares what is said about resources: each has an id and a state.
macro_rules! observations {
    ($($(#[$meta:meta])* pub struct $name:ident { $($fields:tt)* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            /// Identity in the cloud.
            pub id: String,
            /// creating, active, updating or deleting.
            pub state: State,
            $($fields)*
        }
    )*};
}

/// What a catalogue entry is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CatalogueObservation {
    /// Identity in the cloud.
    pub id: String,
    /// Whether the cloud offers it.
    pub available: bool,
}

observations! {
    /// What a resource is of which there is nothing more to tell.
    pub struct PlainObservation {}

    /// What a volume is.
    pub struct VolumeObservation {
        /// Real size.
        #[serde(rename = "sizeGB")]
        pub size_gb: i64,
        /// Machine that it is attached to; the first, when there are more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub attached_to: Option<Attached>,
    }

    /// What an image is.
    pub struct ImageObservation {
        /// Size.
        #[serde(rename = "sizeMB", default, skip_serializing_if = "Option::is_none")]
        pub size_mb: Option<i64>,
    }

    /// What a network is.
    pub struct NetworkObservation {
        /// Its address blocks.
        pub cidr: Cidr,
        /// More address blocks.
        pub additional_cidrs: Vec<Cidr>,
    }

    /// What a subnet is.
    pub struct SubnetObservation {
        /// Its address blocks.
        pub cidr: Cidr,
        /// Cloud id of its route table.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub route_table: Option<String>,
    }

    /// What a route table is.
    pub struct RouteTableObservation {
        /// Its routes, in order.
        pub routes: Vec<RouteObservation>,
    }

    /// What a network interface is.
    pub struct NetworkInterfaceObservation {
        /// Its addresses, in order.
        pub addresses: Vec<String>,
        /// Hardware address.
        pub mac_address: String,
        /// Cloud ids of the public addresses that it really has.
        pub public_addresses: Vec<String>,
        /// Machine that it is in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub attached_to: Option<Attached>,
    }

    /// What a public address is.
    pub struct PublicAddressObservation {
        /// The address.
        pub address: String,
        /// Network interface that has it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub attached_to: Option<Attached>,
    }

    /// What a security group is.
    pub struct SecurityGroupObservation {
        /// Its own rules, in order, and then those it shares.
        pub rules: Vec<RuleObservation>,
    }

    /// What a machine is.
    pub struct MachineObservation {
        /// Whether it runs.
        pub power_state: Power,
        /// When it was last started or stopped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("format" = "date-time"))]
        pub power_state_since: Option<String>,
        /// Host that it is on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub host: Option<String>,
    }
}

/// What a route is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RouteObservation {
    /// Address block that it is for.
    pub destination: String,
    /// Whether it has an effect.
    pub state: PartState,
    /// Why it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a rule of a security group is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleObservation {
    /// Whether it has an effect.
    pub state: PartState,
    /// Why it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
