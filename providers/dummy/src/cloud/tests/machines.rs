//! Machines: their power, their parts, and where they run.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::networks::{change, look, make, try_make, words};
use super::specs::Power;
use super::*;

fn new_volume(cloud: &Cloud) -> String {
    make(cloud, "volume", json!({"sizeGB": 1, "volumeType": "fast"}))
}

fn interface(cloud: &Cloud) -> String {
    let network = make(cloud, "network", json!({"cidr": {"ipv4": "10.1.0.0/16"}}));
    let cidr = json!({"ipv4": "10.1.1.0/24"});
    let subnet = make(cloud, "subnet", json!({"network": network, "cidr": cidr}));
    make(cloud, "networkInterface", json!({"subnet": subnet}))
}

fn asked(volume: &str, more: Value) -> Value {
    let mut fields = json!({
        "zone": "a", "machineType": "small", "bootVolume": {"volume": volume},
    });
    for (key, value) in more.as_object().expect("fields") {
        fields[key] = value.clone();
    }
    fields
}

fn power(object: &Object) -> (Option<Power>, Option<i64>) {
    (object.choices.power, object.choices.power_since_ms)
}

#[test]
fn power_follows_what_is_asked_for() {
    let (cloud, clock) = cloud();
    clock.forward(100);
    let volume = new_volume(&cloud);
    let id = make(&cloud, "machine", asked(&volume, json!({})));
    assert_eq!(power(&look(&cloud, &id)), (Some(Power::Off), None));
    cloud.configure(ACCOUNT, &slow(1000));
    let set = |more: Value| change(&cloud, &id, "machine", asked(&volume, more));
    let starting = set(json!({"power": "on"})).expect("changed");
    assert_eq!(
        (starting.state, power(&starting)),
        (State::Updating, (Some(Power::Off), None))
    );
    clock.forward(1000);
    assert_eq!(power(&look(&cloud, &id)), (Some(Power::On), Some(1100)));
    cloud.configure(ACCOUNT, &Settings::default());
    clock.forward(50);
    let at = |time: &str| json!({"power": "on", "restartedAt": time});
    let restarted = set(at("2026-11-30T12:00:00Z")).expect("restarted");
    assert_eq!(power(&restarted), (Some(Power::On), Some(1150)));
    clock.forward(50);
    let older = set(at("2026-11-30T12:30:00+01:00")).expect("no later");
    assert_eq!(power(&older), (Some(Power::On), Some(1150)));
    let left = set(json!({"restartedAt": "2026-11-30T12:30:00+01:00"})).expect("changed");
    assert_eq!(power(&left), (Some(Power::On), Some(1150)), "left as it is");
    let stopped = set(json!({"power": "off"})).expect("stopped");
    assert_eq!(power(&stopped), (Some(Power::Off), Some(1200)));
    clock.forward(50);
    let off = set(json!({"power": "off", "restartedAt": "2027-01-01T00:00:00Z"}));
    assert_eq!(
        power(&off.expect("changed")),
        (Some(Power::Off), Some(1200))
    );
    assert_eq!(
        words(set(json!({"restartedAt": "noon"}))),
        r#""noon" is no time"#
    );
}

#[test]
fn a_machine_made_on_is_on_when_it_is_there() {
    let (cloud, clock) = cloud();
    let volume = new_volume(&cloud);
    cloud.configure(ACCOUNT, &slow(1000));
    let id = make(&cloud, "machine", asked(&volume, json!({"power": "on"})));
    assert_eq!(power(&look(&cloud, &id)), (None, None));
    assert_eq!(look(&cloud, &volume).relations.attached_to, None, "not yet");
    clock.forward(1000);
    assert_eq!(power(&look(&cloud, &id)), (Some(Power::On), Some(1000)));
    let attached = look(&cloud, &volume).relations.attached_to;
    assert_eq!(
        attached.map(|a| (a.id, a.display_name)),
        Some((id, "x".into()))
    );
}

#[test]
fn several_machines_use_one_volume_and_it_stays_while_one_does() {
    let (cloud, clock) = cloud();
    let volume = new_volume(&cloud);
    let mut machines = Vec::new();
    for _ in 0..3 {
        machines.push(make(&cloud, "machine", asked(&volume, json!({}))));
        clock.forward(1);
    }
    let holder = |cloud: &Cloud| look(cloud, &volume).relations.attached_to.map(|a| a.id);
    for machine in &machines {
        assert_eq!(holder(&cloud).as_ref(), Some(machine));
        let Err(CloudError::Busy(text)) = cloud.delete(ACCOUNT, &volume) else {
            panic!("deleted while in use");
        };
        assert!(text.starts_with(&format!("volume {volume} is in use by machine vm-")));
        cloud.delete(ACCOUNT, machine).expect("deleted");
    }
    cloud.delete(ACCOUNT, &volume).expect("free");
}

