//! References: the forms they have, and what becomes of those that name nothing (contract,
//! sections 2.5, 3.7, 3.9).

use serde_json::{Value, json};

use crate::bodies::{self, reference};
use crate::kinds::*;
use crate::site::Site;
use crate::world::{Answer, Policy, Refusal};
use crate::{cases, check};

cases!(
    One every_form_is_resolved_and_echoed,
    All catalogue_entries_must_exist,
    All a_missing_target_is_refused_or_waited_for,
    All a_missing_workspace_is_refused_always,
    Two what_comes_later_is_taken_up,
    Two targets_of_the_wrong_kind_are_refused,
    One some_targets_are_any_text,
    Two resources_of_other_tenants_do_not_exist,
    One targets_need_not_be_active,
);

async fn every_form_is_resolved_and_echoed(site: Site) {
    site.prepare(&NIC).await;
    site.sample(&BLOCK_STORAGE).await;
    let (tenant, workspace) = (&site.tenant, &site.workspace);
    let in_place = json!({ "tenant": tenant, "workspace": workspace });
    let with = |resource: &str| {
        let mut reference = in_place.clone();
        reference["resource"] = json!(resource);
        reference
    };
    let urn = |kind: &Kind| site.urn(kind, kind.sample);
    let forms: Vec<(&Kind, &str, Vec<Value>)> = vec![
        (
            &BLOCK_STORAGE,
            "/skuRef",
            vec![
                reference(&site.sku("storage", "RD500")),
                reference(&format!("tenants/{tenant}/skus/RD500")),
                reference("skus/RD500"),
                reference("storage-skus/RD500"),
                reference("RD500"),
                json!({ "resource": "skus/RD500", "provider": "seca.storage/v1", "tenant": tenant }),
            ],
        ),
        (
            &INSTANCE,
            "/skuRef",
            vec![reference("instance-skus/DS"), reference("DS")],
        ),
        (
            &NETWORK,
            "/skuRef",
            vec![reference("network-skus/N1K"), reference("N10K")],
        ),
        (
            &INSTANCE,
            "/bootVolume/deviceRef",
            vec![
                reference(&urn(&BLOCK_STORAGE)),
                reference("block-storages/disk"),
                reference("disk"),
                with("block-storages/disk"),
                reference(&format!("workspaces/{workspace}/block-storages/disk")),
            ],
        ),
        (
            &IMAGE,
            "/blockStorageRef",
            vec![
                reference(&urn(&BLOCK_STORAGE)),
                with("block-storages/disk"),
                with("disk"),
                json!({ "resource": format!("workspaces/{workspace}/block-storages/disk") }),
            ],
        ),
        (
            &NIC,
            "/subnetRef",
            vec![
                reference(&urn(&SUBNET)),
                reference("networks/net/subnets/sn"),
                with("networks/net/subnets/sn"),
            ],
        ),
        (
            &SUBNET,
            "/routeTableRef",
            vec![
                reference(&urn(&ROUTE_TABLE)),
                reference("networks/net/route-tables/rt"),
                reference("route-tables/rt"),
                reference("rt"),
                reference(""),
            ],
        ),
        (
            &ROUTE_TABLE,
            "/routes/0/targetRef",
            vec![
                reference(&urn(&INTERNET_GATEWAY)),
                reference("internet-gateways/gw"),
                reference("10.1.1.1"),
            ],
        ),
    ];
    for (f, (kind, field, forms)) in forms.into_iter().enumerate() {
        for (n, form) in forms.into_iter().enumerate() {
            let mut spec = bodies::minimal(&site, kind);
            *spec.pointer_mut(field).unwrap() = form.clone();
            let made = site.make(kind, &format!("x-{f}-{n}"), &spec).await;
            assert_eq!(made["spec"].pointer(field), Some(&form));
            check::conditions(&made, &check::CREATED);
        }
    }
}

/// A PUT that does not wait: what misses something may wait for it for ever.
async fn put_at_once(site: &Site, kind: &Kind, name: &str, spec: &Value) -> Answer {
    let call = site.world.call("PUT", &site.path(kind, name));
    let call = call.header("prefer", "respond-async");
    call.json(&json!({ "spec": spec })).send().await
}

/// Sets a field of a spec, the missing parents of it too.
fn with(spec: &Value, pointer: &str, value: Value) -> Value {
    let mut spec = spec.clone();
    match pointer.trim_start_matches('/').split_once('/') {
        None => spec[&pointer[1..]] = value,
        Some(_) => *spec.pointer_mut(pointer).unwrap() = value,
    }
    spec
}

fn blames(answer: &Answer, pointer: &str) -> bool {
    let pointer = format!("/spec{pointer}");
    let fits = |s: &&str| s.starts_with(&*pointer) || pointer.starts_with(*s);
    answer.sources().iter().any(fits)
}

