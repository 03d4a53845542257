//! Which resources exist in a logical cluster.
//!
//! Built-in resources are one shared table. Custom resources are compiled once for each distinct
//! text of a definition and shared by every logical cluster that has it; a cluster only holds
//! references.

mod builtin;
mod builtin_schema;
mod custom;
mod live;

use std::ops::Deref;
use std::sync::Arc;

use ecp_meta::gvk::{GroupResource, GroupVersionKind, api_version};
use ecp_schema::Structural;
use serde_json::Value;

use crate::table::CompiledColumns;
use tokio_util::sync::CancellationToken;

pub use builtin::ALL_VERBS;
pub(crate) use custom::storage_resource as compile_storage;
pub use custom::{CompileError, CompiledCrd, SpecDigest, compile};
pub use live::Registry;

/// Everything that requests need to know of one resource at one version. Shared between clusters.
#[derive(Clone, Debug)]
pub struct ResourceInfo {
    /// Kind.
    pub gvk: GroupVersionKind,
    /// Plural name: the path segment.
    pub plural: String,
    /// Singular name.
    pub singular: String,
    /// Short names.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
    /// Kind of lists.
    pub list_kind: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether `/status` exists; then the main endpoint ignores `status`.
    pub status_subresource: bool,
    /// Where `/scale` reads and writes.
    pub scale: Option<ScalePaths>,
    /// Verbs of the main endpoint.
    pub verbs: &'static [&'static str],
    /// Compiled schema; `None` for built-ins.
    pub schema: Option<Arc<Structural>>,
    /// The `openAPIV3Schema` of the version, as sent.
    pub open_api: Option<Arc<Value>>,
    /// Columns of tables; empty means only the default ones.
    pub printer_columns: Vec<PrinterColumn>,
    /// Their paths, compiled when the first table is made.
    pub columns: CompiledColumns,
    /// Fields that field selectors may name, beside `metadata.name` and `metadata.namespace`.
    pub selectable_fields: Vec<String>,
    /// Under which resource objects are stored.
    pub storage: GroupResource,
    /// The `apiVersion` objects are stored with.
    pub storage_api_version: String,
    /// How the JSON of an object of this version begins: `{"apiVersion":"...",`.
    pub(crate) json_head: Vec<u8>,
    /// Whether this is the version objects are stored with.
    pub storage_version: bool,
    /// Digest of the definition's text; all 0 for built-ins. Equal digests mean equal resources.
    pub digest: SpecDigest,
    /// Digest of the schema that stored objects were last defaulted with; 0 for built-ins.
    pub schema_id: u32,
    /// Warning that every request to a deprecated version gets.
    pub deprecation_warning: Option<String>,
    /// Rules of built-in kinds.
    pub rules: Rules,
}

/// Rules that a built-in kind has beside metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// None: a custom resource.
    #[default]
    Custom,
    /// Plain data.
    Plain,
    /// `core/v1` Namespace.
    Namespace,
    /// `core/v1` Secret.
    Secret,
    /// `core/v1` ConfigMap.
    ConfigMap,
    /// `apiextensions.k8s.io/v1` CustomResourceDefinition.
    Crd,
}

/// One column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrinterColumn {
    /// Heading.
    pub name: String,
    /// OpenAPI type: `string`, `integer`, `number`, `boolean` or `date`.
    pub kind: String,
    /// OpenAPI format, or empty.
    pub format: String,
    /// Description.
    pub description: String,
    /// 0 is shown always, more only in wide output.
    pub priority: i32,
    /// Simple JSON path to the value.
    pub json_path: String,
}

/// JSON paths of a scale subresource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// Path of the wanted replicas, such as `.spec.replicas`.
    pub spec_replicas: String,
    /// Path of the observed replicas.
    pub status_replicas: String,
    /// Path of the textual label selector.
    pub label_selector: Option<String>,
}

/// A subresource, as discovery shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subresource {
    /// Path segment, such as `status`.
    pub name: &'static str,
    /// Kind of its objects.
    pub gvk: GroupVersionKind,
    /// Verbs.
    pub verbs: &'static [&'static str],
}

