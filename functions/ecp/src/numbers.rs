//! Numbers as protobuf's `Struct` holds them.

use serde_json::Value;

/// Largest number below which every whole number is a float.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// The same value with `3` for `3.0`, so that it can be read as an integer.
pub(crate) fn whole(value: &Value) -> Value {
    match value {
        Value::Number(n) => match n.as_f64() {
            Some(f) if n.is_f64() && f.fract() == 0.0 && f.abs() < WHOLE_MAX => {
                Value::from(f as i64)
            }
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(whole).collect(),
        Value::Object(map) => map.iter().map(|(k, v)| (k.clone(), whole(v))).collect(),
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_floats_are_integers_and_fractions_are_not() {
        let read = json!({"a": [3.0, -1.0, 0.5, 1e300, 7], "b": "3.0"});
        let want = json!({"a": [3, -1, 0.5, 1e300, 7], "b": "3.0"});
        assert_eq!(whole(&read).to_string(), want.to_string());
    }
}
