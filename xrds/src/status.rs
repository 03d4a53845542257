//! What every `status` has.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
