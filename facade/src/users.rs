//! Who the users are: a file of tokens and subjects, read again when it changes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::RwLock;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use crate::auth::{Authenticator, Identity, StaticTokens};
use crate::error::ApiError;
use crate::limits;

/// The users of a file, and administrators that are not in it.
///
/// Each line is `token,subject`; empty lines and those that begin with `#` are skipped. Blanks
/// around both parts are not theirs.
pub struct Users {
    path: PathBuf,
    administrators: StaticTokens,
    current: RwLock<Arc<Current>>,
}

struct Current {
    tokens: StaticTokens,
    subjects: BTreeSet<String>,
    digest: [u8; 32],
}

/// A file of users cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UsersError {
    /// It cannot be read.
    #[error("reading the users file {0}")]
    Read(PathBuf, #[source] io::Error),
    /// It is too large.
    #[error("the users file {0} has more than {max} bytes", max = limits::USERS_BYTES_MAX)]
    TooLarge(PathBuf),
    /// A line is not `token,subject`. The text names no token.
    #[error("users file {path}, line {line}: {reason}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Users")
            .field("path", &self.path)
            .field("len", &self.current.read().subjects.len())
            .finish_non_exhaustive()
    }
}

impl Users {
    /// Reads a file.
    ///
    /// # Errors
    /// See [`UsersError`].
    pub fn open(path: &Path, administrators: StaticTokens) -> Result<Self, UsersError> {
        let bytes = read(path)?;
        let current = Current::parse(path, &bytes, &administrators)?;
        Ok(Self {
            path: path.to_owned(),
            administrators,
            current: RwLock::new(Arc::new(current)),
        })
    }

    /// Reads the file again now and then, until `shutdown`. What cannot be read leaves the users
    /// as they were, and is logged.
    pub async fn follow(&self, shutdown: CancellationToken) {
        let mut ticks = tokio::time::interval(limits::USERS_POLL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = ticks.tick() => {}
            }
            match self.reload() {
                Ok(true) => tracing::info!(path = %self.path.display(), "users have changed"),
                Ok(false) => {}
                Err(error) => tracing::error!(
                    error = %ErrorChain(&error),
                    "users stay as they were"
                ),
            }
        }
    }

    /// Reads the file again; returns whether it has changed.
    ///
    /// # Errors
    /// See [`UsersError`]; the users are as they were then.
    pub fn reload(&self) -> Result<bool, UsersError> {
        let bytes = read(&self.path)?;
        if self.current.read().digest == digest(&bytes) {
            return Ok(false);
        }
        let fresh = Current::parse(&self.path, &bytes, &self.administrators)?;
        *self.current.write() = Arc::new(fresh);
        Ok(true)
    }
}

