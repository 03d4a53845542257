//! The function from outside: transcripts, lives of resources, laws, and the server.

mod cases;
mod laws;
mod life;
mod server;
mod world;
