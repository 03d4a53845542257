//! Which schemas are structural.

use ecp_schema::Structural;
use serde_json::{Value, json};

/// The errors of a schema, `(field, rest)`.
fn errors(schema: &Value) -> Vec<String> {
    let errors = Structural::compile(schema).err().unwrap_or_default();
    errors.iter().map(ToString::to_string).collect()
}

/// The errors of the schema of a property `x`, without the path to it.
fn property_errors(schema: &Value) -> Vec<String> {
    errors(&json!({"type": "object", "properties": {"x": schema}}))
        .into_iter()
        .map(|error| {
            error
                .replacen("properties[x]", "", 1)
                .trim_start_matches('.')
                .to_owned()
        })
        .collect()
}

#[test]
fn each_rule_names_the_place_where_it_is_broken() {
    let cases: Vec<(Value, &[&str])> = vec![
        // Types.
        (
            json!({}),
            &["type: Required value: must not be empty for specified object fields"],
        ),
        (
            json!({"type": "text"}),
            &[
                r#"type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string""#,
            ],
        ),
        (
            json!({"type": "null"}),
            &["type: Forbidden: type cannot be set to null, use nullable as an alternative"],
        ),
        (
            json!({"type": ["string", "null"]}),
            &[
                r#"type: Invalid value: ["string","null"]: must be of type string"#,
                "type: Required value: must not be empty for specified object fields",
            ],
        ),
        (
            json!({"type": "array"}),
            &["items: Required value: must be specified"],
        ),
        (
            json!({"type": "array", "items": {}}),
            &["items.type: Required value: must not be empty for specified array items"],
        ),
        (
            json!({"type": "array", "items": [{"type": "string"}]}),
            &["items: Forbidden: items must be a schema object and not an array"],
        ),
        (json!({"x-kubernetes-int-or-string": true}), &[]),
        (json!({"x-kubernetes-preserve-unknown-fields": true}), &[]),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false}),
            &[
                "x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined",
            ],
        ),
        (
            json!({"x-kubernetes-int-or-string": true, "x-kubernetes-preserve-unknown-fields": true}),
            &[
                "x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if x-kubernetes-int-or-string is true",
            ],
        ),
        // Objects.
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
            &[
                "additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
            ],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": true}),
            &[],
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            &[],
        ),
        (
            json!({"type": "string", "x-kubernetes-map-type": "atomic"}),
            &[
                r#"type: Invalid value: "string": must be object if x-kubernetes-map-type is specified"#,
            ],
        ),
        (
            json!({"type": "object", "x-kubernetes-map-type": "x"}),
            &[
                r#"x-kubernetes-map-type: Unsupported value: "x": supported values: "atomic", "granular""#,
            ],
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true}),
            &[
                "properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
            ],
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
            &[],
        ),
        (
            json!({"x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
            &["type: Required value: must be object if x-kubernetes-embedded-resource is true"],
        ),
        // Keywords without meaning in CRDs.
        (
            json!({"type": "string", "$ref": "#/x"}),
            &["$ref: Forbidden: $ref is not supported"],
        ),
        (
            json!({"type": "object", "patternProperties": {"a": {}}}),
            &["patternProperties: Forbidden: patternProperties is not supported"],
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
            &[
                "uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            ],
        ),
        (
            json!({"type": "string", "pattern": "("}),
            &["pattern: Invalid value"],
        ),
        (
            json!({"type": "string", "maxLength": "3"}),
            &[r#"maxLength: Invalid value: "3": must be of type non-negative integer"#],
        ),
        (json!({"type": "string", "unheard": 3}), &[]),
        // Junctors.
        (
            json!({"type": "string", "anyOf": [{"type": "string"}]}),
            &["anyOf[0].type: Forbidden: must be empty to be structural"],
        ),
        (
            json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
            &[],
        ),
        (
            json!({"x-kubernetes-int-or-string": true, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"pattern": "a"}]}),
            &[],
        ),
        (
            json!({"x-kubernetes-int-or-string": true, "oneOf": [{"type": "integer"}, {"type": "string"}]}),
            &[
                "oneOf[0].type: Forbidden: must be empty to be structural",
                "oneOf[1].type: Forbidden: must be empty to be structural",
            ],
        ),
        (
            json!({"type": "string", "not": {"default": "a", "description": "b", "nullable": true}}),
            &[
                "not.default: Forbidden: must be undefined to be structural",
                "not.description: Forbidden: must be empty to be structural",
                "not.nullable: Forbidden: must be false to be structural",
            ],
        ),
        (
            json!({"type": "object", "allOf": [{"x-kubernetes-validations": [{"rule": "true"}]}]}),
            &["allOf[0].x-kubernetes-validations: Forbidden: must be empty to be structural"],
        ),
    ];
    for (schema, want) in cases {
        let errors = property_errors(&schema);
        assert_eq!(errors.len(), want.len(), "{schema}: {errors:?}");
        for (error, want) in errors.iter().zip(want) {
            assert!(error.starts_with(want), "{schema}: {error}\nwant {want}");
        }
    }
}

