//! CRDs from XRDs (upstream `pkg/xcrd/crd.go`).
//!
//! Only some parts of a user's schema survive, as upstream: see [`Part`].

mod props;

use serde_json::{Map, Value, json};

use crate::limits::COMPOSITE_NAME_LEN_MAX;
use crate::xrd::{GROUP, KIND, Names, Version, Xrd, claim_name_conflicts};

/// Why no CRD can be made.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CrdError {
    /// A version has no usable schema.
    #[error("cannot generate CRD for {of:?} {xrd:?}: version {version:?}: {reason}")]
    Version {
        /// `Composite Resource` or `Composite Resource Claim`.
        of: &'static str,
        /// The XRD.
        xrd: String,
        /// The version.
        version: String,
        /// What is wrong.
        reason: String,
    },
    /// The claim's names do not work.
    #[error("invalid resource claim names: {0}")]
    ClaimNames(String),
}

/// The CRD of the XRs an XRD defines.
///
/// # Errors
/// See [`CrdError`].
pub fn composite_crd(xrd: &Xrd) -> Result<Value, CrdError> {
    let policy = xrd.spec.default_composition_update_policy.as_deref();
    let added = Added {
        of: "Composite Resource",
        spec: props::composite_spec(xrd.scope, policy.unwrap_or("Automatic")),
        status: props::status(xrd.scope.is_legacy()),
        columns: props::composite_columns(xrd.scope),
    };
    let scope = if xrd.scope.is_namespaced() {
        "Namespaced"
    } else {
        "Cluster"
    };
    let names = names(&xrd.spec.names, "composite");
    crd(xrd, &xrd.name, scope, names, &added)
}

/// The CRD of the claims an XRD offers.
///
/// # Errors
/// See [`CrdError`].
pub fn claim_crd(xrd: &Xrd) -> Result<Value, CrdError> {
    let Some(claim) = &xrd.spec.claim_names else {
        return Err(CrdError::ClaimNames("missing names".into()));
    };
    if let Some(name) = claim_name_conflicts(&xrd.spec.names, claim).next() {
        return Err(CrdError::ClaimNames(format!(
            "{name:?} conflicts with composite resource name"
        )));
    }
    let policy = xrd.spec.default_composite_delete_policy.as_deref();
    let added = Added {
        of: "Composite Resource Claim",
        spec: props::claim_spec(policy.unwrap_or("Background")),
        status: props::status(true),
        columns: props::claim_columns(),
    };
    let name = format!("{}.{}", claim.plural, xrd.spec.group);
    crd(xrd, &name, "Namespaced", names(claim, "claim"), &added)
}

/// The `spec` fields Crossplane owns on a claim: none of them is copied to the XR as it is.
pub(crate) fn claim_spec_fields() -> Vec<String> {
    props::claim_spec("").into_iter().map(|(k, _)| k).collect()
}

/// The `spec` fields Crossplane owns on a legacy XR.
pub(crate) fn legacy_spec_fields() -> Vec<String> {
    props::composite_spec(crate::xrd::Scope::LegacyCluster, "")
        .into_iter()
        .map(|(k, _)| k)
        .collect()
}

/// The `status` fields Crossplane owns on a legacy XR.
pub(crate) fn legacy_status_fields() -> Vec<String> {
    props::status(true).into_iter().map(|(k, _)| k).collect()
}

/// What Crossplane adds to each version.
struct Added {
    of: &'static str,
    spec: Map<String, Value>,
    status: Map<String, Value>,
    columns: Vec<Value>,
}

