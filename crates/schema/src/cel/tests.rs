//! Rules, from schema to message.

use serde_json::{Value, json};

use crate::Structural;

/// The messages that a schema of `spec` has for an object.
#[track_caller]
fn messages(spec: &Value, new: &Value, old: Option<&Value>) -> Vec<String> {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let schema = Structural::compile(&schema).expect("schema compiles");
    let object = |spec: &Value| json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n"}, "spec": spec});
    let errors = schema.validate(&object(new), old.map(object).as_ref());
    errors.iter().map(ToString::to_string).collect()
}

/// An object with properties and one rule.
fn with_rule(properties: Value, rule: Value) -> Value {
    json!({"type": "object", "properties": properties, "x-kubernetes-validations": [rule]})
}

#[test]
fn a_false_rule_is_an_error_with_its_message() {
    let properties = json!({"a": {"type": "integer"}, "b": {"type": "integer"}});
    let cases = [
        (
            json!({"rule": "self.a < self.b"}),
            "spec: Invalid value: failed rule: self.a < self.b",
        ),
        (
            json!({"rule": "self.a < self.b", "message": "a must be less"}),
            "spec: Invalid value: a must be less",
        ),
        (
            json!({"rule": "self.a < self.b", "messageExpression": "'a is ' + string(self.a)", "message": "no"}),
            "spec: Invalid value: a is 5",
        ),
        (
            json!({"rule": "self.a < self.b", "message": "x", "fieldPath": ".a", "reason": "FieldValueForbidden"}),
            "spec.a: Forbidden: x",
        ),
        (
            json!({"rule": "self.a < self.b", "message": "x", "reason": "FieldValueRequired"}),
            "spec: Required value: x",
        ),
        (
            json!({"rule": "self.a < self.b", "reason": "FieldValueDuplicate", "message": "x"}),
            "spec: Duplicate value",
        ),
        (
            json!({"rule": "self.a / 0 == 1", "message": "x"}),
            "spec: Invalid value: \"object\": Division by zero of Int(5) evaluating rule: x",
        ),
    ];
    for (rule, want) in cases {
        let spec = with_rule(properties.clone(), rule.clone());
        assert_eq!(
            messages(&spec, &json!({"a": 5, "b": 3}), None),
            [want],
            "{rule}"
        );
    }
}

#[test]
fn rules_on_scalars_show_the_value() {
    let spec = json!({"type": "object", "properties": {"a": {
        "type": "integer", "x-kubernetes-validations": [{"rule": "self > 3", "message": "too small"}],
    }}});
    assert_eq!(
        messages(&spec, &json!({"a": 2}), None),
        ["spec.a: Invalid value: 2: too small"]
    );
    assert!(
        messages(&spec, &json!({}), None).is_empty(),
        "absent values have no rules"
    );
}

