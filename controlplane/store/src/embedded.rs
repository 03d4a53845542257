//! A durable store in one file, on redb.
//!
//! One thread commits. It takes whatever commits wait, checks them in order, writes them in one
//! database transaction, and only then makes them visible and answers. So a group of callers pays
//! for one flush, and nothing is ever visible that a crash could take back.
//!
//! The live set is in memory and reads never touch the file. History is not kept across a restart:
//! older revisions then count as compacted, and watchers list again.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use redb::{Builder, Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};
use tokio::sync::{mpsc, oneshot};

use crate::api::{
    CommitError, Committed, Entry, ListRequest, ListResponse, Op, Revision, Store, StoreError,
    Watch,
};
use crate::limits::{BATCH_LEN_MAX, DATABASE_CACHE_BYTES, QUEUE_LEN_MAX};
use crate::state::{Staged, State};

/// Key to `created` and `modified` (8 bytes each, big-endian), then the value.
const LIVE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("live");
/// `format` and `revision`.
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const FORMAT: u64 = 1;
const STAMP_LEN: usize = 16;

/// A durable store in one file.
pub struct EmbeddedStore {
    path: PathBuf,
    state: Arc<State>,
    queue: Mutex<Option<mpsc::Sender<Request>>>,
    committer: Mutex<Option<JoinHandle<()>>>,
}

struct Request {
    ops: Vec<Op>,
    reply: oneshot::Sender<Result<Committed, CommitError>>,
}

impl EmbeddedStore {
    /// Opens the store at `path`, which is created when missing. Blocks while it loads.
    ///
    /// # Errors
    /// The file is in use by another process, is no store of this format, or cannot be read.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        create_private(path)?;
        let database = Builder::new()
            .set_cache_size(DATABASE_CACHE_BYTES)
            .create(path)
            .map_err(|error| match error {
                DatabaseError::DatabaseAlreadyOpen => StoreError::Io(format!(
                    "{} is in use by another process; stop it, or choose another data directory",
                    path.display()
                )),
                other => StoreError::Io(format!("cannot open {}: {other}", path.display())),
            })?;
        let state = Arc::new(load(&database)?);
        let (queue, requests) = mpsc::channel(QUEUE_LEN_MAX);
        let committer = std::thread::Builder::new()
            .name("store-committer".into())
            .spawn({
                let state = state.clone();
                move || commit_all(&database, &state, requests)
            })
            .map_err(|e| StoreError::Io(format!("cannot start the committer: {e}")))?;
        Ok(Self {
            path: path.to_owned(),
            state,
            queue: Mutex::new(Some(queue)),
            committer: Mutex::new(Some(committer)),
        })
    }
}

impl fmt::Debug for EmbeddedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedStore")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for EmbeddedStore {
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
        let closed = || CommitError::Store(StoreError::Closed("shut down".into()));
        let queue = self.queue.lock().clone().ok_or_else(closed)?;
        let (reply, answer) = oneshot::channel();
        queue
            .send(Request { ops, reply })
            .await
            .map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    async fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        self.state.watch(prefix, after)
    }

    async fn compact(&self, before: Revision) -> Result<(), StoreError> {
        self.state.compact(before)
    }

    async fn close(&self) {
        self.queue.lock().take();
        let committer = self.committer.lock().take();
        if let Some(committer) = committer {
            // The thread ends once the commits under way have been answered.
            let joined = tokio::task::spawn_blocking(move || committer.join().is_ok()).await;
            if !joined.unwrap_or(false) {
                tracing::error!(path = %self.path.display(), "store committer failed");
            }
        }
        self.state.close(StoreError::Closed("shut down".into()));
    }
}

/// Makes an empty file that only its owner can read; redb takes it for a new database.
fn create_private(path: &Path) -> Result<(), StoreError> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) => Err(StoreError::Io(format!(
            "cannot create {}: {error}",
            path.display()
        ))),
    }
}

