//! POST of start, stop and restart.

use ecp_facade::Profile;
use http::Method;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::player::Mood;
use crate::world::{Answer, DISKS, INSTANCES, NICS, WORKSPACE, World, disk, instance, states};

async fn world(profile: Profile) -> World {
    let world = World::with(|config| config.profile = profile).await;
    world.put(WORKSPACE, json!({})).await.ok(201);
    world.put(&format!("{DISKS}/boot"), disk(20)).await.ok(201);
    let created = world.put(&format!("{INSTANCES}/i"), instance()).await;
    assert_eq!(created.ok(201)["status"]["powerState"], "off");
    world
}

fn path(action: &str) -> String {
    format!("{INSTANCES}/i/{action}")
}

async fn post(world: &World, path: &str) -> Answer {
    world.call(Method::POST, path, &[], "").await
}

/// `spec.power` as it is stored.
async fn stored(world: &World) -> Value {
    let object = world.objects("Instance").get("i").await.expect("instance");
    object.data["spec"]["power"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_operation_is_one_update_and_conflicts_follow_the_intent() {
    let world = world(Profile::Conformance).await;
    let item = format!("{INSTANCES}/i");
    for (action, status, power, conditions) in [
        ("stop", 412, "off", 3),
        ("restart", 412, "off", 3),
        ("start", 202, "on", 5),
        ("start", 412, "on", 5),
        ("restart", 202, "on", 7),
        ("stop", 202, "off", 9),
        ("stop", 412, "off", 9),
        ("restart", 412, "off", 9),
        ("start", 202, "on", 11),
    ] {
        let answer = post(&world, &path(action)).await;
        if status == 202 {
            assert!(answer.ok(202).is_null());
        } else {
            answer.problem(status);
        }
        let shown = world.get(&item).await.ok(200);
        assert_eq!(shown["status"]["powerState"], power, "{action}");
        assert_eq!(shown["status"]["state"], "active", "{action}");
        assert_eq!(states(&shown).len(), conditions, "{action}");
        assert!(shown["spec"].get("power").is_none(), "{action}");
        let version = (conditions - 1) / 2;
        assert_eq!(shown["metadata"]["resourceVersion"], version, "{action}");
    }
    assert!(world.get(&item).await.ok(200)["status"]["powerStateSince"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_request_sees_what_was_asked_for_though_the_cloud_is_slow() {
    let world = world(Profile::Spec).await;
    world.mood(Mood::Idle);
    let asynchronous = [("prefer", "respond-async")];
    let post = async |action: &str| {
        let answer = world
            .call(Method::POST, &path(action), &asynchronous, "")
            .await;
        let shown = world.get(&format!("{INSTANCES}/i")).await.ok(200);
        let power = shown["status"]["powerState"].clone();
        (
            answer.status.as_u16(),
            power,
            shown["status"]["state"].clone(),
        )
    };
    let updating = |code: u16, power: &str| (code, json!(power), json!("updating"));
    assert_eq!(post("start").await, updating(202, "on"));
    assert_eq!(post("start").await, updating(409, "on"));
    assert_eq!(post("stop").await, updating(202, "off"));
    assert_eq!(post("stop").await, updating(409, "off"));
    assert_eq!(post("restart").await, updating(409, "off"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_leaves_the_power_alone_and_power_leaves_the_rest() {
    let world = world(Profile::Conformance).await;
    let item = format!("{INSTANCES}/i");
    post(&world, &path("start")).await.ok(202);
    post(&world, &path("restart")).await.ok(202);
    let power = stored(&world).await;
    assert!(power["restartedAt"].is_string());
    let mut body = instance();
    body["labels"] = json!({"a": "b"});
    body["spec"]["power"] = json!({"state": "off"});
    body["spec"]["userData"] = json!("#cloud-config");
    let answer = world.put(&item, body).await;
    let warning = answer.headers["warning"].to_str().expect("text");
    assert!(warning.contains("/spec/power"), "{warning}");
    assert_eq!(answer.ok(200)["status"]["powerState"], "on");
    assert_eq!(stored(&world).await, power);
    post(&world, &path("stop")).await.ok(202);
    let shown = world.get(&item).await.ok(200);
    assert_eq!(shown["labels"], json!({"a": "b"}));
    assert_eq!(shown["spec"]["userData"], "#cloud-config");
    assert_eq!(
        stored(&world).await,
        json!({"state": "off", "restartedAt": power["restartedAt"]})
    );
    // Neither does it hold on to what the next PUT leaves out.
    let plain = world.put(&item, instance()).await.ok(200);
    assert_eq!(plain["spec"], world.get(&item).await.ok(200)["spec"]);
    assert!(plain["spec"].get("userData").is_none());
    assert!(plain.get("labels").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn power_that_kubectl_manages_is_taken_over_and_a_put_does_not_clear_it() {
    let world = world(Profile::Conformance).await;
    let theirs = json!({
        "apiVersion": "compute.v1.secapi.cloud/v1", "kind": "Instance",
        "metadata": {"name": "i"},
        "spec": {"power": {"state": "on"}, "commonData": {"labels": {"who": "kubectl"}}},
    });
    world
        .objects("Instance")
        .patch("i", &PatchParams::apply("kubectl"), &Patch::Apply(theirs))
        .await
        .expect("applied");
    let item = format!("{INSTANCES}/i");
    world
        .eventually(&item, |a| a.json()["status"]["powerState"] == "on")
        .await;
    let replaced = world.put(&item, instance()).await.ok(200);
    assert!(replaced.get("labels").is_none());
    assert_eq!(replaced["status"]["powerState"], "on");
    post(&world, &path("start")).await.problem(412);
    post(&world, &path("stop")).await.ok(202);
    assert_eq!(stored(&world).await, json!({"state": "off"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_starts_at_once_exactly_one_is_accepted() {
    let world = world(Profile::Conformance).await;
    let start = path("start");
    let starts = (0..8).map(|_| post(&world, &start));
    let codes: Vec<u16> = futures::future::join_all(starts)
        .await
        .iter()
        .map(|a| a.status.as_u16())
        .collect();
    assert_eq!(codes.iter().filter(|c| **c == 202).count(), 1, "{codes:?}");
    assert!(codes.iter().all(|c| matches!(c, 202 | 412)), "{codes:?}");
    let shown = world.get(&format!("{INSTANCES}/i")).await.ok(200);
    assert_eq!(states(&shown).len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_restart_is_later_than_the_one_before() {
    let world = world(Profile::Conformance).await;
    post(&world, &path("start")).await.ok(202);
    let mut last = String::new();
    for _ in 0..5 {
        let asynchronous = [("prefer", "respond-async")];
        world
            .call(Method::POST, &path("restart"), &asynchronous, "")
            .await
            .ok(202);
        let at = stored(&world).await["restartedAt"]
            .as_str()
            .expect("time")
            .to_owned();
        assert!(at > last, "{at} after {last}");
        last = at;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_and_the_finalizers_are_kept() {
    let world = world(Profile::Conformance).await;
    let hold = json!({"metadata": {"finalizers": ["test/hold"]}});
    world.patch("Instance", "i", hold).await;
    let if_version = async |action: &str, version: &str| {
        let headers = [("if-unmodified-since", version)];
        world.call(Method::POST, &path(action), &headers, "").await
    };
    if_version("start", "7").await.problem(412);
    if_version("start", "soon").await.problem(400);
    if_version("start", "1").await.ok(202);
    if_version("stop", "1").await.problem(412);
    if_version("stop", "2").await.ok(202);
    let object = world.objects("Instance").get("i").await.expect("instance");
    assert_eq!(object.metadata.finalizers, Some(vec!["test/hold".into()]));
    let asynchronous = [("prefer", "respond-async")];
    world
        .call(Method::DELETE, &format!("{INSTANCES}/i"), &asynchronous, "")
        .await
        .ok(202);
    post(&world, &path("start")).await.problem(412);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_power_or_does_not_exist_is_not_found() {
    let world = world(Profile::Conformance).await;
    for path in [
        format!("{INSTANCES}/none/start"),
        format!("{INSTANCES}/i/pause"),
        format!("{INSTANCES}/i/start/now"),
        format!("{DISKS}/boot/start"),
        format!("{NICS}/n/start"),
    ] {
        post(&world, &path).await.problem(404);
    }
    world.get(&path("start")).await.problem(405);
    post(&world, &format!("{INSTANCES}/i")).await.problem(405);
}

#[tokio::test(flavor = "multi_thread")]
async fn power_a_put_and_a_deletion_at_once_leave_one_of_their_orders() {
    let world = world(Profile::Conformance).await;
    let item = format!("{INSTANCES}/i");
    for _ in 0..8 {
        world.put(&item, instance()).await;
        let start = path("start");
        let (started, put, deleted) = futures::join!(
            post(&world, &start),
            world.put(&item, instance()),
            world.delete(&item),
        );
        let codes = [&started, &put, &deleted].map(|a| a.status.as_u16());
        assert!(matches!(codes[0], 202 | 404 | 412), "{codes:?}");
        assert!(matches!(codes[1], 200 | 201 | 412), "{codes:?}");
        assert_eq!(codes[2], 202, "{codes:?}");
        // Only what was made after the deletion is there.
        let left = world.get(&item).await.status.as_u16();
        assert_eq!(left == 200, codes[1] == 201, "{codes:?} {left}");
    }
}
