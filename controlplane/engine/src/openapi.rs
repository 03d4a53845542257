//! Schemas of kinds, from the cluster's OpenAPI documents.

use ecp_meta::gvk::GroupVersionKind;
use serde_json::{Map, Value};

use crate::api::{Api, ApiError};

/// Deepest nesting that references are followed to; recursive schemas end there.
const DEPTH_MAX: usize = 24;

/// The OpenAPI schema of a kind with its references resolved; `None` for unknown kinds.
pub(crate) async fn schema(api: &Api, gvk: &GroupVersionKind) -> Result<Option<Value>, ApiError> {
    let Some(index) = api.document("/openapi/v3").await? else {
        return Ok(None);
    };
    let path = if gvk.group.is_empty() {
        format!("api/{}", gvk.version)
    } else {
        format!("apis/{}/{}", gvk.group, gvk.version)
    };
    let url = index
        .get("paths")
        .and_then(|p| p.get(&path))
        .and_then(|p| p.get("serverRelativeURL"))
        .and_then(Value::as_str);
    let Some(url) = url else { return Ok(None) };
    let Some(document) = api.document(url).await? else {
        return Ok(None);
    };
    Ok(find(&document, gvk))
}

fn find(document: &Value, gvk: &GroupVersionKind) -> Option<Value> {
    let schemas = document.pointer("/components/schemas")?.as_object()?;
    let schema = schemas.values().find(|schema| is_kind(schema, gvk))?;
    Some(resolve(schema, schemas, 0))
}

fn is_kind(schema: &Value, gvk: &GroupVersionKind) -> bool {
    let kinds = schema.get("x-kubernetes-group-version-kind");
    kinds
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .any(|kind| {
            let text = |field: &str| kind.get(field).and_then(Value::as_str).unwrap_or_default();
            text("group") == gvk.group && text("version") == gvk.version && text("kind") == gvk.kind
        })
}

fn resolve(schema: &Value, schemas: &Map<String, Value>, depth: usize) -> Value {
    if depth > DEPTH_MAX {
        return Value::Object(Map::new());
    }
    match schema {
        Value::Object(map) => {
            if let Some(target) = referred(map, schemas) {
                return resolve(target, schemas, depth + 1);
            }
            // Kubernetes wraps references in `allOf` to add a description or default to them.
            if let Some([Value::Object(only)]) = map
                .get("allOf")
                .and_then(Value::as_array)
                .map(Vec::as_slice)
                && let Some(target) = referred(only, schemas)
                && let Value::Object(mut merged) = resolve(target, schemas, depth + 1)
            {
                for (key, value) in map.iter().filter(|(key, _)| *key != "allOf") {
                    merged.insert(key.clone(), resolve(value, schemas, depth + 1));
                }
                return Value::Object(merged);
            }
            map.iter()
                .map(|(key, value)| (key.clone(), resolve(value, schemas, depth + 1)))
                .collect()
        }
        Value::Array(items) => items
            .iter()
            .map(|item| resolve(item, schemas, depth + 1))
            .collect(),
        _ => schema.clone(),
    }
}

fn referred<'a>(map: &Map<String, Value>, schemas: &'a Map<String, Value>) -> Option<&'a Value> {
    let name = map.get("$ref")?.as_str()?;
    schemas.get(name.strip_prefix("#/components/schemas/")?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_resolved_and_recursion_ends() {
        let document = json!({"components": {"schemas": {
            "disk": {
                "x-kubernetes-group-version-kind":
                    [{"group": "ex.test", "version": "v1", "kind": "Disk"}],
                "properties": {
                    "meta": {"allOf": [{"$ref": "#/components/schemas/meta"}], "default": {}},
                    "self": {"$ref": "#/components/schemas/disk"},
                },
            },
            "meta": {"type": "object"},
        }}});
        let gvk = GroupVersionKind::new("ex.test", "v1", "Disk");
        let found = find(&document, &gvk).expect("schema");
        assert_eq!(
            found["properties"]["meta"],
            json!({"type": "object", "default": {}})
        );
        assert!(found["properties"]["self"]["properties"].is_object());
        let other = GroupVersionKind::new("ex.test", "v1", "Net");
        assert_eq!(find(&document, &other), None);
    }
}
