//! Whole lives: the function's status is fed back to it, as the engine does, while a pretended
//! provider works.

use std::collections::BTreeMap;
use std::time::Duration;

use ecp_xr::function::{Ready, Response};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::world::{World, now, request, run};

/// An XR, what is observed of its managed resources, and the time.
struct Life {
    xr: Value,
    observed: BTreeMap<String, Value>,
    world: World,
    time: Timestamp,
    last: Response,
}

impl Life {
    fn of(spec: Value) -> Self {
        let xr = json!({
            "apiVersion": "storage.v1.secapi.cloud/v1",
            "kind": "BlockStorage",
            "metadata": {"name": "data", "namespace": "acme-prod-6851f068", "uid": "u-1"},
            "spec": spec,
        });
        Self {
            xr,
            observed: BTreeMap::new(),
            world: World::of(include_str!("../cases/world.yaml")),
            time: now(),
            last: Response::default(),
        }
    }

    /// One reconcile: calls the function, stores its status, applies what it wants.
    fn reconcile(&mut self) -> &mut Self {
        self.time += Duration::from_secs(1);
        let (response, _) = run(request(&self.xr, &self.observed), &self.world, self.time);
        let composite = response.desired.composite.as_ref().unwrap();
        self.xr["status"] = composite.object["status"].clone();
        let active = self.xr["status"]["state"] == "active";
        assert_eq!(
            composite.ready == Ready::True,
            active,
            "ready exactly if active"
        );
        self.observed
            .retain(|key, _| response.desired.resources.contains_key(key));
        for (key, resource) in &response.desired.resources {
            let live = self
                .observed
                .entry(key.clone())
                .or_insert_with(|| json!({}));
            let before = live["spec"].clone();
            for field in ["apiVersion", "kind", "spec"] {
                live[field] = resource.object[field].clone();
            }
            if live["metadata"].is_null() {
                live["metadata"] = json!({"name": "data-1", "generation": 0});
            }
            live["metadata"]["labels"] = resource.object["metadata"]["labels"].clone();
            live["metadata"]["annotations"] = resource.object["metadata"]["annotations"].clone();
            live["metadata"]["namespace"] = resource.object["metadata"]["namespace"].clone();
            if live["spec"] != before {
                let generation = live["metadata"]["generation"].as_i64().unwrap() + 1;
                live["metadata"]["generation"] = generation.into();
            }
        }
        self.last = response;
        self
    }

    /// The provider looks at everything and finds it in a condition.
    fn provider(&mut self, synced: (&str, &str, &str), ready: &str) -> &mut Self {
        for live in self.observed.values_mut() {
            let generation = live["metadata"]["generation"].clone();
            let (status, reason, message) = synced;
            live["status"] = json!({
                "atProvider": {"id": "vol-1", "sizeGB": live["spec"]["forProvider"]["sizeGB"]},
                "conditions": [
                    {"type": "Synced", "status": status, "reason": reason, "message": message,
                        "observedGeneration": generation},
                    {"type": "Ready", "status": ready, "observedGeneration": generation},
                ],
            });
        }
        self
    }

    fn done(&mut self) -> &mut Self {
        self.provider(("True", "ReconcileSuccess", ""), "True")
            .reconcile()
    }

    fn edit(&mut self, field: &str, value: Value) -> &mut Self {
        self.xr["spec"][field] = value;
        self
    }

    fn history(&self) -> Vec<&str> {
        let entries = self.xr["status"]["history"].as_array().unwrap();
        entries
            .iter()
            .map(|e| e["state"].as_str().unwrap())
            .collect()
    }

    fn revision(&self) -> i64 {
        self.xr["status"]["intent"]["revision"].as_i64().unwrap()
    }

    fn message(&self) -> &str {
        self.xr["status"]["message"].as_str().unwrap_or_default()
    }
}

fn disk() -> Life {
    Life::of(json!({"sizeGB": 20, "skuRef": {"resource": "RD500"}}))
}

#[test]
fn a_created_disk_goes_through_three_states() {
    let mut life = disk();
    life.reconcile();
    assert_eq!(life.history(), ["creating", "pending"]);
    assert_eq!(life.message(), "waiting for the volume to be created");
    life.done();
    assert_eq!(life.history(), ["active", "creating", "pending"]);
    assert_eq!(life.message(), "");
    assert_eq!(life.revision(), 1);
    assert_eq!(life.xr["status"]["sizeGB"], 20);
}

