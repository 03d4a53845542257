//! What roles allow over REST, and how fast callers may ask.

use std::num::NonZeroU32;

use axum::body::Body;
use http::{Method, Request};
use serde_json::{Value, json};

use crate::world::{
    ASSIGNMENTS, Answer, DISKS, IMAGES, INSTANCES, ROLES, SKUS, WORKSPACE, World, disk,
};

/// Asks as `bob`, who is no administrator.
async fn bob(world: &World, method: Method, path: &str, body: Value) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", "Bearer plain")
        .body(Body::from(body.to_string()))
        .expect("request");
    world.request(request).await
}

async fn get(world: &World, path: &str) -> u16 {
    bob(world, Method::GET, path, Value::Null)
        .await
        .status
        .as_u16()
}

fn role(provider: &str, resources: &[&str], verb: &[&str]) -> Value {
    let permission = json!({"provider": provider, "resources": resources, "verb": verb});
    json!({"spec": {"permissions": [permission]}})
}

async fn assign(world: &World, name: &str, roles: &[&str], subs: &[&str], scope: Value) {
    let body = json!({"spec": {"subs": subs, "roles": roles, "scopes": [scope]}});
    let answer = world.put(&format!("{ASSIGNMENTS}/{name}"), body).await;
    assert!(answer.status.is_success(), "{}", answer.json());
}

async fn with_role(name: &str, body: Value) -> World {
    let world = World::with_workspace().await;
    world.put(&format!("{ROLES}/{name}"), body).await.ok(201);
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_counts_from_its_assignment_to_its_deletion() {
    let images = role("seca.storage/v1", &["images", "images/*"], &["GET", "LIST"]);
    let world = with_role("reader", images).await;
    assert_eq!(get(&world, IMAGES).await, 403);
    assign(&world, "bobs", &["reader"], &["bob"], json!({})).await;
    assert_eq!(get(&world, IMAGES).await, 200);
    assert_eq!(get(&world, &format!("{IMAGES}/none")).await, 404);
    let image = format!("{IMAGES}/i");
    let put = bob(&world, Method::PUT, &image, json!({"spec": {}})).await;
    put.problem(403);
    assert_eq!(get(&world, SKUS).await, 403);
    let other = "/providers/seca.storage/v1/tenants/other/images";
    assert_eq!(get(&world, other).await, 403, "another tenant");
    assert_eq!(get(&world, "/providers/seca.region/v1/regions").await, 200);
    // A role that is being deleted grants nothing any more.
    let held = json!({"metadata": {"finalizers": ["test/hold"]}});
    world.patch("Role", "reader", held).await;
    let asynchronous = [("prefer", "respond-async")];
    let path = format!("{ROLES}/reader");
    let deleted = world.call(Method::DELETE, &path, &asynchronous, "").await;
    deleted.ok(202);
    assert_eq!(get(&world, IMAGES).await, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn scopes_and_names_bound_a_role() {
    let all = role("seca.storage/v1", &["*"], &["*"]);
    let world = with_role("all", all).await;
    let dev = WORKSPACE.replace("prod", "dev");
    world.put(&dev, json!({})).await.ok(201);
    let scope = json!({"tenants": ["acme"], "workspaces": ["dev"], "regions": ["region-1"]});
    assign(&world, "dev", &["all"], &["*"], scope).await;
    let dev_disks = DISKS.replace("prod", "dev");
    let made = bob(&world, Method::PUT, &format!("{dev_disks}/d"), disk(1)).await;
    made.ok(201);
    assert_eq!(get(&world, &dev_disks).await, 200);
    assert_eq!(get(&world, DISKS).await, 403, "another workspace");
    assert_eq!(get(&world, IMAGES).await, 403, "the whole tenant");
    assert_eq!(get(&world, INSTANCES).await, 403, "another provider");
    let workspaces = role("seca.workspace/v1", &["workspaces/*"], &["get"]);
    let role_path = format!("{ROLES}/workspaces");
    world.put(&role_path, workspaces).await.ok(201);
    assign(&world, "ws", &["workspaces"], &["bob"], json!({})).await;
    assert_eq!(get(&world, WORKSPACE).await, 200);
    bob(&world, Method::DELETE, WORKSPACE, Value::Null)
        .await
        .problem(403);
    let list = WORKSPACE.rsplit_once('/').expect("path").0;
    assert_eq!(get(&world, list).await, 403, "a list needs the verb list");
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_ask_too_often_are_told_when_to_come_back() {
    let world = World::with(|config| config.rate_limit = NonZeroU32::new(1)).await;
    world.get(SKUS).await.ok(200);
    let slow = world.get(SKUS).await;
    slow.problem(429);
    assert_eq!(slow.headers["retry-after"], "1");
    // Others are not held up by it.
    assert_eq!(get(&world, "/providers/seca.region/v1/regions").await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_problem_names_its_request() {
    let world = World::new().await;
    let named = [("x-request-id", "abc-7")];
    let answer = world.call(Method::GET, "/nowhere", &named, "").await;
    assert_eq!(answer.ok(404)["meta"], json!({"requestId": "abc-7"}));
}
