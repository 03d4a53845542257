//! The provider against a Kubernetes API in process, and a cloud that can be looked into.

mod cluster;
mod configs;
mod creation;
mod deletion;
mod life;
