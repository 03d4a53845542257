//! Schemas that every kind has under `status`.

use serde_json::{Value, json};

/// The schema of `status.conditions`: a map by type of Kubernetes' `metav1.Condition`, as in the
/// CRDs that Crossplane generates.
pub fn conditions() -> Value {
    json!({
        "type": "array",
        "description": "Conditions of the resource.",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {"type": "string", "format": "date-time"},
                "message": {"type": "string"},
                "observedGeneration": {"type": "integer", "format": "int64"},
                "reason": {"type": "string"},
                "status": {"type": "string"},
                "type": {"type": "string"},
            },
        },
    })
}
