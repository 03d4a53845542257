//! Networks, what is in them, and who may pass.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;

/// A spec from JSON, in location eu-1.
pub(super) fn spec(kind: &str, mut fields: Value) -> Spec {
    fields["location"] = "eu-1".into();
    fields["displayName"] = "x".into();
    serde_json::from_value(json!({ kind: fields })).expect("a spec")
}

/// Makes what a spec from JSON says.
pub(super) fn try_make(cloud: &Cloud, kind: &str, fields: Value) -> Result<Object, CloudError> {
    let tag = uuid::Uuid::new_v4().to_string();
    cloud.create(ACCOUNT, &tag, spec(kind, fields))
}

pub(super) fn make(cloud: &Cloud, kind: &str, fields: Value) -> String {
    try_make(cloud, kind, fields).expect("created").id
}

pub(super) fn look(cloud: &Cloud, id: &str) -> Object {
    cloud.get(ACCOUNT, id).expect("an answer").expect("there")
}

pub(super) fn change(
    cloud: &Cloud,
    id: &str,
    kind: &str,
    fields: Value,
) -> Result<Object, CloudError> {
    cloud.update(ACCOUNT, id, spec(kind, fields))
}

/// The words of a refusal.
pub(super) fn words<T: fmt::Debug>(result: Result<T, CloudError>) -> String {
    match result {
        Err(CloudError::Refused(text)) => text,
        other => panic!("not refused: {other:?}"),
    }
}

fn ipv4(object: &Object) -> String {
    let cidr = object.choices.cidr.clone().unwrap_or_default();
    cidr.ipv4.unwrap_or_default()
}

fn network(cloud: &Cloud) -> String {
    make(cloud, "network", json!({"cidr": {"ipv4": "10.1.0.0/16"}}))
}

fn subnet(cloud: &Cloud, network: &str) -> String {
    let fields = json!({"network": network, "cidr": {"ipv4": "10.1.1.0/24"}});
    make(cloud, "subnet", fields)
}

fn parts(object: &Object) -> Vec<(&'static str, Option<&str>)> {
    let parts = object.relations.parts.iter();
    parts
        .map(|p| (p.state.as_str(), p.reason.as_deref()))
        .collect()
}

#[test]
fn networks_have_what_they_ask_for_or_what_is_free() {
    let (cloud, _) = cloud();
    let asked = json!({"cidr": {"ipv4": "10.0.0.0/16", "ipv6": ""}});
    let first = look(&cloud, &make(&cloud, "network", asked.clone()));
    assert_eq!(ipv4(&first), "10.0.0.0/16");
    assert_eq!(first.choices.cidr.and_then(|c| c.ipv6), None);
    make(&cloud, "network", asked);
    let open = json!({
        "cidr": {"ipv4": "0.0.0.0/16", "ipv6": "::/56"},
        "additionalCidrs": [{"ipv4": "0.0.0.0/24"}],
    });
    let chosen = look(&cloud, &make(&cloud, "network", open.clone()));
    assert_eq!(ipv4(&chosen), "10.1.0.0/16");
    let ipv6 = chosen.choices.cidr.as_ref().and_then(|c| c.ipv6.as_deref());
    assert_eq!(ipv6, Some("fd00::/56"));
    let more = chosen.choices.additional_cidrs[0].ipv4.as_deref();
    assert_eq!(more, Some("10.2.0.0/24"));
    let mut renamed = open;
    renamed["networkType"] = "fast".into();
    let again = change(&cloud, &chosen.id, "network", renamed).expect("changed");
    assert_eq!(again.choices, chosen.choices, "what was chosen stays");
}

#[test]
fn bad_address_blocks_are_refused() {
    let (cloud, _) = cloud();
    let refused = |cidr: Value| words(try_make(&cloud, "network", json!({ "cidr": cidr })));
    assert_eq!(refused(json!({})), "an address block is needed");
    assert_eq!(refused(json!({"ipv4": ""})), "an address block is needed");
    assert_eq!(
        refused(json!({"ipv4": "10.0.0.0"})),
        r#""10.0.0.0" is no address block"#
    );
    assert_eq!(
        refused(json!({"ipv4": "fd00::/56"})),
        "fd00::/56 is no IPv4 address block"
    );
    assert_eq!(
        refused(json!({"ipv4": "0.0.0.0/4"})),
        "no private address block of /4 is left"
    );
}

