//! Where an XR keeps Crossplane's own fields, and access to them.

use ecp_meta::object;
use serde_json::{Map, Value, json};

use crate::xrd::Scope;

/// Crossplane's fields of one XR: under `spec` for legacy XRs, else under `spec.crossplane`.
#[derive(Clone, Copy, Debug)]
pub struct Machinery<'a> {
    fields: Option<&'a Map<String, Value>>,
}

/// How an XR follows new revisions of its Composition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdatePolicy {
    /// It follows.
    Automatic,
    /// It stays with the revision it has.
    Manual,
}

impl<'a> Machinery<'a> {
    /// The machinery of an XR.
    pub fn of(xr: &'a Value, scope: Scope) -> Self {
        let spec = xr.get("spec");
        let fields = if scope.is_legacy() {
            spec
        } else {
            spec.and_then(|s| s.get("crossplane"))
        };
        Self {
            fields: fields.and_then(Value::as_object),
        }
    }

    /// One field as it is.
    pub fn field(&self, name: &str) -> Option<&'a Value> {
        self.fields?.get(name)
    }

    /// `compositionRef.name`.
    pub fn composition(&self) -> Option<&'a str> {
        self.name_of("compositionRef")
    }

    /// `compositionRevisionRef.name`.
    pub fn revision(&self) -> Option<&'a str> {
        self.name_of("compositionRevisionRef")
    }

    /// `compositionUpdatePolicy`, if set.
    pub fn update_policy(&self) -> Option<UpdatePolicy> {
        match self.field("compositionUpdatePolicy")?.as_str()? {
            "Automatic" => Some(UpdatePolicy::Automatic),
            "Manual" => Some(UpdatePolicy::Manual),
            _ => None,
        }
    }

    /// `compositionSelector.matchLabels`, if there is a selector.
    pub fn composition_selector(&self) -> Option<Vec<(&'a str, &'a str)>> {
        self.labels_of("compositionSelector")
    }

    /// `compositionRevisionSelector.matchLabels`, if there is a selector.
    pub fn revision_selector(&self) -> Option<Vec<(&'a str, &'a str)>> {
        self.labels_of("compositionRevisionSelector")
    }

    /// References to composed resources that have a name.
    pub fn resource_refs(&self) -> Vec<ResourceRef> {
        self.field("resourceRefs")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(ResourceRef::from_json)
            .collect()
    }

    fn name_of(&self, field: &str) -> Option<&'a str> {
        let name = self.field(field)?.get("name")?.as_str()?;
        Some(name).filter(|n| !n.is_empty())
    }

    fn labels_of(&self, field: &str) -> Option<Vec<(&'a str, &'a str)>> {
        let selector = self.field(field).filter(|s| s.is_object())?;
        Some(object::string_map(selector.get("matchLabels")).collect())
    }
}

/// Sets one of Crossplane's fields of an XR.
pub fn set(xr: &mut Value, scope: Scope, field: &str, value: Value) {
    let spec = object::entry_map(xr, "spec");
    if scope.is_legacy() {
        spec.insert(field.to_owned(), value);
        return;
    }
    let crossplane = spec.entry("crossplane").or_insert_with(|| json!({}));
    if !crossplane.is_object() {
        *crossplane = json!({});
    }
    crossplane[field] = value;
}

/// A reference to a composed resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceRef {
    /// `apiVersion`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace, in references of cluster-scoped XRs to namespaced resources.
    pub namespace: Option<String>,
}

impl ResourceRef {
    /// A reference from JSON; `None` without a name.
    pub fn from_json(value: &Value) -> Option<Self> {
        let text = |field: &str| {
            let text = value.get(field)?.as_str()?;
            (!text.is_empty()).then(|| text.to_owned())
        };
        Some(Self {
            api_version: text("apiVersion")?,
            kind: text("kind")?,
            name: text("name")?,
            namespace: text("namespace"),
        })
    }

    /// The reference as XRs hold it.
    pub fn to_json(&self) -> Value {
        let mut value = json!({
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
        });
        if let Some(namespace) = &self.namespace {
            value["namespace"] = namespace.as_str().into();
        }
        value
    }

    /// What upstream sorts references by.
    pub(crate) fn sort_key(&self) -> String {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        format!("{}{}{}{namespace}", self.api_version, self.kind, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machinery_is_where_the_scope_says() {
        for (scope, path) in [
            (Scope::LegacyCluster, "/spec/compositionRef/name"),
            (Scope::Cluster, "/spec/crossplane/compositionRef/name"),
            (Scope::Namespaced, "/spec/crossplane/compositionRef/name"),
        ] {
            let mut xr = json!({"spec": {"size": 1}});
            set(&mut xr, scope, "compositionRef", json!({"name": "c"}));
            assert_eq!(xr.pointer(path), Some(&json!("c")));
            assert_eq!(Machinery::of(&xr, scope).composition(), Some("c"));
            assert_eq!(xr["spec"]["size"], 1);
        }
    }

    #[test]
    fn odd_values_read_as_absent() {
        let xr = json!({"spec": {"compositionRef": 3, "resourceRefs": [1, {"kind": "X"}],
            "compositionUpdatePolicy": "Other", "compositionSelector": []}});
        let machinery = Machinery::of(&xr, Scope::LegacyCluster);
        assert_eq!(machinery.composition(), None);
        assert_eq!(machinery.update_policy(), None);
        assert_eq!(machinery.composition_selector(), None);
        assert!(machinery.resource_refs().is_empty());
        assert!(
            Machinery::of(&json!(null), Scope::Cluster)
                .field("x")
                .is_none()
        );
    }
}
