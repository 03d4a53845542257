//! What status says of the cloud is so (contract, section 2.6; features of the Go ECP, section 5).

use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};

use crate::bodies::{self, reference};
use crate::cases;
use crate::kinds::*;
use crate::site::Site;
use crate::world::Answer;

cases!(
    One volumes_have_sizes_and_know_their_instance,
    One networks_have_the_ranges_that_were_asked_for,
    One ranges_and_addresses_are_found_by_the_cloud,
    One public_ips_have_addresses_and_know_their_nic,
    One images_have_sizes,
    One workspaces_count_what_is_in_them,
    One each_route_and_rule_has_a_state,
    One a_fact_that_cannot_be_is_an_error,
);

/// Reads until a status field has a value.
async fn until(site: &Site, kind: &Kind, name: &str, field: &str, value: &Value) -> Value {
    let has = |a: &Answer| a.status == 200 && a.body["status"][field] == *value;
    let what = format!("{field} = {value}");
    let path = site.path(kind, name);
    site.world.until(&path, &what, has).await.body
}

async fn volumes_have_sizes_and_know_their_instance(site: Site) {
    site.prepare(&INSTANCE).await;
    let mut spec = bodies::minimal(&site, &BLOCK_STORAGE);
    let made = site.make(&BLOCK_STORAGE, "data", &spec).await;
    assert_eq!(made["status"]["sizeGB"], 20);
    assert!(made["status"]["attachedTo"].is_null(), "{made:#}");
    let mut vm = bodies::minimal(&site, &INSTANCE);
    vm["dataVolumes"] = json!([{ "deviceRef": reference("data") }]);
    site.make(&INSTANCE, "vm", &vm).await;
    let own = reference(&site.urn(&INSTANCE, "vm"));
    for name in ["disk", "data"] {
        until(&site, &BLOCK_STORAGE, name, "attachedTo", &own).await;
    }
    spec["sizeGB"] = json!(33);
    let grown = site.put(&BLOCK_STORAGE, "data", &spec).await.ok(200);
    assert_eq!(grown["status"]["sizeGB"], 33, "{grown:#}");
    site.remove(&INSTANCE, "vm").await;
    for name in ["disk", "data"] {
        let free = until(&site, &BLOCK_STORAGE, name, "attachedTo", &Value::Null).await;
        // That is no change of the volume: its conditions stay.
        let changes = if name == "data" { 1 } else { 0 };
        crate::check::conditions(&free, &crate::check::changed(changes));
    }
}

async fn networks_have_the_ranges_that_were_asked_for(site: Site) {
    site.prepare_full(&NIC).await;
    let spec = bodies::full(&site, &NETWORK);
    let network = site.make(&NETWORK, "x", &spec).await;
    assert_eq!(network["status"]["cidr"], spec["cidr"]);
    assert_eq!(
        network["status"]["additionalCidrs"],
        spec["additionalCidrs"]
    );
    let subnet = site.get(&SUBNET, SUBNET.sample).await.ok(200);
    assert_eq!(subnet["status"]["cidr"], json!({ "ipv4": "10.1.1.0/24" }));
    let table = &subnet["status"]["routeTableRef"]["resource"];
    assert!(
        table.as_str().unwrap().ends_with("route-tables/rt"),
        "{subnet:#}"
    );
    let nic = site.make(&NIC, "x", &bodies::full(&site, &NIC)).await;
    assert_eq!(
        nic["status"]["addresses"],
        json!(["10.1.1.10", "10.1.1.11"])
    );
    let public = nic["status"]["publicIpRefs"].as_array().unwrap();
    assert_eq!(public.len(), 1, "{nic:#}");
    mac(&nic);
}

fn mac(nic: &Value) -> String {
    let mac = nic["status"]["macAddress"].as_str().unwrap();
    let parts: Vec<&str> = mac.split(':').collect();
    assert_eq!(parts.len(), 6, "{mac}");
    for part in parts {
        assert_eq!(part.len(), 2, "{mac}");
        u8::from_str_radix(part, 16).unwrap();
    }
    mac.to_owned()
}

