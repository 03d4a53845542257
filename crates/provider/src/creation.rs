//! The record of creations that makes them crash-safe (crossplane-runtime `pkg/meta`).
//!
//! Three annotations say what is known about the last call that would create the external
//! resource. Before the call `external-create-pending` is written, after it either
//! `external-create-succeeded` or `external-create-failed`. A pending mark newer than both means
//! that a call may have been made whose result nobody knows.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use ecp_meta::keys;

/// What the annotations say about the last creation. Times have whole seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Creation {
    /// When a call was about to be made.
    pub pending: Option<Timestamp>,
    /// When a call was known to have succeeded.
    pub succeeded: Option<Timestamp>,
    /// When a call was known to have failed.
    pub failed: Option<Timestamp>,
}

impl Creation {
    /// Reads the annotations. A time that cannot be read counts as absent, as upstream.
    pub fn of(annotations: &BTreeMap<String, String>) -> Self {
        let time = |key: &str| annotations.get(key).and_then(|t| t.parse().ok());
        Self {
            pending: time(keys::EXTERNAL_CREATE_PENDING),
            succeeded: time(keys::EXTERNAL_CREATE_SUCCEEDED),
            failed: time(keys::EXTERNAL_CREATE_FAILED),
        }
    }

    /// Whether a call may have been made whose result is unknown.
    ///
    /// Equal times count as complete: the annotations have whole seconds.
    pub fn is_incomplete(&self) -> bool {
        let Some(pending) = self.pending else {
            return false;
        };
        [self.succeeded, self.failed]
            .into_iter()
            .flatten()
            .all(|done| pending > done)
    }

    /// Whether a creation succeeded less than `grace` ago.
    pub fn succeeded_within(&self, grace: Duration, now: Timestamp) -> bool {
        !grace.is_zero()
            && self.succeeded.is_some_and(|at| {
                let age = now.duration_since(at);
                age.is_negative() || age.unsigned_abs() < grace
            })
    }

    /// The pending time of a call that is about to be made: later, by whole seconds, than any
    /// earlier result, so that a crash during a quick second attempt is not taken for complete.
    pub fn next_pending(&self, now: Timestamp) -> Timestamp {
        let after = |at: Timestamp| at.checked_add(SignedDuration::from_secs(1)).unwrap_or(at);
        [self.succeeded, self.failed]
            .into_iter()
            .flatten()
            .map(after)
            .fold(now, Timestamp::max)
    }

    /// The time of a result: never before the pending time.
    pub fn result_time(&self, now: Timestamp) -> Timestamp {
        self.pending.map_or(now, |pending| pending.max(now))
    }
}

/// A time as the annotations have it: RFC 3339 with whole seconds, in UTC.
pub fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    fn creation(pending: i64, succeeded: i64, failed: i64) -> Creation {
        let time = |s| (s > 0).then(|| at(s));
        Creation {
            pending: time(pending),
            succeeded: time(succeeded),
            failed: time(failed),
        }
    }

    #[test]
    fn pending_newer_than_both_results_is_incomplete() {
        assert!(!creation(0, 0, 0).is_incomplete());
        assert!(creation(5, 0, 0).is_incomplete());
        assert!(creation(5, 4, 0).is_incomplete());
        assert!(creation(5, 4, 3).is_incomplete());
        assert!(!creation(5, 6, 0).is_incomplete());
        assert!(!creation(5, 0, 6).is_incomplete());
        assert!(!creation(5, 4, 6).is_incomplete());
    }

    #[test]
    fn equal_seconds_count_as_complete() {
        assert!(!creation(5, 5, 0).is_incomplete());
        assert!(!creation(5, 0, 5).is_incomplete());
    }

    #[test]
    fn a_second_attempt_within_the_same_second_is_newer_than_the_first_result() {
        let mut c = creation(5, 0, 5);
        c.pending = Some(c.next_pending(at(5)));
        assert_eq!(c.pending, Some(at(6)));
        assert!(c.is_incomplete());
        c.succeeded = Some(c.result_time(at(5)));
        assert!(!c.is_incomplete());
        assert_eq!(creation(0, 0, 0).next_pending(at(9)), at(9));
    }

    #[test]
    fn annotations_round_trip() {
        let annotations = BTreeMap::from([
            (
                keys::EXTERNAL_CREATE_PENDING.to_owned(),
                rfc3339(at(1_700_000_000)),
            ),
            (
                keys::EXTERNAL_CREATE_FAILED.to_owned(),
                "yesterday".to_owned(),
            ),
        ]);
        let read = Creation::of(&annotations);
        assert_eq!(read.pending, Some(at(1_700_000_000)));
        assert_eq!(read.failed, None);
        assert_eq!(rfc3339(at(0)), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn grace_counts_from_success() {
        let c = creation(0, 100, 0);
        assert!(c.succeeded_within(Duration::from_secs(30), at(129)));
        assert!(!c.succeeded_within(Duration::from_secs(30), at(130)));
        assert!(!c.succeeded_within(Duration::ZERO, at(100)));
        assert!(c.succeeded_within(Duration::from_secs(30), at(99)));
        assert!(!creation(0, 0, 0).succeeded_within(Duration::from_secs(30), at(1)));
    }
}