fn crd(xrd: &Xrd, name: &str, scope: &str, names: Value, added: &Added) -> Result<Value, CrdError> {
    let versions = xrd
        .spec
        .versions
        .iter()
        .map(|version| {
            crd_version(version, added).map_err(|reason| CrdError::Version {
                of: added.of,
                xrd: xrd.name.clone(),
                version: version.name.clone(),
                reason,
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut spec = json!({
        "group": xrd.spec.group,
        "names": names,
        "scope": scope,
        "versions": versions,
    });
    if let Some(conversion) = &xrd.spec.conversion {
        spec["conversion"] = conversion.clone();
    }
    Ok(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata(xrd, name),
        "spec": spec,
    }))
}

fn metadata(xrd: &Xrd, name: &str) -> Value {
    let extra = xrd.spec.metadata.clone().unwrap_or_default();
    let mut labels = xrd.labels.clone();
    labels.extend(extra.labels);
    let mut metadata = json!({
        "name": name,
        "ownerReferences": [{
            "apiVersion": format!("{GROUP}/v1"),
            "kind": KIND,
            "name": xrd.name,
            "uid": xrd.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        }],
    });
    if !labels.is_empty() {
        metadata["labels"] = json!(labels);
    }
    if !extra.annotations.is_empty() {
        metadata["annotations"] = json!(extra.annotations);
    }
    metadata
}

fn names(names: &Names, category: &str) -> Value {
    let mut categories = names.categories.clone();
    categories.push(category.to_owned());
    let mut value = json!({
        "kind": names.kind,
        "plural": names.plural,
        "categories": categories,
    });
    for (field, name) in [
        ("singular", &names.singular),
        ("listKind", &names.list_kind),
    ] {
        if let Some(name) = name.as_ref().filter(|n| !n.is_empty()) {
            value[field] = name.as_str().into();
        }
    }
    if !names.short_names.is_empty() {
        value["shortNames"] = json!(names.short_names);
    }
    value
}

fn crd_version(version: &Version, added: &Added) -> Result<Value, String> {
    let schema = version
        .schema
        .as_ref()
        .and_then(|s| s.open_api_v3_schema.as_ref())
        .ok_or("custom resource validation cannot be nil")?;
    if !schema.is_object() {
        return Err("cannot parse validation schema: not an object".into());
    }
    let columns: Vec<&Value> = version
        .additional_printer_columns
        .iter()
        .chain(&added.columns)
        .collect();
    let mut subresources = json!({"status": {}});
    if let Some(scale) = version.subresources.as_ref().and_then(|s| s.get("scale")) {
        subresources["scale"] = scale.clone();
    }
    let mut crd_version = json!({
        "name": version.name,
        "served": version.served,
        "storage": version.referenceable,
        "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": root_schema(schema, added)},
        "subresources": subresources,
    });
    if version.deprecated {
        crd_version["deprecated"] = true.into();
    }
    if let Some(warning) = &version.deprecation_warning {
        crd_version["deprecationWarning"] = warning.as_str().into();
    }
    Ok(crd_version)
}

fn root_schema(user: &Value, added: &Added) -> Value {
    let name_max = user
        .pointer("/properties/metadata/properties/name/maxLength")
        .and_then(Value::as_i64)
        .map_or(COMPOSITE_NAME_LEN_MAX, |n| n.min(COMPOSITE_NAME_LEN_MAX));
    let mut root = json!({
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {
                "type": "object",
                "properties": {"name": {"type": "string", "maxLength": name_max}},
            },
            "spec": Part::Spec.schema(user, &added.spec),
            "status": Part::Status.schema(user, &added.status),
        },
    });
    copy(
        user,
        &mut root,
        &["description", "x-kubernetes-validations"],
    );
    root
}

/// A part of an XR's schema, with what of the user's schema is copied into it.
///
/// Everything else the user writes there (`anyOf`, `allOf`, `not`, `additionalProperties`, ...) is
/// dropped, as upstream does.
enum Part {
    Spec,
    Status,
}

impl Part {
    fn schema(&self, user: &Value, added: &Map<String, Value>) -> Value {
        let (name, copied): (_, &[&str]) = match self {
            Self::Spec => (
                "spec",
                &[
                    "required",
                    "description",
                    "x-kubernetes-preserve-unknown-fields",
                    "x-kubernetes-validations",
                    "oneOf",
                ],
            ),
            Self::Status => (
                "status",
                &[
                    "required",
                    "description",
                    "x-kubernetes-validations",
                    "oneOf",
                ],
            ),
        };
        let user = user.get("properties").and_then(|p| p.get(name));
        let mut properties = user
            .and_then(|u| u.get("properties"))
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        properties.extend(added.iter().map(|(k, v)| (k.clone(), v.clone())));
        let mut schema = json!({"type": "object", "properties": properties});
        if let Some(user) = user {
            copy(user, &mut schema, copied);
        }
        schema
    }
}

fn copy(from: &Value, to: &mut Value, fields: &[&str]) {
    for field in fields {
        let empty = |v: &Value| match v {
            Value::Array(items) => items.is_empty(),
            Value::String(text) => text.is_empty(),
            Value::Null => true,
            Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
        };
        if let Some(value) = from.get(*field).filter(|v| !empty(v)) {
            to[*field] = value.clone();
        }
    }
}
