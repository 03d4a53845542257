//! Faults of the Go ECP that touch what is written over REST, each with what is right.

use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::player::Mood;
use crate::world::{DISKS, INSTANCES, World, disk, instance, states};

/// It kept users' labels under hashed keys and filtered by plain ones: every list was empty.
#[tokio::test(flavor = "multi_thread")]
async fn label_filters_find_what_users_labelled() {
    let world = World::with_workspace().await;
    for (name, labels) in [
        (
            "a",
            json!({"env": "prod", "Tier": "D2XS", "secapi.cloud/x": "front-end"}),
        ),
        ("b", json!({"env": "dev"})),
        ("c", json!({})),
    ] {
        let mut body = disk(1);
        body["labels"] = labels;
        world.put(&format!("{DISKS}/{name}"), body).await.ok(201);
    }
    for (selector, want) in [
        ("env%3Dprod", &["a"][..]),
        ("Tier%3DD2XS", &["a"]),
        ("secapi.cloud/x%3Dfront-end", &["a"]),
        ("en*%3D*", &["a", "b"]),
        ("env!%3Dprod", &["b", "c"]),
        ("tier%3DD2XS", &[]),
    ] {
        let list = world
            .get(&format!("{DISKS}?labels={selector}"))
            .await
            .ok(200);
        let names: Vec<_> = list["items"]
            .as_array()
            .expect("items")
            .iter()
            .map(|i| i["metadata"]["name"].as_str().expect("name"))
            .collect();
        assert_eq!(names, want, "{selector}");
    }
}

/// A label that a later PUT added was stored and never shown (A58).
#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_a_later_put_adds_is_shown() {
    let world = World::with_workspace().await;
    let path = format!("{DISKS}/d");
    for (version, labels) in [
        json!({"a": "1"}),
        json!({"b": "2", "a": "1"}),
        json!({"a": "1", "b": "2"}),
        json!({"b": "2"}),
    ]
    .into_iter()
    .enumerate()
    {
        let mut body = disk(1);
        body["labels"] = labels.clone();
        world.put(&path, body).await;
        let shown = world.get(&path).await.ok(200);
        assert_eq!(shown["labels"], labels);
        // Every accepted PUT counts once (SECA section 3.3).
        let now = &shown["metadata"]["resourceVersion"];
        assert_eq!(*now, version + 1, "{labels}");
    }
}

/// Conditional updates replaced the whole object and lost its finalizers, owners and what others
/// had written, so a deletion that followed left the cloud's resource behind.
#[tokio::test(flavor = "multi_thread")]
async fn updates_keep_finalizers_owners_and_what_others_wrote() {
    let world = World::with_workspace().await;
    let path = format!("{DISKS}/d");
    world.put(&path, disk(1)).await.ok(201);
    let namespace = ecp_meta::names::workspace_namespace("acme", "prod");
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &namespace);
    let owner = serde_json::from_value(json!({"metadata": {"name": "o"}})).expect("map");
    let owner = maps
        .create(&PostParams::default(), &owner)
        .await
        .expect("created");
    let metadata = json!({
        "finalizers": ["test/hold"],
        "labels": {"example.org/team": "a"},
        "annotations": {"example.org/note": "b"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o",
            "uid": owner.metadata.uid}],
    });
    let patch = json!({"metadata": metadata});
    world.patch("BlockStorage", "d", patch).await;
    let kept = async || {
        let object = world.objects("BlockStorage").get("d").await.expect("disk");
        let object = serde_json::to_value(object).expect("JSON");
        for (field, want) in metadata.as_object().expect("object") {
            assert_eq!(&object["metadata"][field], want, "{field}");
        }
    };
    let condition = [("if-unmodified-since", "1")];
    world.put_with(&path, &condition, disk(2)).await.ok(200);
    kept().await;
    world.put(&path, disk(3)).await.ok(200);
    kept().await;
}

/// A deletion that met an update took the object away under its finalizer.
#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_among_updates_waits_for_the_finalizer() {
    let world = World::with_workspace().await;
    let path = format!("{DISKS}/d");
    world.put(&path, disk(1)).await.ok(201);
    let hold = json!({"metadata": {"finalizers": ["test/hold"]}});
    world.patch("BlockStorage", "d", hold).await;
    let asynchronous = [("prefer", "respond-async")];
    let puts = (2..8).map(|size| world.put_with(&path, &asynchronous, disk(size)));
    let delete = world.call(Method::DELETE, &path, &asynchronous, "");
    let (puts, deleted) = futures::future::join(futures::future::join_all(puts), delete).await;
    deleted.ok(202);
    for put in puts {
        // Before the deletion it is an update; after it, it would be lost.
        assert!(matches!(put.status.as_u16(), 200 | 412), "{}", put.status);
    }
    let object = world.objects("BlockStorage").get("d").await.expect("disk");
    assert_eq!(object.metadata.finalizers, Some(vec!["test/hold".into()]));
    assert!(object.metadata.deletion_timestamp.is_some());
    let shown = world.get(&path).await.ok(200);
    assert_eq!(shown["status"]["state"], "deleting");
    world.put(&path, disk(9)).await.problem(412);
}

