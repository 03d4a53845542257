//! ecp: one binary for the whole control plane.
