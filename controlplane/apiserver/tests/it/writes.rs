//! CREATE and UPDATE.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use ecp_apiserver::{Config, Identity};
use http::Request;
use http_body::Frame;
use http_body_util::StreamBody;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::api::{Api, CRDS, FOOS, MAPS, config_map, foo, foo_crd, rv, with_foos};

#[tokio::test]
async fn an_object_is_created_read_and_replaced() {
    let api = Api::start().await;
    let mut body = config_map("a");
    body["data"] = json!({"k": "v"});
    let made = api.post(MAPS, body.clone()).await.expect(201);
    assert_eq!(made["metadata"]["namespace"], "default");
    assert!(made["metadata"]["uid"].as_str().unwrap().len() == 36);
    assert!(
        made["metadata"]["creationTimestamp"]
            .as_str()
            .unwrap()
            .ends_with('Z')
    );
    let path = format!("{MAPS}/a");
    assert_eq!(api.get(&path).await.expect(200), made);
    let again = api.post(MAPS, body.clone()).await;
    assert_eq!((again.code, again.reason()), (409, "AlreadyExists"));
    let mut changed = made.clone();
    changed["data"]["k"] = "w".into();
    let replaced = api.put(&path, changed.clone()).await.expect(200);
    assert!(rv(&replaced) > rv(&made));
    let stale = api.put(&path, changed).await;
    assert_eq!((stale.code, stale.reason()), (409, "Conflict"));
    // Without a version the write is unconditional.
    api.put(&path, body).await.expect(200);
}

#[tokio::test]
async fn a_write_that_changes_nothing_keeps_the_version() {
    let api = with_foos().await;
    let made = api.post(FOOS, foo("a", json!({"n": 1}))).await.expect(201);
    let path = format!("{FOOS}/a");
    let before = api.server.store().revision();
    let same = api.put(&path, made.clone()).await.expect(200);
    assert_eq!(same, made);
    api.merge(&path, json!({})).await.expect(200);
    api.merge(&path, json!({"spec": {"n": 1}}))
        .await
        .expect(200);
    assert_eq!(api.server.store().revision(), before);
}

#[tokio::test]
async fn the_generation_counts_changes_of_intent_only() {
    let api = with_foos().await;
    let path = format!("{FOOS}/a");
    let generation = |v: &Value| v["metadata"]["generation"].as_i64().unwrap();
    let mut body = foo("a", json!({"n": 1}));
    body["metadata"]["generation"] = 7.into();
    let made = api.post(FOOS, body).await.expect(201);
    assert_eq!(generation(&made), 1);
    let v = api
        .merge(
            &path,
            json!({"metadata": {"labels": {"a": "b"}, "generation": 9}}),
        )
        .await;
    assert_eq!(generation(&v.expect(200)), 1);
    let status = format!("{path}/status");
    let v = api
        .merge(&status, json!({"status": {"phase": "x"}}))
        .await
        .expect(200);
    assert_eq!((generation(&v), &v["status"]["phase"]), (1, &json!("x")));
    let v = api
        .merge(&path, json!({"status": {"phase": "y"}}))
        .await
        .expect(200);
    assert_eq!((generation(&v), &v["status"]["phase"]), (1, &json!("x")));
    let v = api
        .merge(&path, json!({"spec": {"n": 2}}))
        .await
        .expect(200);
    assert_eq!(generation(&v), 2);
    let v = api
        .merge(&path, json!({"data": {"k": "v"}}))
        .await
        .expect(200);
    assert_eq!(generation(&v), 3);
    let v = api
        .merge(&status, json!({"spec": {"n": 5}}))
        .await
        .expect(200);
    assert_eq!((generation(&v), &v["spec"]["n"]), (3, &json!(2)));
}

