//! Limits of the composite resource engine.

/// Longest name of an XR or claim; it is used as a label value.
pub const COMPOSITE_NAME_LEN_MAX: i64 = 63;
/// Calls of one function in one step: the first, and five more while its requirements change
/// (upstream `MaxRequirementsIterations`).
pub const CALLS_PER_STEP_MAX: usize = 6;
/// Names listed before "and N more" in condition messages.
pub const NAMES_LISTED_MAX: usize = 3;
/// Steps in one pipeline (the Composition's own schema limit).
pub const PIPELINE_STEPS_MAX: usize = 99;
/// Characters of a revision hash that fit a label value.
pub const HASH_LABEL_LEN: usize = 63;
/// Characters of a revision hash in a revision's name.
pub const HASH_NAME_LEN: usize = 7;
