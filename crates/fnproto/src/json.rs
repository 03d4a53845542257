//! JSON to `google.protobuf.Struct` and back.

use pbjson_types::value::Kind;
use pbjson_types::{ListValue, Struct, Value as PbValue};
use serde_json::{Map, Number, Value};

/// Numbers at or beyond this magnitude do not fit an `i64` (2^63).
const I64_LIMIT: f64 = 9_223_372_036_854_775_808.0;

/// A protobuf struct as a JSON object.
pub fn struct_to_map(object: Struct) -> Map<String, Value> {
    object
        .fields
        .into_iter()
        .map(|(key, value)| (key, from_pb(value)))
        .collect()
}

/// A JSON object as a protobuf struct.
pub fn map_to_struct(map: Map<String, Value>) -> Struct {
    Struct {
        fields: map
            .into_iter()
            .map(|(key, value)| (key, to_pb(value)))
            .collect(),
    }
}

/// A JSON value as a protobuf struct; anything but an object is an empty struct.
pub fn value_to_struct(value: Value) -> Struct {
    match value {
        Value::Object(map) => map_to_struct(map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Struct::default()
        }
    }
}

fn from_pb(value: PbValue) -> Value {
    match value.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::NumberValue(n)) => number(n),
        Some(Kind::StringValue(s)) => Value::String(s),
        Some(Kind::BoolValue(b)) => Value::Bool(b),
        Some(Kind::StructValue(s)) => Value::Object(struct_to_map(s)),
        Some(Kind::ListValue(list)) => list.values.into_iter().map(from_pb).collect(),
    }
}

fn to_pb(value: Value) -> PbValue {
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(b) => Kind::BoolValue(b),
        Value::Number(n) => Kind::NumberValue(n.as_f64().unwrap_or_default()),
        Value::String(s) => Kind::StringValue(s),
        Value::Array(items) => Kind::ListValue(ListValue {
            values: items.into_iter().map(to_pb).collect(),
        }),
        Value::Object(map) => Kind::StructValue(map_to_struct(map)),
    };
    PbValue { kind: Some(kind) }
}

/// A double as Go's structpb and Kubernetes' JSON decoder would leave it: whole numbers that fit an
/// `int64` are integers, others floats. What JSON cannot say (NaN, infinities) is null.
fn number(n: f64) -> Value {
    if n.fract() == 0.0 && (-I64_LIMIT..I64_LIMIT).contains(&n) {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "whole and within range, checked above"
        )]
        let whole = n as i64;
        return Value::Number(whole.into());
    }
    Number::from_f64(n).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_floats_become_integers_and_fractions_stay() {
        for (n, want) in [
            (3.0, "3"),
            (-1.0, "-1"),
            (-0.0, "0"),
            (1e7, "10000000"),
            (0.5, "0.5"),
            (9_007_199_254_740_992.0, "9007199254740992"),
            (1e20, "1e20"),
            (f64::NAN, "null"),
            (f64::INFINITY, "null"),
        ] {
            let text = number(n).to_string().replace("+", "");
            assert_eq!(text, want, "{n}");
        }
    }

    #[test]
    fn what_is_no_object_is_an_empty_struct() {
        assert_eq!(value_to_struct(json!([1])), Struct::default());
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-(1_i64 << 53)..=(1_i64 << 53)).prop_map(Value::from),
            any::<i32>().prop_map(|n| json!(f64::from(n) + 0.5)),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 64, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(".*", inner, 0..6)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn json_survives_the_wire(value in any_json()) {
            let object = Map::from_iter([("x".to_owned(), value)]);
            let bytes = map_to_struct(object.clone()).encode_to_vec();
            let back = Struct::decode(bytes.as_slice()).map(struct_to_map);
            prop_assert_eq!(back, Ok(object));
        }

        #[test]
        fn any_double_reads_as_json(n in any::<f64>()) {
            let value = number(n);
            if let Some(back) = value.as_f64() {
                prop_assert!(back == n);
            } else {
                prop_assert!(!n.is_finite());
            }
        }
    }
}
