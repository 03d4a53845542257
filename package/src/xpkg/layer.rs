//! Layers of an image: tar archives, compressed with gzip.
//!
//! What is written is the same for the same files, to the byte: no times, no owners.

use std::io::{self, Cursor, Read, Write};

use flate2::read::MultiGzDecoder;
use flate2::{Compression, GzBuilder};
use sha2::{Digest as _, Sha256};
use tar::{Archive, Builder, EntryType, Header};

use super::{Error, PACKAGE_FILE};
use crate::limits::{LAYER_BYTES_MAX, PACKAGE_LAYER_BYTES_MAX, PACKAGE_YAML_BYTES_MAX};

/// A file of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it is, without a slash in front.
    pub path: String,
    /// Its permissions.
    pub mode: u32,
    /// What it holds.
    pub data: Vec<u8>,
}

impl Entry {
    /// A file that everybody may read.
    pub fn file(path: &str, data: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            mode: 0o644,
            data: data.into(),
        }
    }

    /// A file that everybody may run.
    pub fn program(path: &str, data: impl Into<Vec<u8>>) -> Self {
        Self {
            mode: 0o755,
            ..Self::file(path, data)
        }
    }
}

/// A compressed layer.
#[derive(Clone, PartialEq, Eq)]
pub struct Layer {
    /// The archive, compressed.
    pub bytes: Vec<u8>,
    /// Digest of `bytes`, `sha256:<hex>`.
    pub digest: String,
    /// Digest of the archive before it was compressed.
    pub diff_id: String,
}

impl std::fmt::Debug for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Layer")
            .field("digest", &self.digest)
            .field("size", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

impl Layer {
    /// A layer of these files, in this order.
    ///
    /// # Errors
    /// A path is too long for an archive, or not relative.
    pub fn new(entries: &[Entry]) -> Result<Self, Error> {
        let mut archive = Builder::new(Vec::new());
        for entry in entries {
            let mut header = Header::new_ustar();
            header.set_entry_type(EntryType::Regular);
            header.set_size(entry.data.len() as u64);
            header.set_mode(entry.mode);
            header.set_mtime(0);
            header.set_uid(0);
            header.set_gid(0);
            archive
                .append_data(&mut header, &entry.path, entry.data.as_slice())
                .map_err(Error::Layer)?;
        }
        Self::compress(&archive.into_inner().map_err(Error::Layer)?)
    }

    /// A layer of an archive that is there already.
    ///
    /// # Errors
    /// Never on a machine with memory.
    pub fn compress(archive: &[u8]) -> Result<Self, Error> {
        let mut gzip = GzBuilder::new()
            .mtime(0)
            .write(Vec::new(), Compression::default());
        gzip.write_all(archive).map_err(Error::Layer)?;
        let bytes = gzip.finish().map_err(Error::Layer)?;
        Ok(Self {
            digest: digest(&bytes),
            diff_id: digest(archive),
            bytes,
        })
    }
}

/// The digest of bytes, `sha256:<hex>`.
fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// What a layer says about `package.yaml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// This is what it holds.
    File(Vec<u8>),
    /// It is deleted: lower layers do not count.
    Deleted,
    /// Nothing: look in the next lower layer.
    Nothing,
}

/// Reads `package.yaml` from the layer that is annotated to hold it.
///
/// All of the layer is read, so that one that is cut off or has more than a package in it is refused.
///
/// # Errors
/// The layer is no archive, too large, or has an entry that leaves it; or there is no such file.
pub fn read_package_yaml(layer: impl Read) -> Result<Vec<u8>, Error> {
    let budget = Budget {
        what: "the layer of the package",
        max: PACKAGE_LAYER_BYTES_MAX,
        whole: true,
    };
    match scan(layer, budget)? {
        Found::File(bytes) => Ok(bytes),
        Found::Deleted | Found::Nothing => Err(Error::NoPackage("the layer annotated to hold it")),
    }
}

