//! Structural schemas from Rust types.

mod union;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::node::NodeType;

/// The structural `openAPIV3Schema` of a type: references inlined, no `$defs`, no `anyOf` with
/// null (an `Option` is a property that is not required), enums flattened, integer formats kept
/// where Kubernetes knows them (`uint32` and `uint64` become `int64` with a minimum), docs as
/// descriptions with a line a paragraph.
///
/// Enums with data become objects with the fields of all variants and a `oneOf` that tells which
/// go together. Free JSON becomes `x-kubernetes-preserve-unknown-fields`, sets become lists of type
/// set. Extensions set with `#[schemars(extend("x-kubernetes-..." = ...))]` are kept.
///
/// # Panics
/// The type has no structural schema (it is recursive, or a union of objects and scalars). That is
/// a fault of the type, found by any test that calls this.
pub fn from_type<T: schemars::JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    rewrite(&mut schema, T::schema_name().as_ref());
    schema
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
const LIST_TYPE: &str = "x-kubernetes-list-type";

/// Keywords of JSON Schema that say nothing in a CRD.
const DROPPED: [&str; 12] = [
    "$schema",
    "$id",
    "$defs",
    "$comment",
    "title",
    "examples",
    "readOnly",
    "writeOnly",
    "deprecated",
    "contentEncoding",
    "contentMediaType",
    "propertyNames",
];

/// Rewrites a schema in place; `at` names it in panics.
fn rewrite(schema: &mut Value, at: &str) {
    match schema {
        Value::Object(map) => rewrite_object(map, at),
        Value::Bool(true) => *schema = json!({PRESERVE: true}),
        other => panic!("{at}: {other} is no structural schema"),
    }
}

fn rewrite_object(map: &mut Map<String, Value>, at: &str) {
    map.retain(|key, value| {
        let is_null_default = key == "default" && value.is_null();
        !DROPPED.contains(&key.as_str()) && !is_null_default
    });
    unwrap_description(map);
    drop_null(map);
    union::merge_all_of(map, at);
    assert!(
        !map.contains_key("$ref"),
        "{at} is recursive, so it has no structural schema"
    );
    union::flatten(map, at);
    constant(map);
    numbers(map);
    maps(map);
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        for (name, property) in properties {
            rewrite(property, &format!("{at}.{name}"));
        }
    }
    if let Some(additional) = map.get_mut("additionalProperties") {
        rewrite(additional, &format!("{at}.*"));
    }
    lists(map, at);
    infer_type(map);
}

/// Joins the lines of each paragraph: where they break in the code says nothing to a reader.
fn unwrap_description(map: &mut Map<String, Value>) {
    if let Some(Value::String(text)) = map.get_mut("description") {
        let paragraphs: Vec<String> = text.split("\n\n").map(|p| p.replace('\n', " ")).collect();
        *text = paragraphs.join("\n\n");
    }
}

/// Removes null from `type`, `enum`, `anyOf` and `oneOf`; a union with one branch left becomes the
/// branch.
fn drop_null(map: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|name| name != "null");
        match types.as_slice() {
            [one] => {
                let one = one.clone();
                map.insert("type".into(), one);
            }
            names
                if names.len() == 2
                    && names.contains(&json!("integer"))
                    && names.contains(&json!("string")) =>
            {
                map.remove("type");
                map.insert(INT_OR_STRING.into(), json!(true));
            }
            _ => {
                // Any JSON, or several scalar types, which a structural schema cannot tell apart.
                map.remove("type");
            }
        }
    }
    if let Some(Value::Array(values)) = map.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    for union in ["anyOf", "oneOf"] {
        let Some(Value::Array(branches)) = map.get_mut(union) else {
            continue;
        };
        branches
            .retain(|branch| branch["type"] != "null" && branch.get("const") != Some(&Value::Null));
        if branches.len() == 1 {
            let branch = branches.remove(0);
            map.remove(union);
            inherit(map, branch);
            // What the branch brought may have nulls of its own.
            drop_null(map);
        }
    }
}

/// Adds what the outer schema does not say itself.
fn inherit(map: &mut Map<String, Value>, inner: Value) {
    match inner {
        Value::Object(inner) => {
            for (key, value) in inner {
                if !DROPPED.contains(&key.as_str()) {
                    map.entry(key).or_insert(value);
                }
            }
        }
        Value::Bool(true) => {
            map.insert(PRESERVE.into(), json!(true));
        }
        _ => {}
    }
}

