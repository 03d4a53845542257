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
fn networks_are_checked() {
    let cidr = |v4: &str| json!({"ipv4": v4});
    check(
        "Network",
        json!({
            "cidr": {"ipv4": "10.0.0.0/16", "ipv6": ""}, "skuRef": {"resource": "N1K"},
            "additionalCidrs": [{"ipv6": "fd00:1::/56"}, {"ipv4": "0.0.0.0/20"}],
        }),
        &[
            ("/cidr", json!({}), "spec.cidr"),
            ("/cidr", json!({"ipv4": "", "ipv6": ""}), "spec.cidr"),
            ("/cidr", cidr("10.0.0.0"), "spec.cidr.ipv4"),
            ("/cidr", cidr("1.0.0/8"), "spec.cidr.ipv4"),
            ("/cidr", cidr("fd00::/8"), "spec.cidr.ipv4"),
            ("/cidr", cidr("100.100.100.100/320"), "spec.cidr.ipv4"),
            ("/cidr", json!({"ipv6": "10.0.0.0/8"}), "spec.cidr.ipv6"),
            ("/cidr", json!({"ipv6": "fd00:"}), "spec.cidr.ipv6"),
            ("/additionalCidrs/1", json!({}), "spec.additionalCidrs[1]"),
            (
                "/additionalCidrs",
                vec![cidr("10.0.0.0/16"); 33].into(),
                "spec.additionalCidrs",
            ),
            ("/skuRef", json!({}), "spec.skuRef.resource"),
        ],
    );
    check(
        "Subnet",
        json!({
            "network": "net", "cidr": {"ipv4": "10.0.1.0/24"},
            "routeTableRef": {"resource": ""}, "zone": "",
        }),
        &[
            ("/network", json!(""), "spec.network"),
            ("/zone", json!("z".repeat(33)), "spec.zone"),
            ("/routeTableRef", json!({}), "spec.routeTableRef.resource"),
            ("/cidr/ipv4", json!("10.0.1.0/33"), "spec.cidr.ipv4"),
        ],
    );
    let route = |to: &str| json!({"destinationCidrBlock": to, "targetRef": {"resource": "igw"}});
    check(
        "RouteTable",
        json!({"network": "net", "routes": [route("0.0.0.0/0"), route("::/0")]}),
        &[
            ("/routes", json!([]), "spec.routes"),
            ("/routes", vec![route("::/0"); 1001].into(), "spec.routes"),
            (
                "/routes/1",
                route("not-a-cidr"),
                "spec.routes[1].destinationCidrBlock",
            ),
            (
                "/routes/0/targetRef",
                json!({"resource": ""}),
                "spec.routes[0].targetRef.resource",
            ),
        ],
    );
    check(
        "NIC",
        json!({"addresses": ["10.0.1.4", "::"], "subnetRef": {"resource": "networks/n/subnets/s"}}),
        &[
            ("/addresses", json!([]), "spec.addresses"),
            ("/addresses/1", json!("10.0.1.256"), "spec.addresses[1]"),
            ("/addresses/1", json!("x".repeat(40)), "spec.addresses[1]"),
            ("/subnetRef/resource", json!(""), "spec.subnetRef.resource"),
        ],
    );
    check(
        "PublicIP",
        json!({"version": "IPv4", "address": ""}),
        &[
            ("/version", json!("IPv5"), "spec.version"),
            ("/address", json!("1.2.3"), "spec.address"),
        ],
    );
}

#[test]
fn security_rules_are_checked() {
    let rule = json!({
        "direction": "ingress", "protocol": "tcp+udp", "version": "IPv6",
        "ports": {"from": 22, "to": 80, "list": [443]},
        "sourceRef": [{"resource": "55.44.33.11"}], "annotations": {"why": "web"},
    });
    let faults = [
        ("/direction", json!("inbound"), "direction"),
        ("/protocol", json!("sctp"), "protocol"),
        ("/version", json!("IPv5"), "version"),
        ("/ports", json!({}), "ports"),
        ("/ports/from", json!(0), "ports.from"),
        ("/ports/from", json!(81), "ports"),
        ("/ports/to", json!(65536), "ports.to"),
        ("/ports/list/0", json!(0), "ports.list[0]"),
        ("/ports/list", vec![1; 101].into(), "ports.list"),
        ("/protocol", json!("icmp"), ""),
        (
            "/annotations/why",
            json!("x".repeat(1025)),
            "annotations.why",
        ),
        ("/sourceRef/0", json!({}), "sourceRef[0].resource"),
    ];
    for (prefix, field, kind, spec) in [
        ("", "spec", "SecurityGroupRule", rule.clone()),
        (
            "/rules/0",
            "spec.rules[0]",
            "SecurityGroup",
            json!({"rules": [rule]}),
        ),
    ] {
        for (pointer, value, fault) in &faults {
            let at = match *fault {
                "" => field.to_owned(),
                fault => format!("{field}.{fault}"),
            };
            check(
                kind,
                spec.clone(),
                &[(&format!("{prefix}{pointer}"), value.clone(), &at)],
            );
        }
    }
    let icmp = |kind: i64, code: i64| json!({"direction": "egress", "protocol": "icmp", "icmp": {"type": kind, "code": code}});
    check(
        "SecurityGroupRule",
        icmp(8, 0),
        &[
            ("/icmp/type", json!(9), "spec.icmp.type"),
            ("/icmp/code", json!(6), "spec.icmp.code"),
            ("/protocol", json!("tcp"), "spec"),
        ],
    );
}

