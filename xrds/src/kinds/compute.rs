//! API group `compute.v1.secapi.cloud`: instance SKUs and instances.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{KindInfo, REGION_COLUMN, RefField, Scope, integer, text};
use crate::reference::Reference;

const GROUP: &str = "compute.v1.secapi.cloud";
const PROVIDER: &str = "seca.compute";

pub(crate) const INSTANCE_SKU: KindInfo = KindInfo {
    kind: "InstanceSKU",
    plural: "skus",
    group: GROUP,
    short_names: &["isku"],
    scope: Scope::Cluster,
    provider: PROVIDER,
    seca_kind: "instance-sku",
    collection: "skus",
    catalogue: true,
    noun: "instance SKU",
    references: &[],
    spec: ecp_schema::from_type::<InstanceSkuSpec>,
    status: None,
    columns: &[
        super::SKU_NAME_COLUMN,
        integer("Vcpu", ".spec.vCPU", "Virtual processors."),
        integer("Ram-GB", ".spec.ram", "Memory in GB."),
        REGION_COLUMN,
    ],
};

pub(crate) const INSTANCE: KindInfo = KindInfo {
    kind: "Instance",
    plural: "instances",
    group: GROUP,
    short_names: &["vm"],
    scope: Scope::Workspace,
    provider: PROVIDER,
    seca_kind: "instance",
    collection: "instances",
    catalogue: false,
    noun: "instance",
    references: &[
        RefField::to("skuRef", &["InstanceSKU"]),
        RefField::to("bootVolume.deviceRef", &["BlockStorage"]),
        RefField::to("dataVolumes[].deviceRef", &["BlockStorage"]),
        RefField::to("primaryNicRef", &["NIC"]),
        RefField::to("additionalNicRefs[]", &["NIC"]),
        RefField::to("securityGroupRef", &["SecurityGroup"]),
    ],
    spec: ecp_schema::from_type::<InstanceSpec>,
    status: Some(ecp_schema::from_type::<InstanceStatus>),
    columns: &[
        text("Power", ".status.powerState", "Whether it is on or off."),
        text("Zone", ".spec.zone", "Zone of the region."),
        text("Sku", ".spec.skuRef.resource", "Instance SKU.").wide(),
        REGION_COLUMN,
    ],
};

/// A size of instance that a region offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceSkuSpec {
    /// Virtual processors.
    #[serde(rename = "vCPU")]
    #[schemars(range(min = 1, max = 60))]
    pub vcpu: i64,
    /// Memory in GB.
    #[schemars(range(min = 1, max = 65536))]
    pub ram: i64,
}

/// A virtual machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceSpec {
    /// Instance SKU: how large it is. It cannot be changed.
    #[schemars(extend("x-kubernetes-validations" = [
        {"rule": "self == oldSelf", "message": "skuRef cannot be changed"}
    ]))]
    pub sku_ref: Reference,
    /// Zone of the region that it runs in.
    #[schemars(length(min = 1, max = 32))]
    pub zone: String,
    /// Volume that it starts from.
    pub boot_volume: VolumeReference,
    /// More volumes.
    #[schemars(length(max = 64))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_volumes: Option<Vec<VolumeReference>>,
    /// First NIC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_nic_ref: Option<Reference>,
    /// More NICs.
    #[schemars(length(max = 16))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_nic_refs: Option<Vec<Reference>>,
    /// Security group of NICs that have none of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_group_ref: Option<Reference>,
    /// Instances with the same text here run on different hardware.
    #[schemars(length(max = 64))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anti_affinity_group: Option<String>,
    /// Public SSH keys that may log in.
    #[schemars(length(max = 32), inner(length(min = 1, max = 4096)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_keys: Option<Vec<String>>,
    /// What the image's initializer is given when the machine first starts.
    #[schemars(length(max = 65536))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<String>,
    /// Whether it is to run. Over REST: start, stop and restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<Power>,
}

/// A volume as a disk of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeReference {
    /// Block storage.
    pub device_ref: Reference,
    /// How the disk is connected.
    #[serde(rename = "type", default)]
    #[schemars(extend("default" = "virtio"))]
    pub kind: DiskBus,
}

/// How a disk is connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DiskBus {
    /// virtio.
    #[default]
    Virtio,
}

/// Whether an instance is to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Power {
    /// `on` or `off`; off by default.
    #[serde(default)]
    #[schemars(extend("default" = "off"))]
    pub state: PowerState,
    /// A later time than before restarts a running instance.
    #[schemars(extend("format" = "date-time"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarted_at: Option<String>,
}

/// Whether an instance runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PowerState {
    /// It runs.
    On,
    /// It does not.
    #[default]
    Off,
}

impl PowerState {
    /// Its SECA name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

/// Status fields of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceStatus {
    /// Whether it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_state: Option<PowerState>,
    /// Since when; absent until it is first started.
    #[schemars(extend("format" = "date-time"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_state_since: Option<String>,
}