fn constant(map: &mut Map<String, Value>) {
    if let Some(value) = map.remove("const") {
        map.insert("enum".into(), json!([value]));
    }
}

fn numbers(map: &mut Map<String, Value>) {
    for (name, bound) in [
        ("exclusiveMinimum", "minimum"),
        ("exclusiveMaximum", "maximum"),
    ] {
        if let Some(value) = map.get(name).filter(|value| value.is_number()).cloned() {
            map.insert(bound.into(), value);
            map.insert(name.into(), json!(true));
        }
    }
    let Some(format) = map.get("format").and_then(Value::as_str) else {
        return;
    };
    let is_integer = map.get("type").is_some_and(|kind| kind == "integer");
    if !is_integer {
        return;
    }
    if format.starts_with("uint") {
        // A type that cannot be negative has a minimum, whatever the schema made of it.
        map.entry("minimum").or_insert(json!(0));
    }
    let format = match map
        .get("format")
        .and_then(Value::as_str)
        .unwrap_or_default()
    {
        "int8" | "int16" | "int32" | "uint8" | "uint16" => "int32",
        _ => "int64",
    };
    map.insert("format".into(), json!(format));
}

/// Objects whose fields are data.
fn maps(map: &mut Map<String, Value>) {
    if let Some(Value::Object(patterns)) = map.remove("patternProperties")
        && let Some(schema) = patterns.into_values().next()
    {
        map.insert("additionalProperties".into(), schema);
    }
    let has_properties = map
        .get("properties")
        .and_then(Value::as_object)
        .is_some_and(|p| !p.is_empty());
    let free = match map.get("additionalProperties") {
        None => return,
        // Unknown fields are pruned anyway.
        Some(Value::Bool(false)) => false,
        Some(Value::Bool(true)) => true,
        // A structural schema has either declared fields or fields of one schema.
        Some(Value::Object(schema)) if !schema.is_empty() && !has_properties => return,
        Some(_) => true,
    };
    map.remove("additionalProperties");
    if free {
        map.insert(PRESERVE.into(), json!(true));
    }
}

fn lists(map: &mut Map<String, Value>, at: &str) {
    let at = format!("{at}[]");
    if let Some(Value::Array(prefix)) = map.remove("prefixItems") {
        let first = prefix.first().cloned().unwrap_or(Value::Bool(true));
        assert!(
            prefix.iter().all(|item| *item == first),
            "{at} is a tuple of several types, so it has no structural schema"
        );
        map.insert("items".into(), first);
    }
    let unique = map.remove("uniqueItems") == Some(Value::Bool(true));
    if map.get("type").is_some_and(|kind| kind == "array") {
        let items = map.entry("items").or_insert(Value::Bool(true));
        rewrite(items, &at);
        let scalar = matches!(
            items["type"].as_str(),
            Some("string" | "integer" | "number" | "boolean")
        );
        if unique && scalar {
            map.entry(LIST_TYPE).or_insert(json!("set"));
        }
    }
}

/// Gives a type to schemas that imply one, and lets those that imply none take any JSON.
fn infer_type(map: &mut Map<String, Value>) {
    if map.contains_key("type")
        || map.contains_key(INT_OR_STRING)
        || map.contains_key(PRESERVE) && !map.contains_key("properties")
    {
        return;
    }
    let kind = if map.contains_key("properties") || map.contains_key("additionalProperties") {
        Some(NodeType::Object)
    } else if map.contains_key("items") {
        Some(NodeType::Array)
    } else {
        match map.get("enum").and_then(|values| values.get(0)) {
            Some(Value::String(_)) => Some(NodeType::String),
            Some(Value::Bool(_)) => Some(NodeType::Boolean),
            Some(Value::Number(number)) if number.is_f64() => Some(NodeType::Number),
            Some(Value::Number(_)) => Some(NodeType::Integer),
            _ => None,
        }
    };
    match kind {
        Some(kind) => map.insert("type".into(), json!(kind.name())),
        None => map.insert(PRESERVE.into(), json!(true)),
    };
}

#[cfg(test)]
mod tests;
