//! API group `storage.v1.secapi.cloud`: storage SKUs, block storages and images.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{KindInfo, REGION_COLUMN, RefField, Scope, integer, text};
use crate::reference::Reference;

const GROUP: &str = "storage.v1.secapi.cloud";
const PROVIDER: &str = "seca.storage";

pub(crate) const STORAGE_SKU: KindInfo = KindInfo {
    kind: "StorageSKU",
    plural: "skus",
    group: GROUP,
    short_names: &["ssku"],
    scope: Scope::Cluster,
    provider: PROVIDER,
    seca_kind: "storage-sku",
    collection: "skus",
    catalogue: true,
    noun: "storage SKU",
    references: &[],
    spec: ecp_schema::from_type::<StorageSkuSpec>,
    status: None,
    columns: &[
        super::SKU_NAME_COLUMN,
        text("Type", ".spec.type", "Kind of storage."),
        integer(
            "Iops",
            ".spec.iops",
            "Input and output operations a second.",
        ),
        REGION_COLUMN,
    ],
};

pub(crate) const BLOCK_STORAGE: KindInfo = KindInfo {
    kind: "BlockStorage",
    plural: "block-storages",
    group: GROUP,
    short_names: &["bs"],
    scope: Scope::Workspace,
    provider: PROVIDER,
    seca_kind: "block-storage",
    collection: "block-storages",
    catalogue: false,
    noun: "block storage",
    references: &[
        RefField::to("skuRef", &["StorageSKU"]),
        RefField::to("sourceImageRef", &["Image"]),
    ],
    spec: ecp_schema::from_type::<BlockStorageSpec>,
    status: Some(ecp_schema::from_type::<BlockStorageStatus>),
    columns: &[
        integer("Size-GB", ".spec.sizeGB", "Size in GB."),
        text("Sku", ".spec.skuRef.resource", "Storage SKU.").wide(),
        REGION_COLUMN,
    ],
};

pub(crate) const IMAGE: KindInfo = KindInfo {
    kind: "Image",
    plural: "images",
    group: GROUP,
    short_names: &["simg"],
    scope: Scope::Tenant,
    provider: PROVIDER,
    seca_kind: "image",
    collection: "images",
    catalogue: false,
    noun: "image",
    references: &[RefField::to("blockStorageRef", &["BlockStorage"])],
    spec: ecp_schema::from_type::<ImageSpec>,
    status: Some(ecp_schema::from_type::<ImageStatus>),
    columns: &[
        text(
            "Arch",
            ".spec.cpuArchitecture",
            "CPU architecture the image runs on.",
        ),
        integer("Size-MB", ".status.sizeMB", "Size in MB."),
        REGION_COLUMN,
    ],
};

/// A kind of block storage that a region offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageSkuSpec {
    /// Input and output operations a second.
    #[schemars(range(min = 1, max = 45_000))]
    pub iops: i64,
    /// Smallest volume that makes sense, in GB. A hint, not a limit.
    #[schemars(range(min = 1))]
    pub min_volume_size: i64,
    /// Where the data is and whether it outlives the machine.
    #[serde(rename = "type")]
    pub kind: VolumeType,
}

/// Where the data of a volume is and whether it outlives the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VolumeType {
    /// In the machine, lost with it.
    LocalEphemeral,
    /// In the machine, kept.
    LocalDurable,
    /// On the network, kept.
    RemoteDurable,
}

impl VolumeType {
    /// Its SECA name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LocalEphemeral => "local-ephemeral",
            Self::LocalDurable => "local-durable",
            Self::RemoteDurable => "remote-durable",
        }
    }
}

/// A volume that instances can use as a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockStorageSpec {
    /// Size in GB. It can grow but not shrink.
    #[serde(rename = "sizeGB")]
    #[schemars(
        range(min = 1, max = 1_000_000),
        extend("x-kubernetes-validations" = [
            {"rule": "self >= oldSelf", "message": "sizeGB cannot shrink"}
        ])
    )]
    pub size_gb: i64,
    /// Storage SKU of the volume. It cannot be changed.
    #[schemars(extend("x-kubernetes-validations" = [
        {"rule": "self == oldSelf", "message": "skuRef cannot be changed"}
    ]))]
    pub sku_ref: Reference,
    /// Image that the volume is filled from when it is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_image_ref: Option<Reference>,
}

/// Status fields of a block storage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockStorageStatus {
    /// Size the volume has in the cloud, in GB.
    #[serde(default, rename = "sizeGB", skip_serializing_if = "Option::is_none")]
    pub size_gb: Option<i64>,
    /// Instance that uses the volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached_to: Option<Reference>,
}

/// An image that volumes can be filled from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageSpec {
    /// Block storage that the image is taken of.
    pub block_storage_ref: Reference,
    /// CPU architecture that the image runs on.
    pub cpu_architecture: CpuArchitecture,
    /// How a machine starts from the image.
    #[serde(default)]
    #[schemars(extend("default" = "UEFI"))]
    pub boot: Boot,
    /// What sets a machine up when it first starts from the image.
    #[serde(default)]
    #[schemars(extend("default" = "none"))]
    pub initializer: Initializer,
}

/// CPU architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CpuArchitecture {
    /// 64-bit x86.
    Amd64,
    /// 64-bit Arm.
    Arm64,
}

/// How a machine starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Boot {
    /// UEFI firmware.
    #[default]
    #[serde(rename = "UEFI")]
    Uefi,
    /// Legacy BIOS.
    #[serde(rename = "BIOS")]
    Bios,
}

/// What sets a machine up when it first starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Initializer {
    /// Nothing.
    #[default]
    #[serde(rename = "none")]
    None,
    /// cloud-init 22.
    #[serde(rename = "cloudinit-22")]
    CloudInit22,
}

/// Status fields of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageStatus {
    /// Size of the image in MB.
    #[schemars(range(min = 1))]
    #[serde(default, rename = "sizeMB", skip_serializing_if = "Option::is_none")]
    pub size_mb: Option<i64>,
}
