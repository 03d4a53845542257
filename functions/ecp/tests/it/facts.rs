//! What the status of each kind tells, over the life of a resource.

use std::collections::BTreeMap;
use std::time::Duration;

use ecp_xr::function::Response;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::world::{World, now, request, run};

const NAMESPACE: &str = "acme-prod-6851f068";

/// A resource of a workspace, what the cloud says of its managed resources, and the time.
struct Thing {
    xr: Value,
    observed: BTreeMap<String, Value>,
    world: World,
    time: Timestamp,
    last: Response,
}

impl Thing {
    fn of(kind: &str, name: &str, spec: Value) -> Self {
        let info = ecp_xrds::by_kind(kind).unwrap();
        Self {
            xr: json!({
                "apiVersion": info.api_version(),
                "kind": kind,
                "metadata": {"name": name, "namespace": NAMESPACE, "uid": "u-1"},
                "spec": spec,
            }),
            observed: BTreeMap::new(),
            world: World::of(include_str!("../cases/world.yaml")),
            time: now(),
            last: Response::default(),
        }
    }

    /// Calls the function and applies what it wants.
    fn reconcile(&mut self) -> &mut Self {
        self.time += Duration::from_secs(60);
        let (response, _) = run(request(&self.xr, &self.observed), &self.world, self.time);
        let composite = response.desired.composite.as_ref().unwrap();
        self.xr["status"] = composite.object["status"].clone();
        self.observed
            .retain(|key, _| response.desired.resources.contains_key(key));
        for (key, resource) in &response.desired.resources {
            let mut live = (*resource.object).clone();
            let status = self.observed.get(key).map(|old| old["status"].clone());
            live["status"] = status.unwrap_or_default();
            live["metadata"]["name"] = "managed".into();
            live["metadata"]["annotations"]["crossplane.io/external-name"] = "id-1".into();
            self.observed.insert(key.clone(), live);
        }
        self.last = response;
        self
    }

    /// The cloud has done what is wanted, and says so.
    fn cloud_says(&mut self, at_provider: Value) -> &mut Self {
        for live in self.observed.values_mut() {
            live["status"] = json!({
                "observedGeneration": 0,
                "atProvider": at_provider,
                "conditions": [
                    {"type": "Synced", "status": "True", "observedGeneration": 0},
                    {"type": "Ready", "status": "True", "observedGeneration": 0},
                ],
            });
        }
        self.reconcile()
    }

    fn status(&self, field: &str) -> &Value {
        &self.xr["status"][field]
    }

    fn wanted(&self, field: &str) -> &Value {
        let managed = self
            .observed
            .values()
            .find(|o| o["kind"] != "NetworkContents");
        &managed.unwrap()["spec"]["forProvider"][field]
    }

    fn history_len(&self) -> usize {
        self.status("history").as_array().unwrap().len()
    }

    /// Takes what was made for a resource out of the world.
    fn lose(&mut self, id: &str) -> Value {
        let made = |o: &Value| o["metadata"]["annotations"]["crossplane.io/external-name"] == id;
        let at = self.world.0.iter().position(made).unwrap();
        self.world.0.remove(at)
    }

    /// Seen again much later, nothing is written and nothing is told.
    fn is_idle(&mut self) {
        let before = self.xr["status"].clone();
        self.reconcile();
        assert_eq!(self.xr["status"], before);
        assert_eq!(self.last.results, []);
    }
}

fn to(resource: &str) -> Value {
    json!({"resource": resource})
}

#[test]
fn a_network_tells_the_addresses_it_got() {
    let spec = json!({
        "cidr": {"ipv4": "0.0.0.0/16"}, "additionalCidrs": [{"ipv4": "0.0.0.0/20"}],
        "skuRef": to("skus/N1K"),
    });
    let mut network = Thing::of("Network", "net-2", spec);
    network.reconcile();
    assert_eq!(*network.status("cidr"), Value::Null);
    network.cloud_says(json!({
        "cidr": {"ipv4": "10.7.0.0/16"}, "additionalCidrs": [{"ipv4": "10.8.0.0/20"}],
    }));
    assert_eq!(*network.status("state"), "active");
    assert_eq!(*network.status("cidr"), json!({"ipv4": "10.7.0.0/16"}));
    assert_eq!(
        *network.status("additionalCidrs"),
        json!([{"ipv4": "10.8.0.0/20"}])
    );
    network.is_idle();
}

