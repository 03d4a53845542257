//! Request bodies: limits, content types, parsing.

use bytes::Bytes;
use http::{HeaderMap, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::limits::{
    BODY_BYTES_MAX, DISCARD_BYTES_MAX, DISCARD_TIMEOUT, FAULT_STEP_LEN_MAX, FAULTS_MAX,
};
use crate::protobuf::{self, ProtobufError};
use crate::status::Status;

/// Reads a whole body.
///
/// # Errors
/// 413: it is too long; 400: it breaks off.
pub(super) async fn read<B>(headers: &HeaderMap, body: B) -> Result<Bytes, Status>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let too_large = || {
        Status::too_large(format!(
            "Request entity is too large: limit is {BODY_BYTES_MAX}"
        ))
    };
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|n| n > BODY_BYTES_MAX as u64) {
        return Err(too_large());
    }
    match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(_) => Err(Status::bad_request("the request body could not be read")),
    }
}

/// Reads a short body that nobody wants: HTTP/1.1 has to close the connection of a request that was
/// answered before its body was read, and then the client's next request fails.
pub(crate) async fn discard<B>(headers: &HeaderMap, body: B)
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
    if announced.is_none_or(|n| n == 0 || n > DISCARD_BYTES_MAX) {
        return;
    }
    let read = Limited::new(body, DISCARD_BYTES_MAX).collect();
    // What does not come in time is not worth waiting for.
    let _ = tokio::time::timeout(DISCARD_TIMEOUT, read).await;
}

/// The media type of a body, without parameters; JSON where none is given.
pub(super) fn media_type(headers: &HeaderMap) -> String {
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .map(|v| {
            v.split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .to_ascii_lowercase()
        })
        .filter(|v| !v.is_empty())
        .unwrap_or_else(|| "application/json".into())
}

/// A parsed body.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    /// The value.
    pub(super) value: Value,
    /// Fields that occur more than once (the last one counts), as they are reported.
    pub(super) faults: Vec<String>,
}

/// Parses an object body, JSON or YAML by its content type.
///
/// # Errors
/// 415: another content type; 400: malformed.
pub(super) fn parse(headers: &HeaderMap, body: &[u8]) -> Result<Parsed, Status> {
    match media_type(headers).as_str() {
        "application/json" => json(body),
        "application/yaml" => yaml(body),
        protobuf::MEDIA_TYPE => from_protobuf(body),
        other => Err(unsupported(other, "application/json, application/yaml")),
    }
}

fn from_protobuf(body: &[u8]) -> Result<Parsed, Status> {
    let value = protobuf::decode(body).map_err(|error| match error {
        ProtobufError::UnknownKind { .. } => Status::unsupported_media_type(error.to_string()),
        _ => Status::bad_request(format!("the request body is not valid protobuf: {error}")),
    })?;
    Ok(Parsed {
        value,
        faults: Vec::new(),
    })
}

/// 415 for a content type.
pub(super) fn unsupported(media_type: &str, supported: &str) -> Status {
    Status::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: \
         {supported}; it was {media_type:?}"
    ))
}

/// Parses JSON.
pub(super) fn json(body: &[u8]) -> Result<Parsed, Status> {
    let mut duplicates = Vec::new();
    let mut de = serde_json::Deserializer::from_slice(body);
    let seed = Node {
        path: None,
        duplicates: &mut duplicates,
    };
    let value = seed
        .deserialize(&mut de)
        .and_then(|v| de.end().map(|()| v))
        .map_err(|e| Status::bad_request(format!("the request body is not valid JSON: {e}")))?;
    Ok(Parsed {
        value,
        faults: duplicates,
    })
}

/// Parses YAML, of which JSON is a part.
pub(super) fn yaml(body: &[u8]) -> Result<Parsed, Status> {
    if body.trim_ascii_start().starts_with(b"{")
        && let Ok(parsed) = json(body)
    {
        return Ok(parsed);
    }
    let text = std::str::from_utf8(body)
        .map_err(|_| Status::bad_request("the request body is not UTF-8"))?;
    let value: Value = serde_saphyr::from_str(text)
        .map_err(|e| Status::bad_request(format!("the request body is not valid YAML: {e}")))?;
    Ok(Parsed {
        value: normalized(value),
        faults: Vec::new(),
    })
}

fn normalized(value: Value) -> Value {
    match value {
        Value::Number(n) if n.is_f64() => number(n.as_f64().unwrap_or_default()),
        Value::Array(items) => items.into_iter().map(normalized).collect(),
        Value::Object(map) => map.into_iter().map(|(k, v)| (k, normalized(v))).collect(),
        other => other,
    }
}

