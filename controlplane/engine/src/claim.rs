//! The controller of the claims of one XRD.

use std::collections::BTreeMap;
use std::sync::Arc;

use ecp_meta::{condition, keys, object};
use ecp_xr::claim::{self, Binding, Bound, CLAIM_MANAGER, ClaimError};
use ecp_xr::event::{Event, reason};
use ecp_xr::prepare;
use ecp_xr::status::{Conditions, PAUSED_MESSAGE};
use ecp_xr::xrd::Xrd;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::api::{ApiError, Kind, Propagation};
use crate::composite::{Mark, Running, composite_kind};
use crate::connection::{self, ConnectionError};
use crate::context::Context;
use crate::controller::{self, Failure, Next, Reconciler};
use crate::definition::Part;
use crate::events::Recorder;
use crate::informer::{Handler, Informer, Key, key_of};
use crate::limits::WAIT_INTERVAL;
use crate::queue::Queue;

/// Tries to find a free name for a new XR.
const NAME_TRIES_MAX: usize = 10;

/// The controller of the claims of one XRD.
#[derive(Debug)]
struct Controller {
    context: Arc<Context>,
    name: String,
    xrd: Arc<Xrd>,
    kind: Kind,
    composite: Kind,
    recorder: Recorder,
    claims: Arc<Informer>,
    xrs: Arc<Informer>,
    /// What was applied to XRs, by claim.
    marks: Mutex<BTreeMap<Key, Mark>>,
}

/// The kind of an XRD's claims.
pub(crate) fn claim_kind(xrd: &Xrd) -> Option<Kind> {
    let names = xrd.spec.claim_names.as_ref()?;
    Some(Kind::new(xrd.claim_gvk()?, &names.plural, true))
}

/// Starts the controller of an XRD's claims; `None` if it offers none.
pub(crate) fn start(context: &Arc<Context>, xrd: Arc<Xrd>) -> Option<Running> {
    let kind = claim_kind(&xrd)?;
    let running = Running::start(context, |stop, ready| {
        run(Arc::clone(context), xrd, kind, stop, ready)
    });
    Some(running)
}

async fn run(
    context: Arc<Context>,
    xrd: Arc<Xrd>,
    kind: Kind,
    stop: CancellationToken,
    ready: watch::Sender<bool>,
) {
    context.mapper.learn(kind.clone());
    let queue: Arc<Queue<Key>> = Arc::new(Queue::new());
    let own: Handler = {
        let queue = Arc::clone(&queue);
        Arc::new(move |change| {
            if let Some(claim) = change.object() {
                queue.add(key_of(claim));
            }
        })
    };
    let of_xrs: Handler = {
        let queue = Arc::clone(&queue);
        let wanted = kind.gvk.clone();
        Arc::new(move |change| {
            for xr in [change.old, change.new].into_iter().flatten() {
                if let Some(claim) = claim_of(xr, &wanted.kind) {
                    queue.add(claim);
                }
            }
        })
    };
    let claims = context.informers.subscribe(&kind, own);
    let composite = composite_kind(&xrd);
    let xrs = context.informers.subscribe(&composite, of_xrs);
    let name = format!("claim/{}", xrd.name);
    let controller = Arc::new(Controller {
        recorder: context
            .recorder
            .of_component(Part::Claim.component())
            .for_controller(&name),
        name,
        xrd,
        kind,
        composite,
        claims: Arc::clone(claims.informer()),
        xrs: Arc::clone(xrs.informer()),
        marks: Mutex::default(),
        context: Arc::clone(&context),
    });
    let synced = async {
        for informer in [&controller.claims, &controller.xrs] {
            while !informer.wait_synced().await {}
        }
    };
    tokio::select! {
        () = stop.cancelled() => return,
        () = synced => {}
    }
    ready.send_replace(true);
    controller::run(
        controller,
        queue,
        context.reconciles_max,
        context.metrics.clone(),
        stop,
    )
    .await;
}

/// The claim an XR belongs to, if it is of this kind.
fn claim_of(xr: &Value, kind: &str) -> Option<Key> {
    let reference = xr.pointer("/spec/claimRef")?;
    let text = |field: &str| reference.get(field).and_then(Value::as_str);
    if text("kind") != Some(kind) {
        return None;
    }
    Some((text("namespace")?.to_owned(), text("name")?.to_owned()))
}

impl Reconciler for Controller {
    type Key = Key;