#[test]
fn values_look_to_rules_as_they_do_upstream() {
    let cases = [
        (
            json!({"x": {"type": "string", "nullable": true}}),
            json!({"x": null}),
            "!has(self.x)",
        ),
        (
            json!({"x": {"type": "string", "default": "d"}}),
            json!({"x": "d"}),
            "has(self.x)",
        ),
        (
            json!({"namespace": {"type": "string"}}),
            json!({"namespace": "n"}),
            "self.__namespace__ == 'n'",
        ),
        (
            json!({"a_b": {"type": "string"}}),
            json!({"a_b": "n"}),
            "self.a_b == 'n'",
        ),
        (
            json!({"a-b": {"type": "string"}}),
            json!({"a-b": "n"}),
            "self.a__dash__b == 'n'",
        ),
        (
            json!({"m": {"type": "object", "additionalProperties": {"type": "string"}}}),
            json!({"m": {"a-b.c/d": "v"}}),
            "self.m['a-b.c/d'] == 'v' && 'a-b.c/d' in self.m && self.m.all(k, k.startsWith('a'))",
        ),
        (
            json!({"n": {"type": "number"}}),
            json!({"n": 3}),
            "self.n == 3.0 && self.n < 4.5",
        ),
        (
            json!({"n": {"type": "integer"}}),
            json!({"n": 3.0}),
            "self.n == 3",
        ),
        (
            json!({"t": {"type": "string", "format": "date-time"}}),
            json!({"t": "2024-01-02T03:04:05Z"}),
            "self.t.getFullYear() == 2024 && self.t < timestamp('2025-01-01T00:00:00Z')",
        ),
        (
            json!({"t": {"type": "string", "format": "date"}}),
            json!({"t": "2024-01-02"}),
            "self.t.getDayOfMonth() == 1",
        ),
        (
            json!({"d": {"type": "string", "format": "duration"}}),
            json!({"d": "90m"}),
            "self.d == duration('1h30m')",
        ),
        (
            json!({"b": {"type": "string", "format": "byte"}}),
            json!({"b": "aGk="}),
            "self.b == b'hi'",
        ),
        (
            json!({"p": {"x-kubernetes-int-or-string": true}}),
            json!({"p": "80"}),
            "self.p == '80'",
        ),
        (
            json!({"l": {"type": "array", "items": {"type": "integer"}}}),
            json!({"l": [1, 2]}),
            "self.l.exists(x, x == 2) && self.l.map(x, x * 2) == [2, 4] && self.l.filter(x, x > 1).size() == 1",
        ),
        (
            json!({"s": {"type": "string"}}),
            json!({"s": "abc"}),
            "self.s.matches('^[a-z]+$') && self.s.size() == 3 && self.s.lowerAscii() == 'abc'",
        ),
        (
            json!({"s": {"type": "string"}}),
            json!({"s": "1Gi"}),
            "isQuantity(self.s) && quantity(self.s).isGreaterThan(quantity('1Mi'))",
        ),
        (
            json!({"s": {"type": "string"}}),
            json!({"s": "10.0.0.1"}),
            "isIP(self.s) && ip(self.s).family() == 4",
        ),
        (
            json!({"s": {"type": "string"}}),
            json!({}),
            "self.?s.orValue('x') == 'x' && !self.?s.hasValue()",
        ),
        (
            json!({"s": {"type": "string"}}),
            json!({"s": "y"}),
            "self.?s.orValue('x') == 'y'",
        ),
        (
            json!({"o": {"type": "object", "properties": {"s": {"type": "string"}}}}),
            json!({}),
            "self.?o.?s.orValue('x') == 'x'",
        ),
    ];
    for (properties, object, rule) in cases {
        let spec = with_rule(properties, json!({"rule": rule}));
        assert_eq!(
            messages(&spec, &object, None),
            Vec::<String>::new(),
            "{rule}"
        );
    }
}

#[test]
fn transition_rules_need_an_old_value() {
    let spec = with_rule(
        json!({"size": {"type": "integer"}}),
        json!({"rule": "self.size >= oldSelf.size", "message": "cannot shrink"}),
    );
    let (small, large) = (json!({"size": 1}), json!({"size": 2}));
    assert!(messages(&spec, &small, None).is_empty());
    assert!(messages(&spec, &large, Some(&small)).is_empty());
    assert_eq!(
        messages(&spec, &small, Some(&large)),
        ["spec: Invalid value: cannot shrink"]
    );
}

#[test]
fn an_optional_old_value_is_optional() {
    let spec = with_rule(
        json!({"size": {"type": "integer"}}),
        json!({
            "rule": "oldSelf.hasValue() ? self.size >= oldSelf.value().size : self.size == 1",
            "optionalOldSelf": true,
            "message": "starts at 1 and grows",
        }),
    );
    let (one, two) = (json!({"size": 1}), json!({"size": 2}));
    assert!(messages(&spec, &one, None).is_empty());
    assert_eq!(messages(&spec, &two, None).len(), 1);
    assert!(messages(&spec, &two, Some(&one)).is_empty());
    assert_eq!(messages(&spec, &one, Some(&two)).len(), 1);
}

