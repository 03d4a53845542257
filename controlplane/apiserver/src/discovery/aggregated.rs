//! `APIGroupDiscoveryList` of `apidiscovery.k8s.io`.

use ecp_meta::gvk::GroupVersionKind;
use serde_json::{Map, Value, json};

use super::model::{Entry, Group};

/// The document; `v2` and `v2beta1` differ in nothing else.
pub(super) fn list<'a>(version: &str, groups: impl Iterator<Item = &'a Group>) -> Value {
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{version}"),
        "metadata": {},
        "items": groups.map(group).collect::<Vec<_>>(),
    })
}

fn group(group: &Group) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| {
            json!({
                "version": version.name,
                "freshness": "Current",
                "resources": version.resources.iter().map(resource).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({"metadata": {"name": group.name, "creationTimestamp": null}, "versions": versions})
}

fn response_kind(gvk: &GroupVersionKind) -> Value {
    json!({"group": gvk.group, "version": gvk.version, "kind": gvk.kind})
}

fn resource(entry: &Entry) -> Value {
    let mut fields = Map::new();
    fields.insert("resource".into(), entry.plural.as_str().into());
    fields.insert("responseKind".into(), response_kind(&entry.gvk));
    let scope = if entry.namespaced {
        "Namespaced"
    } else {
        "Cluster"
    };
    fields.insert("scope".into(), scope.into());
    fields.insert("singularResource".into(), entry.singular.as_str().into());
    fields.insert("verbs".into(), entry.verbs.into());
    if !entry.short_names.is_empty() {
        fields.insert("shortNames".into(), entry.short_names.clone().into());
    }
    if !entry.categories.is_empty() {
        fields.insert("categories".into(), entry.categories.clone().into());
    }
    if !entry.subresources.is_empty() {
        let subresources = entry.subresources.iter().map(|sub| {
            json!({
                "subresource": sub.name,
                "responseKind": response_kind(&sub.gvk),
                "verbs": sub.verbs,
            })
        });
        fields.insert("subresources".into(), subresources.collect());
    }
    Value::Object(fields)
}
