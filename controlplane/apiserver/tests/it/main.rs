//! The API server, asked in process over a store in memory.

mod api;
mod crds;
mod deletes;
mod kube_client;
mod lists;
mod patches;
mod watches;
mod writes;
