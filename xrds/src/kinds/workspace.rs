//! API group `workspace.v1.secapi.cloud`: workspaces.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{KindInfo, Scope, integer};

pub(crate) const WORKSPACE: KindInfo = KindInfo {
    kind: "Workspace",
    plural: "workspaces",
    group: "workspace.v1.secapi.cloud",
    short_names: &["ws"],
    scope: Scope::Tenant,
    provider: "seca.workspace",
    seca_kind: "workspace",
    collection: "workspaces",
    catalogue: false,
    noun: "workspace",
    references: &[],
    spec: ecp_schema::from_type::<WorkspaceSpec>,
    status: Some(ecp_schema::from_type::<WorkspaceStatus>),
    columns: &[
        integer(
            "Resources",
            ".status.resourceCount",
            "SECA resources in the workspace.",
        ),
        super::REGION_COLUMN,
    ],
};

/// A tenant's place for resources that belong together. Its spec is free.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkspaceSpec(pub Map<String, Value>);

impl JsonSchema for WorkspaceSpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "WorkspaceSpec".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A tenant's place for resources that belong together. Its spec is free.",
            "type": "object",
            "properties": {},
            "x-kubernetes-preserve-unknown-fields": true,
        })
    }
}

/// Status fields of a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceStatus {
    /// How many SECA resources are in the workspace.
    #[schemars(range(min = 0))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_count: Option<i64>,
}
