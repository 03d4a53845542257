//! A store that lives and dies with the process.

use async_trait::async_trait;
use parking_lot::Mutex;

use crate::api::{
    CommitError, Committed, Entry, ListRequest, ListResponse, Op, Revision, Store, StoreError,
    Watch,
};
use crate::state::State;

/// A store without a disk: the same behaviour as [`crate::EmbeddedStore`], nothing survives.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: State,
    committing: Mutex<()>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn revision(&self) -> Revision {
        self.state.revision()
    }

    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.state.get(key)
    }

    async fn list(&self, request: ListRequest) -> Result<ListResponse, StoreError> {
        self.state.list(&request)
    }

    async fn commit(&self, ops: Vec<Op>) -> Result<Committed, CommitError> {
        let _one_at_a_time = self.committing.lock();
        let mut staged = self.state.stage();
        let revision = self.state.check(&mut staged, ops)?;
        self.state.publish(staged);
        Ok(Committed { revision })
    }

    async fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        self.state.watch(prefix, after)
    }

    async fn compact(&self, before: Revision) -> Result<(), StoreError> {
        self.state.compact(before)
    }

    async fn close(&self) {
        let _last = self.committing.lock();
        self.state.close(StoreError::Closed("shut down".into()));
    }
}
