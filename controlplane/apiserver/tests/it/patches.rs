//! PATCH.

use serde_json::json;

use crate::api::{Api, CRDS, FOOS, MAPS, config_map, foo, foo_crd, rv, with_foos};

#[tokio::test]
async fn json_and_merge_patches_apply() {
    let api = with_foos().await;
    api.post(FOOS, foo("a", json!({"n": 1}))).await.expect(201);
    let path = format!("{FOOS}/a");
    let v = api
        .merge(&path, json!({"spec": {"n": null, "color": "red"}}))
        .await
        .expect(200);
    assert_eq!(v["spec"], json!({"color": "red", "size": "small"}));
    let v = api
        .json_patch(
            &path,
            json!([
                {"op": "test", "path": "/spec/color", "value": "red"},
                {"op": "add", "path": "/spec/n", "value": 3}
            ]),
        )
        .await
        .expect(200);
    assert_eq!(v["spec"]["n"], 3);
    let failed = api
        .json_patch(
            &path,
            json!([{"op": "test", "path": "/spec/n", "value": 9}]),
        )
        .await;
    assert_eq!(failed.code, 422);
    let malformed = api.json_patch(&path, json!({"op": "x"})).await;
    assert_eq!(malformed.code, 400);
    let missing = api.merge(&format!("{FOOS}/none"), json!({})).await;
    assert_eq!(missing.code, 404);
    let odd = api
        .call(
            "PATCH",
            &path,
            "application/strategic-merge-patch+json",
            "{}",
        )
        .await;
    assert_eq!((odd.code, odd.reason()), (415, "UnsupportedMediaType"));
}

#[tokio::test]
async fn a_patch_may_pin_the_version() {
    let api = with_foos().await;
    let made = api.post(FOOS, foo("a", json!({"n": 1}))).await.expect(201);
    let path = format!("{FOOS}/a");
    let pin = json!({"metadata": {"resourceVersion": rv(&made).to_string()}, "spec": {"n": 2}});
    api.merge(&path, pin.clone()).await.expect(200);
    let stale = api.merge(&path, pin).await;
    assert_eq!((stale.code, stale.reason()), (409, "Conflict"));
}

#[tokio::test]
async fn concurrent_patches_all_land() {
    let api = with_foos().await;
    api.post(FOOS, foo("a", json!({}))).await.expect(201);
    let path = format!("{FOOS}/a");
    let patches = (0..4).map(|i| {
        let (api, path) = (&api, &path);
        async move {
            api.merge(path, json!({"data": {format!("k{i}"): "v"}}))
                .await
                .expect(200)
        }
    });
    futures::future::join_all(patches).await;
    let v = api.get(&path).await.expect(200);
    assert_eq!(v["data"].as_object().unwrap().len(), 4);
}

#[tokio::test]
async fn strategic_patches_merge_built_ins() {
    let api = Api::start().await;
    let mut body = config_map("a");
    body["metadata"]["finalizers"] = json!(["a.b/c"]);
    api.post(MAPS, body).await.expect(201);
    let patch = json!({"metadata": {"finalizers": ["d.e/f"]}, "data": {"k": "v"}});
    let v = api
        .call(
            "PATCH",
            &format!("{MAPS}/a"),
            "application/strategic-merge-patch+json",
            patch.to_string(),
        )
        .await
        .expect(200);
    let finalizers = v["metadata"]["finalizers"].as_array().unwrap();
    assert_eq!(finalizers.len(), 2);
    assert!(finalizers.contains(&json!("a.b/c")) && finalizers.contains(&json!("d.e/f")));
}

#[tokio::test]
async fn apply_creates_owns_and_releases() {
    let api = with_foos().await;
    let path = format!("{FOOS}/a");
    let made = api
        .apply(&path, "one", foo("a", json!({"n": 1, "color": "red"})))
        .await
        .expect(201);
    let entry = &made["metadata"]["managedFields"][0];
    assert_eq!(
        (&entry["manager"], &entry["operation"]),
        (&json!("one"), &json!("Apply"))
    );
    assert!(entry["fieldsV1"]["f:spec"].get("f:n").is_some());
    let same = api
        .apply(&path, "one", foo("a", json!({"n": 1, "color": "red"})))
        .await
        .expect(200);
    assert_eq!(same, made);
    let conflict = api.apply(&path, "two", foo("a", json!({"n": 2}))).await;
    assert_eq!((conflict.code, conflict.reason()), (409, "Conflict"));
    let cause = &conflict.body["details"]["causes"][0];
    assert_eq!(
        (&cause["reason"], &cause["field"]),
        (&json!("FieldManagerConflict"), &json!(".spec.n"))
    );
    let forced = api
        .apply(
            &format!("{path}?force=true"),
            "two",
            foo("a", json!({"n": 2})),
        )
        .await
        .expect(200);
    assert_eq!(forced["spec"]["n"], 2);
    let released = api
        .apply(&path, "one", foo("a", json!({})))
        .await
        .expect(200);
    assert_eq!(released["spec"], json!({"n": 2, "size": "small"}));
}

