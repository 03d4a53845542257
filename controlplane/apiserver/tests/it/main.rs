//! The API server, asked in process over a store in memory.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod api;
mod crds;
mod deletes;
mod kube_client;
mod lists;
mod parity;
mod patches;
mod quiet;
mod races;
mod watches;
mod writes;
