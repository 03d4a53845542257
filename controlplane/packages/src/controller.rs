//! Running a reconciler over kube's controller: one object at a time, with backoff.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use ecp_meta::object;
use ecp_xr::event::Event;
use ecp_xr::status::{Conditions, PAUSED_MESSAGE};
use futures::StreamExt as _;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use kube::runtime::controller::{Action, Config as Limits};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{Controller, watcher};
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::Shared;
use crate::api::{Api, ApiError, Mode};
use crate::events::Recorder;
use crate::kinds::Kind;
use crate::limits::{BACKOFF, CONFLICT_PAUSE, RECONCILE_TIMEOUT, RECONCILES_MAX};

/// What follows a reconcile that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing, until something changes.
    Wait,
    /// Another one after a while.
    After(Duration),
}

/// Why a reconcile did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Somebody else wrote first: once more, without a word.
    #[error("somebody else wrote first")]
    Conflict,
    /// Something is wrong; it has been told in conditions and events.
    #[error("{0}")]
    Error(String),
}

impl Failure {
    /// A failed API call, in the words of what was being done.
    pub(crate) fn from_api(doing: &str, error: &ApiError) -> Self {
        if error.is_conflict() {
            Self::Conflict
        } else {
            Self::Error(format!("{doing}: {error}"))
        }
    }
}

/// Brings one object to where it should be.
pub(crate) trait Reconciler: Send + Sync + 'static {
    /// Name in logs.
    fn name(&self) -> String;

    /// The kind it reconciles.
    fn kind(&self) -> Kind;

    /// Reconciles the object of a name. Called for one name at most once at a time.
    fn reconcile(&self, name: &str) -> impl Future<Output = Result<Next, Failure>> + Send;
}

/// Which objects are to be reconciled when one of another kind changes.
pub(crate) enum Wakes {
    /// The one that such a function names.
    One(fn(&DynamicObject) -> Option<String>),
    /// All.
    All,
}

/// Runs a reconciler until stopped, then lets what is under way end.
pub(crate) async fn run<R: Reconciler>(
    api: Api,
    reconciler: R,
    watches: Vec<(Kind, Wakes)>,
    stop: CancellationToken,
) {
    let kind = reconciler.kind();
    let resource = kind.resource();
    let objects: kube::Api<DynamicObject> = kube::Api::all_with(api.client.clone(), &resource);
    let mut controller =
        Controller::new_with(objects, watcher::Config::default(), resource.clone())
            .with_config(Limits::default().concurrency(RECONCILES_MAX))
            .graceful_shutdown_on(stop.cancelled_owned());
    for (other, wakes) in watches {
        let (own, store) = (resource.clone(), controller.store());
        let to = other.resource();
        let others: kube::Api<DynamicObject> = kube::Api::all_with(api.client.clone(), &to);
        controller =
            controller.watches_with(others, to, watcher::Config::default(), move |changed| {
                let names: Vec<String> = match &wakes {
                    Wakes::One(of) => of(&changed).into_iter().collect(),
                    Wakes::All => store.state().iter().map(|o| o.name_any()).collect(),
                };
                let own = own.clone();
                names
                    .into_iter()
                    .map(move |n| ObjectRef::new_with(&n, own.clone()))
            });
    }
    let context = Arc::new(Context {
        reconciler,
        failures: Mutex::default(),
    });
    let results = controller.run(reconcile, failed, Arc::clone(&context));
    results
        .for_each(|result| async {
            if let Err(error) = result {
                tracing::debug!(controller = context.reconciler.name(), %error, "not reconciled");
            }
        })
        .await;
}

struct Context<R> {
    reconciler: R,
    /// Failures in a row by name.
    failures: Mutex<HashMap<String, u32>>,
}

async fn reconcile<R: Reconciler>(
    object: Arc<DynamicObject>,
    context: Arc<Context<R>>,
) -> Result<Action, Failure> {
    let name = object.name_any();
    let work = context.reconciler.reconcile(&name);
    let next = tokio::time::timeout(RECONCILE_TIMEOUT, work)
        .await
        .unwrap_or_else(|_| Err(Failure::Error("it took too long".into())))?;
    context.failures.lock().remove(&name);
    Ok(match next {
        Next::Wait => Action::await_change(),
        Next::After(pause) => Action::requeue(pause),
    })
}

