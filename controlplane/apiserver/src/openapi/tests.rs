use ecp_meta::cluster::ClusterName;

use super::*;
use crate::registry::Registry;

fn builtins() -> GroupVersions {
    group_versions(&Registry::new().resources(&ClusterName::root()))
}

fn key(group: &str) -> (String, String) {
    (group.to_owned(), "v1".to_owned())
}

fn document_of(group: &str) -> Value {
    document::build(group, "v1", &builtins()[&key(group)])
}

/// Every `$ref` in a value.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(to)) = fields.get("$ref") {
                found.push(to.clone());
            }
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn no_reference_leads_nowhere() {
    for (group, version) in builtins().keys() {
        let document = document::build(
            group,
            version,
            &builtins()[&(group.clone(), version.clone())],
        );
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(!found.is_empty());
        for to in found {
            let pointer = to.trim_start_matches('#');
            assert!(document.pointer(pointer).is_some(), "{group}: {to}");
        }
    }
}

#[test]
fn patch_lists_what_kubectl_looks_for() {
    let document = document_of("");
    let patch = &document["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]["patch"];
    assert_eq!(patch["x-kubernetes-action"], "patch");
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "", "version": "v1", "kind": "ConfigMap"})
    );
    let names: Vec<&str> = patch["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|parameter| parameter["in"] == "query")
        .map(|parameter| parameter["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"fieldValidation") && names.contains(&"dryRun"));
    let types = patch["requestBody"]["content"].as_object().unwrap();
    assert!(types.contains_key("application/strategic-merge-patch+json"));
}

#[test]
fn subresources_have_their_own_paths() {
    let document = document_of("");
    let finalize = &document["paths"]["/api/v1/namespaces/{name}/finalize"];
    assert!(finalize["put"].is_object());
    assert!(finalize.get("patch").is_none());
    assert!(document["paths"]["/api/v1/namespaces/{name}/status"]["patch"].is_object());
}

#[test]
fn reviews_are_documented_where_they_are_posted() {
    let document = document_of("authorization.k8s.io");
    let path = "/apis/authorization.k8s.io/v1/namespaces/{namespace}/localsubjectaccessreviews";
    assert!(document["paths"][path]["post"].is_object());
}

#[test]
fn the_digest_of_a_document_follows_its_definitions() {
    let versions = builtins();
    let resources = &versions[&key("")];
    let before = digest(&key(""), resources);
    assert_eq!(before, digest(&key(""), resources));
    let mut changed = resources.clone();
    let first = ResourceInfo {
        digest: [1; 32],
        ..ResourceInfo::clone(&changed[0])
    };
    changed[0] = Arc::new(first);
    assert_ne!(before, digest(&key(""), &changed));
}

#[test]
fn links_of_other_clusters_lead_to_them() {
    let team: ClusterName = "root:team-a".parse().unwrap();
    assert_eq!(
        location(&team, &key(""), "H"),
        "/clusters/root:team-a/openapi/v3/api/v1?hash=H"
    );
    assert_eq!(
        location(&ClusterName::root(), &key("g.io"), "H"),
        "/openapi/v3/apis/g.io/v1?hash=H"
    );
}

#[test]
fn the_cache_forgets_the_oldest_and_stays_bounded() {
    let documents = Documents::default();
    let size = limits::OPENAPI_CACHE_BYTES_MAX / 2;
    for digest in ["a", "b", "c"] {
        documents.get_or_build(digest, || Bytes::from(vec![b'x'; size]));
    }
    let cache = documents.0.lock();
    assert_eq!(cache.by_digest.keys().collect::<Vec<_>>(), ["b", "c"]);
    assert_eq!(cache.bytes, 2 * size);
}

#[test]
fn a_custom_kind_gets_what_every_object_has() {
    let builtin = builtins();
    let info = ResourceInfo {
        gvk: ecp_meta::gvk::GroupVersionKind::new("stable.example.io", "v1", "CronTab"),
        rules: crate::registry::Rules::Custom,
        open_api: Some(Arc::new(json!({
            "type": "object", "properties": {"spec": {"type": "object"}}, "required": ["spec"],
        }))),
        ..ResourceInfo::clone(&builtin[&key("")][0])
    };
    let document = document::build("stable.example.io", "v1", &[Arc::new(info)]);
    let schema = &document["components"]["schemas"]["io.example.stable.v1.CronTab"];
    assert_eq!(schema["required"], json!(["spec"]));
    assert!(schema["properties"]["metadata"]["allOf"].is_array());
    assert_eq!(
        schema["x-kubernetes-group-version-kind"][0]["kind"],
        "CronTab"
    );
    let path = "/apis/stable.example.io/v1/namespaces/{namespace}/configmaps/{name}";
    let types = &document["paths"][path]["patch"]["requestBody"]["content"];
    assert!(
        types
            .get("application/strategic-merge-patch+json")
            .is_none()
    );
}
