//! Workspace namespaces against a Kubernetes API in process.

mod cluster;
mod network;
mod workspace;
