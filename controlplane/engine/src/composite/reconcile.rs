//! One reconcile of one XR, in upstream's order.

use std::collections::BTreeSet;
use std::time::Duration;

use ecp_meta::{condition, keys, object};
use ecp_xr::compose::{self, Observed};
use ecp_xr::composition::Composition;
use ecp_xr::event::{Event, EventKind, TargetedEvent, reason};
use ecp_xr::machinery::{Machinery, ResourceRef};
use ecp_xr::pipeline::{Effect, Outcome, Pipeline, PipelineError};
use ecp_xr::prepare::{self, Catalogue};
use ecp_xr::status::{self, Conditions};
use serde_json::{Value, json};

use super::Controller;
use super::deps::Dependency;
use super::memo::Memo;
use crate::api::ApiError;
use crate::connection::{self, ConnectionError};
use crate::controller::{Failure, Next};
use crate::informer::{Key, slim};
use crate::limits::{POLL_MAX, TTL_MIN, TTL_SHORT_MAX, WAIT_INTERVAL};
use crate::queue::jitter;

/// One reconcile of one XR.
pub(super) struct Reconcile<'a> {
    pub(super) controller: &'a Controller,
    pub(super) key: &'a Key,
    pub(super) xr: Value,
    pub(super) memo: &'a mut Memo,
    /// What is to be told when the XR, as it was prepared, has been written.
    pub(super) prepared: Option<Vec<Event>>,
    conditions: Conditions,
    fight: Option<&'a str>,
}

/// Why composing failed.
#[derive(Debug)]
pub(super) enum Trouble {
    /// A lost race.
    Conflict,
    /// The XR could not be written, which has been told.
    Told(Failure),
    /// Anything else.
    Error {
        /// What went wrong.
        message: String,
        /// What functions said before.
        partial: Option<Box<Outcome>>,
        /// Whether the API refused an object as invalid.
        invalid: bool,
    },
}

impl Trouble {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self::Error {
            message: message.into(),
            partial: None,
            invalid: false,
        }
    }

    pub(super) fn from_api(doing: &str, error: &ApiError) -> Self {
        if error.is_conflict() {
            return Self::Conflict;
        }
        Self::Error {
            message: format!("{doing}: {error}"),
            partial: None,
            invalid: error.is_invalid(),
        }
    }
}

