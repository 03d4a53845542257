use std::path::Path;

use serde_json::json;

use super::*;

/// A field with length-delimited content.
fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
    field.extend_from_slice(content);
    field
}

fn number(field: u8, value: u8) -> Vec<u8> {
    vec![field << 3, value]
}

fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let meta = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
    [
        MAGIC.to_vec(),
        bytes(1, &meta),
        bytes(2, raw),
        bytes(3, b""),
        bytes(4, b""),
    ]
    .concat()
}

#[test]
fn a_secret_becomes_the_json_it_stands_for() {
    let meta = [
        bytes(1, b"s"),
        bytes(2, b""),
        bytes(8, &[]),
        bytes(11, &[bytes(1, b"app"), bytes(2, b"x")].concat()),
        number(7, 0),
    ]
    .concat();
    let raw = [
        bytes(1, &meta),
        bytes(2, &[bytes(1, b"k"), bytes(2, b"v")].concat()),
        bytes(3, b"Opaque"),
        number(5, 0),
    ]
    .concat();
    assert_eq!(
        decode(&envelope("v1", "Secret", &raw)).unwrap(),
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": "s", "labels": {"app": "x"}},
            "data": {"k": "dg=="}, "immutable": false,
        })
    );
}

#[test]
fn times_keep_their_precision() {
    let time = [number(1, 100), vec![2 << 3, 0xe8, 0x07]].concat();
    let spec = [bytes(1, b"me"), bytes(4, &time), number(2, 15)].concat();
    let lease = decode(&envelope(
        "coordination.k8s.io/v1",
        "Lease",
        &bytes(2, &spec),
    ))
    .unwrap();
    assert_eq!(lease["spec"]["renewTime"], "1970-01-01T00:01:40.000001Z");
    assert_eq!(lease["spec"]["leaseDurationSeconds"], 15);
}

#[test]
fn what_is_not_understood_is_an_error() {
    assert_eq!(decode(b"{}"), Err(ProtobufError::Prefix));
    let unknown = decode(&envelope("apps/v1", "Deployment", b"")).unwrap_err();
    assert!(matches!(unknown, ProtobufError::UnknownKind { .. }));
    let definition = "CustomResourceDefinition";
    let no_message = decode(&envelope("apiextensions.k8s.io/v1", definition, b"")).unwrap_err();
    assert!(matches!(no_message, ProtobufError::UnknownKind { .. }));
    // `data` as a number.
    let wrong = decode(&envelope("v1", "ConfigMap", &number(2, 1))).unwrap_err();
    assert!(matches!(wrong, ProtobufError::Malformed(_)));
}

#[test]
fn broken_bodies_are_errors_and_never_panics() {
    let good = envelope(
        "v1",
        "ConfigMap",
        &bytes(2, &[bytes(1, b"k"), bytes(2, b"v")].concat()),
    );
    assert!(decode(&good).is_ok());
    for cut in 0..good.len() {
        let _ = decode(&good[..cut]);
    }
    for at in 0..good.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut broken = good.clone();
            broken[at] ^= flip;
            let _ = decode(&broken);
        }
    }
}

/// Without what JSON and protobuf write differently: empty values.
fn pruned(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().map(|(k, v)| (k.clone(), pruned(v)));
            kept.filter(|(_, v)| !is_zero(v))
                .collect::<Map<_, _>>()
                .into()
        }
        Value::Array(items) => items.iter().map(pruned).collect(),
        other => other.clone(),
    }
}

/// Every built-in kind, fully populated, as upstream encodes it. `ECP_TEST_K8S_API` is the directory
/// of the Go module `k8s.io/api`.
#[test]
fn upstream_fixtures_decode_to_their_json() {
    let Some(api) = std::env::var_os("ECP_TEST_K8S_API") else {
        tracing::info!("skipped: ECP_TEST_K8S_API is not set");
        return;
    };
    let dir = Path::new(&api).join("testdata/HEAD");
    let mut seen = 0;
    for ty in TYPES.values() {
        let Some(gvk) = ty
            .gvk
            .as_ref()
            .filter(|gvk| gvk.group != "apiextensions.k8s.io")
        else {
            continue;
        };
        let group = if gvk.group.is_empty() {
            "core"
        } else {
            gvk.group.as_str()
        };
        let stem = dir.join(format!("{group}.{}.{}", gvk.version, gvk.kind));
        let Ok(body) = std::fs::read(stem.with_extension(format!("{}.pb", gvk.kind))) else {
            continue;
        };
        let json = std::fs::read(stem.with_extension(format!("{}.json", gvk.kind))).unwrap();
        let want: Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(
            pruned(&decode(&body).unwrap()),
            pruned(&want),
            "{}",
            gvk.kind
        );
        seen += 1;
    }
    assert!(seen >= 14, "only {seen} fixtures");
}
