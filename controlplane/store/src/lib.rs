//! An ordered, durable, watchable store.
//!
//! One revision counter orders every write. A commit is a list of preconditioned operations that
//! happen all at one revision or not at all. Watches deliver events in revision order.
//! Values are opaque bytes; keys are texts whose order is the list order.
//!
//! Invariant: knows nothing of Kubernetes, JSON, clusters or resources.
//!
//! Entry points: [`Store`], [`MemoryStore`], [`EmbeddedStore`].

mod api;
mod embedded;
mod limits;
mod memory;
mod state;
mod watch;

pub use embedded::EmbeddedStore;
pub use memory::MemoryStore;

pub use api::{
    CommitError, Committed, Entry, Event, EventKind, Expect, ListRequest, ListResponse, Op,
    Revision, Store, StoreError, Watch, WatchError,
};
