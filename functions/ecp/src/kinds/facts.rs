//! The status fields that a kind has beside those that all have.

use serde_json::{Map, Value};

use super::{Plan, workspace};
use crate::clouds::{self, Observed};
use crate::xr::Xr;

/// The status fields that only this kind has.
pub(crate) fn facts(xr: &Xr<'_>, plan: &Plan, observed: &Observed<'_>) -> Map<String, Value> {
    // Without a plan, the cloud is still that of what is there.
    let cloud = plan.cloud.or_else(|| clouds::of(observed));
    let mut facts = cloud
        .map(|cloud| cloud.facts(xr.info, observed))
        .unwrap_or_default();
    if xr.info.kind == "Workspace" {
        facts.extend(workspace::facts(observed));
    }
    facts
}
