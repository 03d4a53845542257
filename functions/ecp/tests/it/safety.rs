//! What a tenant can do to others: nothing.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::world::{World, now, request, run, show};

const NAMESPACES: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: mallory-ns, labels: {secapi.cloud/tenant: mallory}}
---
apiVersion: v1
kind: Namespace
metadata: {name: mallory-prod-ns, labels: {secapi.cloud/tenant: mallory, secapi.cloud/workspace: prod}}
---
apiVersion: v1
kind: Namespace
metadata: {name: acme-test-ns, labels: {secapi.cloud/tenant: acme, secapi.cloud/workspace: test}}
---
apiVersion: v1
kind: Namespace
metadata: {name: unlabelled}
---
apiVersion: v1
kind: Namespace
metadata: {name: mallory, labels: {secapi.cloud/tenant: mallory}}
";

/// Namespaces that somebody else has, under the names that we would give to acme's.
const NAMED_LIKE_OURS: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: acme-5d95a159, labels: {secapi.cloud/tenant: mallory}}
---
apiVersion: v1
kind: Namespace
metadata: {name: acme-prod-6851f068, labels: {secapi.cloud/tenant: acme, secapi.cloud/workspace: test}}
";

/// The world, with the namespaces of acme as we name them, or as an operator named them.
fn world(by_hand: bool) -> World {
    let mut world = if by_hand {
        let text = by_hand_named(include_str!("../cases/world.yaml"));
        let mut world = World::of(&text);
        world.0.extend(World::of(NAMED_LIKE_OURS).0);
        world
    } else {
        World::of(include_str!("../cases/world.yaml"))
    };
    world.0.extend(World::of(NAMESPACES).0);
    world
}

fn by_hand_named(text: &str) -> String {
    text.replace("acme-prod-6851f068", "hand-prod")
        .replace("acme-5d95a159", "hand-made")
}

fn disk() -> Value {
    json!({
        "apiVersion": "storage.v1.secapi.cloud/v1",
        "kind": "BlockStorage",
        "metadata": {"name": "new", "namespace": "acme-prod-6851f068", "uid": "u-1"},
        "spec": {
            "sizeGB": 20,
            "skuRef": {"resource": "skus/RD500"},
            "sourceImageRef": {"resource": "images/debian"},
        },
    })
}

/// A route table with so many targets that they are asked for at once.
fn routes() -> Value {
    let routes: Vec<_> = (0..20)
        .map(|n| {
            let name = if n == 0 {
                "vm".into()
            } else {
                format!("vm-{n}")
            };
            json!({
                "destinationCidrBlock": "10.0.0.0/8",
                "targetRef": {"resource": format!("instances/{name}")},
            })
        })
        .collect();
    json!({
        "apiVersion": "network.v1.secapi.cloud/v1",
        "kind": "RouteTable",
        "metadata": {"name": "new", "namespace": "acme-prod-6851f068", "uid": "u-1"},
        "spec": {"network": "net", "routes": routes},
    })
}

/// A new resource of each kind that has managed resources, from the cases.
fn new_resources() -> Vec<Value> {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut paths: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().unwrap().ends_with("-new.yaml"))
        .collect();
    paths.sort();
    let composite = |path| {
        let case: Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        case["composite"].clone()
    };
    let mut all: Vec<Value> = paths.into_iter().map(composite).collect();
    all.retain(|xr| !xr["kind"].as_str().unwrap().starts_with("Role"));
    assert_eq!(all.len(), ecp_xrds::kinds().len() - 2);
    all.extend([disk(), routes()]);
    all
}

/// Whoever may make managed resources in a namespace can label them as he likes. Only those in a
/// namespace of whom they claim to be for are used.
#[test]
fn a_forged_managed_resource_is_never_used() {
    let all = new_resources();
    let mut forged = 0;
    let each = all.iter().flat_map(|xr| [(false, xr), (true, xr)]);
    for (by_hand, xr) in each {
        let good = world(by_hand);
        let xr = if by_hand {
            serde_json::from_str(&by_hand_named(&xr.to_string())).unwrap()
        } else {
            xr.clone()
        };
        let namespaces: Vec<_> = good.0.iter().filter(|o| o["kind"] == "Namespace").collect();
        let (response, _) = run(request(&xr, &BTreeMap::new()), &good, now());
        let shown = show(&response)["resources"].to_string();
        let used = |o: &&Value| {
            let id = o["metadata"]["annotations"]["crossplane.io/external-name"].as_str();
            id.is_some_and(|id| shown.contains(&format!("#{id}\"")))
        };
        for real in good.0.iter().filter(used) {
            let at_home = real["metadata"]["namespace"].clone();
            let mut bad = good.clone();
            bad.0.retain(|o| o != real);
            for namespace in &namespaces {
                let name = &namespace["metadata"]["name"];
                if *name == at_home {
                    continue;
                }
                let mut copy = real.clone();
                copy["metadata"]["namespace"] = name.clone();
                copy["metadata"]["annotations"]["crossplane.io/external-name"] = "evil".into();
                bad.0.push(copy);
            }
            let (response, _) = run(request(&xr, &BTreeMap::new()), &bad, now());
            let shown = show(&response).to_string();
            assert!(!shown.contains("evil"), "{}: {shown}", real["kind"]);
            forged += 1;
        }
    }
    assert!(forged >= 70, "{forged}");
}

