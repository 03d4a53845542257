//! One run of the function.

use std::collections::BTreeMap;
use std::sync::Arc;

use ecp_xr::function::{FunctionResult, Ready, Request, Resource, Response, Severity, Target};
use ecp_xrds::{State, Status};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::clouds::Observed;
use crate::kinds::{self, Obstacle, Owner, Plan};
use crate::limits::{MESSAGE_LEN_MAX, TTL_SETTLED, TTL_WAITING};
use crate::managed::{self, Place, Verdict};
use crate::needs::Needs;
use crate::status::{self, Phase};
use crate::xr::Xr;

/// Answers a request. See the crate for what it guarantees.
pub fn compose(request: Request, now: Timestamp) -> Response {
    let mut response = Response {
        tag: request.tag,
        ttl: Some(TTL_SETTLED),
        desired: request.desired,
        context: Some(request.context),
        ..Response::default()
    };
    let Some(composite) = &request.observed.composite else {
        fatal(
            &mut response,
            "the request has no composite resource".into(),
        );
        return response;
    };
    let xr = match Xr::of(&composite.object) {
        Ok(xr) => xr,
        Err(why) => {
            fatal(&mut response, why);
            return response;
        }
    };
    let observed: Observed<'_> = request
        .observed
        .resources
        .iter()
        .map(|(key, resource)| (key.as_str(), &*resource.object))
        .collect();
    let previous = status::read(xr.object);
    let digest = ecp_xrds::intent_digest(xr.object);
    if xr.is_deleting() {
        keep(&mut response, &xr, &observed);
        let next = status::advance(&previous, &digest, &Phase::Deleting, now);
        let facts = kinds::facts(&xr, None, &Plan::default(), &observed, now);
        write_status(&mut response, &xr, &next, facts);
        return response;
    }

    let mut needs = Needs::new(&request.required);
    let pinned = pinned(request.input.as_ref());
    let (owner, plan) = kinds::plan(xr, &mut needs, &observed, pinned);
    response.requirements = needs.requirements();

    let phase = want(&mut response, &xr, owner.as_ref().ok(), &plan, &observed);
    let next = status::advance(&previous, &digest, &phase, now);
    tell(&mut response, &previous, &next, &phase);
    let facts = kinds::facts(&xr, owner.as_ref().ok(), &plan, &observed, now);
    write_status(&mut response, &xr, &next, facts);
    if phase != Phase::Settled {
        response.ttl = Some(TTL_WAITING);
    }
    response
}

/// The cloud that the Composition is for, from the step's input.
fn pinned(input: Option<&Value>) -> Option<&str> {
    input?.get("cloud")?.as_str()
}

/// Puts the plan into desired state, and says how far the observed state is with it.
fn want(
    response: &mut Response,
    xr: &Xr<'_>,
    owner: Option<&Owner>,
    plan: &Plan,
    observed: &Observed<'_>,
) -> Phase {
    let owner = match (xr.info.kind, owner) {
        (_, None) => Owner::default(),
        // A workspace's own managed resources are no resources in the workspace.
        ("Workspace", Some(owner)) => Owner {
            workspace: None,
            ..owner.clone()
        },
        (_, Some(owner)) => owner.clone(),
    };
    let place = Place {
        namespace: xr.managed_namespace(),
        labels: kinds::labels(xr.info, &owner, xr.name),
        annotations: plan.uses.clone(),
    };
    let mut verdicts = Vec::new();
    for managed in &plan.managed {
        let verdict = managed.verdict(&place, observed.get(managed.key.as_str()).copied());
        let ready = if verdict == Verdict::Settled {
            Ready::True
        } else {
            Ready::False
        };
        let resource = Resource {
            object: managed.object(&place).into(),
            connection: BTreeMap::new(),
            ready,
        };
        response
            .desired
            .resources
            .insert(managed.key.clone(), resource);
        verdicts.push(verdict);
    }
    if plan.obstacle.is_some() {
        keep(response, xr, observed);
    }
    phase(plan, &verdicts)
}

