//! Names of packages, revisions and sources.

use ecp_package::xpkg::{friendly_id, to_dns_label};
use serde_json::Value;

/// Lower-case scheme of a package that is a file or directory.
pub(crate) const FILE_SCHEME: &str = "file://";

/// The name of a package's revision.
pub(crate) fn revision_name(package: &str, digest: &str) -> String {
    friendly_id(package, digest.rsplit(':').next().unwrap_or_default())
}

/// Where a package comes from: what other packages depend on, and its tag or digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// Registry and repository, or the URL of a file.
    pub(crate) repository: String,
    /// Tag or digest; empty for files.
    pub(crate) identifier: String,
}

impl Source {
    /// Splits `registry/repository[:tag][@digest]`.
    pub(crate) fn parse(text: &str) -> Self {
        let split = |at: usize| Self {
            repository: text[..at].to_owned(),
            identifier: text[at + 1..].to_owned(),
        };
        if is_file(text) {
            return Self {
                repository: text.to_owned(),
                identifier: String::new(),
            };
        }
        if let Some(at) = text.find('@') {
            let mut source = split(at);
            let path = source.repository.rfind('/').unwrap_or(0);
            if let Some(colon) = source.repository[path..].find(':') {
                source.repository.truncate(path + colon);
            }
            return source;
        }
        let path = text.rfind('/').unwrap_or(0);
        match text[path..].find(':') {
            Some(colon) => split(path + colon),
            None => Self {
                repository: text.to_owned(),
                identifier: String::new(),
            },
        }
    }
}

/// Whether a source is a file or directory.
pub(crate) fn is_file(source: &str) -> bool {
    source.starts_with(FILE_SCHEME)
}

/// The path of an image's repository, without the registry.
fn repository_path(repository: &str) -> &str {
    repository
        .split_once('/')
        .map_or(repository, |(_, path)| path)
}

/// The name that a package gets when it is installed because another depends on it.
pub fn dependency_name(repository: &str) -> String {
    to_dns_label(repository_path(repository))
}

/// The package that a revision is of, as its label says.
pub(crate) fn parent(revision: &Value) -> &str {
    ecp_meta::object::label(revision, crate::kinds::PARENT_LABEL).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_split_at_its_tag_or_digest_and_never_at_a_port() {
        for (text, repository, identifier) in [
            ("xpkg.io/a/b:v1.2.3", "xpkg.io/a/b", "v1.2.3"),
            ("127.0.0.1:5000/a/b", "127.0.0.1:5000/a/b", ""),
            ("127.0.0.1:5000/a/b:v1", "127.0.0.1:5000/a/b", "v1"),
            ("r.io:5000/a@sha256:ab", "r.io:5000/a", "sha256:ab"),
            ("r.io/a:v1@sha256:ab", "r.io/a", "sha256:ab"),
            ("file:///tmp/a:b.xpkg", "file:///tmp/a:b.xpkg", ""),
        ] {
            let source = Source::parse(text);
            assert_eq!(
                (&*source.repository, &*source.identifier),
                (repository, identifier)
            );
        }
        assert_eq!(dependency_name("127.0.0.1:5000/org/fn-a"), "org-fn-a");
    }
}