#[test]
fn only_items_of_keyed_lists_have_old_values() {
    let item = json!({
        "type": "object", "required": ["name"],
        "properties": {"name": {"type": "string"}, "v": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v", "message": "cannot shrink"}],
    });
    let list = json!({
        "type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
    });
    let spec = json!({"type": "object", "properties": {"l": list}});
    let old = json!({"l": [{"name": "a", "v": 5}, {"name": "b", "v": 1}]});
    let new = json!({"l": [{"name": "b", "v": 2}, {"name": "c", "v": 0}, {"name": "a", "v": 4}]});
    assert_eq!(
        messages(&spec, &new, Some(&old)),
        ["spec.l[2]: Invalid value: cannot shrink"]
    );
}

#[test]
fn unchanged_values_may_stay_against_a_rule() {
    let spec = json!({"type": "object", "properties": {
        "a": {"type": "string", "x-kubernetes-validations": [{"rule": "self == 'ok'", "message": "not ok"}]},
        "b": {"type": "string"},
        "l": {"type": "array", "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self == 'ok'", "message": "not ok"}]}},
    }});
    let old = json!({"a": "bad", "b": "1", "l": ["bad"]});
    assert!(
        messages(
            &spec,
            &json!({"a": "bad", "b": "2", "l": ["bad"]}),
            Some(&old)
        )
        .is_empty()
    );
    assert_eq!(
        messages(&spec, &json!({"a": "worse", "b": "2"}), Some(&old)),
        ["spec.a: Invalid value: \"worse\": not ok"]
    );
    // Items of atomic lists have no old value; the list counts as a whole.
    assert_eq!(
        messages(&spec, &json!({"l": ["bad", "ok"]}), Some(&old)),
        ["spec.l[0]: Invalid value: \"bad\": not ok"]
    );
}

#[test]
fn rules_wait_for_valid_types() {
    let spec = with_rule(
        json!({"a": {"type": "integer"}}),
        json!({"rule": "self.a > 1"}),
    );
    assert_eq!(
        messages(&spec, &json!({"a": "x"}), None),
        [
            "spec.a: Invalid value: \"string\": spec.a in body must be of type integer: \"string\"",
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; \
             correct the existing errors to complete validation",
        ]
    );
}

#[test]
fn absent_fields_fail_closed() {
    let spec = with_rule(
        json!({"a": {"type": "integer"}}),
        json!({"rule": "self.a > 1"}),
    );
    assert_eq!(
        messages(&spec, &json!({}), None),
        ["spec: Invalid value: \"object\": no such key: a evaluating rule: self.a > 1"]
    );
}

#[test]
fn a_rule_that_would_take_too_long_is_not_run() {
    let spec = with_rule(
        json!({"l": {"type": "array", "maxItems": 2000, "items": {"type": "integer"}}}),
        json!({"rule": "self.l.all(x, self.l.exists(y, y == x))"}),
    );
    let list = |len: usize| json!({"l": vec![7; len]});
    assert!(messages(&spec, &list(100), None).is_empty());
    let spec = json!({"type": "object", "properties": {"spec": with_rule(
        json!({"s": {"type": "string"}, "t": {"type": "string"}}),
        json!({"rule": "self.s.replace('a', self.t).size() > 0"}),
    )}});
    let schema = Structural::compile(&spec).expect("compiles");
    let large = json!({"spec": {"s": "a".repeat(100_000), "t": "b".repeat(100_000)}});
    let errors = schema.validate(&large, None);
    assert_eq!(errors.len(), 1);
    assert!(
        errors[0].detail.contains("call cost exceeds limit"),
        "{}",
        errors[0]
    );
}

