//! Workspaces: a namespace, which provider-ecp makes, and the cloud's own idea of one.

use serde_json::{Map, Value, json};

use super::resolve::Owner;
use super::{Inputs, Plan, Wait, resolve};
use crate::clouds::{self, Observed};
use crate::managed::{Managed, ManagedKind, at_provider};

/// A namespaced XR can compose nothing that is cluster-scoped, so the namespace is made by
/// provider-ecp on behalf of this managed resource (DESIGN D8).
pub(super) static NAMESPACE: ManagedKind = ManagedKind {
    api_version: "ecp.m.secapi.cloud/v1alpha1",
    kind: "WorkspaceNamespace",
    noun: "workspace's namespace",
    fields: &["tenant", "workspace"],
};

const NAMESPACE_KEY: &str = "namespace";

pub(super) fn workspace(
    inputs: &mut Inputs<'_, '_>,
    owner: &Result<Owner, Wait>,
    plan: &mut Plan,
) -> Result<(), Wait> {
    let region = resolve::region(inputs);
    let owner = owner.as_ref().map_err(Wait::clone)?;
    plan.managed.push(Managed {
        key: NAMESPACE_KEY.into(),
        kind: &NAMESPACE,
        for_provider: json!({"tenant": owner.tenant, "workspace": inputs.xr.name}),
        region: None,
    });
    let (region, cloud) = region?;
    plan.cloud = Some(cloud);
    plan.managed.extend(cloud.workspace(&clouds::Workspace {
        region: &region,
        name: inputs.xr.name,
    }));
    Ok(())
}

/// How much is in the workspace, as provider-ecp counts.
pub(super) fn facts(observed: &Observed<'_>) -> Map<String, Value> {
    const COUNT: &str = "resourceCount";
    observed
        .get(NAMESPACE_KEY)
        .and_then(|o| at_provider(o, COUNT))
        .map(|count| Map::from_iter([(COUNT.to_owned(), count.clone())]))
        .unwrap_or_default()
}
