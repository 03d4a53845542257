//! Where the parts of an image are.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Cursor, Read, Seek as _};
use std::path::PathBuf;

use bytes::Bytes;

use crate::registry::Repository;
use crate::{Digest, Error, Progress};

/// Where the parts of an image are. Whatever comes from here has the digest it was asked for by.
#[derive(Clone, Debug)]
pub(crate) enum Blobs {
    /// By digest.
    Memory(BTreeMap<Digest, Bytes>),
    /// The folder `blobs/sha256` of an image layout.
    Layout(PathBuf),
    /// A registry.
    Registry(Repository),
}

/// A part of an image, to be read.
#[derive(Debug)]
pub(crate) enum Blob {
    Memory(Cursor<Bytes>),
    File(File),
}

impl Read for Blob {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Memory(bytes) => bytes.read(buffer),
            Self::File(file) => file.read(buffer),
        }
    }
}

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// In words.
    pub what: String,
    pub digest: Digest,
    pub size: u64,
}

impl Wanted {
    pub(crate) fn new(what: &str, digest: &str, size: i64, max: u64) -> Result<Self, Error> {
        let digest = Digest::parse(digest)?;
        let what = format!("{what} {digest}");
        let size = u64::try_from(size).map_err(|_| Error::Manifest {
            what: what.clone(),
            why: format!("its size is {size}"),
        })?;
        match size > max {
            true => Err(Error::TooLarge { what, size, max }),
            false => Ok(Self { what, digest, size }),
        }
    }

    fn sized(&self, found: u64) -> Result<(), Error> {
        match found == self.size {
            true => Ok(()),
            false => Err(Error::Size {
                what: self.what.clone(),
                expected: self.size,
                found,
            }),
        }
    }

    /// Refuses content of another size or digest.
    pub(crate) fn verify(&self, size: u64, found: Digest) -> Result<(), Error> {
        self.sized(size)?;
        self.digest.verify(&self.what, found)
    }
}

impl Blobs {
    /// A part, verified.
    pub(crate) async fn open(
        &self,
        wanted: &Wanted,
        progress: &dyn Progress,
    ) -> Result<Blob, Error> {
        match self {
            Self::Memory(all) => {
                let Some(bytes) = all.get(&wanted.digest) else {
                    return Err(Error::Manifest {
                        what: wanted.what.clone(),
                        why: "is not in the file".into(),
                    });
                };
                wanted.verify(bytes.len() as u64, Digest::of(bytes))?;
                Ok(Blob::Memory(Cursor::new(bytes.clone())))
            }
            Self::Layout(folder) => {
                let path = folder.join(wanted.digest.hex());
                let mut file = File::open(&path).map_err(Error::file(&path))?;
                let size = file.metadata().map_err(Error::file(&path))?.len();
                wanted.sized(size)?;
                let found = Digest::of_reader(&mut file).map_err(Error::file(&path))?;
                wanted.verify(size, found)?;
                file.rewind().map_err(Error::file(&path))?;
                Ok(Blob::File(file))
            }
            Self::Registry(repository) => repository.blob(wanted, progress).await.map(Blob::File),
        }
    }

    /// A part, verified, in memory.
    pub(crate) async fn read(
        &self,
        wanted: &Wanted,
        progress: &dyn Progress,
    ) -> Result<Bytes, Error> {
        match self.open(wanted, progress).await? {
            Blob::Memory(bytes) => Ok(bytes.into_inner()),
            Blob::File(mut file) => {
                let mut bytes = Vec::new();
                let read = file.read_to_end(&mut bytes);
                read.map_err(Error::file(wanted.digest.as_str()))?;
                Ok(bytes.into())
            }
        }
    }
}
