//! The fields Crossplane adds to the schemas of XRs and claims.

use serde_json::{Map, Value, json};

use crate::xrd::Scope;

/// Fields under `spec` of an XR.
pub(super) fn composite_spec(scope: Scope, update_policy: &str) -> Map<String, Value> {
    let mut machinery = machinery();
    set(
        &mut machinery,
        "compositionUpdatePolicy",
        with_default(update_policy_schema(), update_policy),
    );
    set(&mut machinery, "resourceRefs", resource_refs(scope));
    if !scope.is_legacy() {
        return entries(json!({
            "crossplane": {
                "type": "object",
                "description": "Configures how Crossplane will reconcile this composite resource",
                "properties": machinery,
            },
        }));
    }
    machinery.extend(entries(json!({
        "claimRef": strings(&["apiVersion", "kind", "namespace", "name"]),
        "writeConnectionSecretToRef": strings(&["name", "namespace"]),
    })));
    machinery
}

/// Fields under `spec` of a claim.
pub(super) fn claim_spec(delete_policy: &str) -> Map<String, Value> {
    let mut props = machinery();
    set(
        &mut props,
        "compositionUpdatePolicy",
        update_policy_schema(),
    );
    props.extend(entries(json!({
        "compositeDeletePolicy": {
            "type": "string",
            "enum": ["Background", "Foreground"],
            "default": delete_policy,
        },
        "resourceRef": strings(&["apiVersion", "kind", "name"]),
        "writeConnectionSecretToRef": strings(&["name"]),
    })));
    props
}

/// Fields under `status`.
pub(super) fn status(legacy: bool) -> Map<String, Value> {
    let mut props = entries(json!({
        "conditions": ecp_schema::conditions(),
    }));
    if legacy {
        props.extend(entries(json!({
            "connectionDetails": {
                "type": "object",
                "properties": {"lastPublishedTime": {"type": "string", "format": "date-time"}},
            },
            "claimConditionTypes": {
                "type": "array",
                "x-kubernetes-list-type": "set",
                "items": {"type": "string"},
            },
        })));
    }
    props
}

/// Printer columns of an XR, after the user's.
pub(super) fn composite_columns(scope: Scope) -> Vec<Value> {
    let at = if scope.is_legacy() {
        ".spec"
    } else {
        ".spec.crossplane"
    };
    let mut columns = condition_columns();
    columns.push(json!({
        "name": "COMPOSITION",
        "type": "string",
        "jsonPath": format!("{at}.compositionRef.name"),
    }));
    columns.push(json!({
        "name": "COMPOSITIONREVISION",
        "type": "string",
        "jsonPath": format!("{at}.compositionRevisionRef.name"),
        "priority": 1,
    }));
    columns.push(age_column());
    columns
}

/// Printer columns of a claim, after the user's.
pub(super) fn claim_columns() -> Vec<Value> {
    let mut columns = condition_columns();
    columns.push(json!({
        "name": "CONNECTION-SECRET",
        "type": "string",
        "jsonPath": ".spec.writeConnectionSecretToRef.name",
    }));
    columns.push(age_column());
    columns
}

fn condition_columns() -> Vec<Value> {
    ["Synced", "Ready"]
        .map(|kind| {
            json!({
                "name": kind.to_uppercase(),
                "type": "string",
                "jsonPath": format!(".status.conditions[?(@.type=='{kind}')].status"),
            })
        })
        .to_vec()
}

fn age_column() -> Value {
    json!({"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"})
}

/// What XRs and claims both have to choose a Composition.
fn machinery() -> Map<String, Value> {
    let selector = json!({
        "type": "object",
        "required": ["matchLabels"],
        "properties": {
            "matchLabels": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    });
    entries(json!({
        "compositionRef": strings(&["name"]),
        "compositionSelector": selector,
        "compositionRevisionRef": strings(&["name"]),
        "compositionRevisionSelector": selector,
    }))
}

fn update_policy_schema() -> Value {
    json!({"type": "string", "enum": ["Automatic", "Manual"]})
}

fn with_default(mut schema: Value, default: &str) -> Value {
    schema["default"] = default.into();
    schema
}

/// References to composed resources. A namespaced XR's are always in its own namespace.
fn resource_refs(scope: Scope) -> Value {
    let mut properties = entries(json!({
        "apiVersion": {"type": "string"},
        "name": {"type": "string"},
        "kind": {"type": "string"},
    }));
    if !scope.is_namespaced() {
        set(&mut properties, "namespace", json!({"type": "string"}));
    }
    json!({
        "type": "array",
        "x-kubernetes-list-type": "atomic",
        "items": {
            "type": "object",
            "required": ["apiVersion", "kind"],
            "properties": properties,
        },
    })
}

/// An object of required string fields.
fn strings(fields: &[&str]) -> Value {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|f| ((*f).to_owned(), json!({"type": "string"})))
        .collect();
    json!({"type": "object", "required": fields, "properties": properties})
}

fn set(map: &mut Map<String, Value>, key: &str, value: Value) {
    map.insert(key.to_owned(), value);
}

fn entries(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
