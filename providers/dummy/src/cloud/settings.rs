//! How the cloud behaves towards one account.

use serde::{Deserialize, Serialize};

/// Behaviour towards an account; all of it can be changed at any time and takes effect at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// How long creations take.
    pub create_ms: i64,
    /// How long updates take.
    pub update_ms: i64,
    /// How long deletions take.
    pub delete_ms: i64,
    /// What fails.
    pub failure: Option<Failure>,
    /// How the cloud changes volumes by itself.
    pub drift: Option<Drift>,
    /// Locations on offer; `None` offers every one.
    pub locations: Option<Vec<String>>,
    /// Bounds.
    pub quota: Quota,
}

/// Injected failures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Calls that fail.
    pub operations: Vec<Operation>,
    /// The cloud's words.
    pub message: String,
    /// Whether it is a refusal rather than an outage.
    pub permanent: bool,
    /// Share of the calls that fail, from 0 to 1.
    pub rate: f64,
    /// Whether the call is carried out and only its answer is lost.
    pub reply_lost: bool,
}

/// Calls that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Creation.
    Create,
    /// Change.
    Update,
    /// Removal.
    Delete,
    /// Reading.
    Observe,
}

/// Changes that nobody asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    /// Time between them, for each volume.
    pub interval_ms: i64,
    /// What is added to the size.
    pub delta_gb: i64,
}

/// Bounds of an account; `None` is no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Quota {
    /// Number of volumes.
    pub volumes: Option<i64>,
    /// Sum of the sizes of all volumes.
    pub size_gb: Option<i64>,
}
