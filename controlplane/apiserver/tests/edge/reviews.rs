//! Reviews, impersonation, metrics.

use ecp_apiserver::Identity;
use serde_json::{Value, json};

use crate::support::Api;

const ACCESS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

fn jane(api: &Api) -> Api {
    api.as_user(Identity::user("jane"))
}

fn may(verb: &str, resource: &str) -> Value {
    json!({"spec": {"resourceAttributes": {"verb": verb, "resource": resource}}})
}

#[tokio::test]
async fn a_client_is_told_who_it_is() {
    let api = Api::start().await;
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let review = jane(&api).create(path, body).await;
    assert_eq!(
        review["status"]["userInfo"],
        json!({"username": "jane", "groups": ["system:authenticated"]})
    );
    let wrong = json!({"apiVersion": "v1", "kind": "Secret"});
    assert_eq!(api.call("POST", path, &[], wrong).await.code, 400);
    assert_eq!(api.get(path).await.code, 405);
}

#[tokio::test]
async fn a_client_is_told_what_it_may() {
    let api = Api::start().await;
    let admin = api.create(ACCESS, may("delete", "secrets")).await;
    assert_eq!(admin["status"]["allowed"], true);
    let user = jane(&api).create(ACCESS, may("delete", "secrets")).await;
    assert_eq!(user["status"]["allowed"], false);
    assert_eq!(
        api.call("POST", ACCESS, &[], json!({"spec": {}}))
            .await
            .code,
        400
    );
}

#[tokio::test]
async fn only_administrators_may_ask_about_others() {
    let api = Api::start().await;
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let mut question = may("get", "secrets");
    question["spec"]["user"] = "joe".into();
    question["spec"]["groups"] = json!(["system:masters"]);
    assert_eq!(
        api.create(path, question.clone()).await["status"]["allowed"],
        true
    );
    assert_eq!(jane(&api).call("POST", path, &[], question).await.code, 403);
}

#[tokio::test]
async fn an_administrator_can_act_as_somebody_with_fewer_rights() {
    let api = Api::start().await;
    let as_jane = [("impersonate-user", "jane")];
    let secrets = "/api/v1/secrets";
    assert_eq!(
        api.call("GET", secrets, &as_jane, Value::Null).await.code,
        403
    );
    assert_eq!(
        api.call("GET", "/apis", &as_jane, Value::Null).await.code,
        200
    );
    let as_master = [
        ("impersonate-user", "x"),
        ("impersonate-group", "system:masters"),
    ];
    assert_eq!(
        jane(&api)
            .call("GET", secrets, &as_master, Value::Null)
            .await
            .code,
        403
    );
}

#[tokio::test]
async fn metrics_count_requests_and_objects_and_want_an_administrator() {
    let api = Api::start().await;
    assert_eq!(api.get("/api/v1/secrets").await.code, 200);
    let metrics = api.get("/metrics").await;
    let text = metrics.body.as_str().unwrap();
    for line in [
        "apiserver_request_total{verb=\"list\",group=\"\",resource=\"secrets\",code=\"200\"} 1",
        "apiserver_storage_objects{group=\"\",resource=\"namespaces\"} ",
        "ecp_store_revision ",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    assert_eq!(jane(&api).get("/metrics").await.code, 403);
}
