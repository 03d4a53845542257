//! The reference cloud: no credentials; tunable delay, failure and drift.
