//! CustomResourceDefinitions and their objects.

use ecp_apiserver::Config;
use serde_json::{Value, json};

use crate::api::{Api, CRDS, FOOS, foo, foo_crd, rv, with_foos};

fn condition<'a>(crd: &'a Value, kind: &str) -> &'a str {
    crd["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c["type"] == kind)
        .map_or("", |c| c["status"].as_str().unwrap())
}

#[tokio::test]
async fn a_definition_is_established_and_served_by_its_own_write() {
    let api = Api::start().await;
    assert_eq!(api.get(FOOS).await.code, 404);
    let crd = api.post(CRDS, foo_crd(|_| {})).await.expect(201);
    assert_eq!(
        (
            condition(&crd, "Established"),
            condition(&crd, "NamesAccepted")
        ),
        ("True", "True")
    );
    assert_eq!(crd["status"]["acceptedNames"]["listKind"], "FooList");
    assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(crd["spec"]["conversion"]["strategy"], "None");
    assert_eq!(api.get(FOOS).await.expect(200)["kind"], "FooList");
}

#[tokio::test]
async fn objects_are_pruned_defaulted_and_validated() {
    let api = with_foos().await;
    let made = api
        .post(FOOS, foo("a", json!({"odd": 1, "free": {"kept": true}})))
        .await
        .expect(201);
    assert_eq!(
        made["spec"],
        json!({"size": "small", "free": {"kept": true}})
    );
    let bad = api.post(FOOS, foo("b", json!({"n": "x"}))).await;
    assert_eq!((bad.code, bad.reason()), (422, "Invalid"));
    assert_eq!(bad.body["details"]["causes"][0]["field"], "spec.n");
    assert_eq!(bad.body["details"]["kind"], "Foo");
}

