//! Laws that hold for all schemas and objects.

use ecp_schema::{FieldError, Structural};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::root;

/// Any JSON, with names that schemas use.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop_oneof![
            "[a-d]{0,4}",
            "\\PC{0,8}",
            Just("2024-01-02T03:04:05Z".to_owned())
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            btree_map(field_name(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn field_name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-d]",
        Just("metadata".to_owned()),
        Just("kind".to_owned()),
        "\\PC{0,3}"
    ]
}

/// Schemas, mostly structural.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "string", "maxLength": 2, "nullable": true})),
        Just(json!({"type": "string", "default": "a", "enum": ["a", "b"]})),
        Just(json!({"type": "string", "format": "date-time"})),
        Just(json!({"type": "string", "pattern": "^[ab]*$"})),
        Just(json!({"type": "integer", "minimum": 0, "format": "int32"})),
        Just(json!({"type": "integer", "default": 3, "multipleOf": 3})),
        Just(json!({"type": "number", "maximum": 1.5, "exclusiveMaximum": true})),
        Just(json!({"type": "boolean", "default": false})),
        Just(json!({"x-kubernetes-int-or-string": true})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
        Just(
            json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0", "message": "positive"}]})
        ),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let properties = btree_map("[a-d]", inner.clone(), 0..4);
        prop_oneof![
            (properties, any::<[bool; 4]>()).prop_map(|(properties, flags)| object_schema(
                properties.into_iter().collect(),
                flags
            )),
            inner
                .clone()
                .prop_map(|value| json!({"type": "object", "additionalProperties": value})),
            (inner, any::<bool>()).prop_map(|(item, bounded)| {
                let mut list = json!({"type": "array", "items": item});
                if bounded {
                    list["maxItems"] = json!(2);
                }
                list
            }),
        ]
    })
}

fn object_schema(
    properties: Map<String, Value>,
    [free, required, either, rule]: [bool; 4],
) -> Value {
    let mut schema = json!({"type": "object"});
    if free {
        schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
    }
    if let Some(name) = properties.keys().next() {
        if required {
            schema["required"] = json!([name]);
        }
        if either {
            schema["anyOf"] = json!([{"required": [name]}, {"maxProperties": 2}]);
        }
        // Rules do not see what is merely preserved.
        if rule
            && properties[name]
                .get("x-kubernetes-preserve-unknown-fields")
                .is_none()
        {
            schema["x-kubernetes-validations"] = json!([{"rule": format!("has(self.{name})")}]);
        }
    }
    schema["properties"] = Value::Object(properties);
    schema
}

/// Schemas with anything anywhere.
fn wild_schema() -> impl Strategy<Value = Value> {
    let keyword = prop::sample::select(vec![
        "type",
        "properties",
        "additionalProperties",
        "items",
        "default",
        "nullable",
        "enum",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "multipleOf",
        "maxLength",
        "minLength",
        "pattern",
        "format",
        "required",
        "minItems",
        "maxProperties",
        "anyOf",
        "allOf",
        "oneOf",
        "not",
        "x-kubernetes-validations",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
        "x-kubernetes-int-or-string",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
    ])
    .prop_map(str::to_owned);
    let word = prop::sample::select(vec![
        "object",
        "array",
        "string",
        "integer",
        "map",
        "set",
        "atomic",
        "a",
        "date-time",
        "int32",
        "self",
        "true",
        "self.a > oldSelf.b",
        "(",
        "self.all(x, x)",
    ])
    .prop_map(Value::from);
    let leaf = prop_oneof![word, any_json()];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            btree_map(keyword.clone(), inner.clone(), 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
            btree_map("[a-d]", inner.clone(), 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
            btree_map(Just("rule".to_owned()), inner.clone(), 0..2)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
            vec(inner, 0..3).prop_map(Value::from),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn structural_schemas_compile_and_their_laws_hold(spec in any_schema(), value in any_json(), other in any_json()) {
        let schema = Structural::compile(&root(&spec));
        prop_assert!(schema.is_ok(), "{spec}: {schema:?}");
        let schema = schema.expect("compiles");
        let mut object = json!({"apiVersion": "g.io/v1", "kind": "K", "metadata": {}, "spec": value, "extra": 1});

        prop_assert!(schema.prune(&mut object).contains(&"extra".to_owned()));
        let pruned = object.clone();
        prop_assert_eq!(schema.prune(&mut object), Vec::<String>::new(), "pruning twice");
        prop_assert_eq!(&object, &pruned);

        schema.default(&mut object);
        let defaulted = object.clone();
        schema.default(&mut object);
        prop_assert_eq!(&object, &defaulted, "defaulting twice");
        prop_assert_eq!(schema.prune(&mut object), Vec::<String>::new(), "defaults are pruned");

        let errors = schema.validate(&object, None);
        // A rule that cannot be evaluated, since an old value has another type, fails as upstream.
        let again = schema.validate(&object, Some(&object));
        let evaluated = |error: &&FieldError| !error.detail.contains("evaluating rule");
        prop_assert_eq!(again.iter().find(evaluated), None, "an unchanged object is accepted");
        // Whatever was there before, an object without errors is fine as an update.
        if errors.is_empty() {
            let old = json!({"apiVersion": "g.io/v1", "kind": "K", "metadata": {}, "spec": other});
            let update = schema.validate(&object, Some(&old));
            prop_assert!(update.is_empty(), "{update:?}");
        }
    }

    #[test]
    fn nothing_panics_whatever_the_schema(schema in wild_schema(), value in any_json(), old in any_json()) {
        for schema in [schema.clone(), root(&schema)] {
            if let Ok(schema) = Structural::compile(&schema) {
                let mut value = value.clone();
                schema.prune(&mut value);
                schema.default(&mut value);
                schema.validate(&value, None);
                schema.validate(&value, Some(&old));
                schema.validate(&json!({"spec": value}), Some(&json!({"spec": old})));
            }
        }
    }
}