    fn name(&self) -> &str {
        &self.name
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Failure> {
        let Some(claim) = self.claims.get(key) else {
            self.marks.lock().remove(key);
            return Ok(Next::Wait);
        };
        let claim = Value::clone(&claim);
        if object::annotation(&claim, keys::PAUSED) == Some("true") {
            self.record(&claim, &Event::normal(reason::PAUSED, PAUSED_MESSAGE));
            let mut conditions = self.conditions(&claim);
            conditions.paused();
            self.write_conditions(&claim, &conditions).await?;
            return Ok(Next::Wait);
        }
        let xr = self.bound_composite(&claim).await?;
        if let Some(why) = xr
            .as_deref()
            .and_then(|xr| claim::bound_elsewhere(&claim, xr))
        {
            // Nothing that belongs to another claim is touched, not even on deletion.
            self.record(&claim, &Event::warning(reason::BIND, why.as_str()));
            let mut conditions = self.conditions(&claim);
            conditions.failed(&why);
            self.write_conditions(&claim, &conditions).await?;
            return Ok(Next::Wait);
        }
        if object::is_deleting(&claim) {
            return self.delete(claim, xr.as_deref()).await;
        }
        let (claim, xr) = self.bind(key, claim, xr.as_deref()).await?;
        self.propagate(&claim, &xr).await?;
        Ok(Next::Wait)
    }
}

impl Controller {
    fn record(&self, claim: &Value, event: &Event) {
        self.recorder.record(claim, event);
    }

    fn conditions(&self, claim: &Value) -> Conditions {
        Conditions::of(claim, &crate::now())
    }

    /// The XR the claim refers to, from the cache, then from the API.
    async fn bound_composite(&self, claim: &Value) -> Result<Option<Arc<Value>>, Failure> {
        let Some(name) = claim::composite_name(claim) else {
            return Ok(None);
        };
        if let Some(xr) = self.xrs.get(&(String::new(), name.to_owned())) {
            return Ok(Some(xr));
        }
        match self.context.api.find(&self.composite, None, name).await {
            Ok(found) => Ok(found.map(Arc::new)),
            Err(error) => {
                let doing = "cannot get bound composite resource";
                Err(self.failed(claim, reason::BIND, doing, &error).await)
            }
        }
    }

    /// Tells of a failure in event and condition.
    async fn failed(&self, claim: &Value, reason: &str, doing: &str, error: &ApiError) -> Failure {
        if error.is_conflict() {
            return Failure::Conflict;
        }
        self.failed_with(claim, reason, format!("{doing}: {error}"))
            .await
    }

    async fn failed_with(&self, claim: &Value, reason: &str, message: String) -> Failure {
        self.record(claim, &Event::warning(reason, message.as_str()));
        let mut conditions = self.conditions(claim);
        conditions.failed(&message);
        match self.write_conditions(claim, &conditions).await {
            Ok(()) => Failure::Error(message),
            Err(failure) => failure,
        }
    }

    async fn write_conditions(
        &self,
        claim: &Value,
        conditions: &Conditions,
    ) -> Result<(), Failure> {
        if !conditions.differ_from(claim) {
            return Ok(());
        }
        let mut changed = claim.clone();
        if !changed["status"].is_object() {
            changed["status"] = json!({});
        }
        changed["status"]["conditions"] = conditions.to_json();
        self.write_status(&changed).await
    }