fn commit_all(database: &Database, state: &State, mut requests: mpsc::Receiver<Request>) {
    let mut waiting = Vec::with_capacity(BATCH_LEN_MAX);
    while requests.blocking_recv_many(&mut waiting, BATCH_LEN_MAX) > 0 {
        let mut staged = state.stage();
        let mut replies = Vec::with_capacity(waiting.len());
        for Request { ops, reply } in waiting.drain(..) {
            match state.check(&mut staged, ops) {
                Ok(revision) => replies.push((reply, revision)),
                // A dropped receiver means that the caller no longer waits.
                Err(error) => drop(reply.send(Err(error))),
            }
        }
        if !staged.events().is_empty()
            && let Err(error) = write(database, &staged)
        {
            // What reached the disk is unknown, so nothing may be promised from here on.
            tracing::error!(%error, "store stopped: a write to disk failed");
            let error = StoreError::Closed(format!("a write to disk failed: {error}"));
            state.close(error.clone());
            for (reply, _) in replies {
                drop(reply.send(Err(error.clone().into())));
            }
            continue;
        }
        state.publish(staged);
        for (reply, revision) in replies {
            drop(reply.send(Ok(Committed { revision })));
        }
    }
}

fn write(database: &Database, staged: &Staged) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut live = transaction.open_table(LIVE)?;
        let mut buffer = Vec::new();
        for event in staged.events() {
            match event.kind {
                crate::EventKind::Put => {
                    let created = match &event.previous {
                        Some(previous) => previous.created,
                        None => event.revision,
                    };
                    buffer.clear();
                    buffer.extend_from_slice(&created.0.to_be_bytes());
                    buffer.extend_from_slice(&event.revision.0.to_be_bytes());
                    buffer.extend_from_slice(&event.value);
                    live.insert(&*event.key, buffer.as_slice())?;
                }
                crate::EventKind::Delete => {
                    live.remove(&*event.key)?;
                }
            }
        }
        transaction
            .open_table(META)?
            .insert("revision", staged.revision().0)?;
    }
    transaction.commit()?;
    Ok(())
}

fn load(database: &Database) -> Result<State, StoreError> {
    let io = |e: redb::Error| StoreError::Io(e.to_string());
    let transaction = database.begin_write().map_err(|e| io(e.into()))?;
    {
        // Creates the tables of a new file.
        let mut meta = transaction.open_table(META).map_err(|e| io(e.into()))?;
        transaction.open_table(LIVE).map_err(|e| io(e.into()))?;
        let format = meta
            .get("format")
            .map_err(|e| io(e.into()))?
            .map(|v| v.value());
        match format {
            Some(FORMAT) => {}
            Some(other) => {
                return Err(StoreError::Corrupt(format!(
                    "format {other} is not known, this version reads format {FORMAT}"
                )));
            }
            None => {
                meta.insert("format", FORMAT).map_err(|e| io(e.into()))?;
                meta.insert("revision", 0).map_err(|e| io(e.into()))?;
            }
        }
    }
    transaction.commit().map_err(|e| io(e.into()))?;

    let transaction = database.begin_read().map_err(|e| io(e.into()))?;
    let meta = transaction.open_table(META).map_err(|e| io(e.into()))?;
    let revision = meta
        .get("revision")
        .map_err(|e| io(e.into()))?
        .map_or(0, |v| v.value());
    let live = transaction.open_table(LIVE).map_err(|e| io(e.into()))?;
    let mut entries = Vec::new();
    for row in live.iter().map_err(|e| io(e.into()))? {
        let (key, row) = row.map_err(|e| io(e.into()))?;
        entries.push(decode(key.value(), row.value())?);
    }
    Ok(State::loaded(entries.into_iter(), Revision(revision)))
}

fn decode(key: &str, row: &[u8]) -> Result<Entry, StoreError> {
    let corrupt = || StoreError::Corrupt(format!("the row of {key} is too short"));
    let (created, rest) = row.split_first_chunk::<8>().ok_or_else(corrupt)?;
    let (modified, value) = rest.split_first_chunk::<8>().ok_or_else(corrupt)?;
    debug_assert_eq!(row.len() - value.len(), STAMP_LEN);
    Ok(Entry {
        key: key.into(),
        value: Bytes::copy_from_slice(value),
        created: Revision(u64::from_be_bytes(*created)),
        modified: Revision(u64::from_be_bytes(*modified)),
    })
}
