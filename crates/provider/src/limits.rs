//! Limits and intervals of the managed resource runtime.

use std::time::Duration;

/// Longest that one call to a cloud may take (crossplane-runtime's `reconcileTimeout`).
pub const EXTERNAL_CALL_TIME_MAX: Duration = Duration::from_secs(60);
/// Longest that one call to the Kubernetes API may take (upstream's extra time for writes).
pub const API_CALL_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a resource whose creation succeeded may stay invisible before it counts as missing.
pub const CREATION_GRACE: Duration = Duration::from_secs(30);

/// First delay after a failure.
pub const BACKOFF_MIN: Duration = Duration::from_secs(1);
/// Longest delay after failures.
pub const BACKOFF_MAX: Duration = Duration::from_secs(60);
/// First delay after a conflict that the cloud resolves by itself.
pub const CONFLICT_BACKOFF_MIN: Duration = Duration::from_millis(50);
/// Longest delay after such conflicts.
pub const CONFLICT_BACKOFF_MAX: Duration = Duration::from_secs(2);
/// How long a deletion that waited for others still waits when one of them is gone: others may go
/// with it.
pub const UNBLOCK_DELAY: Duration = Duration::from_millis(10);
/// First delay before a resource that the cloud is working on is observed again.
pub const SETTLE_MIN: Duration = Duration::from_millis(10);
/// Longest delay before such a resource is observed again.
pub const SETTLE_MAX: Duration = Duration::from_secs(1);
/// Longest delay that a cloud's `Retry-After` is followed for.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(600);

/// Default interval between observations of a resource that is up to date.
pub const POLL_DEFAULT: Duration = Duration::from_secs(60);
/// Shortest poll interval that the annotation may ask for (crossplane-runtime 2.3).
pub const POLL_MIN: Duration = Duration::from_secs(1);
/// Longest poll interval that the annotation may ask for.
pub const POLL_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// Share of the poll interval that is added at random, so that resources do not poll together.
pub const POLL_JITTER: f64 = 0.1;

/// Default number of reconciles that run at the same time in one process.
pub const CONCURRENCY_DEFAULT: usize = 64;
/// Steps in one reconcile. The decision table needs fewer; more means a fault in it.
pub const STEPS_MAX: usize = 32;
/// Attempts to record the result of a creation.
pub const RECORD_ATTEMPTS_MAX: u32 = 8;
/// Own writes of an object that are remembered, to tell their echoes from changes by others.
pub const OWN_WRITES_MAX: usize = 8;
/// Events waiting to be sent; more are dropped.
pub const EVENTS_QUEUED_MAX: usize = 1024;
/// How long events are gathered, and how many at most, to be sent at once: the API server makes
/// them durable together.
pub const EVENTS_GATHERED: (Duration, usize) = (Duration::from_millis(100), 256);
/// How long waiting events may take to be sent at shutdown.
pub const EVENTS_DRAIN_TIME_MAX: Duration = Duration::from_secs(1);
/// Longest event or condition message.
pub const MESSAGE_LEN_MAX: usize = 1024;
/// How long changes of usages are collected before `status.users` is written.
pub const USERS_DEBOUNCE: Duration = Duration::from_millis(200);
/// How long running reconciles may take to end at shutdown.
pub const DRAIN_TIME_MAX: Duration = Duration::from_secs(30);
/// First and longest delay before a broken watch is started again.
pub const WATCH_BACKOFF: (Duration, Duration) =
    (Duration::from_millis(50), Duration::from_secs(10));
/// First and longest delay before CRDs are watched again: rights may come later, or never.
pub const CRD_WATCH_BACKOFF: (Duration, Duration) =
    (Duration::from_secs(1), Duration::from_secs(60));
/// How often a kind that is not served is looked for although its arrival would be told.
pub const ABSENT_LOOK_MAX: Duration = Duration::from_secs(300);

/// How long a lease that nobody renews keeps others out.
pub const LEASE_DURATION: Duration = Duration::from_secs(60);
/// How long the leader tries to renew before it gives up; shorter than the lease lasts.
pub const LEASE_RENEW_DEADLINE: Duration = Duration::from_secs(50);
/// Time between looks at the lease.
pub const LEASE_RETRY: Duration = Duration::from_secs(2);
