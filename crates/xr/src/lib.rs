//! The composite resource engine, without I/O.
//!
//! Decides what upstream Crossplane would do: CRDs from XRDs, revisions from Compositions, and for
//! an XR, what it observed and what its functions answered, the desired resources and effects.
//!
//! Invariant: no I/O, no clock, no randomness, no `kube`, no protobuf. Those are arguments.
//!
//! Entry points: [`function`] for the plain types of the function protocol.

pub mod function;
