//! API group `authorization.v1.secapi.cloud`: roles and role assignments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{KindInfo, RefField, Scope, text};

const GROUP: &str = "authorization.v1.secapi.cloud";
const PROVIDER: &str = "seca.authorization";

pub(crate) const ROLE: KindInfo = KindInfo {
    kind: "Role",
    plural: "roles",
    group: GROUP,
    short_names: &["srole"],
    scope: Scope::Tenant,
    provider: PROVIDER,
    seca_kind: "role",
    collection: "roles",
    catalogue: false,
    noun: "role",
    references: &[],
    spec: ecp_schema::from_type::<RoleSpec>,
    status: None,
    columns: &[text(
        "Providers",
        ".spec.permissions[*].provider",
        "Providers that the permissions are for.",
    )],
};

pub(crate) const ROLE_ASSIGNMENT: KindInfo = KindInfo {
    kind: "RoleAssignment",
    plural: "role-assignments",
    group: GROUP,
    short_names: &["sra"],
    scope: Scope::Tenant,
    provider: PROVIDER,
    seca_kind: "role-assignment",
    collection: "role-assignments",
    catalogue: false,
    noun: "role assignment",
    references: &[RefField::to("roles[]", &["Role"]).soft()],
    spec: ecp_schema::from_type::<RoleAssignmentSpec>,
    status: None,
    columns: &[
        text("Subjects", ".spec.subs", "Who has the roles."),
        text("Roles", ".spec.roles", "The roles."),
    ],
};

/// What those who have the role may do over REST.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoleSpec {
    /// Permissions; one that fits is enough.
    #[schemars(length(min = 1, max = 256))]
    pub permissions: Vec<Permission>,
}

/// What may be done with some resources of one provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Permission {
    /// Provider, such as `seca.storage` or `seca.storage/v1`.
    #[schemars(length(min = 1, max = 64))]
    pub provider: String,
    /// Resources, such as `*`, `images/*` or `block-storages/data`.
    #[schemars(length(min = 1, max = 256), inner(length(min = 1, max = 256)))]
    pub resources: Vec<String>,
    /// `get`, `list`, `put`, `delete`, `post` or `*`, in upper or lower case.
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 7)))]
    pub verb: Vec<String>,
}

/// Who has which roles, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoleAssignmentSpec {
    /// Users; `*` is everyone.
    #[schemars(length(min = 1, max = 256), inner(length(min = 1, max = 128)))]
    pub subs: Vec<String>,
    /// Where; one that fits is enough.
    #[schemars(length(min = 1, max = 256))]
    pub scopes: Vec<AssignmentScope>,
    /// Names of roles of the tenant.
    #[schemars(length(min = 1, max = 32), inner(length(min = 1, max = 64)))]
    pub roles: Vec<String>,
}

/// Where roles are had. A list that is absent means all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AssignmentScope {
    /// Tenants.
    #[schemars(length(max = 64), inner(length(min = 1, max = 64)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenants: Option<Vec<String>>,
    /// Regions.
    #[schemars(length(max = 64), inner(length(min = 1, max = 64)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regions: Option<Vec<String>>,
    /// Workspaces.
    #[schemars(length(max = 256), inner(length(min = 1, max = 64)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspaces: Option<Vec<String>>,
}
