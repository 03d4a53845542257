//! Keys and encoding of objects in the store.
//!
//! Key: `/<group or core>/<resource>/<cluster>/<namespace or ->/<name>`.
//!
//! Value: two little-endian 32-bit numbers, then the object's JSON without `resourceVersion`. The
//! first number is the offset in the JSON just after `"metadata":{`, where reads splice the
//! revision in; the second is the digest of the schema the object was defaulted with. The JSON
//! starts with `apiVersion`, `kind`, `metadata`; all other members are sorted. So equal objects
//! have equal bytes, and reads copy bytes instead of parsing.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use ecp_meta::cluster::ClusterName;
use ecp_store::{Entry, Revision};
use serde_json::{Map, Value};

use crate::handlers::events;
use crate::registry::ResourceInfo;

const HEADER_LEN: usize = 8;
/// Namespace segment of objects without namespace. No namespace can have this name.
const NO_NAMESPACE: &str = "-";

/// The key of an object.
pub fn key(
    info: &ResourceInfo,
    cluster: &ClusterName,
    namespace: Option<&str>,
    name: &str,
) -> Arc<str> {
    format!(
        "{}{cluster}/{}/{name}",
        info.key_prefix(),
        namespace.unwrap_or(NO_NAMESPACE)
    )
    .into()
}

/// The prefix of the keys of a list; without a cluster, of all clusters.
pub fn prefix(
    info: &ResourceInfo,
    cluster: Option<&ClusterName>,
    namespace: Option<&str>,
) -> String {
    let mut prefix = info.key_prefix();
    if let Some(cluster) = cluster {
        prefix.push_str(cluster.as_str());
        prefix.push('/');
        if let Some(namespace) = namespace {
            prefix.push_str(namespace);
            prefix.push('/');
        }
    }
    prefix
}

/// The parts of an object's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyParts<'a> {
    /// Group; empty for core.
    pub group: &'a str,
    /// Plural.
    pub resource: &'a str,
    /// Cluster path.
    pub cluster: &'a str,
    /// Namespace.
    pub namespace: Option<&'a str>,
    /// Name.
    pub name: &'a str,
}

/// Takes a key apart; `None` for a key that no object has.
pub fn parse_key(key: &str) -> Option<KeyParts<'_>> {
    let mut parts = key.strip_prefix('/')?.splitn(5, '/');
    let group = parts.next()?;
    Some(KeyParts {
        group: if group == "core" { "" } else { group },
        resource: parts.next()?,
        cluster: parts.next()?,
        namespace: parts.next().map(Some)?.filter(|ns| *ns != NO_NAMESPACE),
        name: parts.next()?,
    })
}

/// Encodes an object for the store.
pub fn encode(info: &ResourceInfo, object: &Value) -> Bytes {
    let converted;
    let object = if is_view(info) {
        converted = events::to_core(object);
        &converted
    } else {
        object
    };
    encode_as(&info.storage_api_version, info.schema_id, object)
}

fn encode_as(api_version: &str, schema_id: u32, object: &Value) -> Bytes {
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(&[0; HEADER_LEN]);
    out.extend_from_slice(b"{\"apiVersion\":");
    write(&mut out, &api_version);
    out.extend_from_slice(b",\"kind\":");
    write(&mut out, object.get("kind").unwrap_or(&Value::Null));
    out.extend_from_slice(b",\"metadata\":{");
    let splice = (out.len() - HEADER_LEN) as u32;
    if let Some(metadata) = object.get("metadata").and_then(Value::as_object) {
        write_members(&mut out, metadata, true, |k| k != "resourceVersion");
    }
    out.push(b'}');
    if let Some(object) = object.as_object() {
        write_members(&mut out, object, false, |k| {
            !matches!(k, "apiVersion" | "kind" | "metadata")
        });
    }
    out.push(b'}');
    out[..4].copy_from_slice(&splice.to_le_bytes());
    out[4..HEADER_LEN].copy_from_slice(&schema_id.to_le_bytes());
    out.into()
}