/// First address and prefix length.
fn range(text: &Value) -> (u32, u32) {
    let (address, length) = text.as_str().unwrap().split_once('/').unwrap();
    let address: Ipv4Addr = address.parse().unwrap();
    (address.to_bits(), length.parse().unwrap())
}

fn inside(outer: (u32, u32), address: u32) -> bool {
    (outer.0 ^ address).checked_shr(32 - outer.1).unwrap_or(0) == 0
}

/// `0.0.0.0/n` asks for a range of this size, `0.0.0.0` and no address at all for an address.
async fn ranges_and_addresses_are_found_by_the_cloud(site: Site) {
    site.sample(&WORKSPACE).await;
    site.sample(&INTERNET_GATEWAY).await;
    let sku = reference("skus/N1K");
    let asked = json!({ "ipv4": "0.0.0.0/16", "ipv6": "::/56" });
    let network = json!({ "cidr": asked, "skuRef": sku });
    let network = site.make(&NETWORK, NETWORK.sample, &network).await;
    assert_eq!(network["spec"]["cidr"], asked);
    let whole = range(&network["status"]["cidr"]["ipv4"]);
    assert!(whole.0 != 0 && whole.1 == 16, "{network:#}");
    let six = network["status"]["cidr"]["ipv6"].as_str().unwrap();
    let (address, length) = six.split_once('/').unwrap();
    assert!(
        !address.parse::<Ipv6Addr>().unwrap().is_unspecified(),
        "{six}"
    );
    assert_eq!(length, "56");

    site.sample(&ROUTE_TABLE).await;
    let mut ranges = Vec::new();
    for name in ["sn-1", "sn-2"] {
        let asked = json!({ "ipv4": "0.0.0.0/24" });
        let spec = json!({ "cidr": asked, "routeTableRef": reference("rt"), "zone": "zone-a" });
        let subnet = site.make(&SUBNET, name, &spec).await;
        assert_eq!(subnet["spec"]["cidr"], asked);
        let found = range(&subnet["status"]["cidr"]["ipv4"]);
        assert!(inside(whole, found.0) && found.1 == 24, "{subnet:#}");
        ranges.push(found);
    }
    assert_ne!(ranges[0], ranges[1]);

    let mut seen = std::collections::BTreeSet::new();
    for (n, asked) in [json!(["0.0.0.0"]), json!(["0.0.0.0"]), Value::Null]
        .iter()
        .enumerate()
    {
        let subnet = reference("networks/net/subnets/sn-1");
        let spec = json!({ "addresses": asked, "subnetRef": subnet });
        let nic = site.make(&NIC, &format!("nic-{n}"), &spec).await;
        let addresses = nic["status"]["addresses"].as_array().unwrap();
        assert_eq!(addresses.len(), 1, "{nic:#}");
        let address: Ipv4Addr = addresses[0].as_str().unwrap().parse().unwrap();
        assert!(inside(ranges[0], address.to_bits()), "{nic:#}");
        assert!(seen.insert(address.to_string()), "{address} twice");
        assert!(seen.insert(mac(&nic)), "one MAC address twice");
    }
}

