//! What breaks a constraint is refused, and the refusal names the place (contract, sections 2.6,
//! 3.1, 3.7).

use serde_json::{Value, json};

use crate::bodies::{self, reference};
use crate::kinds::*;
use crate::site::Site;
use crate::world::Refusal;
use crate::{cases, cases_of_kinds};

cases!(Two specs_that_are_no_objects);
cases_of_kinds!(COMMON: Two names_and_common_fields);
cases_of_kinds!(SPECS: Two specs);

/// Stands for a member that is left out.
fn absent() -> Value {
    json!("\u{0}absent")
}

/// Puts a value at a JSON pointer; objects on the way are made.
fn set(body: &mut Value, pointer: &str, value: Value) {
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    if body.pointer(parent).is_none_or(Value::is_null) {
        set(body, parent, json!({}));
    }
    match body.pointer_mut(parent).unwrap() {
        Value::Object(members) if value == absent() => drop(members.remove(last)),
        Value::Object(members) => drop(members.insert(last.into(), value)),
        Value::Array(items) => items[last.parse::<usize>().unwrap()] = value,
        other => panic!("{pointer}: {other}"),
    }
}

/// The refusal blames this place, or a part of it, or what it is a part of.
async fn refused(site: &Site, kind: &Kind, name: &str, body: &Value, pointer: &str) {
    let answer = site.put_body(kind, name, body).await;
    let shown = || format!("{pointer}: {:.300}\n{answer:#?}", body.to_string());
    let code = site.world.code(Refusal::Invalid);
    assert_eq!(answer.status, code, "{}", shown());
    let blamed = answer.sources();
    let fits = |source: &&str| source.starts_with(pointer) || pointer.starts_with(*source);
    assert!(blamed.iter().any(fits), "{}", shown());
}

async fn names_and_common_fields(site: Site, kind: &'static Kind) {
    site.prepare(kind).await;
    let good = json!({ "spec": bodies::minimal(&site, kind) });
    let long = "a".repeat(129);
    for name in [
        "A", "a_b", "-a", "a-", "a..b", ".a", "%C3%A4", "a%2Fb", "a%20b", &long,
    ] {
        refused(&site, kind, name, &good, "/metadata/name").await;
    }
    for (pointer, value) in [
        ("/labels/k", json!("v".repeat(64))),
        ("/labels/k", json!(1)),
        ("/labels/k", json!({})),
        ("/labels", json!(["k"])),
        ("/annotations/k", json!("v".repeat(1025))),
        ("/annotations/k", json!(true)),
        ("/annotations", json!("k")),
        ("/extensions", json!(1)),
        ("/metadata/region", json!(7)),
        ("/spec", json!([])),
        ("/spec", json!("x")),
    ] {
        let mut body = good.clone();
        set(&mut body, pointer, value);
        refused(&site, kind, "x", &body, pointer).await;
    }
    site.get(kind, "x").await.ok(404);
}

async fn specs_that_are_no_objects(site: Site) {
    for body in [json!([]), json!(1), json!("x"), json!(null)] {
        let answer = site.put_body(&WORKSPACE, "x", &body).await;
        answer.ok(site.world.code(Refusal::Invalid));
    }
}

async fn specs(site: Site, kind: &'static Kind) {
    site.prepare(kind).await;
    let good = json!({ "spec": bodies::minimal(&site, kind) });
    for (field, value) in faults(kind) {
        let pointer = format!("/spec/{field}");
        let mut body = good.clone();
        set(&mut body, &pointer, value);
        refused(&site, kind, "x", &body, &pointer).await;
    }
    site.get(kind, "x").await.ok(404);
    // The same faults in a change leave what is there as it was.
    if let Some((field, value)) = faults(kind).pop() {
        let before = site.put_body(kind, "x", &good).await.ok(201);
        let mut body = good.clone();
        set(&mut body, &format!("/spec/{field}"), value);
        refused(&site, kind, "x", &body, &format!("/spec/{field}")).await;
        let after = site.get(kind, "x").await.ok(200);
        assert_eq!(after["spec"], before["spec"]);
        assert_eq!(after["metadata"]["resourceVersion"], 1);
    }
}

