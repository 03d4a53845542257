//! Goldens of schemas made from types.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::from_type;
use crate::Structural;

/// Asserts the schema of a property, and that the whole is structural.
#[track_caller]
fn check<T: JsonSchema>(want: &Value) {
    let schema = from_type::<T>();
    assert_eq!(schema, *want, "got {schema:#}");
    let whole = json!({"type": "object", "properties": {"spec": schema}});
    if let Err(errors) = Structural::compile(&whole) {
        panic!("not structural: {errors:?}");
    }
}

/// A disk, said
/// on two lines.
///
/// And more.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Disk {
    /// Size in GB.
    #[schemars(range(min = 1, max = 100))]
    size_gb: i64,
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-z]+$"))]
    name: String,
    small: i32,
    tiny: u8,
    unsigned: u32,
    large: u64,
    ratio: Option<f64>,
    flag: Option<bool>,
    #[schemars(extend("format" = "date-time"))]
    at: Option<String>,
}

#[test]
fn structs_keep_bounds_formats_and_docs() {
    check::<Disk>(&json!({
        "type": "object",
        "description": "A disk, said on two lines.\n\nAnd more.",
        "required": ["sizeGb", "name", "small", "tiny", "unsigned", "large"],
        "properties": {
            "sizeGb": {"type": "integer", "format": "int64", "minimum": 1, "maximum": 100, "description": "Size in GB."},
            "name": {"type": "string", "minLength": 1, "maxLength": 63, "pattern": "^[a-z]+$"},
            "small": {"type": "integer", "format": "int32"},
            "tiny": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 255},
            "unsigned": {"type": "integer", "format": "int64", "minimum": 0},
            "large": {"type": "integer", "format": "int64", "minimum": 0},
            "ratio": {"type": "number", "format": "double"},
            "flag": {"type": "boolean"},
            "at": {"type": "string", "format": "date-time"},
        },
    }));
}

/// How.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    /// Fast.
    Fast,
    Slow,
    /// Off.
    Off,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Holder {
    /// The mode of the holder.
    mode: Mode,
    maybe: Option<Mode>,
    disk: Option<Inner>,
    list: Vec<Inner>,
    set: BTreeSet<String>,
    map: BTreeMap<String, Inner>,
    by_number: BTreeMap<u32, String>,
    any: Value,
    any_maybe: Option<Value>,
    anything: BTreeMap<String, Value>,
    #[serde(default)]
    defaulted: bool,
    #[serde(default)]
    nothing: Option<String>,
    pair: (i64, i64),
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Inner {
    a: String,
}

#[test]
fn references_are_inlined_and_options_are_not_required() {
    let inner =
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}});
    check::<Holder>(&json!({
        "type": "object",
        "required": ["mode", "list", "set", "map", "by_number", "any", "anything", "pair"],
        "properties": {
            "mode": {"type": "string", "enum": ["slow", "fast", "off"], "description": "The mode of the holder."},
            "maybe": {"type": "string", "enum": ["slow", "fast", "off"], "description": "How."},
            "disk": inner,
            "list": {"type": "array", "items": inner},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "map": {"type": "object", "additionalProperties": inner},
            "by_number": {"type": "object", "additionalProperties": {"type": "string"}},
            "any": {"x-kubernetes-preserve-unknown-fields": true},
            "any_maybe": {"x-kubernetes-preserve-unknown-fields": true},
            "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "defaulted": {"type": "boolean", "default": false},
            "nothing": {"type": "string"},
            "pair": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "integer", "format": "int64"}},
        },
    }));
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Source {
    Image { name: String },
    Snapshot(Inner),
}

#[test]
fn enums_with_data_are_objects_of_which_one_field_is_set() {
    check::<Source>(&json!({
        "type": "object",
        "properties": {
            "image": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
            "snapshot": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}},
        },
        "oneOf": [{"required": ["image"]}, {"required": ["snapshot"]}],
    }));
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase")]
enum Tagged {
    A { x: i64 },
    B { y: Option<String> },
}

#[test]
fn tagged_enums_tell_which_fields_go_with_a_tag() {
    check::<Tagged>(&json!({
        "type": "object",
        "required": ["kind"],
        "properties": {
            "kind": {"type": "string", "enum": ["a", "b"]},
            "x": {"type": "integer", "format": "int64"},
            "y": {"type": "string"},
        },
        "oneOf": [
            {"required": ["x"], "properties": {"kind": {"enum": ["a"]}}},
            {"properties": {"kind": {"enum": ["b"]}}},
        ],
    }));
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Flat {
    own: String,
    #[serde(flatten)]
    inner: Inner,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [{"rule": "self.keys.size() > 0"}]))]
struct Extended {
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["a"]))]
    keys: Vec<Inner>,
    #[schemars(extend("nullable" = true))]
    gone: Option<String>,
    #[schemars(schema_with = "int_or_string")]
    port: Value,
}

fn int_or_string(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"x-kubernetes-int-or-string": true})
}

#[test]
fn extensions_are_kept() {
    check::<Extended>(&json!({
        "type": "object",
        "required": ["keys", "port"],
        "x-kubernetes-validations": [{"rule": "self.keys.size() > 0"}],
        "properties": {
            "keys": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["a"],
                "items": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}},
            },
            "gone": {"type": "string", "nullable": true},
            "port": {"x-kubernetes-int-or-string": true},
        },
    }));
}

#[test]
fn flattened_fields_are_declared_and_flattened_maps_preserve() {
    check::<Flat>(&json!({
        "type": "object",
        "required": ["own", "a"],
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"own": {"type": "string"}, "a": {"type": "string"}},
    }));
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Strict {
    #[serde(default)]
    tags: Vec<String>,
}

#[test]
fn closed_structs_rely_on_pruning() {
    check::<Strict>(&json!({
        "type": "object",
        "properties": {"tags": {"type": "array", "items": {"type": "string"}, "default": []}},
    }));
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Recursive {
    next: Option<Box<Recursive>>,
}

#[test]
#[should_panic(expected = "recursive")]
fn recursive_types_have_no_schema() {
    from_type::<Recursive>();
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Mixed {
    Text(String),
    Object(Inner),
}

#[test]
#[should_panic(expected = "union of objects and scalars")]
fn unions_of_objects_and_scalars_have_no_schema() {
    from_type::<Mixed>();
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Port {
    Number(u16),
    Name(String),
}

#[test]
fn untagged_numbers_and_texts_are_int_or_string() {
    check::<Port>(&json!({"x-kubernetes-int-or-string": true}));
}
