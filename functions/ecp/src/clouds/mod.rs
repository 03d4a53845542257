//! The clouds, each behind one trait.
//!
//! A cloud is a module here and a line in `CLOUDS`. It turns a SECA resource, already resolved to
//! plain values, into managed resources, and reads facts back from what was observed of them.

mod dummy;
mod plain;

use std::collections::BTreeMap;
use std::fmt;

use ecp_xrds::KindInfo;
use serde_json::{Map, Value};

use crate::managed::{Managed, ManagedKind};

pub use plain::{
    BlockStorage, Disk, Image, Instance, InstanceSku, InternetGateway, Network, NetworkSku, Nic,
    PublicIp, Region, Route, RouteTable, RouteTarget, Rule, SecurityGroup, SecurityGroupRule,
    StorageSku, Subnet, Workspace,
};

/// Every cloud.
static CLOUDS: [&dyn Cloud; 1] = [&dummy::Dummy];

/// The cloud of a name.
pub fn by_name(name: &str) -> Option<&'static dyn Cloud> {
    CLOUDS.iter().copied().find(|c| c.name() == name)
}

/// The names of all clouds.
pub fn names() -> impl Iterator<Item = &'static str> {
    CLOUDS.iter().map(|c| c.name())
}

/// The cloud that makes some of the observed resources.
pub fn of(observed: &Observed<'_>) -> Option<&'static dyn Cloud> {
    CLOUDS.iter().copied().find(|cloud| {
        let kinds = cloud.managed_kinds();
        observed.values().any(|o| kinds.iter().any(|k| k.is(o)))
    })
}

/// Every kind of managed resource of every cloud.
pub fn managed_kinds() -> impl Iterator<Item = &'static ManagedKind> {
    CLOUDS.iter().flat_map(|c| c.managed_kinds())
}

/// Managed resources observed, by their name in the composition.
pub type Observed<'a> = BTreeMap<&'a str, &'a Value>;

/// One cloud.
pub trait Cloud: fmt::Debug + Sync {
    /// Its name, as in a Region's `spec.cloud.name`.
    fn name(&self) -> &'static str;

    /// Every kind of managed resource it makes.
    fn managed_kinds(&self) -> &'static [ManagedKind];

    /// The kind of managed resource whose external name is the cloud's id of a SECA resource, and
    /// which must be ready before others can use that; `None` for kinds that need not be waited
    /// for.
    fn identity(&self, kind: &KindInfo) -> Option<&'static ManagedKind>;

    /// What a region needs.
    fn region(&self, region: &Region) -> Vec<Managed>;

    /// What a workspace needs in the cloud. Its namespace is not the cloud's.
    fn workspace(&self, workspace: &Workspace<'_>) -> Vec<Managed>;

    /// What a storage SKU needs in one of the regions it is offered in.
    fn storage_sku(&self, sku: &StorageSku<'_>) -> Vec<Managed>;

    /// What an instance SKU needs in one of the regions it is offered in.
    fn instance_sku(&self, sku: &InstanceSku<'_>) -> Vec<Managed>;

    /// What a network SKU needs in one of the regions it is offered in.
    fn network_sku(&self, sku: &NetworkSku<'_>) -> Vec<Managed>;

    /// What a block storage needs.
    fn block_storage(&self, storage: &BlockStorage<'_>) -> Vec<Managed>;

    /// What an image needs.
    fn image(&self, image: &Image<'_>) -> Vec<Managed>;

    /// What a network needs. What is in it is not the cloud's to delete.
    fn network(&self, network: &Network<'_>) -> Vec<Managed>;

    /// What a subnet needs.
    fn subnet(&self, subnet: &Subnet<'_>) -> Vec<Managed>;

    /// What a route table needs.
    fn route_table(&self, table: &RouteTable<'_>) -> Vec<Managed>;

    /// What an internet gateway needs.
    fn internet_gateway(&self, gateway: &InternetGateway<'_>) -> Vec<Managed>;

    /// What a NIC needs.
    fn nic(&self, nic: &Nic<'_>) -> Vec<Managed>;

    /// What a public IP needs.
    fn public_ip(&self, ip: &PublicIp<'_>) -> Vec<Managed>;

    /// What a security group needs.
    fn security_group(&self, group: &SecurityGroup<'_>) -> Vec<Managed>;

    /// What a security group rule needs.
    fn security_group_rule(&self, rule: &SecurityGroupRule<'_>) -> Vec<Managed>;

    /// What an instance needs.
    fn instance(&self, instance: &Instance<'_>) -> Vec<Managed>;

    /// What the observed resources of a kind say.
    fn facts(&self, kind: &KindInfo, observed: &Observed<'_>) -> Facts;
}

/// What observed managed resources say of a SECA resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Status fields, as they are.
    pub fields: Map<String, Value>,
    /// SECA name of what it is attached to.
    pub attached_to: Option<String>,
    /// Ids in the cloud of what it really uses.
    pub uses: Vec<String>,
    /// Its parts, in the order in which they were wanted.
    pub parts: Vec<Part>,
}

/// A part of a resource in the cloud, such as a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Whether it has an effect.
    pub active: bool,
    /// Why it has none, in the cloud's words.
    pub reason: Option<String>,
}
