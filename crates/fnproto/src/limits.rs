//! Limits of talking to functions.

use std::time::Duration;

/// Largest response accepted from a function (gRPC's default, which upstream does not change).
pub const RESPONSE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest one call may take; upstream bounds a whole XR reconcile by two minutes.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest a call waits for a function that cannot be reached yet.
pub const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// First and longest pause between attempts to reach a function.
pub const CONNECT_RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// How often certificate files are looked at.
pub const CERT_CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// Requirement names remembered per function as asked for through the deprecated field.
pub const LEGACY_NAMES_MAX: usize = 1024;
