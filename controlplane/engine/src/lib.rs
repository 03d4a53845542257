//! Hosts the composite resource engine on any Kubernetes API.
