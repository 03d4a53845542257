//! Limits of the API server.

use std::time::Duration;

/// Longest request body (kube-apiserver's `MaxRequestBodyBytes`).
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Longest body that is read though the request is refused already.
pub const DISCARD_BYTES_MAX: usize = 64 * 1024;
/// How long that may take.
pub const DISCARD_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a request other than a watch may take.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Objects that a list with a selector looks at in one go, however few it may return.
pub const LIST_SCAN_MIN: usize = 1000;
/// Tries at a generated name before the create is refused.
pub const GENERATE_NAME_TRIES_MAX: usize = 8;
/// Longest base of a generated name, so that name and suffix fit a label.
pub const GENERATE_NAME_BASE_LEN_MAX: usize = 58;
/// Random characters of a generated name.
pub const GENERATE_NAME_SUFFIX_LEN: usize = 5;
/// Tries at a patch that meets concurrent writes.
pub const PATCH_TRIES_MAX: usize = 5;
/// How long a read waits for a revision that has not happened yet.
pub const FUTURE_REVISION_WAIT: Duration = Duration::from_secs(3);
/// Time between bookmarks of a quiet watch.
pub const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);
/// Shortest time after which the server ends a watch without `timeoutSeconds`; the longest is twice
/// this.
pub const WATCH_TIMEOUT_MIN: Duration = Duration::from_secs(30 * 60);
/// All annotations of an object together (apimachinery `TotalAnnotationSizeLimitB`).
pub const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;
/// Longest field manager name.
pub const FIELD_MANAGER_LEN_MAX: usize = 128;
/// Bytes of one chunk of a list response.
pub const LIST_CHUNK_BYTES: usize = 256 * 1024;
/// Warnings on one response.
pub const WARNINGS_MAX: usize = 32;
/// Duplicate fields of one body that are reported, and errors of one refusal that are: a body can
/// hold a million.
pub const FAULTS_MAX: usize = 256;
/// Bytes of one field name that a report shows: a body can be one name, and faults below it.
pub const FAULT_STEP_LEN_MAX: usize = 256;
/// Connections of one listener; more wait in the kernel's queue.
pub const CONNECTIONS_MAX: usize = 8192;
/// Requests under way on one HTTP/2 connection. client-go puts all watches of a process on one.
pub const HTTP2_STREAMS_MAX: u32 = 1000;
/// Time between pings of a quiet HTTP/2 connection.
pub const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(30);
/// How long a ping may stay unanswered.
pub const HTTP2_PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Request line and headers of one request.
pub const HEADER_BYTES_MAX: usize = 64 * 1024;
/// How long a client may take for a request's headers; also ends idle HTTP/1.1 connections.
pub const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(90);
/// How long a TLS handshake may take.
pub const TLS_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a failed accept, such as one without free file descriptors.
pub const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// How long requests under way may take to finish when the server stops.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Requests other than watches under way at once.
pub const REQUESTS_MAX: usize = 4096;
/// Watches open at once.
pub const WATCHES_MAX: usize = 100_000;
/// Longest life of a watch that a client may ask for, in seconds.
pub const WATCH_SECONDS_MAX: u64 = 24 * 60 * 60;
/// OpenAPI documents kept, all clusters together.
pub const OPENAPI_CACHE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Resources with metric series of their own; the rest share one.
pub const METRIC_RESOURCES_MAX: usize = 512;
/// Tasks of each built-in controller, all clusters together.
pub const CONTROLLER_WORKERS: usize = 4;
/// First delay before a failed item is tried again; it doubles with each failure.
pub const CONTROLLER_RETRY_MIN: Duration = Duration::from_millis(5);
/// Longest delay before a failed item is tried again.
pub const CONTROLLER_RETRY_MAX: Duration = Duration::from_secs(60);
/// Objects that controllers read at once when they start.
pub const CONTROLLER_PAGE: usize = 1000;
/// Deleted owners that garbage collection remembers.
pub const GC_ABSENT_OWNERS_MAX: usize = 4096;
/// Watch frames kept for other watches of the same events.
pub const FRAMES_SHARED: usize = 256;
/// Largest watch frame that is kept.
pub const FRAME_SHARED_BYTES_MAX: usize = 64 * 1024;
/// Objects removed in one commit when a definition starts afresh.
pub const SWEEP_BATCH: usize = 1000;
/// How long an Event is kept after it last happened.
pub const EVENT_TTL: Duration = Duration::from_secs(60 * 60);
/// Time between removals of old Events.
pub const EVENT_SWEEP_INTERVAL: Duration = Duration::from_secs(5 * 60);