async fn catalogue_entries_must_exist(site: Site) {
    for (kind, api) in [
        (&BLOCK_STORAGE, "storage"),
        (&INSTANCE, "compute"),
        (&NETWORK, "network"),
        (&SUBNET, "network"),
        (&NIC, "network"),
    ] {
        site.prepare(kind).await;
        let missing = reference(&site.sku(api, "NONE"));
        let spec = with(&bodies::minimal(&site, kind), "/skuRef", missing);
        let answer = put_at_once(&site, kind, "x", &spec).await;
        let code = site.world.code(Refusal::Reference);
        assert_eq!(answer.status, code, "{answer:#?}");
        assert!(blames(&answer, "/skuRef"), "{answer:#?}");
        site.get(kind, "x").await.ok(404);
    }
}

/// Every field that refers to what users make, and a value that names nothing.
fn dangling(site: &Site) -> Vec<(&'static Kind, &'static str, Value)> {
    let to = |kind: &Kind| reference(&site.urn(kind, "non-existent"));
    vec![
        (&ROLE_ASSIGNMENT, "/roles", json!(["non-existent"])),
        (&BLOCK_STORAGE, "/sourceImageRef", to(&IMAGE)),
        (&IMAGE, "/blockStorageRef", to(&BLOCK_STORAGE)),
        (&INSTANCE, "/bootVolume/deviceRef", to(&BLOCK_STORAGE)),
        (
            &INSTANCE,
            "/dataVolumes",
            json!([{ "deviceRef": to(&BLOCK_STORAGE) }]),
        ),
        (&INSTANCE, "/primaryNicRef", to(&NIC)),
        (&INSTANCE, "/additionalNicRefs", json!([to(&NIC)])),
        (&INSTANCE, "/securityGroupRef", to(&SECURITY_GROUP)),
        (&ROUTE_TABLE, "/routes/0/targetRef", to(&INTERNET_GATEWAY)),
        (&SUBNET, "/routeTableRef", to(&ROUTE_TABLE)),
        (&NIC, "/subnetRef", to(&SUBNET)),
        (&NIC, "/publicIpRefs", json!([to(&PUBLIC_IP)])),
        (&NIC, "/securityGroupRefs", json!([to(&SECURITY_GROUP)])),
        (
            &SECURITY_GROUP,
            "/ruleRefs",
            json!([to(&SECURITY_GROUP_RULE)]),
        ),
    ]
}

/// The fields about which the contract contradicts itself (section 3.9): they follow the policy.
/// All others are refused under either.
const DEFERRED: [(&str, &str); 3] = [
    ("role-assignment", "/roles"),
    ("image", "/blockStorageRef"),
    ("nic", "/publicIpRefs"),
];

async fn a_missing_target_is_refused_or_waited_for(site: Site) {
    for kind in [&ROLE, &NIC, &INSTANCE] {
        site.prepare(kind).await;
    }
    for (n, (kind, field, value)) in dangling(&site).into_iter().enumerate() {
        let name = format!("x-{n}");
        if kind.name == "role-assignment" {
            site.sample(&ROLE).await;
        }
        let spec = with(&bodies::minimal(&site, kind), field, value);
        let answer = put_at_once(&site, kind, &name, &spec).await;
        let deferred = DEFERRED.contains(&(kind.name, field));
        match site.world.mode.policy {
            Policy::Defer if deferred => {
                check::echo(&answer.ok(201), &json!({ "spec": spec }));
                site.get(kind, &name).await.ok(200);
            }
            Policy::Reject | Policy::Defer => {
                let code = site.world.code(Refusal::Reference);
                assert_eq!(answer.status, code, "{answer:#?}");
                assert!(blames(&answer, field), "{answer:#?}");
                site.get(kind, &name).await.ok(404);
            }
        }
    }
}

async fn a_missing_workspace_is_refused_always(site: Site) {
    site.prepare(&IMAGE).await;
    let nowhere = site.in_workspace("nowhere").urn(&BLOCK_STORAGE, "disk");
    let spec = json!({ "blockStorageRef": reference(&nowhere), "cpuArchitecture": "amd64" });
    let answer = put_at_once(&site, &IMAGE, "x", &spec).await;
    assert_eq!(
        answer.status,
        site.world.code(Refusal::Reference),
        "{answer:#?}"
    );
    assert!(blames(&answer, "/blockStorageRef"), "{answer:#?}");
}

async fn what_comes_later_is_taken_up(site: Site) {
    if site.world.mode.policy == Policy::Reject {
        return;
    }
    site.prepare(&NIC).await;
    // A NIC works without its public IP, and gets it when it comes.
    let mut nic = bodies::minimal(&site, &NIC);
    nic["publicIpRefs"] = json!([reference("public-ips/pip")]);
    check::conditions(&site.make(&NIC, "nic", &nic).await, &check::CREATED);
    site.sample(&PUBLIC_IP).await;
    let attached = |a: &Answer| a.body["status"]["attachedTo"].is_object();
    let path = site.path(&PUBLIC_IP, PUBLIC_IP.sample);
    let pip = site.world.until(&path, "attached", attached).await;
    let nic = site.urn(&NIC, "nic");
    assert_eq!(pip.body["status"]["attachedTo"]["resource"], nic);
    // An image is active without its volume, which it is filled from when that comes.
    let spec = bodies::minimal(&site, &IMAGE);
    let made = put_at_once(&site, &IMAGE, "x", &spec).await.ok(201);
    assert_ne!(made["status"]["state"], "error", "{made:#}");
    site.sample(&BLOCK_STORAGE).await;
    let active = site.until_active(&IMAGE, "x").await;
    check::conditions(&active, &check::CREATED);
}

