//! The `openAPIV3Schema` of a kind.

use serde_json::{Value, json};

use crate::envelope::Envelope;
use crate::kinds::{KindInfo, Scope};
use crate::status::Status;

/// Fields that can be set once and not changed after. The rules stand on `spec` itself, since
/// rules on an optional property are not run when it is removed.
const SET_ONCE: [&str; 2] = ["region", "name"];

/// The `openAPIV3Schema` of a kind, as its XRDs have it: `spec` and `status`, and nothing that
/// Crossplane drops when it makes CRDs (only `type`, `properties`, `required`, `description` and
/// `x-kubernetes-*` there).
pub fn version_schema(info: &KindInfo) -> Value {
    let mut spec = (info.spec)();
    let description = spec
        .get("description")
        .cloned()
        .unwrap_or_else(|| info.noun.into());
    merge_properties(&mut spec, &envelope(info));
    let mut rules = match spec.get_mut("x-kubernetes-validations").map(Value::take) {
        Some(Value::Array(own)) => own,
        _ => Vec::new(),
    };
    let set_once = SET_ONCE
        .iter()
        .filter(|field| spec["properties"].get(**field).is_some())
        .map(|field| {
            json!({
                "rule": format!(
                    "!has(oldSelf.{field}) || (has(self.{field}) && self.{field} == oldSelf.{field})"
                ),
                "message": format!("{field} cannot be changed"),
            })
        });
    rules.extend(set_once);
    spec["x-kubernetes-validations"] = rules.into();

    let mut status = ecp_schema::from_type::<Status>();
    status["description"] = "What the control plane knows about the resource.".into();
    if let Some(own) = info.status {
        merge_properties(&mut status, &own());
    }
    json!({
        "type": "object",
        "description": description,
        "properties": {"spec": spec, "status": status},
    })
}

/// The envelope as a kind has it.
fn envelope(info: &KindInfo) -> Value {
    let mut envelope = ecp_schema::from_type::<Envelope>();
    let mut leave_out = |field: &str| {
        if let Some(properties) = envelope["properties"].as_object_mut() {
            properties.remove(field);
        }
        if let Some(required) = envelope["required"].as_array_mut() {
            required.retain(|name| name != field);
        }
    };
    if !info.regional() {
        leave_out("region");
    }
    if info.scope != Scope::Network {
        leave_out("network");
    }
    if info.catalogue {
        leave_out("repeatedAt");
    }
    envelope
}

/// Adds the properties of `other`, and which of them are required, to `schema`.
fn merge_properties(schema: &mut Value, other: &Value) {
    let members = |field: &str| other.get(field).cloned().unwrap_or(Value::Null);
    if let Value::Object(new) = members("properties") {
        match schema.get_mut("properties").and_then(Value::as_object_mut) {
            Some(properties) => properties.extend(new),
            None => schema["properties"] = Value::Object(new),
        }
    }
    if let Value::Array(new) = members("required")
        && !new.is_empty()
    {
        match schema.get_mut("required").and_then(Value::as_array_mut) {
            Some(required) => required.extend(new),
            None => schema["required"] = Value::Array(new),
        }
    }
}
