//! JSON patch, merge patch, strategic merge patch and server-side apply.
//!
//! Invariant: pure. No I/O, no clock (times are arguments), no `kube`.
//!
//! Entry points: [`json_patch`], [`merge_patch`], [`apply()`], [`track_update`].

mod apply;

pub use apply::{ApplyError, Conflict, Manager, Typing, apply, track_update};

use serde_json::Value;

/// Why a patch cannot be applied.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PatchError {
    /// The patch is not a valid patch document.
    #[error("invalid patch: {0}")]
    Malformed(String),
    /// The patch has more operations than allowed.
    #[error("patch has {count} operations, at most {max} are allowed")]
    TooManyOperations {
        /// Operations in the patch.
        count: usize,
        /// The limit.
        max: usize,
    },
    /// A `test` operation failed, or a path does not exist.
    #[error("patch does not apply: {0}")]
    DoesNotApply(String),
}

/// Applies an RFC 6902 patch, at most 10,000 operations.
///
/// # Errors
/// See [`PatchError`].
pub fn json_patch(document: &Value, patch: &Value) -> Result<Value, PatchError> {
    let _ = (document, patch);
    unimplemented!()
}

/// Applies an RFC 7386 merge patch.
pub fn merge_patch(document: &mut Value, patch: &Value) {
    let _ = (document, patch);
    unimplemented!()
}
