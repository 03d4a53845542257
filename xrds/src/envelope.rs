//! What stands beside the SECA spec in every `spec`.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::limits::{ANNOTATION_VALUE_LEN_MAX, LABEL_VALUE_LEN_MAX};

/// SECA labels, annotations and extensions, kept and echoed exactly as they were sent. They are
/// apart from Kubernetes' metadata because their keys and values need not fit Kubernetes' rules.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CommonData {
    /// Labels for selection over REST. A value has 63 characters at most.
    #[schemars(schema_with = "labels_schema")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Free text about the resource. A value has 1024 characters at most.
    #[schemars(schema_with = "annotations_schema")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Free data for or from the cloud provider.
    #[schemars(schema_with = "free_object_schema")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Map<String, Value>>,
}

fn labels_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {"type": "string", "maxLength": LABEL_VALUE_LEN_MAX},
    })
}

pub(crate) fn annotations_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {"type": "string", "maxLength": ANNOTATION_VALUE_LEN_MAX},
    })
}

fn free_object_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// Fields of `spec` beside those of SECA (`crate::ENVELOPE_SPEC_FIELDS`). Kinds that are in no
/// region or no network have them without `region` or `network`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Envelope {
    /// Labels, annotations and extensions of the SECA resource, echoed as they were sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) common_data: Option<CommonData>,
    /// Region the resource lives in. May be left out where there is only one; cannot be changed.
    #[schemars(length(min = 1, max = 64))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) region: Option<String>,
    /// SECA name, where it differs from metadata.name. Cannot be changed.
    #[schemars(length(min = 1, max = 128))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// SECA name of the network it is in. Cannot be changed.
    #[schemars(length(min = 1, max = 128), extend("x-kubernetes-validations" = [
        {"rule": "self == oldSelf", "message": "network cannot be changed"}
    ]))]
    pub(crate) network: String,
    /// When the intent was last sent again unchanged over REST. It counts as a change.
    #[schemars(extend("format" = "date-time"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) repeated_at: Option<String>,
}
