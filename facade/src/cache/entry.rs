//! One cached object.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use bytes::Bytes;
use ecp_meta::object;
use ecp_xrds::{CROSSPLANE_SPEC_FIELDS, KindInfo, Scope, intent_digest, seca_name};
use serde_json::Value;

use super::mentions;
use super::watch::parse_version;
use crate::control::FIELD_MANAGER;

/// An object as the watch delivered it, with what is worked out once for all requests.
#[derive(Debug)]
pub(crate) struct Entry {
    object: Value,
    key: String,
    mentions: BTreeSet<String>,
    resource_version: u64,
    written_at: Option<String>,
    shared: bool,
    digest: OnceLock<String>,
    document: OnceLock<Bytes>,
}

impl Entry {
    /// Takes an object in. Its managed fields are read and dropped: they are half its size.
    pub(crate) fn new(info: &'static KindInfo, mut object: Value) -> Self {
        let managed = object
            .get_mut("metadata")
            .and_then(Value::as_object_mut)
            .and_then(|m| m.remove("managedFields"));
        let managed = managed.as_ref().and_then(Value::as_array);
        let writes = || {
            managed
                .into_iter()
                .flatten()
                .filter(|f| f.get("subresource").is_none_or(|s| s == "" || s.is_null()))
        };
        let written_at = writes()
            .filter_map(|f| f.get("time")?.as_str())
            .max()
            .map(str::to_owned);
        // An apply removes only what an apply of ours set. What a merge of ours took over from
        // others stays in place like theirs.
        let applied = |f: &&Value| {
            let text = |field| f.get(field).and_then(Value::as_str);
            text("manager") == Some(FIELD_MANAGER) && text("operation") != Some("Update")
        };
        let shared = writes().filter(|f| !applied(f)).any(owns_intent);
        Self {
            key: key_of(info, &object),
            mentions: mentions::names(info, &object),
            resource_version: parse_version(object::resource_version(&object)),
            object,
            written_at,
            shared,
            digest: OnceLock::new(),
            document: OnceLock::new(),
        }
    }

    /// The object, without managed fields.
    pub(crate) fn object(&self) -> &Value {
        &self.object
    }

    /// What orders and finds the entry in its namespace: the SECA name, below a network's name
    /// where the kind has one.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// The names under which [`super::KindCache::mentioning`] finds the entry.
    pub(super) fn mentions(&self) -> &BTreeSet<String> {
        &self.mentions
    }

    pub(crate) fn name(&self) -> &str {
        seca_name(&self.object)
    }

    pub(crate) fn object_name(&self) -> &str {
        object::name(&self.object)
    }

    pub(crate) fn namespace(&self) -> &str {
        object::namespace(&self.object).unwrap_or_default()
    }

    pub(crate) fn uid(&self) -> &str {
        object::uid(&self.object)
    }

    pub(crate) fn resource_version(&self) -> u64 {
        self.resource_version
    }

    pub(crate) fn deleting(&self) -> bool {
        object::is_deleting(&self.object)
    }

    /// When something other than the status was last written.
    pub(crate) fn written_at(&self) -> Option<&str> {
        self.written_at.as_deref()
    }

    /// Whether parts of the user's intent are owned by somebody else, or by a merge, so that
    /// leaving a field out of an apply would not remove it.
    pub(crate) fn shared(&self) -> bool {
        self.shared
    }

    /// A part of the user's labels, annotations and extensions.
    pub(crate) fn common(&self, field: &str) -> Option<&Value> {
        self.object
            .get("spec")?
            .get("commonData")?
            .get(field)
            .filter(|v| !v.is_null())
    }

    /// A field of `spec`.
    pub(crate) fn spec(&self, field: &str) -> Option<&Value> {
        self.object.get("spec")?.get(field).filter(|v| !v.is_null())
    }

    /// A status field.
    pub(crate) fn status(&self, field: &str) -> Option<&Value> {
        self.object.get("status")?.get(field)
    }

    /// The digest of the present intent.
    pub(crate) fn digest(&self) -> &str {
        self.digest.get_or_init(|| intent_digest(&self.object))
    }

    /// Whether the status speaks of the present intent.
    pub(crate) fn seen(&self) -> bool {
        self.status("intent")
            .and_then(|i| i.get("digest"))
            .and_then(Value::as_str)
            == Some(self.digest())
    }

    /// SECA's resource version: the revision in the status, one more while a change is not yet
    /// seen; 1 before the first.
    pub(crate) fn revision(&self) -> i64 {
        let revision = self
            .status("intent")
            .and_then(|i| i.get("revision"))
            .and_then(Value::as_i64)
            .unwrap_or(0);
        if self.seen() {
            revision.max(1)
        } else {
            revision.saturating_add(1)
        }
    }

