//! The status fields that a kind has beside those that all have.

use ecp_xrds::reference::Resolved;
use ecp_xrds::{HistoryEntry, PartStatus, PowerState, Reference, State};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Owner, Plan, kind, workspace};
use crate::clouds::{self, Facts, Observed, Part};
use crate::limits::{MESSAGE_LEN_MAX, PART_HISTORY_LEN_MAX};
use crate::numbers::whole;
use crate::status;
use crate::xr::Xr;

/// The status fields that only this kind has. What cannot be told now stays as it was told.
pub(crate) fn facts(
    xr: &Xr<'_>,
    owner: Option<&Owner>,
    plan: &Plan,
    observed: &Observed<'_>,
    now: Timestamp,
) -> Map<String, Value> {
    // Without a plan, the cloud is still that of what is there.
    let cloud = plan.cloud.or_else(|| clouds::of(observed));
    let facts = cloud
        .map(|cloud| cloud.facts(xr.info, observed))
        .unwrap_or_default();
    let before = |field: &str| {
        let status = xr.object.get("status")?;
        status.get(field).map(whole)
    };
    let mut fields = facts.fields.clone();
    let mut put = |field: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(field.into(), value);
        }
    };
    match xr.info.kind {
        "Workspace" => fields.extend(workspace::facts(observed)),
        kind @ ("BlockStorage" | "PublicIP") => {
            let user = if kind == "PublicIP" {
                "NIC"
            } else {
                "Instance"
            };
            put(
                "attachedTo",
                match owner {
                    None => before("attachedTo"),
                    Some(owner) => attached_to(&facts, user, owner),
                },
            );
        }
        "NIC" => put(
            "publicIpRefs",
            match &plan.linked {
                None => before("publicIpRefs"),
                Some(linked) => {
                    let used: Vec<_> = used(&facts, linked).collect();
                    (!used.is_empty()).then(|| json!(used))
                }
            },
        ),
        "Subnet" => put(
            "routeTableRef",
            match &plan.linked {
                None => before("routeTableRef"),
                Some(linked) => used(&facts, linked).next().map(|used| json!(used)),
            },
        ),
        "RouteTable" => put("routes", parts(&facts, plan, before("routes"), now)),
        "SecurityGroup" => put("rules", parts(&facts, plan, before("rules"), now)),
        "Instance" => {
            let off = || json!(PowerState::Off);
            fields.entry("powerState").or_insert_with(off);
        }
        _ => {}
    }
    fields
}

/// A reference to what the resource is attached to, in the same workspace.
fn attached_to(facts: &Facts, of: &str, owner: &Owner) -> Option<Value> {
    let user = Resolved {
        kind: kind(of).ok()?,
        tenant: owner.tenant.clone(),
        workspace: owner.workspace.clone(),
        network: None,
        region: None,
        name: facts.attached_to.clone()?,
    };
    Some(json!(Reference::to(user.to_string())))
}

/// Those of the references that the cloud really uses.
fn used<'a>(
    facts: &'a Facts,
    linked: &'a [(String, Reference)],
) -> impl Iterator<Item = &'a Reference> {
    linked
        .iter()
        .filter(|(id, _)| facts.uses.contains(id))
        .map(|(_, reference)| reference)
}

/// The state of each part, with the time it went into it.
fn parts(facts: &Facts, plan: &Plan, before: Option<Value>, now: Timestamp) -> Option<Value> {
    let Some(wanted) = &plan.parts else {
        return before;
    };
    let before: Vec<Value> = match before {
        Some(Value::Array(items)) => items,
        Some(_) | None => Vec::new(),
    };
    let states: Vec<_> = wanted
        .iter()
        .enumerate()
        .map(|(n, lacking)| {
            let (state, why) = match (lacking, facts.parts.get(n)) {
                (Some(why), _) => (State::Pending, Some(why.clone())),
                (None, Some(Part { active: true, .. })) => (State::Active, None),
                (None, Some(Part { reason, .. })) => (State::Pending, reason.clone()),
                (None, None) => (State::Pending, None),
            };
            let old = before.get(n).cloned();
            let old = old.and_then(|old| serde_json::from_value::<PartStatus>(old).ok());
            part(old, state, why, now)
        })
        .collect();
    (!states.is_empty()).then(|| json!(states))
}

/// The status of a part: as it was told, unless the state or the reason is another.
fn part(old: Option<PartStatus>, state: State, why: Option<String>, now: Timestamp) -> PartStatus {
    let message = why.map(|why| why.chars().take(MESSAGE_LEN_MAX).collect::<String>());
    let reason = message.as_ref().map(|_| "NoEffect".to_owned());
    let mut conditions = old.map(|old| old.conditions).unwrap_or_default();
    match conditions.first_mut() {
        Some(newest) if newest.state == state => {
            newest.reason = reason;
            newest.message = message;
        }
        Some(_) | None => conditions.insert(
            0,
            HistoryEntry {
                state,
                last_transition_at: status::text(now),
                reason,
                message,
            },
        ),
    }
    conditions.truncate(PART_HISTORY_LEN_MAX);
    PartStatus { state, conditions }
}
