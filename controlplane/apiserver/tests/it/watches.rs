//! WATCH.

use std::time::Duration;

use ecp_apiserver::Config;
use serde_json::json;

use crate::api::{Api, CRDS, FOOS, MAPS, config_map, foo, foo_crd, rv, with_foos};

fn event(kind: &str, name: &str, rv: u64) -> (String, String, u64) {
    (kind.into(), name.into(), rv)
}

#[tokio::test]
async fn a_watch_shows_state_then_changes_in_order() {
    let api = Api::start().await;
    let a = rv(&api.post(MAPS, config_map("a")).await.expect(201));
    let mut watch = api.watch(&format!("{MAPS}?watch=true")).await;
    assert_eq!(watch.event().await, event("ADDED", "a", a));
    let b = rv(&api.post(MAPS, config_map("b")).await.expect(201));
    let a2 = rv(&api
        .merge(&format!("{MAPS}/a"), json!({"data": {"k": "v"}}))
        .await
        .expect(200));
    api.delete(&format!("{MAPS}/b")).await.expect(200);
    assert_eq!(watch.event().await, event("ADDED", "b", b));
    assert_eq!(watch.event().await, event("MODIFIED", "a", a2));
    // The last state, at the revision of the deletion.
    assert_eq!(watch.event().await, event("DELETED", "b", a2 + 1));
    let mut again = api
        .watch(&format!("{MAPS}?watch=true&resourceVersion={b}"))
        .await;
    assert_eq!(again.event().await, event("MODIFIED", "a", a2));
    assert_eq!(again.event().await, event("DELETED", "b", a2 + 1));
}

#[tokio::test]
async fn leaving_the_selection_deletes_and_entering_adds() {
    let api = Api::start().await;
    let mut body = config_map("a");
    body["metadata"]["labels"] = json!({"a": "b"});
    let made = rv(&api.post(MAPS, body).await.expect(201));
    let path = format!("{MAPS}?watch=true&labelSelector=a%3Db&resourceVersion={made}");
    let mut watch = api.watch(&path).await;
    let label = |v: serde_json::Value| json!({"metadata": {"labels": {"a": v}}});
    let left = rv(&api
        .merge(&format!("{MAPS}/a"), label("c".into()))
        .await
        .expect(200));
    let deleted = watch.next().await.unwrap();
    assert_eq!(deleted["type"], "DELETED");
    assert_eq!(deleted["object"]["metadata"]["labels"]["a"], "b");
    assert_eq!(rv(&deleted["object"]), left);
    let back = rv(&api
        .merge(&format!("{MAPS}/a"), label("b".into()))
        .await
        .expect(200));
    assert_eq!(watch.event().await, event("ADDED", "a", back));
}

#[tokio::test]
async fn the_initial_state_ends_with_a_marked_bookmark() {
    let api = Api::start().await;
    let a = rv(&api.post(MAPS, config_map("a")).await.expect(201));
    let list = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = api.watch(&format!("{MAPS}?{list}")).await;
    assert_eq!(watch.event().await, event("ADDED", "a", a));
    let end = watch.next().await.unwrap();
    assert_eq!(end["type"], "BOOKMARK");
    assert_eq!(end["object"]["kind"], "ConfigMap");
    assert_eq!(
        end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    assert!(rv(&end["object"]) >= a);
    // An empty collection has an end, too.
    let mut watch = api
        .watch(&format!("/api/v1/namespaces/default/secrets?{list}"))
        .await;
    assert_eq!(watch.next().await.unwrap()["type"], "BOOKMARK");
    let silent = api
        .get(&format!("{MAPS}?watch=true&sendInitialEvents=true"))
        .await;
    assert_eq!((silent.code, silent.reason()), (422, "Invalid"));
}

#[tokio::test]
async fn bookmarks_are_never_ahead_of_an_event() {
    let config = Config {
        bookmark_interval: Duration::from_millis(1),
        ..Config::default()
    };
    let api = Api::with(config).await;
    let mut watch = api
        .watch(&format!("{MAPS}?watch=true&allowWatchBookmarks=true"))
        .await;
    let writer = async {
        for i in 0..100 {
            api.post(MAPS, config_map(&format!("m{i}")))
                .await
                .expect(201);
            tokio::task::yield_now().await;
        }
    };
    let reader = async {
        let (mut bookmark, mut seen, mut after) = (0, 0, false);
        while seen < 100 || !after {
            let (kind, _, at) = watch.event().await;
            if kind == "BOOKMARK" {
                bookmark = at;
                after = seen == 100;
            } else {
                assert!(at > bookmark, "event {at} after bookmark {bookmark}");
                seen += 1;
            }
        }
    };
    tokio::join!(writer, reader);
}

#[tokio::test]
async fn a_watch_from_a_forgotten_revision_gets_one_error_event() {
    let api = Api::start().await;
    api.post(MAPS, config_map("a")).await.expect(201);
    api.post(MAPS, config_map("b")).await.expect(201);
    let store = api.server.store();
    store.compact(store.revision()).await.unwrap();
    let mut watch = api
        .watch(&format!("{MAPS}?watch=true&resourceVersion=1"))
        .await;
    let error = watch.next().await.unwrap();
    assert_eq!(error["type"], "ERROR");
    assert_eq!(
        (&error["object"]["code"], &error["object"]["reason"]),
        (&json!(410), &json!("Expired"))
    );
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn a_watch_ends_cleanly_at_its_timeout() {
    let api = Api::start().await;
    let mut watch = api
        .watch(&format!(
            "{MAPS}?watch=true&timeoutSeconds=1&resourceVersion=1"
        ))
        .await;
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn a_watch_ends_when_its_definition_goes_or_changes() {
    let api = with_foos().await;
    api.post(FOOS, foo("a", json!({}))).await.expect(201);
    let mut watch = api.watch(&format!("{FOOS}?watch=true")).await;
    assert_eq!(watch.event().await.0, "ADDED");
    api.merge(&format!("{CRDS}/foos.ex.test"), json!({"spec": foo_crd(|v| {
        v["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["new"] = json!({"type": "string"});
    })["spec"]})).await.expect(200);
    assert_eq!(watch.next().await, None);
    let mut watch = api.watch(&format!("{FOOS}?watch=true")).await;
    assert_eq!(watch.event().await.0, "ADDED");
    api.delete(&format!("{CRDS}/foos.ex.test"))
        .await
        .expect(200);
    while let Some(event) = watch.next().await {
        assert_eq!(event["type"], "DELETED");
    }
    assert_eq!(api.get(FOOS).await.code, 404);
}

#[tokio::test]
async fn shutdown_ends_watches() {
    let api = Api::start().await;
    let mut watch = api.watch(&format!("{MAPS}?watch=true")).await;
    api.server.shutdown().await;
    assert_eq!(watch.next().await, None);
}
