//! The server's edges: the listener, discovery, OpenAPI, tables, controllers and real kubectl.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod documents;
mod gc;
mod kubectl;
mod listener;
mod namespaces;
mod reviews;
mod support;
