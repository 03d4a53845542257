//! End to end: the real binary as its users run it, over real sockets, with real `kubectl`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_input;
mod claims;
mod cloud;
mod crash;
mod crossplane;
mod differential;
mod examples;
mod facade;
mod kubectl;
mod process;
mod rest;
mod scale;
mod strict;
mod terraform;
