//! What the cloud keeps.

use serde::{Deserialize, Serialize};

use super::specs::{
    Cidr, GatewaySpec, ImageSpec, LocationSpec, MachineSpec, MachineTypeSpec, NetworkInterfaceSpec,
    NetworkSpec, NetworkTypeSpec, PartState, Power, ProjectSpec, PublicAddressSpec, RouteTableSpec,
    SecurityGroupSpec, SecurityRuleSpec, SubnetSpec, VolumeSpec, VolumeTypeSpec,
};

/// Something in the cloud.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// Identity, chosen by the cloud.
    pub id: String,
    /// The client's tag; a second creation with the same tag answers with this object.
    pub tag: String,
    /// Account that owns it, and whose settings apply.
    pub account: String,
    /// What was asked for.
    pub spec: Spec,
    /// What is in force while a change to `spec` is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<Spec>,
    /// Where it is in its life.
    pub state: State,
    /// When the state began, in milliseconds since 1970.
    pub since_ms: i64,
    /// When it was made, in milliseconds since 1970; 0 in journals of earlier versions.
    #[serde(default)]
    pub made_ms: i64,
    /// Real size of a volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_gb: Option<i64>,
    /// Size of an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_mb: Option<i64>,
    /// What the cloud chose.
    #[serde(default, skip_serializing_if = "Choices::is_empty")]
    pub choices: Choices,
    /// When the cloud last changed the object by itself, or the object was made.
    pub drifted_ms: i64,
    /// What other objects make of it; worked out whenever the cloud answers, and not kept.
    #[serde(skip)]
    pub relations: Relations,
}

/// What the cloud chose for an object, beyond what was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Choices {
    /// Address blocks of a network or subnet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cidr: Option<Cidr>,
    /// More address blocks of a network.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub additional_cidrs: Vec<Cidr>,
    /// Addresses of an interface, or the one of a public address.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// Hardware address of an interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
    /// Whether a machine runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power: Option<Power>,
    /// When a machine was last started or stopped, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_since_ms: Option<i64>,
    /// Host that a machine is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

impl Choices {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What follows from the objects that an object refers to or that refer to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relations {
    /// The machine that has the volume or interface, or the interface that has the public address.
    pub attached_to: Option<Attached>,
    /// Ids of the public addresses that an interface really has.
    pub public_addresses: Vec<String>,
    /// Id of the route table that a subnet really has.
    pub route_table: Option<String>,
    /// The routes of a route table; the rules of a security group, its own first.
    pub parts: Vec<Part>,
}

/// The object that another one is attached to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attached {
    /// Identity in the cloud.
    pub id: String,
    /// Name for people.
    pub display_name: String,
}

/// A route or rule as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Whether it has an effect.
    pub state: PartState,
    /// Why it has none.
    pub reason: Option<String>,
}

/// Where an object is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Being made.
    Creating,
    /// There.
    Active,
    /// Being changed.
    Updating,
    /// Being removed.
    Deleting,
}

impl State {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Active => "active",
            Self::Updating => "updating",
            Self::Deleting => "deleting",
        }
    }
}

impl Object {
    /// What is in force: nothing while the object is being made.
    pub fn in_force(&self) -> Option<&Spec> {
        match self.state {
            State::Creating => None,
            State::Active | State::Updating | State::Deleting => {
                Some(self.was.as_ref().unwrap_or(&self.spec))
            }
        }
    }

    /// Whether others can use it.
    pub fn is_usable(&self) -> bool {
        matches!(self.state, State::Active | State::Updating)
    }

    /// Ids and other texts by which it refers to others, of what is in force and what is wanted.
    pub(super) fn references(&self) -> impl Iterator<Item = &str> {
        let was = self.was.iter().flat_map(Spec::references);
        self.spec.references().into_iter().chain(was)
    }
}

/// A type that says what an object of one kind should be.
pub trait SpecOf: Sized {
    /// The kind.
    const KIND: Kind;

    /// Itself, if `spec` is of its kind.
    fn of(spec: &Spec) -> Option<&Self>;
}

