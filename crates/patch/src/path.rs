//! Path elements: one step from an object to a field it holds.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Value};

/// One step of a path (structured-merge-diff's `fieldpath.PathElement`).
///
/// Elements borrow from the object or the stored `managedFields` they were read from.
#[derive(Clone, Debug)]
pub(crate) enum PathElement<'a> {
    /// A field of an object.
    Field(Cow<'a, str>),
    /// The item of a keyed list with these key fields, sorted by name.
    Key(Vec<(Cow<'a, str>, Cow<'a, Value>)>),
    /// The item of a set.
    Item(Cow<'a, Value>),
    /// An item by position; only ever read from stored sets.
    Index(i64),
}

/// Why the name of a path element cannot be decoded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ElementError {
    /// A kind of element this version does not know: to be skipped.
    Unknown,
    /// Not a path element.
    Malformed,
}

impl<'a> PathElement<'a> {
    pub(crate) fn field(name: &'a str) -> Self {
        Self::Field(Cow::Borrowed(name))
    }

    /// The element of a keyed list's item; `fields` in any order.
    pub(crate) fn key(mut fields: Vec<(Cow<'a, str>, Cow<'a, Value>)>) -> Self {
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        Self::Key(fields)
    }

    /// Reads an element as FieldsV1 writes it: `f:name`, `k:{...}`, `v:...`, `i:0`.
    pub(crate) fn decode(text: &'a str) -> Result<Self, ElementError> {
        let Some((kind, rest)) = text.split_at_checked(2) else {
            return Err(ElementError::Malformed);
        };
        match kind {
            "f:" => Ok(Self::field(rest)),
            "v:" => serde_json::from_str(rest)
                .map(|value| Self::Item(Cow::Owned(value)))
                .map_err(|_| ElementError::Malformed),
            "k:" => {
                let fields: Map<String, Value> =
                    serde_json::from_str(rest).map_err(|_| ElementError::Malformed)?;
                Ok(Self::key(
                    fields
                        .into_iter()
                        .map(|(name, value)| (Cow::Owned(name), Cow::Owned(value)))
                        .collect(),
                ))
            }
            "i:" => rest
                .parse()
                .map(Self::Index)
                .map_err(|_| ElementError::Malformed),
            _ if kind.ends_with(':') => Err(ElementError::Unknown),
            _ => Err(ElementError::Malformed),
        }
    }

    /// Writes the element as FieldsV1 does.
    pub(crate) fn encode(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(fields) => {
                let mut text = String::from("k:{");
                for (index, (name, value)) in fields.iter().enumerate() {
                    if index > 0 {
                        text.push(',');
                    }
                    text.push_str(&Value::String(name.to_string()).to_string());
                    text.push(':');
                    text.push_str(&json_text(value));
                }
                text.push('}');
                text
            }
            Self::Item(value) => format!("v:{}", json_text(value)),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Item(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

/// The notation of conflicts: `.field`, `[name="a"]`, `[="a"]`, `[0]`.
impl fmt::Display for PathElement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    if index > 0 {
                        f.write_str(",")?;
                    }
                    write!(f, "{name}={}", json_text(value))?;
                }
                f.write_str("]")
            }
            Self::Item(value) => write!(f, "[={}]", json_text(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A value as JSON, in one way: `1.0` is the number 1, as Go writes it.
fn json_text(value: &Value) -> String {
    /// Integers up to here are exact as floats.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < EXACT => format!("{float:.0}"),
            _ => number.to_string(),
        },
        _ => value.to_string(),
    }
}

impl PartialEq for PathElement<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PathElement<'_> {}

impl PartialOrd for PathElement<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PathElement<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => compare_keys(a, b),
            (Self::Item(a), Self::Item(b)) => compare_values(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

type KeyFields<'a> = [(Cow<'a, str>, Cow<'a, Value>)];

fn compare_keys(a: &KeyFields<'_>, b: &KeyFields<'_>) -> Ordering {
    for ((a_name, a_value), (b_name, b_value)) in a.iter().zip(b) {
        let order = a_name
            .cmp(b_name)
            .then_with(|| compare_values(a_value, b_value));
        if order != Ordering::Equal {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

/// A total order of JSON values in which `1` and `1.0` are equal, as in structured-merge-diff.
fn compare_values(a: &Value, b: &Value) -> Ordering {
    fn rank(value: &Value) -> u8 {
        match value {
            Value::Number(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Null => 5,
        }
    }
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => a
            .iter()
            .zip(b)
            .map(|(a, b)| compare_values(a, b))
            .find(|order| *order != Ordering::Equal)
            .unwrap_or_else(|| a.len().cmp(&b.len())),
        (Value::Object(a), Value::Object(b)) => a
            .iter()
            .zip(b)
            .map(|((a_key, a), (b_key, b))| a_key.cmp(b_key).then_with(|| compare_values(a, b)))
            .find(|order| *order != Ordering::Equal)
            .unwrap_or_else(|| a.len().cmp(&b.len())),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn compare_numbers(a: &serde_json::Number, b: &serde_json::Number) -> Ordering {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        return a.cmp(&b);
    }
    if let (Some(a), Some(b)) = (a.as_u64(), b.as_u64()) {
        return a.cmp(&b);
    }
    let float = |number: &serde_json::Number| number.as_f64().unwrap_or(0.0);
    float(a).total_cmp(&float(b))
}

/// Whether two values are the same, counting `1` and `1.0` as one.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b) == Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn elements_read_back_as_written() {
        for text in [
            "f:replicas",
            "f:with:colon",
            "f:",
            r#"k:{"containerPort":80,"protocol":"TCP"}"#,
            r#"v:"a""#,
            "v:1",
            "v:true",
            "v:null",
            "i:3",
        ] {
            let element = PathElement::decode(text).expect(text);
            assert_eq!(element.encode(), text);
        }
    }

    #[test]
    fn keys_are_sorted_by_name() {
        let element = PathElement::decode(r#"k:{"b": 1, "a": "x"}"#).expect("valid");
        assert_eq!(element.encode(), r#"k:{"a":"x","b":1}"#);
        assert_eq!(element.to_string(), r#"[a="x",b=1]"#);
    }

    #[test]
    fn unknown_kinds_are_told_from_garbage() {
        assert_eq!(PathElement::decode("x:1"), Err(ElementError::Unknown));
        for text in [
            "",
            "f",
            "é",
            "fx",
            "v:",
            "v:{",
            "k:1",
            "k:{\"a\":1}x",
            "i:a",
        ] {
            assert_eq!(
                PathElement::decode(text),
                Err(ElementError::Malformed),
                "{text}"
            );
        }
    }

    #[test]
    fn integers_and_floats_compare_as_numbers() {
        let element = |value: Value| PathElement::Item(Cow::Owned(value));
        assert_eq!(element(json!(1)), element(json!(1.0)));
        assert_eq!(element(json!(1.0)).encode(), "v:1");
        assert_eq!(element(json!(1.5)).encode(), "v:1.5");
        assert!(element(json!(1)) < element(json!(1.5)));
        assert!(element(json!(-1)) < element(json!(u64::MAX)));
        assert!(element(json!(9)) < element(json!("")));
        assert!(same(&json!({"a": [1]}), &json!({"a": [1.0]})));
        assert!(!same(&json!({"a": [1]}), &json!({"a": [2]})));
    }
}
