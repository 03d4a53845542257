//! Limits of the package manager.

use std::time::Duration;

/// First and longest pause after a failed reconcile (upstream: 1 s to 30 s).
pub const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// Pause after a lost race, or while another revision lets go of its objects.
pub const CONFLICT_PAUSE: Duration = Duration::from_millis(50);
/// How often a package whose pull policy is `Always` is looked up (upstream: one minute).
pub const PULL_INTERVAL: Duration = Duration::from_secs(60);
/// Longest one reconcile may take (upstream: three minutes).
pub const RECONCILE_TIMEOUT: Duration = Duration::from_secs(180);
/// Objects of one package that are checked or written at once (upstream's default).
pub const ESTABLISH_CONCURRENCY: usize = 10;
/// Reconciles of one controller that run at once.
pub const RECONCILES_MAX: u16 = 16;
/// Missing dependencies that a message names.
pub const MISSING_NAMED: usize = 3;
/// Longest text of an Event.
pub const EVENT_TEXT_MAX: usize = 1024;
/// Events remembered, so that the same one is not written again and again.
pub const EVENTS_REMEMBERED_MAX: usize = 1024;
/// How long an unchanged event is not repeated.
pub const EVENT_REPEAT: Duration = Duration::from_secs(600);