#[test]
fn parts_come_and_go_while_it_runs() {
    let (cloud, _) = cloud();
    let (boot, data) = (new_volume(&cloud), new_volume(&cloud));
    let (first, second) = (interface(&cloud), interface(&cloud));
    let group = make(&cloud, "securityGroup", json!({}));
    let id = make(
        &cloud,
        "machine",
        asked(&boot, json!({"power": "on", "interfaces": [first]})),
    );
    let host = look(&cloud, &id).choices.host;
    let mut told = cloud.changes();
    let more = json!({"power": "on", "dataVolumes": [{"volume": data}], "interfaces": [second],
                      "securityGroup": group, "zone": "b"});
    let changed = change(&cloud, &id, "machine", asked(&boot, more.clone())).expect("changed");
    assert_ne!(changed.choices.host, host, "a zone has its own hosts");
    let told = std::iter::from_fn(|| told.try_recv().ok()).collect::<BTreeSet<_>>();
    assert_eq!(
        told,
        BTreeSet::from([data.clone(), first.clone(), second.clone()])
    );
    let holder = |of: &str| look(&cloud, of).relations.attached_to.map(|a| a.id);
    assert_eq!(holder(&data).as_ref(), Some(&id));
    assert_eq!((holder(&first), holder(&second)), (None, Some(id.clone())));
    for part in [&data, &boot, &second] {
        assert!(matches!(
            cloud.delete(ACCOUNT, part),
            Err(CloudError::Busy(_))
        ));
    }
    cloud.delete(ACCOUNT, &group).expect("it detaches");
    cloud.delete(ACCOUNT, &first).expect("it is free");
    assert_eq!(
        try_make(
            &cloud,
            "machine",
            asked(&boot, json!({"interfaces": [second]}))
        ),
        Err(CloudError::Busy(format!(
            "network interface {second} is in use by machine {id}"
        )))
    );
    let other = new_volume(&cloud);
    assert_eq!(
        words(change(
            &cloud,
            &id,
            "machine",
            asked(&other, json!({"power": "on"}))
        )),
        format!("machine {id} must be off for a change of its boot volume")
    );
    let off = json!({"power": "off"});
    change(&cloud, &id, "machine", asked(&other, off)).expect("it goes off for it");
    assert_eq!(holder(&boot), None);
}

#[test]
fn what_a_machine_cannot_be_is_refused() {
    let (cloud, _) = cloud();
    let volume = new_volume(&cloud);
    let id = make(&cloud, "machine", asked(&volume, json!({})));
    let refused = |more: Value| words(try_make(&cloud, "machine", asked(&volume, more)));
    assert_eq!(refused(json!({"zone": ""})), "a machine is in a zone");
    assert_eq!(
        refused(json!({"dataVolumes": [{"volume": volume}]})),
        format!("{volume} is given twice")
    );
    assert_eq!(
        refused(json!({"interfaces": [id]})),
        format!("{id} is a machine, not a network interface")
    );
    assert!(matches!(
        try_make(&cloud, "machine", asked("vol-x", json!({}))),
        Err(CloudError::NotFound(text)) if text == "volume vol-x does not exist"
    ));
    let larger = change(
        &cloud,
        &id,
        "machine",
        asked(&volume, json!({"machineType": "large"})),
    );
    assert_eq!(
        words(larger),
        format!("the machine type of machine {id} cannot be changed")
    );
    let listed = json!({"type": "medium", "vCPU": 1, "ramGB": 1});
    make(&cloud, "machineType", listed);
    assert_eq!(
        refused(json!({})),
        r#"unknown machine type "small" in location "eu-1""#
    );
}

#[test]
fn an_anti_affinity_group_is_spread_over_the_hosts() {
    let (cloud, _) = cloud();
    let volume = new_volume(&cloud);
    // Not grouped: they fill other hosts.
    for _ in 0..3 {
        make(&cloud, "machine", asked(&volume, json!({})));
    }
    let hosts: BTreeSet<_> = (0..crate::limits::HOSTS_PER_ZONE)
        .map(|_| {
            let fields = asked(&volume, json!({"antiAffinityGroup": "db"}));
            look(&cloud, &make(&cloud, "machine", fields)).choices.host
        })
        .collect();
    assert_eq!(hosts.len(), crate::limits::HOSTS_PER_ZONE);
    let fields = asked(&volume, json!({"antiAffinityGroup": "db"}));
    make(&cloud, "machine", fields);
}