/// A float as Kubernetes stores it: one without fraction becomes an integer, so that it reads back
/// the same for ever (Go prints 1.0 as 1).
fn number(float: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if float.fract() == 0.0 && float.abs() <= EXACT {
        Value::from(float as i64)
    } else {
        Number::from_f64(float).map_or(Value::Null, Value::Number)
    }
}

struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

enum Step<'a> {
    Field(&'a str),
    Index(usize),
}

impl Path<'_> {
    fn render(&self) -> String {
        let mut text = self.parent.map(Path::render).unwrap_or_default();
        match self.step {
            Step::Field(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                let end = name.floor_char_boundary(FAULT_STEP_LEN_MAX);
                text.push_str(name.get(..end).unwrap_or_default());
            }
            Step::Index(i) => text.push_str(&format!("[{i}]")),
        }
        text
    }
}

/// Builds a value and notes duplicate fields on the way.
struct Node<'a> {
    path: Option<&'a Path<'a>>,
    duplicates: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_f64<E: serde::de::Error>(self, v: f64) -> Result<Value, E> {
        if v.is_finite() {
            Ok(number(v))
        } else {
            Err(E::custom("number out of range"))
        }
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_string<E>(self, v: String) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let path = Path {
                parent: self.path,
                step: Step::Index(items.len()),
            };
            let seed = Node {
                path: Some(&path),
                duplicates: self.duplicates,
            };
            match seq.next_element_seed(seed)? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if key.contains('\0') {
                return Err(A::Error::custom("a field name holds a zero byte"));
            }
            let path = Path {
                parent: self.path,
                step: Step::Field(&key),
            };
            let seed = Node {
                path: Some(&path),
                duplicates: self.duplicates,
            };
            let value = map.next_value_seed(seed)?;
            if members.contains_key(&key) && self.duplicates.len() < FAULTS_MAX {
                self.duplicates
                    .push(format!("duplicate field {:?}", path.render()));
            }
            members.insert(key, value);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn duplicates_are_found_and_the_last_counts() {
        let parsed = json(br#"{"spec": {"a": 1, "l": [{"x": 1, "x": 2}], "a": 2}}"#).unwrap();
        assert_eq!(parsed.value, json!({"spec": {"a": 2, "l": [{"x": 2}]}}));
        assert_eq!(
            parsed.faults,
            [
                r#"duplicate field "spec.l[0].x""#,
                r#"duplicate field "spec.a""#
            ]
        );
    }

    #[test]
    fn reports_of_duplicates_are_no_larger_than_a_body() {
        let repeated = vec!["\"a\":1"; 1000].join(",");
        let body = format!("{{\"{}\":{{{repeated}}}}}", "k".repeat(100_000));
        let parsed = json(body.as_bytes()).unwrap();
        let bytes: usize = parsed.faults.iter().map(String::len).sum();
        assert!((1..BODY_BYTES_MAX).contains(&bytes), "{bytes}");
    }

    #[test]
    fn integers_keep_every_digit_and_whole_floats_become_integers() {
        let text = br#"[1000000, 9007199254740993, 9223372036854775807, 1.0, 1e3, 1.5, 1e300]"#;
        let value = json(text).unwrap().value;
        assert_eq!(
            value.to_string(),
            "[1000000,9007199254740993,9223372036854775807,1,1000,1.5,1e+300]"
        );
        assert_eq!(json(value.to_string().as_bytes()).unwrap().value, value);
    }

    #[test]
    fn malformed_bodies_are_bad_requests() {
        let deep = "[".repeat(100_000);
        for bad in [
            "",
            "{",
            "{} {}",
            "nul",
            deep.as_str(),
            "\u{0}",
            "{\"a\\u0000\":1}",
        ] {
            assert_eq!(json(bad.as_bytes()).unwrap_err().http_status(), 400);
        }
        assert_eq!(yaml(b"a: [").unwrap_err().http_status(), 400);
        assert_eq!(yaml(&[0xff, 0xfe]).unwrap_err().http_status(), 400);
    }

    #[test]
    fn yaml_reads_as_json_would() {
        let parsed = yaml(b"spec:\n  n: 1.0\n  s: \"yes\"\n").unwrap();
        assert_eq!(parsed.value, json!({"spec": {"n": 1, "s": "yes"}}));
    }
}
