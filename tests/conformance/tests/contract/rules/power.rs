//! Start, stop and restart (contract, section 3.5).

use serde_json::{Value, json};

use crate::bodies;
use crate::kinds::*;
use crate::site::Site;
use crate::world::{Answer, Refusal};
use crate::{cases, check};

cases!(
    Two an_instance_is_started_stopped_and_restarted,
    Two an_update_and_power_count_together,
    One running_and_stopped_instances_are_deleted,
    One power_is_not_part_of_the_spec,
    Two power_can_be_conditional,
);

async fn instance(site: &Site) -> String {
    site.prepare(&INSTANCE).await;
    site.sample(&INSTANCE).await;
    site.path(&INSTANCE, INSTANCE.sample)
}

async fn post(site: &Site, path: &str, action: &str) -> Answer {
    let call = site.world.call("POST", &format!("{path}/{action}"));
    call.header("prefer", "respond-async").send().await
}

async fn accepted(site: &Site, path: &str, action: &str) {
    assert_eq!(post(site, path, action).await.ok(202), "");
}

async fn settled(site: &Site, path: &str, changes: usize, power: &str) -> Value {
    let document = site.world.until_active(path).await;
    check::conditions(&document, &check::changed(changes));
    assert_eq!(document["status"]["powerState"], power, "{document:#}");
    document
}

/// Each call sees the one before, without a wait in between.
async fn an_instance_is_started_stopped_and_restarted(site: Site) {
    let path = instance(&site).await;
    let conflict = site.world.code(Refusal::Conflict);
    let made = settled(&site, &path, 0, "off").await;
    assert!(made["status"]["powerStateSince"].is_null(), "{made:#}");
    for action in ["stop", "restart"] {
        post(&site, &path, action).await.ok(conflict);
    }
    accepted(&site, &path, "start").await;
    post(&site, &path, "start").await.ok(conflict);
    let started = settled(&site, &path, 1, "on").await;
    let since = check::time(&started["status"]["powerStateSince"]);
    assert_eq!(started["metadata"]["resourceVersion"], 2);

    accepted(&site, &path, "restart").await;
    let restarted = settled(&site, &path, 2, "on").await;
    assert!(check::time(&restarted["status"]["powerStateSince"]) >= since);

    accepted(&site, &path, "stop").await;
    for action in ["stop", "restart"] {
        post(&site, &path, action).await.ok(conflict);
    }
    accepted(&site, &path, "start").await;
    accepted(&site, &path, "restart").await;
    accepted(&site, &path, "stop").await;
    let stopped = site.world.until_active(&path).await;
    assert_eq!(stopped["status"]["powerState"], "off", "{stopped:#}");
    assert!(check::time(&stopped["status"]["powerStateSince"]) > since);
    assert_eq!(stopped["metadata"]["resourceVersion"], 7);
    post(&site, &path, "stop").await.ok(conflict);

    for action in ["start", "stop", "restart"] {
        let missing = site.path(&INSTANCE, "missing");
        post(&site, &missing, action).await.ok(404);
    }
    post(&site, &path, "suspend").await.ok(404);
    let disk = site.path(&BLOCK_STORAGE, BLOCK_STORAGE.sample);
    post(&site, &disk, "start").await.ok(404);
    let read = site.world.get(&format!("{path}/start")).await;
    assert!(read.header("allow").unwrap().contains("POST"), "{read:#?}");
    read.ok(405);
}

async fn an_update_and_power_count_together(site: Site) {
    let path = instance(&site).await;
    let spec = bodies::changed(&INSTANCE, bodies::minimal(&site, &INSTANCE));
    site.put(&INSTANCE, INSTANCE.sample, &spec).await.ok(200);
    for (n, (action, power)) in [("start", "on"), ("restart", "on"), ("stop", "off")]
        .into_iter()
        .enumerate()
    {
        accepted(&site, &path, action).await;
        let document = settled(&site, &path, n + 2, power).await;
        assert_eq!(document["metadata"]["resourceVersion"], n + 3);
    }
}

async fn running_and_stopped_instances_are_deleted(site: Site) {
    let path = instance(&site).await;
    accepted(&site, &path, "start").await;
    site.delete(&INSTANCE, INSTANCE.sample).await.ok(202);
    site.world.until_gone(&path).await;
    // The next one of the name starts anew.
    site.sample(&INSTANCE).await;
    settled(&site, &path, 0, "off").await;
}

/// A PUT neither shows nor changes it.
async fn power_is_not_part_of_the_spec(site: Site) {
    let path = instance(&site).await;
    accepted(&site, &path, "start").await;
    settled(&site, &path, 1, "on").await;
    let mut spec = bodies::minimal(&site, &INSTANCE);
    spec["power"] = json!({ "state": "off" });
    let answer = site.put(&INSTANCE, INSTANCE.sample, &spec).await;
    assert!(
        answer.header("warning").unwrap().contains("/spec/power"),
        "{answer:#?}"
    );
    let answer = answer.ok(200);
    assert!(answer["spec"].get("power").is_none(), "{answer:#}");
    settled(&site, &path, 2, "on").await;
    spec["zone"] = json!("zone-b");
    site.put(&INSTANCE, INSTANCE.sample, &spec).await.ok(200);
    settled(&site, &path, 3, "on").await;
}

async fn power_can_be_conditional(site: Site) {
    let path = instance(&site).await;
    let start = |version: &'static str| {
        let call = site.world.call("POST", &format!("{path}/start"));
        call.header("if-unmodified-since", version).send()
    };
    let stale = start("7").await;
    assert_eq!(stale.sources(), ["if-unmodified-since"]);
    stale.ok(412);
    start("soon").await.ok(400);
    start("1").await.ok(202);
    start("1").await.ok(412);
}
