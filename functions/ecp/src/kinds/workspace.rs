//! Workspaces: a namespace, which provider-ecp makes, and the cloud's own idea of one.

use serde_json::{Map, Value, json};

use super::{Draft, Obstacle};
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

pub(super) fn workspace(draft: &mut Draft<'_, '_>) -> Result<(), Obstacle> {
    let site = draft.site();
    let owner = draft.owner.as_ref().map_err(Clone::clone)?;
    draft.plan.managed.push(Managed {
        key: NAMESPACE_KEY.into(),
        kind: &NAMESPACE,
        for_provider: json!({"tenant": owner.tenant, "workspace": draft.xr.name}),
        region: None,
    });
    let (region, cloud) = site.placed()?;
    draft.plan.cloud = Some(cloud);
    draft
        .plan
        .managed
        .extend(cloud.workspace(&clouds::Workspace {
            region: &region,
            name: draft.xr.name,
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
