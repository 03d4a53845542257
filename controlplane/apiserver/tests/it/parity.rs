//! Rules found by comparing answers with those of a real kube-apiserver.

use serde_json::{Value, json};

use crate::api::{Api, CRDS, FOOS, MAPS, config_map, foo, foo_crd, with_foos};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const EVENTS: &str = "/api/v1/namespaces/default/events";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";

fn fields(status: &Value) -> Vec<&str> {
    status["details"]["causes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|cause| cause["field"].as_str())
        .collect()
}

fn lease(spec: Value) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"},
           "spec": spec})
}

fn event(name: &str, about: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name},
           "involvedObject": {"kind": "Foo", "name": "a", "namespace": about},
           "source": {"component": "c"}, "reason": "R", "type": "Normal"})
}

fn binding(role: &str) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
           "metadata": {"name": "b"}, "roleRef": {"kind": "Role", "name": role},
           "subjects": [{"kind": "User", "name": "u"}]})
}

#[tokio::test]
async fn a_put_creates_leases_events_and_bindings_only() {
    let api = Api::start().await;
    let path = format!("{LEASES}/l");
    let made = api.put(&path, lease(json!({"holderIdentity": "x"}))).await;
    let made = made.expect(201);
    // Leader election must say which version it replaces.
    let blind = api.put(&path, lease(json!({}))).await;
    assert_eq!((blind.code, blind.reason()), (422, "Invalid"));
    api.put(&path, made).await.expect(200);
    let mut old = lease(json!({}));
    old["metadata"] = json!({"name": "gone", "resourceVersion": "3"});
    assert_eq!(api.put(&format!("{LEASES}/gone"), old).await.code, 404);
    let e = event("e", "default");
    api.put(&format!("{EVENTS}/e"), e).await.expect(201);
    api.put(&format!("{BINDINGS}/b"), binding("r"))
        .await
        .expect(201);
    let map = api.put(&format!("{MAPS}/a"), config_map("a")).await;
    assert_eq!((map.code, map.reason()), (404, "NotFound"));
}

#[tokio::test]
async fn a_put_of_a_missing_custom_resource_is_not_found() {
    let api = with_foos().await;
    let path = format!("{FOOS}/a");
    assert_eq!(api.put(&path, foo("a", json!({}))).await.code, 404);
    api.post(FOOS, foo("a", json!({}))).await.expect(201);
    assert_eq!(api.put(&path, foo("a", json!({}))).await.code, 422);
}

#[tokio::test]
async fn small_kinds_are_checked() {
    let api = Api::start().await;
    let spec = json!({"leaseDurationSeconds": 0, "leaseTransitions": -1});
    let refused = api.post(LEASES, lease(spec)).await.expect(422);
    assert_eq!(
        fields(&refused),
        ["spec.leaseDurationSeconds", "spec.leaseTransitions"]
    );
    let refused = api.post(EVENTS, event("e", "other")).await.expect(422);
    assert_eq!(fields(&refused), ["involvedObject.namespace"]);
    let made = api.post(BINDINGS, binding("r")).await.expect(201);
    let group = &json!("rbac.authorization.k8s.io");
    assert_eq!(&made["roleRef"]["apiGroup"], group);
    assert_eq!(&made["subjects"][0]["apiGroup"], group);
    let other = json!({"roleRef": {"name": "other"}});
    let refused = api.merge(&format!("{BINDINGS}/b"), other).await.expect(422);
    assert_eq!(fields(&refused), ["roleRef"]);
    let mut odd = binding("");
    odd["roleRef"]["kind"] = "Odd".into();
    let refused = api.post(BINDINGS, odd).await.expect(422);
    assert_eq!(fields(&refused), ["roleRef.kind", "roleRef.name"]);
}