#[test]
fn lists_know_their_keys() {
    let list = |extra: Value, item: Value| {
        let mut schema = json!({"type": "array", "items": item});
        schema
            .as_object_mut()
            .expect("object")
            .extend(extra.as_object().expect("object").clone());
        schema
    };
    let map =
        |keys: Value| json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys});
    let item = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "o": {"type": "object"}}});
    let cases: Vec<(Value, &[&str])> = vec![
        (list(map(json!(["a"])), item.clone()), &[]),
        (
            list(json!({"x-kubernetes-list-type": "map"}), item.clone()),
            &[
                "x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
            ],
        ),
        (
            list(json!({"x-kubernetes-list-map-keys": ["a"]}), item.clone()),
            &[
                "x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty",
            ],
        ),
        (
            list(map(json!(["c"])), item.clone()),
            &[
                "x-kubernetes-list-map-keys: Invalid value: [\"c\"]: entries must all be names of item properties",
            ],
        ),
        (
            list(map(json!(["a", "a"])), item.clone()),
            &[
                "x-kubernetes-list-map-keys: Invalid value: [\"a\",\"a\"]: must not contain duplicate entries",
            ],
        ),
        (
            list(map(json!(["b"])), item.clone()),
            &[
                "items.properties[b].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
            ],
        ),
        (
            list(map(json!(["a"])), json!({"type": "string"})),
            &[
                "items.type: Invalid value: \"string\": must be object if parent array's x-kubernetes-list-type is map",
            ],
        ),
        (
            list(json!({"x-kubernetes-list-type": "list"}), item.clone()),
            &[
                "x-kubernetes-list-type: Unsupported value: \"list\": supported values: \"atomic\", \"set\", \"map\"",
            ],
        ),
        (
            list(json!({"x-kubernetes-list-type": "set"}), item.clone()),
            &[
                "items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
            ],
        ),
        (
            list(
                json!({"x-kubernetes-list-type": "set"}),
                json!({"type": "string", "nullable": true}),
            ),
            &["items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set"],
        ),
        (
            json!({"type": "string", "x-kubernetes-list-type": "set"}),
            &[
                "type: Invalid value: \"string\": must be array if x-kubernetes-list-type is specified",
            ],
        ),
    ];
    for (schema, want) in cases {
        assert_eq!(property_errors(&schema), want, "{schema}");
    }
}

#[test]
fn the_root_is_an_object_with_metadata_of_its_own() {
    let cases: Vec<(Value, &[&str])> = vec![
        (
            json!({}),
            &["type: Required value: must not be empty at the root"],
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            &["type: Invalid value: \"array\": must be object at the root"],
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            &["additionalProperties: Forbidden: must not be used at the root"],
        ),
        (
            json!({"type": "object", "nullable": true}),
            &["nullable: Forbidden: nullable cannot be true at the root"],
        ),
        (
            json!({"type": "object", "properties": {"kind": {"type": "integer"}}}),
            &["properties[kind].type: Invalid value: \"integer\": must be string"],
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object"}}}),
            &[],
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 63}}}}}),
            &[],
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
            &[
                "properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
            ],
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "default": "x"}}}}}),
            &[
                "properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata",
            ],
        ),
        (
            json!({"type": "object", "oneOf": [{"properties": {"spec": {"required": ["a"]}}}]}),
            &[
                "properties[spec]: Required value: because it is defined in oneOf[0].properties[spec]",
            ],
        ),
    ];
    for (schema, want) in cases {
        assert_eq!(errors(&schema), want, "{schema}");
    }
    assert_eq!(
        errors(&json!("x")),
        ["Invalid value: \"x\": must be a schema object".to_owned()].map(|e| format!(": {e}"))
    );
}

#[test]
fn defaults_must_be_valid_and_pruned() {
    let object = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let with_default = |default: Value| {
        let mut schema = object.clone();
        schema["default"] = default;
        schema
    };
    assert!(property_errors(&with_default(json!({"a": 1}))).is_empty());
    assert_eq!(
        property_errors(&with_default(json!({"b": 1}))),
        ["default: Invalid value: {\"b\":1}: must not have unknown fields"]
    );
    let errors = property_errors(&with_default(json!({"a": "x"})));
    assert_eq!(errors.len(), 1);
    assert!(
        errors[0].starts_with("default.a: Invalid value: \"string\""),
        "{errors:?}"
    );
    assert_eq!(
        property_errors(&json!({"type": "string", "enum": ["a"], "default": "b"})).len(),
        1
    );
}

#[test]
fn oversized_schemas_are_refused() {
    let mut deep = json!({"type": "string"});
    for _ in 0..500 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    assert!(
        errors(&deep)
            .iter()
            .any(|error| error.contains("nested deeper than 64"))
    );
    let mut junctors = json!({"required": ["a"]});
    for _ in 0..20 {
        junctors = json!({"not": junctors});
    }
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "not": junctors});
    assert!(
        errors(&schema)
            .iter()
            .any(|error| error.contains("more than 8 nested junctors"))
    );
    let wide: Vec<Value> = vec![json!({"required": ["a"]}); 300];
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": wide});
    assert_eq!(
        errors(&schema),
        ["anyOf: Too many: must have at most 256 branches"]
    );
}
