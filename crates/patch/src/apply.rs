//! Server-side apply and field ownership (`metadata.managedFields`).

use ecp_schema::Node;
use serde_json::Value;

/// How lists and maps of an object merge.
#[derive(Clone, Copy, Debug)]
pub enum Typing<'a> {
    /// By a structural schema.
    Schema(&'a Node),
    /// Deduced from the value: maps granular, lists atomic.
    Deduced,
}

/// Who writes.
#[derive(Clone, Copy, Debug)]
pub struct Manager<'a> {
    /// Field manager.
    pub name: &'a str,
    /// Subresource written through: `""`, `status`, ...
    pub subresource: &'a str,
    /// The `apiVersion` of the request.
    pub api_version: &'a str,
    /// RFC 3339 time for entries whose set of fields changes.
    pub now: &'a str,
}

/// A field that another manager owns with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Path in Kubernetes' notation, such as `.spec.replicas`.
    pub field: String,
    /// `conflict with "kubectl" using apps/v1 at ...`.
    pub message: String,
}

/// Why an apply was refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ApplyError {
    /// Other managers own fields that the apply would change.
    #[error("apply failed with {} conflict(s)", .0.len())]
    Conflicts(Vec<Conflict>),
    /// The applied object is malformed, such as duplicate keys in a keyed list.
    #[error("{field}: {reason}")]
    Invalid {
        /// Path.
        field: String,
        /// What is wrong.
        reason: String,
    },
}

/// Applies `config` to `live` (`None` creates) and returns the merged object with its
/// `managedFields`.
///
/// `config` must hold `apiVersion`, `kind` and no `managedFields`. A merge that changes nothing
/// returns `live` as it is. `force` moves ownership instead of failing.
///
/// # Errors
/// See [`ApplyError`].
pub fn apply(
    live: Option<&Value>,
    config: &Value,
    manager: &Manager<'_>,
    force: bool,
    typing: Typing<'_>,
) -> Result<Value, ApplyError> {
    let _ = (live, config, manager, force, typing);
    unimplemented!()
}

/// Records in `new` what a create (`live` absent), update or patch changed: the manager owns what
/// it added or modified, and other managers lose it.
///
/// `metadata.managedFields` of `new` is taken as the client sent it: `[{}]` resets, an undecodable
/// value keeps the old.
pub fn track_update(
    live: Option<&Value>,
    new: &mut Value,
    manager: &Manager<'_>,
    typing: Typing<'_>,
) {
    let _ = (live, new, manager, typing);
    unimplemented!()
}
