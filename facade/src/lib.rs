//! The SECA REST API over composite resources.
//!
//! A [`Facade`] keeps every SECA kind in a watch cache and answers `/providers/seca.*/v1/...` from
//! it. A write applies one object and waits, for a bounded time, until the control plane has dealt
//! with it. Routes, documents and rules follow the table [`ecp_xrds::kinds`], so a new kind needs
//! no code here.
//!
//! Invariant: it talks to any Kubernetes API through [`kube::Client`] and knows nothing of the
//! engine, the providers and the embedded server. It holds no state of its own but caches, so
//! replicas can be added and removed at will.
//!
//! # Guarantees
//! - A read is never older than a write that the same facade has acknowledged.
//! - A document never says `active` about an intent that the control plane has not seen.
//! - A refusal is a problem document that names the field at fault; nothing was written.
//!
//! Entry points: [`serve`], [`router`], [`Facade`], [`Config`]; [`openapi()`] says what is served.

mod access_log;
mod auth;
mod body;
mod cache;
mod checks;
mod config;
mod control;
mod deletes;
mod error;
mod facade;
mod fields;
mod handler;
pub mod limits;
mod metrics;
mod openapi;
mod path;
mod power;
mod query;
mod rbac;
mod reads;
mod regions;
mod server;
mod status;
mod users;
mod view;
mod writes;

pub use auth::{Authenticator, Identity, StaticTokens};
pub use config::{Access, Config, Profile, ReferencePolicies, ReferencePolicy};
pub use error::{ApiError, ErrorKind, Source};
pub use facade::{Facade, StartError};
pub use openapi::openapi;
pub use regions::{Apis, Served};
pub use server::{router, serve};
pub use users::{Users, UsersError};
