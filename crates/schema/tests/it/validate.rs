//! What is valid, and the words for what is not.

use ecp_schema::FieldErrorKind;
use serde_json::{Value, json};

use crate::{compile, errors_of, object, texts};

fn string(extra: Value) -> Value {
    with_type("string", extra)
}

fn with_type(kind: &str, mut extra: Value) -> Value {
    extra["type"] = kind.into();
    extra
}

#[test]
fn each_check_has_the_words_of_kubernetes() {
    let ints = json!({"type": "array", "items": {"type": "integer"}});
    let array = |extra: Value| {
        let mut schema = ints.clone();
        schema
            .as_object_mut()
            .expect("object")
            .extend(extra.as_object().expect("object").clone());
        schema
    };
    let cases: Vec<(Value, Value, &[&str])> = vec![
        // Types.
        (
            with_type("integer", json!({})),
            json!("a"),
            &[
                r#"spec.x: Invalid value: "string": spec.x in body must be of type integer: "string""#,
            ],
        ),
        (
            with_type("integer", json!({})),
            json!(1.5),
            &[
                r#"spec.x: Invalid value: "number": spec.x in body must be of type integer: "number""#,
            ],
        ),
        (with_type("integer", json!({})), json!(2.0), &[]),
        (
            with_type("integer", json!({})),
            json!(u64::MAX),
            &[
                r#"spec.x: Invalid value: "number": spec.x in body must be of type integer: "number""#,
            ],
        ),
        (with_type("number", json!({})), json!(1), &[]),
        (
            string(json!({})),
            json!(1),
            &[
                r#"spec.x: Invalid value: "integer": spec.x in body must be of type string: "integer""#,
            ],
        ),
        (
            string(json!({})),
            json!(null),
            &[r#"spec.x: Invalid value: "null": spec.x in body must be of type string: "null""#],
        ),
        (string(json!({"nullable": true})), json!(null), &[]),
        (
            with_type("boolean", json!({})),
            json!("true"),
            &[
                r#"spec.x: Invalid value: "string": spec.x in body must be of type boolean: "string""#,
            ],
        ),
        (
            ints.clone(),
            json!({}),
            &[r#"spec.x: Invalid value: "object": spec.x in body must be of type array: "object""#],
        ),
        (
            with_type("object", json!({})),
            json!([]),
            &[r#"spec.x: Invalid value: "array": spec.x in body must be of type object: "array""#],
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!(true),
            &[
                r#"spec.x: Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean""#,
            ],
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!("80%"),
            &[],
        ),
        (
            json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
            json!(8),
            &[],
        ),
        (
            json!({"x-kubernetes-preserve-unknown-fields": true}),
            json!([1, "a"]),
            &[],
        ),
        // Numbers.
        (
            with_type("integer", json!({"minimum": 1})),
            json!(0),
            &["spec.x: Invalid value: 0: spec.x in body should be greater than or equal to 1"],
        ),
        (
            with_type("integer", json!({"minimum": 1, "exclusiveMinimum": true})),
            json!(1),
            &["spec.x: Invalid value: 1: spec.x in body should be greater than 1"],
        ),
        (
            with_type("integer", json!({"maximum": 10})),
            json!(11),
            &["spec.x: Invalid value: 11: spec.x in body should be less than or equal to 10"],
        ),
        (
            with_type("number", json!({"maximum": 10, "exclusiveMaximum": true})),
            json!(10),
            &["spec.x: Invalid value: 10: spec.x in body should be less than 10"],
        ),
        (
            with_type("number", json!({"minimum": 0.5})),
            json!(0.25),
            &["spec.x: Invalid value: 0.25: spec.x in body should be greater than or equal to 0.5"],
        ),
        (
            with_type("integer", json!({"multipleOf": 5})),
            json!(12),
            &["spec.x: Invalid value: 12: spec.x in body should be a multiple of 5"],
        ),
        (
            with_type("integer", json!({"format": "int32"})),
            json!(1_i64 << 40),
            &[
                r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.x"#,
            ],
        ),
        (
            with_type("integer", json!({"format": "int64"})),
            json!(1_i64 << 40),
            &[],
        ),
        // Texts.
        (
            string(json!({"maxLength": 3})),
            json!("abcd"),
            &["spec.x: Too long: may not be more than 3 bytes"],
        ),
        (string(json!({"maxLength": 3})), json!("äöü"), &[]),
        (
            string(json!({"maxLength": 1})),
            json!("ab"),
            &["spec.x: Too long: may not be more than 1 byte"],
        ),
        (
            string(json!({"minLength": 3})),
            json!("äö"),
            &[r#"spec.x: Invalid value: "äö": spec.x in body should be at least 3 chars long"#],
        ),
        (
            string(json!({"pattern": "^[a-z]+$"})),
            json!("A"),
            &[r#"spec.x: Invalid value: "A": spec.x in body should match '^[a-z]+$'"#],
        ),
        (
            string(json!({"enum": ["a", "b"]})),
            json!("c"),
            &[r#"spec.x: Unsupported value: "c": supported values: "a", "b""#],
        ),
        (
            with_type("integer", json!({"enum": [1, 2]})),
            json!(3),
            &[r#"spec.x: Unsupported value: 3: supported values: "1", "2""#],
        ),
        (
            string(json!({"format": "date-time"})),
            json!("now"),
            &[r#"spec.x: Invalid value: "now": spec.x in body must be of type date-time: "now""#],
        ),
        (
            string(json!({"format": "date-time"})),
            json!(5),
            &[
                r#"spec.x: Invalid value: "int64": spec.x in body must be of type date-time: "int64""#,
            ],
        ),
        (string(json!({"format": "no-such-format"})), json!("x"), &[]),
        // Lists.
        (
            array(json!({"minItems": 2})),
            json!([1]),
            &["spec.x: Invalid value: 1: spec.x in body should have at least 2 items"],
        ),
        (
            array(json!({"maxItems": 2})),
            json!([1, 2, 3]),
            &["spec.x: Too many: 3: must have at most 2 items"],
        ),
        (
            array(json!({"maxItems": 1})),
            json!([1, 2]),
            &["spec.x: Too many: 2: must have at most 1 item"],
        ),
        (
            ints.clone(),
            json!([1, "b"]),
            &[
                r#"spec.x[1]: Invalid value: "string": spec.x[1] in body must be of type integer: "string""#,
            ],
        ),
        (
            array(json!({"x-kubernetes-list-type": "set"})),
            json!([1, 2, 1, 1]),
            &["spec.x[2]: Duplicate value: 1"],
        ),
        // Objects.
        (
            with_type(
                "object",
                json!({"required": ["a", "b"], "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}),
            ),
            json!({"a": ""}),
            &["spec.x.b: Required value"],
        ),
        (
            with_type("object", json!({"minProperties": 1})),
            json!({}),
            &["spec.x: Invalid value: 0: spec.x in body should have at least 1 properties"],
        ),
        (
            with_type(
                "object",
                json!({"maxProperties": 1, "additionalProperties": {"type": "string"}}),
            ),
            json!({"a": "", "b": ""}),
            &["spec.x: Too many: 2: must have at most 1 item"],
        ),
        (
            with_type(
                "object",
                json!({"additionalProperties": {"type": "string"}}),
            ),
            json!({"a/b": 1}),
            &[
                r#"spec.x.a/b: Invalid value: "integer": spec.x.a/b in body must be of type string: "integer""#,
            ],
        ),
    ];
    for (schema, value, want) in cases {
        assert_eq!(errors_of(&schema, &value), want, "{value} against {schema}");
    }
}

#[test]
fn keyed_lists_have_unique_keys() {
    let list = |keys: Value| {
        json!({
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
            "items": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "port": {"type": "integer", "default": 80},
            }},
        })
    };
    let twice =
        json!([{"name": "a", "port": 1}, {"name": "b", "port": 1}, {"name": "a", "port": 2}]);
    assert_eq!(
        errors_of(&list(json!(["name"])), &twice),
        [r#"spec.x[2]: Duplicate value: {"name":"a"}"#]
    );
    assert!(errors_of(&list(json!(["name", "port"])), &twice).is_empty());
    let same = json!([{"name": "a", "port": 1}, {"name": "a", "port": 1}]);
    assert_eq!(
        errors_of(&list(json!(["name", "port"])), &same),
        [r#"spec.x[1]: Duplicate value: {"name":"a","port":1}"#]
    );
}

#[test]
fn junctors_say_which_of_them_failed() {
    let object = |junctor: &str, bodies: Value| {
        let mut schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
        schema[junctor] = bodies;
        schema
    };
    let either = json!([{"required": ["a"]}, {"required": ["b"]}]);
    let cases: Vec<(Value, Value, &[&str])> = vec![
        (object("oneOf", either.clone()), json!({"a": "1"}), &[]),
        (
            object("oneOf", either.clone()),
            json!({"a": "1", "b": "2"}),
            &[
                r#"<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
            ],
        ),
        (
            object("oneOf", either.clone()),
            json!({}),
            &[
                r#"<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found none valid"#,
                "spec.x.a: Required value",
            ],
        ),
        (
            object("anyOf", either.clone()),
            json!({"a": "1", "b": "2"}),
            &[],
        ),
        (
            object("anyOf", either.clone()),
            json!({}),
            &[
                r#"<nil>: Invalid value: "": "spec.x" must validate at least one schema (anyOf)"#,
                "spec.x.a: Required value",
            ],
        ),
        (
            object("allOf", either),
            json!({"a": "1"}),
            &[
                "spec.x.b: Required value",
                r#"<nil>: Invalid value: "": "spec.x" must validate all the schemas (allOf)"#,
            ],
        ),
        (
            object("not", json!({"required": ["a"]})),
            json!({"a": "1"}),
            &[r#"<nil>: Invalid value: "": "spec.x" must not validate the schema (not)"#],
        ),
        (
            object("not", json!({"required": ["a"]})),
            json!({"b": "1"}),
            &[],
        ),
    ];
    for (schema, value, want) in cases {
        assert_eq!(errors_of(&schema, &value), want, "{value} against {schema}");
    }
}

#[test]
fn unchanged_errors_are_not_reported_again() {
    let schema = compile(&json!({"type": "object", "properties": {
        "a": {"type": "string", "maxLength": 2},
        "b": {"type": "string", "maxLength": 2},
        "o": {"type": "object", "required": ["r"], "properties": {"r": {"type": "string"}, "v": {"type": "integer"}}},
        "keyed": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "v": {"type": "integer", "maximum": 5},
            }},
        },
        "atomic": {"type": "array", "items": {"type": "integer", "maximum": 5}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}},
    }}));
    let old = object(&json!({
        "a": "long", "b": "long", "o": {"v": 1}, "keyed": [{"name": "x", "v": 9}, {"name": "y", "v": 9}],
        "atomic": [9], "set": [1, 1],
    }));
    let check = |spec: Value| texts(&schema.validate(&object(&spec), Some(&old)));
    assert!(check(old["spec"].clone()).is_empty(), "nothing changed");
    assert_eq!(
        check(json!({"a": "long", "b": "longer"})),
        ["spec.b: Too long: may not be more than 2 bytes"]
    );
    assert_eq!(check(json!({"o": {"v": 2}})), ["spec.o.r: Required value"]);
    assert_eq!(
        check(json!({"keyed": [{"name": "y", "v": 9}, {"name": "x", "v": 8}]})),
        [
            "spec.keyed[1].v: Invalid value: 8: spec.keyed[1].v in body should be less than or equal to 5"
        ]
    );
    assert_eq!(
        check(json!({"atomic": [9, 1]})),
        [
            "spec.atomic[0]: Invalid value: 9: spec.atomic[0] in body should be less than or equal to 5"
        ]
    );
    assert!(
        check(json!({"set": [1, 1, 2, 2]})).is_empty(),
        "it had duplicates before"
    );
    assert_eq!(texts(&schema.validate(&old, None)).len(), 7);
}

#[test]
fn names_of_objects_can_be_bounded() {
    let schema = ecp_schema::Structural::compile(&json!({
        "type": "object",
        "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}}},
    }))
    .expect("compiles");
    let object =
        json!({"apiVersion": "g.io/v1", "kind": "K", "metadata": {"name": "long", "labels": {}}});
    assert_eq!(
        texts(&schema.validate(&object, None)),
        ["metadata.name: Too long: may not be more than 3 bytes"]
    );
}

#[test]
fn an_object_that_is_none_is_refused() {
    let schema = compile(&json!({"type": "object"}));
    for value in [json!(null), json!(3), json!("x"), json!([])] {
        let errors = schema.validate(&value, None);
        assert_eq!(errors.len(), 1, "{value}");
        assert_eq!(errors[0].field, "<nil>");
        assert_eq!(errors[0].kind, FieldErrorKind::TypeInvalid);
    }
}

#[test]
fn deep_objects_are_refused_and_do_not_overflow() {
    let schema = compile(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    let mut deep = json!(1);
    for _ in 0..1_000 {
        deep = Value::Object([("a".to_owned(), deep)].into_iter().collect());
    }
    let mut object = object(&json!({}));
    object["spec"] = deep;
    schema.prune(&mut object);
    schema.default(&mut object);
    let errors = texts(&schema.validate(&object, None));
    assert_eq!(
        errors,
        ["<nil>: Invalid value: must not be nested deeper than 120"]
    );
}

#[test]
fn embedded_resources_say_what_they_are() {
    let schema = json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
    assert!(errors_of(&schema, &json!({"apiVersion": "g.io/v1", "kind": "MyKind", "metadata": {"labels": {"a": "b"}}, "spec": 1})).is_empty());
    assert_eq!(
        errors_of(&schema, &json!({})),
        [
            "spec.x.apiVersion: Required value",
            "spec.x.kind: Required value"
        ]
    );
    let errors = errors_of(
        &schema,
        &json!({"apiVersion": "a/b/c", "kind": "My Kind", "metadata": {"name": "a/b", "labels": {"a": 1}}}),
    );
    assert_eq!(errors.len(), 4);
    assert_eq!(
        errors[0],
        "spec.x.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c"
    );
    assert!(errors[1].starts_with("spec.x.kind: Invalid value: \"My Kind\": may have mixed case"));
    assert_eq!(
        errors[3],
        "spec.x.metadata.name: Invalid value: \"a/b\": may not contain '/'"
    );
}

#[test]
fn what_is_reported_is_no_larger_than_what_was_sent() {
    let schema = json!({"type": "object", "additionalProperties": {
        "type": "object",
        "properties": {"l": {"type": "array", "items": {"type": "string"}}}
    }});
    let key = "k".repeat(500_000);
    let unknown: serde_json::Map<String, Value> =
        (0..300).map(|n| (format!("u{n}"), json!(1))).collect();
    let mut value = json!({});
    value[&key] = json!({"l": vec![1; 300]});
    value[&key].as_object_mut().expect("object").extend(unknown);
    let schema = compile(&schema);
    let mut object = object(&value);
    let size = object.to_string().len();
    let removed: usize = schema.prune(&mut object).iter().map(String::len).sum();
    assert!((1..size).contains(&removed), "{removed}");
    let errors = schema.validate(&object, None);
    let reported: usize = errors.iter().map(|e| e.to_string().len()).sum();
    assert!((1..size).contains(&reported), "{reported}");
}
