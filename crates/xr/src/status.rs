//! Conditions of an XR and its status as a whole (upstream reconciler steps 15 to 17).

use std::collections::BTreeMap;

use ecp_meta::condition::{self, Condition};
use ecp_meta::object;
use serde_json::{Map, Value, json};

use crate::compose::{Rendered, identity};
use crate::event::{Event, TargetedEvent, reason};
use crate::function::{FunctionCondition, Ready, State, Target};
use crate::limits::NAMES_LISTED_MAX;
use crate::pipeline::Outcome;

/// Message of a paused resource.
pub const PAUSED_MESSAGE: &str =
    "Reconciliation (including deletion) is paused via the pause annotation";

/// Conditions that functions may not set.
const SYSTEM_CONDITIONS: [&str; 5] = ["Ready", "Synced", "Healthy", "UpToDate", "Responsive"];

/// The conditions an object has, to be changed and written back.
#[derive(Clone, Debug)]
pub struct Conditions {
    list: Vec<Condition>,
    generation: i64,
    now: String,
}

impl Conditions {
    /// The conditions of an object. `now` is RFC 3339, for those that change.
    pub fn of(object: &Value, now: &str) -> Self {
        Self {
            list: condition::of(object),
            generation: object::generation(object),
            now: now.to_owned(),
        }
    }

    /// The object was written: conditions set from now on are for this generation.
    pub fn at_generation(&mut self, generation: i64) {
        self.generation = generation;
    }

    /// Sets a condition for the object's generation.
    pub fn set(&mut self, kind: &str, status: bool, reason: &str, message: &str) {
        let new = Condition::new(kind, status, reason, message, &self.now);
        condition::set(&mut self.list, new.at_generation(self.generation));
    }

    /// Nothing is wrong with the object.
    pub fn synced(&mut self) {
        self.set("Synced", true, "ReconcileSuccess", "");
    }

    /// The object cannot be reconciled.
    pub fn failed(&mut self, message: &str) {
        self.set("Synced", false, "ReconcileError", message);
    }

    /// The object is left alone.
    pub fn paused(&mut self) {
        self.set("Synced", false, "ReconcilePaused", PAUSED_MESSAGE);
    }

    /// The object is going away.
    pub fn deleting(&mut self) {
        self.set("Ready", false, "Deleting", "");
    }

    /// The object is going away, which something holds up.
    pub fn deleting_behind(&mut self, what: &str) {
        self.set("Ready", false, "Deleting", what);
    }

    /// Whether the engine keeps up with the object's events; `open_because` names who causes too
    /// many.
    pub fn responsive(&mut self, open_because: Option<&str>) {
        match open_because {
            None => self.set("Responsive", true, "WatchCircuitClosed", ""),
            Some(who) => {
                let message =
                    format!("Too many watch events from {who}. Allowing events periodically.");
                self.set("Responsive", false, "WatchCircuitOpen", &message);
            }
        }
    }

    /// Sets a condition as it is, but for the time and generation.
    pub fn copy(&mut self, other: &Condition) {
        let mut new = other.clone();
        new.last_transition_time = self.now.clone();
        condition::set(&mut self.list, new.at_generation(self.generation));
    }

    /// Sets what functions said; what they may not set is ignored. Returns the types for the claim.
    fn custom(&mut self, conditions: &[FunctionCondition]) -> Vec<String> {
        let mut for_claim = Vec::new();
        for c in conditions {
            if SYSTEM_CONDITIONS.contains(&c.kind.as_str()) {
                continue;
            }
            let new = Condition {
                kind: c.kind.clone(),
                status: c.status.clone(),
                reason: c.reason.clone(),
                message: c.message.clone(),
                last_transition_time: self.now.clone(),
                observed_generation: None,
            };
            condition::set(&mut self.list, new);
            if c.target == Target::CompositeAndClaim && !for_claim.contains(&c.kind) {
                for_claim.push(c.kind.clone());
            }
        }
        for_claim
    }

    /// The conditions as JSON.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(&self.list).unwrap_or_else(|_| json!([]))
    }

    /// Whether they differ from those of an object.
    pub fn differ_from(&self, object: &Value) -> bool {
        self.list != condition::of(object)
    }

    fn list(&self) -> &[Condition] {
        &self.list
    }
}

/// Whether a composed resource was accepted by the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It was, or nothing had to be applied.
    Synced,
    /// It was refused as invalid.
    Invalid,
}

/// What to tell about an XR that was composed.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What to apply to the status subresource.
    pub apply: Value,
    /// Events, in order.
    pub events: Vec<TargetedEvent>,
    /// Events about resources that are not yet valid or ready. They are no news for long.
    pub not_yet: Vec<Event>,
    /// Whether the XR is ready.
    pub ready: bool,
}

