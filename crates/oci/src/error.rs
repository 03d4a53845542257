//! What can go wrong with an image.

use std::path::PathBuf;

use ecp_package::xpkg;
use oci_client::errors::OciDistributionError;

/// Why an image cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What names an image does not.
    #[error(
        "{text:?} names no package: {why}; expected REGISTRY/REPOSITORY:TAG, or a path that begins with a slash, a dot or file://, or ends with .xpkg"
    )]
    Source {
        /// What was given.
        text: String,
        /// What is wrong, in words.
        why: String,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}", path = .path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// A file or folder is no image.
    #[error("{path} is no package: {why}", path = .path.display())]
    NotImage {
        /// Which one.
        path: PathBuf,
        /// What is wrong, in words.
        why: String,
    },
    /// A registry refuses, or cannot be reached.
    #[error("{registry}: {what}: {source}")]
    Registry {
        /// Host of the registry.
        registry: String,
        /// What was asked for.
        what: String,
        /// Its answer.
        source: Box<OciDistributionError>,
    },
    /// A registry has no such image.
    #[error("{0} does not exist: the registry has no such repository or tag")]
    NotFound(String),
    /// Credentials cannot be read.
    #[error("credentials for {registry}: {why}")]
    Credentials {
        /// Host of the registry.
        registry: String,
        /// What is wrong, in words.
        why: String,
    },
    /// Content is not what its digest says.
    #[error("{what} is not what it should be: expected digest {expected}, found {found}")]
    Digest {
        /// Of what.
        what: String,
        /// Digest by which it was asked for.
        expected: String,
        /// Digest of what came.
        found: String,
    },
    /// Content ends before or after its size.
    #[error("{what} is cut off or too long: expected {expected} bytes, found {found}")]
    Size {
        /// Of what.
        what: String,
        /// Size that was stated.
        expected: u64,
        /// Size of what came.
        found: u64,
    },
    /// Content is larger than anybody should have to take.
    #[error("{what} has {size} bytes: at most {max} are read")]
    TooLarge {
        /// Of what.
        what: String,
        /// Its size.
        size: u64,
        /// The most that is read.
        max: u64,
    },
    /// A manifest, index or configuration is not one.
    #[error("{what}: {why}")]
    Manifest {
        /// Of what.
        what: String,
        /// What is wrong, in words.
        why: String,
    },
    /// An index has no image for a platform.
    #[error("there is no image for {wanted}: expected one among {have}")]
    Platform {
        /// The platform that was asked for.
        wanted: String,
        /// Those that are there.
        have: String,
    },
    /// The package in the image.
    #[error(transparent)]
    Package(#[from] xpkg::Error),
    /// The package cannot be run.
    #[error("the runtime of the package: {0}")]
    Runtime(String),
}

impl Error {
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
