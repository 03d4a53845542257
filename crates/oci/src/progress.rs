//! What to tell whoever waits for layers.

use crate::Digest;

/// Hears of layers that are on their way.
pub trait Progress: Send + Sync {
    /// A layer of so many bytes begins.
    fn begin(&self, digest: &Digest, size: u64) {
        let _ = (digest, size);
    }

    /// So many bytes more of it are there.
    fn advance(&self, digest: &Digest, bytes: u64) {
        let _ = (digest, bytes);
    }

    /// All of it is there.
    fn end(&self, digest: &Digest) {
        let _ = digest;
    }
}

/// Nobody waits.
impl Progress for () {}