/// An error with its causes.
struct ErrorChain<'a>(&'a dyn std::error::Error);

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl Current {
    fn parse(path: &Path, bytes: &[u8], administrators: &StaticTokens) -> Result<Self, UsersError> {
        let fault = |line, reason| UsersError::Line {
            path: path.to_owned(),
            line,
            reason,
        };
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let mut tokens = administrators.clone();
        let mut subjects = BTreeSet::new();
        for (i, line) in bytes.split(|b| *b == b'\n').enumerate() {
            let number = i + 1;
            let line = std::str::from_utf8(line).map_err(|_| fault(number, "is not UTF-8"))?;
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (token, subject) = line
                .split_once(',')
                .ok_or_else(|| fault(number, "has no comma: it must be token,subject"))?;
            let (token, subject) = (token.trim(), subject.trim());
            if token.is_empty() || !token.bytes().all(|b| b.is_ascii_graphic()) {
                return Err(fault(number, "its token must be printable and not empty"));
            }
            if subject.is_empty()
                || subject == "*"
                || subject.contains(',')
                || subject.chars().count() > limits::SUBJECT_LEN_MAX
            {
                return Err(fault(
                    number,
                    "its subject must be 1 to 128 characters, not * and without commas",
                ));
            }
            // It would be told apart neither in the log nor by the rate limit.
            if administrators.names(subject) {
                return Err(fault(number, "its subject is that of the administrator"));
            }
            if seen.insert(token, number).is_some() || administrators.has(token) {
                return Err(fault(number, "its token is somebody else's already"));
            }
            tokens = tokens.with(
                token,
                Identity {
                    subject: subject.into(),
                    admin: false,
                },
            );
            subjects.insert(subject.to_owned());
        }
        Ok(Self {
            tokens,
            subjects,
            digest: digest(bytes),
        })
    }
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

fn read(path: &Path) -> Result<Vec<u8>, UsersError> {
    let failed = |error| UsersError::Read(path.to_owned(), error);
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    let max = limits::USERS_BYTES_MAX;
    let mut limited = io::Read::take(file, max + 1);
    io::Read::read_to_end(&mut limited, &mut bytes).map_err(failed)?;
    if u64::try_from(bytes.len()).is_ok_and(|len| len <= max) {
        Ok(bytes)
    } else {
        Err(UsersError::TooLarge(path.to_owned()))
    }
}

#[async_trait]
impl Authenticator for Users {
    async fn authenticate(&self, token: &str) -> Result<Option<Identity>, ApiError> {
        let current = self.current.read().clone();
        current.tokens.authenticate(token).await
    }

    fn knows(&self, subject: &str) -> Option<bool> {
        let current = self.current.read().clone();
        Some(current.subjects.contains(subject))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("file");
        std::fs::write(file.path(), text).expect("written");
        file
    }

    async fn who(users: &Users, token: &str) -> Option<Identity> {
        users.authenticate(token).await.expect("checked")
    }

    fn user(subject: &str) -> Option<Identity> {
        Some(Identity {
            subject: subject.into(),
            admin: false,
        })
    }

    #[tokio::test]
    async fn users_and_administrators_have_their_tokens() {
        let file = file("# people\n\n t0ken-1 , alice@example.org \r\nt0ken-2,bob\n");
        let users = Users::open(file.path(), StaticTokens::admin("root")).expect("users");
        assert_eq!(who(&users, "t0ken-1").await, user("alice@example.org"));
        assert_eq!(who(&users, "t0ken-2").await, user("bob"));
        assert_eq!(who(&users, "root").await, Some(Identity::admin("admin")));
        assert_eq!(who(&users, "t0ken-3").await, None);
        let known = ["bob", "admin", "*"].map(|s| users.knows(s));
        assert_eq!(known, [Some(true), Some(false), Some(false)]);
        assert!(!format!("{users:?}").contains("t0ken"));
    }

    #[tokio::test]
    async fn a_changed_file_is_read_again_and_a_broken_one_changes_nothing() {
        let file = file("t1,alice\n");
        let users = Users::open(file.path(), StaticTokens::default()).expect("users");
        assert!(!users.reload().expect("same"));
        std::fs::write(file.path(), "t2,alice\n").expect("written");
        assert!(users.reload().expect("changed"));
        assert_eq!(who(&users, "t1").await, None);
        assert_eq!(who(&users, "t2").await, user("alice"));
        std::fs::write(file.path(), "secret-token\n").expect("written");
        let error = users.reload().expect_err("broken");
        assert!(matches!(error, UsersError::Line { line: 1, .. }));
        assert!(!error.to_string().contains("secret-token"), "{error}");
        assert_eq!(who(&users, "t2").await, user("alice"));
    }

    #[test]
    fn odd_lines_are_refused_by_number() {
        for (text, line) in [
            ("t", 1),
            ("t,", 1),
            (",s", 1),
            ("#\nt,*", 2),
            ("t,a,b", 1),
            ("t t,a", 1),
            ("t,a\nt,b", 2),
            ("root,a", 1),
            ("t,admin", 1),
            (&format!("t,{}", "s".repeat(129)), 1),
        ] {
            let file = file(text);
            let error = Users::open(file.path(), StaticTokens::admin("root")).expect_err("refused");
            assert!(
                matches!(error, UsersError::Line { line: at, .. } if at == line),
                "{text}: {error}"
            );
        }
        let large = file(&"#".repeat(1 << 21));
        let error = Users::open(large.path(), StaticTokens::default()).expect_err("refused");
        assert!(matches!(error, UsersError::TooLarge(_)));
        let none = Path::new("/nowhere/users");
        let error = Users::open(none, StaticTokens::default()).expect_err("refused");
        assert!(matches!(error, UsersError::Read(..)));
    }
}
