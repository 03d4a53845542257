//! The runtime against a Kubernetes API in process and a cloud that does as it is told.

mod fake;
mod leader;
mod runtime;
mod safe_start;
