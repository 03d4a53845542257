//! What is installed beside the XRDs: the Compositions of each kind, and a first catalogue.
//!
//! [`roots`] has each of our packages as a directory that `crossplane xpkg build` takes.
//! Compositions are files of `compositions/`, written for [`Flavour::V2`]; those of the other
//! flavour are made from them. The manifests of `examples/first-volume` are here for demos.
//!
//! [`xpkg`] reads and writes packages, ours and others'.
//!
//! Invariant: no I/O and no `kube`; objects are JSON.
//!
//! Entry points: [`compositions`], [`catalogue`], [`roots::ROOTS`],
//! [`install::manifests`], [`xpkg::Package`].

mod catalogue;
mod compositions;
mod examples;
pub mod install;
pub mod limits;
pub mod roots;
pub mod xpkg;

pub use catalogue::{SYSTEM_NAMESPACE, catalogue};
pub use compositions::compositions;
pub use examples::FIRST_VOLUME;
// Callers of this crate choose a flavour without knowing where it is declared.
pub use ecp_xrds::Flavour;