#[test]
fn subnets_are_inside_their_network() {
    let (cloud, _) = cloud();
    let network = network(&cloud);
    let asked = |cidr: &str| json!({"network": network, "cidr": {"ipv4": cidr}});
    assert_eq!(
        words(try_make(&cloud, "subnet", asked("192.168.99.0/24"))),
        format!("192.168.99.0/24 is not inside network {network} (10.1.0.0/16)")
    );
    make(&cloud, "subnet", asked("10.1.0.0/24"));
    make(&cloud, "subnet", asked("10.1.0.0/24"));
    let free = look(&cloud, &make(&cloud, "subnet", asked("0.0.0.0/24")));
    assert_eq!(ipv4(&free), "10.1.1.0/24");
    assert!(matches!(
        try_make(&cloud, "subnet", json!({"network": "net-x", "cidr": {"ipv4": "0.0.0.0/24"}})),
        Err(CloudError::NotFound(text)) if text == "network net-x does not exist"
    ));
    let smaller = change(
        &cloud,
        &network,
        "network",
        json!({"cidr": {"ipv4": "10.1.0.0/24"}}),
    );
    assert_eq!(
        words(smaller),
        format!(
            "subnet {} with 10.1.1.0/24 would be outside network {network}",
            free.id
        )
    );
    let larger = json!({"cidr": {"ipv4": "10.1.0.0/15"}});
    change(&cloud, &network, "network", larger).expect("room for all");
}

