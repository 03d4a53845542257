//! Crossplane makes CRDs of XRDs and silently leaves out what stands in other places than these
//! (crossplane-runtime `pkg/xcrd`, `crd.go` and `schemas.go`). Written down here from its
//! documentation and sources, apart from our own engine, so that neither hides a fault of the other.

use std::collections::BTreeSet;

use ecp_xrds::{Flavour, kinds};
use serde_json::Value;

/// What is copied from the top level of a version's schema. `type` is always `object`.
const TOP: [&str; 4] = [
    "type",
    "description",
    "x-kubernetes-validations",
    "properties",
];
const SPEC: [&str; 7] = [
    "type",
    "properties",
    "required",
    "description",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
    "oneOf",
];
const STATUS: [&str; 6] = [
    "type",
    "properties",
    "required",
    "description",
    "x-kubernetes-validations",
    "oneOf",
];
/// Properties that Crossplane puts there itself, over ours.
const SPEC_RESERVED: [&str; 11] = [
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
const STATUS_RESERVED: [&str; 4] = [
    "conditions",
    "connectionDetails",
    "claimConditionTypes",
    "crossplane",
];

fn keys(value: &Value) -> BTreeSet<&str> {
    value
        .as_object()
        .into_iter()
        .flatten()
        .map(|(k, _)| k.as_str())
        .collect()
}

fn only<'a>(value: &'a Value, allowed: &[&str]) -> Vec<&'a str> {
    keys(value)
        .into_iter()
        .filter(|k| !allowed.contains(k))
        .collect()
}

#[test]
fn nothing_stands_where_crossplane_drops_it() {
    for flavour in Flavour::ALL {
        for xrd in ecp_xrds::xrds(flavour) {
            let name = xrd["metadata"]["name"].as_str().unwrap();
            for version in xrd["spec"]["versions"].as_array().unwrap() {
                let schema = &version["schema"]["openAPIV3Schema"];
                let none: [&str; 0] = [];
                assert_eq!(only(schema, &TOP), none, "{name}");
                assert_eq!(
                    only(&schema["properties"], &["spec", "status"]),
                    none,
                    "{name}"
                );
                let (spec, status) = (
                    &schema["properties"]["spec"],
                    &schema["properties"]["status"],
                );
                assert_eq!(only(spec, &SPEC), none, "{name} spec");
                assert_eq!(only(status, &STATUS), none, "{name} status");
                for reserved in SPEC_RESERVED {
                    assert!(
                        !keys(&spec["properties"]).contains(reserved),
                        "{name} {reserved}"
                    );
                }
                for reserved in STATUS_RESERVED {
                    assert!(
                        !keys(&status["properties"]).contains(reserved),
                        "{name} {reserved}"
                    );
                }
            }
        }
    }
}

#[test]
fn crossplane_accepts_every_xrd() {
    for flavour in Flavour::ALL {
        let mut plurals = BTreeSet::new();
        for xrd in ecp_xrds::xrds(flavour) {
            let spec = &xrd["spec"];
            let text = |v: &Value| v.as_str().unwrap().to_owned();
            let name = text(&xrd["metadata"]["name"]);
            assert_eq!(
                name,
                format!(
                    "{}.{}",
                    text(&spec["names"]["plural"]),
                    text(&spec["group"])
                )
            );
            // Crossplane puts the name into label values of its RBAC roles.
            assert!(name.len() <= 63, "{name}");
            let versions = spec["versions"].as_array().unwrap();
            let referenceable = versions
                .iter()
                .filter(|v| v["referenceable"] == true)
                .count();
            assert_eq!(referenceable, 1, "{name}");
            assert!(
                spec.get("conversion").is_none(),
                "v1 refuses strategy None written out"
            );
            for names in [Some(&spec["names"]), spec.get("claimNames")]
                .into_iter()
                .flatten()
            {
                for lower in ["plural", "singular"] {
                    assert_eq!(text(&names[lower]), text(&names[lower]).to_lowercase());
                }
                assert!(plurals.insert((text(&names["plural"]), text(&spec["group"]))));
            }
            let scope = text(&spec["scope"]);
            match flavour {
                Flavour::V2 => {
                    assert_eq!(text(&xrd["apiVersion"]), "apiextensions.crossplane.io/v2");
                    assert!(["Namespaced", "Cluster"].contains(&scope.as_str()));
                    assert!(spec.get("claimNames").is_none());
                    assert!(spec.get("connectionSecretKeys").is_none());
                }
                Flavour::Claims => {
                    assert_eq!(text(&xrd["apiVersion"]), "apiextensions.crossplane.io/v1");
                    assert_eq!(scope, "LegacyCluster");
                    if let Some(claim) = spec.get("claimNames") {
                        for field in ["kind", "plural", "singular", "listKind"] {
                            assert_ne!(claim[field], spec["names"][field]);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn the_manifest_of_a_user_is_the_same_in_both_flavours() {
    for (info, (v2, claims)) in kinds().iter().zip(
        ecp_xrds::xrds(Flavour::V2)
            .into_iter()
            .zip(ecp_xrds::xrds(Flavour::Claims)),
    ) {
        let spec = &claims["spec"];
        let users = spec.get("claimNames").unwrap_or(&spec["names"]);
        assert_eq!(users, &v2["spec"]["names"], "{}", info.kind);
        assert_eq!(spec["versions"], v2["spec"]["versions"]);
        assert_eq!(spec.get("claimNames").is_some(), info.namespaced());
    }
}
