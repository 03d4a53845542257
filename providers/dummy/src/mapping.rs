//! What differs between the kinds: which fields are left to the cloud, and what is told.

use crate::cloud::Object;
use crate::cloud::specs::{
    GatewaySpec, ImageSpec, LocationSpec, MachineSpec, MachineTypeSpec, NetworkInterfaceSpec,
    NetworkSpec, NetworkTypeSpec, Power, ProjectSpec, PublicAddressSpec, RouteTableSpec,
    SecurityGroupSpec, SecurityRuleSpec, SubnetSpec, VolumeSpec, VolumeTypeSpec,
};
use crate::external::Mapping;
use crate::kinds::{
    CatalogueObservation, Firewall, Gateway, ImageObservation, Location, Machine,
    MachineObservation, MachineType, NetworkInterface, NetworkInterfaceObservation,
    NetworkObservation, NetworkType, PlainObservation, Project, PublicAddress,
    PublicAddressObservation, RouteObservation, RouteTableObservation, RoutingTable,
    RuleObservation, SecurityGroupObservation, SecurityRule, SubnetObservation, VirtualNetwork,
    VirtualSubnet, Volume, VolumeImage, VolumeObservation, VolumeType,
};

macro_rules! catalogue {
    ($($kind:ident: $spec:ident),*) => {$(
        impl Mapping for $kind {
            fn observed(object: &Object, _spec: &$spec, offered: bool) -> CatalogueObservation {
                CatalogueObservation {
                    id: object.id.clone(),
                    available: offered,
                }
            }
        }
    )*};
}

catalogue!(
    Location: LocationSpec,
    VolumeType: VolumeTypeSpec,
    MachineType: MachineTypeSpec,
    NetworkType: NetworkTypeSpec
);

macro_rules! plain {
    ($($kind:ident: $spec:ident),*) => {$(
        impl Mapping for $kind {
            const LEFT: &'static [&'static str] = &["project"];

            fn observed(object: &Object, _spec: &$spec, _offered: bool) -> PlainObservation {
                PlainObservation {
                    id: object.id.clone(),
                    state: object.state,
                }
            }
        }
    )*};
}

plain!(Project: ProjectSpec, Gateway: GatewaySpec, SecurityRule: SecurityRuleSpec);

impl Mapping for Volume {
    const LEFT: &'static [&'static str] = &["project", "iops", "sourceImage"];
    const FILLED_IN: &'static [&'static str] = &["iops"];

    fn observed(object: &Object, _spec: &VolumeSpec, _offered: bool) -> VolumeObservation {
        VolumeObservation {
            id: object.id.clone(),
            state: object.state,
            size_gb: object.size_gb.unwrap_or_default(),
            attached_to: object.relations.attached_to.clone(),
        }
    }
}

impl Mapping for VolumeImage {
    const LEFT: &'static [&'static str] = &["sourceVolume", "boot", "initializer"];

    fn observed(object: &Object, _spec: &ImageSpec, _offered: bool) -> ImageObservation {
        ImageObservation {
            id: object.id.clone(),
            state: object.state,
            size_mb: object.size_mb,
        }
    }
}

impl Mapping for VirtualNetwork {
    const LEFT: &'static [&'static str] = &["project", "networkType"];

    fn observed(object: &Object, _spec: &NetworkSpec, _offered: bool) -> NetworkObservation {
        NetworkObservation {
            id: object.id.clone(),
            state: object.state,
            cidr: object.choices.cidr.clone().unwrap_or_default(),
            additional_cidrs: object.choices.additional_cidrs.clone(),
        }
    }
}

impl Mapping for VirtualSubnet {
    const LEFT: &'static [&'static str] = &["networkType"];

    fn observed(object: &Object, _spec: &SubnetSpec, _offered: bool) -> SubnetObservation {
        SubnetObservation {
            id: object.id.clone(),
            state: object.state,
            cidr: object.choices.cidr.clone().unwrap_or_default(),
            route_table: object.relations.route_table.clone(),
        }
    }
}

impl Mapping for RoutingTable {
    fn observed(object: &Object, spec: &RouteTableSpec, _offered: bool) -> RouteTableObservation {
        let routes = spec.routes.iter().zip(&object.relations.parts);
        RouteTableObservation {
            id: object.id.clone(),
            state: object.state,
            routes: routes
                .map(|(route, part)| RouteObservation {
                    destination: route.destination.clone(),
                    state: part.state,
                    reason: part.reason.clone(),
                })
                .collect(),
        }
    }
}

impl Mapping for NetworkInterface {
    const LEFT: &'static [&'static str] = &["networkType"];

    fn observed(
        object: &Object,
        _spec: &NetworkInterfaceSpec,
        _offered: bool,
    ) -> NetworkInterfaceObservation {
        NetworkInterfaceObservation {
            id: object.id.clone(),
            state: object.state,
            addresses: object.choices.addresses.clone(),
            mac_address: object.choices.mac_address.clone().unwrap_or_default(),
            public_addresses: object.relations.public_addresses.clone(),
            attached_to: object.relations.attached_to.clone(),
        }
    }
}

impl Mapping for PublicAddress {
    const LEFT: &'static [&'static str] = &["project"];

    fn observed(
        object: &Object,
        _spec: &PublicAddressSpec,
        _offered: bool,
    ) -> PublicAddressObservation {
        PublicAddressObservation {
            id: object.id.clone(),
            state: object.state,
            address: object
                .choices
                .addresses
                .first()
                .cloned()
                .unwrap_or_default(),
            attached_to: object.relations.attached_to.clone(),
        }
    }
}

impl Mapping for Firewall {
    const LEFT: &'static [&'static str] = &["project"];

    fn observed(
        object: &Object,
        _spec: &SecurityGroupSpec,
        _offered: bool,
    ) -> SecurityGroupObservation {
        let rules = object.relations.parts.iter();
        SecurityGroupObservation {
            id: object.id.clone(),
            state: object.state,
            rules: rules
                .map(|part| RuleObservation {
                    state: part.state,
                    reason: part.reason.clone(),
                })
                .collect(),
        }
    }
}

impl Mapping for Machine {
    const LEFT: &'static [&'static str] = &["project", "power", "restartedAt"];

    fn observed(object: &Object, _spec: &MachineSpec, _offered: bool) -> MachineObservation {
        let since = object.choices.power_since_ms;
        let since = since.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
        MachineObservation {
            id: object.id.clone(),
            state: object.state,
            power_state: object.choices.power.unwrap_or(Power::Off),
            power_state_since: since.map(|t| t.to_string()),
            host: object.choices.host.clone(),
        }
    }
}
