//! Events in their two forms: `v1` (stored) and `events.k8s.io/v1` (a view).
//!
//! Field names as in upstream's `pkg/apis/core/v1/conversion` of Event.

use serde_json::{Map, Value};

/// Field names: stored, view. All other fields have one name.
const NAMES: &[(&str, &str)] = &[
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("involvedObject", "regarding"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
];

/// The stored form of an `events.k8s.io/v1` Event.
pub(crate) fn to_core(event: &Value) -> Value {
    rename(event, "v1", |name| {
        NAMES.iter().find(|(_, view)| *view == name).map(|n| n.0)
    })
}

/// The `events.k8s.io/v1` form of a stored Event.
pub(crate) fn from_core(event: &Value) -> Value {
    rename(event, "events.k8s.io/v1", |name| {
        NAMES.iter().find(|(core, _)| *core == name).map(|n| n.1)
    })
}

fn rename(event: &Value, api_version: &str, to: impl Fn(&str) -> Option<&'static str>) -> Value {
    let mut out = Map::new();
    for (key, value) in event.as_object().into_iter().flatten() {
        out.insert(to(key).unwrap_or(key).to_owned(), value.clone());
    }
    out.insert("apiVersion".into(), api_version.into());
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_forms_hold_the_same_event() {
        let view = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "note": "n",
            "regarding": {"name": "x"}, "reportingController": "c", "reason": "R"
        });
        let core = to_core(&view);
        assert_eq!(core["involvedObject"]["name"], "x");
        assert_eq!(core["message"], "n");
        assert_eq!(core["apiVersion"], "v1");
        assert_eq!(from_core(&core), view);
    }
}
