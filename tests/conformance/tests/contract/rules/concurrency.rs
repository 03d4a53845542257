//! Conditional and simultaneous writes (contract, section 1.4).

use std::collections::BTreeMap;

use futures::future::join_all;
use serde_json::{Value, json};

use crate::kinds::*;
use crate::site::Site;
use crate::world::Answer;
use crate::{bodies, cases};

cases!(
    One a_condition_is_a_resource_version,
    One a_condition_only_updates,
    One versions_in_bodies_mean_nothing,
    One of_those_with_one_condition_one_wins,
    One changes_without_a_wait_all_count,
    One one_of_simultaneous_writes_creates,
);

fn body(n: usize) -> Value {
    json!({ "labels": { "n": n.to_string() }, "spec": {} })
}

async fn put_if(site: &Site, version: &str, body: &Value) -> Answer {
    let call = site.world.call("PUT", &site.path(&WORKSPACE, "x"));
    let call = call.header("if-unmodified-since", version);
    call.json(body).send().await
}

async fn a_condition_is_a_resource_version(site: Site) {
    site.put_body(&WORKSPACE, "x", &body(1)).await.ok(201);
    let updated = put_if(&site, "1", &body(2)).await.ok(200);
    assert_eq!(updated["metadata"]["resourceVersion"], 2);
    for stale in ["1", "3", "0", "-1"] {
        let answer = put_if(&site, stale, &body(3)).await;
        assert_eq!(answer.sources(), ["if-unmodified-since"]);
        answer.ok(412);
    }
    for nonsense in [
        "x",
        "",
        "1.0",
        "Sat, 29 Oct 1994 19:43:31 GMT",
        "99999999999999999999",
    ] {
        let answer = put_if(&site, nonsense, &body(3)).await;
        assert_eq!(answer.sources(), ["if-unmodified-since"]);
        answer.ok(400);
    }
    let read = site.get(&WORKSPACE, "x").await.ok(200);
    assert_eq!(read["labels"]["n"], "2");
}

async fn a_condition_only_updates(site: Site) {
    for version in ["0", "1"] {
        put_if(&site, version, &body(1)).await.ok(404);
    }
    site.get(&WORKSPACE, "x").await.ok(404);
}

async fn versions_in_bodies_mean_nothing(site: Site) {
    for n in 1..4 {
        let mut body = body(n);
        body["metadata"] = json!({ "resourceVersion": 77 - n, "name": "other" });
        let answer = site.put_body(&WORKSPACE, "x", &body).await;
        assert_eq!(answer.body["metadata"]["resourceVersion"], n);
        assert_eq!(answer.body["metadata"]["name"], "x");
    }
}

async fn of_those_with_one_condition_one_wins(site: Site) {
    site.put_body(&WORKSPACE, "x", &body(0)).await.ok(201);
    for round in 1..4 {
        let version = round.to_string();
        let bodies: Vec<Value> = (1..9).map(|n| body(round * 10 + n)).collect();
        let writes = bodies.iter().map(|body| put_if(&site, &version, body));
        let mut counts = BTreeMap::new();
        for answer in join_all(writes).await {
            *counts.entry(answer.status).or_insert(0) += 1;
        }
        assert_eq!(counts, BTreeMap::from([(200, 1), (412, 7)]));
    }
}

/// Nobody waits for what the one before does, and still each one counts.
async fn changes_without_a_wait_all_count(site: Site) {
    site.sample(&WORKSPACE).await;
    let put = async |n: usize| {
        let spec = bodies::minimal(&site, &PUBLIC_IP);
        let body = json!({ "labels": { "n": n.to_string() }, "spec": spec });
        let call = site.world.call("PUT", &site.path(&PUBLIC_IP, "x"));
        let call = call.header("prefer", "respond-async");
        call.json(&body).send().await
    };
    for n in 0..8 {
        let answer = put(n).await;
        assert_eq!(
            answer.body["metadata"]["resourceVersion"],
            n + 1,
            "{answer:#?}"
        );
    }
    let document = site.until_active(&PUBLIC_IP, "x").await;
    assert_eq!(document["metadata"]["resourceVersion"], 8);
    assert_eq!(document["labels"]["n"], "7");
}

async fn one_of_simultaneous_writes_creates(site: Site) {
    site.sample(&WORKSPACE).await;
    let spec = bodies::minimal(&site, &PUBLIC_IP);
    let write = async |n: usize| {
        let body = json!({ "labels": { "n": n.to_string() }, "spec": spec });
        site.put_body(&PUBLIC_IP, "x", &body).await.status
    };
    let mut codes = join_all((0..8).map(write)).await;
    codes.sort_unstable();
    assert_eq!(codes, [200, 200, 200, 200, 200, 200, 200, 201]);
    let document = site.until_active(&PUBLIC_IP, "x").await;
    let version = document["metadata"]["resourceVersion"].as_i64().unwrap();
    assert!((1..=8).contains(&version), "{document:#}");
}
