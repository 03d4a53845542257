//! Crossplane packages (xpkg): a YAML stream of one meta document and objects, in a layer of an image.
//!
//! [`Package`] is the stream, [`Layer`] the layer of an image that holds it. Images, registries and
//! files are the business of `ecp-oci`.
//!
//! Source: crossplane-runtime `pkg/xpkg`.

mod constraint;
mod error;
mod kinds;
mod layer;
mod meta;
mod names;
mod stream;
#[cfg(test)]
mod tests;

pub use constraint::{Constraint, is_digest, release, version};
pub use error::Error;
pub use kinds::needs_crossplane_2;
pub use layer::{Entry, Found, Layer, decompress, find_package_yaml, read_package_yaml};
pub use meta::{Dependency, Meta, PackageKind};
pub use names::{friendly_id, to_dns_label};
pub use stream::Package;

/// Name of the file that holds a package.
pub const PACKAGE_FILE: &str = "package.yaml";
/// Name of the file that holds examples.
pub const EXAMPLES_FILE: &str = ".up/examples.yaml";
/// Annotation of a layer that says what of a package it holds. It is also the beginning of the
/// label of an image's configuration that says so of a layer: `<annotation>:<digest>`.
pub const LAYER_ANNOTATION: &str = "io.crossplane.xpkg";
/// Value of [`LAYER_ANNOTATION`] for the layer with [`PACKAGE_FILE`].
pub const LAYER_OF_PACKAGE: &str = "base";
/// Value of [`LAYER_ANNOTATION`] for the layer with [`EXAMPLES_FILE`].
pub const LAYER_OF_EXAMPLES: &str = "upbound";