/// `lastModifiedAt` was always the time of creation, and a resource without a status was pending
/// since "now" whenever it was read.
#[tokio::test(flavor = "multi_thread")]
async fn times_are_those_of_what_happened() {
    let world = World::with_workspace().await;
    world.mood(Mood::Idle);
    let path = format!("{DISKS}/d");
    let asynchronous = [("prefer", "respond-async")];
    let created = world.put_with(&path, &asynchronous, disk(1)).await.ok(201);
    let first = world.get(&path).await.ok(200);
    assert_eq!(first["status"], created["status"]);
    world.mood(Mood::Willing);
    let active = world
        .eventually(&path, |a| a.json()["status"]["state"] == "active")
        .await
        .json();
    let updated = world.put(&path, disk(2)).await.ok(200);
    let time = |document: &Value, field: &str| -> jiff::Timestamp {
        let text = document["metadata"][field].as_str().expect("text");
        text.parse().expect("time")
    };
    assert_eq!(time(&updated, "createdAt"), time(&created, "createdAt"));
    assert!(time(&updated, "lastModifiedAt") > time(&active, "lastModifiedAt"));
}

/// Limits of names, labels and lists were those of Kubernetes, or none (A59).
#[tokio::test(flavor = "multi_thread")]
async fn limits_are_those_of_the_specification() {
    let world = World::with_workspace().await;
    world.put(&format!("{DISKS}/boot"), disk(20)).await.ok(201);
    let mut volumes = Vec::new();
    for n in 0..65 {
        world.put(&format!("{DISKS}/d-{n}"), disk(1)).await.ok(201);
        volumes.push(json!({"deviceRef": {"resource": format!("d-{n}")}}));
    }
    let text = |len: usize| json!("x".repeat(len));
    let list = |len: usize, item: &Value| json!(vec![item; len]);
    let check = async |name: &str, change: &dyn Fn(&mut Value), accepted: bool| {
        let mut body = instance();
        change(&mut body);
        let answer = world.put(&format!("{INSTANCES}/{name}"), body).await;
        match accepted {
            true => assert!(answer.status.is_success(), "{}", answer.json()),
            false => drop(answer.problem(412)),
        }
    };
    for (field, max, over) in [
        ("userData", text(65536), text(65537)),
        ("sshKeys", list(32, &text(4096)), list(33, &text(1))),
        ("sshKeys", json!(["k"]), json!([text(4097)])),
        ("sshKeys", json!([]), json!([""])),
        ("dataVolumes", json!(volumes[..64]), json!(volumes)),
        ("antiAffinityGroup", text(64), text(65)),
    ] {
        check("i", &|b| b["spec"][field] = over.clone(), false).await;
        check("i", &|b| b["spec"][field] = max.clone(), true).await;
    }
    for (field, max) in [("labels", 63), ("annotations", 1024)] {
        check("i", &|b| b[field] = json!({"k": text(max + 1)}), false).await;
        check("i", &|b| b[field] = json!({"k": text(max)}), true).await;
    }
    for (name, accepted) in [
        ("n".repeat(63), true),
        ("n".repeat(64), true),
        ("n".repeat(128), true),
        ("n".repeat(129), false),
        ("A_b".into(), false),
    ] {
        check(&name, &|_| {}, accepted).await;
    }
}

/// A PUT of something that was being deleted changed nothing and said 200.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_cannot_be_kept_is_never_acknowledged() {
    let world = World::with_workspace().await;
    let path = format!("{DISKS}/d");
    world.put(&path, disk(1)).await.ok(201);
    let hold = json!({"metadata": {"finalizers": ["test/hold"]}});
    world.patch("BlockStorage", "d", hold).await;
    // Behind the facade's back: its cache need not have heard of it.
    let objects = world.objects("BlockStorage");
    objects
        .delete("d", &Default::default())
        .await
        .expect("deleted");
    world.put(&path, disk(2)).await.problem(412);
    let object = objects.get("d").await.expect("disk");
    assert!(object.metadata.deletion_timestamp.is_some());
}

/// The list of conditions counted repetitions in its messages and grew while a resource waited.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_told_twice() {
    let world = World::with_workspace().await;
    let path = format!("{DISKS}/d");
    world.put(&path, disk(1)).await.ok(201);
    for i in 0..3 {
        let patch = json!({"metadata": {"annotations": {"example.org/turn": i.to_string()}}});
        let objects = world.objects("BlockStorage");
        objects
            .patch("d", &PatchParams::default(), &Patch::Merge(patch))
            .await
            .expect("patched");
    }
    let shown = world.get(&path).await.ok(200);
    assert_eq!(states(&shown), ["active", "creating", "pending"]);
    assert_eq!(shown["metadata"]["resourceVersion"], 1);
}
