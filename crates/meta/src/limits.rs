//! Limits that more than one crate enforces.

/// Longest DNS-1123 label, and longest label value.
pub const LABEL_VALUE_LEN_MAX: usize = 63;
/// Longest DNS-1123 subdomain, and longest object name.
pub const SUBDOMAIN_LEN_MAX: usize = 253;
/// Longest name of a composite resource or claim; Crossplane puts it into a label value.
pub const COMPOSITE_NAME_LEN_MAX: usize = 63;
/// Longest name of a SECA resource (SECA section 2.1).
pub const SECA_NAME_LEN_MAX: usize = 128;
/// Entries kept in `status.history`, and SECA's bound on `status.conditions`.
pub const HISTORY_LEN_MAX: usize = 32;
/// Requirements in one label selector.
pub const SELECTOR_TERMS_MAX: usize = 64;
/// Longest textual selector.
pub const SELECTOR_LEN_MAX: usize = 8 * 1024;
/// Deepest field path.
pub const FIELD_PATH_DEPTH_MAX: usize = 64;
/// Largest array index a field path may create (as upstream's fieldpath package).
pub const FIELD_PATH_INDEX_MAX: usize = 1024;
