//! DELETE.

use http::Method;
use serde_json::json;

use crate::world::{DISKS, WORKSPACE, World, disk, states};

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
