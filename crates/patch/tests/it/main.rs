//! Cases of server-side apply as files, and laws that hold for any object.

mod cases;
mod laws;
mod schema;
