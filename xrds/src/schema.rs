//! The `openAPIV3Schema` of a kind.

use serde_json::{Value, json};

use crate::envelope::Envelope;
use crate::kinds::KindInfo;
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
    merge_properties(&mut spec, &ecp_schema::from_type::<Envelope>());
    let rules: Vec<Value> = SET_ONCE
        .iter()
        .map(|field| {
            json!({
                "rule": format!(
                    "!has(oldSelf.{field}) || (has(self.{field}) && self.{field} == oldSelf.{field})"
                ),
                "message": format!("{field} cannot be changed"),
            })
        })
        .collect();
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

/// Adds the properties of `other`, and which of them are required, to `schema`.
fn merge_properties(schema: &mut Value, other: &Value) {
    let members = |field: &str| other.get(field).cloned().unwrap_or(Value::Null);
    if let Value::Object(new) = members("properties") {
        match schema.get_mut("properties").and_then(Value::as_object_mut) {
            Some(properties) => properties.extend(new),
            None => schema["properties"] = Value::Object(new),
        }
    }
    if let Value::Array(new) = members("required") {
        match schema.get_mut("required").and_then(Value::as_array_mut) {
            Some(required) => required.extend(new),
            None => schema["required"] = Value::Array(new),
        }
    }
}
