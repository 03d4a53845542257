//! An append-only file of what changed: one JSON document a line.
//!
//! # Guarantees
//! What was appended before the process was killed is read again. A line that was cut off by the
//! kill is dropped. (Not against power loss: nothing is forced to disk, this is a simulation.)

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::OpenError;
use super::object::Object;
use super::settings::Settings;
use crate::limits::JOURNAL_DEAD_LINES_MAX;

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Entry {
    /// An object was made or changed.
    Put(Box<Object>),
    /// An object is gone.
    Gone(String),
    /// An account behaves in another way.
    Set(String, Settings),
}

/// The file.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    lines: usize,
}

impl Journal {
    /// Opens (or makes) the journal in `dir`, and reads it.
    pub(super) fn open(dir: &Path) -> Result<(Self, Vec<Entry>), OpenError> {
        let fail = |path: &Path, what| {
            let path = path.to_owned();
            move |e| OpenError::Io(path, what, e)
        };
        fs::create_dir_all(dir).map_err(fail(dir, "create"))?;
        let path = dir.join("cloud.jsonl");
        let mut file = open_locked(&path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(fail(&path, "read"))?;
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
        let mut entries = Vec::new();
        for (n, line) in bytes[..whole].split(|b| *b == b'\n').enumerate() {
            if line.is_empty() {
                continue;
            }
            let entry = serde_json::from_slice(line)
                .map_err(|e| OpenError::Damaged(path.clone(), n + 1, e))?;
            entries.push(entry);
        }
        if whole < bytes.len() {
            file.set_len(whole as u64)
                .map_err(fail(&path, "truncate"))?;
        }
        file.seek(SeekFrom::End(0)).map_err(fail(&path, "seek"))?;
        let lines = entries.len();
        Ok((Self { path, file, lines }, entries))
    }

    /// Appends a change.
    pub(super) fn append(&mut self, entry: &Entry) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        // One write: what is torn can only be the last line.
        self.file.write_all(&line)?;
        self.lines += 1;
        Ok(())
    }

    /// Whether most of the file speaks of what is not so any more.
    pub(super) fn is_stale(&self, live: usize) -> bool {
        self.lines > live.saturating_mul(2) + JOURNAL_DEAD_LINES_MAX
    }

    /// Replaces the file by one with only these entries.
    pub(super) fn rewrite(&mut self, entries: &[Entry]) -> Result<(), OpenError> {
        let temporary = self.path.with_extension("tmp");
        let fail = |what| {
            let path = temporary.clone();
            move |e| OpenError::Io(path, what, e)
        };
        let mut bytes = Vec::new();
        for entry in entries {
            serde_json::to_writer(&mut bytes, entry)
                .map_err(|e| OpenError::Io(temporary.clone(), "write", e.into()))?;
            bytes.push(b'\n');
        }
        let mut file = open_locked(&temporary)?;
        file.set_len(0).map_err(fail("truncate"))?;
        file.write_all(&bytes).map_err(fail("write"))?;
        file.sync_all().map_err(fail("write"))?;
        fs::rename(&temporary, &self.path).map_err(fail("rename"))?;
        self.file = file;
        self.lines = entries.len();
        Ok(())
    }
}

fn open_locked(path: &Path) -> Result<File, OpenError> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|e| OpenError::Io(path.to_owned(), "open", e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse(path.to_owned())),
        Err(TryLockError::Error(e)) => Err(OpenError::Io(path.to_owned(), "lock", e)),
    }
}