/// Two objects cannot stand for one SECA resource.
#[test]
fn a_seca_name_can_be_claimed_under_its_own_object_name_alone() {
    let long = "d".repeat(100);
    let right = ecp_meta::names::object_name(&long);
    for (object, name, fine) in [
        ("data-2", "data", false),
        ("data", "data", true),
        (right.as_str(), long.as_str(), true),
        ("short", long.as_str(), false),
    ] {
        for claimed in [false, true] {
            let mut xr = disk();
            xr["spec"]["name"] = name.into();
            xr["metadata"]["name"] = object.into();
            if claimed {
                xr["kind"] = "XBlockStorage".into();
                xr["metadata"] = json!({"name": "whatever-x7k2p", "uid": "u-1"});
                xr["spec"]["claimRef"] = json!({"namespace": "acme-prod-6851f068", "name": object});
            }
            let (response, _) = run(request(&xr, &BTreeMap::new()), &world(false), now());
            let status = &response.desired.composite.as_ref().unwrap().object["status"];
            if fine {
                assert_eq!(status["state"], "creating", "{status}");
                let volume = &response.desired.resources["volume"].object;
                assert_eq!(volume["spec"]["forProvider"]["displayName"], name);
            } else {
                assert_eq!(status["state"], "error", "{status}");
                let want = ecp_meta::names::object_name(name);
                assert_eq!(
                    status["message"],
                    format!(
                        "spec.name is {name:?}, so metadata.name must be {want:?}, not {object:?}"
                    )
                );
                assert!(response.desired.resources.is_empty());
            }
        }
    }
}

/// With kubectl a subnet's object has any name. Of two objects for one subnet the older counts, as
/// over REST.
#[test]
fn of_two_objects_for_one_subnet_the_older_counts() {
    let subnet = |object: &str, created: &str, uid: &str| {
        json!({
            "apiVersion": "network.v1.secapi.cloud/v1",
            "kind": "Subnet",
            "metadata": {
                "name": object, "namespace": "acme-prod-6851f068",
                "creationTimestamp": created, "uid": uid,
            },
            "spec": {
                "network": "net", "cidr": {"ipv4": "10.0.1.0/24"}, "zone": "",
                "routeTableRef": {"resource": ""},
            },
        })
    };
    let (first, second) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z");
    let rest_name = ecp_meta::names::network_object_name("net", "web");
    for (by_hand, by_rest) in [
        ((first, "b"), (second, "a")),
        ((second, "a"), (first, "b")),
        ((first, "a"), (first, "b")),
    ] {
        let mut rest = subnet(&rest_name, by_rest.0, by_rest.1);
        rest["spec"]["name"] = "web".into();
        let hand = subnet("web", by_hand.0, by_hand.1);
        let mut both = world(false);
        both.0.extend([rest.clone(), hand.clone()]);
        for (xr, wins) in [(rest, by_rest < by_hand), (hand, by_hand < by_rest)] {
            let (response, _) = run(request(&xr, &BTreeMap::new()), &both, now());
            let status = &response.desired.composite.as_ref().unwrap().object["status"];
            let want = if wins { "creating" } else { "error" };
            assert_eq!(status["state"], want, "{status}");
        }
    }
}

/// An XR does not say how old its claim is, and is younger.
#[test]
fn of_two_claims_for_one_subnet_the_older_counts() {
    let rest_name = ecp_meta::names::network_object_name("net", "web");
    let claim = |name: &str, created: &str, uid: &str| {
        let mut claim = json!({
            "apiVersion": "network.v1.secapi.cloud/v1",
            "kind": "Subnet",
            "metadata": {
                "name": name, "namespace": "acme-prod-6851f068",
                "creationTimestamp": created, "uid": uid,
            },
            "spec": {
                "network": "net", "cidr": {"ipv4": "10.0.1.0/24"}, "zone": "",
                "routeTableRef": {"resource": ""},
            },
        });
        if name != "web" {
            claim["spec"]["name"] = "web".into();
        }
        claim
    };
    let (first, second) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z");
    for (hand_at, rest_at, winner) in [
        (first, second, "web"),
        (second, first, rest_name.as_str()),
        (first, first, "web"),
    ] {
        let both = [claim("web", hand_at, "a"), claim(&rest_name, rest_at, "b")];
        let mut world = world(false);
        world.0.extend(both.clone());
        for claim in both {
            let name = claim["metadata"]["name"].as_str().unwrap().to_owned();
            let mut xr = claim;
            xr["kind"] = "XSubnet".into();
            xr["metadata"] = json!({
                "name": format!("{name}-x7k2p"), "uid": "u-1", "creationTimestamp": second,
            });
            xr["spec"]["claimRef"] = json!({"namespace": "acme-prod-6851f068", "name": name});
            let (response, _) = run(request(&xr, &BTreeMap::new()), &world, now());
            let status = &response.desired.composite.as_ref().unwrap().object["status"];
            let want = if name == winner { "creating" } else { "error" };
            assert_eq!(status["state"], want, "{status}");
        }
    }
}