#[tokio::test]
async fn stored_objects_get_the_defaults_of_a_new_schema() {
    let api = with_foos().await;
    api.post(FOOS, foo("a", json!({}))).await.expect(201);
    let crd = foo_crd(|v| {
        v["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["flavour"] =
            json!({"type": "string", "default": "plain"});
    });
    api.merge(
        &format!("{CRDS}/foos.ex.test"),
        json!({"spec": crd["spec"]}),
    )
    .await
    .expect(200);
    let read = api.get(&format!("{FOOS}/a")).await.expect(200);
    assert_eq!(read["spec"]["flavour"], "plain");
    let list = api.get(FOOS).await.expect(200);
    assert_eq!(list["items"][0], read);
}

#[tokio::test]
async fn every_served_version_shows_the_same_object() {
    let api = Api::start().await;
    let mut crd = foo_crd(|_| {});
    let mut second = crd["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    second["storage"] = false.into();
    second["deprecated"] = true.into();
    crd["spec"]["versions"].as_array_mut().unwrap().push(second);
    api.post(CRDS, crd).await.expect(201);
    let made = api.post(FOOS, foo("a", json!({"n": 1}))).await.expect(201);
    let path = "/apis/ex.test/v2/namespaces/default/foos";
    let answer = api.get(&format!("{path}/a")).await;
    assert!(
        answer.headers["warning"]
            .to_str()
            .unwrap()
            .contains("deprecated")
    );
    let read = answer.expect(200);
    assert_eq!(read["apiVersion"], "ex.test/v2");
    assert_eq!(
        (&read["spec"], &read["metadata"]["uid"]),
        (&made["spec"], &made["metadata"]["uid"])
    );
    let mut change = read.clone();
    change["spec"]["n"] = 2.into();
    api.put(&format!("{path}/a"), change).await.expect(200);
    let read = api.get(&format!("{FOOS}/a")).await.expect(200);
    assert_eq!(
        (&read["apiVersion"], &read["spec"]["n"]),
        (&json!("ex.test/v1"), &json!(2))
    );
    assert_eq!(
        api.get(path).await.expect(200)["items"][0]["apiVersion"],
        "ex.test/v2"
    );
}

#[tokio::test]
async fn objects_survive_a_change_of_the_storage_version() {
    let api = with_foos().await;
    let made = api.post(FOOS, foo("a", json!({"n": 1}))).await.expect(201);
    let mut crd = foo_crd(|_| {});
    let mut second = crd["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    crd["spec"]["versions"][0]["storage"] = false.into();
    crd["spec"]["versions"].as_array_mut().unwrap().push(second);
    let path = format!("{CRDS}/foos.ex.test");
    let crd = api
        .merge(&path, json!({"spec": crd["spec"]}))
        .await
        .expect(200);
    assert_eq!(crd["status"]["storedVersions"], json!(["v1", "v2"]));
    let second = "/apis/ex.test/v2/namespaces/default/foos";
    let read = api.get(&format!("{second}/a")).await.expect(200);
    assert_eq!(read["apiVersion"], "ex.test/v2");
    assert_eq!(api.get(&format!("{FOOS}/a")).await.expect(200), made);
    // A write that changes nothing brings it to the new version.
    let touched = api.merge(&format!("{FOOS}/a"), json!({})).await.expect(200);
    assert_eq!(touched["apiVersion"], "ex.test/v1");
    assert_eq!(touched["spec"], made["spec"]);
    let dropped = json!({"status": {"storedVersions": ["v2"]}});
    let crd = api
        .merge(&format!("{path}/status"), dropped)
        .await
        .expect(200);
    assert_eq!(crd["status"]["storedVersions"], json!(["v2"]));
    assert_eq!(
        api.get(second).await.expect(200)["items"][0]["apiVersion"],
        "ex.test/v2"
    );
}

#[tokio::test]
async fn a_definition_goes_after_its_objects_and_comes_back_empty() {
    let api = with_foos().await;
    api.post(FOOS, foo("a", json!({}))).await.expect(201);
    let crd = format!("{CRDS}/foos.ex.test");
    let held = api.delete(&crd).await.expect(200);
    assert_eq!(condition(&held, "Terminating"), "True");
    api.until(&crd, 404).await;
    assert_eq!(api.get(FOOS).await.code, 404);
    api.post(CRDS, foo_crd(|_| {})).await.expect(201);
    assert_eq!(api.get(FOOS).await.expect(200)["items"], json!([]));
}

#[tokio::test]
async fn finalizers_of_objects_hold_their_definition() {
    let api = with_foos().await;
    let mut body = foo("a", json!({}));
    body["metadata"]["finalizers"] = json!(["ex.test/f"]);
    api.post(FOOS, body).await.expect(201);
    let crd = format!("{CRDS}/foos.ex.test");
    api.delete(&crd).await.expect(200);
    let refused = api.post(FOOS, foo("b", json!({}))).await;
    assert_eq!((refused.code, refused.reason()), (403, "Forbidden"));
    let path = format!("{FOOS}/a");
    // The deletion of the objects is under way in the background.
    let wait = async {
        while !api.get(&path).await.expect(200)["metadata"]["deletionTimestamp"].is_string() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::api::DEADLINE, wait)
        .await
        .unwrap();
    api.get(&crd).await.expect(200);
    api.merge(&path, json!({"metadata": {"finalizers": null}}))
        .await
        .expect(200);
    api.until(&crd, 404).await;
}

#[tokio::test]
async fn a_name_conflict_ends_when_the_winner_goes() {
    let api = with_foos().await;
    let mut other = foo_crd(|_| {});
    other["metadata"]["name"] = "bars.ex.test".into();
    other["spec"]["names"] = json!({"plural": "bars", "kind": "Foo"});
    let bars = api.post(CRDS, other).await.expect(201);
    assert_eq!(
        (
            condition(&bars, "NamesAccepted"),
            condition(&bars, "Established")
        ),
        ("False", "False")
    );
    let path = "/apis/ex.test/v1/namespaces/default/bars";
    assert_eq!(api.get(path).await.code, 404);
    api.delete(&format!("{CRDS}/foos.ex.test"))
        .await
        .expect(200);
    api.until(path, 200).await;
    let bars = api.get(&format!("{CRDS}/bars.ex.test")).await.expect(200);
    assert_eq!(condition(&bars, "NamesAccepted"), "True");
}

#[tokio::test]
async fn a_name_that_several_wait_for_goes_to_one_of_them() {
    let api = with_foos().await;
    for plural in ["bars", "bazs"] {
        let mut other = foo_crd(|_| {});
        other["metadata"]["name"] = format!("{plural}.ex.test").into();
        other["spec"]["names"] = json!({"plural": plural, "kind": "Foo"});
        let made = api.post(CRDS, other).await.expect(201);
        assert_eq!(condition(&made, "NamesAccepted"), "False");
    }
    api.delete(&format!("{CRDS}/foos.ex.test"))
        .await
        .expect(200);
    let path = |plural: &str| format!("/apis/ex.test/v1/namespaces/default/{plural}");
    api.until(&path("bars"), 200).await;
    // The next definition is decided on after the ones that waited.
    let mut last = foo_crd(|_| {});
    last["metadata"]["name"] = "lasts.ex.test".into();
    last["spec"]["names"] = json!({"plural": "lasts", "kind": "Foo"});
    let last = api.post(CRDS, last).await.expect(201);
    assert_eq!(condition(&last, "NamesAccepted"), "False");
    let bazs = api.get(&format!("{CRDS}/bazs.ex.test")).await.expect(200);
    assert_eq!(condition(&bazs, "NamesAccepted"), "False");
    assert_eq!(api.get(&path("bazs")).await.code, 404);
}

#[tokio::test]
async fn bad_definitions_are_refused() {
    let api = Api::start().await;
    let bad = api.post(CRDS, foo_crd(|v| v["schema"] = json!({}))).await;
    assert_eq!((bad.code, bad.reason()), (422, "Invalid"));
    let bad = api
        .post(
            CRDS,
            foo_crd(|v| {
                v["schema"]["openAPIV3Schema"]["properties"]["spec"] = json!({"properties": {}});
            }),
        )
        .await;
    assert_eq!(bad.code, 422);
    let mut protected = foo_crd(|_| {});
    protected["metadata"]["name"] = "foos.ex.k8s.io".into();
    protected["spec"]["group"] = "ex.k8s.io".into();
    assert_eq!(api.post(CRDS, protected.clone()).await.code, 422);
    protected["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "unapproved"});
    api.post(CRDS, protected).await.expect(201);
    api.post(CRDS, foo_crd(|_| {})).await.expect(201);
    let immutable = api
        .merge(
            &format!("{CRDS}/foos.ex.test"),
            json!({"spec": {"scope": "Cluster"}}),
        )
        .await;
    assert_eq!(immutable.code, 422);
}

#[tokio::test]
async fn scale_reads_and_writes_replicas() {
    let api = Api::start().await;
    api.post(
        CRDS,
        foo_crd(|v| {
            v["subresources"]["scale"] =
                json!({"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"});
        }),
    )
    .await
    .expect(201);
    api.post(FOOS, foo("a", json!({"n": 2}))).await.expect(201);
    let path = format!("{FOOS}/a/scale");
    let mut scale = api.get(&path).await.expect(200);
    assert_eq!(
        (&scale["kind"], &scale["spec"]["replicas"]),
        (&json!("Scale"), &json!(2))
    );
    scale["spec"]["replicas"] = 5.into();
    assert_eq!(
        api.put(&path, scale.clone()).await.expect(200)["spec"]["replicas"],
        5
    );
    assert_eq!(api.put(&path, scale).await.code, 409);
    api.merge(&path, json!({"spec": {"replicas": 7}}))
        .await
        .expect(200);
    assert_eq!(
        api.merge(&path, json!({"spec": {"replicas": -1}}))
            .await
            .code,
        422
    );
    assert_eq!(
        api.get(&format!("{FOOS}/a")).await.expect(200)["spec"]["n"],
        7
    );
}

#[tokio::test]
async fn selectable_fields_select() {
    let api = Api::start().await;
    api.post(
        CRDS,
        foo_crd(|v| v["selectableFields"] = json!([{"jsonPath": ".spec.color"}])),
    )
    .await
    .expect(201);
    api.post(FOOS, foo("a", json!({"color": "red"})))
        .await
        .expect(201);
    api.post(FOOS, foo("b", json!({"color": "blue"})))
        .await
        .expect(201);
    let list = api
        .get(&format!("{FOOS}?fieldSelector=spec.color%3Dred"))
        .await
        .expect(200);
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert_eq!(
        api.get(&format!("{FOOS}?fieldSelector=spec.n%3D1"))
            .await
            .code,
        400
    );
}

#[tokio::test]
async fn all_clusters_are_listed_and_watched_at_once() {
    let api = Api::start().await;
    let (a, b) = (api.cluster("ws-a"), api.cluster("ws-b"));
    let all = api.cluster("*");
    let foos = "/apis/ex.test/v1/foos";
    assert_eq!(all.get(foos).await.code, 404);
    b.post(CRDS, foo_crd(|_| {})).await.expect(201);
    assert_eq!(all.get(foos).await.expect(200)["items"], json!([]));
    // The same name with another schema.
    let other = foo_crd(|v| {
        v["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] =
            json!({"other": {"type": "string", "default": "x"}});
    });
    a.post(CRDS, other).await.expect(201);
    let mut watch = all.watch(&format!("{foos}?watch=true")).await;
    a.post(FOOS, foo("one", json!({}))).await.expect(201);
    b.post(FOOS, foo("one", json!({"n": 1}))).await.expect(201);
    let list = all.get(foos).await.expect(200);
    let seen: Vec<_> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| {
            (
                i["metadata"]["annotations"]["kcp.io/cluster"]
                    .as_str()
                    .unwrap(),
                i["spec"].clone(),
            )
        })
        .collect();
    let wanted = [
        ("ws-a", json!({"other": "x"})),
        ("ws-b", json!({"n": 1, "size": "small"})),
    ];
    assert_eq!(seen, wanted);
    let first = watch.next().await.unwrap();
    assert_eq!(
        first["object"]["metadata"]["annotations"]["kcp.io/cluster"],
        "ws-a"
    );
    a.delete(&format!("{FOOS}/one")).await.expect(200);
    watch.next().await.unwrap();
    let gone = watch.next().await.unwrap();
    assert_eq!(gone["type"], "DELETED");
    assert_eq!(
        gone["object"]["metadata"]["annotations"]["kcp.io/cluster"],
        "ws-a"
    );
    assert_eq!(all.post(FOOS, foo("x", json!({}))).await.code, 405);
    let user = api.user("somebody").cluster("*");
    assert_eq!(user.get(foos).await.code, 403);
}

#[tokio::test]
async fn what_an_earlier_definition_left_does_not_come_back() {
    let api = with_foos().await;
    let made = api.post(FOOS, foo("a", json!({}))).await.expect(201);
    let store = std::sync::Arc::clone(api.server.store());
    let key = "/ex.test/foos/root/default/a";
    let left = store.get(key).await.unwrap().unwrap();
    let crd = format!("{CRDS}/foos.ex.test");
    api.delete(&crd).await.expect(200);
    api.until(&crd, 404).await;
    // As if a create had been under way while the definition went.
    let op = ecp_store::Op::Put {
        key: key.into(),
        value: left.value,
        expect: ecp_store::Expect::Absent,
    };
    store.commit(vec![op]).await.unwrap();
    api.post(CRDS, foo_crd(|_| {})).await.expect(201);
    assert_eq!(api.get(FOOS).await.expect(200)["items"], json!([]));
    let again = api.post(FOOS, foo("a", json!({}))).await.expect(201);
    assert_ne!(again["metadata"]["uid"], made["metadata"]["uid"]);
}

#[tokio::test]
async fn definitions_are_served_after_a_restart() {
    let store = std::sync::Arc::new(ecp_store::MemoryStore::new());
    let api = Api::on(store.clone()).await;
    api.post(CRDS, foo_crd(|_| {})).await.expect(201);
    api.post(FOOS, foo("a", json!({"n": 1}))).await.expect(201);
    api.server.shutdown().await;
    let api = Api::on(store).await;
    assert_eq!(
        api.get(&format!("{FOOS}/a")).await.expect(200)["spec"]["n"],
        1
    );
}

#[tokio::test]
async fn an_interrupted_deletion_goes_on_after_a_restart() {
    let store = std::sync::Arc::new(ecp_store::MemoryStore::new());
    let api = Api::on(store.clone()).await;
    api.post(CRDS, foo_crd(|_| {})).await.expect(201);
    let mut body = foo("a", json!({}));
    body["metadata"]["finalizers"] = json!(["ex.test/f"]);
    api.post(FOOS, body).await.expect(201);
    let crd = format!("{CRDS}/foos.ex.test");
    api.delete(&crd).await.expect(200);
    api.server.shutdown().await;
    let api = Api::on(store).await;
    api.merge(
        &format!("{FOOS}/a"),
        json!({"metadata": {"finalizers": null}}),
    )
    .await
    .expect(200);
    api.until(&crd, 404).await;
}

#[tokio::test]
async fn everything_is_there_after_a_restart_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let open =
        || std::sync::Arc::new(ecp_store::EmbeddedStore::open(&dir.path().join("db")).unwrap());
    let store = open();
    let api = Api::of(store.clone(), Config::default()).await;
    api.post(CRDS, foo_crd(|_| {})).await.expect(201);
    let made = api.post(FOOS, foo("a", json!({"n": 1}))).await.expect(201);
    api.server.shutdown().await;
    ecp_store::Store::close(&*store).await;
    drop((api, store));
    let api = Api::of(open(), Config::default()).await;
    assert_eq!(api.get(&format!("{FOOS}/a")).await.expect(200), made);
    let changed = api
        .merge(&format!("{FOOS}/a"), json!({"spec": {"n": 2}}))
        .await
        .expect(200);
    // Versions never go back.
    assert!(rv(&changed) > rv(&made));
    // What happened before the restart is not replayed: clients list again.
    let mut watch = api
        .watch(&format!("{FOOS}?watch=true&resourceVersion=1"))
        .await;
    assert_eq!(watch.next().await.unwrap()["object"]["reason"], "Expired");
}
