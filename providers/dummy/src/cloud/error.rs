//! What the cloud answers when it does not do what it is asked.

use std::io;
use std::path::PathBuf;

/// A call was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloudError {
    /// There is no such object.
    #[error("{0}")]
    NotFound(String),
    /// The cloud will not do it.
    #[error("{0}")]
    Refused(String),
    /// The cloud cannot do it now: the object is in use, or is being worked on.
    #[error("{0}")]
    Busy(String),
    /// The cloud is out of order.
    #[error("{0}")]
    Unavailable(String),
}

/// The cloud's directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error("{0} is in use by another process")]
    InUse(PathBuf),
    /// The file system refuses.
    #[error("cannot {1} {0}")]
    Io(PathBuf, &'static str, #[source] io::Error),
    /// The journal is damaged before its end.
    #[error("{0} is damaged at line {1}")]
    Damaged(PathBuf, usize, #[source] serde_json::Error),
}