/// Declares the kinds.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident: $spec:ident, $prefix:literal, $noun:literal;)*) => {
        /// Kinds of objects.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Kind {$(
            $(#[$doc])*
            $kind,
        )*}

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            /// What ids of the kind start with; no other kind's prefix starts with it.
            pub fn prefix(self) -> &'static str {
                match self {
                    $(Self::$kind => $prefix,)*
                }
            }

            /// The word for it.
            pub fn noun(self) -> &'static str {
                match self {
                    $(Self::$kind => $noun,)*
                }
            }
        }

        /// What was asked for.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub enum Spec {$(
            /// See [`Kind`].
            $kind($spec),
        )*}

        impl Spec {
            /// The kind.
            pub fn kind(&self) -> Kind {
                match self {
                    $(Self::$kind(_) => Kind::$kind,)*
                }
            }

            /// Where it is.
            pub fn location(&self) -> &str {
                match self {
                    $(Self::$kind(spec) => &spec.location,)*
                }
            }
        }

        $(
            impl SpecOf for $spec {
                const KIND: Kind = Kind::$kind;

                fn of(spec: &Spec) -> Option<&Self> {
                    match spec {
                        Spec::$kind(spec) => Some(spec),
                        _ => None,
                    }
                }
            }

            impl From<$spec> for Spec {
                fn from(spec: $spec) -> Self {
                    Self::$kind(spec)
                }
            }
        )*

        /// Evaluates an expression on the spec of any kind.
        macro_rules! on_spec {
            ($any:expr, $bound:ident => $body:expr) => {
                match $any {
                    $($crate::cloud::Spec::$kind($bound) => $body,)*
                }
            };
        }
        pub(super) use on_spec;
    };
}

kinds! {
    /// A place with hardware.
    Location: LocationSpec, "loc-", "location";
    /// A group of resources.
    Project: ProjectSpec, "prj-", "project";
    /// A kind of volume.
    VolumeType: VolumeTypeSpec, "vt-", "volume type";
    /// A kind of machine.
    MachineType: MachineTypeSpec, "mt-", "machine type";
    /// A kind of network.
    NetworkType: NetworkTypeSpec, "nt-", "network type";
    /// A block device.
    Volume: VolumeSpec, "vol-", "volume";
    /// A copy of a volume that others can be made from.
    Image: ImageSpec, "img-", "image";
    /// A private network.
    Network: NetworkSpec, "net-", "network";
    /// A part of a network.
    Subnet: SubnetSpec, "sub-", "subnet";
    /// Where packets go.
    RouteTable: RouteTableSpec, "rtb-", "route table";
    /// A way to the internet.
    Gateway: GatewaySpec, "gw-", "gateway";
    /// What a machine is connected to a subnet with.
    NetworkInterface: NetworkInterfaceSpec, "nic-", "network interface";
    /// An address on the internet.
    PublicAddress: PublicAddressSpec, "ip-", "public address";
    /// Rules for packets.
    SecurityGroup: SecurityGroupSpec, "sg-", "security group";
    /// A rule for packets.
    SecurityRule: SecurityRuleSpec, "sr-", "security rule";
    /// A computer.
    Machine: MachineSpec, "vm-", "machine";
}

impl Kind {
    /// Entries of the catalogue are there at once; the rest takes the time that is set.
    pub fn is_catalogue(self) -> bool {
        match self {
            Self::Location | Self::VolumeType | Self::MachineType | Self::NetworkType => true,
            Self::Project
            | Self::Volume
            | Self::Image
            | Self::Network
            | Self::Subnet
            | Self::RouteTable
            | Self::Gateway
            | Self::NetworkInterface
            | Self::PublicAddress
            | Self::SecurityGroup
            | Self::SecurityRule
            | Self::Machine => false,
        }
    }
}

impl Spec {
    /// Ids and other texts by which it refers to others.
    pub(super) fn references(&self) -> Vec<&str> {
        on_spec!(self, spec => super::rules::Rules::references(spec))
    }
}
