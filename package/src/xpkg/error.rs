//! What can be wrong with a package.

/// Why something is no package.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The stream is no text.
    #[error("package.yaml is not UTF-8: byte {at} begins no character")]
    Text {
        /// Offset of the first wrong byte.
        at: usize,
    },
    /// A document is no YAML, or not an object.
    #[error("document {document} of package.yaml: {why}")]
    Document {
        /// Which one, from 1, empty ones not counted.
        document: usize,
        /// What is wrong, in words.
        why: String,
    },
    /// A document is of a kind that no package may hold.
    #[error(
        "document {document} of package.yaml: unexpected kind {kind} of {api_version}: a package holds {expected}"
    )]
    UnknownKind {
        /// Which one, from 1.
        document: usize,
        /// Its apiVersion.
        api_version: String,
        /// Its kind.
        kind: String,
        /// What was expected.
        expected: &'static str,
    },
    /// None or several meta documents.
    #[error(
        "package.yaml has {found} meta documents ({names}): expected exactly one, of meta.pkg.crossplane.io"
    )]
    Metas {
        /// How many.
        found: usize,
        /// Which ones, in words.
        names: String,
    },
    /// A field of the meta document.
    #[error("{kind} {name:?}: {field}: {why}")]
    Meta {
        /// Kind of the package.
        kind: &'static str,
        /// Name of the package.
        name: String,
        /// Path of the field.
        field: String,
        /// What is wrong, in words.
        why: String,
    },
    /// An object that packages hold, but not those of this kind.
    #[error("{object_kind} {object:?} of {api_version} cannot be in a {kind}: expected {expected}")]
    WrongKind {
        /// Kind of the package.
        kind: &'static str,
        /// Kind of the object.
        object_kind: String,
        /// Its apiVersion.
        api_version: String,
        /// Its name.
        object: String,
        /// What was expected.
        expected: &'static str,
    },
    /// Two objects of one kind and name.
    #[error("{object_kind} {object:?} is in the package twice")]
    Twice {
        /// Kind of the object.
        object_kind: String,
        /// Its name.
        object: String,
    },
    /// A layer cannot be read.
    #[error("the layer cannot be read: {0}")]
    Layer(#[source] std::io::Error),
    /// An entry of a layer must not be there.
    #[error("the layer has an entry {path:?}, which {why}")]
    LayerEntry {
        /// Its path.
        path: String,
        /// What is wrong, in words.
        why: &'static str,
    },
    /// Too much of something.
    #[error("{what} has more than {max} {unit}")]
    TooLarge {
        /// Of what.
        what: &'static str,
        /// The most there may be.
        max: u64,
        /// Of which.
        unit: &'static str,
    },
    /// There is no `package.yaml`.
    #[error("there is no package.yaml in {0}: it is no Crossplane package")]
    NoPackage(&'static str),
    /// YAML cannot be written.
    #[error("writing YAML: {0}")]
    Write(String),
}
