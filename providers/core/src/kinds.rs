//! The managed resources of provider-ecp.

use std::time::Duration;

use ecp_provider::{Configs, Managed, Naming, Provider};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The provider.
pub const PROVIDER: Provider = Provider {
    name: "ecp",
    group: "ecp.m.secapi.cloud",
    version: "v1alpha1",
    configs: Configs::None,
};

/// The namespace of a SECA workspace (DESIGN D8).
#[derive(Clone, Copy, Debug)]
pub struct WorkspaceNamespace;

impl Managed for WorkspaceNamespace {
    const PROVIDER: Provider = PROVIDER;
    const KIND: &'static str = "WorkspaceNamespace";
    const PLURAL: &'static str = "workspacenamespaces";
    // The name follows from tenant and workspace, and one that is there is recognised.
    const NAMING: Naming = Naming::Deterministic;
    const CREATION_GRACE: Duration = Duration::ZERO;
    type ForProvider = WorkspaceNamespaceParameters;
    type AtProvider = WorkspaceNamespaceObservation;
}

/// What is below a SECA network: it goes before the network does.
///
/// The cloud refuses to delete a network that has subnets, and a user who deletes a network means
/// all of it (SECA contract section 3.8).
#[derive(Clone, Copy, Debug)]
pub struct NetworkContents;

impl Managed for NetworkContents {
    const PROVIDER: Provider = PROVIDER;
    const KIND: &'static str = "NetworkContents";
    const PLURAL: &'static str = "networkcontents";
    // There is nothing outside the object that would have a name.
    const NAMING: Naming = Naming::Deterministic;
    const CREATION_GRACE: Duration = Duration::ZERO;
    type ForProvider = NetworkContentsParameters;
    type AtProvider = NetworkContentsObservation;
}

/// Whose contents they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkContentsParameters {
    /// SECA name of the network, in the workspace of this namespace.
    #[schemars(length(min = 1, max = 128), extend("x-kubernetes-validations" = fixed()))]
    pub network: String,
}

/// What there is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkContentsObservation {
    /// Subnets and route tables of the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<i64>,
}

/// Whose namespace it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceNamespaceParameters {
    /// SECA name of the tenant.
    #[schemars(length(min = 1, max = 128), extend("x-kubernetes-validations" = fixed()))]
    pub tenant: String,
    /// SECA name of the workspace.
    #[schemars(length(min = 1, max = 128), extend("x-kubernetes-validations" = fixed()))]
    pub workspace: String,
}

/// The namespace follows from the names: with others it would be another one.
fn fixed() -> serde_json::Value {
    serde_json::json!([{"rule": "self == oldSelf", "message": "cannot be changed"}])
}

/// What there is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceNamespaceObservation {
    /// Name of the namespace.
    pub namespace: String,
    /// SECA resources in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_count: Option<i64>,
    /// While it is torn down: what is still there, as `Kind/name`, the first few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<Vec<String>>,
}
