//! The document of one group version.

use std::collections::BTreeSet;
use std::sync::Arc;

use ecp_meta::gvk::GroupVersionKind;
use serde_json::{Map, Value, json};

use super::kinds::{self, LIST_META, TYPES, gvk_value};
use super::{paths, reference};
use crate::auth::review::{REVIEWS, VERSION};
use crate::registry::ResourceInfo;

/// Types every document has: answers to deletions, metadata.
const ALWAYS: &[&str] = &[
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
];

/// Makes the document of the resources of one group version.
pub(super) fn build(group: &str, version: &str, resources: &[Arc<ResourceInfo>]) -> Value {
    let mut document = Document {
        paths: Map::new(),
        schemas: Map::new(),
        named: BTreeSet::new(),
    };
    for name in ALWAYS {
        document.add_type(name);
    }
    for info in resources {
        document.add_resource(info);
    }
    if version == VERSION {
        for review in REVIEWS.iter().filter(|review| review.group == group) {
            if let Some(name) = kinds::name_of(&review.gvk()) {
                document.add_type(name);
                paths::review(&mut document.paths, review, name);
            }
        }
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.0"},
        "paths": document.paths,
        "components": {
            "schemas": document.schemas,
            "securitySchemes": {"BearerToken": {
                "type": "apiKey", "in": "header", "name": "authorization",
                "description": "Bearer token",
            }},
        },
    })
}

struct Document {
    paths: Map<String, Value>,
    schemas: Map<String, Value>,
    named: BTreeSet<String>,
}

impl Document {
    fn add_resource(&mut self, info: &ResourceInfo) {
        let name = match kinds::name_of(&info.gvk).filter(|_| !info.is_custom()) {
            Some(name) => {
                self.add_type(name);
                name.to_owned()
            }
            None => {
                let name = custom_name(&info.gvk);
                self.schemas.insert(name.clone(), custom_schema(info));
                name
            }
        };
        self.schemas
            .insert(format!("{name}List"), list_schema(info, &name));
        for sub in info.subresources() {
            if let Some(name) = kinds::name_of(&sub.gvk).filter(|_| sub.gvk != info.gvk) {
                self.add_type(name);
            }
        }
        paths::resource(&mut self.paths, info, &name);
    }

    /// Adds a type of the file and all it names.
    fn add_type(&mut self, name: &str) {
        let Some(ty) = TYPES.get(name) else { return };
        if !self.named.insert(name.to_owned()) {
            return;
        }
        self.schemas.insert(name.to_owned(), ty.schema());
        for field in &ty.fields {
            if let Some(named) = field.form.named() {
                self.add_type(named);
            }
        }
    }
}

/// `io.example.stable.v1.CronTab` for a kind of `stable.example.io`.
fn custom_name(gvk: &GroupVersionKind) -> String {
    let mut parts: Vec<&str> = gvk.group.split('.').rev().collect();
    parts.extend([gvk.version.as_str(), gvk.kind.as_str()]);
    parts.join(".")
}

/// The schema of a definition, with what every object has (as
/// `k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder`).
fn custom_schema(info: &ResourceInfo) -> Value {
    let mut schema = match info.open_api.as_deref() {
        Some(Value::Object(schema)) => schema.clone(),
        // Without a schema, anything is kept.
        _ => Map::from_iter([
            ("type".to_owned(), "object".into()),
            (
                "x-kubernetes-preserve-unknown-fields".to_owned(),
                true.into(),
            ),
        ]),
    };
    let mut properties = match schema.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    properties.extend(kinds::type_meta());
    properties.insert("metadata".into(), kinds::metadata());
    schema.insert("properties".into(), Value::Object(properties));
    let gvk = json!([gvk_value(&info.gvk)]);
    schema.insert("x-kubernetes-group-version-kind".into(), gvk);
    Value::Object(schema)
}

fn list_schema(info: &ResourceInfo, name: &str) -> Value {
    let mut properties = kinds::type_meta();
    properties.insert(
        "items".into(),
        json!({
            "description": format!("The {}.", info.plural),
            "type": "array",
            "items": {"allOf": [{"$ref": reference(name)}], "default": {}},
        }),
    );
    properties.insert(
        "metadata".into(),
        json!({
            "description": "Metadata of the list.",
            "default": {},
            "allOf": [{"$ref": reference(LIST_META)}],
        }),
    );
    let gvk = GroupVersionKind::new(&info.gvk.group, &info.gvk.version, &info.list_kind);
    json!({
        "description": format!("{} is a list of {}.", info.list_kind, info.gvk.kind),
        "type": "object",
        "required": ["items"],
        "properties": properties,
        "x-kubernetes-group-version-kind": [gvk_value(&gvk)],
    })
}
