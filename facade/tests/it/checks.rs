//! What a schema cannot say: zones, ranges, permissions, scopes, references.

use std::sync::Arc;

use ecp_facade::{Access, ReferencePolicies, ReferencePolicy, StaticTokens, Users};
use serde_json::{Value, json};

use crate::world::{
    ASSIGNMENTS, DISKS, GATEWAYS, IMAGES, INSTANCES, NETWORKS, NICS, ROLES, TOKEN, WORKSPACE,
    World, disk, instance, network, route, subnet,
};

/// The body with one member changed.
fn with(mut body: Value, pointer: &str, value: Value) -> Value {
    let (parent, name) = pointer.rsplit_once('/').expect("pointer");
    let parent = body.pointer_mut(parent).expect("parent");
    match parent {
        Value::Array(items) => items[name.parse::<usize>().expect("index")] = value,
        other => other[name] = value,
    }
    body
}

fn to(resource: &str) -> Value {
    json!({"resource": resource})
}

async fn refused(world: &World, path: &str, body: Value, pointers: &[&str]) -> String {
    let answer = world.put(path, body.clone()).await;
    assert_eq!(answer.problem(412), pointers, "{body}: {}", answer.json());
    world.get(path).await.problem(404);
    answer.json()["detail"].as_str().expect("detail").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn zones_are_those_of_the_region() {
    let world = World::with_network().await;
    world.put(&format!("{DISKS}/boot"), disk(20)).await.ok(201);
    let path = format!("{INSTANCES}/i");
    let zone = |zone: &str| with(instance(), "/spec/zone", json!(zone));
    let detail = refused(&world, &path, zone("invalid-zone"), &["/spec/zone"]).await;
    assert_eq!(
        detail,
        "spec.zone: zone \"invalid-zone\" does not exist in region region-1, which has: zone-a, zone-b"
    );
    refused(&world, &path, zone(""), &["/spec/zone"]).await;
    refused(&world, &path, zone(&"z".repeat(33)), &["/spec/zone"]).await;
    world.put(&path, zone("zone-a")).await.ok(201);
    // The suite moves instances and subnets between zones (section 3.6).
    world.put(&path, zone("zone-b")).await.ok(200);

    let path = format!("{NETWORKS}/n/subnets/s");
    let zone = |zone: &str| with(subnet("10.1.1.0/24"), "/spec/zone", json!(zone));
    refused(&world, &path, zone("invalid-zone"), &["/spec/zone"]).await;
    let created = world.put(&path, zone("")).await.ok(201);
    assert_eq!(created["spec"]["zone"], "");
    world.put(&path, zone("zone-b")).await.ok(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subnet_is_inside_its_network() {
    let world = World::with_network().await;
    let path = format!("{NETWORKS}/n/subnets/s");
    let detail = refused(
        &world,
        &path,
        subnet("192.168.99.0/24"),
        &["/spec/cidr/ipv4"],
    )
    .await;
    assert_eq!(
        detail,
        "spec.cidr.ipv4: 192.168.99.0/24 does not fit into the network, which has 10.1.0.0/16"
    );
    let both = with(
        subnet("192.168.99.0/24"),
        "/spec/cidr/ipv6",
        json!("fd00::/64"),
    );
    let pointers = ["/spec/cidr/ipv4", "/spec/cidr/ipv6"];
    refused(&world, &path, both, &pointers).await;
    let empty = with(subnet("10.1.1.0/24"), "/spec/cidr/ipv6", json!(""));
    world.put(&path, empty.clone()).await.ok(201);
    assert_eq!(world.get(&path).await.ok(200)["spec"], empty["spec"]);

    // What the cloud chose counts, as soon as it has.
    let auto = format!("{NETWORKS}/auto");
    world.put(&auto, network("0.0.0.0/16")).await.ok(201);
    let table = route("internet-gateways/gw");
    world
        .put(&format!("{auto}/route-tables/rt"), table)
        .await
        .ok(201);
    let path = format!("{auto}/subnets/s");
    world.put(&path, subnet("10.9.1.0/24")).await.ok(201);
    world.delete(&path).await.ok(202);
    let chosen = json!({"status": {"cidr": {"ipv4": "10.7.0.0/16"}}});
    world.patch_status("Network", "auto", chosen).await;
    world
        .eventually(&auto, |a| {
            a.json()["status"]["cidr"]["ipv4"] == "10.7.0.0/16"
        })
        .await;
    refused(&world, &path, subnet("10.9.1.0/24"), &["/spec/cidr/ipv4"]).await;
    world.put(&path, subnet("10.7.1.0/24")).await.ok(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_addresses_of_a_nic_are_inside_its_subnet() {
    let world = World::with_network().await;
    let subnets = format!("{NETWORKS}/n/subnets");
    world
        .put(&format!("{subnets}/s"), subnet("10.1.1.0/24"))
        .await
        .ok(201);
    let nic = |addresses: Value| json!({"spec": {"subnetRef": to("networks/n/subnets/s"), "addresses": addresses}});
    let path = format!("{NICS}/x");
    let outside = nic(json!(["10.1.1.5", "10.1.2.5"]));
    let detail = refused(&world, &path, outside, &["/spec/addresses/1"]).await;
    assert_eq!(
        detail,
        "spec.addresses[1]: 10.1.2.5 is not in the subnet, which has 10.1.1.0/24"
    );
    let version = nic(json!(["fd00::5"]));
    refused(&world, &path, version, &["/spec/addresses/0"]).await;
    world
        .put(&path, nic(json!(["10.1.1.5", "0.0.0.0"])))
        .await
        .ok(201);
    // Two NICs may have one address (section 3.6).
    let other = format!("{NICS}/y");
    world.put(&other, nic(json!(["10.1.1.5"]))).await.ok(201);

    // A range that the cloud is to choose is known when it has.
    world
        .put(&format!("{subnets}/s"), subnet("0.0.0.0/24"))
        .await
        .ok(200);
    world.put(&path, nic(json!(["10.1.7.5"]))).await.ok(200);
    let chosen = json!({"status": {"cidr": {"ipv4": "10.1.9.0/24"}}});
    world.patch_status("Subnet", &subnet_object(), chosen).await;
    let mut labelled = nic(json!(["10.1.7.5"]));
    labelled["labels"] = json!({"a": "b"});
    world.put(&path, labelled).await.ok(200);
    let answer = world.put(&path, nic(json!(["10.1.7.6"]))).await;
    assert_eq!(answer.problem(412), ["/spec/addresses/0"]);
    world.put(&path, nic(json!(["10.1.9.6"]))).await.ok(200);
}

/// The name of the object of subnet `s` of network `n`.
fn subnet_object() -> String {
    ecp_meta::names::network_object_name("n", "s")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_has_each_volume_and_nic_once() {
    let world = World::with_network().await;
    for name in ["boot", "data"] {
        world
            .put(&format!("{DISKS}/{name}"), disk(20))
            .await
            .ok(201);
    }
    let subnet_path = format!("{NETWORKS}/n/subnets/s");
    world.put(&subnet_path, subnet("10.1.1.0/24")).await.ok(201);
    let nic = json!({"spec": {"subnetRef": to("networks/n/subnets/s")}});
    for name in ["one", "two"] {
        world
            .put(&format!("{NICS}/{name}"), nic.clone())
            .await
            .ok(201);
    }
    let path = format!("{INSTANCES}/i");
    let urn = "seca.storage/v1/tenants/acme/workspaces/prod/block-storages/boot";
    let disks = |names: &[&str]| {
        let disks: Vec<Value> = names
            .iter()
            .map(|name| json!({"deviceRef": to(name)}))
            .collect();
        with(instance(), "/spec/dataVolumes", json!(disks))
    };
    let nics = |first: &str, more: &[&str]| {
        let more: Vec<Value> = more.iter().map(|name| to(name)).collect();
        let body = with(instance(), "/spec/primaryNicRef", to(first));
        with(body, "/spec/additionalNicRefs", json!(more))
    };
    let detail = refused(
        &world,
        &path,
        disks(&["data", urn]),
        &["/spec/dataVolumes/1/deviceRef"],
    )
    .await;
    assert_eq!(
        detail,
        "spec.dataVolumes[1].deviceRef: block storage \"boot\" is in spec.bootVolume.deviceRef already"
    );
    for (body, pointer) in [
        (
            disks(&["data", "block-storages/data"]),
            "/spec/dataVolumes/1/deviceRef",
        ),
        (
            nics("one", &["two", "nics/one"]),
            "/spec/additionalNicRefs/1",
        ),
        (nics("one", &["two", "two"]), "/spec/additionalNicRefs/1"),
    ] {
        refused(&world, &path, body, &[pointer]).await;
    }
    world.put(&path, disks(&["data"])).await.ok(201);
    world.put(&path, nics("two", &["one"])).await.ok(200);
    // What kubectl made so can be changed otherwise.
    let twice = json!({"spec": {"additionalNicRefs": [to("one"), to("one")]}});
    world.patch("Instance", "i", twice).await;
    let mut body = nics("two", &["one", "one"]);
    world
        .eventually(&path, |a| {
            a.json()["spec"]["additionalNicRefs"][1].is_object()
        })
        .await;
    body["labels"] = json!({"a": "b"});
    world.put(&path, body).await.ok(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn references_name_the_element_at_fault() {
    let world = World::with_network().await;
    for name in ["boot", "c", "d"] {
        world
            .put(&format!("{DISKS}/{name}"), disk(20))
            .await
            .ok(201);
    }
    let path = format!("{INSTANCES}/i");
    let volume = |name: &str| json!({"deviceRef": {"resource": format!("block-storages/{name}")}});
    let volumes = json!([volume("c"), volume("a"), volume("d"), volume("b")]);
    refused(
        &world,
        &path,
        with(instance(), "/spec/dataVolumes", volumes),
        &[
            "/spec/dataVolumes/1/deviceRef/resource",
            "/spec/dataVolumes/3/deviceRef/resource",
        ],
    )
    .await;
    for (pointer, value, at) in [
        ("/spec/skuRef", to("skus/none"), "/spec/skuRef/resource"),
        (
            "/spec/bootVolume/deviceRef",
            to("block-storages/none"),
            "/spec/bootVolume/deviceRef/resource",
        ),
        (
            "/spec/primaryNicRef",
            to("nics/none"),
            "/spec/primaryNicRef/resource",
        ),
        (
            "/spec/additionalNicRefs",
            json!([to("none")]),
            "/spec/additionalNicRefs/0/resource",
        ),
        (
            "/spec/securityGroupRef",
            to("security-groups/none"),
            "/spec/securityGroupRef/resource",
        ),
    ] {
        refused(&world, &path, with(instance(), pointer, value), &[at]).await;
    }
    // Several faults are told at once, of zone and references alike.
    let body = with(instance(), "/spec/zone", json!("nowhere"));
    let body = with(body, "/spec/skuRef", to("skus/none"));
    refused(
        &world,
        &path,
        body,
        &["/spec/zone", "/spec/skuRef/resource"],
    )
    .await;

    let table = format!("{NETWORKS}/n/route-tables/t");
    for (target, accepted) in [
        ("internet-gateways/gw", true),
        ("internet-gateways/none", false),
        ("gw", true),
        ("none", false),
        (
            "seca.network/v1/tenants/acme/workspaces/prod/internet-gateways/none",
            false,
        ),
        (
            "seca.network/v1/tenants/acme/workspaces/prod/public-ips/none",
            false,
        ),
        (
            "seca.network/v1/tenants/other/workspaces/prod/internet-gateways/gw",
            false,
        ),
        (
            "seca.compute/v1/tenants/acme/workspaces/prod/instances/never",
            true,
        ),
        ("instances/never", true),
        ("10.1.0.1", true),
    ] {
        let body = route(target);
        if accepted {
            let answer = world.put(&table, body.clone()).await;
            assert!(answer.status.is_success(), "{target}: {}", answer.json());
            assert_eq!(answer.json()["spec"], body["spec"]);
        } else {
            let at = "/spec/routes/0/targetRef/resource";
            refused(&world, &format!("{table}-2"), body, &[at]).await;
        }
    }

    let path = format!("{NETWORKS}/n/subnets/s");
    let missing = with(subnet("10.1.1.0/24"), "/spec/routeTableRef", to("none"));
    refused(&world, &path, missing, &["/spec/routeTableRef/resource"]).await;
    let none = with(subnet("10.1.1.0/24"), "/spec/routeTableRef", to(""));
    let created = world.put(&path, none).await.ok(201);
    assert_eq!(created["spec"]["routeTableRef"], to(""));
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_of_rules_are_free_text() {
    let world = World::with_workspace().await;
    let base = GATEWAYS.replace("internet-gateways", "");
    let sources = json!([
        to("55.44.33.11"),
        to("any text"),
        to("security-groups/none")
    ]);
    let rule = json!({"direction": "ingress", "sourceRef": sources});
    let created = world
        .put(
            &format!("{base}security-group-rules/r"),
            json!({"spec": rule}),
        )
        .await
        .ok(201);
    assert_eq!(created["spec"], rule);
    let group = json!({"rules": [rule], "ruleRefs": [to("security-group-rules/r")]});
    let path = format!("{base}security-groups/g");
    let created = world.put(&path, json!({"spec": group})).await.ok(201);
    assert_eq!(created["spec"], group);
    let missing = json!({"spec": {"ruleRefs": [to("r"), to("none")]}});
    let other = format!("{base}security-groups/h");
    refused(&world, &other, missing, &["/spec/ruleRefs/1/resource"]).await;
    for ports in [
        json!({}),
        json!({"from": null}),
        json!({"list": [0]}),
        json!({"from": 0}),
    ] {
        let rule = json!({"direction": "ingress", "ports": ports});
        let answer = world.put(&other, json!({"spec": {"rules": [rule]}})).await;
        assert!(
            answer.problem(412)[0].starts_with("/spec/rules/0/ports"),
            "{ports}"
        );
    }
    let rule = json!({"direction": "egress", "ports": {"to": 22}});
    world
        .put(&other, json!({"spec": {"rules": [rule]}}))
        .await
        .ok(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_terraform_sends_for_nothing_is_nothing() {
    let world = World::with_network().await;
    let table = format!("{NETWORKS}/n/route-tables/t");
    let body = json!({"labels": null, "annotations": null, "extensions": null, "status": null,
        "metadata": {"name": "", "tenant": "", "workspace": "", "network": "", "region": "",
            "createdAt": "0001-01-01T00:00:00Z", "resourceVersion": 0},
        "spec": {"routes": null}});
    world.put(&table, body).await.ok(201);
    refused(
        &world,
        &format!("{table}-2"),
        json!({"spec": {"routes": []}}),
        &["/spec/routes"],
    )
    .await;
    world
        .put(&format!("{NETWORKS}/n/subnets/s"), subnet("10.1.1.0/24"))
        .await
        .ok(201);
    let nic = |addresses: Value| json!({"spec": {"addresses": addresses, "subnetRef": to("networks/n/subnets/s")}});
    let created = world.put(&format!("{NICS}/a"), nic(Value::Null)).await;
    assert!(created.ok(201)["spec"].get("addresses").is_none());
    refused(
        &world,
        &format!("{NICS}/b"),
        nic(json!([])),
        &["/spec/addresses"],
    )
    .await;
    // A list that was sent empty stays one.
    let mut more = network("10.3.0.0/16");
    more["spec"]["additionalCidrs"] = json!([]);
    let created = world.put(&format!("{NETWORKS}/m"), more).await.ok(201);
    assert_eq!(created["spec"]["additionalCidrs"], json!([]));
}

fn role(provider: &str, verbs: &[&str]) -> Value {
    json!({"spec": {"permissions": [
        {"provider": "seca.storage/v1", "resources": ["images/*"], "verb": ["GET"]},
        {"provider": provider, "resources": ["*"], "verb": verbs},
    ]}})
}

#[tokio::test(flavor = "multi_thread")]
async fn permissions_name_known_providers_and_verbs() {
    let world = World::new().await;
    let path = format!("{ROLES}/r");
    for (provider, verbs, pointers) in [
        (
            "non-existent-provider",
            &["GET"][..],
            &["/spec/permissions/1/provider"][..],
        ),
        (
            "seca.compute/v1",
            &["CONNECT"],
            &["/spec/permissions/1/verb/0"],
        ),
        (
            "seca.compute",
            &["get", "trace"],
            &["/spec/permissions/1/verb/1"],
        ),
        (
            "seca.compute",
            &["post.start"],
            &["/spec/permissions/1/verb/0"],
        ),
        (
            "nope",
            &["get", "nope"],
            &["/spec/permissions/1/provider", "/spec/permissions/1/verb/1"],
        ),
    ] {
        refused(&world, &path, role(provider, verbs), pointers).await;
    }
    let body = role(
        "seca.kubernetes",
        &[
            "get", "LIST", "Put", "delete", "post", "patch", "head", "options", "*",
        ],
    );
    let created = world.put(&path, body.clone()).await.ok(201);
    assert_eq!(created["spec"], body["spec"]);
    assert!(created["metadata"].get("region").is_none());
    assert_eq!(created["status"]["state"], "active");
    let updated = world.put(&path, role("seca.network/v1", &["PUT"])).await;
    assert_eq!(updated.ok(200)["metadata"]["resourceVersion"], 2);
}

fn assignment(scope: Value) -> Value {
    json!({"spec": {"subs": ["bob"], "roles": ["r"], "scopes": [{"regions": ["region-1"]}, scope]}})
}

#[tokio::test(flavor = "multi_thread")]
async fn assignments_name_known_tenants_regions_workspaces_roles_and_users() {
    let users = tempfile::NamedTempFile::new().expect("file");
    std::fs::write(users.path(), "t-1,alice\nt-2,bob\n").expect("written");
    let users = Users::open(users.path(), StaticTokens::admin(TOKEN)).expect("users");
    let world = World::with(|config| config.access = Access::Tokens(Arc::new(users))).await;
    world.put(WORKSPACE, json!({})).await.ok(201);
    world
        .put(&format!("{ROLES}/r"), role("seca.compute", &["get"]))
        .await
        .ok(201);
    let path = format!("{ASSIGNMENTS}/a");
    let other = WORKSPACE.replace("/acme/", "/other/");
    world.put(&other, json!({})).await.ok(201);
    let many: Vec<String> = (0..32)
        .map(|i| format!("/spec/scopes/1/workspaces/{i}"))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (scope, pointers) in [
        (
            json!({"tenants": ["nobody"]}),
            &["/spec/scopes/1/tenants/0"][..],
        ),
        (
            json!({"tenants": ["acme", "nobody"], "regions": ["nowhere"]}),
            &["/spec/scopes/1/tenants/1", "/spec/scopes/1/regions/0"],
        ),
        (
            json!({"tenants": ["acme"], "workspaces": ["prod", "none"]}),
            &["/spec/scopes/1/workspaces/1"],
        ),
        (json!({"tenants": [""]}), &["/spec/scopes/1/tenants/0"]),
        // As many faults as a problem can name, and nothing is looked up after that.
        (
            json!({"tenants": ["acme"], "workspaces": vec!["none"; 256]}),
            many.as_slice(),
        ),
    ] {
        refused(&world, &path, assignment(scope), pointers).await;
    }
    let body = with(assignment(json!({})), "/spec/subs", json!(["bob", "carol"]));
    refused(&world, &path, body, &["/spec/subs/1"]).await;
    for role in ["none", "roles/r", "A_b"] {
        let body = with(assignment(json!({})), "/spec/roles", json!(["r", role]));
        refused(&world, &path, body, &["/spec/roles/1"]).await;
    }
    for scope in [
        json!({}),
        json!({"workspaces": ["not-yet"]}),
        // Which workspaces another tenant has is not told.
        json!({"tenants": ["other"], "workspaces": ["none"]}),
        json!({"tenants": ["acme", "other"], "workspaces": ["prod", "none"]}),
        json!({"tenants": ["acme"], "regions": ["region-1"], "workspaces": ["prod"]}),
    ] {
        let body = assignment(scope);
        let answer = world.put(&path, body.clone()).await;
        assert!(answer.status.is_success(), "{body}: {}", answer.json());
        // Lists that were not sent stay away (section 5.2).
        assert_eq!(answer.json()["spec"], body["spec"]);
    }
    let everyone = with(assignment(json!({})), "/spec/subs", json!(["*"]));
    world.put(&path, everyone).await.ok(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_list_of_users_anybody_can_be_assigned() {
    let world = World::new().await;
    world
        .put(&format!("{ROLES}/r"), role("seca.compute", &["get"]))
        .await
        .ok(201);
    let body = with(assignment(json!({})), "/spec/subs", json!(["sa-1", "sa-2"]));
    world.put(&format!("{ASSIGNMENTS}/a"), body).await.ok(201);
    // The tenant of the request need not have anything else.
    let own = json!({"tenants": ["fresh"]});
    let mut body = assignment(own);
    body["spec"]["roles"] = json!(["r"]);
    let path = ASSIGNMENTS.replace("acme", "fresh");
    let answer = world.put(&format!("{path}/a"), body).await;
    assert_eq!(answer.problem(412), ["/spec/roles/0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn deferred_references_are_noted_until_a_put_has_them_all() {
    let world = World::with(|config| {
        config.references = ReferencePolicies::all(ReferencePolicy::Defer);
    })
    .await;
    world.put(WORKSPACE, json!({})).await.ok(201);
    world.add_network().await;
    let subnet_path = format!("{NETWORKS}/n/subnets/s");
    world.put(&subnet_path, subnet("10.1.1.0/24")).await.ok(201);
    let ips = NICS.replace("nics", "public-ips");
    let ip = json!({"spec": {"version": "IPv4"}});
    world.put(&format!("{ips}/p0"), ip.clone()).await.ok(201);
    let nic = json!({"spec": {
        "subnetRef": to("networks/n/subnets/s"),
        "publicIpRefs": [to("public-ips/p0"), to("public-ips/p1"), to("public-ips/p2")],
    }});
    let path = format!("{NICS}/nic");
    let noted = async || {
        let object = world.objects("NIC").get("nic").await.expect("NIC");
        let annotations = object.metadata.annotations.unwrap_or_default();
        annotations
            .get(ecp_meta::keys::DEFERRED_REFERENCES)
            .cloned()
    };
    let created = world.put(&path, nic.clone()).await.ok(201);
    assert_eq!(created["spec"], nic["spec"]);
    assert_eq!(
        noted().await.as_deref(),
        Some("publicIpRefs[1],publicIpRefs[2]")
    );
    world.put(&format!("{ips}/p1"), ip.clone()).await.ok(201);
    world.put(&path, nic.clone()).await.ok(200);
    assert_eq!(noted().await.as_deref(), Some("publicIpRefs[2]"));
    world.put(&format!("{ips}/p2"), ip).await.ok(201);
    world.put(&path, nic.clone()).await.ok(200);
    assert_eq!(noted().await, None);
    // What nothing works without is refused under any policy.
    for (pointer, value, at) in [
        (
            "/spec/subnetRef",
            to("networks/n/subnets/none"),
            "/spec/subnetRef/resource",
        ),
        (
            "/spec/securityGroupRefs",
            json!([to("none")]),
            "/spec/securityGroupRefs/0/resource",
        ),
    ] {
        let body = with(nic.clone(), pointer, value);
        refused(&world, &format!("{NICS}/other"), body, &[at]).await;
    }
    let roles = assignment(json!({}));
    world.put(&format!("{ASSIGNMENTS}/a"), roles).await.ok(201);
    let image = json!({"spec": {"cpuArchitecture": "amd64", "blockStorageRef":
        to("seca.storage/v1/tenants/acme/workspaces/prod/block-storages/later")}});
    world.put(&format!("{IMAGES}/i"), image).await.ok(201);
    let image = world.objects("Image").get("i").await.expect("image");
    assert_eq!(
        image.metadata.annotations.unwrap_or_default()[ecp_meta::keys::DEFERRED_REFERENCES],
        "blockStorageRef"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_whose_volume_is_in_no_workspace_is_not_refused() {
    let world = World::with_workspace().await;
    let image = json!({"spec": {"cpuArchitecture": "amd64",
        "blockStorageRef": to("block-storages/block-storage-1")}});
    let created = world.put(&format!("{IMAGES}/i"), image.clone()).await;
    assert_eq!(
        created.ok(201)["spec"]["blockStorageRef"],
        image["spec"]["blockStorageRef"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_went_away_does_not_hold_up_another_change() {
    let world = World::with_network().await;
    let subnet_path = format!("{NETWORKS}/n/subnets/s");
    world.put(&subnet_path, subnet("10.1.1.0/24")).await.ok(201);
    world
        .delete(&format!("{NETWORKS}/n/route-tables/rt"))
        .await
        .ok(202);
    let mut body = subnet("10.1.1.0/24");
    body["labels"] = json!({"a": "b"});
    world.put(&subnet_path, body.clone()).await.ok(200);
    body["spec"]["routeTableRef"] = to("route-tables/rt");
    let answer = world.put(&subnet_path, body).await;
    assert_eq!(answer.problem(412), ["/spec/routeTableRef/resource"]);
}
