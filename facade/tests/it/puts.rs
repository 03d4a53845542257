//! PUT: create, replace, wait, refuse.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ecp_facade::{ReferencePolicies, ReferencePolicy};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use crate::player::Mood;
use crate::world::{DISKS, IMAGES, WORKSPACE, World, disk, states};

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_lives_from_create_to_gone_in_both_flavours() {
    for flavour in ecp_xrds::Flavour::ALL {
        let world = World::of(flavour, |_| {}).await;
        world.put(WORKSPACE, json!({})).await.ok(201);
        live_and_die(&world).await;
    }
}

async fn live_and_die(world: &World) {
    let path = format!("{DISKS}/disk-1");
    let body = json!({
        "labels": {"env": "prod"}, "annotations": {"a": "b c"}, "extensions": {"x": {"y": [1, null]}},
        "metadata": {"name": "other", "region": "", "resourceVersion": 0, "verb": ""},
        "spec": {"sizeGB": 20, "skuRef": {"resource": "seca.storage/v1/tenants/acme/skus/RD500"}},
        "status": {"state": "error"},
    });
    let answer = world.put(&path, body.clone()).await;
    let created = answer.ok(201);
    assert_eq!(answer.headers["location"], path.as_str());
    for member in ["labels", "annotations", "extensions", "spec"] {
        assert_eq!(created[member], body[member], "{member}");
    }
    assert_eq!(created["metadata"]["verb"], "PUT");
    assert_eq!(created["metadata"]["region"], "region-1");
    assert_eq!(
        created["metadata"]["ref"],
        "seca.storage/v1/tenants/acme/workspaces/prod/block-storages/disk-1"
    );
    assert_eq!(created["metadata"]["resourceVersion"], 1);
    assert_eq!(created["status"]["state"], "active");
    assert_eq!(states(&created), ["active", "creating", "pending"]);

    let mut grown = body.clone();
    grown["spec"]["sizeGB"] = json!(30);
    let updated = world.put(&path, grown.clone()).await.ok(200);
    assert_eq!(updated["status"]["state"], "active");
    assert_eq!(
        states(&updated),
        ["active", "updating", "active", "creating", "pending"]
    );
    assert_eq!(updated["metadata"]["resourceVersion"], 2);

    // Nothing changes, and it counts all the same (SECA section 3.3).
    for version in [3, 4] {
        let same = world.put(&path, grown.clone()).await.ok(200);
        assert_eq!(same["metadata"]["resourceVersion"], version);
        assert_eq!(same["spec"], updated["spec"]);
        assert_eq!(states(&same)[..2], ["active", "updating"]);
        assert_eq!(states(&same).len(), 2 * version + 1);
    }

    let got = world.get(&path).await.ok(200);
    assert_eq!(got["metadata"]["verb"], "GET");
    assert_eq!(states(&got).len(), 9);
    assert!(world.delete(&path).await.ok(202).is_null());
    world.get(&path).await.problem(404);
    world.delete(&path).await.problem(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_replaces_all_it_does_not_name() {
    let world = World::with_workspace().await;
    let path = format!("{DISKS}/d");
    for labels in [
        json!({"a": "1"}),
        json!({"a": "1", "b": "2"}),
        json!({"b": "2"}),
    ] {
        let mut body = disk(1);
        body["labels"] = labels.clone();
        world.put(&path, body).await;
        assert_eq!(world.get(&path).await.ok(200)["labels"], labels);
    }
    world.put(&path, disk(1)).await.ok(200);
    assert_eq!(world.get(&path).await.ok(200).get("labels"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_kubectl_made_is_replaced_as_well() {
    let world = World::with_workspace().await;
    let object = json!({
        "apiVersion": "storage.v1.secapi.cloud/v1", "kind": "BlockStorage",
        "metadata": {"name": "k"},
        "spec": {
            "sizeGB": 10, "skuRef": {"resource": "RD500"},
            "sourceImageRef": {"resource": "images/i"},
            "commonData": {"labels": {"made-by": "kubectl"}},
        },
    });
    let object = serde_json::from_value(object).expect("object");
    world
        .objects("BlockStorage")
        .create(&PostParams::default(), &object)
        .await
        .expect("created");
    let path = format!("{DISKS}/k");
    let seen = world.eventually(&path, is_active).await.ok(200);
    assert_eq!(seen["labels"]["made-by"], "kubectl");
    let mut body = disk(10);
    body["spec"]["skuRef"]["resource"] = json!("RD500");
    let replaced = world.put(&path, body.clone()).await.ok(200);
    assert_eq!(replaced["spec"], body["spec"]);
    assert_eq!(replaced.get("labels"), None);
    assert_eq!(replaced["metadata"]["resourceVersion"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_cloud_answers_creating_and_updating_and_never_lies() {
    let world = World::with_workspace().await;
    let path = format!("{DISKS}/slow");
    world.mood(Mood::Idle);
    let asynchronous = [("prefer", "respond-async")];
    let created = world.put_with(&path, &asynchronous, disk(1)).await.ok(201);
    assert_eq!(created["status"]["state"], "pending");
    world.mood(Mood::Willing);
    world
        .eventually(&path, |a| a.json()["status"]["state"] == "active")
        .await;
    world.mood(Mood::Idle);
    let updated = world.put_with(&path, &asynchronous, disk(2)).await.ok(200);
    for shown in [updated, world.get(&path).await.ok(200)] {
        assert_eq!(shown["status"]["state"], "updating");
        assert_eq!(
            states(&shown),
            ["updating", "active", "creating", "pending"]
        );
        assert_eq!(shown["spec"]["sizeGB"], 2);
        assert_eq!(shown["status"]["sizeGB"], 1);
        assert_eq!(shown["metadata"]["resourceVersion"], 2);
    }
    let mut waiting = std::pin::pin!(world.put_with(&path, &[("prefer", "wait=20")], disk(3)));
    assert!(
        tokio::time::timeout(Duration::from_millis(50), &mut waiting)
            .await
            .is_err(),
        "nothing has happened yet"
    );
    world.mood(Mood::Willing);
    assert_eq!(waiting.await.ok(200)["status"]["state"], "active");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_the_cloud_is_shown_with_its_words() {
    let world = World::with_workspace().await;
    world.mood(Mood::Refusing);
    let refused = world.put(&format!("{DISKS}/d"), disk(1)).await.ok(201);
    assert_eq!(refused["status"]["state"], "error");
    assert_eq!(
        refused["status"]["conditions"][0]["message"],
        "no quota left"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_is_compared_with_the_version_the_client_saw() {
    let world = World::with_workspace().await;
    let path = format!("{DISKS}/d");
    let put = async |version: &str, size| {
        world
            .put_with(&path, &[("if-unmodified-since", version)], disk(size))
            .await
    };
    put("1", 1).await.problem(404);
    world.put(&path, disk(1)).await.ok(201);
    assert_eq!(put("1", 2).await.ok(200)["metadata"]["resourceVersion"], 2);
    put("1", 3).await.problem(412);
    put("soon", 3).await.problem(400);
    // Status writes of the control plane are no change of the client's resource.
    world
        .patch(
            "BlockStorage",
            "d",
            json!({"metadata": {"labels": {"x": "y"}}}),
        )
        .await;
    assert_eq!(put("2", 3).await.ok(200)["metadata"]["resourceVersion"], 3);
    let condition = [("if-unmodified-since", "1")];
    let stale = world
        .call(http::Method::DELETE, &path, &condition, "")
        .await;
    stale.problem(412);
    let condition = [("if-unmodified-since", "3")];
    world
        .call(http::Method::DELETE, &path, &condition, "")
        .await
        .ok(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_conditional_writes_exactly_one_wins() {
    let world = World::with_workspace().await;
    let path = format!("{DISKS}/d");
    world.put(&path, disk(1)).await.ok(201);
    let writes = (2..10).map(|size| {
        let headers = [("if-unmodified-since", "1")];
        let (world, path) = (&world, path.as_str());
        async move { world.put_with(path, &headers, disk(size)).await.status }
    });
    let codes = futures::future::join_all(writes).await;
    assert_eq!(codes.iter().filter(|c| **c == 200).count(), 1, "{codes:?}");
    assert!(codes.iter().all(|c| *c == 200 || *c == 412), "{codes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_name_the_field_and_store_nothing() {
    let world = World::with_workspace().await;
    let path = format!("{DISKS}/d");
    let base = || json!({"spec": {"sizeGB": 1, "skuRef": {"resource": "RD500"}}});
    let with = |pointer: &str, value: serde_json::Value| {
        let mut body = base();
        let (parent, name) = pointer.rsplit_once('/').expect("pointer");
        let parent = body.pointer_mut(parent).expect("parent");
        parent[name] = value;
        body
    };
    for (body, pointer) in [
        (with("/spec/sizeGB", json!(-1)), "/spec/sizeGB"),
        (with("/spec/sizeGB", json!(1_000_001)), "/spec/sizeGB"),
        (with("/spec/sizeGB", json!("20")), "/spec/sizeGB"),
        (with("/spec/sizeGB", json!(null)), "/spec/sizeGB"),
        (with("/spec/skuRef", json!("RD500")), "/spec/skuRef"),
        (
            with("/spec/skuRef", json!({"resource": "nope"})),
            "/spec/skuRef/resource",
        ),
        (
            with("/spec/skuRef", json!({"resource": "images/x"})),
            "/spec/skuRef/resource",
        ),
        (
            with("/spec/sourceImageRef", json!({"resource": "images/none"})),
            "/spec/sourceImageRef/resource",
        ),
        (
            with("/labels", json!({"k.y/z": "v".repeat(64)})),
            "/labels/k.y~1z",
        ),
        (with("/labels", json!({"k": 1})), "/labels/k"),
        (
            with("/annotations", json!({"k": "v".repeat(1025)})),
            "/annotations/k",
        ),
        (
            with("/metadata", json!({"region": "nowhere"})),
            "/metadata/region",
        ),
    ] {
        let answer = world.put(&path, body.clone()).await;
        assert!(
            answer.problem(412).contains(&pointer.to_owned()),
            "{body}: {}",
            answer.json()
        );
        world.get(&path).await.problem(404);
    }
    for (body, status) in [("{", 400), ("", 400), ("[1]", 412), ("\"x\"", 412)] {
        world
            .call(http::Method::PUT, &path, &[], body)
            .await
            .problem(status);
    }
    for name in [
        &"a".repeat(129),
        "Upper",
        "a_b",
        "..%2F..%2Fetc",
        "%2E%2E",
        "a%00b",
        "-a",
    ] {
        let answer = world.put(&format!("{DISKS}/{name}"), base()).await;
        assert_eq!(answer.problem(412), ["/metadata/name"], "{name}");
    }
    assert!(
        world
            .objects("BlockStorage")
            .list(&Default::default())
            .await
            .expect("list")
            .items
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_change_is_refused_by_name() {
    let world = World::with_workspace().await;
    let path = format!("{DISKS}/d");
    world.put(&path, disk(20)).await.ok(201);
    assert_eq!(
        world.put(&path, disk(10)).await.problem(412),
        ["/spec/sizeGB"]
    );
    let mut other = disk(20);
    other["spec"]["skuRef"]["resource"] = json!("skus/RD100");
    assert_eq!(world.put(&path, other).await.problem(412), ["/spec/skuRef"]);
    assert_eq!(world.get(&path).await.ok(200)["spec"], disk(20)["spec"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_up_to_128_characters_work_end_to_end() {
    let world = World::with_workspace().await;
    for len in [63, 64, 128] {
        let name = "n".repeat(len);
        let path = format!("{DISKS}/{name}");
        let created = world.put(&path, disk(1)).await.ok(201);
        assert_eq!(created["metadata"]["name"], name);
        assert_eq!(world.get(&path).await.ok(200)["metadata"]["name"], name);
        assert_eq!(world.put(&path, disk(2)).await.ok(200)["spec"]["sizeGB"], 2);
        world.delete(&path).await.ok(202);
        world.get(&path).await.problem(404);
    }
    let long = "w".repeat(128);
    let workspace = format!("/providers/seca.workspace/v1/tenants/acme/workspaces/{long}");
    world.put(&workspace, json!({"spec": null})).await.ok(201);
    let inside =
        format!("/providers/seca.storage/v1/tenants/acme/workspaces/{long}/block-storages/d");
    world.put(&inside, disk(1)).await.ok(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn parents_must_exist_and_not_be_deleting() {
    let world = World::new().await;
    let path = format!("{DISKS}/d");
    world.put(&path, disk(1)).await.problem(412);
    world.get(&path).await.problem(404);
    world.get(DISKS).await.problem(404);
    world.put(WORKSPACE, json!({})).await.ok(201);
    world.put(&path, disk(1)).await.ok(201);
    world
        .patch(
            "Workspace",
            "prod",
            json!({"metadata": {"finalizers": ["test/hold"]}}),
        )
        .await;
    let asynchronous = [("prefer", "respond-async")];
    world
        .call(http::Method::DELETE, WORKSPACE, &asynchronous, "")
        .await
        .ok(202);
    world.put(&format!("{DISKS}/e"), disk(1)).await.problem(412);
    world.put(WORKSPACE, json!({})).await.problem(412);
}

#[tokio::test(flavor = "multi_thread")]
async fn reserved_names_of_a_free_spec_are_refused() {
    let world = World::new().await;
    let body = json!({"spec": {"commonData": {"labels": {}}, "team": "a"}});
    assert_eq!(
        world.put(WORKSPACE, body).await.problem(412),
        ["/spec/commonData"]
    );
    let body = json!({"labels": {"a": "b"}, "spec": {"team": {"members": [1, "x"]}}});
    let created = world.put(WORKSPACE, body.clone()).await.ok(201);
    assert_eq!(created["spec"], body["spec"]);
    assert_eq!(created["labels"], body["labels"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_members_are_ignored_with_a_warning() {
    let world = World::with_workspace().await;
    let mut body = disk(1);
    body["surprise"] = json!(1);
    body["spec"]["crossplane"] = json!({"compositionRef": {"name": "evil"}});
    body["spec"]["colour"] = json!("blue");
    let answer = world.put(&format!("{DISKS}/d"), body).await;
    assert_eq!(answer.ok(201)["spec"], disk(1)["spec"]);
    let warnings = answer.headers.get_all("warning").iter();
    let warnings: Vec<_> = warnings.map(|w| w.to_str().unwrap()).collect();
    let expected = ["/surprise", "/spec/crossplane", "/spec/colour"]
        .map(|pointer| format!("299 - \"{pointer} is unknown and was ignored\""));
    assert_eq!(warnings, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forward_reference_is_accepted_where_the_policy_defers() {
    let world = World::with(|config| {
        config.references = ReferencePolicies::all(ReferencePolicy::Defer);
    })
    .await;
    world.put(WORKSPACE, json!({})).await.ok(201);
    let image = |disk: &str| json!({"spec": {"cpuArchitecture": "amd64", "blockStorageRef": {"resource": disk}}});
    let later = "seca.storage/v1/tenants/acme/workspaces/prod/block-storages/later";
    let made = world
        .put(&format!("{IMAGES}/i"), image(later))
        .await
        .ok(201);
    assert_eq!(made["spec"]["blockStorageRef"], json!({"resource": later}));
    for missing in [
        "seca.storage/v1/tenants/acme/workspaces/none/block-storages/d",
        "seca.storage/v1/tenants/other/workspaces/prod/block-storages/d",
    ] {
        let refused = world.put(&format!("{IMAGES}/j"), image(missing)).await;
        assert_eq!(refused.problem(412), ["/spec/blockStorageRef/resource"]);
    }
    let mut unknown_sku = disk(1);
    unknown_sku["spec"]["skuRef"]["resource"] = json!("skus/none");
    world
        .put(&format!("{DISKS}/d"), unknown_sku)
        .await
        .problem(412);
}

fn is_active(answer: &crate::world::Answer) -> bool {
    answer.status == 200 && answer.json()["status"]["state"] == "active"
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_put_took_over_from_others_is_replaced_by_the_next_one() {
    let world = World::with_workspace().await;
    let theirs = json!({
        "apiVersion": "workspace.v1.secapi.cloud/v1", "kind": "Workspace",
        "metadata": {"name": "shared"},
        "spec": {"commonData": {"labels": {"env": "dev"}}},
    });
    world
        .objects("Workspace")
        .patch(
            "shared",
            &PatchParams::apply("kubectl"),
            &Patch::Apply(theirs),
        )
        .await
        .expect("applied");
    let path = WORKSPACE.replace("/prod", "/shared");
    world.eventually(&path, |a| a.status == 200).await;
    for labels in [
        json!({"env": "prod", "tier": "x"}),
        json!({"env": "prod"}),
        json!({"team": "a"}),
    ] {
        let body = json!({"labels": labels, "spec": {}});
        let answer = world.put(&path, body).await.ok(200);
        assert_eq!(answer["labels"], labels);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_replaces_what_others_wrote_just_before_it() {
    let armed = Arc::new(AtomicBool::new(false));
    let world = World::with(|config| {
        let (armed, through) = (Arc::clone(&armed), config.client.clone());
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let (armed, through) = (Arc::clone(&armed), through.clone());
            async move {
                if request.method() == http::Method::PATCH && armed.swap(false, Ordering::SeqCst) {
                    let labels = json!({"spec": {"commonData": {"labels": {"tier": "theirs"}}}});
                    let body = kube::client::Body::from(labels.to_string().into_bytes());
                    let path = request.uri().path().to_owned();
                    let theirs = http::Request::patch(format!("{path}?fieldManager=kubectl"))
                        .header("content-type", "application/merge-patch+json")
                        .body(body)
                        .expect("request");
                    assert!(
                        through
                            .send(theirs)
                            .await
                            .expect("answer")
                            .status()
                            .is_success()
                    );
                }
                through.send(request).await.map_err(tower::BoxError::from)
            }
        });
        config.client = kube::Client::new(service, "default");
    })
    .await;
    world.put(WORKSPACE, json!({})).await.ok(201);
    armed.store(true, Ordering::SeqCst);
    let body = json!({"labels": {"env": "prod"}, "spec": {}});
    let answer = world.put(WORKSPACE, body.clone()).await.ok(200);
    assert!(!armed.load(Ordering::SeqCst), "nobody came in between");
    assert_eq!(answer["labels"], body["labels"]);
}
