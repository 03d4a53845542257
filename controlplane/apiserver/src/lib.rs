//! Kubernetes API machinery over store, schema and patch, keyed by logical cluster.

pub mod pki;
