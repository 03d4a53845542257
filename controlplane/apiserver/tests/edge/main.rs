//! The server's edges: the listener, discovery, OpenAPI, tables, controllers and real kubectl.

mod documents;
mod gc;
mod kubectl;
mod listener;
mod namespaces;
mod reviews;
mod support;
