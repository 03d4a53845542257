//! The behaviour every store shares, and what only the durable one promises.

mod behaviour;
mod crash;
mod model;