fn write_members(
    out: &mut Vec<u8>,
    members: &Map<String, Value>,
    mut first: bool,
    keep: impl Fn(&str) -> bool,
) {
    for (key, value) in members.iter().filter(|(k, _)| keep(k)) {
        if !first {
            out.push(b',');
        }
        first = false;
        write(out, key);
        out.push(b':');
        write(out, value);
    }
}

fn write(out: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    // Writing JSON values into memory has no way to fail.
    let _ = serde_json::to_writer(out, value);
}

/// Whether objects of this version are stored under another group's kind.
fn is_view(info: &ResourceInfo) -> bool {
    info.storage.group != info.gvk.group
}

struct Stored<'a> {
    splice: usize,
    schema_id: u32,
    json: &'a [u8],
}

fn stored(value: &[u8]) -> Option<Stored<'_>> {
    let (header, json) = value.split_at_checked(HEADER_LEN)?;
    let number = |at: usize| {
        header
            .get(at..at + 4)?
            .try_into()
            .ok()
            .map(u32::from_le_bytes)
    };
    let splice = number(0)? as usize;
    (splice < json.len()).then_some(Stored {
        splice,
        schema_id: number(4)?,
        json,
    })
}

/// Brings a stored value to the form this version reads: defaulted by its present schema.
/// Borrowed, unless the schema has changed since the write.
fn current<'a>(info: &ResourceInfo, value: &'a [u8]) -> Cow<'a, [u8]> {
    let Some(at_rest) = stored(value) else {
        return Cow::Borrowed(value);
    };
    if is_view(info) {
        let object = events::from_core(&parse(at_rest.json));
        return Cow::Owned(encode_as(&info.api_version(), 0, &object).into());
    }
    match &info.schema {
        Some(schema) if at_rest.schema_id != info.schema_id => {
            let mut object = parse(at_rest.json);
            schema.prune(&mut object);
            schema.default(&mut object);
            let encoded = encode_as(&info.storage_api_version, info.schema_id, &object);
            Cow::Owned(encoded.into())
        }
        _ => Cow::Borrowed(value),
    }
}

fn parse(json: &[u8]) -> Value {
    serde_json::from_slice(json).unwrap_or_else(|error| {
        tracing::error!(%error, "stored object is not JSON");
        Value::Null
    })
}

/// Appends an object's JSON, at this version, with a resource version.
pub fn write_json(out: &mut Vec<u8>, info: &ResourceInfo, value: &[u8], revision: Revision) {
    let value = current(info, value);
    let Some(stored) = stored(&value) else {
        out.extend_from_slice(b"null");
        return;
    };
    let (mut head, tail) = stored.json.split_at(stored.splice);
    out.reserve(stored.json.len() + 64);
    if !head.starts_with(&info.json_head) {
        // Stored at another version. Conversion strategy None: only the apiVersion differs.
        out.extend_from_slice(&info.json_head);
        head = after_first_member(head);
    }
    out.extend_from_slice(head);
    if revision == Revision(0) {
        // Of a dry run: there is no such revision.
        out.extend_from_slice(tail);
        return;
    }
    out.extend_from_slice(b"\"resourceVersion\":\"");
    out.extend_from_slice(revision.to_string().as_bytes());
    out.extend_from_slice(if tail.starts_with(b"}") {
        b"\""
    } else {
        b"\","
    });
    out.extend_from_slice(tail);
}

/// What follows the first comma outside of a text: stored JSON begins with `apiVersion`, a text.
fn after_first_member(head: &[u8]) -> &[u8] {
    head.iter()
        .position(|b| *b == b',')
        .and_then(|comma| head.get(comma + 1..))
        .unwrap_or(head)
}

/// An object's JSON, at this version, with a resource version.
pub fn json(info: &ResourceInfo, value: &[u8], revision: Revision) -> Bytes {
    let mut out = Vec::new();
    write_json(&mut out, info, value, revision);
    out.into()
}