async fn public_ips_have_addresses_and_know_their_nic(site: Site) {
    site.prepare(&NIC).await;
    let mut seen = std::collections::BTreeSet::new();
    for (name, version) in [("pip", "IPv4"), ("four", "IPv4"), ("six", "IPv6")] {
        let made = site
            .make(&PUBLIC_IP, name, &json!({ "version": version }))
            .await;
        let address = made["status"]["ipAddress"].as_str().unwrap();
        match version {
            "IPv4" => drop(address.parse::<Ipv4Addr>().unwrap()),
            _ => drop(address.parse::<Ipv6Addr>().unwrap()),
        }
        assert!(made["status"]["attachedTo"].is_null(), "{made:#}");
        assert!(seen.insert(address.to_owned()), "{address} twice");
    }
    let own = json!({ "version": "IPv4", "address": "52.93.126.3" });
    let made = site.make(&PUBLIC_IP, "own", &own).await;
    assert_eq!(made["status"]["ipAddress"], "52.93.126.3");

    let mut nic = bodies::minimal(&site, &NIC);
    nic["publicIpRefs"] = json!([reference("public-ips/pip")]);
    site.make(&NIC, "nic", &nic).await;
    let attached = reference(&site.urn(&NIC, "nic"));
    until(&site, &PUBLIC_IP, "pip", "attachedTo", &attached).await;
    nic["publicIpRefs"] = json!([reference("public-ips/four")]);
    site.put(&NIC, "nic", &nic).await.ok(200);
    until(&site, &PUBLIC_IP, "four", "attachedTo", &attached).await;
    until(&site, &PUBLIC_IP, "pip", "attachedTo", &Value::Null).await;
    site.remove(&NIC, "nic").await;
    until(&site, &PUBLIC_IP, "four", "attachedTo", &Value::Null).await;
}

async fn images_have_sizes(site: Site) {
    site.prepare(&IMAGE).await;
    let image = site.sample(&IMAGE).await;
    let size = image["status"]["sizeMB"].as_u64().unwrap();
    assert!((1..=20 * 1024).contains(&size), "{image:#}");
}

async fn workspaces_count_what_is_in_them(site: Site) {
    let made = site.sample(&WORKSPACE).await;
    assert_eq!(made["status"]["resourceCount"], 0, "{made:#}");
    for kind in [&BLOCK_STORAGE, &PUBLIC_IP, &SECURITY_GROUP] {
        site.sample(kind).await;
    }
    let name = WORKSPACE.sample;
    until(&site, &WORKSPACE, name, "resourceCount", &json!(3)).await;
    site.remove(&PUBLIC_IP, PUBLIC_IP.sample).await;
    let counted = until(&site, &WORKSPACE, name, "resourceCount", &json!(2)).await;
    crate::check::conditions(&counted, &crate::check::CREATED);
}

/// The states of the parts of a resource, in the order of the spec.
fn states(document: &Value, field: &str) -> Vec<Value> {
    let parts = document["status"][field].as_array().unwrap().iter();
    parts
        .map(|part| {
            let newest = &part["conditions"][0];
            assert_eq!(newest["state"], part["state"], "{document:#}");
            crate::check::time(&newest["lastTransitionAt"]);
            part["state"].clone()
        })
        .collect()
}

async fn each_route_and_rule_has_a_state(site: Site) {
    site.prepare(&ROUTE_TABLE).await;
    let route =
        |cidr: &str, to: &str| json!({ "destinationCidrBlock": cidr, "targetRef": reference(to) });
    let never = site.urn(&INSTANCE, "never-made");
    let spec = json!({ "routes": [
        route("0.0.0.0/0", "internet-gateways/gw"), route("10.9.0.0/16", &never),
    ] });
    let table = site.make(&ROUTE_TABLE, "x", &spec).await;
    assert_eq!(states(&table, "routes"), ["active", "pending"]);
    let spec = bodies::full(&site, &SECURITY_GROUP);
    site.sample(&SECURITY_GROUP_RULE).await;
    let group = site.make(&SECURITY_GROUP, "x", &spec).await;
    assert_eq!(states(&group, "rules"), ["active", "active"]);
}

/// An address outside the subnet is refused, by the API or by the cloud, and then says why.
async fn a_fact_that_cannot_be_is_an_error(site: Site) {
    site.prepare(&NIC).await;
    let mut spec = bodies::minimal(&site, &NIC);
    spec["addresses"] = json!(["10.99.0.1"]);
    let answer = site.put(&NIC, "x", &spec).await;
    if answer.status == 201 {
        let status = &answer.body["status"];
        assert_eq!(status["state"], "error", "{answer:#?}");
        assert!(
            status["conditions"][0]["message"].is_string(),
            "{answer:#?}"
        );
    } else {
        assert!(
            answer
                .sources()
                .iter()
                .any(|s| s.starts_with("/spec/addresses")),
            "{answer:#?}"
        );
    }
}
