//! Limits of packages.

/// Most bytes of a `package.yaml` (crossplane-runtime `pkg/xpkg/client.go`, `maxPackageSize`).
pub const PACKAGE_YAML_BYTES_MAX: u64 = 200 << 20;
/// Most bytes that the layer with the package unpacks to.
pub const PACKAGE_LAYER_BYTES_MAX: u64 = PACKAGE_YAML_BYTES_MAX + (1 << 20);
/// Most bytes that any layer unpacks to.
pub const LAYER_BYTES_MAX: u64 = 4 << 30;
/// Most documents of a `package.yaml`.
pub const DOCUMENTS_MAX: usize = 20_000;
