//! The engine on an API server in the same process.

mod claims;
mod composites;
mod definitions;
mod functions;
mod harness;
mod speed;