#[test]
fn instances_are_checked() {
    let disk = json!({"deviceRef": {"resource": "block-storages/boot"}});
    check(
        "Instance",
        json!({
            "skuRef": {"resource": "DXS"}, "zone": "a", "bootVolume": disk,
            "dataVolumes": [disk], "sshKeys": ["ssh-ed25519 AAAA"],
            "power": {"state": "on", "restartedAt": "2026-01-02T03:04:05.678Z"},
        }),
        &[
            ("/zone", json!(""), "spec.zone"),
            ("/zone", json!("z".repeat(33)), "spec.zone"),
            ("/bootVolume", json!({}), "spec.bootVolume.deviceRef"),
            ("/dataVolumes", vec![disk; 65].into(), "spec.dataVolumes"),
            ("/sshKeys", json!([""]), "spec.sshKeys[0]"),
            ("/sshKeys/0", json!("k".repeat(4097)), "spec.sshKeys[0]"),
            ("/sshKeys", vec!["k"; 33].into(), "spec.sshKeys"),
            ("/userData", json!("u".repeat(65537)), "spec.userData"),
            (
                "/antiAffinityGroup",
                json!("g".repeat(65)),
                "spec.antiAffinityGroup",
            ),
            ("/power/state", json!("standby"), "spec.power.state"),
            ("/power/restartedAt", json!("now"), "spec.power.restartedAt"),
        ],
    );
}

#[test]
fn roles_are_checked() {
    let permission = json!({"provider": "seca.storage", "resources": ["*"], "verb": ["get"]});
    check(
        "Role",
        json!({"permissions": [permission]}),
        &[
            ("/permissions", json!([]), "spec.permissions"),
            (
                "/permissions",
                vec![permission; 257].into(),
                "spec.permissions",
            ),
            (
                "/permissions/0/provider",
                json!(""),
                "spec.permissions[0].provider",
            ),
            (
                "/permissions/0/resources",
                json!([]),
                "spec.permissions[0].resources",
            ),
            (
                "/permissions/0/verb",
                vec!["get"; 17].into(),
                "spec.permissions[0].verb",
            ),
            (
                "/permissions/0/verb/0",
                json!("restarts"),
                "spec.permissions[0].verb[0]",
            ),
        ],
    );
    check(
        "RoleAssignment",
        json!({"subs": ["a@example.org"], "scopes": [{"tenants": ["t"]}], "roles": ["viewer"]}),
        &[
            ("/subs", json!([]), "spec.subs"),
            ("/subs/0", json!("s".repeat(129)), "spec.subs[0]"),
            ("/scopes", json!([]), "spec.scopes"),
            (
                "/scopes/0/tenants",
                json!([""]),
                "spec.scopes[0].tenants[0]",
            ),
            (
                "/scopes/0/tenants",
                vec!["t"; 65].into(),
                "spec.scopes[0].tenants",
            ),
            ("/roles", vec!["r"; 33].into(), "spec.roles"),
        ],
    );
}

#[test]
fn catalogues_are_checked() {
    check(
        "NetworkSKU",
        json!({"bandwidth": 1000, "packets": 200_000_000_000_i64}),
        &[
            ("/bandwidth", json!(800_001), "spec.bandwidth"),
            ("/packets", json!(200_000_000_001_i64), "spec.packets"),
        ],
    );
    check(
        "InstanceSKU",
        json!({"vCPU": 60, "ram": 65536}),
        &[
            ("/vCPU", json!(61), "spec.vCPU"),
            ("/ram", json!(0), "spec.ram"),
        ],
    );
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
