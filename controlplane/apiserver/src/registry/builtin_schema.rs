//! Schemas of built-in kinds, from the table that OpenAPI documents are made of.

use ecp_meta::gvk::GroupVersionKind;
use ecp_schema::Structural;
use serde_json::{Map, Value};

use crate::openapi::kinds::{TYPES, Type};

/// Types that have one owner as a whole: upstream's references, which are `+structType=atomic`.
const ATOMIC: &[&str] = &[
    ".LocalObjectReference",
    ".ObjectReference",
    ".RoleRef",
    ".Subject",
];

/// The schema of a built-in kind, for finding unknown fields, checking types and merging.
pub(super) fn structural(gvk: &GroupVersionKind) -> Option<Structural> {
    let ty = TYPES.values().find(|ty| ty.gvk.as_ref() == Some(gvk))?;
    let mut schema = inline(&ty.schema());
    // Object metadata has its own rules.
    if let Some(metadata) = schema.pointer_mut("/properties/metadata") {
        *metadata = serde_json::json!({"type": "object"});
    }
    match Structural::compile(&schema) {
        Ok(structural) => Some(structural),
        Err(errors) => {
            tracing::error!(%gvk, ?errors, "schema of a built-in kind is not structural");
            None
        }
    }
}

/// The schema with its references replaced by what they refer to. The kinds that use this are not
/// recursive.
fn inline(schema: &Value) -> Value {
    let Some(map) = schema.as_object() else {
        return schema.clone();
    };
    let named = map
        .get("allOf")
        .and_then(|all| all.get(0)?.get("$ref")?.as_str()?.rsplit('/').next())
        .or_else(|| map.get("$ref")?.as_str()?.rsplit('/').next());
    if let Some((name, ty)) = named.and_then(|name| TYPES.get_key_value(name)) {
        let mut schema = inline(&Type::schema(ty));
        if ATOMIC.iter().any(|atomic| name.ends_with(atomic)) {
            schema["x-kubernetes-map-type"] = "atomic".into();
        }
        return schema;
    }
    let mut out = Map::new();
    for (key, value) in map {
        let value = match key.as_str() {
            "description" | "x-kubernetes-group-version-kind" => continue,
            "x-kubernetes-patch-strategy" | "x-kubernetes-patch-merge-key" => continue,
            // Checked by the rules of the kind, which do not repeat what may be secret.
            "format" if value == "byte" => continue,
            "properties" => value
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, schema)| (name.clone(), inline(schema)))
                .collect(),
            "items" | "additionalProperties" => inline(value),
            _ => value.clone(),
        };
        out.insert(key.clone(), value);
    }
    require_keys(&mut out);
    Value::Object(out)
}

/// Elements of a list are told apart by their keys, so that each must have them: a reference to a
/// Secret without its name refers to nothing.
fn require_keys(list: &mut Map<String, Value>) {
    let Some(keys) = list.get("x-kubernetes-list-map-keys").cloned() else {
        return;
    };
    if let Some(items) = list.get_mut("items").and_then(Value::as_object_mut) {
        items.insert("required".into(), keys);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_of_every_built_in_kind_is_structural() {
        // The schema of a definition holds schemas, without end.
        let recursive = "CustomResourceDefinition";
        let mut checked = 0;
        for gvk in TYPES.values().filter_map(|ty| ty.gvk.as_ref()) {
            if gvk.kind.starts_with(recursive) {
                continue;
            }
            assert!(structural(gvk).is_some(), "{gvk}");
            checked += 1;
        }
        assert!(checked > 10, "{checked}");
    }
}