#[tokio::test]
async fn typed_secrets_must_hold_what_their_type_says() {
    let api = Api::start().await;
    for (kind, key, missing) in [
        ("kubernetes.io/tls", "tls.crt", vec!["data[tls.key]"]),
        (
            "kubernetes.io/basic-auth",
            "x",
            vec!["data[username]", "data[password]"],
        ),
        ("kubernetes.io/basic-auth", "username", vec![]),
        ("kubernetes.io/ssh-auth", "x", vec!["data[ssh-privatekey]"]),
        (
            "kubernetes.io/dockerconfigjson",
            "x",
            vec!["data[.dockerconfigjson]"],
        ),
        (
            "kubernetes.io/service-account-token",
            "x",
            vec!["metadata.annotations[kubernetes.io/service-account.name]"],
        ),
    ] {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": kind,
            "metadata": {"generateName": "s-"}, "data": {key: "aHVzaA=="}});
        let answer = api.post(SECRETS, secret).await;
        assert_eq!(answer.code, if missing.is_empty() { 201 } else { 422 });
        assert_eq!(fields(&answer.body), missing, "{kind}");
    }
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "type": "kubernetes.io/dockercfg", "metadata": {"name": "s"},
        "stringData": {".dockercfg": "hush"}});
    let refused = api.post(SECRETS, secret).await.expect(422);
    assert_eq!(fields(&refused), ["data[.dockercfg]"]);
    assert!(!refused.to_string().contains("hush"));
}

#[tokio::test]
async fn a_key_of_a_config_map_is_text_or_binary() {
    let api = Api::start().await;
    let mut map = config_map("a");
    map["data"] = json!({"k": "v", "..x": "", "none": null});
    map["binaryData"] = json!({"k": "AA=="});
    let refused = api.post(MAPS, map.clone()).await.expect(422);
    assert_eq!(fields(&refused), ["data[..x]", "data[k]"]);
    map["binaryData"] = json!({});
    map["data"].as_object_mut().unwrap().remove("..x");
    let made = api.post(MAPS, map).await.expect(201);
    assert_eq!(made["data"], json!({"k": "v", "none": ""}));
}

#[tokio::test]
async fn nobody_owns_what_the_server_fills_in() {
    let api = Api::start().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    let made = api.post("/api/v1/namespaces", namespace).await.expect(201);
    assert_eq!(made["spec"]["finalizers"], json!(["kubernetes"]));
    let owned = made["metadata"]["managedFields"].to_string();
    assert!(
        !owned.contains("f:spec") && !owned.contains("f:status"),
        "{owned}"
    );
    let made = api.post(CRDS, foo_crd(|_| {})).await.expect(201);
    let owned = made["metadata"]["managedFields"].to_string();
    assert!(!owned.contains("f:acceptedNames"), "{owned}");
}

#[tokio::test]
async fn going_namespaces_keep_their_status() {
    let api = Api::start().await;
    let path = "/api/v1/namespaces/n";
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    api.post("/api/v1/namespaces", namespace).await.expect(201);
    let status = json!({"status": {"conditions": [{"type": "X", "status": "True"}]}});
    api.merge(&format!("{path}/status"), status)
        .await
        .expect(200);
    let going = api.delete(path).await.expect(200);
    assert_eq!(going["status"]["phase"], "Terminating");
    assert_eq!(going["status"]["conditions"][0]["type"], "X");
    assert_eq!(going["metadata"].get("deletionGracePeriodSeconds"), None);
}

#[tokio::test]
async fn deleting_a_collection_shows_what_it_was() {
    let api = Api::start().await;
    for name in ["a", "b"] {
        api.post(MAPS, config_map(name)).await.expect(201);
    }
    let dry = api.delete(&format!("{MAPS}?dryRun=All")).await.expect(200);
    let gone = api.delete(MAPS).await.expect(200);
    for list in [dry, gone] {
        assert_eq!(list["kind"], "ConfigMapList");
        assert_eq!(list["items"].as_array().map(Vec::len), Some(2));
    }
    assert_eq!(api.get(MAPS).await.expect(200)["items"], json!([]));
}

#[tokio::test]
async fn bad_options_name_the_options_and_the_field() {
    let api = Api::start().await;
    let long = "x".repeat(129);
    for (query, field, reason) in [
        ("dryRun=Some", "dryRun", "FieldValueNotSupported"),
        (
            "fieldValidation=Odd",
            "fieldValidation",
            "FieldValueNotSupported",
        ),
        (
            &*format!("fieldManager={long}"),
            "fieldManager",
            "FieldValueTooLong",
        ),
    ] {
        let refused = api.post(&format!("{MAPS}?{query}"), config_map("a")).await;
        let refused = refused.expect(422);
        assert_eq!(refused["details"]["kind"], "CreateOptions");
        assert_eq!(fields(&refused), [field]);
        assert_eq!(refused["details"]["causes"][0]["reason"], reason);
    }
}

