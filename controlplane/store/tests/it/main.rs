//! The behaviour every store shares, and what only the durable one promises.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod behaviour;
mod crash;
mod model;