#[test]
fn interfaces_have_what_they_ask_for_or_what_is_free() {
    let (cloud, _) = cloud();
    let subnet = subnet(&cloud, &network(&cloud));
    let asked = |addresses: Value| json!({"subnet": subnet, "addresses": addresses});
    let both = look(
        &cloud,
        &make(
            &cloud,
            "networkInterface",
            asked(json!(["10.1.1.2", "0.0.0.0"])),
        ),
    );
    assert_eq!(both.choices.addresses, ["10.1.1.2", "10.1.1.3"]);
    make(&cloud, "networkInterface", asked(json!(["10.1.1.2"])));
    let auto = look(&cloud, &make(&cloud, "networkInterface", asked(json!([]))));
    assert_eq!(auto.choices.addresses, ["10.1.1.4"]);
    let mac = auto.choices.mac_address.clone().expect("one");
    assert_eq!((mac.len(), &mac[..3]), (17, "02:"));
    let more = change(
        &cloud,
        &auto.id,
        "networkInterface",
        asked(json!(["10.1.1.9", "0.0.0.0"])),
    );
    let more = more.expect("changed");
    assert_eq!(
        more.choices.addresses,
        ["10.1.1.9", "10.1.1.4"],
        "the chosen one stays"
    );
    assert_eq!(more.choices.mac_address, Some(mac));
    for (address, text) in [
        ("10.1.2.1", "10.1.2.1 is no address for hosts of subnet"),
        ("10.1.1.255", "10.1.1.255 is no address for hosts of subnet"),
        ("::", "has no IPv6 addresses"),
        ("nowhere", r#""nowhere" is no address"#),
    ] {
        let refused = words(try_make(
            &cloud,
            "networkInterface",
            asked(json!([address])),
        ));
        assert!(refused.contains(text), "{refused}");
    }
}

#[test]
fn public_addresses_come_from_a_pool_and_go_to_the_first_interface() {
    let (cloud, clock) = cloud();
    let version = json!({"version": "IPv4"});
    let first = look(&cloud, &make(&cloud, "publicAddress", version.clone()));
    let second = look(&cloud, &make(&cloud, "publicAddress", version.clone()));
    assert_eq!(first.choices.addresses, ["192.0.2.2"]);
    assert_eq!(second.choices.addresses, ["192.0.2.3"]);
    let own = json!({"version": "IPv4", "address": "52.93.126.1"});
    let brought = look(&cloud, &make(&cloud, "publicAddress", own.clone()));
    assert_eq!(brought.choices.addresses, ["52.93.126.1"]);
    make(&cloud, "publicAddress", own);
    let wrong = json!({"version": "IPv6", "address": "52.93.126.1"});
    assert_eq!(
        words(try_make(&cloud, "publicAddress", wrong)),
        "52.93.126.1 is no IPv6 address"
    );

    let subnet = subnet(&cloud, &network(&cloud));
    let with = |ids: Value| json!({"subnet": subnet, "publicAddresses": ids});
    let holder = make(
        &cloud,
        "networkInterface",
        with(json!([first.id, "ip-missing"])),
    );
    clock.forward(1);
    let waiting = make(&cloud, "networkInterface", with(json!([first.id])));
    let holders = |cloud: &Cloud| {
        let on = |id: &str| look(cloud, id).relations.public_addresses;
        (
            look(cloud, &first.id).relations.attached_to.map(|a| a.id),
            on(&holder),
            on(&waiting),
        )
    };
    assert_eq!(
        holders(&cloud),
        (Some(holder.clone()), vec![first.id.clone()], vec![])
    );
    change(&cloud, &holder, "networkInterface", with(json!([]))).expect("detached");
    assert_eq!(
        holders(&cloud),
        (Some(waiting.clone()), vec![], vec![first.id.clone()])
    );
    cloud.delete(ACCOUNT, &first.id).expect("it detaches");
    assert!(look(&cloud, &waiting).relations.public_addresses.is_empty());
    let volume = make(&cloud, "volume", json!({"sizeGB": 1, "volumeType": "fast"}));
    assert_eq!(
        words(try_make(&cloud, "networkInterface", with(json!([volume])))),
        format!("{volume} is a volume, not a public address")
    );
}

#[test]
fn routes_have_an_effect_while_their_target_exists() {
    let (cloud, clock) = cloud();
    let network = network(&cloud);
    let gateway = make(&cloud, "gateway", json!({"egressOnly": true}));
    let routes = json!({"network": network, "routes": [
        {"destination": "0.0.0.0/0", "gateway": gateway},
        {"destination": "10.9.0.0/16", "address": "10.1.1.9"},
        {"destination": "::/0"},
        {"destination": "10.8.0.0/16", "machine": "vm-missing"},
    ]});
    let mut told = cloud.changes();
    let table = make(&cloud, "routeTable", routes);
    let rest = [
        ("active", None),
        ("pending", Some("it has no target")),
        ("pending", Some("machine vm-missing does not exist")),
    ];
    let seen = look(&cloud, &table);
    assert_eq!(parts(&seen)[0], ("active", None));
    assert_eq!(parts(&seen)[1..], rest);
    cloud.configure(ACCOUNT, &slow(1000));
    cloud
        .delete(ACCOUNT, &gateway)
        .expect("a route is no obstacle");
    assert_eq!(
        told.try_recv().as_ref(),
        Ok(&table),
        "its route is not active any more"
    );
    let reason = format!("gateway {gateway} is deleting");
    assert_eq!(
        parts(&look(&cloud, &table))[0],
        ("pending", Some(reason.as_str()))
    );
    clock.forward(1000);
    let reason = format!("gateway {gateway} does not exist");
    assert_eq!(
        parts(&look(&cloud, &table))[0],
        ("pending", Some(reason.as_str()))
    );
    for (route, text) in [
        (
            json!({"destination": "everywhere"}),
            r#""everywhere" is no address block"#,
        ),
        (
            json!({"destination": "::/0", "gateway": "gw-1", "address": "::1"}),
            "the route to ::/0 has more than one target",
        ),
    ] {
        let fields = json!({"network": network, "routes": [route]});
        assert_eq!(words(try_make(&cloud, "routeTable", fields)), text);
    }
}

#[test]
fn rules_are_checked_and_wait_for_their_sources() {
    let (cloud, _) = cloud();
    let gateway = make(&cloud, "gateway", json!({}));
    let rule = json!({"direction": "ingress", "protocol": "tcp", "ports": {"from": 80, "to": 90},
                      "sources": ["10.0.0.0/8", "55.44.33.11", gateway]});
    let shared = make(&cloud, "securityRule", rule.clone());
    let fields = json!({"rules": [rule, {"direction": "egress"}], "securityRules": [shared]});
    let group = make(&cloud, "securityGroup", fields);
    let all = [("active", None); 3];
    assert_eq!(parts(&look(&cloud, &group)), all);
    let mut told = cloud.changes();
    cloud
        .delete(ACCOUNT, &gateway)
        .expect("a rule is no obstacle");
    let told = std::iter::from_fn(|| told.try_recv().ok()).collect::<BTreeSet<_>>();
    assert_eq!(told, BTreeSet::from([group.clone()]));
    let reason = format!("source {gateway} does not exist");
    let missing = ("pending", Some(reason.as_str()));
    assert_eq!(
        parts(&look(&cloud, &group)),
        [missing, ("active", None), missing]
    );
    cloud
        .delete(ACCOUNT, &shared)
        .expect("a group is no obstacle");
    let reason = format!("security rule {shared} does not exist");
    assert_eq!(
        parts(&look(&cloud, &group))[2],
        ("pending", Some(reason.as_str()))
    );
    for (more, text) in [
        (json!({"ports": {}}), "ports are named, but none is given"),
        (
            json!({"ports": {"list": [0]}}),
            "ports are from 1 to 65535, not 0",
        ),
        (
            json!({"ports": {"from": 9, "to": 8}}),
            "ports from 9 to 8 are none",
        ),
        (
            json!({"protocol": "icmp", "ports": {"to": 1}}),
            "icmp has no ports",
        ),
        (
            json!({"protocol": "udp", "icmp": {"type": 0, "code": 0}}),
            "a kind of icmp message needs the protocol icmp",
        ),
        (
            json!({"icmp": {"type": 0, "code": 256}}),
            "there is no icmp message of type 0 and code 256",
        ),
    ] {
        let mut rule = json!({"direction": "ingress"});
        for (key, value) in more.as_object().expect("fields") {
            rule[key] = value.clone();
        }
        assert_eq!(words(try_make(&cloud, "securityRule", rule.clone())), text);
        let group = json!({"rules": [rule]});
        assert_eq!(words(try_make(&cloud, "securityGroup", group)), text);
    }
}

#[test]
fn a_network_is_taken_down_from_the_inside() {
    let (cloud, _) = cloud();
    let project = make(&cloud, "project", json!({}));
    let cidr = json!({"ipv4": "10.1.0.0/16"});
    let network = make(&cloud, "network", json!({"project": project, "cidr": cidr}));
    let table = make(
        &cloud,
        "routeTable",
        json!({"network": network, "routes": []}),
    );
    let fields = json!({"network": network, "routeTable": table, "cidr": {"ipv4": "0.0.0.0/24"}});
    let subnet = make(&cloud, "subnet", fields.clone());
    assert_eq!(
        look(&cloud, &subnet).relations.route_table.as_ref(),
        Some(&table)
    );
    let group = make(&cloud, "securityGroup", json!({}));
    let interface = json!({"subnet": subnet, "securityGroups": [group]});
    let interface = make(&cloud, "networkInterface", interface);
    let busy = |id: &str| match cloud.delete(ACCOUNT, id) {
        Err(CloudError::Busy(text)) => text,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        busy(&project),
        format!("project {project} is not empty: 1 objects, {network} among them")
    );
    assert!(busy(&network).starts_with(&format!("network {network} is in use by ")));
    assert_eq!(
        busy(&subnet),
        format!("subnet {subnet} is in use by network interface {interface}")
    );
    cloud.delete(ACCOUNT, &group).expect("it detaches");
    cloud
        .delete(ACCOUNT, &table)
        .expect("a subnet is no obstacle");
    assert_eq!(look(&cloud, &subnet).relations.route_table, None);
    let mut zoned = fields;
    zoned["zone"] = "b".into();
    change(&cloud, &subnet, "subnet", zoned).expect("what is gone is no obstacle to changes");
    for id in [interface, subnet, network, project] {
        cloud.delete(ACCOUNT, &id).expect("free");
    }
    assert!(cloud.list_all().is_empty());
}

#[test]
fn route_tables_are_of_the_same_network_and_fixed_fields_stay() {
    let (cloud, _) = cloud();
    let (one, other) = (network(&cloud), network(&cloud));
    let table = make(
        &cloud,
        "routeTable",
        json!({"network": other, "routes": []}),
    );
    let fields = json!({"network": one, "routeTable": table, "cidr": {"ipv4": "0.0.0.0/24"}});
    assert_eq!(
        words(try_make(&cloud, "subnet", fields)),
        format!("route table {table} is not one of network {one}")
    );
    let moved = change(
        &cloud,
        &table,
        "routeTable",
        json!({"network": one, "routes": []}),
    );
    assert_eq!(
        words(moved),
        format!("the network of route table {table} cannot be changed")
    );
    let elsewhere = Spec::Gateway(specs::GatewaySpec {
        location: "eu-2".into(),
        project: None,
        display_name: "far".into(),
        egress_only: false,
    });
    let far = cloud.create(ACCOUNT, "far", elsewhere).expect("created").id;
    let routes = json!([{"destination": "0.0.0.0/0", "gateway": far}]);
    assert_eq!(
        words(try_make(
            &cloud,
            "routeTable",
            json!({"network": one, "routes": routes})
        )),
        format!("gateway {far} is not in location \"eu-1\"")
    );
}
