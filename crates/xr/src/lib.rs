//! The composite resource engine, without I/O.
//!
//! Decides what upstream Crossplane would do: CRDs from XRDs, revisions from Compositions, and for
//! an XR, what it observed and what its functions answered, the desired resources and effects.
//!
//! Invariant: no I/O, no clock, no randomness, no `kube`, no protobuf. Those are arguments.
//!
//! Entry points: one reconcile of an XR, in the order of calls:
//! [`prepare::prepare`] (finalizer, Composition, revision), [`compose::observe`] for each object it
//! refers to, [`pipeline::Pipeline`] (functions and what they require), [`compose::render`] (objects),
//! [`compose::garbage`] (to delete), [`compose::resource_refs`], and [`status::report`].
//!
//! Other entry points: [`xrd::Xrd`] and [`crd`] for definitions, [`composition`] for revisions,
//! [`claim`] for claims, [`function`] for the plain types of the function protocol.

pub mod claim;
pub mod compose;
pub mod composition;
pub mod crd;
pub mod event;
pub mod function;
pub mod limits;
pub mod machinery;
pub mod pipeline;
pub mod prepare;
pub mod status;
pub mod xrd;
