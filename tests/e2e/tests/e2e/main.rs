//! End to end: the real binary as its users run it, over real sockets, with real `kubectl`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::print_stderr,
    reason = "a skip and the log of a failure must be seen"
)]

mod bad_input;
mod claims;
mod cloud;
mod crash;
mod harness;
mod kubectl;
mod process;
mod rest;
