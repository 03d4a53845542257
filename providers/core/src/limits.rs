//! Limits of provider-ecp.

use std::time::Duration;

/// Names of remaining objects that are shown while a workspace is torn down.
pub const REMAINING_SHOWN_MAX: usize = 16;
/// How long changes of the contents of a namespace are collected before they are counted.
pub const COUNT_DEBOUNCE: Duration = Duration::from_millis(200);
/// Longest delay between looks at a namespace that is being torn down. Watches tell of progress;
/// this is for what they miss.
pub const TEARDOWN_LOOK_MAX: Duration = Duration::from_secs(10);