/// The errors of a schema whose `spec` is given.
fn schema_errors(spec: &Value) -> Vec<String> {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let errors = Structural::compile(&schema).err().unwrap_or_default();
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn rules_are_checked_when_the_schema_is_written() {
    let properties = json!({
        "s": {"type": "string", "nullable": true},
        "n": {"type": "integer"},
        "d": {"type": "number"},
        "o": {"type": "object", "properties": {"x": {"type": "string"}}},
        "l": {"type": "array", "maxItems": 10, "items": {"type": "string"}},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        "p": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "i": {"x-kubernetes-int-or-string": true},
        "t": {"type": "string", "format": "date-time"},
    });
    let good = [
        "self.o == null",
        "self.t == null",
        "self.p == null",
        "self.i == 3 || self.i == 'x'",
        "self.d < 3",
        "self.n < 3.5",
        "self.m['a'] == 3",
        "self.m.a == 3",
        "self.l[0] == 'x'",
        "self.l.map(x, x + 'a').all(x, x.startsWith('b'))",
        "self.l.exists_one(x, x == 'a')",
        "self.t - self.t == duration('0s')",
        "dyn(self.n) == 'x'",
        "math.abs(self.n) == 3",
        "(self.n > 1 ? 'a' : 'b') == 'a'",
        "self.?s.orValue('') == ''",
        "optional.of(self.n).hasValue()",
        "self.l.filter(x, x != '').size() == size(self.l)",
        "'a' in self.m",
        "'b' in self.l",
    ];
    for rule in good {
        let spec = with_rule(properties.clone(), json!({"rule": rule}));
        assert_eq!(schema_errors(&spec), Vec::<String>::new(), "{rule}");
    }
    let bad = [
        ("self.missing == 1", "undefined field 'missing'"),
        ("has(self.missing)", "undefined field 'missing'"),
        ("self.o.y == 'a'", "undefined field 'y'"),
        (
            "self.s.x == 'a'",
            "type 'string' does not support field selection",
        ),
        (
            "self.s == null",
            "found no matching overload for '_==_' applied to '(string, null)'",
        ),
        (
            "self.n == 'x'",
            "found no matching overload for '_==_' applied to '(int, string)'",
        ),
        (
            "self.n + 's' == 's'",
            "found no matching overload for '_+_' applied to '(int, string)'",
        ),
        (
            "self.n && true",
            "found no matching overload for '_&&_' applied to '(int, bool)'",
        ),
        ("self.n", "must evaluate to a bool"),
        ("self.p.anything == 3", "undefined field 'anything'"),
        ("this.n == 1", "undeclared reference to 'this'"),
        (
            "self.n.frobnicate() == 1",
            "undeclared reference to 'frobnicate'",
        ),
        ("lists.range(3).size() == 3", "undeclared reference"),
        (
            "self.n.startsWith('a')",
            "found no matching overload for 'startsWith' applied to 'int.(string)'",
        ),
        (
            "self.n.all(x, x == 1)",
            "cannot be range of a comprehension",
        ),
        ("self.s.matches('(')", "invalid matches argument"),
        ("self.n ==", "compilation failed"),
    ];
    for (rule, want) in bad {
        let spec = with_rule(properties.clone(), json!({"rule": rule}));
        let errors = schema_errors(&spec);
        assert_eq!(errors.len(), 1, "{rule}: {errors:?}");
        assert!(
            errors[0]
                .starts_with("properties[spec].x-kubernetes-validations[0].rule: Invalid value"),
            "{}",
            errors[0]
        );
        assert!(errors[0].contains(want), "{rule}: {}", errors[0]);
    }
}

#[test]
fn rules_of_the_root_see_names_only() {
    let check = |rule: &str| {
        Structural::compile(&json!({
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": {"n": {"type": "string"}}}},
            "x-kubernetes-validations": [{"rule": rule}],
        }))
    };
    assert!(check("self.metadata.name.startsWith(self.spec.n) && self.kind == 'K'").is_ok());
    assert!(check("self.metadata.labels.size() > 0").is_err());
}

#[test]
fn malformed_rules_are_refused() {
    let cases = [
        (
            json!({"rule": " "}),
            "rule: Required value: rule is not specified",
        ),
        (
            json!({"rule": "true", "message": " "}),
            "message: Invalid value: \" \": must be non-empty if specified",
        ),
        (
            json!({"rule": "true", "message": "a\nb"}),
            "message: Invalid value: \"a\\nb\": must not contain line breaks",
        ),
        (
            json!({"rule": "true ||\n false"}),
            "message: Required value: message must be specified if rule contains line breaks",
        ),
        (
            json!({"rule": "true", "reason": "X"}),
            "reason: Unsupported value: \"X\": supported values:",
        ),
        (
            json!({"rule": "true", "fieldPath": ".nope"}),
            "fieldPath: Invalid value: \".nope\": must be a valid path",
        ),
        (
            json!({"rule": "true", "optionalOldSelf": true}),
            "optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule",
        ),
        (
            json!({"rule": "true", "messageExpression": "1"}),
            "messageExpression: Invalid value",
        ),
        (json!({"rule": 3}), "Invalid value"),
    ];
    for (rule, want) in cases {
        let errors = schema_errors(&with_rule(json!({"a": {"type": "string"}}), rule.clone()));
        assert_eq!(errors.len(), 1, "{rule}: {errors:?}");
        assert!(errors[0].contains(want), "{rule}: {}", errors[0]);
    }
    let deep = format!("{}true{}", "(".repeat(5_000), ")".repeat(5_000));
    assert_eq!(
        schema_errors(&with_rule(json!({}), json!({"rule": deep}))).len(),
        1
    );
    let not = format!("{}true", "!".repeat(10_000));
    let _ = schema_errors(&with_rule(json!({}), json!({"rule": not})));
    let long = vec!["true"; 3_000].join(" && ");
    let _ = schema_errors(&with_rule(json!({}), json!({"rule": long})));
}

#[test]
fn old_values_of_atomic_lists_are_unknown_to_rules() {
    let item =
        json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]});
    let errors = schema_errors(
        &json!({"type": "object", "properties": {"l": {"type": "array", "items": item}}}),
    );
    assert_eq!(errors.len(), 1);
    assert!(
        errors[0].contains("oldSelf cannot be used on the uncorrelatable portion of the schema"),
        "{}",
        errors[0]
    );
}

