//! DELETE and finalizers.

use serde_json::json;

use crate::api::{Api, MAPS, config_map, rv};

#[tokio::test]
async fn an_object_without_finalizers_goes_at_once() {
    let api = Api::start().await;
    let made = api.post(MAPS, config_map("a")).await.expect(201);
    let path = format!("{MAPS}/a");
    let status = api.delete(&path).await.expect(200);
    assert_eq!(
        (&status["kind"], &status["status"]),
        (&json!("Status"), &json!("Success"))
    );
    assert_eq!(status["details"]["uid"], made["metadata"]["uid"]);
    assert_eq!(api.delete(&path).await.code, 404);
}

#[tokio::test]
async fn delete_waits_for_finalizers() {
    let api = Api::start().await;
    let mut body = config_map("a");
    body["metadata"]["finalizers"] = json!(["a.b/c"]);
    api.post(MAPS, body).await.expect(201);
    let path = format!("{MAPS}/a");
    let held = api.delete(&path).await.expect(200);
    assert!(held["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(held["metadata"]["deletionGracePeriodSeconds"], 0);
    let again = api.delete(&path).await.expect(200);
    assert_eq!(again, held);
    let added = api
        .merge(
            &path,
            json!({"metadata": {"finalizers": ["a.b/c", "x.y/z"]}}),
        )
        .await;
    assert_eq!((added.code, added.reason()), (422, "Invalid"));
    api.merge(&path, json!({"metadata": {"finalizers": null}}))
        .await
        .expect(200);
    assert_eq!(api.get(&path).await.code, 404);
}

#[tokio::test]
async fn options_come_from_query_or_body() {
    let api = Api::start().await;
    let made = api.post(MAPS, config_map("a")).await.expect(201);
    let path = format!("{MAPS}/a");
    let call = async |body: serde_json::Value| {
        api.call("DELETE", &path, "application/json", body.to_string())
            .await
    };
    let wrong = call(json!({"preconditions": {"uid": "other"}})).await;
    assert_eq!((wrong.code, wrong.reason()), (409, "Conflict"));
    assert_eq!(
        call(json!({"preconditions": {"resourceVersion": "1"}}))
            .await
            .code,
        409
    );
    assert_eq!(call(json!({"kind": "Pod"})).await.code, 400);
    let odd = call(json!({"propagationPolicy": "Odd"})).await;
    assert_eq!((odd.code, odd.reason()), (422, "Invalid"));
    assert_eq!(odd.body["details"]["kind"], "DeleteOptions");
    assert_eq!(
        odd.body["details"]["causes"][0]["reason"],
        "FieldValueNotSupported"
    );
    assert_eq!(call(json!({"dryRun": ["Some"]})).await.code, 422);
    call(json!({"dryRun": ["All"]})).await.expect(200);
    let held = api
        .delete(&format!("{path}?propagationPolicy=Foreground"))
        .await
        .expect(200);
    assert_eq!(
        held["metadata"]["finalizers"],
        json!(["foregroundDeletion"])
    );
    let held = call(
        json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan",
        "preconditions": {"uid": made["metadata"]["uid"]}}),
    )
    .await
    .expect(200);
    assert_eq!(held["metadata"]["finalizers"], json!(["orphan"]));
    call(json!({"propagationPolicy": "Background"}))
        .await
        .expect(200);
    assert_eq!(api.get(&path).await.code, 404);
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector() {
    let api = Api::start().await;
    for (name, env) in [("a", "x"), ("b", "y"), ("c", "x")] {
        let mut body = config_map(name);
        body["metadata"]["labels"] = json!({"env": env});
        api.post(MAPS, body).await.expect(201);
    }
    api.delete(&format!("{MAPS}?labelSelector=env%3Dx"))
        .await
        .expect(200);
    let left = api.get(MAPS).await.expect(200);
    assert_eq!(left["items"].as_array().unwrap().len(), 1);
    assert_eq!(left["items"][0]["metadata"]["name"], "b");
    api.delete(MAPS).await.expect(200);
    let left = api.get(MAPS).await.expect(200);
    assert_eq!(left["items"], json!([]));
    assert!(rv(&left) > 0);
}

#[tokio::test]
async fn a_namespace_goes_when_it_is_finalized() {
    let api = Api::start().await;
    let ns = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "t"}});
    api.post("/api/v1/namespaces", ns).await.expect(201);
    let held = api.delete("/api/v1/namespaces/t").await.expect(200);
    let mut done = held.clone();
    done["spec"]["finalizers"] = json!([]);
    // The main endpoint cannot finalize.
    let kept = api
        .put("/api/v1/namespaces/t", done.clone())
        .await
        .expect(200);
    assert_eq!(kept["spec"]["finalizers"], json!(["kubernetes"]));
    api.put("/api/v1/namespaces/t/finalize", done)
        .await
        .expect(200);
    assert_eq!(api.get("/api/v1/namespaces/t").await.code, 404);
}
