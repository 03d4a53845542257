//! Limits of the function.

use std::time::Duration;

/// How long an answer may be cached while the resource waits. Crossplane before 2.5 does not wake
/// an XR when a resource it asked for changes, so this bounds how late it notices.
pub const TTL_WAITING: Duration = Duration::from_secs(5);
/// How long an answer may be cached when nothing is expected to change.
pub const TTL_SETTLED: Duration = Duration::from_secs(60);
/// Longest message, in characters; a cloud's words are cut to it.
pub const MESSAGE_LEN_MAX: usize = 1024;
/// Most names listed in a message.
pub const NAMES_LISTED_MAX: usize = 8;
/// Most resources of one kind that are asked for one by one; of more, all there are in the namespace
/// are asked for at once.
pub const LOOKUPS_MAX: usize = 16;
/// Most states kept of one part of a resource, such as a route, of which there can be many.
pub const PART_HISTORY_LEN_MAX: usize = 4;
