//! Status conditions, as Kubernetes and Crossplane write them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One entry of `status.conditions`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type, such as `Ready`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// PascalCase reason.
    pub reason: String,
    /// What a person should read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When status, reason, message or observed generation last changed (RFC 3339).
    pub last_transition_time: String,
    /// Generation the condition speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

impl Condition {
    /// A condition; `now` is RFC 3339.
    pub fn new(kind: &str, status: bool, reason: &str, message: &str, now: &str) -> Self {
        Self {
            kind: kind.into(),
            status: if status { "True" } else { "False" }.into(),
            reason: reason.into(),
            message: message.into(),
            last_transition_time: now.into(),
            observed_generation: None,
        }
    }

    /// The same condition, for a generation.
    pub fn at_generation(mut self, generation: i64) -> Self {
        self.observed_generation = Some(generation);
        self
    }

    /// Equal but for the time (as crossplane-runtime's `Condition.Equal`).
    pub fn same(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.status == other.status
            && self.reason == other.reason
            && self.message == other.message
            && self.observed_generation == other.observed_generation
    }
}

/// Puts `new` in place of the condition of its type, or at the end. An equal one keeps its time.
pub fn set(conditions: &mut Vec<Condition>, new: Condition) {
    match conditions.iter_mut().find(|c| c.kind == new.kind) {
        Some(old) if old.same(&new) => {}
        Some(old) => *old = new,
        None => conditions.push(new),
    }
}

/// The conditions of an object; entries that are no conditions are left out.
pub fn of(object: &Value) -> Vec<Condition> {
    object
        .get("status")
        .and_then(|s| s.get("conditions"))
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|c| serde_json::from_value(c.clone()).ok())
        .collect()
}

/// The `status` text (`True`, `False`, `Unknown`) of one condition of an object.
pub fn status<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    find(object, kind)?.get("status")?.as_str()
}

/// Whether an object has the condition with status `True`.
pub fn is_true(object: &Value, kind: &str) -> bool {
    status(object, kind) == Some("True")
}

/// One condition of an object, as JSON.
pub fn find<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object
        .get("status")?
        .get("conditions")?
        .as_array()?
        .iter()
        .find(|c| c.get("type").and_then(Value::as_str) == Some(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equal_condition_keeps_its_time() {
        let mut all = vec![Condition::new("Ready", true, "Available", "", "t0")];
        set(
            &mut all,
            Condition::new("Ready", true, "Available", "", "t1"),
        );
        assert_eq!(all[0].last_transition_time, "t0");
        set(
            &mut all,
            Condition::new("Ready", false, "Creating", "", "t2"),
        );
        assert_eq!(all[0].last_transition_time, "t2");
        set(
            &mut all,
            Condition::new("Synced", true, "ReconcileSuccess", "", "t3"),
        );
        assert_eq!(all.len(), 2);
    }
}
