//! The managed resource runtime: what crossplane-runtime is to Go.
//!
//! A provider author declares a kind ([`Managed`]), implements [`External`] for it (connect,
//! observe, create, update, delete), and runs it with [`Runtime`]. Everything else is here: the
//! crash-safe create protocol, finalizer, pause, management policies, late initialization,
//! connection Secrets, tracking of provider configurations, backoff, polling, events, metrics.
//!
//! The decision what to do is pure ([`decide`]); [`Runtime`] does it on a Kubernetes API.
//!
//! Invariant: knows no cloud and not the embedded server; talks to any Kubernetes API through
//! [`kube::Client`].
//!
//! Entry points: [`External`], [`Runtime`], [`managed_crd`], [`config_crds`].

mod arrivals;
pub mod backoff;
mod blocked;
pub mod clock;
pub mod config;
mod controller;
mod crd;
pub mod creation;
pub mod decide;
pub mod duration;
mod erased;
mod events;
mod external;
mod failure;
mod flags;
mod key;
mod kind;
pub mod leader;
pub mod limits;
mod memory;
mod metrics;
mod owner;
mod policy;
pub mod queue;
mod reconcile;
mod runtime;
mod secret;
mod server;
pub mod status;
mod watching;

pub use clock::Clock;
pub use crd::{config_crds, managed_crd};
pub use external::{
    Connection, Created, ErrorClass, External, ExternalChange, ExternalError, Observation,
    ProviderConfig, Readiness, Resource,
};
pub use flags::Flags;
pub use key::Key;
pub use kind::{Configs, KindInfo, Managed, Naming, Provider};
pub use metrics::Metrics;
pub use policy::{Policies, PolicyError};
pub use runtime::{Options, Runtime, Waker};
pub use secret::SECRET_TYPE;
pub use server::serve;
pub use watching::{Change, watch, watch_selected};

/// The example in the guide, which must compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/writing-a-provider.md")]
struct Guide;
