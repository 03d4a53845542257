//! Names of objects, and the SECA part of a spec.

use ecp_meta::{names, object};
use serde_json::{Map, Value};

use crate::intent::CROSSPLANE_SPEC_FIELDS;
use crate::kinds::KindInfo;

/// Fields of `spec` that stand beside the SECA spec and are not shown as part of it over REST.
/// Like [`CROSSPLANE_SPEC_FIELDS`], no SECA spec of ours uses these names, and a Workspace's free
/// spec cannot.
pub const ENVELOPE_SPEC_FIELDS: [&str; 7] = [
    "cloud",
    "commonData",
    "name",
    "network",
    "power",
    "region",
    "repeatedAt",
];

/// The object name for a SECA name of a kind.
///
/// Names of catalogue entries may have upper-case letters (SECA section 4.3 has `RD500`), which
/// Kubernetes refuses: they are lowered, and `spec.name` keeps the SECA name. So two entries of one
/// catalogue cannot differ in case alone.
pub fn object_name(info: &KindInfo, seca_name: &str) -> String {
    if info.catalogue {
        names::object_name(&seca_name.to_ascii_lowercase())
    } else {
        names::object_name(seca_name)
    }
}

/// The SECA name of an object: `spec.name`, else `metadata.name`.
pub fn seca_name(object: &Value) -> &str {
    object
        .get("spec")
        .and_then(|s| s.get("name"))
        .and_then(Value::as_str)
        .unwrap_or_else(|| object::name(object))
}

/// The SECA spec of an object: `spec` without [`ENVELOPE_SPEC_FIELDS`] and Crossplane's fields.
pub fn seca_spec(object: &Value) -> Map<String, Value> {
    let hidden = |k: &str| ENVELOPE_SPEC_FIELDS.contains(&k) || CROSSPLANE_SPEC_FIELDS.contains(&k);
    object
        .get("spec")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(k, _)| !hidden(k))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::by_kind;

    #[test]
    fn names_of_catalogue_entries_are_lowered() {
        let sku = by_kind("StorageSKU").unwrap();
        let disk = by_kind("BlockStorage").unwrap();
        assert_eq!(object_name(sku, "RD500"), "rd500");
        assert_eq!(object_name(disk, "disk-1"), "disk-1");
        assert_eq!(object_name(disk, &"d".repeat(128)).len(), 63);
    }

    #[test]
    fn the_seca_side_of_an_object_is_without_ours() {
        let object = json!({
            "metadata": {"name": "rd500"},
            "spec": {
                "name": "RD500", "region": "r", "commonData": {}, "crossplane": {}, "claimRef": {},
                "iops": 500,
            },
        });
        assert_eq!(seca_name(&object), "RD500");
        assert_eq!(Value::Object(seca_spec(&object)), json!({"iops": 500}));
        assert_eq!(
            seca_name(&json!({"metadata": {"name": "a"}, "spec": 1})),
            "a"
        );
        assert_eq!(seca_spec(&json!(null)), Map::new());
    }
}
