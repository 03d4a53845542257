//! A real Kubernetes API for tests: etcd, kube-apiserver with RBAC, and some of its controllers;
//! and a registry of OCI images. All are built from `servers/`, once, outside of the clone.
//!
//! Invariant: knows nothing of ours; is a dependency of tests alone. Nothing outlives the test
//! process: the servers end when their standard input does.
//!
//! Entry points: [`servers`], [`Cluster`], [`Registry`].
#![expect(clippy::print_stderr, reason = "a skip must be seen")]

mod build;
mod cluster;
pub mod limits;
mod process;
mod registry;

pub use build::servers;
pub use cluster::{Cluster, client};
pub use process::{Process, free_ports};
pub use registry::Registry;
