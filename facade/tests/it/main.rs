//! The facade over a control plane in memory, with the composition function's part played by
//! the test.

mod checks;
mod contract;
mod deletes;
mod errors;
mod go_ecp;
mod lists;
mod mutations;
mod network_scoped;
mod openapi;
mod player;
mod power;
mod puts;
mod rbac;
mod regions;
mod socket;
mod world;