/// Status and events of an XR after its resources were applied.
///
/// Upstream applies the functions' status first and updates the conditions then; here both are one
/// apply with the same result.
pub fn report(
    xr: &Value,
    mut conditions: Conditions,
    outcome: &Outcome,
    rendered: &Rendered,
    applied: &BTreeMap<String, Applied>,
) -> Report {
    let mut events = outcome.events.clone();
    events.extend(rendered.events.iter().cloned());
    let claim_types = conditions.custom(&outcome.conditions);
    let mut unsynced = Vec::new();
    let mut unready = Vec::new();
    let mut pending = Vec::new();
    for (name, composed) in &rendered.composed {
        let mut not_yet = |what: &str| {
            let message = format!("Composed resource {name:?} is not yet {what}");
            pending.push(Event::normal(reason::COMPOSE, message));
        };
        if applied.get(name) != Some(&Applied::Synced) {
            not_yet("valid");
            unsynced.push(name.as_str());
        }
        if !composed.ready {
            not_yet("ready");
            unready.push(name.as_str());
        }
    }
    if unsynced.is_empty() {
        conditions.synced();
    } else {
        conditions.failed(&format!("Unsynced resources: {}", list_names(&unsynced)));
    }
    let ready = set_ready(&mut conditions, &outcome.desired, &unready);
    let mut apply = identity(xr);
    apply["status"] = status(xr, &outcome.desired, &conditions, &claim_types);
    Report {
        apply,
        events,
        not_yet: pending,
        ready,
    }
}

fn set_ready(conditions: &mut Conditions, desired: &State, unready: &[&str]) -> bool {
    let stated = desired
        .composite
        .as_ref()
        .map_or(Ready::Unspecified, |c| c.ready);
    let (ready, message) = match stated {
        Ready::True => (true, String::new()),
        Ready::False => (false, String::new()),
        Ready::Unspecified if unready.is_empty() => (true, String::new()),
        Ready::Unspecified => (false, format!("Unready resources: {}", list_names(unready))),
    };
    let reason = if ready { "Available" } else { "Creating" };
    conditions.set("Ready", ready, reason, &message);
    ready
}

/// The functions' status with the engine's own fields.
fn status(xr: &Value, desired: &State, conditions: &Conditions, claim_types: &[String]) -> Value {
    let functions = desired
        .composite
        .as_ref()
        .and_then(|c| c.object.get("status"));
    let mut status: Map<String, Value> = functions
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    // Conditions that a function put into the status itself stay, but never over the engine's.
    let mut list: Vec<Condition> = functions
        .map(|s| condition::of(&json!({"status": s})))
        .unwrap_or_default();
    for c in conditions.list() {
        match list.iter_mut().find(|old| old.kind == c.kind) {
            Some(old) => *old = c.clone(),
            None => list.push(c.clone()),
        }
    }
    status.insert(
        "conditions".into(),
        serde_json::to_value(list).unwrap_or_default(),
    );
    let observed = |field: &str| xr.get("status").and_then(|s| s.get(field)).cloned();
    let mut types: Vec<String> = observed("claimConditionTypes")
        .and_then(|v| serde_json::from_value(v).ok())
        .unwrap_or_default();
    for kind in claim_types {
        if !types.contains(kind) {
            types.push(kind.clone());
        }
    }
    if !types.is_empty() {
        status.insert("claimConditionTypes".into(), types.into());
    }
    if let Some(details) = observed("connectionDetails") {
        status.insert("connectionDetails".into(), details);
    }
    Value::Object(status)
}

/// Conditions and events of an XR whose pipeline ended with an error.
///
/// `invalid` says that the API refused something as invalid: then the condition stays the same
/// whatever the message, so that it does not change with each attempt.
pub fn report_failure(
    conditions: &mut Conditions,
    message: &str,
    partial: Option<&Outcome>,
    invalid: bool,
) -> Vec<TargetedEvent> {
    let full = format!("cannot compose resources: {message}");
    let mut events = vec![TargetedEvent::composite(Event::warning(
        reason::COMPOSE,
        full.clone(),
    ))];
    conditions.failed(if invalid {
        "cannot compose resources: some resources were invalid, check events"
    } else {
        &full
    });
    let nothing = Outcome::default();
    let partial = partial.unwrap_or(&nothing);
    events.extend(partial.events.iter().cloned());
    conditions.custom(&partial.conditions);
    let unseen: Vec<String> = conditions
        .list()
        .iter()
        .map(|c| c.kind.clone())
        .filter(|kind| !SYSTEM_CONDITIONS.contains(&kind.as_str()))
        .filter(|kind| partial.conditions.iter().all(|seen| seen.kind != *kind))
        .collect();
    for kind in unseen {
        let unknown = Condition {
            status: "Unknown".into(),
            ..Condition::new(
                &kind,
                false,
                "FatalError",
                "A fatal error occurred before the status of this condition could be determined.",
                "",
            )
        };
        conditions.copy(&unknown);
    }
    events
}

/// Names in a message, sorted, the first three in full (upstream `StableNAndSomeMore`).
pub fn list_names(names: &[&str]) -> String {
    let mut names = names.to_vec();
    names.sort_unstable();
    let rest = names.len().saturating_sub(NAMES_LISTED_MAX);
    if rest > 0 {
        names.truncate(NAMES_LISTED_MAX);
        return format!("{}, and {rest} more", names.join(", "));
    }
    match names.split_last() {
        Some((last, init)) if names.len() == NAMES_LISTED_MAX => {
            format!("{}, and {last}", init.join(", "))
        }
        Some(_) | None => names.join(", "),
    }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