    async fn write_status(&self, changed: &Value) -> Result<(), Failure> {
        self.context.metrics.wrote("status");
        match self.context.api.replace_status(&self.kind, changed).await {
            Ok(written) => {
                self.claims.learn(&written);
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(Failure::from_api("cannot update claim status", &error)),
        }
    }

    async fn delete(&self, claim: Value, xr: Option<&Value>) -> Result<Next, Failure> {
        let mut conditions = self.conditions(&claim);
        let foreground = claim
            .pointer("/spec/compositeDeletePolicy")
            .and_then(Value::as_str)
            == Some("Foreground");
        if let Some(xr) = xr {
            if !(foreground && object::is_deleting(xr)) {
                let propagation = if foreground {
                    Propagation::Foreground
                } else {
                    Propagation::Background
                };
                self.context.metrics.wrote("delete");
                let deleted = self.context.api.delete(&self.composite, xr, propagation);
                if let Err(error) = deleted.await {
                    let doing = "cannot delete bound composite resource";
                    return Err(self.failed(&claim, reason::DELETE, doing, &error).await);
                }
            }
            if foreground {
                // Said once: a condition that is set twice has a new time whenever it is looked at.
                match held_up_by(xr) {
                    Some(why) => {
                        self.record(&claim, &Event::warning(reason::DELETE, why));
                        conditions.deleting_behind(why);
                    }
                    None => conditions.deleting(),
                }
                // The XR's end wakes the claim; this is for when the watch breaks off.
                self.write_conditions(&claim, &conditions).await?;
                return Ok(Next::After(WAIT_INTERVAL * 5));
            }
        }
        self.record(
            &claim,
            &Event::normal(reason::DELETE, "Successfully deleted composite resource"),
        );
        let mut without = claim.clone();
        prepare::remove_finalizer(&mut without, keys::CLAIM_FINALIZER);
        if without != claim {
            self.context.metrics.wrote("claim");
            match self.context.api.replace(&self.kind, &without).await {
                Ok(written) if object::finalizers(&written).next().is_none() => {
                    return Ok(Next::Wait);
                }
                Ok(written) => {
                    self.claims.learn(&written);
                    conditions.deleting();
                    conditions.synced();
                    self.write_conditions(&written, &conditions).await?;
                }
                Err(error) if error.is_not_found() => {}
                Err(error) => {
                    let doing = "cannot remove finalizer from claim";
                    return Err(self.failed(&claim, reason::DELETE, doing, &error).await);
                }
            }
        }
        Ok(Next::Wait)
    }

    /// Writes claim and XR as far as they differ; returns both as they are then.
    async fn bind(
        &self,
        key: &Key,
        claim: Value,
        xr: Option<&Value>,
    ) -> Result<(Value, Value), Failure> {
        let bound = match self.bound(&claim, xr) {
            Ok(bound) => bound,
            Err(error) => {
                let message =
                    format!("cannot bind and sync claim with composite resource: {error}");
                return Err(self.failed_with(&claim, reason::BIND, message).await);
            }
        };
        let mut current = claim;
        if bound.claim != current {
            self.context.metrics.wrote("claim");
            current = match self.context.api.replace(&self.kind, &bound.claim).await {
                Ok(written) => written,
                Err(error) if error.is_not_found() => return Err(Failure::Conflict),
                Err(error) => {
                    let doing = "cannot bind and sync claim with composite resource: \
                                 cannot update claim";
                    return Err(self.failed(&current, reason::BIND, doing, &error).await);
                }
            };
            self.claims.learn(&current);
        }
        if let Some(xr) = xr {
            let marks = self.marks.lock();
            if marks
                .get(key)
                .is_some_and(|mark| mark.still_holds(&bound.composite, xr))
            {
                return Ok((current, xr.clone()));
            }
        }
        self.context.metrics.wrote("composite");
        let applied = self
            .context
            .api
            .apply(&self.composite, &bound.composite, CLAIM_MANAGER)
            .await;
        match applied {
            Ok(applied) => {
                self.xrs.learn(&applied);
                let mark = Mark::new(&bound.composite, &applied);
                self.marks.lock().insert(key.clone(), mark);
                let newly = xr.is_none_or(|xr| xr.pointer("/spec/claimRef").is_none());
                if newly {
                    self.record(
                        &current,
                        &Event::normal(reason::BIND, "Successfully bound composite resource"),
                    );
                }
                Ok((current, applied))
            }
            Err(error) => {
                let doing = "cannot bind and sync claim with composite resource: \
                             cannot apply composite resource";
                Err(self.failed(&current, reason::BIND, doing, &error).await)
            }
        }
    }

    /// What claim and XR should be.
    fn bound(&self, claim: &Value, xr: Option<&Value>) -> Result<Bound, ClaimError> {
        let binding = Binding {
            composite: &self.composite.gvk,
            new_name: &self.free_name(claim),
            enforced: self.xrd.spec.enforced_composition_ref.is_some(),
        };
        let mut bound = claim::bind(claim, xr, binding)?;
        prepare::add_finalizer(&mut bound.claim, keys::CLAIM_FINALIZER);
        Ok(bound)
    }

    /// A name that no XR has.
    fn free_name(&self, claim: &Value) -> String {
        let mut name = String::new();
        for _ in 0..NAME_TRIES_MAX {
            let suffix: String = (0..claim::SUFFIX_LEN)
                .map(|_| {
                    let at = rand::random_range(0..claim::SUFFIX_ALPHABET.len());
                    claim::SUFFIX_ALPHABET
                        .get(at)
                        .map_or('x', |b| char::from(*b))
                })
                .collect();
            name = claim::new_composite_name(claim, &suffix);
            if self.xrs.get(&(String::new(), name.clone())).is_none() {
                break;
            }
        }
        name
    }

    /// Copies status and connection secret to the claim.
    async fn propagate(&self, claim: &Value, xr: &Value) -> Result<(), Failure> {
        let now = crate::now();
        let mut published = None;
        if claim::is_ready(xr) {
            self.recorder.withdraw(object::uid(claim));
            match connection::propagate(&self.context, claim, xr).await {
                Ok(false) => {}
                Ok(true) => {
                    published = Some(now.as_str());
                    self.record(
                        claim,
                        &Event::normal(
                            reason::PROPAGATE,
                            "Successfully propagated connection details from composite resource",
                        ),
                    );
                }
                Err(ConnectionError::Conflict) => return Err(Failure::Conflict),
                Err(ConnectionError::Other(error)) => {
                    let message = format!(
                        "cannot propagate connection details from composite resource: {error}"
                    );
                    return Err(self.failed_with(claim, reason::PROPAGATE, message).await);
                }
            }
        } else {
            let event = Event::normal(reason::BIND, "Composite resource is not yet ready");
            self.recorder.record_later(claim, &event);
        }
        let status = claim::status(claim, xr, published, &now);
        if claim.get("status") == Some(&status) {
            return Ok(());
        }
        let mut changed = claim.clone();
        changed["status"] = status;
        self.write_status(&changed).await
    }
}

/// Why the deletion of an XR does not get on, as its own controller says.
fn held_up_by(xr: &Value) -> Option<&str> {
    let ready = condition::find(xr, "Ready").filter(|c| c["reason"] == "Deleting")?;
    let message = ready.get("message")?.as_str();
    message.filter(|m| !m.is_empty())
}