#[tokio::test]
async fn events_are_selected_by_their_source() {
    let api = Api::start().await;
    api.post(EVENTS, event("e", "default")).await.expect(201);
    for (source, count) in [("c", 1), ("d", 0)] {
        let path = format!("{EVENTS}?fieldSelector=source%3D{source}");
        let found = api.get(&path).await.expect(200);
        assert_eq!(found["items"].as_array().map(Vec::len), Some(count));
    }
}

#[tokio::test]
async fn names_of_definitions_are_checked() {
    let api = Api::start().await;
    let mut crd = foo_crd(|version| {
        version["additionalPrinterColumns"] =
            json!([{"name": "x", "type": "string", "jsonPath": "spec.n"}]);
    });
    crd["spec"]["names"]["kind"] = "1x".into();
    crd["spec"]["names"]["shortNames"] = json!(["1f"]);
    crd["spec"]["preserveUnknownFields"] = true.into();
    let refused = api.post(CRDS, crd).await.expect(422);
    assert_eq!(
        fields(&refused),
        [
            "spec.names.kind",
            "spec.names.listKind",
            "spec.names.shortNames[0]",
            "spec.preserveUnknownFields",
            "spec.versions[0].additionalPrinterColumns[0].jsonPath"
        ]
    );
    api.post(CRDS, foo_crd(|_| {})).await.expect(201);
    let path = format!("{CRDS}/foos.ex.test");
    assert_eq!(api.put(&path, foo_crd(|_| {})).await.code, 422);
}

#[tokio::test]
async fn scaling_takes_ownership_of_the_replicas() {
    let api = Api::start().await;
    let crd = foo_crd(|version| {
        version["subresources"]["scale"] =
            json!({"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"});
    });
    api.post(CRDS, crd).await.expect(201);
    api.post(FOOS, foo("a", json!({"n": 1}))).await.expect(201);
    let scale = json!({"spec": {"replicas": 3}});
    api.merge(&format!("{FOOS}/a/scale"), scale)
        .await
        .expect(200);
    let v = api.get(&format!("{FOOS}/a")).await.expect(200);
    let entries = v["metadata"]["managedFields"].as_array().unwrap();
    let owners: Vec<_> = entries
        .iter()
        .filter(|e| e["fieldsV1"]["f:spec"].get("f:n").is_some())
        .map(|e| &e["subresource"])
        .collect();
    assert_eq!(owners, ["scale"]);
}

#[tokio::test]
async fn watch_says_nothing_about_one_object() {
    let api = Api::start().await;
    let made = api.post(MAPS, config_map("a")).await.expect(201);
    let read = api.get(&format!("{MAPS}/a?watch=true")).await.expect(200);
    assert_eq!(read, made);
}

#[tokio::test]
async fn references_have_one_owner_and_empty_collections_vanish() {
    let api = Api::start().await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "s"},
        "secrets": [{"name": "x"}], "imagePullSecrets": []});
    let made = api.post(accounts, account).await.expect(201);
    assert_eq!(made.get("imagePullSecrets"), None);
    assert_eq!(
        made["metadata"]["managedFields"][0]["fieldsV1"],
        json!({"f:secrets": {".": {}, "k:{\"name\":\"x\"}": {}}})
    );
    let mut map = config_map("a");
    map["data"] = json!({});
    let made = api.post(MAPS, map).await.expect(201);
    assert_eq!(made.get("data"), None);
}

#[tokio::test]
async fn a_deprecated_version_names_a_better_one() {
    let api = Api::start().await;
    let mut crd = foo_crd(|_| {});
    let mut second = crd["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    second["storage"] = false.into();
    crd["spec"]["versions"][0]["deprecated"] = true.into();
    crd["spec"]["versions"].as_array_mut().unwrap().push(second);
    api.post(CRDS, crd).await.expect(201);
    let answer = api.get(FOOS).await;
    assert_eq!(
        answer.headers["warning"],
        r#"299 - "ex.test/v1 Foo is deprecated; use ex.test/v2 Foo""#
    );
}
