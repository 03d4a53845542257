//! API group `v1.secapi.cloud`: regions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{KindInfo, Scope, text};

pub(crate) const REGION: KindInfo = KindInfo {
    kind: "Region",
    plural: "regions",
    group: "v1.secapi.cloud",
    short_names: &["reg"],
    scope: Scope::Cluster,
    provider: "seca.region",
    seca_kind: "region",
    collection: "regions",
    catalogue: true,
    noun: "region",
    references: &[],
    spec: ecp_schema::from_type::<RegionSpec>,
    status: None,
    columns: &[
        text("Cloud", ".spec.cloud.name", "Cloud the region is in."),
        text(
            "Location",
            ".spec.cloud.location",
            "The cloud's own name of the region.",
        ),
    ],
};

/// A place where resources can be: a part of one cloud.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegionSpec {
    /// Zones that resources of the region can be put into.
    #[schemars(length(min = 1, max = 32), inner(length(min = 1, max = 32)))]
    pub available_zones: Vec<String>,
    /// SECA APIs that serve the region.
    #[schemars(length(min = 1, max = 64))]
    pub providers: Vec<RegionProvider>,
    /// Cloud that the region is a part of. Not shown over REST.
    pub cloud: CloudRef,
}

/// One SECA API of a region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RegionProvider {
    /// Name of the API, such as `seca.storage`.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// Base URL, without the version.
    #[schemars(length(min = 1, max = 4000))]
    pub url: String,
    /// Version of the API, such as `v1`.
    #[schemars(length(min = 1, max = 16))]
    pub version: String,
}

/// The part of a cloud that a region stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloudRef {
    /// Name of the cloud, such as `dummy`.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// The cloud's own name of the region.
    #[schemars(length(min = 1, max = 128))]
    pub location: String,
    /// How managed resources reach the cloud. By default the ClusterProviderConfig `default`.
    #[serde(default)]
    #[schemars(extend("default" = {"kind": "ClusterProviderConfig", "name": "default"}))]
    pub provider_config_ref: ConfigRef,
}

/// Name of a ProviderConfig or ClusterProviderConfig of the cloud.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigRef {
    /// `ProviderConfig` (in the namespace of each resource) or `ClusterProviderConfig`.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

impl Default for ConfigRef {
    fn default() -> Self {
        Self {
            kind: "ClusterProviderConfig".into(),
            name: "default".into(),
        }
    }
}
