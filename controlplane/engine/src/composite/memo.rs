//! What the engine applied last, to know what it need not apply again.

use std::collections::BTreeMap;

use ecp_xr::pipeline::Seeds;
use serde_json::Value;

/// What the engine remembers of one XR. Losing it costs applies that change nothing.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    /// The XR this is about: another of the same name starts afresh.
    pub(crate) uid: String,
    /// What was applied to composed resources, by name in the composition.
    pub(crate) composed: BTreeMap<String, Mark>,
    /// What was applied to the XR's status.
    pub(crate) status: Option<Mark>,
    /// What functions required last.
    pub(crate) seeds: Seeds,
    /// The last reconcile request that was handled.
    pub(crate) handled: Option<String>,
}

/// An apply and what the API made of it.
#[derive(Debug)]
pub(crate) struct Mark {
    wanted: Value,
    kept: Value,
}

impl Mark {
    /// An apply and its answer.
    pub(crate) fn new(wanted: &Value, live: &Value) -> Self {
        Self {
            wanted: wanted.clone(),
            kept: kept(live, wanted),
        }
    }

    /// Whether the same apply would change nothing: what it made is still there.
    pub(crate) fn still_holds(&self, wanted: &Value, live: &Value) -> bool {
        self.wanted == *wanted && holds(live, &self.kept)
    }
}

/// What the API kept of an apply: without what it pruned, and as it writes values itself.
fn kept(live: &Value, wanted: &Value) -> Value {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted
            .iter()
            .filter_map(|(key, want)| {
                let live = live.get(key)?;
                let value = if is_shared_list(key) {
                    want.clone()
                } else {
                    kept(live, want)
                };
                Some((key.clone(), value))
            })
            .collect(),
        _ => live.clone(),
    }
}

/// Lists that others may add to.
fn is_shared_list(key: &str) -> bool {
    matches!(key, "ownerReferences" | "finalizers")
}

/// Whether every value of `wanted` is in `live`. Lists must be equal, but for owner references and
/// finalizers, which others may add to.
fn holds(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted.iter().all(|(key, want)| match live
            .get(key)
        {
            Some(Value::Array(items)) if is_shared_list(key) => want
                .as_array()
                .is_some_and(|want| want.iter().all(|w| items.iter().any(|item| holds(item, w)))),
            Some(live) => holds(live, want),
            None => want.is_null(),
        }),
        _ => live == wanted,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn additions_of_others_do_not_matter_but_changes_do() {
        let wanted = json!({"metadata": {"ownerReferences": [{"uid": "a"}]},
            "spec": {"size": 1, "list": [{"a": 1}], "gone": null}});
        let live = json!({"metadata": {"ownerReferences": [{"uid": "b"}, {"uid": "a", "x": 1}],
            "resourceVersion": "3"}, "spec": {"size": 1, "list": [{"a": 1}], "late": 2},
            "status": {}});
        assert!(holds(&live, &wanted));
        for (path, value) in [
            ("/spec/size", json!(2)),
            ("/spec/list", json!([{"a": 1}, {"a": 2}])),
            ("/metadata/ownerReferences", json!([])),
            ("/spec", json!({})),
        ] {
            let mut drifted = live.clone();
            *drifted.pointer_mut(path).expect("path") = value;
            assert!(!holds(&drifted, &wanted), "{path}");
        }
    }

    #[test]
    fn a_changed_wish_is_applied_even_if_it_holds() {
        let before = json!({"spec": {"a": 1, "b": 2}});
        let mark = Mark::new(&before, &before);
        assert!(mark.still_holds(&before, &before));
        assert!(!mark.still_holds(&json!({"spec": {"a": 1}}), &before));
    }

    #[test]
    fn what_the_api_prunes_or_rewrites_is_not_applied_again() {
        let wanted = json!({"spec": {"a": 1, "pruned": 2, "memory": "1024Mi"}});
        let live = json!({"spec": {"a": 1, "memory": "1Gi", "late": 3}});
        let mark = Mark::new(&wanted, &live);
        assert!(mark.still_holds(&wanted, &live));
        let drifted = json!({"spec": {"a": 1, "memory": "2Gi"}});
        assert!(!mark.still_holds(&wanted, &drifted));
    }
}
