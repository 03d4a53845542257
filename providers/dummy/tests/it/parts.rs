//! A machine, its network and what belongs to them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::{Cluster, DUMMY, annotation, condition, until};

/// Makes one resource of each kind; returns the ids of the machine, interface and gateway.
async fn everything(cluster: &Cluster) -> (String, String, String) {
    let catalogue = json!({"displayName": null});
    let with = |more: Value| {
        let mut fields = catalogue.clone();
        for (key, value) in more.as_object().expect("fields") {
            fields[key] = value.clone();
        }
        fields
    };
    cluster.made("Location", with(json!({}))).await;
    let volume_type = json!({"type": "fast", "iops": 100, "minSizeGB": 1});
    cluster.made("VolumeType", with(volume_type)).await;
    let machine_type = json!({"type": "small", "vCPU": 1, "ramGB": 2});
    cluster.made("MachineType", with(machine_type)).await;
    let network_type = json!({"type": "n1", "bandwidthMbps": 1000, "packetsPerSecond": 10000});
    cluster.made("NetworkType", with(network_type)).await;
    let project = cluster.made("Project", json!({})).await;
    let volume = json!({"project": project, "sizeGB": 5, "volumeType": "fast"});
    let volume = cluster.made("Volume", volume).await;
    let image = json!({"sourceVolume": volume, "cpuArchitecture": "amd64"});
    cluster.made("VolumeImage", image).await;
    let network = json!({"project": project, "cidr": {"ipv4": "0.0.0.0/16"}, "networkType": "n1"});
    let network = cluster.made("VirtualNetwork", network).await;
    let gateway = cluster.made("Gateway", json!({"project": project})).await;
    let route = json!({"destination": "0.0.0.0/0", "gateway": gateway});
    let table = json!({"network": network, "routes": [route]});
    let table = cluster.made("RoutingTable", table).await;
    let subnet = json!({"network": network, "cidr": {"ipv4": "0.0.0.0/24"}, "routeTable": table});
    let subnet = cluster.made("VirtualSubnet", subnet).await;
    let rule = json!({"project": project, "direction": "ingress", "sources": [gateway]});
    let rule = cluster.made("SecurityRule", rule).await;
    let group = json!({"project": project, "rules": [{"direction": "egress"}],
                       "securityRules": [rule]});
    let group = cluster.made("Firewall", group).await;
    let address = json!({"project": project, "version": "IPv4"});
    let address = cluster.made("PublicAddress", address).await;
    let interface = json!({"subnet": subnet, "addresses": ["0.0.0.0"],
                           "publicAddresses": [address], "securityGroups": [group]});
    let interface = cluster.made("NetworkInterface", interface).await;
    let machine = json!({
        "project": project, "zone": "a", "machineType": "small", "bootVolume": {"volume": volume},
        "interfaces": [interface], "securityGroup": group, "sshKeys": ["ssh-ed25519 AAAA"],
        "userData": "secret",
    });
    let machine = cluster.made("Machine", machine).await;
    (machine, interface, gateway)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_resource_does_to_another_is_shown_without_polling() {
    let cluster = Cluster::new().await;
    let _provider = cluster.start_polling(Duration::from_secs(3600));
    let (machine, interface, gateway) = everything(&cluster).await;
    let attached = |id: &str| json!({"id": id, "displayName": "x"});
    cluster
        .says("Volume", "attachedTo", attached(&machine))
        .await;
    cluster
        .says("NetworkInterface", "attachedTo", attached(&machine))
        .await;
    cluster
        .says("PublicAddress", "attachedTo", attached(&interface))
        .await;
    let network = cluster
        .at_provider("VirtualNetwork")
        .await
        .expect("a network");
    assert_eq!(network["cidr"], json!({"ipv4": "10.0.0.0/16"}));
    cluster
        .says("VirtualSubnet", "cidr", json!({"ipv4": "10.0.0.0/24"}))
        .await;
    cluster
        .says("NetworkInterface", "addresses", json!(["10.0.0.2"]))
        .await;
    let route = |state: &str, reason: Option<String>| {
        let mut route = json!({"destination": "0.0.0.0/0", "state": state});
        if let Some(reason) = reason {
            route["reason"] = reason.into();
        }
        json!([route])
    };
    cluster
        .says("RoutingTable", "routes", route("active", None))
        .await;
    let active = json!({"state": "active"});
    cluster
        .says("Firewall", "rules", json!([active, active]))
        .await;
    let seen = cluster.at_provider("Machine").await.expect("a machine");
    let host = json!("a-host-1");
    let off = json!({"id": machine, "state": "active", "powerState": "off", "host": host});
    assert_eq!(seen, off, "neither keys nor user data");

    // What takes its time is shown when it is done, and not at a next look.
    cluster
        .configure(json!({"deleteDelay": "50ms", "updateDelay": "50ms"}))
        .await;
    cluster.change("Machine", json!({"power": "on"})).await;
    cluster.says("Machine", "powerState", json!("on")).await;
    let seen = cluster.at_provider("Machine").await.expect("a machine");
    assert!(seen["powerStateSince"].is_string(), "{seen}");
    cluster.remove("Gateway").await;
    let reason = format!("gateway {gateway} does not exist");
    cluster
        .says("RoutingTable", "routes", route("pending", Some(reason)))
        .await;
    let reason = format!("source {gateway} does not exist");
    let pending = json!({"state": "pending", "reason": reason});
    cluster
        .says("Firewall", "rules", json!([active, pending]))
        .await;
    cluster.remove("Machine").await;
    cluster.says("Volume", "attachedTo", Value::Null).await;
    cluster
        .says("NetworkInterface", "attachedTo", Value::Null)
        .await;
    for kind in [
        "NetworkInterface",
        "VirtualSubnet",
        "RoutingTable",
        "VirtualNetwork",
        "PublicAddress",
        "Firewall",
        "SecurityRule",
        "VolumeImage",
        "Volume",
        "Project",
    ] {
        cluster.remove(kind).await;
    }
    assert_eq!(cluster.cloud.list_all().len(), 4, "the catalogue");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_while_all_kinds_are_as_wanted() {
    let cluster = Cluster::new().await;
    let provider = cluster.start();
    let (machine, ..) = everything(&cluster).await;
    let attached = json!({"id": machine, "displayName": "x"});
    cluster.says("Volume", "attachedTo", attached.clone()).await;
    cluster
        .says("NetworkInterface", "attachedTo", attached)
        .await;
    until("the users are counted", async || {
        let config = cluster
            .get(DUMMY, "clusterproviderconfigs", "", "default")
            .await?;
        (config["status"]["users"] == 16).then_some(())
    })
    .await;
    let (writes, synced) = (cluster.writes.load(Ordering::SeqCst), provider.synced());
    until("they are observed again", async || {
        (provider.synced() >= synced + 160).then_some(())
    })
    .await;
    assert_eq!(cluster.writes.load(Ordering::SeqCst), writes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_switched_by_hand_is_switched_back() {
    let cluster = Cluster::new().await;
    let _provider = cluster.start();
    let (machine, ..) = everything(&cluster).await;
    cluster.change("Machine", json!({"power": "on"})).await;
    cluster.cloud.meddle(&machine, |mut object| {
        object.choices.power = Some(provider_dummy::cloud::specs::Power::Off);
        object.choices.power_since_ms = Some(1);
        Some(object)
    });
    until("it is on again", async || {
        let all = cluster.cloud.list_all();
        let object = all.iter().find(|o| o.id == machine)?;
        let on = object.choices.power == Some(provider_dummy::cloud::specs::Power::On);
        (on && object.choices.power_since_ms > Some(1)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_does_not_reach_what_another_account_has() {
    let cluster = Cluster::new().await;
    let _provider = cluster.start();
    cluster.volume("mine", json!({})).await;
    let mine = cluster.ready("mine").await;
    let id = annotation(&mine, "crossplane.io/external-name").expect("a name");
    cluster
        .configure_new("ProviderConfig", "other", json!({}))
        .await;
    let thief = json!({
        "metadata": {"annotations": {"crossplane.io/external-name": id}},
        "spec": {
            "providerConfigRef": {"kind": "ProviderConfig", "name": "other"},
            "managementPolicies": ["Observe", "Delete"],
        },
    });
    cluster.volume("thief", thief).await;
    let volume = cluster.reason("thief", "Synced", "ReconcileError").await;
    assert_eq!(
        condition(&volume, "Synced").expect("Synced")["message"],
        "external resource does not exist"
    );
    cluster.delete_volume("thief").await;
    cluster.volume_gone("thief").await;
    assert_eq!(cluster.volumes_in_cloud(), 1);
}