#[tokio::test]
async fn without_status_subresource_status_is_intent_too() {
    let api = Api::start().await;
    let crd = foo_crd(|v| {
        v.as_object_mut().unwrap().remove("subresources");
    });
    api.post(CRDS, crd).await.expect(201);
    let mut body = foo("a", json!({}));
    body["status"] = json!({"phase": "x"});
    let made = api.post(FOOS, body).await.expect(201);
    assert_eq!(made["status"]["phase"], "x");
    let path = format!("{FOOS}/a");
    let v = api
        .merge(&path, json!({"status": {"phase": "y"}}))
        .await
        .expect(200);
    assert_eq!(v["metadata"]["generation"], 2);
    assert_eq!(api.get(&format!("{path}/status")).await.code, 404);
}

#[tokio::test]
async fn custom_resources_need_a_version_to_be_replaced() {
    let api = with_foos().await;
    api.post(FOOS, foo("a", json!({}))).await.expect(201);
    let answer = api
        .put(&format!("{FOOS}/a"), foo("a", json!({"n": 1})))
        .await;
    assert_eq!((answer.code, answer.reason()), (422, "Invalid"));
    assert!(
        answer.body["message"]
            .as_str()
            .unwrap()
            .contains("must be specified for an update")
    );
}

#[tokio::test]
async fn names_are_generated_and_fit_a_label() {
    let api = Api::start().await;
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x".repeat(253)}});
    let made = api.post(MAPS, body.clone()).await.expect(201);
    let name = made["metadata"]["name"].as_str().unwrap();
    assert_eq!(name.len(), 63);
    let other = api.post(MAPS, body).await.expect(201);
    assert_ne!(other["metadata"]["name"], name);
}

#[tokio::test]
async fn a_generated_name_that_is_taken_every_time_is_a_conflict_to_retry() {
    let api = Api::with(Config {
        random: || 7,
        ..Config::default()
    })
    .await;
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}});
    api.post(MAPS, body.clone()).await.expect(201);
    let taken = api.post(MAPS, body).await;
    assert_eq!((taken.code, taken.reason()), (409, "AlreadyExists"));
    assert_eq!(taken.body["details"]["retryAfterSeconds"], 1);
}

#[tokio::test]
async fn creates_need_a_namespace_that_stays() {
    let api = Api::start().await;
    let missing = api
        .post("/api/v1/namespaces/nope/configmaps", config_map("a"))
        .await;
    assert_eq!((missing.code, missing.reason()), (404, "NotFound"));
    let ns = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "t", "finalizers": ["a.b/c"]}});
    let made = api.post("/api/v1/namespaces", ns).await.expect(201);
    assert_eq!(made["status"]["phase"], "Active");
    assert_eq!(
        made["metadata"]["labels"]["kubernetes.io/metadata.name"],
        "t"
    );
    let held = api.delete("/api/v1/namespaces/t").await.expect(200);
    assert_eq!(held["status"]["phase"], "Terminating");
    let refused = api
        .post("/api/v1/namespaces/t/configmaps", config_map("a"))
        .await;
    assert_eq!((refused.code, refused.reason()), (403, "Forbidden"));
    assert_eq!(
        refused.body["details"]["causes"][0]["reason"],
        "NamespaceTerminating"
    );
    let protected = api.delete("/api/v1/namespaces/default").await;
    assert_eq!(protected.code, 403);
}

#[tokio::test]
async fn dry_runs_store_nothing() {
    let api = with_foos().await;
    let before = api.server.store().revision();
    api.post(&format!("{FOOS}?dryRun=All"), foo("a", json!({})))
        .await
        .expect(201);
    assert_eq!(api.get(&format!("{FOOS}/a")).await.code, 404);
    let mut other = foo_crd(|_| {});
    other["metadata"]["name"] = "bars.ex.test".into();
    other["spec"]["names"] = json!({"plural": "bars", "kind": "Bar"});
    api.post(&format!("{CRDS}?dryRun=All"), other)
        .await
        .expect(201);
    assert_eq!(api.server.store().revision(), before);
    let made = api.post(FOOS, foo("b", json!({}))).await.expect(201);
    let patched = api
        .merge(&format!("{FOOS}/b?dryRun=All"), json!({"spec": {"n": 4}}))
        .await;
    assert_eq!(patched.expect(200)["spec"]["n"], 4);
    api.delete(&format!("{FOOS}/b?dryRun=All"))
        .await
        .expect(200);
    assert_eq!(api.get(&format!("{FOOS}/b")).await.expect(200), made);
    assert_eq!(
        api.post(&format!("{FOOS}?dryRun=Some"), foo("c", json!({})))
            .await
            .code,
        422
    );
}

