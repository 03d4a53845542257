//! Random damage to valid requests: never a server error, never an invalid object stored.

use axum::body::Body;
use http::Method;
use kube::api::ListParams;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::world::{
    ASSIGNMENTS, DISKS, GATEWAYS, IMAGES, INSTANCES, NETWORKS, NICS, ROLES, WORKSPACE, World, disk,
    instance, network, route, subnet,
};

/// Damaged requests per run.
const CASES: u32 = 800;

/// Any JSON, a few levels deep.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        Just(json!("x".repeat(2000))),
        Just(json!(1e300)),
        Just(json!(u64::MAX)),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(any_key(), inner, 0..4)
                .prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

/// Keys that mean something somewhere, or anything.
fn any_key() -> impl Strategy<Value = String> {
    let known = [
        "labels",
        "annotations",
        "extensions",
        "metadata",
        "spec",
        "status",
        "sizeGB",
        "skuRef",
        "resource",
        "region",
        "name",
        "commonData",
        "crossplane",
        "resourceRef",
        "claimRef",
        "cpuArchitecture",
        "boot",
        "blockStorageRef",
        "sourceImageRef",
        "network",
        "power",
        "state",
        "cidr",
        "ipv4",
        "ipv6",
        "zone",
        "routes",
        "targetRef",
        "deviceRef",
        "addresses",
        "publicIpRefs",
        "ports",
        "scopes",
        "tenants",
        "verb",
        "managedFields",
        "finalizers",
        "__proto__",
        "a.b",
        "a/b~c",
        "",
    ];
    prop_oneof![
        4 => proptest::sample::select(known.to_vec()).prop_map(Into::into),
        1 => ".{0,8}",
    ]
}

/// One change of a document.
#[derive(Clone, Debug)]
enum Damage {
    /// A member, found by walking the document by these numbers, becomes another value.
    Replace(Vec<u8>, Value),
    /// A member is added to an object found the same way.
    Add(Vec<u8>, String, Value),
    /// The text loses or changes a byte.
    Byte(usize, Option<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    let walk = || proptest::collection::vec(any::<u8>(), 0..4);
    prop_oneof![
        4 => (walk(), any_json()).prop_map(|(w, v)| Damage::Replace(w, v)),
        4 => (walk(), any_key(), any_json()).prop_map(|(w, k, v)| Damage::Add(w, k, v)),
        1 => (any::<usize>(), any::<Option<u8>>()).prop_map(|(i, b)| Damage::Byte(i, b)),
    ]
}

fn reach<'a>(mut value: &'a mut Value, walk: &[u8]) -> &'a mut Value {
    for step in walk {
        let step = usize::from(*step);
        let len = match &*value {
            Value::Object(map) => map.len(),
            Value::Array(items) => items.len(),
            _ => 0,
        };
        if len == 0 {
            return value;
        }
        value = match value {
            Value::Object(map) => map.values_mut().nth(step % len).expect("within"),
            Value::Array(items) => &mut items[step % len],
            _ => unreachable!("has members"),
        };
    }
    value
}

fn damaged(mut body: Value, all: &[Damage]) -> Vec<u8> {
    for one in all {
        match one {
            Damage::Replace(walk, value) => *reach(&mut body, walk) = value.clone(),
            Damage::Add(walk, key, value) => {
                if let Value::Object(map) = reach(&mut body, walk) {
                    map.insert(key.clone(), value.clone());
                }
            }
            Damage::Byte(..) => {}
        }
    }
    let mut bytes = body.to_string().into_bytes();
    for one in all {
        if let Damage::Byte(at, byte) = one
            && !bytes.is_empty()
        {
            let at = at % bytes.len();
            match byte {
                Some(byte) => bytes[at] = *byte,
                None => {
                    bytes.remove(at);
                }
            }
        }
    }
    bytes
}

