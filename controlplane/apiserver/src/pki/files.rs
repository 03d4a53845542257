//! Files that only their owner can read, replaced in one step.

use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::PkiError;

fn at(path: &Path) -> impl Fn(std::io::Error) -> PkiError {
    move |source| PkiError::File {
        path: path.to_owned(),
        source,
    }
}

/// Makes a directory that only its owner can enter, or takes others' rights from an existing one.
pub(super) fn create_private_dir(dir: &Path) -> Result<(), PkiError> {
    fs::create_dir_all(dir).map_err(at(dir))?;
    fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(at(dir))
}

/// The file's text; `None` if there is none.
pub(super) fn read(path: &Path) -> Result<Option<String>, PkiError> {
    match fs::read_to_string(path) {
        Ok(text) => {
            // A copied data directory may have lost its modes.
            fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(at(path))?;
            Ok(Some(text))
        }
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(at(path)(e)),
    }
}

/// Writes through a temporary file beside it, durable before it takes its place.
pub(super) fn write_private(path: &Path, content: &[u8]) -> Result<(), PkiError> {
    let dir = path
        .parent()
        .filter(|dir| !dir.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    // Temporary files are made with mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(dir).map_err(at(path))?;
    file.write_all(content).map_err(at(path))?;
    file.as_file().sync_all().map_err(at(path))?;
    file.persist(path).map_err(|e| at(path)(e.error))?;
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(at(path))
}

/// Removes a file, if there is one.
pub(super) fn remove(path: &Path) -> Result<(), PkiError> {
    match fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        Err(e) => Err(at(path)(e)),
    }
}
