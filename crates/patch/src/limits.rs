//! Limits on what a patch may ask for.

/// Operations in one JSON patch, as kube-apiserver's `maxJSONPatchOperations`.
pub const JSON_PATCH_OPERATIONS_MAX: usize = 10_000;
/// Bytes that the `copy` operations of one JSON patch may add, as kube-apiserver's
/// `AccumulatedCopySizeLimit`.
pub const JSON_PATCH_COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Bytes that the `move` operations of one JSON patch may walk.
pub const JSON_PATCH_MOVED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Deepest document a patch may make: `serde_json` reads nothing deeper than 128 back.
pub const DEPTH_MAX: usize = 127;
/// `Update` entries in `managedFields`; older ones are folded into `ancient-changes`
/// (apimachinery's `DefaultMaxUpdateManagers`).
pub const UPDATE_MANAGERS_MAX: usize = 10;
/// All annotations of an object together (`TotalAnnotationSizeLimitB`).
pub const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;