#[test]
fn a_subnet_tells_the_route_table_it_really_has() {
    let spec = json!({
        "network": "net", "cidr": {"ipv4": "10.0.1.0/24"}, "zone": "a",
        "routeTableRef": to("route-tables/routes"),
    });
    let mut subnet = Thing::of("Subnet", "sub-2", spec);
    subnet.reconcile();
    assert_eq!(*subnet.status("routeTableRef"), Value::Null);
    subnet.cloud_says(json!({"cidr": {"ipv4": "10.0.1.0/24"}, "routeTable": "rt-1"}));
    assert_eq!(*subnet.status("routeTableRef"), to("route-tables/routes"));
    assert_eq!(*subnet.status("cidr"), json!({"ipv4": "10.0.1.0/24"}));
    subnet.is_idle();
    subnet.cloud_says(json!({"cidr": {"ipv4": "10.0.1.0/24"}}));
    assert_eq!(*subnet.status("routeTableRef"), Value::Null);
    assert_eq!(*subnet.status("state"), "active");
}

#[test]
fn routes_have_a_state_each() {
    let route =
        |cidr: &str, target: &str| json!({"destinationCidrBlock": cidr, "targetRef": to(target)});
    let spec = json!({"network": "net", "routes": [
        route("0.0.0.0/0", "internet-gateways/gw"),
        route("10.1.0.0/16", "instances/later"),
    ]});
    let mut table = Thing::of("RouteTable", "rt", spec);
    table.reconcile();
    let said = json!({"routes": [
        {"destination": "0.0.0.0/0", "state": "active"},
        {"destination": "10.1.0.0/16", "state": "pending", "reason": "no target"},
    ]});
    table.cloud_says(said.clone());
    assert_eq!(*table.status("state"), "active");
    assert_eq!(
        *table.status("message"),
        "spec.routes[].targetRef: instance later is not active, so it has no effect"
    );
    let routes = table.status("routes").clone();
    assert_eq!(routes[0]["state"], "active");
    assert_eq!(
        routes[0]["conditions"][0]["lastTransitionAt"],
        "2026-01-02T03:06:05.678Z"
    );
    assert_eq!(routes[1]["state"], "pending");
    assert_eq!(
        routes[1]["conditions"][0]["lastTransitionAt"],
        "2026-01-02T03:05:05.678Z"
    );
    assert_eq!(
        routes[1]["conditions"][0]["message"],
        "instance later is not active"
    );
    table.is_idle();

    // The instance comes: the route is sent, and that is no step in the table's life.
    let mut later = table.lose("vm-1");
    later["metadata"]["labels"]["secapi.cloud/name"] = "later".into();
    table.world.0.push(later);
    table.reconcile();
    assert_eq!(table.wanted("routes")[1]["machine"], "vm-1");
    let mut said = said;
    said["routes"][1] = json!({"destination": "10.1.0.0/16", "state": "active"});
    table.cloud_says(said.clone());
    assert_eq!(table.status("routes")[1]["state"], "active");
    assert_eq!(*table.status("message"), Value::Null);
    assert_eq!(table.history_len(), 3);
    table.is_idle();

    // The gateway goes, in the control plane and in the cloud.
    table.lose("gw-1");
    table.reconcile();
    assert_eq!(
        table.wanted("routes")[0],
        json!({"destination": "0.0.0.0/0"})
    );
    said["routes"][0] = json!({"destination": "0.0.0.0/0", "state": "pending"});
    table.cloud_says(said);
    assert_eq!(table.status("routes")[0]["state"], "pending");
    assert_eq!(*table.status("state"), "active");
    assert_eq!(table.history_len(), 3);
    table.is_idle();
}

#[test]
fn many_targets_are_asked_for_at_once() {
    let routes: Vec<_> = (0..40)
        .map(|n| {
            let name = if n == 7 {
                "vm".into()
            } else {
                format!("vm-{n}")
            };
            json!({
                "destinationCidrBlock": format!("10.{n}.0.0/16"),
                "targetRef": to(&format!("instances/{name}")),
            })
        })
        .collect();
    let spec = json!({"network": "net", "routes": routes});
    let mut table = Thing::of("RouteTable", "rt", spec);
    table.reconcile();
    // Namespace, regions, network, that in the cloud, namesake, and the instances.
    assert_eq!(table.last.requirements.resources.len(), 6);
    assert_eq!(table.wanted("routes")[7]["machine"], "vm-1");
    assert_eq!(table.wanted("routes")[8]["machine"], Value::Null);
    let rules: Vec<_> = (0..40)
        .map(|n| to(&format!("security-group-rules/rule-{n}")))
        .collect();
    let mut group = Thing::of("SecurityGroup", "db", json!({"ruleRefs": rules}));
    group.reconcile();
    assert_eq!(
        *group.status("message"),
        "waiting for security group rule rule-0 to exist"
    );
}

