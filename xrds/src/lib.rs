//! The SECA domain as Rust types, and the XRDs generated from them.
