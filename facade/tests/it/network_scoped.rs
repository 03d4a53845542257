//! What lives in a network: names, URLs, lists, kubectl, and going with the network.

use http::Method;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use crate::world::{GATEWAYS, NETWORKS, NICS, World, network, route, states, subnet};

#[tokio::test(flavor = "multi_thread")]
async fn the_same_name_in_two_networks_is_two_resources() {
    let world = World::with_network().await;
    world
        .put(&format!("{NETWORKS}/m"), network("10.2.0.0/16"))
        .await
        .ok(201);
    let gateway = route("internet-gateways/gw");
    world
        .put(&format!("{NETWORKS}/m/route-tables/rt"), gateway)
        .await
        .ok(201);
    let paths = ["n", "m"].map(|n| format!("{NETWORKS}/{n}/subnets/s"));
    for (path, cidr) in paths.iter().zip(["10.1.1.0/24", "10.2.1.0/24"]) {
        let created = world.put(path, subnet(cidr)).await.ok(201);
        assert_eq!(created["spec"], subnet(cidr)["spec"]);
    }
    let got = world.get(&paths[1]).await.ok(200);
    let metadata = &got["metadata"];
    assert_eq!(metadata["resource"], "networks/m/subnets/s");
    assert_eq!(metadata["network"], "m");
    assert_eq!(metadata["workspace"], "prod");
    assert_eq!(
        metadata["ref"],
        "seca.network/v1/tenants/acme/workspaces/prod/networks/m/subnets/s"
    );
    assert_eq!(states(&got), ["active", "creating", "pending"]);
    let table = world.get(&format!("{NETWORKS}/n/route-tables/rt")).await;
    assert_eq!(table.ok(200)["metadata"]["kind"], "routing-table");

    let list = world.get(&format!("{NETWORKS}/m/subnets")).await.ok(200);
    assert_eq!(list["metadata"]["resource"], "networks/m/subnets");
    assert_eq!(list["items"].as_array().expect("items").len(), 1);
    assert_eq!(list["items"][0]["metadata"]["network"], "m");

    let mut moved = subnet("10.2.1.0/24");
    moved["labels"] = json!({"a": "b"});
    let updated = world.put(&paths[1], moved).await.ok(200);
    assert_eq!(updated["metadata"]["resourceVersion"], 2);
    world.delete(&paths[0]).await.ok(202);
    world.get(&paths[0]).await.problem(404);
    world.get(&paths[1]).await.ok(200);
    let condition = [("if-unmodified-since", "1")];
    world
        .put_with(&paths[0], &condition, subnet("10.1.1.0/24"))
        .await
        .problem(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_any_length_are_found_again() {
    let world = World::with_workspace().await;
    let long = "n".repeat(128);
    let net = format!("{NETWORKS}/{long}");
    world.put(&net, network("10.1.0.0/16")).await.ok(201);
    world
        .put(&format!("{GATEWAYS}/gw"), json!({"spec": {}}))
        .await
        .ok(201);
    for name in ["s", &"t".repeat(63), &"t".repeat(64), &"t".repeat(128)] {
        let path = format!("{net}/route-tables/{name}");
        let body = route("internet-gateways/gw");
        let created = world.put(&path, body.clone()).await.ok(201);
        assert_eq!(created["metadata"]["name"], name);
        assert_eq!(created["metadata"]["network"], long.as_str());
        let no_cache = [("cache-control", "no-cache")];
        let got = world.call(Method::GET, &path, &no_cache, "").await;
        assert_eq!(got.ok(200)["metadata"]["name"], name);
        world.put(&path, body).await.ok(200);
    }
    let path = format!("{net}/route-tables/{}", "t".repeat(129));
    let refused = world.put(&path, route("internet-gateways/gw")).await;
    assert_eq!(refused.problem(412), ["/metadata/name"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_kubectl_made_is_found_and_replaced_under_its_own_name() {
    let world = World::with_network().await;
    let made = |name: &str, spec: Value| {
        let mut spec = spec;
        spec["network"] = json!("n");
        spec["region"] = json!("region-1");
        json!({
            "apiVersion": "network.v1.secapi.cloud/v1", "kind": "Subnet",
            "metadata": {"name": name}, "spec": spec,
        })
    };
    let mut spelt = subnet("10.1.2.0/24")["spec"].clone();
    spelt["name"] = json!("spelt");
    for object in [
        made("plain", subnet("10.1.1.0/24")["spec"].clone()),
        made("odd-name", spelt),
    ] {
        let object = serde_json::from_value(object).expect("object");
        let subnets = world.objects("Subnet");
        subnets
            .create(&PostParams::default(), &object)
            .await
            .expect("created");
    }
    for (name, object, cidr) in [
        ("plain", "plain", "10.1.3.0/24"),
        ("spelt", "odd-name", "10.1.4.0/24"),
    ] {
        let path = format!("{NETWORKS}/n/subnets/{name}");
        world
            .eventually(&path, |a| {
                a.status == 200 && a.json()["status"]["state"] == "active"
            })
            .await;
        let replaced = world.put(&path, subnet(cidr)).await.ok(200);
        assert_eq!(replaced["spec"]["cidr"]["ipv4"], cidr);
        let stored = world.objects("Subnet").get(object).await.expect("object");
        assert_eq!(stored.data["spec"]["cidr"]["ipv4"], cidr);
    }
    let all = world.objects("Subnet").list(&Default::default()).await;
    assert_eq!(all.expect("list").items.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_does_not_exist_has_nothing() {
    let world = World::with_network().await;
    let path = format!("{NETWORKS}/none/subnets/s");
    world.put(&path, subnet("10.1.1.0/24")).await.problem(412);
    world.get(&path).await.problem(404);
    world.delete(&path).await.problem(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_goes_with_its_subnets_but_not_with_a_live_route_table() {
    let world = World::with_network().await;
    let (net, sub) = (format!("{NETWORKS}/n"), format!("{NETWORKS}/n/subnets/s"));
    world.put(&sub, subnet("10.1.1.0/24")).await.ok(201);
    let refused = world.delete(&net).await;
    refused.problem(412);
    let detail = refused.json()["detail"].clone();
    assert_eq!(
        detail,
        "network \"n\" still holds the live route table \"rt\""
    );
    // A gateway that a route leads to, and a route table that a subnet follows, are not protected.
    world.delete(&format!("{GATEWAYS}/gw")).await.ok(202);
    world
        .delete(&format!("{net}/route-tables/rt"))
        .await
        .ok(202);

    let hold = json!({"metadata": {"finalizers": ["test/hold"]}});
    world.patch("Network", "n", hold).await;
    let asynchronous = [("prefer", "respond-async")];
    world
        .call(Method::DELETE, &net, &asynchronous, "")
        .await
        .ok(202);
    let shown = world.get(&sub).await.ok(200);
    assert_eq!(shown["status"]["state"], "deleting");
    assert_eq!(
        states(&shown),
        ["deleting", "active", "creating", "pending"]
    );
    let deleted_at = &world.get(&net).await.ok(200)["metadata"]["deletedAt"];
    assert_eq!(&shown["metadata"]["deletedAt"], deleted_at);
    let listed = async |accept: &str| {
        let path = format!("{net}/subnets");
        let list = world
            .call(Method::GET, &path, &[("accept", accept)], "")
            .await
            .ok(200);
        list["items"].as_array().expect("items").len()
    };
    assert_eq!(listed("application/json").await, 0);
    assert_eq!(listed("application/json; deleted=only").await, 1);
    world.put(&sub, subnet("10.1.1.0/24")).await.problem(412);

    // What NetworkContents does.
    let name = ecp_meta::names::network_object_name("n", "s");
    let subnets = world.objects("Subnet");
    subnets
        .delete(&name, &DeleteParams::default())
        .await
        .expect("deleted");
    let free = json!({"metadata": {"finalizers": null}});
    world.patch("Network", "n", free).await;
    world.eventually(&net, |a| a.status == 404).await;
    world.eventually(&sub, |a| a.status == 404).await;
    world.add_network().await;
    let again = world.put(&sub, subnet("10.1.1.0/24")).await.ok(201);
    assert_eq!(again["metadata"]["resourceVersion"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn references_into_a_network_come_back_as_they_were_sent() {
    let world = World::with_network().await;
    world
        .put(&format!("{NETWORKS}/n/subnets/s"), subnet("10.1.1.0/24"))
        .await
        .ok(201);
    for reference in [
        json!({"resource": "networks/n/subnets/s"}),
        json!({"resource": "networks/n/subnets/s", "tenant": "acme", "workspace": "prod"}),
        json!({"resource": "seca.network/v1/tenants/acme/workspaces/prod/networks/n/subnets/s"}),
        json!({"resource": "networks/n/subnets/s", "provider": "seca.network/v1", "region": "region-1"}),
    ] {
        let body = json!({"spec": {"subnetRef": reference, "addresses": ["0.0.0.0"]}});
        let path = format!("{NICS}/nic");
        world.put(&path, body).await;
        assert_eq!(
            world.get(&path).await.ok(200)["spec"]["subnetRef"],
            reference
        );
    }
    // Nothing says which network.
    let body = json!({"spec": {"subnetRef": {"resource": "subnets/s"}}});
    let refused = world.put(&format!("{NICS}/other"), body).await;
    assert_eq!(refused.problem(412), ["/spec/subnetRef/resource"]);
}
