//! Limits of the facade.

use std::time::Duration;

/// Largest request body. SECA wants bodies of 1 MiB to reach validation (section 3.2).
pub const BODY_BYTES_MAX: usize = 1 << 20;
/// Longest time a client may take to send its headers; also ends idle connections.
pub const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest time a client may take to send its body.
pub const BODY_READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Requests worked on at once; more are refused with 429.
pub const REQUESTS_IN_FLIGHT_MAX: usize = 1024;
/// Mutating requests that wait for the control plane at once; more are answered without a wait.
pub const WAITING_MAX: usize = 8192;
/// Connections open at once; more wait in the listener's backlog.
pub const CONNECTIONS_MAX: usize = 4096;
/// What a client is told to wait after 429 and 503.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Largest users file, in bytes.
pub const USERS_BYTES_MAX: u64 = 1 << 20;
/// How often the users file is read again.
pub const USERS_POLL: Duration = Duration::from_secs(5);
/// Longest subject, in characters (section 2.6, role assignments).
pub const SUBJECT_LEN_MAX: usize = 128;

/// Default page length of a list (SECA section 1.4).
pub const LIST_LIMIT_DEFAULT: usize = 1000;
/// Longest page of a list (SECA section 1.4).
pub const LIST_LIMIT_MAX: usize = 10_000;
/// Longest accepted `skipToken`.
pub const SKIP_TOKEN_LEN_MAX: usize = 1024;
/// Longest accepted query string.
pub const QUERY_LEN_MAX: usize = 16 << 10;
/// Longest accepted path.
pub const PATH_LEN_MAX: usize = 4 << 10;

/// Longest SECA resource name (section 2.1).
pub const NAME_LEN_MAX: usize = 128;
/// Longest label value (section 2.1).
pub const LABEL_VALUE_LEN_MAX: usize = 63;
/// Longest annotation value (section 2.1).
pub const ANNOTATION_VALUE_LEN_MAX: usize = 1024;
/// Most conditions shown (section 2.3).
pub const CONDITIONS_MAX: usize = 32;
/// Most entries of `sources` in a problem.
pub const PROBLEM_SOURCES_MAX: usize = 32;
/// Longest `detail` of a problem, in characters (section 1.5 allows more).
pub const PROBLEM_DETAIL_LEN_MAX: usize = 8192;
/// Longest `instance` and `pointer` of a problem, in characters (section 1.5).
pub const PROBLEM_POINTER_LEN_MAX: usize = 256;

/// How long a mutating call waits for the control plane to settle, unless the client asks otherwise.
pub const SETTLE_DEFAULT: Duration = Duration::from_secs(2);
/// The longest wait a client may ask for with `Prefer: wait=N`.
pub const SETTLE_MAX: Duration = Duration::from_secs(60);
/// Longest time one call to the control plane may take.
pub const CONTROL_PLANE_TIMEOUT: Duration = Duration::from_secs(15);
/// How often a write is tried again when it raced with another one.
pub const WRITE_ATTEMPTS_MAX: usize = 8;
/// Longest wait for the control plane to see the change before the one that comes now, which would
/// count as one with it. Crossplane on a busy machine takes a second at times.
pub const SEEN_WAIT_MAX: Duration = Duration::from_secs(3);
/// Longest wait for a workspace's namespace when its first resource arrives early.
pub const NAMESPACE_WAIT_MAX: Duration = Duration::from_secs(5);

/// Page length of the lists that fill the cache.
pub const CACHE_PAGE_LEN: usize = 500;
/// The watch is asked to end after this time, and given up a little later.
pub const WATCH_TIMEOUT: Duration = Duration::from_secs(240);
/// First and longest wait before a failed watch is begun again.
pub const WATCH_BACKOFF: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(2));
/// A watch that ended sooner than this is not begun again at once.
pub const WATCH_SHORT: Duration = Duration::from_secs(5);
/// How often a watch may open and fail at one version before a new list must help.
pub const WATCH_STUCK_MAX: usize = 3;
/// How long a cache may be cut off from the control plane before reads bypass it.
pub const CACHE_CUT_OFF_MAX: Duration = Duration::from_secs(5);

/// How long requests that wait for the control plane still do so after shutdown was asked for.
pub const DRAIN_WAIT_MAX: Duration = Duration::from_secs(5);
/// Longest time open requests may take to end after shutdown was asked for.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(25);
