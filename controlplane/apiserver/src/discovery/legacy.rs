//! The unaggregated documents of `meta/v1`.

use serde_json::{Map, Value, json};

use super::model::{Entry, Group};
use crate::status::Status;

/// `/api`.
pub(super) fn core_versions() -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        // Clients behind any address use the address they came by.
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
    })
}

/// `/apis`.
pub(super) fn group_list(groups: &[Group]) -> Value {
    let named: Vec<Value> = groups
        .iter()
        .filter(|group| !group.name.is_empty())
        .map(group_fields)
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": named})
}

/// `/apis/<group>`.
pub(super) fn group(group: &Group) -> Value {
    let mut document = group_fields(group);
    document["kind"] = "APIGroup".into();
    document["apiVersion"] = "v1".into();
    document
}

fn group_fields(group: &Group) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| {
            let group_version = ecp_meta::gvk::api_version(&group.name, &version.name);
            json!({"groupVersion": group_version, "version": version.name})
        })
        .collect();
    let preferred = versions.first().cloned();
    json!({"name": group.name, "versions": versions, "preferredVersion": preferred})
}

/// `/apis/<group>/<version>` and `/api/v1`.
pub(super) fn resources(group: &Group, version: &str) -> Result<Value, Status> {
    let version = group
        .versions
        .iter()
        .find(|have| have.name == version)
        .ok_or_else(Status::no_such_resource)?;
    let mut resources = Vec::new();
    for entry in &version.resources {
        resources.push(resource(entry));
        for sub in &entry.subresources {
            let mut fields = Map::new();
            fields.insert(
                "name".into(),
                format!("{}/{}", entry.plural, sub.name).into(),
            );
            fields.insert("singularName".into(), "".into());
            fields.insert("namespaced".into(), entry.namespaced.into());
            if (&sub.gvk.group, &sub.gvk.version) != (&entry.gvk.group, &entry.gvk.version) {
                fields.insert("group".into(), sub.gvk.group.as_str().into());
                fields.insert("version".into(), sub.gvk.version.as_str().into());
            }
            fields.insert("kind".into(), sub.gvk.kind.as_str().into());
            fields.insert("verbs".into(), sub.verbs.into());
            resources.push(Value::Object(fields));
        }
    }
    Ok(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": ecp_meta::gvk::api_version(&group.name, &version.name),
        "resources": resources,
    }))
}

fn resource(entry: &Entry) -> Value {
    let mut fields = Map::new();
    fields.insert("name".into(), entry.plural.as_str().into());
    fields.insert("singularName".into(), entry.singular.as_str().into());
    fields.insert("namespaced".into(), entry.namespaced.into());
    fields.insert("kind".into(), entry.gvk.kind.as_str().into());
    fields.insert("verbs".into(), entry.verbs.into());
    if !entry.short_names.is_empty() {
        fields.insert("shortNames".into(), entry.short_names.clone().into());
    }
    if !entry.categories.is_empty() {
        fields.insert("categories".into(), entry.categories.clone().into());
    }
    if let Some(hash) = &entry.storage_hash {
        fields.insert("storageVersionHash".into(), hash.as_str().into());
    }
    Value::Object(fields)
}
