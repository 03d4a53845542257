//! Resources of a CustomResourceDefinition.

use std::sync::Arc;

use ecp_meta::gvk::{GroupResource, GroupVersionKind};
use ecp_schema::{FieldError, Structural};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::builtin::ALL_VERBS;
use super::{PrinterColumn, Resource, ResourceInfo, Rules, ScalePaths};
use crate::discovery::priority;
use crate::table::CompiledColumns;

/// Digest of a definition's `spec`.
pub type SpecDigest = [u8; 32];

/// The resources that one definition text makes, one for each served version.
#[derive(Debug)]
pub struct CompiledCrd {
    /// Digest of the text.
    pub digest: SpecDigest,
    /// The served versions.
    pub versions: Vec<Arc<ResourceInfo>>,
}

/// A definition whose schema does not compile.
#[derive(Debug, thiserror::Error)]
#[error("schema of version {version} is not structural")]
pub struct CompileError {
    /// The version.
    pub version: String,
    /// What is wrong, below `openAPIV3Schema`.
    pub errors: Vec<FieldError>,
}

/// Digest of the `spec` of a definition.
pub(super) fn spec_digest(crd: &Value) -> SpecDigest {
    digest(crd.get("spec").unwrap_or(&Value::Null))
}

fn digest(value: &Value) -> SpecDigest {
    Sha256::digest(value.to_string().as_bytes()).into()
}

/// Compiles the served versions of a definition.
///
/// # Errors
/// A schema is not structural.
pub fn compile(crd: &Value) -> Result<CompiledCrd, CompileError> {
    let spec = crd.get("spec").unwrap_or(&Value::Null);
    let versions = array(spec.get("versions"));
    let storage = versions
        .iter()
        .find(|v| flag(v, "storage"))
        .map_or("", |v| text(v, "name"));
    let digest = spec_digest(crd);
    let mut compiled = Vec::new();
    for version in versions.iter().filter(|v| flag(v, "served")) {
        let info = compile_version(spec, version, storage)?;
        compiled.push(Arc::new(ResourceInfo { digest, ..info }));
    }
    Ok(CompiledCrd {
        digest,
        versions: compiled,
    })
}

fn compile_version(
    spec: &Value,
    version: &Value,
    storage: &str,
) -> Result<ResourceInfo, CompileError> {
    let names = spec.get("names").unwrap_or(&Value::Null);
    let group = text(spec, "group");
    let kind = text(names, "kind");
    let name = text(version, "name");
    let open_api = version
        .pointer("/schema/openAPIV3Schema")
        .cloned()
        .map(Arc::new);
    let schema = match &open_api {
        Some(schema) => Some(Arc::new(Structural::compile(schema).map_err(|errors| {
            CompileError {
                version: name.into(),
                errors,
            }
        })?)),
        None => None,
    };
    let gvk = GroupVersionKind::new(group, name, kind);
    Ok(ResourceInfo {
        json_head: ResourceInfo::json_head_of(&gvk),
        gvk,
        plural: text(names, "plural").into(),
        singular: or(text(names, "singular"), || kind.to_lowercase()),
        short_names: texts(names.get("shortNames")),
        categories: texts(names.get("categories")),
        list_kind: or(text(names, "listKind"), || format!("{kind}List")),
        namespaced: text(spec, "scope") == "Namespaced",
        status_subresource: version.pointer("/subresources/status").is_some(),
        scale: version.pointer("/subresources/scale").map(scale),
        verbs: ALL_VERBS,
        digest: SpecDigest::default(),
        columns: CompiledColumns::default(),
        schema_id: open_api.as_deref().map_or(1, schema_id),
        schema,
        open_api,
        printer_columns: array(version.get("additionalPrinterColumns"))
            .iter()
            .map(column)
            .collect(),
        selectable_fields: array(version.get("selectableFields"))
            .iter()
            .map(|f| text(f, "jsonPath").trim_start_matches('.').to_owned())
            .collect(),
        storage: GroupResource::new(group, text(names, "plural")),
        storage_api_version: ResourceInfo::storage_version_of(group, storage),
        storage_version: name == storage,
        deprecation_warning: deprecation(spec, version, group, kind),
        rules: Rules::Custom,
    })
}

/// The storage version of a definition, without its schema: enough to find and delete objects.
pub(crate) fn storage_resource(crd: &Value) -> Option<Resource> {
    let spec = crd.get("spec")?;
    let mut version = array(spec.get("versions"))
        .iter()
        .find(|v| flag(v, "storage"))?
        .clone();
    version.as_object_mut()?.remove("schema");
    let name = text(&version, "name").to_owned();
    let info = compile_version(spec, &version, &name).ok()?;
    Some(Resource {
        info: Arc::new(info),
        crd: None,
    })
}

fn schema_id(schema: &Value) -> u32 {
    let bytes = digest(schema);
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]).max(1)
}

/// The warning of a deprecated version, which names the best one that is not.
fn deprecation(spec: &Value, version: &Value, group: &str, kind: &str) -> Option<String> {
    let name = text(version, "name");
    let better = || {
        array(spec.get("versions"))
            .iter()
            .filter(|v| flag(v, "served") && !flag(v, "deprecated"))
            .map(|v| text(v, "name"))
            .max_by_key(|v| priority(v))
            .filter(|best| priority(best) > priority(name))
            .map(|best| format!("; use {group}/{best} {kind}"))
            .unwrap_or_default()
    };
    flag(version, "deprecated").then(|| {
        or(text(version, "deprecationWarning"), || {
            format!("{group}/{name} {kind} is deprecated{}", better())
        })
    })
}

fn scale(scale: &Value) -> ScalePaths {
    ScalePaths {
        spec_replicas: text(scale, "specReplicasPath").into(),
        status_replicas: text(scale, "statusReplicasPath").into(),
        label_selector: Some(text(scale, "labelSelectorPath"))
            .filter(|s| !s.is_empty())
            .map(Into::into),
    }
}

fn column(column: &Value) -> PrinterColumn {
    PrinterColumn {
        name: text(column, "name").into(),
        kind: text(column, "type").into(),
        format: text(column, "format").into(),
        description: text(column, "description").into(),
        priority: column
            .get("priority")
            .and_then(Value::as_i64)
            .and_then(|p| p.try_into().ok())
            .unwrap_or(0),
        json_path: text(column, "jsonPath").into(),
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn texts(value: Option<&Value>) -> Vec<String> {
    array(value)
        .iter()
        .filter_map(|v| v.as_str().map(Into::into))
        .collect()
}

fn array(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn flag(value: &Value, field: &str) -> bool {
    value.get(field).and_then(Value::as_bool).unwrap_or(false)
}

fn or(text: &str, otherwise: impl FnOnce() -> String) -> String {
    if text.is_empty() {
        otherwise()
    } else {
        text.into()
    }
}
