//! Errors of patches.

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
    /// The patch copies or moves more than allowed.
    #[error("patch copies or moves more than {max} bytes")]
    TooLarge {
        /// The limit in bytes.
        max: usize,
    },
    /// The patched document would be nested too deeply.
    #[error("patched document is nested more than {max} levels deep")]
    TooDeep {
        /// The limit in levels.
        max: usize,
    },
}