fn failed<R: Reconciler>(
    object: Arc<DynamicObject>,
    failure: &Failure,
    context: Arc<Context<R>>,
) -> Action {
    if matches!(failure, Failure::Conflict) {
        return Action::requeue(CONFLICT_PAUSE);
    }
    let mut failures = context.failures.lock();
    let count = failures.entry(object.name_any()).or_insert(0);
    let pause = BACKOFF
        .0
        .saturating_mul(1 << (*count).min(16))
        .min(BACKOFF.1);
    *count = count.saturating_add(1);
    tracing::debug!(
        controller = context.reconciler.name(), object = object.name_any(), %failure, ?pause,
        "reconcile failed"
    );
    Action::requeue(pause)
}

/// An object that is being reconciled, as it was and as its status shall be.
pub(crate) struct Subject<'a> {
    pub(crate) api: &'a Api,
    pub(crate) recorder: &'a Recorder,
    pub(crate) component: String,
    pub(crate) kind: Kind,
    pub(crate) object: Value,
    pub(crate) conditions: Conditions,
}

impl<'a> Subject<'a> {
    /// The object of a name, as it is now; `None` when it is gone. `what` is its kind in words.
    pub(crate) async fn load(
        reconciler: &impl Reconciler,
        shared: &'a Shared,
        what: &str,
        name: &str,
    ) -> Result<Option<Self>, Failure> {
        let found = shared.api.find(&reconciler.kind(), None, name).await;
        let found = found.map_err(|e| Failure::from_api(&format!("cannot get {what}"), &e))?;
        Ok(found.map(|object| Self {
            api: &shared.api,
            recorder: &shared.recorder,
            component: reconciler.name(),
            kind: reconciler.kind(),
            conditions: Conditions::of(&object, &crate::now()),
            object,
        }))
    }

    /// Tells an event about it.
    pub(crate) async fn tell(&self, event: Event) {
        self.recorder
            .record(&self.component, &self.object, &event)
            .await;
    }

    /// Replaces the object with a changed one, unless they are the same.
    pub(crate) async fn write(&mut self, changed: Value) -> Result<(), ApiError> {
        if changed != self.object {
            self.object = self.api.replace(&self.kind, &changed, Mode::Do).await?;
            self.conditions
                .at_generation(object::generation(&self.object));
        }
        Ok(())
    }

    /// Writes fields of the status and the conditions, where they differ.
    pub(crate) async fn write_status(&mut self, fields: &[(&str, Value)]) -> Result<(), Failure> {
        let mut changed = self.object.clone();
        for (field, value) in fields {
            if value.is_null() {
                if let Some(status) = changed["status"].as_object_mut() {
                    status.remove(*field);
                }
            } else {
                changed["status"][*field] = value.clone();
            }
        }
        if self.conditions.differ_from(&self.object) {
            changed["status"]["conditions"] = self.conditions.to_json();
        }
        if changed != self.object {
            let written = self.api.replace_status(&self.kind, &changed).await;
            self.object = written.map_err(|e| Failure::from_api("cannot update status", &e))?;
        }
        Ok(())
    }

    /// Handles the annotation that pauses reconciliation; whether to go on.
    pub(crate) async fn go_on(&mut self) -> Result<bool, Failure> {
        if object::annotation(&self.object, "crossplane.io/paused") == Some("true") {
            self.tell(Event::normal("ReconciliationPaused", PAUSED_MESSAGE))
                .await;
            self.conditions.paused();
            self.write_status(&[]).await?;
            return Ok(false);
        }
        let synced = ecp_meta::condition::find(&self.object, "Synced");
        if synced.is_some_and(|c| c["reason"] == "ReconcilePaused") {
            // What was true before may not be now. The write wakes the reconciler again.
            let mut clean = self.object.clone();
            clean["status"]["conditions"] = Value::Array(Vec::new());
            let written = self.api.replace_status(&self.kind, &clean).await;
            written.map_err(|e| Failure::from_api("cannot update status", &e))?;
            return Ok(false);
        }
        Ok(true)
    }
}
