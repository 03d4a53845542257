//! Structural schemas: compile, validate, default, prune.
//!
//! A [`Structural`] is made from a CRD version's `openAPIV3Schema`. It is immutable and cheap to
//! share: one compiled schema serves every logical cluster that has the same text.
//!
//! Invariant: pure. No I/O, no clock, no `kube`, no `k8s-openapi`.
//!
//! Entry points: [`Structural::compile`], [`from_type`].

mod cel;
mod checks;
mod compile;
mod defaults;
mod embedded;
mod error;
mod format;
mod generate;
mod junctor;
mod keywords;
mod limits;
mod listtype;
mod node;
mod number;
mod path;
mod prune;
mod structural;
mod structure;
mod validate;

pub use checks::Checks;
pub use error::{FieldError, FieldErrorKind};
pub use generate::from_type;
pub use node::{ListType, MapType, Node, NodeType};
pub use structural::Structural;
