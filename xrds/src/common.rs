//! What several kinds have in common.

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

fn annotations_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {"type": "string", "maxLength": ANNOTATION_VALUE_LEN_MAX},
    })
}

fn free_object_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// Fields of `spec` beside those of SECA (`crate::ENVELOPE_SPEC_FIELDS`).
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
}

/// A reference to another resource.
///
/// `resource` may be a URN (`seca.storage/v1/tenants/t/skus/RD500`), a path from the referring
/// resource (`skus/RD500`) or a bare name. What it does not say comes from the other fields, then
/// from the place of the resource that refers.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Reference {
    /// URN, path or name of the resource, such as `skus/RD500`.
    #[schemars(length(min = 1, max = 256))]
    pub resource: String,
    /// Provider of the resource, such as `seca.storage`.
    #[schemars(length(max = 64))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Tenant of the resource.
    #[schemars(length(max = 64))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Workspace of the resource.
    #[schemars(length(max = 64))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Region of the resource.
    #[schemars(length(max = 64))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}

impl Reference {
    /// A reference that is a text and nothing else.
    pub fn to(resource: impl Into<String>) -> Self {
        Self {
            resource: resource.into(),
            ..Self::default()
        }
    }
}

/// State of a resource (SECA section 2.3).
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Accepted, waiting for what it depends on.
    #[default]
    Pending,
    /// Being created in the cloud.
    Creating,
    /// As the user wants it.
    Active,
    /// Being changed in the cloud.
    Updating,
    /// Being deleted.
    Deleting,
    /// Refused by the cloud; a change of the spec may help.
    Error,
}

impl State {
    /// Its SECA name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Creating => "creating",
            Self::Active => "active",
            Self::Updating => "updating",
            Self::Deleting => "deleting",
            Self::Error => "error",
        }
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One state the resource went into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// The state.
    pub state: State,
    /// When it went into the state.
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_at: String,
    /// Why, in one word.
    #[schemars(
        length(max = 1024),
        regex(pattern = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    )]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, in a sentence.
    #[schemars(length(max = 32768))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Which version of the user's intent a status speaks of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// Digest of what the user wrote in `spec`.
    pub digest: String,
    /// Counts accepted changes, from 1: SECA's `resourceVersion`.
    #[schemars(range(min = 1))]
    pub revision: i64,
    /// When the last change was accepted.
    #[schemars(extend("format" = "date-time"))]
    pub last_modified_at: String,
}

/// Status fields that every kind has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// State of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// States it went through, newest first.
    #[schemars(length(max = 32))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryEntry>,
    /// Version of the user's intent that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<Intent>,
    /// What it waits for, or why the cloud refused. Absent when all is well.
    #[schemars(length(max = 32768))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
