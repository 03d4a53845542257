//! A CRD as it is and as it should be.

use ecp_meta::{condition, object};
use ecp_xr::composition::is_controlled_by;
use serde_json::Value;

/// Whether a CRD is served.
pub(super) fn is_established(crd: &Value) -> bool {
    condition::is_true(crd, "Established")
}

/// Nobody else controls it.
pub(super) fn may_control(crd: &Value, xrd: &Value) -> bool {
    object::controller_ref(crd).is_none() || is_controlled_by(crd, xrd)
}

/// The live CRD with everything that is rendered; what the server added stays.
pub(super) fn merged(live: &Value, rendered: &Value) -> Value {
    let mut crd = live.clone();
    crd["spec"] = rendered.get("spec").cloned().unwrap_or_default();
    for field in ["labels", "annotations", "ownerReferences"] {
        match rendered.pointer(&format!("/metadata/{field}")) {
            Some(value) => crd["metadata"][field] = value.clone(),
            None => {
                object::metadata_mut(&mut crd).remove(field);
            }
        }
    }
    crd
}

/// Whether writing the rendered CRD would change nothing. Defaults that the server fills in do not
/// count as a difference.
pub(super) fn is_up_to_date(live: &Value, rendered: &Value) -> bool {
    let same = |field: &str| {
        let path = format!("/metadata/{field}");
        live.pointer(&path) == rendered.pointer(&path)
    };
    let specs = (live.get("spec"), rendered.get("spec"));
    let (Some(live_spec), Some(rendered_spec)) = specs else {
        return false;
    };
    same("labels")
        && same("annotations")
        && same("ownerReferences")
        && is_same_but_for_defaults(live_spec, rendered_spec)
}

/// Every rendered value is there, and what is there besides is a default of the server: in the
/// top three levels of a CRD's spec, never inside a schema.
fn is_same_but_for_defaults(live: &Value, rendered: &Value) -> bool {
    match (live, rendered) {
        (Value::Object(live), Value::Object(rendered)) => {
            rendered.iter().all(|(key, value)| {
                let Some(found) = live.get(key) else {
                    return false;
                };
                if key == "openAPIV3Schema" {
                    return found == value;
                }
                is_same_but_for_defaults(found, value)
            }) && live
                .keys()
                .filter(|key| !rendered.contains_key(*key))
                .all(|key| {
                    matches!(
                        key.as_str(),
                        "conversion" | "singular" | "listKind" | "preserveUnknownFields"
                    )
                })
        }
        (Value::Array(live), Value::Array(rendered)) => {
            live.len() == rendered.len()
                && live
                    .iter()
                    .zip(rendered)
                    .all(|(live, rendered)| is_same_but_for_defaults(live, rendered))
        }
        _ => live == rendered,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rendered() -> Value {
        json!({
            "metadata": {"name": "x", "labels": {"a": "b"}},
            "spec": {
                "group": "ex.test",
                "names": {"kind": "X", "plural": "xs"},
                "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object"}}}],
            },
        })
    }

    #[test]
    fn the_servers_defaults_are_no_difference() {
        let mut live = rendered();
        live["metadata"]["uid"] = json!("u");
        live["spec"]["conversion"] = json!({"strategy": "None"});
        live["spec"]["names"]["listKind"] = json!("XList");
        assert!(is_up_to_date(&live, &rendered()));
    }

    #[test]
    fn every_other_difference_counts() {
        for (path, value) in [
            ("/metadata/labels", json!({"a": "c"})),
            ("/spec/names/kind", json!("Y")),
            (
                "/spec/versions/0/schema/openAPIV3Schema",
                json!({"type": "object", "x": 1}),
            ),
            ("/spec/versions", json!([])),
            (
                "/spec/names",
                json!({"kind": "X", "plural": "xs", "shortNames": ["x"]}),
            ),
        ] {
            let mut live = rendered();
            *live.pointer_mut(path).expect("path") = value;
            assert!(!is_up_to_date(&live, &rendered()), "{path}");
            let merged = merged(&live, &rendered());
            assert!(is_up_to_date(&merged, &rendered()), "{path}");
        }
    }
}