#[tokio::test]
async fn apply_is_checked() {
    let api = with_foos().await;
    let path = format!("{FOOS}/a");
    let body = foo("a", json!({"n": 1}));
    let anonymous = api
        .call(
            "PATCH",
            &path,
            "application/apply-patch+yaml",
            body.to_string(),
        )
        .await;
    assert_eq!((anonymous.code, anonymous.reason()), (422, "Invalid"));
    let mut managed = body.clone();
    managed["metadata"]["managedFields"] = json!([{"manager": "x"}]);
    assert_eq!(api.apply(&path, "m", managed).await.code, 400);
    let mut pinned = body.clone();
    pinned["metadata"]["uid"] = "u".into();
    assert_eq!(api.apply(&path, "m", pinned).await.code, 409);
    assert_eq!(
        api.apply(&format!("{FOOS}/b"), "m", body.clone())
            .await
            .code,
        400
    );
    assert_eq!(
        api.apply(&format!("{path}/status"), "m", body.clone())
            .await
            .code,
        404
    );
    let duplicate = foo("a", json!({"items": [{"name": "x"}, {"name": "x"}]}));
    assert!(matches!(
        api.apply(&path, "m", duplicate).await.code,
        400 | 422 | 500
    ));
    let forced = api.merge(&format!("{path}?force=true"), json!({})).await;
    assert_eq!((forced.code, forced.reason()), (422, "Invalid"));
    let typeless = json!({"metadata": {"name": "a"}});
    assert_eq!(api.apply(&path, "m", typeless).await.code, 400);
    // Only what exists needs no name.
    let mut nameless = foo("a", json!({"n": 4}));
    nameless["metadata"] = json!({});
    assert_eq!(api.apply(&path, "m", nameless.clone()).await.code, 400);
    let yaml = "apiVersion: ex.test/v1\nkind: Foo\nmetadata: {name: a}\nspec: {n: 4}\n";
    let made = api
        .call(
            "PATCH",
            &format!("{path}?fieldManager=y"),
            "application/apply-patch+yaml",
            yaml,
        )
        .await
        .expect(201);
    assert_eq!(made["spec"]["n"], 4);
    api.apply(&path, "m", nameless).await.expect(200);
}

#[tokio::test]
async fn replacing_what_is_missing_adds_it() {
    let api = with_foos().await;
    api.post(FOOS, foo("a", json!({"n": 1}))).await.expect(201);
    let path = format!("{FOOS}/a");
    let replace = |path: &str| json!([{"op": "replace", "path": path, "value": "red"}]);
    let v = api.json_patch(&path, replace("/spec/color")).await;
    assert_eq!(v.expect(200)["spec"]["color"], "red");
    let nowhere = api.json_patch(&path, replace("/spec/free/deep")).await;
    assert_eq!((nowhere.code, nowhere.reason()), (422, "Invalid"));
}

#[tokio::test]
async fn a_strict_patch_fails_as_a_patch() {
    let api = with_foos().await;
    api.post(FOOS, foo("a", json!({"n": 1}))).await.expect(201);
    let strict = format!("{FOOS}/a?fieldValidation=Strict");
    let refused = api.merge(&strict, json!({"spec": {"odd": 1}})).await;
    assert_eq!((refused.code, refused.reason()), (422, "Invalid"));
    assert_eq!(refused.body["details"]["causes"][0]["field"], "patch");
}

#[tokio::test]
async fn apply_to_status_touches_status_only() {
    let api = with_foos().await;
    let path = format!("{FOOS}/a");
    api.apply(&path, "spec", foo("a", json!({"n": 1})))
        .await
        .expect(201);
    let mut body = foo("a", json!({"n": 9}));
    body["status"] = json!({"phase": "ok"});
    let v = api
        .apply(&format!("{path}/status"), "stat", body.clone())
        .await
        .expect(200);
    assert_eq!(
        (&v["spec"]["n"], &v["status"]["phase"]),
        (&json!(1), &json!("ok"))
    );
    assert_eq!(v["metadata"]["generation"], 1);
    let again = api
        .apply(&format!("{path}/status"), "stat", body)
        .await
        .expect(200);
    assert_eq!(again, v);
    // Applying the main endpoint again must not take the status away.
    let v = api
        .apply(&path, "spec", foo("a", json!({"n": 2})))
        .await
        .expect(200);
    assert_eq!(v["status"]["phase"], "ok");
}