#[tokio::test]
async fn unknown_and_duplicate_fields_warn_or_fail() {
    let api = with_foos().await;
    let text = r#"{"apiVersion":"ex.test/v1","kind":"Foo","metadata":{"name":"a"},
        "spec":{"n":1,"n":2,"odd":true}}"#;
    let warned = api.call("POST", FOOS, "application/json", text).await;
    let warnings: Vec<_> = warned
        .headers
        .get_all("warning")
        .iter()
        .map(|w| w.to_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        warnings,
        [
            r#"299 - "duplicate field \"spec.n\"""#,
            r#"299 - "unknown field \"spec.odd\"""#
        ]
    );
    let made = warned.expect(201);
    assert_eq!(made["spec"], json!({"n": 2, "size": "small"}));
    let strict = api
        .call(
            "POST",
            &format!("{FOOS}?fieldValidation=Strict"),
            "application/json",
            text,
        )
        .await;
    assert_eq!((strict.code, strict.reason()), (400, "BadRequest"));
    assert!(
        strict.body["message"].as_str().unwrap().contains(
            r#"strict decoding error: duplicate field "spec.n", unknown field "spec.odd""#
        )
    );
    let text = text.replace("\"a\"", "\"b\"");
    let quiet = api
        .call(
            "POST",
            &format!("{FOOS}?fieldValidation=Ignore"),
            "application/json",
            text,
        )
        .await;
    assert!(quiet.headers.get("warning").is_none());
    quiet.expect(201);
}

#[tokio::test]
async fn bodies_are_checked_before_anything_is_stored() {
    let api = with_foos().await;
    let before = api.server.store().revision();
    for (path, kind, body, code) in [
        (FOOS, "application/json", "{".to_owned(), 400),
        (FOOS, "application/json", "[]".to_owned(), 400),
        (FOOS, "application/json", foo("../x", json!({})).to_string(), 422),
        (FOOS, "application/json", foo(&"x".repeat(254), json!({})).to_string(), 422),
        (FOOS, "application/json", foo("a", json!({"n": "three"})).to_string(), 422),
        (FOOS, "application/json", json!({"metadata": {"name": "a"}}).to_string(), 400),
        (FOOS, "application/json", config_map("a").to_string(), 400),
        (FOOS, "application/vnd.kubernetes.protobuf", "k8s\0".to_owned(), 415),
        (FOOS, "application/cbor", "x".to_owned(), 415),
        (FOOS, "application/json", "x".repeat(4 * 1024 * 1024), 413),
        ("/apis/ex.test/v1/namespaces/other/foos", "application/json",
         json!({"apiVersion": "ex.test/v1", "kind": "Foo", "metadata": {"name": "a", "namespace": "default"}}).to_string(), 400),
    ] {
        let answer = api.call("POST", path, kind, body).await;
        assert_eq!(answer.code, code, "{kind} {:#}", answer.body);
        assert_eq!(answer.body["kind"], "Status");
    }
    assert_eq!(api.server.store().revision(), before);
}

#[tokio::test]
async fn yaml_bodies_are_read() {
    let api = Api::start().await;
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yam\ndata:\n  a: \"1\"\n";
    let made = api
        .call("POST", MAPS, "application/yaml", yaml)
        .await
        .expect(201);
    assert_eq!(made["data"]["a"], "1");
}

