//! Pruning and defaulting.

use ecp_schema::Structural;
use serde_json::{Value, json};

use crate::{compile, object};

#[test]
fn undeclared_fields_are_pruned_and_named() {
    let schema = compile(&json!({"type": "object", "properties": {
        "a": {"type": "string"},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}}},
        "any": {"type": "object", "additionalProperties": true},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "known": {"type": "object", "properties": {"a": {"type": "string"}}},
        }},
        "template": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
    }}));
    let mut value = object(&json!({
        "a": "1", "b": 2,
        "list": [{"a": "1"}, {"a": "1", "bar": 2}],
        "map": {"k": {"a": "1", "b": 2}},
        "any": {"text": "kept", "object": {"lost": 1}},
        "free": {"x": {"y": 1}, "known": {"a": "1", "b": 2}},
        "template": {"apiVersion": "v1", "kind": "X", "metadata": {"labels": {"l": "v"}}, "spec": {"x": 1}, "y": 1},
        "apiVersion": "x", "metadata": {},
    }));
    value["other"] = json!(1);
    let removed = schema.prune(&mut value);
    assert_eq!(
        removed,
        [
            "other",
            "spec.any.object.lost",
            "spec.apiVersion",
            "spec.b",
            "spec.free.known.b",
            "spec.list[1].bar",
            "spec.map.k.b",
            "spec.metadata",
            "spec.template.spec.x",
            "spec.template.y",
        ]
    );
    assert_eq!(
        value,
        object(&json!({
            "a": "1",
            "list": [{"a": "1"}, {"a": "1"}],
            "map": {"k": {"a": "1"}},
            "any": {"text": "kept", "object": {}},
            "free": {"x": {"y": 1}, "known": {"a": "1"}},
            "template": {"apiVersion": "v1", "kind": "X", "metadata": {"labels": {"l": "v"}}, "spec": {}},
        }))
    );
    assert!(schema.prune(&mut value).is_empty());
}

#[test]
fn a_root_that_preserves_keeps_everything() {
    let schema = Structural::compile(
        &json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    );
    let mut value = object(&json!({"a": {"b": [1]}}));
    let before = value.clone();
    assert!(schema.expect("compiles").prune(&mut value).is_empty());
    assert_eq!(value, before);
}

#[test]
fn defaults_enter_objects_that_exist() {
    let schema = compile(&json!({"type": "object", "properties": {
        "a": {"type": "string", "default": "d"},
        "absent": {"type": "object", "properties": {"a": {"type": "string", "default": "d"}}},
        "deep": {"type": "object", "default": {}, "properties": {
            "a": {"type": "integer", "default": 1},
            "inner": {"type": "object", "default": {"x": 2}, "properties": {
                "x": {"type": "integer"}, "y": {"type": "integer", "default": 3},
            }},
        }},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string", "default": "d"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string", "default": "d"}}}},
    }}));
    let default = |spec: Value| {
        let mut value = object(&spec);
        schema.default(&mut value);
        value["spec"].clone()
    };
    let deep = json!({"a": 1, "inner": {"x": 2, "y": 3}});
    assert_eq!(default(json!({})), json!({"a": "d", "deep": deep}));
    assert_eq!(
        default(
            json!({"a": "x", "absent": {}, "list": [{}, {"a": "x"}], "map": {"k": {}}, "deep": {"inner": {}}})
        ),
        json!({
            "a": "x", "absent": {"a": "d"}, "list": [{"a": "d"}, {"a": "x"}], "map": {"k": {"a": "d"}},
            "deep": {"a": 1, "inner": {"y": 3}},
        })
    );
    let mut value = json!({"apiVersion": "g.io/v1", "kind": "K"});
    schema.default(&mut value);
    assert_eq!(
        value,
        json!({"apiVersion": "g.io/v1", "kind": "K"}),
        "spec does not exist"
    );
}

#[test]
fn nulls_give_way_to_defaults_or_vanish() {
    let schema = compile(&json!({"type": "object", "properties": {
        "defaulted": {"type": "string", "default": "d"},
        "nullable": {"type": "string", "nullable": true, "default": "d"},
        "plain": {"type": "string"},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "list": {"type": "array", "items": {"type": "string"}},
    }}));
    let mut value = object(&json!({
        "defaulted": null, "nullable": null, "plain": null, "map": {"a": null, "b": "x"}, "free": {"x": null}, "list": [null],
    }));
    schema.default(&mut value);
    assert_eq!(
        value["spec"],
        json!({"defaulted": "d", "nullable": null, "map": {"b": "x"}, "free": {"x": null}, "list": [null]})
    );
}

#[test]
fn a_required_field_with_a_default_may_be_left_out() {
    let schema = compile(&json!({
        "type": "object", "required": ["region"], "properties": {"region": {"type": "string", "default": "eu"}},
    }));
    let mut value = object(&json!({}));
    schema.default(&mut value);
    assert!(schema.validate(&value, None).is_empty());
}