fn valid(which: usize) -> (String, &'static str, Value) {
    match which {
        0 => (format!("{DISKS}/m"), "BlockStorage", disk(5)),
        1 => {
            let resource = "seca.storage/v1/tenants/acme/workspaces/prod/block-storages/base";
            let spec = json!({
                "cpuArchitecture": "arm64", "boot": "BIOS", "initializer": "none",
                "blockStorageRef": {"resource": resource},
            });
            (format!("{IMAGES}/m"), "Image", json!({"spec": spec}))
        }
        2 => (
            format!("{WORKSPACE}-m"),
            "Workspace",
            json!({"labels": {"a": "b"}, "spec": {"free": {"x": [1]}}}),
        ),
        3 => {
            let mut body = instance();
            let volume =
                |name: &str| json!({"deviceRef": {"resource": format!("block-storages/{name}")}});
            body["spec"]["bootVolume"] = volume("base");
            body["spec"]["dataVolumes"] = json!([volume("base-2"), volume("base-3")]);
            body["spec"]["sshKeys"] = json!(["ssh-ed25519 AAAA"]);
            (format!("{INSTANCES}/m"), "Instance", body)
        }
        4 => {
            let mut body = network("10.2.0.0/16");
            body["spec"]["additionalCidrs"] = json!([{"ipv4": "10.3.0.0/16", "ipv6": "fd00::/56"}]);
            (format!("{NETWORKS}/m"), "Network", body)
        }
        5 => (
            format!("{NETWORKS}/n/subnets/m"),
            "Subnet",
            subnet("10.1.1.0/24"),
        ),
        6 => (
            format!("{NETWORKS}/n/route-tables/m"),
            "RouteTable",
            route("internet-gateways/gw"),
        ),
        7 => {
            let spec = json!({
                "subnetRef": {"resource": "networks/n/subnets/base"},
                "addresses": ["10.1.9.4", "0.0.0.0"], "securityGroupRefs": [], "publicIpRefs": [],
            });
            (format!("{NICS}/m"), "NIC", json!({"spec": spec}))
        }
        8 => {
            let rule = json!({
                "direction": "ingress", "protocol": "tcp", "version": "IPv4",
                "ports": {"from": 22, "to": 80, "list": [443]},
                "sourceRef": [{"resource": "10.0.0.0/8"}],
            });
            let path = GATEWAYS.replace("internet-gateways", "security-groups");
            (
                format!("{path}/m"),
                "SecurityGroup",
                json!({"spec": {"rules": [rule]}}),
            )
        }
        9 => {
            let permission = json!({
                "provider": "seca.storage/v1", "resources": ["images/*"], "verb": ["get", "PUT"],
            });
            (
                format!("{ROLES}/m"),
                "Role",
                json!({"spec": {"permissions": [permission]}}),
            )
        }
        _ => {
            let scope = json!({
                "tenants": ["acme"], "regions": ["region-1"], "workspaces": ["prod"],
            });
            let spec = json!({"subs": ["*"], "roles": ["base"], "scopes": [scope, {}]});
            (
                format!("{ASSIGNMENTS}/m"),
                "RoleAssignment",
                json!({"spec": spec}),
            )
        }
    }
}

/// How many kinds of request [`valid`] has.
const VALID: usize = 11;

/// What the valid requests refer to.
async fn add_bases(world: &World) {
    let role = valid(9).2;
    for (path, body) in [
        (format!("{DISKS}/base"), disk(1)),
        (format!("{DISKS}/base-2"), disk(1)),
        (format!("{DISKS}/base-3"), disk(1)),
        (format!("{NETWORKS}/n/subnets/base"), subnet("10.1.9.0/24")),
        (format!("{ROLES}/base"), role),
    ] {
        world.put(&path, body).await.ok(201);
    }
}

async fn check_stored(world: &World, kind: &str) {
    let info = ecp_xrds::by_kind(kind).expect("kind");
    for object in world
        .objects(kind)
        .list(&ListParams::default())
        .await
        .expect("list")
    {
        let object = serde_json::to_value(&object).expect("JSON");
        let errors = ecp_xrds::validate(info, &object["spec"]);
        assert!(errors.is_empty(), "{kind} stored with {errors:?}: {object}");
        assert!(object["spec"].get("crossplane").is_none(), "{object}");
        let region = info.regional().then_some("region-1");
        assert_eq!(object["spec"]["region"].as_str(), region, "{object}");
        assert!(object["spec"].get("power").is_none(), "{object}");
        assert!(object["metadata"].get("finalizers").is_none(), "{object}");
    }
}

