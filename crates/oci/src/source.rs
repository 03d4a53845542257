//! Where a package is.

use std::path::{Path, PathBuf};

use oci_client::Reference;

use crate::Error;

/// Where a package is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file as `xpkg build` or `docker save` writes it.
    File(PathBuf),
    /// A folder: an OCI image layout, or a package root with its `crossplane.yaml`.
    Directory(PathBuf),
    /// An image in a registry.
    Registry(Reference),
}

const FILE_SCHEME: &str = "file://";

impl Source {
    /// Reads `REGISTRY/REPOSITORY[:TAG][@DIGEST]`, `file://PATH` or a path. A path begins with a
    /// slash or a dot, or ends with `.xpkg`; the file system is asked whether it is a folder.
    ///
    /// # Errors
    /// It is none of these, or there is nothing at the path.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let path = text.strip_prefix(FILE_SCHEME);
        let is_path = text.starts_with(['/', '.']) || text.ends_with(".xpkg");
        if let Some(path) = path.or(is_path.then_some(text)) {
            let path = Path::new(path);
            let metadata = path.metadata().map_err(Error::file(path))?;
            return Ok(match metadata.is_dir() {
                true => Self::Directory(path.into()),
                false => Self::File(path.into()),
            });
        }
        reference(text).map(Self::Registry)
    }
}

/// Reads `REGISTRY/REPOSITORY[:TAG][@DIGEST]`. There is no default registry, as in Crossplane 2.
///
/// # Errors
/// It is no such reference.
pub fn reference(text: &str) -> Result<Reference, Error> {
    let wrong = |why: String| Error::Source {
        text: text.into(),
        why,
    };
    let host = text.split_once('/').map(|(host, _)| host);
    if !host.is_some_and(|host| host.contains(['.', ':']) || host == "localhost") {
        return Err(wrong(
            "it does not begin with the host of a registry".into(),
        ));
    }
    text.parse()
        .map_err(|error: oci_client::ParseError| wrong(error.to_string()))
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) | Self::Directory(path) => path.display().fmt(f),
            Self::Registry(reference) => reference.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_a_path_or_a_whole_reference() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.xpkg");
        std::fs::write(&file, "").unwrap();
        let path = dir.path().to_str().unwrap();
        assert_eq!(
            Source::parse(path).unwrap(),
            Source::Directory(dir.path().into())
        );
        let url = format!("file://{path}/a.xpkg");
        assert_eq!(Source::parse(&url).unwrap(), Source::File(file));
        for whole in [
            "ghcr.io/a/b:v1",
            "localhost:5000/b:v1",
            "127.0.0.1:1/a/b",
            "localhost/a/b:v1",
        ] {
            assert!(
                matches!(Source::parse(whole), Ok(Source::Registry(_))),
                "{whole}"
            );
        }
        for (wrong, why) in [
            ("a/b:v1", "host of a registry"),
            ("b", "host of a registry"),
            ("ghcr.io/A", "invalid reference"),
            ("./none.xpkg", "No such file"),
            ("none.xpkg", "No such file"),
            ("", "host of a registry"),
        ] {
            let error = Source::parse(wrong).unwrap_err().to_string();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }
}