#[test]
fn every_change_adds_two_states_and_one_revision() {
    let mut life = disk();
    life.reconcile().done();
    life.edit("sizeGB", json!(30)).reconcile();
    assert_eq!(life.history()[..2], ["updating", "active"]);
    assert_eq!(life.revision(), 2);
    assert_eq!(life.xr["status"]["sizeGB"], 20, "the size it still has");
    life.done();
    assert_eq!(
        life.history(),
        ["active", "updating", "active", "creating", "pending"]
    );
    assert_eq!(life.xr["status"]["sizeGB"], 30);
    life.edit("commonData", json!({"labels": {"env": "prod"}}))
        .reconcile();
    assert_eq!(life.history().len(), 7, "a label is a change too");
    assert_eq!(life.history()[..2], ["active", "updating"]);
    assert_eq!(life.revision(), 3);
    life.reconcile().reconcile();
    assert_eq!(life.history().len(), 7);
    assert_eq!(life.last.results, []);
}

#[test]
fn a_cloud_that_flaps_changes_nothing_but_the_message() {
    let mut life = disk();
    life.reconcile().done();
    for _ in 0..3 {
        life.provider(("True", "ReconcileSuccess", ""), "False")
            .reconcile();
        assert_eq!(life.message(), "waiting for the volume to be ready");
        life.provider(("False", "ReconcileError", "timeout"), "True")
            .reconcile();
        assert_eq!(life.message(), "the volume is not in order: timeout");
        life.done();
        assert_eq!(life.message(), "");
    }
    assert_eq!(life.history(), ["active", "creating", "pending"]);
    assert_eq!(life.revision(), 1);
}

#[test]
fn crossplane_editing_the_spec_is_no_change() {
    let mut life = disk();
    life.reconcile().done();
    life.edit("crossplane", json!({"resourceRefs": [{"name": "x"}]}))
        .reconcile();
    assert_eq!((life.history().len(), life.revision()), (3, 1));
}

/// Protobuf has no integers: 20 may come back as 20.0.
#[test]
fn whole_floats_are_as_good_as_integers() {
    let mut life = Life::of(json!({"sizeGB": 20.0, "skuRef": {"resource": "RD500"}}));
    life.reconcile();
    assert_eq!(
        life.observed["volume"]["spec"]["forProvider"]["sizeGB"].to_string(),
        "20"
    );
    life.done();
    life.edit("sizeGB", json!(20)).reconcile();
    assert_eq!((life.history().len(), life.revision()), (3, 1));
}

#[test]
fn a_refusal_is_an_error_until_it_is_corrected() {
    let mut life = disk();
    life.reconcile();
    life.provider(("False", "ReconcileRefused", "quota exceeded"), "False")
        .reconcile();
    assert_eq!(life.history(), ["error", "creating", "pending"]);
    assert_eq!(
        life.message(),
        "the cloud refuses the volume: quota exceeded"
    );
    life.edit("sizeGB", json!(30)).reconcile();
    assert_eq!(life.history()[..2], ["creating", "error"]);
    life.done();
    assert_eq!(
        life.history(),
        ["active", "creating", "error", "creating", "pending"]
    );
    life.edit("sizeGB", json!(40)).reconcile();
    life.provider(("False", "ReconcileRefused", "too big"), "True")
        .reconcile();
    assert_eq!(life.history()[..3], ["error", "updating", "active"]);
    life.edit("sizeGB", json!(35)).reconcile();
    assert_eq!(life.history()[..3], ["updating", "error", "updating"]);
}

#[test]
fn a_refusal_of_what_was_active_is_only_a_message() {
    let mut life = disk();
    life.reconcile().done();
    for _ in 0..3 {
        life.provider(("False", "ReconcileRefused", "frozen"), "True")
            .reconcile();
        assert_eq!(life.history(), ["active", "creating", "pending"]);
        assert_eq!(life.message(), "the cloud refuses the volume: frozen");
        life.done();
        assert_eq!(life.history(), ["active", "creating", "pending"]);
        assert_eq!(life.message(), "");
    }
}