#[test]
fn a_security_group_tells_the_state_of_each_of_its_own_rules() {
    let spec = json!({
        "rules": [
            {"direction": "egress"},
            {"direction": "ingress", "sourceRef": [to("security-groups/later")]},
        ],
        "ruleRefs": [to("security-group-rules/https")],
    });
    let mut group = Thing::of("SecurityGroup", "db", spec);
    group.reconcile();
    let states = ["active", "active", "active"].map(|state| json!({"state": state}));
    group.cloud_says(json!({"rules": states}));
    let rules = group.status("rules").as_array().unwrap();
    assert_eq!(rules.len(), 2);
    assert_eq!(rules[0]["state"], "active");
    assert_eq!(rules[1]["state"], "pending");
    assert_eq!(*group.status("state"), "active");
    group.is_idle();
}

#[test]
fn a_nic_tells_the_public_ips_it_really_has() {
    let spec = json!({
        "addresses": ["0.0.0.0"], "subnetRef": to("networks/net/subnets/sub"),
        "publicIpRefs": [to("public-ips/later"), to("public-ips/ip")],
    });
    let mut nic = Thing::of("NIC", "nic-3", spec);
    nic.reconcile();
    nic.cloud_says(json!({
        "addresses": ["10.0.1.9"], "macAddress": "02:00:00:00:00:09", "publicAddresses": ["pa-1"],
    }));
    assert_eq!(*nic.status("addresses"), json!(["10.0.1.9"]));
    assert_eq!(*nic.status("macAddress"), "02:00:00:00:00:09");
    assert_eq!(*nic.status("publicIpRefs"), json!([to("public-ips/ip")]));
    nic.is_idle();

    // While the subnet's namespace cannot be read, all that was told stays.
    let world = std::mem::take(&mut nic.world);
    nic.reconcile();
    assert_eq!(*nic.status("publicIpRefs"), json!([to("public-ips/ip")]));
    assert_eq!(*nic.wanted("publicAddresses"), json!(["pa-1"]));
    nic.world = world;

    // A public IP that is deleted is let go.
    nic.lose("pa-1");
    nic.reconcile();
    assert_eq!(*nic.wanted("publicAddresses"), json!([]));
}

#[test]
fn what_is_attached_tells_to_what() {
    let mut ip = Thing::of("PublicIP", "ip-2", json!({"version": "IPv4"}));
    ip.reconcile();
    ip.cloud_says(json!({
        "address": "203.0.113.5", "attachedTo": {"id": "if-1", "displayName": "nic-1"},
    }));
    assert_eq!(*ip.status("ipAddress"), "203.0.113.5");
    assert_eq!(
        *ip.status("attachedTo"),
        to("seca.network/v1/tenants/acme/workspaces/prod/nics/nic-1")
    );
    ip.is_idle();
    ip.cloud_says(json!({"address": "203.0.113.5"}));
    assert_eq!(*ip.status("attachedTo"), Value::Null);

    let spec = json!({"sizeGB": 20, "skuRef": to("RD500")});
    let mut disk = Thing::of("BlockStorage", "disk", spec);
    disk.reconcile();
    disk.cloud_says(json!({"sizeGB": 20, "attachedTo": {"id": "vm-1", "displayName": "vm"}}));
    assert_eq!(
        *disk.status("attachedTo"),
        to("seca.compute/v1/tenants/acme/workspaces/prod/instances/vm")
    );
    disk.is_idle();
    let world = std::mem::take(&mut disk.world);
    disk.reconcile();
    assert_ne!(*disk.status("attachedTo"), Value::Null);
    disk.world = world;
}

