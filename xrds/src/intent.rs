//! The digest of what a user wrote.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Fields of `spec` that are Crossplane's own, in XRs and claims of either flavour. No SECA spec
/// can have them, and they are no part of the user's intent.
pub const CROSSPLANE_SPEC_FIELDS: [&str; 11] = [
    "claimRef",
    "compositeDeletePolicy",
    "compositionRef",
    "compositionRevisionRef",
    "compositionRevisionSelector",
    "compositionSelector",
    "compositionUpdatePolicy",
    "crossplane",
    "resourceRef",
    "resourceRefs",
    "writeConnectionSecretToRef",
];

/// The digest of everything in an object's `spec` but Crossplane's own fields: 32 hexadecimal
/// digits. While it differs from `status.intent.digest`, the function has not seen the last change.
///
/// An XR, its claim, and either of them after a trip through protobuf have the same digest: the
/// order of keys, members that are null, and how a number is written (`3` or `3.0`; integers are
/// compared as 64-bit floats, as protobuf's `Struct` holds them) make no difference.
pub fn intent_digest(object: &Value) -> String {
    let mut hash = Sha256::new();
    match object.get("spec") {
        Some(Value::Object(spec)) => {
            let own = |k: &str| !CROSSPLANE_SPEC_FIELDS.contains(&k);
            feed_object(&mut hash, spec.iter().filter(|(k, _)| own(k)));
        }
        // No spec is an empty spec.
        None | Some(Value::Null) => feed_object(&mut hash, std::iter::empty()),
        Some(other) => feed(&mut hash, other),
    }
    let digest = hash.finalize();
    digest[..16].iter().map(|b| format!("{b:02x}")).collect()
}

/// Feeds a self-delimiting encoding, so that no two different values feed the same bytes.
fn feed(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Null => hash.update(b"z"),
        Value::Bool(b) => hash.update(if *b { b"t" } else { b"f" }),
        Value::Number(n) => {
            // Adding zero turns -0 into 0.
            let bits = (n.as_f64().unwrap_or(f64::MAX) + 0.0).to_bits();
            hash.update(b"n");
            hash.update(bits.to_be_bytes());
        }
        Value::String(s) => feed_text(hash, s),
        Value::Array(items) => {
            hash.update(b"[");
            for item in items {
                feed(hash, item);
            }
            hash.update(b"]");
        }
        Value::Object(map) => feed_object(hash, map.iter()),
    }
}

fn feed_object<'a>(hash: &mut Sha256, members: impl Iterator<Item = (&'a String, &'a Value)>) {
    let mut members: Vec<_> = members.filter(|(_, v)| !v.is_null()).collect();
    members.sort_by_key(|(k, _)| k.as_str());
    hash.update(b"{");
    for (key, value) in members {
        feed_text(hash, key);
        feed(hash, value);
    }
    hash.update(b"}");
}

fn feed_text(hash: &mut Sha256, text: &str) {
    hash.update(b"s");
    hash.update((text.len() as u64).to_be_bytes());
    hash.update(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn digest(spec: Value) -> String {
        intent_digest(&json!({"spec": spec}))
    }

    #[test]
    fn only_what_the_user_wrote_counts() {
        let plain = digest(json!({"sizeGB": 10, "skuRef": {"resource": "a"}}));
        assert_eq!(plain.len(), 32);
        for same in [
            json!({"skuRef": {"resource": "a"}, "sizeGB": 10}),
            json!({"skuRef": {"resource": "a", "tenant": null}, "sizeGB": 10.0, "region": null}),
            json!({"skuRef": {"resource": "a"}, "sizeGB": 10, "crossplane": {"x": 1},
                "claimRef": {"name": "x"}, "resourceRefs": [], "resourceRef": {},
                "compositionUpdatePolicy": "Automatic", "compositeDeletePolicy": "Background"}),
        ] {
            assert_eq!(digest(same.clone()), plain, "{same}");
        }
        for other in [
            json!({"sizeGB": 11, "skuRef": {"resource": "a"}}),
            json!({"sizeGB": "10", "skuRef": {"resource": "a"}}),
            json!({"sizeGB": 10, "skuRef": {"resource": "a"}, "commonData": {"labels": {}}}),
            json!({"sizeGB": 10, "skuRef": {"resource": "a", "crossplane": 1}}),
        ] {
            assert_ne!(digest(other.clone()), plain, "{other}");
        }
        assert_ne!(
            digest(json!({"a": ["x", "y"]})),
            digest(json!({"a": ["xy"]}))
        );
        assert_ne!(digest(json!({"a": []})), digest(json!({"a": {}})));
        assert_eq!(intent_digest(&json!({})), digest(json!({})));
        assert_eq!(
            intent_digest(&json!({"metadata": {"generation": 3}})),
            digest(Value::Null)
        );
    }

    #[test]
    fn numbers_count_as_protobuf_holds_them() {
        assert_eq!(
            digest(json!({"n": 9_007_199_254_740_993_i64})),
            digest(json!({"n": 9_007_199_254_740_993_i64 as f64}))
        );
        assert_eq!(digest(json!({"n": 0})), digest(json!({"n": -0.0})));
        assert_ne!(digest(json!({"n": 0})), digest(json!({"n": 0.5})));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[a-c]{1,2}", inner, 0..4)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn nulls_and_order_make_no_difference(members in proptest::collection::btree_map("[a-f]{1,2}", any_json(), 0..6)) {
            let forward: serde_json::Map<String, Value> =
                members.clone().into_iter().filter(|(_, v)| !v.is_null()).collect();
            let backward: serde_json::Map<String, Value> = members.into_iter().rev().collect();
            prop_assert_eq!(digest(Value::Object(forward)), digest(Value::Object(backward)));
        }

        #[test]
        fn different_values_have_different_digests(a in any_json(), b in any_json()) {
            let (a, b) = (json!([a]), json!([b]));
            // Nulls in objects are dropped, so only values without any are surely different.
            let has_null = |v: &Value| v.to_string().contains("null");
            if a != b && !has_null(&a) && !has_null(&b) {
                let (x, y) = (digest(json!({"k": a})), digest(json!({"k": b})));
                let float = |v: &Value| v.to_string().chars().filter(char::is_ascii_digit).count() > 15;
                prop_assert!(x != y || float(&a) || float(&b));
            }
        }
    }
}
