//! DELETE.

use http::Method;
use serde_json::json;

use crate::world::{
    DISKS, INSTANCES, NETWORKS, NICS, WORKSPACE, World, disk, instance, states, subnet,
};

#[tokio::test(flavor = "multi_thread")]
async fn what_a_live_instance_needs_is_protected_and_nothing_else() {
    let world = World::with_network().await;
    for name in ["boot", "data", "free"] {
        world
            .put(&format!("{DISKS}/{name}"), disk(20))
            .await
            .ok(201);
    }
    let subnet_path = format!("{NETWORKS}/n/subnets/s");
    world.put(&subnet_path, subnet("10.1.1.0/24")).await.ok(201);
    let nic = json!({"spec": {"subnetRef": {"resource": "networks/n/subnets/s"}}});
    for name in ["first", "more", "free"] {
        world
            .put(&format!("{NICS}/{name}"), nic.clone())
            .await
            .ok(201);
    }
    let urn = "seca.storage/v1/tenants/acme/workspaces/prod/block-storages/data";
    let mut body = instance();
    body["spec"]["dataVolumes"] = json!([{"deviceRef": {"resource": urn}}]);
    body["spec"]["primaryNicRef"] = json!({"resource": "first"});
    body["spec"]["additionalNicRefs"] = json!([{"resource": "nics/more"}]);
    let path = format!("{INSTANCES}/i");
    world.put(&path, body).await.ok(201);
    let protected = [
        WORKSPACE.to_owned(),
        format!("{DISKS}/boot"),
        format!("{DISKS}/data"),
        format!("{NICS}/first"),
        format!("{NICS}/more"),
    ];
    for path in &protected {
        let refused = world.delete(path).await;
        refused.problem(412);
        let detail = refused.json()["detail"].as_str().expect("text").to_owned();
        assert!(detail.ends_with("the live instance \"i\""), "{detail}");
        assert_eq!(world.get(path).await.ok(200)["status"]["state"], "active");
    }
    for path in [format!("{DISKS}/free"), format!("{NICS}/free"), subnet_path] {
        world.delete(&path).await.ok(202);
    }
    // An instance that is being deleted needs nothing, whatever the cache knows of it.
    let hold = json!({"metadata": {"finalizers": ["test/hold"]}});
    world.patch("Instance", "i", hold).await;
    let instances = world.objects("Instance");
    instances
        .delete("i", &Default::default())
        .await
        .expect("deleted");
    for path in protected.iter().rev() {
        let asynchronous = [("prefer", "respond-async")];
        world
            .call(Method::DELETE, path, &asynchronous, "")
            .await
            .ok(202);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_of_another_workspace_protects_as_well() {
    let world = World::with_workspace().await;
    world.put(&format!("{DISKS}/boot"), disk(20)).await.ok(201);
    let dev = WORKSPACE.replace("/prod", "/dev");
    world.put(&dev, json!({})).await.ok(201);
    let mut body = instance();
    let urn = "seca.storage/v1/tenants/acme/workspaces/prod/block-storages/boot";
    body["spec"]["bootVolume"]["deviceRef"]["resource"] = json!(urn);
    let path = INSTANCES.replace("/prod/", "/dev/");
    world.put(&format!("{path}/i"), body).await.ok(201);
    world.delete(&format!("{DISKS}/boot")).await.problem(412);
    world.delete(&format!("{path}/i")).await.ok(202);
    world.delete(&format!("{DISKS}/boot")).await.ok(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_a_workspace_that_goes_goes_with_it() {
    let world = World::with_workspace().await;
    let path = format!("{DISKS}/d");
    world.put(&path, disk(1)).await.ok(201);
    let hold = json!({"metadata": {"finalizers": ["test/hold"]}});
    world.patch("Workspace", "prod", hold).await;
    let asynchronous = [("prefer", "respond-async")];
    world
        .call(Method::DELETE, WORKSPACE, &asynchronous, "")
        .await
        .ok(202);
    let shown = world.get(&path).await.ok(200);
    assert_eq!(shown["status"]["state"], "deleting");
    let list = world.get(DISKS).await.ok(200);
    assert_eq!(list["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_is_deleting_until_its_finalizers_are_done() {
    let world = World::with_workspace().await;
    let path = format!("{DISKS}/d");
    world.put(&path, disk(1)).await.ok(201);
    world
        .patch(
            "BlockStorage",
            "d",
            json!({"metadata": {"finalizers": ["test/hold"]}}),
        )
        .await;
    let asynchronous = [("prefer", "respond-async")];
    let answer = world.call(Method::DELETE, &path, &asynchronous, "").await;
    answer.ok(202);
    assert!(answer.bytes.is_empty());
    let shown = world.get(&path).await.ok(200);
    assert_eq!(shown["status"]["state"], "deleting");
    assert_eq!(
        states(&shown),
        ["deleting", "active", "creating", "pending"]
    );
    assert!(shown["metadata"]["deletedAt"].is_string());
    world.put(&path, disk(2)).await.problem(412);
    world
        .call(Method::DELETE, &path, &asynchronous, "")
        .await
        .ok(202);
    world
        .patch(
            "BlockStorage",
            "d",
            json!({"metadata": {"finalizers": null}}),
        )
        .await;
    world.eventually(&path, |a| a.status == 404).await;
    world.put(&path, disk(2)).await.ok(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_name_in_two_workspaces_is_two_resources() {
    let world = World::with_workspace().await;
    let dev = "/providers/seca.workspace/v1/tenants/acme/workspaces/dev";
    world.put(dev, json!({})).await.ok(201);
    let other = DISKS.replace("prod", "dev");
    world.put(&format!("{DISKS}/data"), disk(1)).await.ok(201);
    world.put(&format!("{other}/data"), disk(2)).await.ok(201);
    world.delete(&format!("{DISKS}/data")).await.ok(202);
    assert_eq!(
        world.get(&format!("{other}/data")).await.ok(200)["spec"]["sizeGB"],
        2
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_not_found() {
    let world = World::with_workspace().await;
    for path in [
        format!("{DISKS}/none"),
        format!("{WORKSPACE}-2"),
        "/providers/seca.workspace/v1/tenants/nobody/workspaces/x".to_owned(),
        format!("{DISKS}/{}", "a".repeat(129)),
        format!("{DISKS}/..%2Fx"),
    ] {
        world.delete(&path).await.problem(404);
        world.get(&path).await.problem(404);
    }
}
