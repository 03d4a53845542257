//! Structural schemas: compile, validate, default, prune.
//!
//! A [`Structural`] is made from a CRD version's `openAPIV3Schema`. It is immutable and cheap to
//! share: one compiled schema serves every logical cluster that has the same text.
//!
//! Invariant: pure. No I/O, no clock, no `kube`, no `k8s-openapi`.
//!
//! Behaviour and wording are those of kube-apiserver 1.36 (apiextensions and kube-openapi). Where it
//! is known to differ, it is stricter or more helpful, on purpose:
//! - fractional bounds hold for whole numbers, too (upstream cuts the fraction off);
//! - an array is no text, whatever the format;
//! - enumerations of integers do not take fractions;
//! - unchanged objects that preserve unknown fields ratchet, too;
//! - sizes of schemas, objects and rules are bounded, and a rule's cost is bounded before it runs.
//!
//! Entry points: [`Structural::compile`], [`from_type`], [`conditions`].

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
mod status;
mod structural;
mod structure;
mod validate;

pub use checks::Checks;
pub use error::{FieldError, FieldErrorKind};
pub use generate::from_type;
pub use node::{ListType, MapType, Node, NodeType};
pub use status::conditions;
pub use structural::Structural;