/// Looks for `/package.yaml` in a layer of an image that has no annotated one.
///
/// # Errors
/// The layer is no archive, too large, or has an entry that leaves it.
pub fn find_package_yaml(layer: impl Read) -> Result<Found, Error> {
    let budget = Budget {
        what: "a layer",
        max: LAYER_BYTES_MAX,
        whole: false,
    };
    scan(layer, budget)
}

struct Budget {
    what: &'static str,
    max: u64,
    /// The layer of the package: read to its end, and the file may be in a folder.
    whole: bool,
}

impl Budget {
    fn exceeded(&self) -> Error {
        Error::TooLarge {
            what: self.what,
            max: self.max,
            unit: "bytes when unpacked",
        }
    }
}

fn scan(layer: impl Read, budget: Budget) -> Result<Found, Error> {
    let mut archive = Archive::new(Bounded {
        inner: decompress(layer)?,
        left: budget.max,
    });
    let failed = |error: io::Error| match is_exceeded(&error) {
        true => budget.exceeded(),
        false => Error::Layer(error),
    };
    let mut found = Found::Nothing;
    for entry in archive.entries().map_err(failed)? {
        let mut entry = entry.map_err(failed)?;
        let path = relative(&entry.path_bytes())?;
        let file = path.rsplit('/').next().unwrap_or_default();
        match path.as_str() {
            ".wh.package.yaml" | ".wh..wh..opq" if !budget.whole => found = Found::Deleted,
            path if path == PACKAGE_FILE || (budget.whole && file == PACKAGE_FILE) => {
                if !entry.header().entry_type().is_file() {
                    return Err(Error::LayerEntry {
                        path: path.into(),
                        why: "is not a plain file",
                    });
                }
                if matches!(found, Found::File(_)) {
                    return Err(Error::LayerEntry {
                        path: path.into(),
                        why: "is there twice",
                    });
                }
                if entry.size() > PACKAGE_YAML_BYTES_MAX {
                    return Err(Error::TooLarge {
                        what: "package.yaml",
                        max: PACKAGE_YAML_BYTES_MAX,
                        unit: "bytes",
                    });
                }
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).map_err(failed)?;
                found = Found::File(bytes);
                if !budget.whole {
                    break;
                }
            }
            _ => {}
        }
    }
    if budget.whole {
        // What follows the archive's end mark, and the check sum.
        io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(failed)?;
    }
    Ok(found)
}

/// A path of an archive without what changes nothing.
fn relative(path: &[u8]) -> Result<String, Error> {
    let path = String::from_utf8_lossy(path);
    let refused = |why| Error::LayerEntry {
        path: path.clone().into_owned(),
        why,
    };
    if path.starts_with('/') {
        return Err(refused("is an absolute path"));
    }
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err(refused("leaves the layer")),
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

/// Reads what is compressed with gzip, or not at all.
///
/// # Errors
/// The beginning cannot be read, or is that of another compression.
pub fn decompress<'a>(mut layer: impl Read + 'a) -> Result<Box<dyn Read + 'a>, Error> {
    const GZIP: [u8; 2] = [0x1f, 0x8b];
    const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    let mut head = Vec::new();
    let mut begin = layer.by_ref().take(ZSTD.len() as u64);
    begin.read_to_end(&mut head).map_err(Error::Layer)?;
    let is_gzip = head.starts_with(&GZIP);
    if head == ZSTD {
        let why = "compressed with zstd: expected gzip";
        return Err(Error::Layer(io::Error::other(why)));
    }
    let all = Cursor::new(head).chain(layer);
    Ok(match is_gzip {
        true => Box::new(MultiGzDecoder::new(all)),
        false => Box::new(all),
    })
}

/// A reader that fails instead of giving more than it may.
struct Bounded<R> {
    inner: R,
    left: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("too large")]
struct Exceeded;

fn is_exceeded(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Exceeded>())
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self
            .left
            .checked_sub(read as u64)
            .ok_or_else(|| io::Error::other(Exceeded))?;
        Ok(read)
    }
}
