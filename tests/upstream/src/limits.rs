//! Limits of the servers of tests.

use std::time::Duration;

/// Longest until a server answers.
pub const READY_MAX: Duration = Duration::from_secs(120);
/// How often it is asked.
pub const READY_INTERVAL: Duration = Duration::from_millis(50);
/// How often a cluster is started when a server ends at once, as it does when another process took
/// its port meanwhile.
pub const STARTS_MAX: usize = 3;
/// Lifetime of ServiceAccount tokens, in seconds.
pub const TOKEN_SECONDS: i64 = 24 * 60 * 60;
