use ecp_meta::cluster::ClusterName;
use http::header;
use serde_json::json;

use super::*;
use crate::registry::Registry;

fn resources() -> std::sync::Arc<crate::registry::Resources> {
    Registry::new().resources(&ClusterName::root())
}

fn headers(name: header::HeaderName, value: &str) -> HeaderMap {
    HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
}

#[test]
fn the_legacy_list_shows_resources_and_their_subresources() {
    let groups = groups(&resources());
    let document = legacy::resources(&groups[0], "v1").unwrap();
    assert_eq!(document["groupVersion"], "v1");
    let list = document["resources"].as_array().unwrap();
    let find = |name: &str| list.iter().find(|r| r["name"] == name).unwrap();
    assert_eq!(find("configmaps")["shortNames"], json!(["cm"]));
    assert_eq!(find("configmaps")["singularName"], "configmap");
    assert_eq!(
        find("namespaces/status")["verbs"],
        json!(["get", "patch", "update"])
    );
    assert!(legacy::resources(&groups[0], "v9").is_err());
}

#[test]
fn the_group_list_leaves_core_out_and_has_the_reviews() {
    let document = legacy::group_list(&groups(&resources()));
    let names: Vec<&str> = document["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|g| g["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"authorization.k8s.io"));
    assert!(names.contains(&"apiextensions.k8s.io"));
    assert!(!names.contains(&""));
}

#[test]
fn aggregated_discovery_shows_the_same_resources() {
    let groups = groups(&resources());
    let document = aggregated::list("v2", groups.iter().filter(|group| group.name.is_empty()));
    assert_eq!(document["apiVersion"], "apidiscovery.k8s.io/v2");
    let list = document["items"][0]["versions"][0]["resources"]
        .as_array()
        .unwrap();
    let namespaces = list.iter().find(|r| r["resource"] == "namespaces").unwrap();
    assert_eq!(namespaces["scope"], "Cluster");
    assert_eq!(
        namespaces["responseKind"],
        json!({"group": "", "version": "v1", "kind": "Namespace"})
    );
    assert_eq!(namespaces["subresources"][0]["subresource"], "finalize");
}

#[test]
fn the_aggregated_form_is_asked_for_in_any_order() {
    for (accept, want) in [
        (
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            Some("v2"),
        ),
        (
            "application/json;as=APIGroupDiscoveryList;v=v2beta1;g=apidiscovery.k8s.io",
            Some("v2beta1"),
        ),
        (
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer",
            Some("v2"),
        ),
        (
            "application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList",
            None,
        ),
        ("application/json", None),
    ] {
        let headers = headers(ACCEPT, accept);
        assert_eq!(aggregated_version(&accepted(&headers)[0]), want, "{accept}");
    }
}

#[test]
fn a_client_that_has_the_document_gets_304() {
    let document = json!({"a": 1});
    let first = cached(&HeaderMap::new(), JSON.to_owned(), &document);
    assert_eq!(first.status(), 200);
    let tag = first.headers()[ETAG].to_str().unwrap().to_owned();
    let again = |tag: &str| cached(&headers(IF_NONE_MATCH, tag), JSON.to_owned(), &document);
    assert_eq!(again(&tag).status(), 304);
    assert_eq!(again(&format!("\"x\", W/{tag}")).status(), 304);
    assert_eq!(again("\"x\"").status(), 200);
}