#[tokio::test]
async fn every_write_records_its_manager() {
    let api = with_foos().await;
    let made = api.post(FOOS, foo("a", json!({"n": 1}))).await.expect(201);
    let entry = &made["metadata"]["managedFields"][0];
    // The user agent up to its slash.
    assert_eq!(
        (&entry["manager"], &entry["operation"]),
        (&json!("it"), &json!("Update"))
    );
    let path = format!("{FOOS}/a");
    let v = api
        .merge(
            &format!("{path}?fieldManager=m2"),
            json!({"spec": {"color": "x"}}),
        )
        .await
        .expect(200);
    let managers: Vec<_> = v["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["manager"].as_str().unwrap())
        .collect();
    assert!(
        managers.contains(&"it") && managers.contains(&"m2"),
        "{managers:?}"
    );
    let reset = api
        .json_patch(
            &path,
            json!([{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]),
        )
        .await
        .expect(200);
    assert_eq!(reset["metadata"].get("managedFields"), None);
}

#[tokio::test]
async fn duplicate_keys_of_a_live_list_do_not_block_applies() {
    let api = Api::start().await;
    // The list is keyed only later, when it already holds duplicates.
    let atomic = foo_crd(|v| {
        let items =
            &mut v["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["items"];
        let items = items.as_object_mut().unwrap();
        items.remove("x-kubernetes-list-type");
        items.remove("x-kubernetes-list-map-keys");
    });
    api.post(CRDS, atomic).await.expect(201);
    let path = format!("{FOOS}/a");
    let items = json!([{"name": "a", "v": "1"}, {"name": "a", "v": "2"}]);
    api.post(FOOS, foo("a", json!({"items": items})))
        .await
        .expect(201);
    let keyed = json!({"spec": foo_crd(|_| {})["spec"]});
    api.merge(&format!("{CRDS}/foos.ex.test"), keyed)
        .await
        .expect(200);
    let v = api
        .apply(&path, "m", foo("a", json!({"color": "red"})))
        .await
        .expect(200);
    assert_eq!(v["spec"]["items"], items);
    assert_eq!(v["metadata"]["managedFields"].as_array().unwrap().len(), 2);
    let twice = foo("a", json!({"items": [{"name": "x"}, {"name": "x"}]}));
    assert_eq!(api.apply(&path, "m", twice).await.code, 422);
}

#[tokio::test]
async fn unknown_fields_are_not_owned() {
    let api = with_foos().await;
    let path = format!("{FOOS}/a");
    let answer = api
        .apply(&path, "m", foo("a", json!({"n": 1, "odd": 2})))
        .await;
    assert_eq!(
        answer.headers["warning"],
        r#"299 - "unknown field \"spec.odd\"""#
    );
    let fields = answer.expect(201)["metadata"]["managedFields"][0]["fieldsV1"].clone();
    assert_eq!(fields, json!({"f:spec": {"f:n": {}}}));
    let strict = api
        .apply(
            &format!("{path}?fieldValidation=Strict"),
            "m",
            foo("a", json!({"odd": 2})),
        )
        .await;
    assert_eq!(strict.code, 400);
    let merge = "application/merge-patch+json";
    let twice = api
        .call("PATCH", &path, merge, r#"{"spec":{"n":1,"n":2}}"#)
        .await;
    assert_eq!(
        twice.headers["warning"],
        r#"299 - "duplicate field \"spec.n\"""#
    );
}

#[tokio::test]
async fn a_patch_cannot_take_name_or_namespace_away() {
    let api = with_foos().await;
    api.post(FOOS, foo("a", json!({"n": 1}))).await.expect(201);
    let nameless = json!({"metadata": {"name": null}});
    assert_eq!(api.merge(&format!("{FOOS}/a"), nameless).await.code, 400);
    let moved = json!({"metadata": {"namespace": "other"}});
    assert_eq!(api.merge(&format!("{FOOS}/a"), moved).await.code, 400);
    let patch = json!({"metadata": {"namespace": null, "uid": null}, "spec": {"n": 2}});
    let v = api.merge(&format!("{FOOS}/a"), patch).await.expect(200);
    assert_eq!(
        (&v["metadata"]["name"], &v["metadata"]["namespace"]),
        (&json!("a"), &json!("default"))
    );
    assert!(v["metadata"]["uid"].is_string());
}

#[tokio::test]
async fn writes_that_repeat_themselves_make_no_event() {
    let api = with_foos().await;
    api.post(FOOS, foo("a", json!({"n": 1}))).await.expect(201);
    let path = format!("{FOOS}/a");
    let status = json!({"status": {"phase": "x"}});
    let first = api
        .merge(&format!("{path}/status"), status.clone())
        .await
        .expect(200);
    let mut watch = api
        .watch(&format!("{FOOS}?watch=true&resourceVersion={}", rv(&first)))
        .await;
    let second = api
        .merge(&format!("{path}/status"), status)
        .await
        .expect(200);
    assert_eq!(second, first);
    let applied = api
        .apply(&path, "m", foo("a", json!({"color": "red"})))
        .await
        .expect(200);
    let again = api
        .apply(&path, "m", foo("a", json!({"color": "red"})))
        .await
        .expect(200);
    assert_eq!(again, applied);
    let last = api
        .merge(&path, json!({"spec": {"n": 2}}))
        .await
        .expect(200);
    assert_eq!(watch.event().await.2, rv(&applied));
    assert_eq!(watch.event().await.2, rv(&last));
}
