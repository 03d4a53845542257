//! The constraints of SECA section 2, by what is refused and which field is blamed.

use ecp_schema::Structural;
use ecp_xrds::{by_kind, kinds, validate, validate_update, version_schema};
use serde_json::{Value, json};

fn faults(kind: &str, spec: Value) -> Vec<String> {
    validate(by_kind(kind).unwrap(), &spec)
        .into_iter()
        .map(|e| e.field)
        .collect()
}

fn with(base: &Value, path: &str, value: Value) -> Value {
    let mut changed = base.clone();
    match changed.pointer_mut(path) {
        Some(at) => *at = value,
        None => {
            let (parent, key) = path.rsplit_once('/').unwrap();
            changed.pointer_mut(parent).unwrap()[key] = value;
        }
    }
    changed
}

/// Checks that `good` is valid, and that each change of it is blamed on the field.
fn check(kind: &str, good: Value, cases: &[(&str, Value, &str)]) {
    assert_eq!(faults(kind, good.clone()), Vec::<String>::new(), "{kind}");
    for (path, value, field) in cases {
        let bad = with(&good, path, value.clone());
        let found = faults(kind, bad);
        assert!(
            found.iter().any(|f| f == field),
            "{kind} {path} {value}: {found:?}"
        );
    }
}

#[test]
fn schemas_of_all_kinds_are_structural() {
    for info in kinds() {
        Structural::compile(&version_schema(info)).unwrap();
    }
}

#[test]
fn block_storages_are_checked() {
    check(
        "BlockStorage",
        json!({"sizeGB": 20, "skuRef": {"resource": "skus/RD500"}}),
        &[
            ("/sizeGB", json!(0), "spec.sizeGB"),
            ("/sizeGB", json!(-1), "spec.sizeGB"),
            ("/sizeGB", json!(1_000_001), "spec.sizeGB"),
            ("/sizeGB", json!("20"), "spec.sizeGB"),
            ("/sizeGB", json!(1.5), "spec.sizeGB"),
            ("/skuRef", json!("RD500"), "spec.skuRef"),
            ("/skuRef", json!({}), "spec.skuRef.resource"),
            ("/skuRef/resource", json!(""), "spec.skuRef.resource"),
            (
                "/skuRef/resource",
                json!("x".repeat(257)),
                "spec.skuRef.resource",
            ),
            (
                "/skuRef/tenant",
                json!("x".repeat(65)),
                "spec.skuRef.tenant",
            ),
            ("/sourceImageRef", json!({}), "spec.sourceImageRef.resource"),
            ("/region", json!("x".repeat(65)), "spec.region"),
        ],
    );
    assert_eq!(
        faults("BlockStorage", json!({})),
        ["spec.sizeGB", "spec.skuRef"]
    );
}

#[test]
fn images_are_checked() {
    check(
        "Image",
        json!({"blockStorageRef": {"resource": "d"}, "cpuArchitecture": "amd64"}),
        &[
            ("/cpuArchitecture", json!("riscv"), "spec.cpuArchitecture"),
            ("/boot", json!("uefi"), "spec.boot"),
            ("/initializer", json!("ignition"), "spec.initializer"),
            (
                "/blockStorageRef",
                json!({}),
                "spec.blockStorageRef.resource",
            ),
        ],
    );
}