impl From<compose::ComposeError> for Trouble {
    fn from(error: compose::ComposeError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<PipelineError> for Trouble {
    fn from(error: PipelineError) -> Self {
        let message = error.to_string();
        let partial = match error {
            PipelineError::Fatal { partial, .. } => Some(partial),
            PipelineError::Run { .. }
            | PipelineError::Credential { .. }
            | PipelineError::Bootstrap { .. }
            | PipelineError::OutOfOrder => None,
        };
        Self::Error {
            message,
            partial,
            invalid: false,
        }
    }
}

/// When normal events of functions are told.
#[derive(Clone, Copy, Debug)]
enum Telling {
    Now,
    /// Unless the XR is ready in the next seconds: steps on the way that nobody could read in time
    /// would outnumber all other writes.
    IfItLasts,
}

impl<'a> Reconcile<'a> {
    /// `fight` names who wakes the XR too often, if somebody does.
    pub(super) fn new(
        controller: &'a Controller,
        key: &'a Key,
        xr: Value,
        memo: &'a mut Memo,
        fight: Option<&'a str>,
    ) -> Self {
        let mut conditions = Conditions::of(&xr, &crate::now());
        conditions.responsive(fight);
        Self {
            controller,
            key,
            xr,
            memo,
            prepared: None,
            conditions,
            fight,
        }
    }

    pub(super) async fn run(mut self) -> Result<Next, Failure> {
        if object::annotation(&self.xr, keys::PAUSED) == Some("true") {
            return self.pause().await;
        }
        self.note_request();
        if object::is_deleting(&self.xr) {
            return self.delete().await;
        }
        let composition = self.prepare().await?;
        match self.compose(&composition).await {
            Ok(next) => Ok(next),
            Err(Trouble::Conflict) => Err(Failure::Conflict),
            Err(Trouble::Told(failure)) => Err(failure),
            Err(Trouble::Error {
                message,
                partial,
                invalid,
            }) => {
                self.write_prepared().await?;
                let events = status::report_failure(
                    &mut self.conditions,
                    &message,
                    partial.as_deref(),
                    invalid,
                );
                self.tell(&events, Telling::Now).await;
                self.write_conditions().await?;
                Err(Failure::Error(message))
            }
        }
    }

    fn record(&self, event: &Event) {
        self.controller.recorder.record(&self.xr, event);
    }

    async fn pause(mut self) -> Result<Next, Failure> {
        self.record(&Event::normal(
            reason::PAUSED,
            "Reconciliation is paused via the pause annotation",
        ));
        self.conditions.paused();
        self.write_conditions().await?;
        Ok(Next::Wait)
    }

    /// A reconcile that was asked for is told of once. The token that upstream writes to the status
    /// is pruned there by the XR's own schema, so it is only remembered.
    fn note_request(&mut self) {
        let Some(token) = object::annotation(&self.xr, keys::RECONCILE_REQUESTED_AT) else {
            return;
        };
        if self.memo.handled.as_deref() != Some(token) {
            let token = token.to_owned();
            self.record(&Event::normal(
                reason::RECONCILE_REQUEST_HANDLED,
                "Handling reconcile request",
            ));
            self.memo.handled = Some(token);
        }
    }

    /// Functions never run on delete: the finalizer goes, and garbage collection does the rest.
    async fn delete(mut self) -> Result<Next, Failure> {
        self.controller.deps.forget(self.key);
        self.controller.recorder.withdraw(object::uid(&self.xr));
        let mut without = self.xr.clone();
        prepare::remove_finalizer(&mut without, keys::COMPOSITE_FINALIZER);
        if without != self.xr {
            self.controller.context.metrics.wrote("composite");
            let written = self
                .controller
                .context
                .api
                .replace(&self.controller.kind, &without);
            match written.await {
                Ok(written) if object::finalizers(&written).next().is_none() => {
                    return Ok(Next::Wait);
                }
                Ok(written) => self.learn(written),
                Err(error) if error.is_not_found() => return Ok(Next::Wait),
                Err(error) if error.is_conflict() => return Err(Failure::Conflict),
                Err(error) => {
                    let message = format!("cannot remove composite resource finalizer: {error}");
                    self.record(&Event::warning(reason::DELETE, message.as_str()));
                    self.conditions.deleting();
                    self.conditions.failed(&message);
                    self.write_conditions().await?;
                    return Err(Failure::Error(message));
                }
            }
        }
        self.tell_what_is_left().await;
        self.conditions.synced();
        self.write_conditions().await?;
        Ok(Next::Wait)
    }

    /// Something keeps the deleted XR, such as a foreground deletion: says which composed resource
    /// does not go, and why. Each change of one wakes the XR again.
    async fn tell_what_is_left(&mut self) {
        let Ok(left) = self.observe().await else {
            self.conditions.deleting();
            return;
        };
        let going = || {
            let all = left.values().map(|r| &*r.object);
            all.filter(|o| object::is_deleting(o))
        };
        let says = |object: &Value, kind: &str| {
            let found = condition::find(object, kind)?;
            let words = found.get("message")?.as_str().filter(|m| !m.is_empty())?;
            // What it said before it was to be deleted does not count.
            let holds = kind == "Synced" || found["reason"] == "Deleting";
            (holds && found["status"] == "False").then(|| words.to_owned())
        };
        let about = |object: &Value| {
            let kind = object::gvk(object).kind;
            format!("{kind} {}", object::name(object))
        };
        let failing = going().find_map(|object| {
            let words = says(object, "Synced")?;
            Some(format!("cannot delete {}: {words}", about(object)))
        });
        let waiting = || {
            going().find_map(|object| {
                let words = says(object, "Ready")?;
                Some(format!(
                    "waiting for {} to be deleted: {words}",
                    about(object)
                ))
            })
        };
        // Said once: a condition that is set twice has a new time whenever it is looked at.
        if let Some(failing) = failing {
            self.record(&Event::warning(reason::DELETE, failing.as_str()));
            self.conditions.deleting_behind(&failing);
        } else if let Some(waiting) = waiting() {
            self.conditions.deleting_behind(&waiting);
        } else {
            self.conditions.deleting();
        }
    }

    /// Finalizer, Composition, revision and label. They are written with what comes next.
    async fn prepare(&mut self) -> Result<Composition, Failure> {
        let context = &self.controller.context;
        let prepared = prepare::prepare(
            &self.controller.xrd,
            &self.xr,
            Catalogue {
                compositions: &context.catalogue.compositions(),
                revisions: &context.catalogue.revisions(),
            },
        );
        if prepared.xr == self.xr {
            prepared.events.iter().for_each(|event| self.record(event));
        } else {
            self.xr = prepared.xr;
            self.prepared = Some(prepared.events);
        }
        match prepared.outcome {
            Ok((_, composition)) => Ok(composition),
            Err(failure) => {
                self.write_prepared().await?;
                self.record(&Event::warning(failure.reason, failure.message.as_str()));
                self.conditions.failed(&failure.message);
                self.write_conditions().await?;
                Err(Failure::Error(failure.message))
            }
        }
    }

    /// Writes the XR if it is prepared and not written.
    pub(super) async fn write_prepared(&mut self) -> Result<(), Failure> {
        let Some(events) = self.prepared.take() else {
            return Ok(());
        };
        let context = &self.controller.context;
        context.metrics.wrote("composite");
        match context.api.replace(&self.controller.kind, &self.xr).await {
            Ok(written) => self.learn(written),
            // Gone meanwhile: the watch will tell.
            Err(error) if error.is_not_found() => return Err(Failure::Conflict),
            Err(error) if error.is_conflict() => return Err(Failure::Conflict),
            Err(error) => {
                let message = format!("cannot update composite resource: {error}");
                self.record(&Event::warning(reason::INIT, message.as_str()));
                self.conditions.failed(&message);
                self.write_conditions().await?;
                return Err(Failure::Error(message));
            }
        }
        events.iter().for_each(|event| self.record(event));
        Ok(())
    }

    async fn compose(&mut self, composition: &Composition) -> Result<Next, Trouble> {
        let observed = self.observe().await?;
        let outcome = self.run_pipeline(composition, &observed).await?;
        let scopes = self.scopes(&outcome, &observed).await;
        let rendered = compose::render(&self.xr, &outcome.desired, &observed, &scopes)?;
        let refs = compose::resource_refs(&self.xr, &rendered);
        self.depend(&outcome, &refs);
        self.collect_garbage(&observed, &rendered).await?;
        self.apply_refs(&refs).await?;
        let (applied, mut refused) = self.apply_composed(&observed, &rendered).await?;
        self.publish(&outcome).await?;
        let report = status::report(
            &self.xr,
            self.conditions.clone(),
            &outcome,
            &rendered,
            &applied,
        );
        self.apply_status(&report.apply).await?;
        let mut events = report.events;
        events.append(&mut refused);
        if report.ready {
            self.controller.recorder.withdraw(object::uid(&self.xr));
            self.tell(&events, Telling::Now).await;
        } else {
            self.tell(&events, Telling::IfItLasts).await;
            for event in &report.not_yet {
                self.controller.recorder.record_later(&self.xr, event);
            }
        }
        self.memo.seeds = outcome.requirements;
        Ok(self.next(outcome.ttl))
    }

    async fn run_pipeline(
        &mut self,
        composition: &Composition,
        observed: &Observed,
    ) -> Result<Outcome, Trouble> {
        let connection = self.own_connection().await?;
        let state = compose::observed_state(&self.xr, connection, observed);
        let mut pipeline = Pipeline::new(
            composition.pipeline.clone(),
            state,
            identity(&self.xr, observed),
            self.memo.seeds.clone(),
        );
        let mut effect = pipeline.start();
        loop {
            effect = match effect {
                Effect::Done(outcome) => return Ok(*outcome),
                Effect::Fetch(wanted) => {
                    let fetched = self.fetch(&wanted).await;
                    pipeline.fetched(&fetched)?
                }
                Effect::Call {
                    function, request, ..
                } => {
                    let runner = &self.controller.context.runner;
                    let reply = runner.run(&function, *request).await;
                    pipeline.replied(reply.map_err(|e| e.to_string()))?
                }
            };
        }
    }

    /// What the XR depends on from now on. It has been known before what was fetched and what is
    /// applied next, so that no change in between is missed.
    fn depend(&self, outcome: &Outcome, refs: &[ResourceRef]) {
        let namespace = object::namespace(&self.xr);
        let mut dependencies: BTreeSet<Dependency> = refs
            .iter()
            .map(|r| Dependency::composed(r, namespace))
            .collect();
        let selectors = outcome.requirements.values().flat_map(|r| r.values());
        dependencies.extend(selectors.map(Dependency::required));
        self.controller.deps.set(self.key, dependencies);
    }

    async fn publish(&mut self, outcome: &Outcome) -> Result<(), Trouble> {
        if !self.controller.xrd.scope.is_legacy() {
            return Ok(());
        }
        let details = outcome.desired.composite.as_ref().map(|c| &c.connection);
        let keys = &self.controller.xrd.spec.connection_secret_keys;
        let details = details
            .into_iter()
            .flatten()
            .filter(|(key, _)| keys.is_empty() || keys.contains(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let published = connection::publish(&self.controller.context, &self.xr, details).await;
        match published {
            Ok(false) => Ok(()),
            Err(ConnectionError::Conflict) => Err(Trouble::Conflict),
            Err(ConnectionError::Other(error)) => Err(Trouble::new(format!(
                "cannot publish connection details: {error}"
            ))),
            Ok(true) => {
                self.xr["status"]["connectionDetails"] = json!({"lastPublishedTime": crate::now()});
                self.record(&Event::normal(
                    reason::PUBLISH,
                    "Successfully published connection details",
                ));
                Ok(())
            }
        }
    }

    /// Tells events to the XR, and to its claim what is meant for it.
    async fn tell(&self, events: &[TargetedEvent], normal: Telling) {
        let recorder = &self.controller.recorder;
        let tell = |about: &Value, event: &Event| match (event.kind, normal) {
            (EventKind::Normal, Telling::IfItLasts) => recorder.record_later(about, event),
            (EventKind::Normal, Telling::Now) | (EventKind::Warning, _) => {
                recorder.record(about, event);
            }
        };
        for event in events {
            tell(&self.xr, &event.composite);
        }
        if events.iter().all(|e| e.claim.is_none()) {
            return;
        }
        if let Some(claim) = self.claim().await {
            for event in events.iter().filter_map(|e| e.claim.as_ref()) {
                tell(&claim, event);
            }
        }
    }

    /// Writes the conditions, and nothing else, if they changed.
    async fn write_conditions(&mut self) -> Result<(), Failure> {
        if !self.conditions.differ_from(&self.xr) {
            return Ok(());
        }
        let mut changed = self.xr.clone();
        if !changed["status"].is_object() {
            changed["status"] = json!({});
        }
        changed["status"]["conditions"] = self.conditions.to_json();
        let context = &self.controller.context;
        context.metrics.wrote("status");
        let written = context.api.replace_status(&self.controller.kind, &changed);
        match written.await {
            Ok(written) => {
                self.learn(written);
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(Failure::from_api(
                "cannot update composite resource status",
                &error,
            )),
        }
    }

    /// Takes the answer to an own write.
    pub(super) fn learn(&mut self, xr: Value) {
        self.controller.xrs.learn(&xr);
        self.conditions.at_generation(object::generation(&xr));
        self.conditions.responsive(self.fight);
        self.xr = slim(xr);
    }

    fn next(&self, ttl: Option<Duration>) -> Next {
        if self.fight.is_some() {
            return Next::After(WAIT_INTERVAL * 10);
        }
        let poll = object::annotation(&self.xr, keys::POLL_INTERVAL)
            .and_then(parse_duration)
            .map(|d| d.clamp(TTL_MIN, POLL_MAX));
        let ttl = ttl.filter(|t| *t <= TTL_SHORT_MAX).map(|t| t.max(TTL_MIN));
        match ttl.or(poll) {
            Some(delay) => Next::After(jitter(delay)),
            None => Next::Wait,
        }
    }

    pub(super) fn machinery(&self) -> Machinery<'_> {
        Machinery::of(&self.xr, self.controller.xrd.scope)
    }
}

/// What functions see, in short: it differs whenever an object differs.
fn identity(xr: &Value, observed: &Observed) -> String {
    let mut text = String::new();
    for object in std::iter::once(xr).chain(observed.values().map(|r| &*r.object)) {
        text.push_str(object::uid(object));
        text.push('@');
        text.push_str(object::resource_version(object));
        text.push(' ');
    }
    text
}

/// A Go duration such as `1m30s`, whole units only.
fn parse_duration(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, tail) = rest.split_at(digits);
        let number: u64 = number.parse().ok()?;
        let unit = tail
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit);
        total = total.checked_add(match unit {
            "ms" => Duration::from_millis(number),
            "s" => Duration::from_secs(number),
            "m" => Duration::from_secs(number.checked_mul(60)?),
            "h" => Duration::from_secs(number.checked_mul(3600)?),
            _ => return None,
        })?;
        rest = tail;
    }
    (!total.is_zero()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations_are_read() {
        assert_eq!(parse_duration("90s"), Some(Duration::from_secs(90)));
        assert_eq!(parse_duration("1h2m3s"), Some(Duration::from_secs(3723)));
        assert_eq!(parse_duration("500ms"), Some(Duration::from_millis(500)));
        let sum = format!("{0}s{0}s", u64::MAX);
        for bad in [
            "",
            "s",
            "1",
            "1x",
            "-1s",
            "0s",
            "99999999999999999999s",
            &sum,
        ] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
    }
}
