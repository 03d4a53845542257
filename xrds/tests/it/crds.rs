//! The CRDs that our own engine makes of the XRDs.

use ecp_schema::Structural;
use ecp_xr::crd::{claim_crd, composite_crd};
use ecp_xr::xrd::Xrd;
use ecp_xrds::{Flavour, kinds, version_schema};
use serde_json::{Value, json};

/// Every CRD of a flavour, with the kind it is for.
fn crds(flavour: Flavour) -> Vec<(&'static ecp_xrds::KindInfo, Value)> {
    let mut all = Vec::new();
    for (info, xrd) in kinds().iter().zip(ecp_xrds::xrds(flavour)) {
        let xrd = Xrd::parse(&xrd).unwrap();
        all.push((info, composite_crd(&xrd).unwrap()));
        if flavour == Flavour::Claims && info.namespaced() {
            all.push((info, claim_crd(&xrd).unwrap()));
        }
    }
    all
}

fn schema(crd: &Value) -> &Value {
    &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

#[test]
fn all_of_our_schema_is_in_the_crd() {
    for flavour in Flavour::ALL {
        for (info, crd) in crds(flavour) {
            let (ours, made) = (version_schema(info), schema(&crd));
            for part in ["spec", "status"] {
                let (ours, made) = (&ours["properties"][part], &made["properties"][part]);
                for (name, property) in ours["properties"].as_object().unwrap() {
                    assert_eq!(
                        &made["properties"][name], property,
                        "{} {part}.{name}",
                        info.kind
                    );
                }
                for (keyword, value) in ours.as_object().unwrap() {
                    match keyword.as_str() {
                        "properties" => {}
                        "required" | "x-kubernetes-validations" => {
                            let made = made[keyword].as_array().unwrap();
                            let kept = value.as_array().unwrap().iter().all(|v| made.contains(v));
                            assert!(kept, "{} {part} {keyword}", info.kind);
                        }
                        _ => assert_eq!(&made[keyword], value, "{} {part} {keyword}", info.kind),
                    }
                }
            }
        }
    }
}

#[test]
fn the_crds_are_structural_and_enforce_what_cannot_change() {
    for flavour in Flavour::ALL {
        for (info, crd) in crds(flavour) {
            let schema = Structural::compile(schema(&crd)).unwrap();
            if info.kind != "BlockStorage" {
                continue;
            }
            let disk = |size: i64, sku: &str| {
                json!({
                    "apiVersion": info.api_version(), "kind": info.kind,
                    "metadata": {"name": "d"},
                    "spec": {"sizeGB": size, "skuRef": {"resource": sku}},
                })
            };
            let old = disk(20, "RD500");
            let change = |new: Value| schema.validate(&new, Some(&old)).len();
            assert_eq!(change(disk(30, "RD500")), 0);
            assert_eq!(change(disk(10, "RD500")), 1);
            assert_eq!(change(disk(20, "RD100")), 1);
        }
    }
}

#[test]
fn kubectl_shows_state_and_readiness() {
    for flavour in Flavour::ALL {
        for (_, crd) in crds(flavour) {
            let columns = crd["spec"]["versions"][0]["additionalPrinterColumns"]
                .as_array()
                .unwrap();
            let names: Vec<_> = columns
                .iter()
                .map(|c| c["name"].as_str().unwrap())
                .collect();
            assert_eq!(names[0], "STATE");
            for wanted in ["READY", "AGE", "MESSAGE"] {
                assert_eq!(
                    names.iter().filter(|n| **n == wanted).count(),
                    1,
                    "{names:?}"
                );
            }
        }
    }
}
