//! The function from outside: transcripts, lives of resources, laws, and the server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cases;
mod engine;
mod facts;
mod laws;
mod life;
mod safety;
mod server;
mod world;
