//! Limits of the dummy cloud.

/// Outdated lines that the journal may have, beside twice the live ones, before it is rewritten.
pub const JOURNAL_DEAD_LINES_MAX: usize = 4096;
/// Largest volume.
pub const VOLUME_SIZE_GB_MAX: i64 = 1_000_000;
/// Longest delay of an operation: a day.
pub const DELAY_MS_MAX: i64 = 24 * 60 * 60 * 1000;
