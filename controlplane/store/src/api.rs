//! The store's interface.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

/// Position in the store's total order of writes. The first write has revision 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A live key at some revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Key.
    pub key: Arc<str>,
    /// Value.
    pub value: Bytes,
    /// Revision of the write that created the key (since it was last absent).
    pub created: Revision,
    /// Revision of the last write.
    pub modified: Revision,
}

/// A page of keys under a prefix.
#[derive(Clone, Debug, Default)]
pub struct ListRequest {
    /// Only keys that start with this.
    pub prefix: String,
    /// Only keys after this one, exclusive.
    pub after: Option<String>,
    /// At most so many entries; 0 is no limit.
    pub limit: usize,
    /// The revision to read at; `None` is the current one.
    pub at: Option<Revision>,
}

/// What a list found.
#[derive(Clone, Debug)]
pub struct ListResponse {
    /// Entries in key order.
    pub entries: Vec<Entry>,
    /// Revision that the list shows.
    pub revision: Revision,
    /// Keys under the prefix that the limit left out.
    pub remaining: u64,
}

/// One operation of a commit.
#[derive(Clone, Debug)]
pub enum Op {
    /// Writes a value.
    Put {
        /// Key.
        key: Arc<str>,
        /// Value.
        value: Bytes,
        /// Precondition.
        expect: Expect,
    },
    /// Removes a key. Removing an absent key is a failed precondition, except with `Any`.
    Delete {
        /// Key.
        key: Arc<str>,
        /// Precondition.
        expect: Expect,
    },
}

/// Precondition on the key of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No precondition.
    Any,
    /// The key is absent.
    Absent,
    /// The key's last write has this revision.
    Modified(Revision),
}

/// A commit that happened, and is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Revision of all its operations.
    pub revision: Revision,
}

/// Why a commit did not happen.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// A precondition failed; `current` is the key's entry at that moment.
    #[error("precondition on {key} failed")]
    Precondition {
        /// The key.
        key: Arc<str>,
        /// What is there now.
        current: Option<Entry>,
    },
    /// Two operations of the commit name one key.
    #[error("commit names {0} twice")]
    DuplicateKey(Arc<str>),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why the store could not answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The revision has been compacted away.
    #[error("revision {requested} is compacted, the oldest is {oldest}")]
    Compacted {
        /// Revision asked for.
        requested: Revision,
        /// Oldest revision still readable.
        oldest: Revision,
    },
    /// The revision has not happened yet.
    #[error("revision {requested} is in the future, the current one is {current}")]
    Future {
        /// Revision asked for.
        requested: Revision,
        /// Current revision.
        current: Revision,
    },
    /// The store is shut down, or has stopped after an I/O error.
    #[error("store is closed: {0}")]
    Closed(String),
    /// The data cannot be read, or belongs to another program.
    #[error("store data: {0}")]
    Corrupt(String),
    /// Reading or writing failed.
    #[error("store i/o: {0}")]
    Io(String),
}

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The key was written.
    Put,
    /// The key was removed.
    Delete,
}

/// One operation that happened.
#[derive(Clone, Debug)]
pub struct Event {
    /// Kind.
    pub kind: EventKind,
    /// Key.
    pub key: Arc<str>,
    /// Revision of the commit.
    pub revision: Revision,
    /// The value written; empty for a removal.
    pub value: Bytes,
    /// What the key held before.
    pub previous: Option<Entry>,
}

impl Event {
    /// Bytes it keeps in memory, roughly.
    pub(crate) fn size(&self) -> usize {
        self.value.len() + self.previous.as_ref().map_or(0, |e| e.value.len()) + self.key.len()
    }
}

/// Why a watch ended.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WatchError {
    /// The reader fell too far behind; list again and watch from there.
    #[error("watch fell behind")]
    Lagged,
    /// The store was closed.
    #[error("store is closed")]
    Closed,
}

/// Events under a prefix, in revision order.
///
/// Dropping it ends the watch. All events of one commit arrive before any of the next.
pub struct Watch {
    pub(crate) receiver: WatchReceiver,
}

pub(crate) type WatchReceiver =
    std::pin::Pin<Box<dyn futures::Stream<Item = Result<Arc<Event>, WatchError>> + Send>>;

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}

impl futures::Stream for Watch {
    type Item = Result<Arc<Event>, WatchError>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.receiver.as_mut().poll_next(cx)
    }
}

/// An ordered, durable, watchable store.
///
/// # Guarantees
/// - A returned [`Committed`] is durable, visible to every later read and sent to every watch.
/// - Reads never show part of a commit.
/// - A watch from revision `r` delivers every event after `r` under its prefix, once, in order,
///   until it ends with an error.
///
/// # Cancellation
/// A dropped `commit` future may or may not have committed.
#[async_trait]
pub trait Store: Send + Sync + fmt::Debug + 'static {
    /// The revision of the last visible commit; 0 in an empty store.
    fn revision(&self) -> Revision;

    /// The live entry of a key.
    ///
    /// # Errors
    /// The store failed.
    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError>;

    /// A page of live entries, at one revision.
    ///
    /// # Errors
    /// [`StoreError::Compacted`] and [`StoreError::Future`] for `at`; the store failed.
    async fn list(&self, request: ListRequest) -> Result<ListResponse, StoreError>;

    /// Commits all operations at one revision, or none. Several operations on one key are refused.
    ///
    /// # Errors
    /// A precondition failed, or the store did.
    async fn commit(&self, ops: Vec<Op>) -> Result<Committed, CommitError>;

    /// Watches keys under a prefix for events after a revision.
    ///
    /// # Errors
    /// [`StoreError::Compacted`] and [`StoreError::Future`]; the store failed.
    async fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError>;

    /// Forgets history before a revision: reads at and watches from older revisions then fail.
    ///
    /// # Errors
    /// The store failed.
    async fn compact(&self, before: Revision) -> Result<(), StoreError>;

    /// Refuses new commits, waits for those under way, ends watches.
    async fn close(&self);
}
