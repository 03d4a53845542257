//! The SECA domain as Rust types, and the XRDs generated from them.
//!
//! Every SECA kind is listed once, in [`kinds`]: its Kubernetes names, its SECA names and its
//! scope. The XRDs of both [flavours](Flavour), the facade's routes and the function's dispatch
//! read that table, so adding a kind is one module of types and one line of the table.
//!
//! Invariant: pure. No I/O, no clock, no `kube`, and nothing of the REST wire.
//!
//! Entry points: [`kinds`], [`xrds`], [`validate`], [`intent_digest`], [`reference::Parsed`],
//! [`selector::Selector`].

mod envelope;
mod flavour;
mod intent;
mod kinds;
pub mod limits;
mod names;
pub mod reference;
mod schema;
pub mod selector;
mod status;
mod validate;
mod xrd;

pub use envelope::CommonData;
pub use flavour::Flavour;
pub use intent::{CROSSPLANE_SPEC_FIELDS, intent_digest};
pub use kinds::authorization::{AssignmentScope, Permission, RoleAssignmentSpec, RoleSpec};
pub use kinds::compute::{
    DiskBus, InstanceSkuSpec, InstanceSpec, InstanceStatus, Power, PowerState, VolumeReference,
};
pub use kinds::network::{
    Cidr, Direction, Icmp, InternetGatewaySpec, IpVersion, NetworkSkuSpec, NetworkSpec,
    NetworkStatus, NicSpec, NicStatus, PartStatus, Ports, Protocol, PublicIpSpec, PublicIpStatus,
    Route, RouteTableSpec, RouteTableStatus, SecurityGroupRuleSpec, SecurityGroupSpec,
    SecurityGroupStatus, SubnetSpec, SubnetStatus,
};
pub use kinds::region::{CloudRef, ConfigRef, RegionProvider, RegionSpec};
pub use kinds::storage::{
    BlockStorageSpec, BlockStorageStatus, Boot, CpuArchitecture, ImageSpec, ImageStatus,
    Initializer, StorageSkuSpec, VolumeType,
};
pub use kinds::workspace::{WorkspaceSpec, WorkspaceStatus};
pub use kinds::{
    KindInfo, RefField, Scope, by_collection, by_kind, by_provider, by_xr_kind, is_global, kinds,
};
pub use names::{ENVELOPE_SPEC_FIELDS, object_name, seca_name, seca_spec};
pub use reference::Reference;
pub use schema::version_schema;
pub use status::{HistoryEntry, Intent, State, Status};
pub use validate::{prune, validate, validate_update};
pub use xrd::xrds;