fn phase(plan: &Plan, verdicts: &[Verdict]) -> Phase {
    let first = |of: fn(&Verdict) -> Option<&String>| verdicts.iter().find_map(of).map(|m| cut(m));
    let refused = first(|v| match v {
        Verdict::Refused(m) => Some(m),
        Verdict::Settled | Verdict::Working(_) | Verdict::Failing(_) => None,
    });
    let failing = first(|v| match v {
        Verdict::Failing(m) => Some(m),
        Verdict::Settled | Verdict::Working(_) | Verdict::Refused(_) => None,
    });
    let working = first(|v| match v {
        Verdict::Working(m) => Some(m),
        Verdict::Settled | Verdict::Failing(_) | Verdict::Refused(_) => None,
    });
    match (&plan.obstacle, refused, failing, working) {
        (Some(Obstacle::Refused(words)), ..) => Phase::Refused(cut(words)),
        (_, Some(words), ..) => Phase::Refused(words),
        (Some(Obstacle::Missing(what)), ..) => Phase::Waiting(cut(what)),
        (None, None, Some(words), _) => Phase::Failing(words),
        (None, None, None, Some(working)) => Phase::Working(working),
        (None, None, None, None) if !plan.lacking.is_empty() => {
            Phase::Lacking(cut(&plan.lacking.join("; ")))
        }
        (None, None, None, None) => Phase::Settled,
    }
}

/// Wants what exists to stay as it is, as far as nothing else is wanted of it. What is on its way
/// out is left alone, so that it is not made anew.
fn keep(response: &mut Response, xr: &Xr<'_>, observed: &Observed<'_>) {
    for (key, object) in observed {
        let wanted = response.desired.resources.contains_key(*key);
        if wanted || ecp_meta::object::is_deleting(object) {
            continue;
        }
        let before = managed::as_before(object, kinds::managed_kinds(), xr.managed_namespace());
        if let Some(before) = before {
            let resource = Resource {
                object: before.into(),
                connection: BTreeMap::new(),
                ready: Ready::False,
            };
            response.desired.resources.insert((*key).into(), resource);
        }
    }
}

/// Results become Events, so they are for what is new only.
fn tell(response: &mut Response, previous: &Status, next: &Status, phase: &Phase) {
    if previous.state != next.state
        && let Some(state) = next.state
        && state != State::Error
    {
        let reason = format!("{state:?}");
        // An Event that says what another one said is not written again, and a second update
        // would seem never to end.
        let message = match next.intent.as_ref().map(|i| i.revision) {
            Some(revision @ 2..) => format!("is now {state} (version {revision})"),
            _ => format!("is now {state}"),
        };
        result(response, Severity::Normal, &reason, message);
    }
    if previous.message == next.message {
        return;
    }
    match phase {
        Phase::Refused(words) => result(response, Severity::Warning, "Refused", words.clone()),
        Phase::Failing(words) => result(response, Severity::Warning, "Failing", words.clone()),
        Phase::Waiting(m) | Phase::Working(m) | Phase::Lacking(m) => {
            result(response, Severity::Normal, "Waiting", m.clone());
        }
        Phase::Settled | Phase::Deleting => {}
    }
}

fn result(response: &mut Response, severity: Severity, reason: &str, message: String) {
    response.results.push(FunctionResult {
        severity,
        message,
        reason: Some(reason.into()),
        target: Target::CompositeAndClaim,
    });
}

fn fatal(response: &mut Response, message: String) {
    result(response, Severity::Fatal, "InvalidRequest", message);
}

/// Puts the status into the desired composite, over what earlier steps put there.
fn write_status(response: &mut Response, xr: &Xr<'_>, status: &Status, facts: Map<String, Value>) {
    let mut fields = facts;
    if let Ok(Value::Object(own)) = serde_json::to_value(status) {
        fields.extend(own);
    }
    let composite = response.desired.composite.get_or_insert_default();
    let object = Arc::make_mut(&mut composite.object);
    if !object.is_object() {
        *object = json!({});
    }
    for field in ["apiVersion", "kind"] {
        object[field] = xr.object.get(field).cloned().unwrap_or_default();
    }
    ecp_meta::object::entry_map(object, "status").extend(fields);
    composite.ready = match status.state {
        Some(State::Active) => Ready::True,
        _ => Ready::False,
    };
}

/// A message of bounded length.
fn cut(message: &str) -> String {
    message.chars().take(MESSAGE_LEN_MAX).collect()
}
