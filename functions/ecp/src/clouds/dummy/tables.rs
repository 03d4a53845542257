//! What the dummy cloud has, as data.

use crate::managed::ManagedKind;

const API_VERSION: &str = "dummy.m.secapi.cloud/v1alpha1";

/// Its managed resources, in the order of the constants below.
pub(super) static MANAGED: [ManagedKind; 5] = [
    ManagedKind {
        api_version: API_VERSION,
        kind: "Location",
        noun: "location",
        fields: &["location"],
    },
    ManagedKind {
        api_version: API_VERSION,
        kind: "Project",
        noun: "project",
        fields: &["location", "displayName"],
    },
    ManagedKind {
        api_version: API_VERSION,
        kind: "VolumeType",
        noun: "volume type",
        fields: &["location", "type", "iops", "minSizeGB"],
    },
    ManagedKind {
        api_version: API_VERSION,
        kind: "Volume",
        noun: "volume",
        fields: &[
            "location",
            "project",
            "displayName",
            "sizeGB",
            "volumeType",
            "iops",
            "sourceImage",
        ],
    },
    ManagedKind {
        api_version: API_VERSION,
        kind: "VolumeImage",
        noun: "image",
        fields: &[
            "location",
            "displayName",
            "sourceVolume",
            "cpuArchitecture",
            "boot",
            "initializer",
        ],
    },
];

pub(super) static LOCATION: &ManagedKind = &MANAGED[0];
pub(super) static PROJECT: &ManagedKind = &MANAGED[1];
pub(super) static VOLUME_TYPE: &ManagedKind = &MANAGED[2];
pub(super) static VOLUME: &ManagedKind = &MANAGED[3];
pub(super) static IMAGE: &ManagedKind = &MANAGED[4];

/// The cloud's volume type for a storage SKU.
pub(super) fn volume_type(sku: &str) -> String {
    sku.to_ascii_lowercase()
}

/// Smallest volume of every type. The SKU's own figure is a hint for people, not a limit (SECA
/// section 3.6 has volumes of 20 GB on SKUs with 50).
pub(super) const VOLUME_SIZE_GB_MIN: i64 = 1;
