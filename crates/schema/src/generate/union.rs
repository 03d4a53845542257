//! Unions of schemas, made structural.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{drop_null, inherit};

/// Merges the branches of `allOf` into the schema (fields that were flattened in).
pub(super) fn merge_all_of(map: &mut Map<String, Value>, at: &str) {
    let Some(Value::Array(branches)) = map.remove("allOf") else {
        return;
    };
    for branch in branches {
        let Value::Object(mut branch) = branch else {
            continue;
        };
        if let Some(Value::Object(properties)) = branch.remove("properties") {
            for (name, schema) in properties {
                declare(map, &name, schema, at);
            }
        }
        if let Some(Value::Array(names)) = branch.remove("required") {
            require(map, names);
        }
        inherit(map, Value::Object(branch));
    }
}

/// Makes `anyOf` and `oneOf` structural: scalars become one enum, objects one object.
pub(super) fn flatten(map: &mut Map<String, Value>, at: &str) {
    for union in ["oneOf", "anyOf"] {
        let Some(Value::Array(branches)) = map.get(union) else {
            continue;
        };
        // Bodies that declare no types are value validations already.
        if branches.iter().all(is_value_validation) {
            continue;
        }
        let Some(Value::Array(mut branches)) = map.remove(union) else {
            continue;
        };
        for branch in &mut branches {
            if let Value::Object(branch) = branch {
                drop_null(branch);
            }
        }
        if branches.iter().all(|branch| values(branch).is_some()) {
            flatten_scalars(map, &branches, at);
        } else if branches.iter().all(|branch| branch["type"] == "object") {
            flatten_objects(map, union, branches, at);
        } else if is_int_or_string(&branches) {
            map.insert(super::INT_OR_STRING.into(), json!(true));
        } else {
            panic!("{at} is a union of objects and scalars, so it has no structural schema");
        }
    }
}

fn is_value_validation(branch: &Value) -> bool {
    branch.as_object().is_some_and(|branch| {
        branch
            .keys()
            .all(|key| matches!(key.as_str(), "required" | "properties" | "not"))
    }) && branch["properties"].as_object().is_none_or(|properties| {
        properties
            .values()
            .all(|property| property.get("type").is_none())
    })
}

fn is_int_or_string(branches: &[Value]) -> bool {
    let kinds: BTreeSet<_> = branches
        .iter()
        .filter_map(|branch| branch["type"].as_str())
        .collect();
    branches.len() == 2 && kinds == BTreeSet::from(["integer", "string"])
}

/// The values of a branch that is an enumeration.
fn values(branch: &Value) -> Option<Vec<Value>> {
    match branch.get("const") {
        Some(value) => Some(vec![value.clone()]),
        None => branch.get("enum").and_then(Value::as_array).cloned(),
    }
}

fn flatten_scalars(map: &mut Map<String, Value>, branches: &[Value], at: &str) {
    let all: Vec<Value> = branches.iter().filter_map(values).flatten().collect();
    let kind = |value: &Value| match value {
        Value::String(_) => "string",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        other => panic!("{at}: {other} is no scalar"),
    };
    let kinds: BTreeSet<&str> = all.iter().map(kind).collect();
    let Some(kind) = kinds.first().filter(|_| kinds.len() == 1) else {
        panic!("{at} is an enum of several types, so it has no structural schema");
    };
    map.insert("type".into(), json!(kind));
    map.insert("enum".into(), Value::Array(all));
}

/// One object with the fields of all branches; the union tells which are required together, and
/// which tag goes with them.
fn flatten_objects(map: &mut Map<String, Value>, union: &str, branches: Vec<Value>, at: &str) {
    let required = |branch: &Value| -> BTreeSet<String> {
        let names = branch["required"].as_array();
        names
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    let common = branches
        .iter()
        .map(required)
        .reduce(|a, b| &a & &b)
        .unwrap_or_default();
    let mut bodies = Vec::new();
    for branch in &branches {
        let mut body = Map::new();
        let own: Vec<Value> = required(branch)
            .difference(&common)
            .map(|name| Value::from(name.as_str()))
            .collect();
        if !own.is_empty() {
            body.insert("required".into(), Value::Array(own));
        }
        let tags: Map<String, Value> = branch["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(name, schema)| Some((name.clone(), json!({"enum": values(schema)?}))))
            .filter(|(name, _)| common.contains(name))
            .collect();
        if !tags.is_empty() {
            body.insert("properties".into(), Value::Object(tags));
        }
        bodies.push(Value::Object(body));
    }
    map.insert("type".into(), json!("object"));
    require(map, common.into_iter().map(Value::from).collect());
    for branch in branches {
        let Some(Value::Object(properties)) = branch.get("properties").cloned() else {
            continue;
        };
        for (name, schema) in properties {
            declare(map, &name, schema, at);
        }
    }
    if bodies
        .iter()
        .any(|body| body.as_object().is_some_and(|body| !body.is_empty()))
    {
        map.insert(union.into(), Value::Array(bodies));
    }
}

/// Declares a field; one that several branches have must be the same, or an enumeration.
fn declare(map: &mut Map<String, Value>, name: &str, schema: Value, at: &str) {
    let properties = map.entry("properties").or_insert_with(|| json!({}));
    let known = &mut properties[name];
    if known.is_null() || *known == schema {
        *known = schema;
        return;
    }
    let (Some(mut all), Some(new)) = (values(known), values(&schema)) else {
        panic!("{at}.{name} has several schemas, so it has no structural one");
    };
    all.extend(
        new.into_iter()
            .filter(|value| !all.contains(value))
            .collect::<Vec<_>>(),
    );
    if let Value::Object(known) = known {
        known.remove("const");
        known.insert("enum".into(), Value::Array(all));
    }
}

fn require(map: &mut Map<String, Value>, names: Vec<Value>) {
    if names.is_empty() {
        return;
    }
    if let Value::Array(required) = map.entry("required").or_insert_with(|| json!([])) {
        for name in names {
            if !required.contains(&name) {
                required.push(name);
            }
        }
    }
}
