//! The managed resources of the dummy cloud.

use std::time::Duration;

use ecp_provider::{Configs, Managed, Provider};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The provider.
pub const PROVIDER: Provider = Provider {
    name: "dummy",
    group: "dummy.m.secapi.cloud",
    version: "v1alpha1",
    configs: Configs::Tracked,
};

macro_rules! managed {
    ($(#[$doc:meta])* $kind:ident, $plural:literal, $for:ty, $at:ty) => {
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
    };
}

managed!(
    /// A location in use.
    Location,
    "locations",
    LocationParameters,
    CatalogueObservation
);
managed!(
    /// A group of resources.
    Project,
    "projects",
    ProjectParameters,
    ProjectObservation
);
managed!(
    /// A kind of volume on offer.
    VolumeType,
    "volumetypes",
    VolumeTypeParameters,
    CatalogueObservation
);
managed!(
    /// A block device.
    Volume,
    "volumes",
    VolumeParameters,
    VolumeObservation
);
managed!(
    /// A copy of a volume.
    VolumeImage,
    "volumeimages",
    ImageParameters,
    ImageObservation
);

/// What a location should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocationParameters {
    /// Its name in the cloud.
    pub location: String,
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

/// What a project should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectParameters {
    /// Where.
    pub location: String,
    /// Name for people.
    pub display_name: String,
}

/// What a project is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectObservation {
    /// Identity in the cloud.
    pub id: String,
    /// creating, active, updating or deleting.
    pub state: String,
}

/// What a volume type should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeTypeParameters {
    /// Where.
    pub location: String,
    /// Its name in the cloud.
    #[serde(rename = "type")]
    pub kind: String,
    /// Operations a second.
    #[schemars(range(min = 0))]
    pub iops: i64,
    /// Smallest volume.
    #[serde(rename = "minSizeGB")]
    #[schemars(range(min = 1))]
    pub min_size_gb: i64,
}

/// What a volume should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeParameters {
    /// Where.
    pub location: String,
    /// Cloud id of its project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Name for people.
    pub display_name: String,
    /// Size. It can grow and not shrink.
    #[serde(rename = "sizeGB")]
    #[schemars(range(min = 1))]
    pub size_gb: i64,
    /// Name of its volume type.
    pub volume_type: String,
    /// Operations a second; what the type has by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub iops: Option<i64>,
    /// Cloud id of the image that it starts from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_image: Option<String>,
}

/// What a volume is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeObservation {
    /// Identity in the cloud.
    pub id: String,
    /// creating, active, updating or deleting.
    pub state: String,
    /// Real size.
    #[serde(rename = "sizeGB")]
    pub size_gb: i64,
    /// Instance that it is attached to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached_to: Option<String>,
}

/// What an image should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageParameters {
    /// Where.
    pub location: String,
    /// Name for people.
    pub display_name: String,
    /// Cloud id of the volume that it is a copy of.
    pub source_volume: String,
    /// Processor, such as amd64.
    pub cpu_architecture: String,
    /// Firmware, such as UEFI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// What runs at first boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initializer: Option<String>,
}

/// What an image is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageObservation {
    /// Identity in the cloud.
    pub id: String,
    /// creating, active, updating or deleting.
    pub state: String,
    /// Size.
    #[serde(rename = "sizeMB", default, skip_serializing_if = "Option::is_none")]
    pub size_mb: Option<i64>,
}
