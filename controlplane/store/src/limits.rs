//! Limits of the store.

/// Commits that wait for the committer before callers are held back.
pub(crate) const QUEUE_LEN_MAX: usize = 4096;
/// Commits that share one durable write.
pub(crate) const BATCH_LEN_MAX: usize = 512;
/// Events kept for watches and reads at older revisions.
pub(crate) const HISTORY_EVENTS_MAX: usize = 65_536;
/// Bytes of values that the kept events hold.
pub(crate) const HISTORY_BYTES_MAX: usize = 24 << 20;
/// Events a watch may be behind before it is ended.
pub(crate) const WATCH_QUEUE_LEN_MAX: usize = 16_384;
/// Bytes of values that may wait for one watch before it is ended. Watches of the same events share
/// them.
pub(crate) const WATCH_QUEUE_BYTES_MAX: usize = 64 << 20;
/// Page cache of the embedded database; small, since the live set is in memory anyway.
pub(crate) const DATABASE_CACHE_BYTES: usize = 4 << 20;