/// An object at this version, with its resource version.
pub fn decode(info: &ResourceInfo, entry: &Entry) -> Value {
    decode_at(info, &entry.value, entry.modified)
}

/// An object at this version, with a resource version.
pub fn decode_at(info: &ResourceInfo, value: &[u8], revision: Revision) -> Value {
    let value = current(info, value);
    let mut object = stored(&value).map_or(Value::Null, |s| parse(s.json));
    if object.is_object() {
        object["apiVersion"] = info.api_version().into();
        ecp_meta::object::metadata_mut(&mut object)
            .insert("resourceVersion".into(), revision.to_string().into());
    }
    object
}

/// The stored JSON text, without resource version, as it stands.
pub fn raw_json(value: &[u8]) -> &[u8] {
    stored(value).map_or(&[], |s| s.json)
}

/// Whether an encoded object is being deleted. Parses only when the text hints at it.
pub fn is_deleting(value: &[u8]) -> bool {
    let json = raw_json(value);
    const NEEDLE: &[u8] = b"\"deletionTimestamp\":";
    json.windows(NEEDLE.len()).any(|w| w == NEEDLE) && ecp_meta::object::is_deleting(&parse(json))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::Registry;

    fn info(group: &str, version: &str, plural: &str) -> Arc<ResourceInfo> {
        let resources = Registry::new().resources(&ClusterName::root());
        let found = resources.find(group, version, plural).unwrap();
        Arc::clone(found.info())
    }

    #[test]
    fn keys_round_trip_and_stay_apart() {
        let secrets = info("", "v1", "secrets");
        let team: ClusterName = "root:team-a".parse().unwrap();
        let k = key(&secrets, &team, Some("ns"), "x");
        assert_eq!(&*k, "/core/secrets/root:team-a/ns/x");
        let parts = parse_key(&k).unwrap();
        assert_eq!((parts.group, parts.cluster), ("", "root:team-a"));
        assert_eq!((parts.namespace, parts.name), (Some("ns"), "x"));
        assert!(!k.starts_with(&prefix(&secrets, Some(&ClusterName::root()), None)));
        let namespaces = info("", "v1", "namespaces");
        let k = key(&namespaces, &team, None, "x");
        assert_eq!(parse_key(&k).unwrap().namespace, None);
    }

    #[test]
    fn a_revision_is_spliced_in_and_never_stored() {
        let secrets = info("", "v1", "secrets");
        let object = json!({
            "apiVersion": "v1", "kind": "Secret", "data": {"a": "YQ=="},
            "metadata": {"name": "x", "resourceVersion": "7", "uid": "u"}
        });
        let value = encode(&secrets, &object);
        assert!(!String::from_utf8_lossy(&value).contains("resourceVersion"));
        let text = json(&secrets, &value, Revision(12));
        let read: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(read["metadata"]["resourceVersion"], "12");
        assert_eq!(read["data"]["a"], "YQ==");
        assert_eq!(read, decode_at(&secrets, &value, Revision(12)));
        let mut other = object.clone();
        other["metadata"]["resourceVersion"] = "8".into();
        assert_eq!(value, encode(&secrets, &other));
    }

    #[test]
    fn a_deletion_is_seen_but_not_in_annotations() {
        let secrets = info("", "v1", "secrets");
        let mut object = json!({
            "kind": "Secret",
            "metadata": {"name": "x", "annotations": {"deletionTimestamp": "y"}}
        });
        assert!(!is_deleting(&encode(&secrets, &object)));
        object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert!(is_deleting(&encode(&secrets, &object)));
    }

    #[test]
    fn garbage_reads_as_null() {
        let secrets = info("", "v1", "secrets");
        assert_eq!(&json(&secrets, b"", Revision(1))[..], b"null");
        assert_eq!(&json(&secrets, &[255; 9], Revision(1))[..], b"null");
    }
}
