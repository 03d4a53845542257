//! `function-ecp`, the composition function: SECA resources to managed resources of one cloud.
//!
//! [`compose`] is pure: what it answers follows from the request and the time alone. It reads the
//! XR, asks for what the XR refers to (`needs`), turns it into a plan (`kinds`) for the cloud of
//! its region ([`clouds`]), compares the plan with the managed resources observed ([`managed`]),
//! and records what that means for the user ([`status`]).
//!
//! # Guarantees
//! The same request gives the same response. No request panics. What cannot be done is a message in
//! the status, or a fatal result where the request itself makes no sense. A managed resource that
//! exists is never dropped from desired state because something it needs is missing for a while.
//!
//! Invariant: no I/O, no clock and no `kube` outside [`server`]; a cloud is one module below
//! [`clouds`] and nothing else knows its resources.
//!
//! Entry points: [`compose`], [`plain`], [`server::serve`].

mod cli;
pub mod clouds;
mod compose;
mod kinds;
pub mod limits;
pub mod managed;
mod needs;
mod numbers;
pub mod server;
pub mod status;
mod xr;

use std::sync::Arc;

pub use cli::main;
pub use compose::compose;

/// The name compositions call the function by: that which Crossplane's package manager gives a
/// dependency, made from the package's repository (`ToDNSLabel` of crossplane-runtime's `xpkg`).
pub const NAME: &str = "eu-sovereign-cloud-function-ecp";

/// The function for running in process, on the system's clock.
pub fn plain() -> ecp_fnproto::PlainFunction {
    Arc::new(|request| compose(request, jiff::Timestamp::now()))
}
