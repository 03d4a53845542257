//! Limits of images, and times of talking to registries.

use std::time::Duration;

/// Most bytes of a manifest or an index (what registries accept: 4 MiB).
pub const MANIFEST_BYTES_MAX: u64 = 4 << 20;
/// Most bytes of an image's configuration.
pub const CONFIG_BYTES_MAX: u64 = 8 << 20;
/// Most bytes of the compressed layer of a package.
pub const PACKAGE_BLOB_BYTES_MAX: u64 = 200 << 20;
/// Most bytes of a compressed layer.
pub const LAYER_BLOB_BYTES_MAX: u64 = 2 << 30;
/// Most bytes of an image in a file.
pub const FILE_BYTES_MAX: u64 = 2 << 30;
/// Most layers of an image.
pub const LAYERS_MAX: usize = 256;
/// Most bytes of a file in a package root.
pub const ROOT_FILE_BYTES_MAX: u64 = 64 << 20;
/// Most bytes that the runtime of a package unpacks to.
pub const RUNTIME_BYTES_MAX: u64 = 8 << 30;
/// Most files and folders of the runtime of a package.
pub const RUNTIME_ENTRIES_MAX: usize = 1_000_000;
/// Most symbolic links on the way to a program.
pub const LINKS_MAX: usize = 40;
/// Tags of a repository that are asked for at once.
pub const TAGS_PAGE: usize = 1000;
/// Bytes of a layer that are pushed at once.
pub const PUSH_PIECE_BYTES: usize = 64 << 10;
/// Most tags of a repository.
pub const TAGS_MAX: usize = 100_000;
/// How long connecting to a registry may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a registry may be silent.
pub const READ_TIMEOUT: Duration = Duration::from_secs(60);
