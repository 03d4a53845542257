//! Limits of the SECA domain (SECA section 2).

/// Longest value of a SECA label.
pub const LABEL_VALUE_LEN_MAX: usize = 63;
/// Longest value of a SECA annotation.
pub const ANNOTATION_VALUE_LEN_MAX: usize = 1024;
/// Longest `resource` of a reference.
pub const REFERENCE_LEN_MAX: usize = 256;
/// Longest provider, tenant, workspace or region in a reference.
pub const REFERENCE_PART_LEN_MAX: usize = 64;
/// Longest textual label selector.
pub const SELECTOR_LEN_MAX: usize = 8 * 1024;
/// Most terms in one label selector.
pub const SELECTOR_TERMS_MAX: usize = 64;