#[tokio::test]
async fn integers_of_custom_resources_keep_every_digit() {
    let api = with_foos().await;
    for (i, n) in ["1000000", "9007199254740993", "9223372036854775807"]
        .iter()
        .enumerate()
    {
        let body = format!(
            r#"{{"apiVersion":"ex.test/v1","kind":"Foo","metadata":{{"name":"n{i}"}},"spec":{{"n":{n},"free":{{"x":{n}}}}}}}"#
        );
        let made = api
            .call("POST", FOOS, "application/json", body)
            .await
            .expect(201);
        assert_eq!(made["spec"]["n"].to_string(), *n);
        let read = api.get(&format!("{FOOS}/n{i}")).await.expect(200);
        assert_eq!(read["spec"]["free"]["x"].to_string(), *n);
    }
}

#[tokio::test]
async fn secrets_fold_string_data_and_keep_their_type() {
    let api = Api::start().await;
    let path = "/api/v1/namespaces/default/secrets";
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        "data": {"a": "YQ=="}, "stringData": {"b": "b"}});
    let made = api.post(path, secret).await.expect(201);
    assert_eq!(made["data"], json!({"a": "YQ==", "b": "Yg=="}));
    assert_eq!(
        (&made["type"], made.get("stringData")),
        (&json!("Opaque"), None)
    );
    let answer = api
        .merge(&format!("{path}/s"), json!({"type": "other/x"}))
        .await;
    assert_eq!((answer.code, answer.reason()), (422, "Invalid"));
    api.merge(&format!("{path}/s"), json!({"immutable": true}))
        .await
        .expect(200);
    let answer = api
        .merge(&format!("{path}/s"), json!({"data": {"a": "Yg=="}}))
        .await;
    assert_eq!(answer.code, 422);
    let answer = api
        .merge(&format!("{path}/s"), json!({"immutable": null}))
        .await;
    assert_eq!(answer.code, 422);
    let bad = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}, "data": {"a": "?hush?"}});
    let answer = api.post(path, bad).await;
    assert_eq!(answer.code, 400);
    assert!(!answer.body.to_string().contains("hush"));
}

#[tokio::test]
async fn immutable_metadata_cannot_change() {
    let api = Api::start().await;
    api.post(MAPS, config_map("a")).await.expect(201);
    let path = format!("{MAPS}/a");
    let uid = api
        .merge(&path, json!({"metadata": {"uid": "other"}}))
        .await;
    assert_eq!((uid.code, uid.reason()), (422, "Invalid"));
    // Clients send the time of creation back in forms of their own.
    let time = json!({"metadata": {"creationTimestamp": "2001-01-01T00:00:00+00:00"}});
    let kept = api.merge(&path, time).await.expect(200);
    assert_eq!(kept, api.get(&path).await.expect(200));
    let time = json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}});
    assert_eq!(api.merge(&path, time).await.code, 422);
    let mut other = config_map("a");
    other["metadata"]["uid"] = "other".into();
    assert_eq!(api.put(&path, other).await.code, 409);
    let mut nameless = config_map("a");
    nameless["metadata"] = json!({});
    assert_eq!(api.put(&path, nameless).await.code, 400);
    let name = api.put(&path, config_map("b")).await;
    assert_eq!(name.code, 400);
}

#[tokio::test]
async fn logical_clusters_are_apart() {
    let api = Api::start().await;
    let (a, b) = (api.cluster("root:a"), api.cluster("root:b"));
    a.post(CRDS, foo_crd(|_| {})).await.expect(201);
    a.post(FOOS, foo("x", json!({}))).await.expect(201);
    a.post(MAPS, config_map("m")).await.expect(201);
    assert_eq!(b.get(FOOS).await.code, 404);
    assert_eq!(api.get(FOOS).await.code, 404);
    assert_eq!(b.get(&format!("{MAPS}/m")).await.code, 404);
    assert_eq!(b.get(MAPS).await.expect(200)["items"], json!([]));
    b.post(CRDS, foo_crd(|_| {})).await.expect(201);
    assert_eq!(b.get(FOOS).await.expect(200)["items"], json!([]));
    assert_eq!(api.cluster("A..").get(MAPS).await.code, 400);
    assert_eq!(api.cluster("root:..").get(MAPS).await.code, 400);
}

