//! Limits of provider-ecp.

use std::time::Duration;

/// Names of remaining objects that are shown while a workspace is torn down.
pub const REMAINING_SHOWN_MAX: usize = 16;
/// Least time between two counts of the contents of a namespace. Each one that differs wakes the
/// workspace's XR, for which Crossplane's circuit breaker allows one event a second for long
/// (`--circuit-breaker-refill-rate` of `crossplane core start`).
pub const COUNT_INTERVAL_MIN: Duration = Duration::from_secs(2);
/// Longest delay between looks at a namespace that is being torn down. Watches tell of progress;
/// this is for what they miss.
pub const TEARDOWN_LOOK_MAX: Duration = Duration::from_secs(10);