#[test]
fn loops_over_unbounded_lists_within_each_other_are_too_expensive() {
    let rule = json!({"rule": "self.l.all(x, self.l.exists(y, y == x))"});
    let list = |extra: Value| {
        let mut list = json!({"type": "array", "items": {"type": "string"}});
        if !extra.is_null() {
            list["maxItems"] = extra;
        }
        with_rule(json!({"l": list}), rule.clone())
    };
    assert!(schema_errors(&list(json!(64))).is_empty());
    let errors = schema_errors(&list(Value::Null));
    assert_eq!(errors.len(), 2, "the rule, and the schema: {errors:?}");
    assert!(
        errors
            .iter()
            .any(|e| e.contains("estimated rule cost exceeds budget by factor of more than 100x"))
    );
}

#[test]
fn values_of_another_type_that_were_there_before_fail_their_rules() {
    let spec = json!({"type": "object", "properties": {
        "n": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0", "message": "positive"}]},
        "m": {"type": "integer"},
    }});
    assert_eq!(
        messages(
            &spec,
            &json!({"n": "x", "m": 2}),
            Some(&json!({"n": "x", "m": 1}))
        ),
        [
            "spec.n: Invalid value: \"integer\": invalid data, expected integer evaluating rule: positive"
        ]
    );
}

#[test]
fn defaults_must_satisfy_rules() {
    let errors = schema_errors(&json!({"type": "object", "properties": {
        "n": {"type": "integer", "default": 0, "x-kubernetes-validations": [{"rule": "self > 0", "message": "positive"}]},
    }}));
    assert_eq!(
        errors,
        ["properties[spec].properties[n].default: Invalid value: 0: positive"]
    );
}

#[test]
fn long_chains_do_not_overflow_the_stack() {
    let properties = json!({"n": {"type": "integer"}, "s": {"type": "string"}});
    let chains = [
        format!("{} > 0", vec!["1"; 1_990].join("+")),
        format!("{} > 0", vec!["1"; 40].join("+")),
        format!("{} == 'x'", vec!["self.s"; 1_100].join("+")),
        format!("self{} == 1", ".a".repeat(1_990)),
        format!("self.s{} == ''", ".trim()".repeat(660)),
        format!("self.s{} == 'x'", ".trim()".repeat(40)),
        format!("self.n{} == ''", "[0]".repeat(990)),
        format!("{}true", "true?true:".repeat(800)),
        format!("{}true", "true?true:".repeat(20)),
        format!("{}1 == 1", "-".repeat(1_990)),
        format!("{}1 == 1", "- -".repeat(990)),
        format!("true{}", "||true".repeat(1_300)),
        format!(
            "{}self.s == 'x'{}",
            "[1].all(x, ".repeat(600),
            ")".repeat(600)
        ),
        format!(
            "{}self.s == 'x'{}",
            "[1].all(x, ".repeat(30),
            ")".repeat(30)
        ),
        "[".repeat(1_990),
    ];
    let mut ran = 0;
    for rule in chains {
        let spec = with_rule(properties.clone(), json!({"rule": rule}));
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        if let Ok(schema) = Structural::compile(&schema) {
            schema.validate(&json!({"spec": {"n": 1, "s": "x"}}), None);
            ran += 1;
        }
    }
    assert!(ran >= 4, "only {ran} of the chains are rules");
}
