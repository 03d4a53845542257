//! Limits of the engine.

use std::time::Duration;

/// Reconciles of one controller that run at once.
pub const RECONCILES_MAX: usize = 64;
/// Composed resources of one XR that are applied at once.
pub const APPLIES_PER_XR_MAX: usize = 16;
/// Longest one reconcile may take (upstream: two minutes).
pub const RECONCILE_TIMEOUT: Duration = Duration::from_secs(120);
/// First and longest pause after a failed reconcile (upstream: 1 s to 30 s).
pub const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// First and longest pause after a write conflict, which is nobody's fault.
pub const CONFLICT_BACKOFF: (Duration, Duration) =
    (Duration::from_millis(5), Duration::from_secs(1));
/// How long a reconcile waits for more changes when the first one is not urgent: this for each that
/// is under way, up to a bound.
pub const GATHER_TIME: (Duration, Duration) =
    (Duration::from_millis(20), Duration::from_millis(400));
/// Pause before looking again at something that is on its way, such as a CRD being established.
pub const WAIT_INTERVAL: Duration = Duration::from_secs(1);
/// First and longest pause between attempts to watch.
pub const WATCH_BACKOFF: (Duration, Duration) =
    (Duration::from_millis(50), Duration::from_secs(10));
/// Objects in one page of a list.
pub const LIST_PAGE: u32 = 500;
/// How long a watch is asked to last; clusters close watches after five minutes.
pub const WATCH_TIMEOUT_S: u32 = 290;
/// How long the first list of a kind may take when a reconcile needs it.
pub const SYNC_TIMEOUT: Duration = Duration::from_secs(10);
/// Deleted objects remembered per kind, so that a late answer does not bring one back.
pub const TOMBSTONES_MAX: usize = 4096;
/// Sets of label keys that objects of one kind are indexed by; others mean a look at all objects.
pub const LABEL_INDEXES_MAX: usize = 16;
/// How often watches that nobody needs any more are looked for.
pub const WATCH_GC_INTERVAL: Duration = Duration::from_secs(30);
/// A time to live below this asks for a reconcile when it is over; the default of function SDKs,
/// one minute, only allows caching.
pub const TTL_SHORT_MAX: Duration = Duration::from_secs(59);
/// Shortest time to live that is honoured.
pub const TTL_MIN: Duration = Duration::from_secs(1);
/// Longest poll interval that the annotation may ask for.
pub const POLL_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// Longest an unknown kind is taken for unknown before discovery is asked again.
pub const UNKNOWN_KIND_TTL: Duration = Duration::from_secs(1);
/// Events waiting to be written; more are dropped.
pub const EVENTS_QUEUED_MAX: usize = 4096;
/// How long events are gathered, and how many at most, to be written at once: the store makes them
/// durable together.
pub const EVENTS_GATHERED: (Duration, usize) = (Duration::from_millis(100), 256);
/// Events remembered so that the same one is not written again and again.
pub const EVENTS_REMEMBERED_MAX: usize = 8192;
/// How long an unchanged event is not repeated.
pub const EVENT_REPEAT: Duration = Duration::from_secs(600);
/// How long a "not yet" event waits for the thing to happen after all.
pub const EVENT_PATIENCE: Duration = Duration::from_secs(3);
/// Events of one object in a row, and how often it may have one more (as client-go).
pub const EVENTS_PER_OBJECT: (u32, Duration) = (25, Duration::from_secs(300));
/// Reconciles of one XR in a row before it counts as a fight, and how often it may have one more.
pub const RECONCILES_PER_XR: (u32, Duration) = (300, Duration::from_millis(500));