#[test]
fn damaged_requests_are_accepted_or_refused_and_never_break_anything() {
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    let world = runtime.block_on(World::with_network());
    runtime.block_on(add_bases(&world));
    for which in 0..VALID {
        let (path, _, body) = valid(which);
        runtime.block_on(world.put(&path, body)).ok(201);
        runtime.block_on(world.delete(&path)).ok(202);
    }
    let mut runner = TestRunner::new(Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    });
    let accepted = std::cell::Cell::new(0_u32);
    let case = (0..VALID, proptest::collection::vec(damage(), 1..4));
    let outcome = runner.run(&case, |(which, all)| {
        let (path, kind, body) = valid(which);
        let bytes = damaged(body, &all);
        let shown = String::from_utf8_lossy(&bytes).into_owned();
        runtime.block_on(async {
            let headers = [("prefer", "respond-async")];
            let answer = world
                .call(Method::PUT, &path, &headers, Body::from(bytes))
                .await;
            let status = answer.status.as_u16();
            prop_assert!(
                matches!(status, 200 | 201 | 400 | 412),
                "{status} for {shown}: {:?}",
                String::from_utf8_lossy(&answer.bytes)
            );
            if status >= 400 {
                answer.problem(status);
            }
            check_stored(&world, kind).await;
            if status < 300 {
                accepted.set(accepted.get() + 1);
                let got = world.get(&path).await.ok(200);
                prop_assert!(got["spec"].is_object(), "{}", got);
                world.delete(&path).await.ok(202);
            }
            Ok(())
        })
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    let share = f64::from(accepted.get()) / f64::from(CASES);
    assert!(
        (0.1..0.9).contains(&share),
        "{share} of all were accepted: the damage is one-sided"
    );
}

/// Segments, parameters and header values that mean something somewhere, or anything.
fn any_text() -> impl Strategy<Value = String> {
    let known = [
        "acme",
        "prod",
        "..",
        ".",
        "a/b",
        "A_B",
        "block-storages",
        "workspaces",
        "%00",
        "\u{0}",
        "*",
        "limit",
        "1",
        "-1",
        "99999999999999999999",
        "env=prod",
        "env in (a,b)",
        "!x",
        ">=5",
        "*",
        "wait=0",
        "respond-async",
        "Mon, 30 Nov 2026 10:00:00 GMT",
    ];
    prop_oneof![
        4 => proptest::sample::select(known.to_vec()).prop_map(Into::into),
        1 => Just("n".repeat(300)),
        2 => ".{0,20}",
    ]
}

fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes())
        .collect::<String>()
        .replace('+', "%20")
}

#[test]
fn odd_paths_queries_and_headers_are_client_errors_at_most() {
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    let world = runtime.block_on(World::with_workspace());
    let mut runner = TestRunner::new(Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    });
    let texts = || proptest::collection::vec(any_text(), 3);
    let case = (0_usize..3, 0_usize..3, texts(), texts(), texts());
    let outcome = runner.run(&case, |(method, which, names, query, headers)| {
        let method = [Method::GET, Method::PUT, Method::DELETE][method].clone();
        let [tenant, workspace, name] = [0, 1, 2].map(|i| encoded(&names[i]));
        let path = match which {
            0 => format!(
                "/providers/seca.storage/v1/tenants/{tenant}/workspaces/{workspace}/block-storages/{name}"
            ),
            1 => format!("/providers/seca.storage/v1/tenants/{tenant}/images"),
            _ => format!("/providers/{tenant}/v1/{workspace}/{name}"),
        };
        let [labels, limit, token] = [0, 1, 2].map(|i| encoded(&query[i]));
        let path = format!("{path}?labels={labels}&limit={limit}&skipToken={token}");
        let names = ["accept", "if-unmodified-since", "prefer"];
        let headers: Vec<(&str, &str)> = names
            .into_iter()
            .zip(headers.iter().map(String::as_str))
            .filter(|(_, value)| http::HeaderValue::from_str(value).is_ok())
            .collect();
        runtime.block_on(async {
            let answer = world.call(method, &path, &headers, disk(1).to_string()).await;
            let status = answer.status.as_u16();
            prop_assert!(status < 500, "{status} for {path}: {headers:?}");
            if status >= 400 {
                answer.problem(status);
            }
            Ok(())
        })
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