#[tokio::test]
async fn both_event_apis_show_one_event() {
    let api = Api::start().await;
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
        "regarding": {"kind": "Foo", "name": "x"}, "note": "hi", "reason": "R", "type": "Normal",
        "reportingController": "c", "reportingInstance": "i", "action": "A", "eventTime": "2026-01-01T00:00:00.000000Z"});
    let made = api
        .post("/apis/events.k8s.io/v1/namespaces/default/events", event)
        .await
        .expect(201);
    assert_eq!(made["note"], "hi");
    let core = api
        .get("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dx")
        .await
        .expect(200);
    assert_eq!(core["items"][0]["message"], "hi");
    assert_eq!(core["items"][0]["apiVersion"], "v1");
}

#[tokio::test]
async fn unknown_fields_of_built_ins_and_metadata_are_reported() {
    let api = Api::start().await;
    let mut body = config_map("a");
    body["odd"] = 1.into();
    body["metadata"]["labls"] = json!({});
    let answer = api
        .post(&format!("{MAPS}?fieldValidation=Strict"), body.clone())
        .await;
    assert_eq!(answer.code, 400);
    let message = answer.body["message"].as_str().unwrap();
    assert!(
        message.contains(r#"unknown field "metadata.labls", unknown field "odd""#),
        "{message}"
    );
    let made = api.post(MAPS, body).await.expect(201);
    assert_eq!(
        (made.get("odd"), made["metadata"].get("labls")),
        (None, None)
    );
    let mut body = config_map("b");
    body["data"] = json!({"k": 3});
    let wrong = api.post(MAPS, body).await;
    assert_eq!((wrong.code, wrong.reason()), (400, "BadRequest"));
    let mut body = config_map("b");
    body["metadata"]["labels"] = json!({"k": 3});
    assert_eq!(api.post(MAPS, body).await.code, 400);
    let mut body = config_map("c");
    body["data"] = json!(null);
    body["metadata"]["creationTimestamp"] = json!(null);
    api.post(MAPS, body).await.expect(201);
}

#[tokio::test]
async fn a_panic_costs_one_request() {
    let api = Api::with(Config {
        clock: || {
            static CALLS: AtomicUsize = AtomicUsize::new(0);
            assert!(CALLS.fetch_add(1, Ordering::Relaxed) != 2, "planted");
            "2026-01-01T00:00:00Z".parse().unwrap()
        },
        ..Config::default()
    })
    .await;
    // The two default namespaces took the first two times.
    let answer = api.post(MAPS, config_map("a")).await;
    assert_eq!((answer.code, answer.reason()), (500, "InternalError"));
    assert!(!answer.body.to_string().contains("planted"));
    api.post(MAPS, config_map("a")).await.expect(201);
}

#[tokio::test]
async fn more_than_the_limits_is_told_to_come_back() {
    let api = Api::with(Config {
        watches_max: 1,
        ..Config::default()
    })
    .await;
    let watch = api.watch(&format!("{MAPS}?watch=true")).await;
    let answer = api.get(&format!("{MAPS}?watch=true")).await;
    assert_eq!((answer.code, answer.reason()), (429, "TooManyRequests"));
    assert_eq!(answer.headers["retry-after"], "1");
    drop(watch);
    api.watch(&format!("{MAPS}?watch=true")).await;
}

#[tokio::test(start_paused = true)]
async fn a_review_whose_body_never_comes_is_given_up() {
    let api = Api::start().await;
    let (_open, body) = tokio::sync::mpsc::channel::<Result<Frame<Bytes>, Infallible>>(1);
    let body = StreamBody::new(tokio_stream::wrappers::ReceiverStream::new(body));
    let request = Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews").body(body);
    let service = api.server.service(Identity::admin());
    let answer = tokio::time::timeout(
        Config::default().request_timeout * 2,
        service.oneshot(request.unwrap()),
    );
    assert_eq!(answer.await.unwrap().unwrap().status(), 504);
}