async fn targets_of_the_wrong_kind_are_refused(site: Site) {
    for kind in [&NIC, &INSTANCE] {
        site.prepare(kind).await;
    }
    site.sample(&IMAGE).await;
    for (kind, field, value) in [
        (
            &BLOCK_STORAGE,
            "/skuRef",
            reference(&site.urn(&IMAGE, "image")),
        ),
        (
            &BLOCK_STORAGE,
            "/skuRef",
            reference(&site.sku("compute", "DS")),
        ),
        (
            &BLOCK_STORAGE,
            "/sourceImageRef",
            reference(&site.urn(&BLOCK_STORAGE, "disk")),
        ),
        (
            &INSTANCE,
            "/bootVolume/deviceRef",
            reference("images/image"),
        ),
        (
            &INSTANCE,
            "/primaryNicRef",
            reference("block-storages/disk"),
        ),
        (
            &NIC,
            "/subnetRef",
            reference("networks/net/route-tables/rt"),
        ),
        (&NIC, "/subnetRef", reference("networks/net")),
        (
            &SUBNET,
            "/routeTableRef",
            reference("networks/net/subnets/sn"),
        ),
    ] {
        let spec = with(&bodies::minimal(&site, kind), field, value);
        let answer = put_at_once(&site, kind, "x", &spec).await;
        assert_eq!(
            answer.status,
            site.world.code(Refusal::Reference),
            "{answer:#?}"
        );
        assert!(blames(&answer, field), "{answer:#?}");
    }
}

async fn some_targets_are_any_text(site: Site) {
    site.prepare(&ROUTE_TABLE).await;
    let text = |text: &str| json!([reference(text)]);
    let instance = site.urn(&INSTANCE, "never-made");
    for (n, sources) in [
        text("55.44.33.11"),
        text("10.0.0.0/8"),
        text("fd00::/8"),
        text(&instance),
        text(&site.urn(&SECURITY_GROUP, "never-made")),
    ]
    .into_iter()
    .enumerate()
    {
        let rule = json!({ "direction": "ingress", "sourceRef": sources });
        let name = format!("x-{n}");
        let made = site.make(&SECURITY_GROUP_RULE, &name, &rule).await;
        assert_eq!(made["spec"]["sourceRef"], sources);
        let group = json!({ "rules": [rule] });
        site.make(&SECURITY_GROUP, &name, &group).await;
    }
    // An instance that does not exist yet is a target under either policy (section 3.6).
    let spec = json!({ "routes": [
        { "destinationCidrBlock": "0.0.0.0/0", "targetRef": reference(&instance) },
    ] });
    site.make(&ROUTE_TABLE, "x", &spec).await;
}

async fn resources_of_other_tenants_do_not_exist(site: Site) {
    let other = Site::new(site.world.clone());
    other.prepare(&INSTANCE).await;
    other.sample(&IMAGE).await;
    site.prepare(&NIC).await;
    for (kind, field, value) in [
        (
            &IMAGE,
            "/blockStorageRef",
            other.urn(&BLOCK_STORAGE, "disk"),
        ),
        (
            &BLOCK_STORAGE,
            "/sourceImageRef",
            other.urn(&IMAGE, "image"),
        ),
        (
            &INSTANCE,
            "/bootVolume/deviceRef",
            other.urn(&BLOCK_STORAGE, "disk"),
        ),
    ] {
        let spec = with(&bodies::minimal(&site, kind), field, reference(&value));
        let answer = put_at_once(&site, kind, "x", &spec).await;
        assert_eq!(
            answer.status,
            site.world.code(Refusal::Reference),
            "{answer:#?}"
        );
        assert!(blames(&answer, field), "{answer:#?}");
        // The refusal tells nothing that one of a tenant that never was would not.
        let value = value.replace(&other.tenant, "nobody");
        let spec = with(&bodies::minimal(&site, kind), field, reference(&value));
        let unknown = put_at_once(&site, kind, "x", &spec).await;
        let told = answer.body["detail"].as_str().unwrap();
        let told = told.replace(&other.tenant, "nobody");
        assert_eq!(unknown.body["detail"], told);
    }
}

/// A workspace and all that is in it, sent without waiting for anything (section 3.6).
async fn targets_need_not_be_active(site: Site) {
    for kind in KINDS {
        let spec = bodies::minimal(&site, kind);
        put_at_once(&site, kind, kind.sample, &spec).await.ok(201);
    }
    for kind in KINDS {
        let active = site.until_active(kind, kind.sample).await;
        check::conditions(&active, &check::CREATED);
    }
    // And all deleted without waiting, those that are used before what uses them is gone.
    for kind in KINDS.iter().rev() {
        let call = site.world.call("DELETE", &site.path(kind, kind.sample));
        call.header("prefer", "respond-async").send().await.ok(202);
    }
    for kind in KINDS {
        site.world.until_gone(&site.path(kind, kind.sample)).await;
    }
}
