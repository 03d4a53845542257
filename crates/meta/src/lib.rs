//! Names, kinds, object access, selectors, conditions and field paths shared by every part.
//!
//! Pure data and functions: everything here is deterministic and total.
//!
//! Invariant: no I/O, no clock, no randomness, no `kube`, no `k8s-openapi`.
//!
//! Entry points: [`cluster::ClusterName`], [`gvk::GroupVersionKind`], [`object`] for JSON objects,
//! [`selector::LabelSelector`], [`condition`], [`fieldpath::FieldPath`], [`names`], [`keys`].

pub mod cluster;
pub mod condition;
pub mod fieldpath;
pub mod gvk;
pub mod keys;
pub mod limits;
pub mod names;
pub mod object;
pub mod selector;