impl ResourceInfo {
    /// The `apiVersion` of this version.
    pub fn api_version(&self) -> String {
        self.gvk.api_version()
    }

    /// The `resource.group` form used in messages.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(&self.gvk.group, &self.plural)
    }

    /// Whether this is a custom resource.
    pub fn is_custom(&self) -> bool {
        self.rules == Rules::Custom
    }

    /// The subresources of this version.
    pub fn subresources(&self) -> Vec<Subresource> {
        let mut found = Vec::new();
        if self.rules == Rules::Namespace {
            found.push(Subresource {
                name: "finalize",
                gvk: self.gvk.clone(),
                verbs: &["update"],
            });
        }
        if self.scale.is_some() {
            found.push(Subresource {
                name: "scale",
                gvk: GroupVersionKind::new("autoscaling", "v1", "Scale"),
                verbs: &["get", "patch", "update"],
            });
        }
        if self.status_subresource {
            found.push(Subresource {
                name: "status",
                gvk: self.gvk.clone(),
                verbs: &["get", "patch", "update"],
            });
        }
        found
    }

    /// Prefix of the store keys of all objects of this resource, in every cluster.
    pub fn key_prefix(&self) -> String {
        let group = match self.storage.group.as_str() {
            "" => "core",
            group => group,
        };
        format!("/{group}/{}/", self.storage.resource)
    }

    pub(crate) fn json_head_of(gvk: &GroupVersionKind) -> Vec<u8> {
        format!("{{\"apiVersion\":{},", Value::from(gvk.api_version())).into_bytes()
    }

    pub(crate) fn storage_version_of(group: &str, version: &str) -> String {
        api_version(group, version)
    }
}

/// A resource as one logical cluster has it.
#[derive(Clone, Debug)]
pub struct Resource {
    info: Arc<ResourceInfo>,
    crd: Option<Arc<CrdState>>,
}

/// What differs between clusters that have the same definition.
#[derive(Clone, Debug)]
pub struct CrdState {
    /// Name of the CustomResourceDefinition.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Whether it is being deleted: creates are refused.
    pub terminating: bool,
    /// Cancelled when the definition's text changes or it goes: watches must begin again.
    pub changed: CancellationToken,
}

impl Resource {
    /// The shared part.
    pub fn info(&self) -> &Arc<ResourceInfo> {
        &self.info
    }

    /// The definition that a custom resource comes from.
    pub fn crd(&self) -> Option<&CrdState> {
        self.crd.as_deref()
    }
}

impl Deref for Resource {
    type Target = ResourceInfo;

    fn deref(&self) -> &ResourceInfo {
        &self.info
    }
}

/// An immutable snapshot of the resources of one logical cluster.
#[derive(Clone, Debug)]
pub struct Resources {
    version: u64,
    builtin: Arc<[Resource]>,
    /// Sorted by group, version, plural.
    custom: Vec<Resource>,
}

impl Resources {
    /// Digest of the contents: equal in all clusters that have the same resources. For ETags.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// All resources: built-ins by group, version and plural, then custom ones in the same order.
    pub fn iter(&self) -> impl Iterator<Item = &Resource> {
        self.builtin.iter().chain(&self.custom)
    }

    /// The resources of one group and version.
    pub fn group_version<'a>(
        &'a self,
        group: &'a str,
        version: &'a str,
    ) -> impl Iterator<Item = &'a Resource> {
        self.iter()
            .filter(move |r| r.gvk.group == group && r.gvk.version == version)
    }

    /// A resource by its path.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Resource> {
        let wanted = (group, version, plural);
        [&self.builtin[..], &self.custom[..]]
            .into_iter()
            .find_map(|list| {
                let i = list.binary_search_by(|r| sort_key(r).cmp(&wanted)).ok()?;
                list.get(i)
            })
    }

    /// A resource by kind.
    pub fn find_kind(&self, gvk: &GroupVersionKind) -> Option<&Resource> {
        self.iter().find(|r| r.gvk == *gvk)
    }
}

fn sort_key(resource: &ResourceInfo) -> (&str, &str, &str) {
    (&resource.gvk.group, &resource.gvk.version, &resource.plural)
}
