//! The provider against a Kubernetes API in process, and a cloud that can be looked into.

mod chaos;
mod cluster;
mod configs;
mod creation;
mod deletion;
mod life;
mod parts;
