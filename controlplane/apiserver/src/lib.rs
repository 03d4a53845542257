//! Kubernetes API machinery over store, schema and patch, keyed by logical cluster.
//!
//! A request goes: [`server`] (routing, panics, metrics) → [`request`] (what it asks for) →
//! [`registry`] (which resource that is in its cluster) → `handlers` (what it does) → [`storage`]
//! (keys and encoding) → the store.
//!
//! Invariant: every key, watch and cache entry belongs to one logical cluster. Nothing here knows
//! Crossplane, SECA or a client library.
//!
//! Entry points: [`ApiServer`], [`ApiServer::service`], [`ApiServer::internal`]; for a socket,
//! [`serve::serve`] with [`auth::Authenticator`] and [`pki::Pki`].

pub mod auth;
mod body;
mod bootstrap;
mod controllers;
mod crd;
pub mod discovery;
mod expiry;
mod finish;
mod handlers;
pub mod internal;
pub mod limits;
pub mod metrics;
pub mod openapi;
pub mod pki;
mod protobuf;
pub mod registry;
pub mod request;
pub mod serve;
pub mod server;
pub mod status;
pub mod storage;
pub mod table;

pub use body::ApiBody;
pub use handlers::{DeleteOptions, Deleted, Propagation};
pub use internal::{Internal, Object};
pub use server::{ApiServer, ApiService, Config, Identity, Scope, StartError};
pub use status::Status;
