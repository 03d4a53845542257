//! Values as rules see them (apiextensions `pkg/apiserver/schema/cel/values.go`).

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, NaiveDate, TimeDelta};
use kube_cel::cel;
use kube_cel::cel::objects::{Key, Map};
use serde_json::{Number, Value};

use super::cost::Measure;
use super::escape::escape;
use crate::format::FormatKind;
use crate::node::{Node, NodeType};

/// Converts a value, and measures it for the cost of rules.
///
/// Null fields of objects are absent to rules; nulls in maps and lists are null.
pub(super) fn to_cel(value: &Value, node: Option<&Node>, measure: &mut Measure) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(value) => cel::Value::Bool(*value),
        Value::Number(number) => number_to_cel(number, node),
        Value::String(text) => {
            measure.text(text.len());
            text_to_cel(text, node)
        }
        Value::Array(items) => {
            measure.collection(items.len());
            let item = node.and_then(|node| node.items.as_deref());
            let items = items.iter().map(|value| to_cel(value, item, measure));
            cel::Value::List(Arc::new(items.collect()))
        }
        Value::Object(fields) => {
            measure.collection(fields.len());
            let mut map = HashMap::with_capacity(fields.len());
            for (name, value) in fields {
                let property = node.and_then(|node| node.properties.get(name));
                let child = property.or_else(|| node.and_then(|node| node.additional.as_deref()));
                let is_data = property.is_none() && child.is_some();
                let key = if is_data {
                    Some(name.as_str().into())
                } else {
                    escape(name).filter(|_| !value.is_null())
                };
                if let Some(key) = key {
                    measure.text(key.len());
                    let key = Key::String(Arc::new(key.into_owned()));
                    map.insert(key, to_cel(value, child, measure));
                }
            }
            cel::Value::Map(Map { map: Arc::new(map) })
        }
    }
}

fn number_to_cel(number: &Number, node: Option<&Node>) -> cel::Value {
    let kind = node.and_then(|node| node.kind);
    let float = || cel::Value::Float(number.as_f64().unwrap_or(f64::NAN));
    match (kind, number.as_i64()) {
        (Some(NodeType::Number), _) | (_, None) if kind != Some(NodeType::Integer) => float(),
        (_, Some(value)) => cel::Value::Int(value),
        // Whole floats are integers to Kubernetes; the validator has seen that it is one.
        (_, None) => number
            .as_f64()
            .map_or_else(float, |value| cel::Value::Int(value as i64)),
    }
}

fn text_to_cel(text: &str, node: Option<&Node>) -> cel::Value {
    let checks = node.and_then(|node| node.checks.as_deref());
    let format = checks
        .and_then(|checks| checks.format.as_ref())
        .map(|format| format.kind);
    let value = match format {
        Some(FormatKind::DateTime) => DateTime::parse_from_rfc3339(text)
            .ok()
            .map(cel::Value::Timestamp),
        Some(FormatKind::Date) => NaiveDate::parse_from_str(text, "%Y-%m-%d")
            .ok()
            .and_then(|date| date.and_hms_opt(0, 0, 0))
            .map(|time| cel::Value::Timestamp(time.and_utc().fixed_offset())),
        Some(FormatKind::Duration) => crate::format::go_duration_nanos(text)
            .map(|nanos| cel::Value::Duration(TimeDelta::nanoseconds(nanos))),
        Some(FormatKind::Byte) => STANDARD
            .decode(text)
            .ok()
            .map(|bytes| cel::Value::Bytes(Arc::new(bytes))),
        _ => None,
    };
    value.unwrap_or_else(|| cel::Value::String(Arc::new(text.to_owned())))
}
