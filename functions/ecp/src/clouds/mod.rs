//! The clouds, each behind one trait.
//!
//! A cloud is a module here and a line in `CLOUDS`. It turns a SECA resource, already resolved to
//! plain values, into managed resources, and reads facts back from what was observed of them.

mod dummy;

use std::collections::BTreeMap;
use std::fmt;

use ecp_xrds::{Boot, ConfigRef, CpuArchitecture, Initializer, KindInfo, VolumeType};
use serde_json::{Map, Value};

use crate::managed::{Managed, ManagedKind};

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

    /// What a block storage needs.
    fn block_storage(&self, storage: &BlockStorage<'_>) -> Vec<Managed>;

    /// What an image needs.
    fn image(&self, image: &Image<'_>) -> Vec<Managed>;

    /// The status fields of a kind that the observed resources give.
    fn facts(&self, kind: &KindInfo, observed: &Observed<'_>) -> Map<String, Value>;
}

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
    /// The cloud's id of the block storage it is taken of.
    pub source_volume: String,
    /// CPU architecture.
    pub cpu_architecture: CpuArchitecture,
    /// How a machine starts from it.
    pub boot: Boot,
    /// What sets a machine up.
    pub initializer: Initializer,
}
