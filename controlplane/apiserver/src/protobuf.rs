//! Request bodies in Kubernetes' protobuf encoding, as client-go sends them for built-in kinds.
//!
//! Such clients have no fallback for what they send, so it must be understood; what they get back
//! is JSON, which they accept. The messages are those of `openapi/kinds.txt`, decoded straight into
//! JSON. Envelope: `k8s.io/apimachinery/pkg/runtime/serializer/protobuf`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ecp_meta::gvk::GroupVersionKind;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::openapi::kinds::{Field, Form, OBJECT_META, TYPES, Type, name_of};

/// Content type of such bodies.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

const MAGIC: &[u8] = b"k8s\0";
const METADATA: u32 = 1;

/// Why a body cannot be decoded.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum ProtobufError {
    /// It does not begin as such bodies do.
    #[error("it has no Kubernetes protobuf prefix")]
    Prefix,
    /// It is encoded once more, in a way we do not know.
    #[error("its content is encoded as {0:?}")]
    Encoding(String),
    /// It holds a kind that has no protobuf encoding here.
    #[error("{kind} of {api_version} has no protobuf encoding")]
    UnknownKind {
        /// Its version.
        api_version: String,
        /// Its kind.
        kind: String,
    },
    /// It breaks off, or has a field of the wrong wire type.
    #[error("malformed message {0}")]
    Malformed(String),
}