#[test]
fn an_instance_tells_whether_it_runs() {
    let spec = json!({
        "skuRef": to("D2XS"), "zone": "a", "bootVolume": {"deviceRef": to("boot")},
        "dataVolumes": [{"deviceRef": to("data")}, {"deviceRef": to("boot")}],
    });
    let mut vm = Thing::of("Instance", "vm-2", spec);
    vm.reconcile();
    assert_eq!(*vm.status("powerState"), "off");
    vm.cloud_says(json!({"powerState": "off"}));
    assert_eq!(*vm.status("state"), "active");
    vm.is_idle();

    vm.xr["spec"]["power"] = json!({"state": "on"});
    vm.reconcile();
    assert_eq!(*vm.wanted("power"), "on");
    vm.cloud_says(json!({"powerState": "on", "powerStateSince": "2026-01-02T04:00:00Z"}));
    assert_eq!(*vm.status("powerState"), "on");
    assert_eq!(*vm.status("powerStateSince"), "2026-01-02T04:00:00Z");
    let states: Vec<_> = vm.status("history").as_array().unwrap().iter().collect();
    assert_eq!(states.len(), 5);
    assert_eq!(states[1]["state"], "updating");
    vm.is_idle();

    // Its volumes are gone for a while: it keeps each of them, and is still changed.
    for id in ["vol-1", "vol-2"] {
        vm.lose(id);
    }
    vm.xr["spec"]["power"] = json!({"state": "off"});
    vm.reconcile();
    assert_eq!(*vm.wanted("power"), "off");
    assert_eq!(vm.wanted("bootVolume")["volume"], "vol-2");
    let data = [
        json!({"type": "virtio", "volume": "vol-1"}),
        json!({"type": "virtio", "volume": "vol-2"}),
    ];
    assert_eq!(*vm.wanted("dataVolumes"), json!(data));
}

#[test]
fn an_image_is_filled_when_its_source_comes() {
    let spec = json!({
        "blockStorageRef": to("workspaces/prod/block-storages/data"), "cpuArchitecture": "amd64",
    });
    let mut image = Thing::of("Image", "img", spec);
    image.xr["metadata"]["namespace"] = "acme-5d95a159".into();
    let volume = image.lose("vol-1");
    image.reconcile();
    assert_eq!(*image.status("state"), "pending", "by default it waits");

    image.xr["metadata"]["annotations"]["secapi.cloud/deferred-references"] =
        "blockStorageRef".into();
    image.reconcile();
    image.cloud_says(json!({}));
    assert_eq!(*image.status("state"), "active");
    assert_eq!(
        *image.status("message"),
        "spec.blockStorageRef: block storage data is not active, so it has no effect"
    );
    image.is_idle();
    image.world.0.push(volume);
    image.reconcile();
    assert_eq!(*image.wanted("sourceVolume"), "vol-1");
    image.cloud_says(json!({"sizeMB": 20480}));
    assert_eq!(*image.status("message"), Value::Null);
    assert_eq!(*image.status("sizeMB"), 20480);
    assert_eq!(image.history_len(), 3);
    // Once it was made from it, it keeps it.
    image.lose("vol-1");
    image.reconcile();
    assert_eq!(*image.wanted("sourceVolume"), "vol-1");
    assert_eq!(*image.status("message"), Value::Null);
}

#[test]
fn a_security_group_can_let_its_own_members_in() {
    let spec = json!({"rules": [{"direction": "ingress", "sourceRef": [to("db")]}]});
    let mut group = Thing::of("SecurityGroup", "db", spec);
    group.reconcile();
    assert_eq!(group.wanted("rules")[0]["sources"], json!(["0.0.0.0/32"]));
    group.cloud_says(json!({"rules": [{"state": "active"}]}));
    let made = group.observed["group"].clone();
    group.world.0.push(made);
    group.reconcile();
    assert_eq!(group.wanted("rules")[0]["sources"], json!(["id-1"]));
    group.cloud_says(json!({"rules": [{"state": "active"}]}));
    assert_eq!(group.status("rules")[0]["state"], "active");
    assert_eq!(group.history_len(), 3);
    group.is_idle();
}

#[test]
fn what_is_told_stays_while_it_is_deleted() {
    let spec = json!({
        "addresses": ["0.0.0.0"], "subnetRef": to("networks/net/subnets/sub"),
        "publicIpRefs": [to("public-ips/ip")],
    });
    let mut nic = Thing::of("NIC", "nic-3", spec);
    nic.reconcile();
    nic.cloud_says(json!({"addresses": ["10.0.1.9"], "publicAddresses": ["pa-1"]}));
    nic.xr["metadata"]["deletionTimestamp"] = "2026-01-02T05:00:00Z".into();
    nic.reconcile();
    assert_eq!(*nic.status("state"), "deleting");
    assert_eq!(*nic.status("addresses"), json!(["10.0.1.9"]));
    assert_eq!(*nic.status("publicIpRefs"), json!([to("public-ips/ip")]));
}
