//! The facade over a control plane in memory, with the composition function's part played by
//! the test.

mod deletes;
mod errors;
mod lists;
mod mutations;
mod player;
mod puts;
mod socket;
mod world;