#[test]
fn catalogues_are_checked() {
    check(
        "StorageSKU",
        json!({"iops": 500, "minVolumeSize": 50, "type": "remote-durable"}),
        &[
            ("/iops", json!(0), "spec.iops"),
            ("/iops", json!(45_001), "spec.iops"),
            ("/minVolumeSize", json!(0), "spec.minVolumeSize"),
            ("/type", json!("remote"), "spec.type"),
        ],
    );
    let provider = json!({"name": "seca.storage", "url": "https://example.org", "version": "v1"});
    check(
        "Region",
        json!({
            "availableZones": ["a", "b"],
            "providers": [provider],
            "cloud": {"name": "dummy", "location": "nowhere"},
        }),
        &[
            ("/availableZones", json!([]), "spec.availableZones"),
            (
                "/availableZones",
                json!(vec!["a"; 33]),
                "spec.availableZones",
            ),
            ("/availableZones", json!([""]), "spec.availableZones[0]"),
            (
                "/availableZones",
                json!(["x".repeat(33)]),
                "spec.availableZones[0]",
            ),
            ("/providers", json!([]), "spec.providers"),
            (
                "/providers",
                json!(vec![provider.clone(); 65]),
                "spec.providers",
            ),
            ("/providers/0/name", json!(""), "spec.providers[0].name"),
            (
                "/providers/0/url",
                json!("x".repeat(4001)),
                "spec.providers[0].url",
            ),
            (
                "/providers/0/version",
                json!("x".repeat(17)),
                "spec.providers[0].version",
            ),
            ("/cloud", json!({"name": "dummy"}), "spec.cloud.location"),
        ],
    );
}

#[test]
fn labels_and_annotations_have_bounds() {
    check(
        "Workspace",
        json!({"commonData": {"labels": {"Any key, é": "x".repeat(63)}, "annotations": {"a": "x".repeat(1024)},
            "extensions": {"free": [1, {"deep": null}]}}}),
        &[
            (
                "/commonData/labels/a",
                json!("x".repeat(64)),
                "spec.commonData.labels.a",
            ),
            ("/commonData/labels/a", json!(1), "spec.commonData.labels.a"),
            (
                "/commonData/annotations/a",
                json!("x".repeat(1025)),
                "spec.commonData.annotations.a",
            ),
        ],
    );
}

#[test]
fn what_cannot_change_does_not() {
    let disk = by_kind("BlockStorage").unwrap();
    let old = json!({"sizeGB": 20, "skuRef": {"resource": "RD500"}, "region": "r"});
    let blamed = |path: &str, value| -> Vec<String> {
        validate_update(disk, &with(&old, path, value), &old)
            .into_iter()
            .map(|e| e.to_string())
            .collect()
    };
    assert_eq!(blamed("/sizeGB", json!(30)), Vec::<String>::new());
    assert_eq!(blamed("/name", json!("d")), Vec::<String>::new());
    let shrunk = blamed("/sizeGB", json!(10));
    assert!(
        shrunk.iter().any(|e| e.contains("sizeGB cannot shrink")),
        "{shrunk:?}"
    );
    let moved = blamed("/skuRef/resource", json!("RD100"));
    assert!(
        moved.iter().any(|e| e.contains("skuRef cannot be changed")),
        "{moved:?}"
    );
    let moved = blamed("/region", json!("s"));
    assert!(
        moved.iter().any(|e| e.contains("region cannot be changed")),
        "{moved:?}"
    );
    let mut without = old.clone();
    without.as_object_mut().unwrap().remove("region");
    assert_eq!(validate_update(disk, &without, &old).len(), 1);
    assert_eq!(validate_update(disk, &old, &without), []);
}

#[test]
fn unknown_fields_are_pruned_but_free_ones_are_kept() {
    let prune = |kind: &str, spec: Value| {
        let mut object = json!({"spec": spec});
        let schema = Structural::compile(&version_schema(by_kind(kind).unwrap())).unwrap();
        schema.prune(&mut object);
        object["spec"].take()
    };
    assert_eq!(
        prune(
            "BlockStorage",
            json!({"sizeGB": 1, "size": 2, "skuRef": {"resource": "a", "id": 3},
                "commonData": {"extensions": {"x": {"y": 1}}, "z": 1}})
        ),
        json!({"sizeGB": 1, "skuRef": {"resource": "a"},
            "commonData": {"extensions": {"x": {"y": 1}}}})
    );
    let free = json!({"anything": {"at": ["all"]}, "region": "r"});
    assert_eq!(prune("Workspace", free.clone()), free);
}