/// Decodes a body into the object's JSON.
pub(crate) fn decode(body: &[u8]) -> Result<Value, ProtobufError> {
    let envelope = body.strip_prefix(MAGIC).ok_or(ProtobufError::Prefix)?;
    let (mut api_version, mut kind) = (String::new(), String::new());
    let mut raw: &[u8] = &[];
    let malformed = || ProtobufError::Malformed("runtime.Unknown".to_owned());
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| malformed());
    for field in fields(envelope) {
        match field.ok_or_else(malformed)? {
            (1, Wire::Bytes(type_meta)) => {
                for field in fields(type_meta) {
                    match field.ok_or_else(malformed)? {
                        (1, Wire::Bytes(bytes)) => api_version = text(bytes)?,
                        (2, Wire::Bytes(bytes)) => kind = text(bytes)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            (3, Wire::Bytes(bytes)) if !bytes.is_empty() => {
                return Err(ProtobufError::Encoding(text(bytes)?));
            }
            _ => {}
        }
    }
    let gvk = GroupVersionKind::from_api_version(&api_version, &kind);
    let known = name_of(&gvk).and_then(|name| TYPES.get_key_value(name));
    // DeleteOptions exists in every group.
    let delete_options = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
    let known = known
        .or_else(|| (kind == "DeleteOptions").then(|| TYPES.get_key_value(delete_options))?)
        .filter(|(_, ty)| ty.fields.iter().all(|field| field.number.is_some()));
    let Some((name, ty)) = known else {
        return Err(ProtobufError::UnknownKind { api_version, kind });
    };
    let mut object = message(name, ty, raw)?;
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(object))
}

fn message(name: &str, ty: &Type, bytes: &[u8]) -> Result<Map<String, Value>, ProtobufError> {
    let malformed = || ProtobufError::Malformed(name.to_owned());
    let mut object = Map::new();
    for field in fields(bytes) {
        let (number, wire) = field.ok_or_else(malformed)?;
        if let Some(field) = ty.fields.iter().find(|field| field.number == Some(number)) {
            put(&mut object, field, wire).ok_or_else(malformed)??;
        } else if number == METADATA && ty.gvk.is_some() && !ty.is_without_metadata() {
            let Wire::Bytes(bytes) = wire else {
                return Err(malformed());
            };
            let meta = nested(OBJECT_META, bytes)?;
            object.insert("metadata".to_owned(), meta);
        }
        // Fields of newer versions are left out, as any protobuf decoder does.
    }
    Ok(object)
}

fn nested(name: &str, bytes: &[u8]) -> Result<Value, ProtobufError> {
    match TYPES.get(name) {
        Some(ty) => message(name, ty, bytes).map(Value::Object),
        None => Err(ProtobufError::Malformed(name.to_owned())),
    }
}

/// Adds one field of a message. `None` if its wire type is wrong.
fn put(
    object: &mut Map<String, Value>,
    field: &Field,
    wire: Wire<'_>,
) -> Option<Result<(), ProtobufError>> {
    let done = |value: Result<Value, ProtobufError>, to: &mut dyn FnMut(Value)| value.map(to);
    Some(match &field.form {
        Form::List(item) => {
            let list = object
                .entry(&field.name)
                .or_insert_with(|| Value::Array(Vec::new()));
            let list = list.as_array_mut()?;
            done(value(item, wire)?, &mut |value| list.push(value))
        }
        Form::Map(form) => {
            let Wire::Bytes(bytes) = wire else {
                return None;
            };
            let map = object
                .entry(&field.name)
                .or_insert_with(|| Value::Object(Map::new()));
            let map = map.as_object_mut()?;
            let (key, content) = entry(bytes)?;
            done(value(form, content)?, &mut |value| {
                map.insert(key.clone(), value);
            })
        }
        form => {
            let value = match value(form, wire)? {
                Ok(value) => value,
                Err(error) => return Some(Err(error)),
            };
            if field.optional || !is_zero(&value) {
                object.insert(field.name.clone(), value);
            }
            Ok(())
        }
    })
}

/// Key and value of a map entry.
fn entry(bytes: &[u8]) -> Option<(String, Wire<'_>)> {
    let (mut key, mut value) = (String::new(), Wire::Bytes(&[]));
    for field in fields(bytes) {
        match field? {
            (1, Wire::Bytes(bytes)) => key = String::from_utf8(bytes.to_vec()).ok()?,
            (2, wire) => value = wire,
            _ => {}
        }
    }
    Some((key, value))
}

fn value(form: &Form, wire: Wire<'_>) -> Option<Result<Value, ProtobufError>> {
    let value = match (form, wire) {
        (Form::Scalar("boolean", _), Wire::Varint(n)) => (n != 0).into(),
        (Form::Scalar("integer", "int32"), Wire::Varint(n)) => Value::from(n as i32),
        (Form::Scalar("integer", _), Wire::Varint(n)) => Value::from(n as i64),
        (Form::Scalar("string", "byte"), Wire::Bytes(bytes)) => STANDARD.encode(bytes).into(),
        (Form::Scalar("string", "date-time"), Wire::Bytes(bytes)) => time(bytes, 0)?,
        (Form::Scalar("string", "micro-time"), Wire::Bytes(bytes)) => time(bytes, 6)?,
        (Form::Scalar("string", _), Wire::Bytes(bytes)) => std::str::from_utf8(bytes).ok()?.into(),
        // FieldsV1: JSON in the first field of a message.
        (Form::Object, Wire::Bytes(bytes)) => json(bytes)?,
        // A list as the value of a map is a message with the items.
        (Form::List(item), Wire::Bytes(bytes)) => match items(item, bytes)? {
            Ok(items) => items,
            Err(error) => return Some(Err(error)),
        },
        (Form::Type(name), Wire::Bytes(bytes)) => return Some(nested(name, bytes)),
        _ => return None,
    };
    Some(Ok(value))
}

fn items(form: &Form, bytes: &[u8]) -> Option<Result<Value, ProtobufError>> {
    let mut list = Vec::new();
    for field in fields(bytes) {
        if let (1, wire) = field? {
            match value(form, wire)? {
                Ok(value) => list.push(value),
                Err(error) => return Some(Err(error)),
            }
        }
    }
    Some(Ok(Value::Array(list)))
}

fn json(bytes: &[u8]) -> Option<Value> {
    for field in fields(bytes) {
        if let (1, Wire::Bytes(raw)) = field? {
            return serde_json::from_slice(raw).ok();
        }
    }
    Some(Value::Null)
}

/// A message of seconds and nanoseconds. An empty one is no time at all.
fn time(bytes: &[u8], digits: usize) -> Option<Value> {
    if bytes.is_empty() {
        return Some(Value::Null);
    }
    let (mut seconds, mut nanos) = (0, 0);
    for field in fields(bytes) {
        match field? {
            (1, Wire::Varint(n)) => seconds = n as i64,
            (2, Wire::Varint(n)) => nanos = n as i32,
            _ => {}
        }
    }
    let time = Timestamp::new(seconds, nanos).ok()?;
    let format = match digits {
        0 => "%Y-%m-%dT%H:%M:%SZ",
        _ => "%Y-%m-%dT%H:%M:%S.%6fZ",
    };
    Some(time.strftime(format).to_string().into())
}

/// What absent means for a field that is always sent.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(n) => n.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Wire<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// Fixed 32 or 64 bits: no field here has it.
    Fixed,
}

/// The fields of a message: number and content. `None` where it breaks off.
fn fields(bytes: &[u8]) -> impl Iterator<Item = Option<(u32, Wire<'_>)>> {
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let bytes = rest.filter(|bytes| !bytes.is_empty())?;
        let field = split_field(bytes);
        rest = field.map(|(_, _, after)| after);
        Some(field.map(|(number, wire, _)| (number, wire)))
    })
}

fn split_field(bytes: &[u8]) -> Option<(u32, Wire<'_>, &[u8])> {
    let (key, rest) = varint(bytes)?;
    let number = u32::try_from(key >> 3).ok().filter(|number| *number > 0)?;
    match key & 7 {
        0 => varint(rest).map(|(value, rest)| (number, Wire::Varint(value), rest)),
        1 => rest.get(8..).map(|rest| (number, Wire::Fixed, rest)),
        2 => {
            let (length, rest) = varint(rest)?;
            let (content, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            Some((number, Wire::Bytes(content), rest))
        }
        5 => rest.get(4..).map(|rest| (number, Wire::Fixed, rest)),
        _ => None,
    }
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, bytes.get(at + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests;