    /// Whether the control plane is done with the present intent, for better or worse.
    pub(crate) fn settled(&self) -> bool {
        let state = self.status("state").and_then(Value::as_str);
        self.seen() && matches!(state, Some("active" | "error"))
    }

    /// The document of a GET, made once.
    pub(crate) fn document(&self, make: impl FnOnce() -> Bytes) -> Bytes {
        self.document.get_or_init(make).clone()
    }
}

/// Whether a PUT replaces a field of `spec`: all but Crossplane's own and the power, which has its
/// own operations.
pub(crate) fn is_replaced(name: &str) -> bool {
    name != "power" && !CROSSPLANE_SPEC_FIELDS.contains(&name)
}

/// Whether a managed fields entry owns anything in `spec` that a PUT replaces.
fn owns_intent(fields: &Value) -> bool {
    fields
        .get("fieldsV1")
        .and_then(|f| f.get("f:spec"))
        .and_then(Value::as_object)
        .is_some_and(|spec| {
            spec.keys()
                .any(|k| k.strip_prefix("f:").is_some_and(is_replaced))
        })
}

fn key_of(info: &KindInfo, object: &Value) -> String {
    let name = seca_name(object);
    match info.scope {
        Scope::Network => {
            let network = object
                .get("spec")
                .and_then(|s| s.get("network"))
                .and_then(Value::as_str)
                .unwrap_or_default();
            item_key(network, name)
        }
        Scope::Cluster if info.kind != "Region" => {
            let region = object.get("spec").and_then(|s| s.get("region"));
            match region.and_then(Value::as_str) {
                Some(region) => regional_key(name, region),
                None => item_key("", name),
            }
        }
        Scope::Cluster | Scope::Tenant | Scope::Workspace => item_key("", name),
    }
}

/// The key of a catalogue entry that one region offers: several may offer one of the same name.
pub(crate) fn regional_key(name: &str, region: &str) -> String {
    format!("{name}\n{region}")
}

/// The key of a resource in its namespace; `network` is empty for kinds without one.
pub(crate) fn item_key(network: &str, name: &str) -> String {
    if network.is_empty() {
        name.into()
    } else {
        format!("{network}/{name}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn disk(status: Value) -> Entry {
        let info = ecp_xrds::by_kind("BlockStorage").expect("kind");
        let object = json!({
            "metadata": {
                "name": "d", "namespace": "ns", "resourceVersion": "7",
                "managedFields": [
                    {"manager": "ecp-facade", "time": "2026-11-30T10:00:00Z",
                     "fieldsV1": {"f:spec": {"f:sizeGB": {}}}},
                    {"manager": "engine", "time": "2026-11-30T11:00:00Z",
                     "fieldsV1": {"f:spec": {"f:crossplane": {}}}},
                    {"manager": "engine", "time": "2026-11-30T12:00:00Z", "subresource": "status",
                     "fieldsV1": {"f:status": {}}},
                ],
            },
            "spec": {"sizeGB": 10, "commonData": {"labels": {"a": "b"}, "annotations": null}},
            "status": status,
        });
        Entry::new(info, object)
    }

    #[test]
    fn managed_fields_are_read_and_dropped() {
        let entry = disk(json!({}));
        assert_eq!(entry.written_at(), Some("2026-11-30T11:00:00Z"));
        assert!(!entry.shared());
        assert!(entry.object()["metadata"].get("managedFields").is_none());
        assert_eq!(entry.resource_version(), 7);
        assert_eq!(entry.common("labels"), Some(&json!({"a": "b"})));
        assert_eq!(entry.common("annotations"), None);
    }

    #[test]
    fn a_field_of_another_manager_makes_an_object_shared() {
        let info = ecp_xrds::by_kind("BlockStorage").expect("kind");
        let object = json!({"metadata": {"managedFields": [
            {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:sizeGB": {}}}},
        ]}});
        assert!(Entry::new(info, object).shared());
    }

    #[test]
    fn the_revision_counts_a_change_that_is_not_yet_seen() {
        let digest = intent_digest(disk(json!({})).object());
        let seen = |digest: &str, state: &str| {
            disk(json!({"state": state, "intent": {"digest": digest, "revision": 4}}))
        };
        assert_eq!(disk(json!({})).revision(), 1);
        assert_eq!(seen(&digest, "active").revision(), 4);
        assert_eq!(seen("other", "active").revision(), 5);
        assert!(seen(&digest, "active").settled());
        assert!(seen(&digest, "error").settled());
        assert!(!seen(&digest, "updating").settled());
        assert!(!seen("other", "active").settled());
        assert!(!disk(json!({})).settled());
    }
}
