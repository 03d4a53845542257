//! LIST and GET.

use std::time::Duration;

use ecp_apiserver::Config;
use serde_json::{Value, json};

use crate::api::{Api, FOOS, MAPS, config_map, foo, rv, with_foos};

fn names(list: &Value) -> Vec<&str> {
    list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| i["metadata"]["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn pages_show_one_revision() {
    let api = Api::start().await;
    for name in ["a", "b", "c", "d", "e"] {
        api.post(MAPS, config_map(name)).await.expect(201);
    }
    let first = api.get(&format!("{MAPS}?limit=2")).await.expect(200);
    assert_eq!(first["kind"], "ConfigMapList");
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    api.delete(&format!("{MAPS}/d")).await.expect(200);
    api.post(MAPS, config_map("cc")).await.expect(201);
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = api
        .get(&format!("{MAPS}?limit=2&continue={token}"))
        .await
        .expect(200);
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(rv(&second), rv(&first));
    let token = second["metadata"]["continue"].as_str().unwrap();
    let last = api
        .get(&format!("{MAPS}?limit=2&continue={token}"))
        .await
        .expect(200);
    assert_eq!(names(&last), ["e"]);
    assert_eq!(last["metadata"].get("continue"), None);
}

#[tokio::test]
async fn an_expired_token_offers_an_inconsistent_restart() {
    let api = Api::start().await;
    for name in ["a", "b", "c"] {
        api.post(MAPS, config_map(name)).await.expect(201);
    }
    let first = api.get(&format!("{MAPS}?limit=1")).await.expect(200);
    let token = first["metadata"]["continue"].as_str().unwrap().to_owned();
    api.post(MAPS, config_map("bb")).await.expect(201);
    let store = api.server.store();
    store.compact(store.revision()).await.unwrap();
    let expired = api.get(&format!("{MAPS}?limit=1&continue={token}")).await;
    assert_eq!((expired.code, expired.reason()), (410, "Expired"));
    let token = expired.body["metadata"]["continue"].as_str().unwrap();
    let rest = api
        .get(&format!("{MAPS}?continue={token}"))
        .await
        .expect(200);
    assert_eq!(names(&rest), ["b", "bb", "c"]);
    let old = api
        .get(&format!(
            "{MAPS}?resourceVersion=1&resourceVersionMatch=Exact"
        ))
        .await;
    assert_eq!((old.code, old.reason()), (410, "Expired"));
}

#[tokio::test]
async fn bad_tokens_and_parameters_are_refused() {
    let api = Api::start().await;
    for (query, code) in [
        ("continue=%00", 400),
        ("continue=e30", 400),
        ("limit=-1", 200),
        ("limit=x", 400),
        ("sendInitialEvents=true", 422),
        ("labelSelector=a%20b", 400),
        ("fieldSelector=spec.nope%3D1", 400),
        ("resourceVersionMatch=Exact", 422),
        ("resourceVersion=abc", 400),
    ] {
        assert_eq!(
            api.get(&format!("{MAPS}?{query}")).await.code,
            code,
            "{query}"
        );
    }
}

#[tokio::test]
async fn a_future_version_times_out_with_its_cause() {
    let api = Api::with(Config {
        future_revision_wait: Duration::from_millis(10),
        ..Config::default()
    })
    .await;
    let answer = api.get(&format!("{MAPS}?resourceVersion=999999")).await;
    assert_eq!((answer.code, answer.reason()), (504, "Timeout"));
    assert_eq!(
        answer.body["details"]["causes"][0]["reason"],
        "ResourceVersionTooLarge"
    );
    assert_eq!(answer.body["details"]["retryAfterSeconds"], 1);
}

#[tokio::test]
async fn selectors_select_by_label_and_field() {
    let api = with_foos().await;
    for (name, env) in [("a", "prod"), ("b", "dev"), ("c", "prod")] {
        let mut body = foo(name, json!({}));
        body["metadata"]["labels"] = json!({"env": env});
        api.post(FOOS, body).await.expect(201);
    }
    let get = async |q: &str| api.get(&format!("{FOOS}?{q}")).await.expect(200);
    assert_eq!(names(&get("labelSelector=env%3Dprod").await), ["a", "c"]);
    assert_eq!(names(&get("labelSelector=env%20in%20(dev)").await), ["b"]);
    assert_eq!(names(&get("fieldSelector=metadata.name%3Db").await), ["b"]);
    assert_eq!(
        names(&get("fieldSelector=metadata.name!%3Db").await),
        ["a", "c"]
    );
    assert_eq!(
        names(&get("fieldSelector=metadata.name%3Db&labelSelector=env%3Dprod").await),
        [""; 0]
    );
    let paged = get("labelSelector=env%3Dprod&limit=1").await;
    assert_eq!(names(&paged), ["a"]);
    assert_eq!(paged["metadata"].get("remainingItemCount"), None);
    let token = paged["metadata"]["continue"].as_str().unwrap();
    let rest = get(&format!(
        "labelSelector=env%3Dprod&limit=1&continue={token}"
    ))
    .await;
    assert_eq!(names(&rest), ["c"]);
}

#[tokio::test]
async fn long_lists_are_whole() {
    let api = Api::start().await;
    for i in 0..200 {
        let mut body = config_map(&format!("m{i:03}"));
        body["data"] = json!({"x": "y".repeat(4000)});
        api.post(MAPS, body).await.expect(201);
    }
    let list = api.get(MAPS).await.expect(200);
    assert_eq!(list["items"].as_array().unwrap().len(), 200);
    let all = api.get("/api/v1/configmaps").await.expect(200);
    assert_eq!(all["items"], list["items"]);
}

#[tokio::test]
async fn unknown_paths_and_methods_get_a_status() {
    let api = Api::start().await;
    for (method, path, code) in [
        ("GET", "/apis/none.test/v1/things", 404),
        ("GET", "/nothing", 404),
        ("GET", "/api/v1/configmaps/a", 404),
        ("GET", "/api/v1/namespaces/default/namespaces", 404),
        ("GET", &format!("{MAPS}/nope"), 404),
        ("GET", &format!("{MAPS}/a/status"), 404),
        ("POST", &format!("{MAPS}/a"), 405),
        ("PUT", MAPS, 405),
        ("DELETE", "/api/v1/configmaps", 405),
        ("OPTIONS", MAPS, 405),
        ("POST", "/version", 405),
        (
            "GET",
            "/api/v1/namespaces/default/configmaps/..%2f..%2fx",
            400,
        ),
    ] {
        let answer = api.call(method, path, "application/json", "").await;
        assert_eq!(answer.code, code, "{method} {path} {:#}", answer.body);
        assert_eq!(answer.body["kind"], "Status");
    }
    assert_eq!(api.get("/readyz").await.code, 200);
    assert!(
        api.get("/version").await.body["gitVersion"]
            .as_str()
            .unwrap()
            .starts_with("v1.")
    );
}
