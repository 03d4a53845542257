//! Images of packages: in registries, image layouts and files; built and unpacked without Docker.
//!
//! What a package is, `ecp_package::xpkg` knows; this crate finds the image that holds it, verifies
//! every part by its digest, builds images that are the same for the same input, and pushes them.
//!
//! Invariant: no `kube`; nothing of what was fetched is run here.
//!
//! Entry points: [`Client::fetch`], [`build()`], [`write_archive`].

mod archive;
mod blobs;
mod build;
mod client;
mod credentials;
mod digest;
mod error;
mod image;
mod layout;
pub mod limits;
mod media;
mod progress;
mod push;
mod registry;
pub mod root;
mod source;
mod unpack;

pub use archive::write as write_archive;
pub use build::{Base, Options as BuildOptions, build};
pub use client::{Client, Fetched, Options};
pub use digest::{Digest, Platform};
pub use error::Error;
pub use image::Image;
pub use layout::write as write_layout;
pub use oci_client::Reference;
pub use progress::Progress;
pub use source::{Source, reference};
pub use unpack::Runtime;