#[test]
fn waiting_says_for_what_and_goes_on_by_itself() {
    let mut life = disk();
    let sku = life
        .world
        .0
        .iter()
        .position(|o| o["kind"] == "StorageSKU")
        .unwrap();
    let sku = life.world.0.remove(sku);
    life.reconcile();
    assert_eq!(life.history(), ["pending"]);
    assert_eq!(life.message(), "storage SKU RD500 does not exist");
    assert_eq!(life.last.results.len(), 2, "{:?}", life.last.results);
    assert!(life.observed.is_empty());
    life.reconcile();
    assert_eq!(life.last.results, [], "told once");
    life.world.0.push(sku);
    life.reconcile().done();
    assert_eq!(life.history(), ["active", "creating", "pending"]);
}

#[test]
fn what_exists_survives_the_loss_of_all_it_depends_on() {
    let mut life = disk();
    life.reconcile().done();
    let before = life.observed.clone();
    life.world.0.clear();
    life.reconcile();
    assert_eq!(life.observed, before);
    assert_eq!(life.history(), ["active", "creating", "pending"]);
    assert_eq!(
        life.message(),
        "waiting for namespace acme-prod-6851f068 to exist"
    );
}

#[test]
fn deletion_makes_nothing_anew() {
    let mut life = disk();
    life.reconcile().done();
    life.xr["metadata"]["deletionTimestamp"] = "2026-01-02T03:05:00Z".into();
    life.reconcile();
    assert_eq!(life.history()[0], "deleting");
    assert_eq!(life.observed.len(), 1, "what lives is left to Crossplane");
    let volume = life.observed.get_mut("volume").unwrap();
    volume["metadata"]["deletionTimestamp"] = "2026-01-02T03:05:00Z".into();
    life.reconcile();
    assert!(life.last.desired.resources.is_empty());
    life.reconcile();
    assert!(
        life.last.desired.resources.is_empty(),
        "what is gone is not made again"
    );
    assert!(life.last.requirements.is_empty());
}

#[test]
fn nothing_is_made_in_a_namespace_that_is_being_deleted() {
    let mut life = disk();
    life.reconcile().done();
    for object in &mut life.world.0 {
        if object["kind"] == "Namespace" {
            object["metadata"]["deletionTimestamp"] = "2026-01-02T03:05:00Z".into();
        }
    }
    life.observed.clear();
    life.reconcile();
    assert!(life.observed.is_empty());
    assert_eq!(
        life.message(),
        "namespace acme-prod-6851f068 is being deleted"
    );
}

#[test]
fn nothing_new_is_made_in_a_network_that_is_being_deleted_or_gone() {
    let network = |o: &Value| o["kind"] == "Network";
    for kind in ["Subnet", "RouteTable"] {
        let made = || {
            let spec = json!({
                "network": "net", "cidr": {"ipv4": "10.0.1.0/24"}, "zone": "",
                "routeTableRef": {"resource": ""},
                "routes": [{"destinationCidrBlock": "0.0.0.0/0", "targetRef": {"resource": "10.0.0.4"}}],
            });
            let mut life = disk();
            life.xr["apiVersion"] = "network.v1.secapi.cloud/v1".into();
            life.xr["kind"] = kind.into();
            life.xr["spec"] = spec;
            life
        };
        let mut gone = made();
        gone.world.0.retain(|o| !network(o));
        let mut going = made();
        for object in going.world.0.iter_mut().filter(|o| network(o)) {
            object["metadata"]["deletionTimestamp"] = "2026-01-02T03:05:00Z".into();
        }
        for (mut life, why) in [
            (gone, "waiting for network net to exist"),
            (going, "network net is being deleted"),
        ] {
            // What the network is in the cloud is still there.
            life.reconcile();
            assert!(life.observed.is_empty(), "{kind}");
            assert_eq!(life.message(), why);
            // What is there already stays as it is, until it is deleted.
            let mut old = made();
            old.reconcile().done();
            assert_eq!(old.history(), ["active", "creating", "pending"]);
            life.observed = old.observed;
            life.reconcile();
            assert_eq!(life.observed.len(), 1, "{kind}");
        }
    }
}
