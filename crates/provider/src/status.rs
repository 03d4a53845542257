//! The status of a managed resource, and the patch that brings it there.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use ecp_meta::condition::{self, Condition};

use crate::creation::rfc3339;
use crate::external::Readiness;
use crate::limits::MESSAGE_LEN_MAX;

/// The `Synced` condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Synced {
    /// The last reconcile did what it wanted.
    Success,
    /// It did not, and why.
    Error(String),
    /// The cloud refuses, in its words: trying again will not help.
    Refused(String),
    /// Nothing is reconciled.
    Paused(String),
}

/// What a reconcile wants to say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// `Synced`; `None` leaves it.
    pub synced: Option<Synced>,
    /// `Ready`; `None` leaves it.
    pub ready: Option<Readiness>,
    /// `atProvider`; `None` leaves it.
    pub at_provider: Option<Value>,
    /// The last `reconcile-requested-at` token that was handled.
    pub handled: Option<String>,
}

/// The merge patch that makes an object's status say what `report` says; `None` when it already
/// does.
pub fn patch(
    status: Option<&Value>,
    report: &Report,
    generation: i64,
    now: Timestamp,
) -> Option<Value> {
    let empty = Value::Object(Map::new());
    let old = status.filter(|s| s.is_object()).unwrap_or(&empty);
    let now = rfc3339(now);
    let mut conditions = condition::of(&json!({ "status": old }));
    for new in conditions_of(report, &now) {
        condition::set(&mut conditions, new.at_generation(generation));
    }
    let mut new = old.clone();
    if let Some(map) = new.as_object_mut() {
        if !conditions.is_empty() {
            map.insert("conditions".into(), json!(conditions));
        }
        if report.synced.is_some() {
            map.insert("observedGeneration".into(), generation.into());
        }
        if let Some(at_provider) = &report.at_provider {
            map.insert("atProvider".into(), at_provider.clone());
        }
        if let Some(token) = &report.handled {
            map.insert("lastHandledReconcileAt".into(), token.clone().into());
        }
    }
    diff(old, &new).map(|status| json!({ "status": status }))
}

fn conditions_of(report: &Report, now: &str) -> Vec<Condition> {
    let mut all = Vec::new();
    if let Some(ready) = &report.ready {
        let (status, reason, message) = match ready {
            Readiness::Available => (true, "Available", ""),
            Readiness::Creating(m) => (false, "Creating", m.as_str()),
            Readiness::Unavailable(m) => (false, "Unavailable", m.as_str()),
            Readiness::Deleting(m) => (false, "Deleting", m.as_str()),
        };
        all.push(Condition::new("Ready", status, reason, &cut(message), now));
    }
    if let Some(synced) = &report.synced {
        let (status, reason, message) = match synced {
            Synced::Success => (true, "ReconcileSuccess", ""),
            Synced::Error(m) => (false, "ReconcileError", m.as_str()),
            Synced::Refused(m) => (false, "ReconcileRefused", m.as_str()),
            Synced::Paused(m) => (false, "ReconcilePaused", m.as_str()),
        };
        all.push(Condition::new("Synced", status, reason, &cut(message), now));
    }
    all
}

/// A text of at most [`MESSAGE_LEN_MAX`] bytes, cut between characters.
pub fn cut(text: &str) -> String {
    if text.len() <= MESSAGE_LEN_MAX {
        return text.into();
    }
    let mut end = MESSAGE_LEN_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().into()
}

/// The JSON merge patch (RFC 7386) from `old` to `new`; `None` when they are equal.
///
/// Nulls inside `new` cannot be told from removals, so they read as absent.
pub fn diff(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else {
        return Some(new.clone());
    };
    let mut patch = Map::new();
    for (key, value) in new {
        if value.is_null() {
            continue;
        }
        let change = match old.get(key) {
            Some(before) => diff(before, value),
            None => Some(value.clone()),
        };
        if let Some(change) = change {
            patch.insert(key.clone(), change);
        }
    }
    for (key, value) in old {
        if !value.is_null() && new.get(key).is_none_or(Value::is_null) {
            patch.insert(key.clone(), Value::Null);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    fn report() -> Report {
        Report {
            synced: Some(Synced::Success),
            ready: Some(Readiness::Available),
            at_provider: Some(json!({"id": "vol-1", "sizeGB": 5})),
            handled: None,
        }
    }

    #[test]
    fn the_same_report_is_written_once() {
        let first = patch(None, &report(), 3, at(0)).expect("a first status");
        let status = &first["status"];
        assert_eq!(status["observedGeneration"], 3);
        assert_eq!(status["conditions"][0]["type"], "Ready");
        assert_eq!(status["conditions"][0]["status"], "True");
        assert_eq!(status["conditions"][1]["reason"], "ReconcileSuccess");
        assert_eq!(status["conditions"][1]["observedGeneration"], 3);
        assert_eq!(patch(Some(status), &report(), 3, at(9)), None);
    }

    #[test]
    fn a_new_generation_is_reported() {
        let first = patch(None, &report(), 1, at(0)).expect("a first status");
        let second = patch(Some(&first["status"]), &report(), 2, at(9)).expect("a change");
        assert_eq!(second["status"]["observedGeneration"], 2);
        assert!(second["status"].get("atProvider").is_none());
    }

    #[test]
    fn fields_that_are_gone_are_removed() {
        let first = patch(None, &report(), 1, at(0)).expect("a first status");
        let mut other = report();
        other.at_provider = Some(json!({"id": "vol-1", "state": "error"}));
        let second = patch(Some(&first["status"]), &other, 1, at(0)).expect("a change");
        assert_eq!(
            second,
            json!({"status": {"atProvider": {"state": "error", "sizeGB": null}}})
        );
    }

    #[test]
    fn what_is_not_reported_is_left() {
        let first = patch(None, &report(), 1, at(0)).expect("a first status");
        let error = Report {
            synced: Some(Synced::Error("observe failed: down".into())),
            ..Report::default()
        };
        let second = patch(Some(&first["status"]), &error, 1, at(7)).expect("a change");
        let conditions = &second["status"]["conditions"];
        assert_eq!(conditions[0], first["status"]["conditions"][0]);
        assert_eq!(conditions[1]["message"], "observe failed: down");
        assert_eq!(conditions[1]["lastTransitionTime"], "1970-01-01T00:00:07Z");
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let long = "ü".repeat(MESSAGE_LEN_MAX);
        assert_eq!(cut(&long).len(), MESSAGE_LEN_MAX);
        let odd = format!("x{long}");
        assert_eq!(cut(&odd).len(), MESSAGE_LEN_MAX - 1);
    }

    #[test]
    fn nulls_are_absent() {
        assert_eq!(diff(&json!({}), &json!({"a": null})), None);
        assert_eq!(diff(&json!({"a": null}), &json!({})), None);
        assert_eq!(diff(&json!([1]), &json!([1, 2])), Some(json!([1, 2])));
    }
}