type Faults = Vec<(&'static str, Value)>;

fn text(n: usize) -> Value {
    json!("x".repeat(n))
}

fn times(n: usize, value: Value) -> Value {
    vec![value; n].into()
}

/// Places in a spec, and what must not be there.
fn faults(kind: &Kind) -> Faults {
    match kind.name {
        "role" => role(),
        "role-assignment" => role_assignment(),
        "workspace" => vec![],
        "block-storage" => block_storage(),
        "image" => image(),
        "instance" => instance(),
        "network" => network(),
        "internet-gateway" => vec![("egressOnly", json!("yes")), ("egressOnly", json!(1))],
        "routing-table" => route_table(),
        "subnet" => subnet(),
        "nic" => nic(),
        "public-ip" => vec![
            ("version", absent()),
            ("version", json!("IPv5")),
            ("version", json!(4)),
            ("address", text(40)),
            ("address", json!("not-an-ip")),
            ("address", json!("10.0.0.0/8")),
        ],
        "security-group-rule" => rule_faults(),
        "security-group" => security_group(),
        other => panic!("{other}"),
    }
}

fn role() -> Faults {
    vec![
        ("permissions", absent()),
        ("permissions", json!([])),
        ("permissions", json!({})),
        (
            "permissions",
            times(
                257,
                json!({
                    "provider": "seca.storage/v1", "resources": ["*"], "verb": ["get"],
                }),
            ),
        ),
        ("permissions/0/provider", absent()),
        ("permissions/0/provider", json!("")),
        ("permissions/0/provider", text(65)),
        ("permissions/0/provider", json!("non-existent-provider")),
        ("permissions/0/resources", absent()),
        ("permissions/0/resources", json!([])),
        ("permissions/0/resources", json!([""])),
        ("permissions/0/resources", json!(["*", 1])),
        ("permissions/0/resources", json!([text(257)])),
        ("permissions/0/resources", times(257, json!("*"))),
        ("permissions/0/verb", absent()),
        ("permissions/0/verb", json!([])),
        ("permissions/0/verb", json!([""])),
        ("permissions/0/verb", json!("get")),
        ("permissions/0/verb", json!(["CONNECT"])),
        ("permissions/0/verb", json!(["getgetge"])),
        ("permissions/0/verb", times(17, json!("get"))),
    ]
}

fn role_assignment() -> Faults {
    vec![
        ("subs", absent()),
        ("subs", json!([])),
        ("subs", json!([""])),
        ("subs", json!([text(129)])),
        ("subs", times(257, json!("*"))),
        ("subs", json!(["non-existent@example.com"])),
        ("roles", absent()),
        ("roles", json!([])),
        ("roles", json!([""])),
        ("roles", json!([text(65)])),
        ("roles", times(33, json!("role"))),
        ("scopes", absent()),
        ("scopes", json!([])),
        ("scopes", times(257, json!({}))),
        ("scopes/0/tenants", json!([""])),
        ("scopes/0/tenants", json!([text(65)])),
        ("scopes/0/tenants", times(65, json!("t"))),
        ("scopes/0/tenants", json!(["non-existent-tenant"])),
        ("scopes/0/regions", json!([""])),
        ("scopes/0/regions", json!([text(65)])),
        ("scopes/0/regions", times(65, json!("region-1"))),
        ("scopes/0/regions", json!(["non-existent-region"])),
        ("scopes/0/workspaces", json!([""])),
        ("scopes/0/workspaces", json!([text(65)])),
        ("scopes/0/workspaces", times(257, json!("ws"))),
        // The scope has a tenant, so that its workspaces can be looked up.
        ("scopes/0/workspaces", json!(["non-existent-workspace"])),
    ]
}

/// What no reference can be.
fn bad_references(field: &'static str) -> Faults {
    vec![
        (field, json!({})),
        (field, json!([])),
        (field, json!(7)),
        (field, reference("")),
        (field, json!({ "resource": text(257) })),
        (field, json!({ "resource": 7 })),
        (field, json!({ "resource": "x", "provider": text(65) })),
        (field, json!({ "resource": "x", "tenant": text(65) })),
        (field, json!({ "resource": "x", "workspace": text(65) })),
        (field, json!({ "resource": "x", "region": text(65) })),
    ]
}

fn block_storage() -> Faults {
    let mut faults = vec![
        ("sizeGB", absent()),
        ("sizeGB", json!(0)),
        ("sizeGB", json!(-1)),
        ("sizeGB", json!(1_000_001)),
        ("sizeGB", json!(u64::MAX)),
        ("sizeGB", json!(1e300)),
        ("sizeGB", json!(1.5)),
        ("sizeGB", json!("20")),
        ("skuRef", absent()),
        ("skuRef", reference("images/x")),
        ("skuRef", reference("skus/NONE")),
    ];
    faults.extend(bad_references("skuRef"));
    faults.extend(bad_references("sourceImageRef"));
    faults
}

fn image() -> Faults {
    let mut faults = vec![
        ("blockStorageRef", absent()),
        ("cpuArchitecture", absent()),
        ("cpuArchitecture", json!("x86_64")),
        ("cpuArchitecture", json!("")),
        ("boot", json!("LEGACY")),
        ("initializer", json!("cloudinit-23")),
    ];
    faults.extend(bad_references("blockStorageRef"));
    faults
}

fn instance() -> Faults {
    let volume = json!({ "deviceRef": reference("disk") });
    let mut faults = vec![
        ("zone", absent()),
        ("zone", json!("")),
        ("zone", text(33)),
        ("zone", json!("invalid-zone")),
        ("skuRef", absent()),
        ("skuRef", reference("skus/NONE")),
        ("bootVolume", absent()),
        ("bootVolume", json!({})),
        ("bootVolume/type", json!("scsi")),
        ("dataVolumes", times(65, volume.clone())),
        ("dataVolumes", json!([{}])),
        // It has each of its volumes and NICs once.
        ("dataVolumes", json!([volume])),
        ("additionalNicRefs", times(2, reference("nic"))),
        ("additionalNicRefs", times(17, reference("nic"))),
        ("antiAffinityGroup", text(65)),
        ("sshKeys", json!([""])),
        ("sshKeys", json!([text(4097)])),
        ("sshKeys", times(33, json!("key"))),
        ("userData", text(65537)),
        ("userData", json!({})),
    ];
    faults.extend(bad_references("bootVolume/deviceRef"));
    faults.extend(bad_references("primaryNicRef"));
    faults.extend(bad_references("securityGroupRef"));
    faults
}

/// What no range of addresses can be.
const BAD_CIDRS: [(&str, &str); 11] = [
    ("ipv4", "10.0/8"),
    ("ipv4", "10.0.0.0"),
    ("ipv4", "not-a-cidr"),
    ("ipv4", "300.0.0.0/8"),
    ("ipv4", "10.0.0.0/33"),
    ("ipv4", "fd00:1::/56"),
    ("ipv4", "100.100.100.1000/24"),
    ("ipv6", "fd::"),
    ("ipv6", "10.0.0.0/16"),
    ("ipv6", "fd00::/129"),
    ("ipv6", "0000:0000:0000:0000:0000:0000:0000:0000/1280"),
];

fn network() -> Faults {
    let mut faults = vec![
        ("cidr", absent()),
        ("cidr", json!({})),
        ("cidr", json!("10.0.0.0/8")),
        ("cidr", json!({ "ipv4": "" })),
        ("additionalCidrs", json!([{}])),
        (
            "additionalCidrs",
            times(33, json!({ "ipv4": "10.0.0.0/16" })),
        ),
        ("skuRef", absent()),
        ("skuRef", reference("skus/NONE")),
    ];
    for (family, cidr) in BAD_CIDRS {
        faults.push(("cidr", json!({ family: cidr })));
        faults.push(("additionalCidrs", json!([{ family: cidr }])));
    }
    faults.extend(bad_references("skuRef"));
    faults
}

fn subnet() -> Faults {
    let mut faults = vec![
        ("cidr", absent()),
        ("cidr", json!({})),
        ("cidr", json!({ "ipv4": "192.168.99.0/24" })),
        ("cidr", json!({ "ipv4": "10.0.0.0/8" })),
        ("cidr", json!({ "ipv6": "fd00:9::/64" })),
        ("zone", absent()),
        ("zone", text(33)),
        ("zone", json!("invalid-zone")),
        ("routeTableRef", absent()),
        ("routeTableRef", json!({})),
        ("routeTableRef", json!([])),
        ("routeTableRef", json!({ "resource": text(257) })),
    ];
    faults.extend(BAD_CIDRS.map(|(family, cidr)| ("cidr", json!({ family: cidr }))));
    faults.extend(bad_references("skuRef"));
    faults
}

fn route_table() -> Faults {
    let route = json!({ "destinationCidrBlock": "0.0.0.0/0", "targetRef": reference("10.0.0.1") });
    let mut faults = vec![
        ("routes", json!([])),
        ("routes", json!({})),
        ("routes", times(1001, route)),
        ("routes/0/destinationCidrBlock", absent()),
        ("routes/0/destinationCidrBlock", json!("")),
        ("routes/0/destinationCidrBlock", json!("not-a-cidr")),
        ("routes/0/destinationCidrBlock", json!("10.0.0.1")),
        ("routes/0/destinationCidrBlock", text(44)),
        ("routes/0/targetRef", absent()),
    ];
    faults.extend(bad_references("routes/0/targetRef"));
    faults
}

fn nic() -> Faults {
    let mut faults = vec![
        ("addresses", json!([])),
        ("addresses", json!([""])),
        ("addresses", json!([text(40)])),
        ("addresses", json!(["not-an-ip"])),
        ("addresses", json!(["10.1.1.10", "10.1.1.0/24"])),
        // They are in the subnet.
        ("addresses", json!(["10.1.2.10"])),
        ("addresses", json!(["10.1.1.10", "192.168.99.1"])),
        ("addresses", json!(["fd00:1::10"])),
        ("addresses", json!("10.1.1.10")),
        ("addresses", times(33, json!("10.1.1.10"))),
        ("subnetRef", absent()),
        ("publicIpRefs", times(17, reference("pip"))),
        ("securityGroupRefs", times(17, reference("group"))),
    ];
    faults.extend(bad_references("subnetRef"));
    faults.extend(bad_references("skuRef"));
    faults
}

fn rule_faults() -> Faults {
    vec![
        ("direction", absent()),
        ("direction", json!("sideways")),
        ("direction", json!("Ingress")),
        ("protocol", json!("gre")),
        ("protocol", json!("")),
        ("version", json!("IPv5")),
        ("ports", json!({})),
        ("ports", json!([80])),
        ("ports", json!({ "from": 0 })),
        ("ports", json!({ "from": 65536 })),
        ("ports", json!({ "from": -1 })),
        ("ports", json!({ "to": 0 })),
        ("ports", json!({ "to": 65536 })),
        ("ports", json!({ "list": [0] })),
        ("ports", json!({ "list": [80, 65536] })),
        ("ports", json!({ "list": vec![80; 101] })),
        ("icmp", json!({})),
        ("icmp", json!({ "type": 8 })),
        ("icmp", json!({ "type": 9, "code": 0 })),
        ("icmp", json!({ "type": 0, "code": 6 })),
        ("icmp", json!({ "type": -1, "code": 0 })),
        ("sourceRef", reference("10.0.0.0/8")),
        ("sourceRef", json!([reference("")])),
        ("sourceRef", times(33, reference("10.0.0.0/8"))),
    ]
}

fn security_group() -> Faults {
    let mut faults = vec![
        ("rules", json!({})),
        ("rules", times(501, json!({ "direction": "ingress" }))),
        ("ruleRefs", times(501, reference("rule"))),
        ("ruleRefs", json!([reference("")])),
    ];
    for (field, value) in rule_faults() {
        let mut rule = json!({ "direction": "ingress" });
        set(&mut rule, &format!("/{field}"), value);
        faults.push(("rules", json!([{ "direction": "egress" }, rule])));
    }
    faults
}
