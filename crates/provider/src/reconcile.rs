//! Does what [`crate::decide`] decides: the thin adapter between the decision, the Kubernetes API
//! and the cloud.

mod ending;
mod steps;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, PatchParams, PostParams};
use serde_json::Value;
use tokio::time::{Instant, timeout};
use tracing::debug;

use ecp_meta::{condition, keys};

use crate::backoff::{Backoff, jittered};
use crate::blocked::{Blocked, Waiting};
use crate::clock::Clock;
use crate::config::Configs;
use crate::creation::Creation;
use crate::decide::{Facts, Progress, Step, Stop, decide};
use crate::erased::{ErasedExternal, Observed, Session};
use crate::events::Recorder;
use crate::external::{ErrorClass, ExternalError, Readiness};
use crate::failure::Failure;
use crate::key::Key;
use crate::kind::{KindInfo, Naming};
use crate::limits;
use crate::memory::{Due, Memory};
use crate::metrics::KindMetrics;
use crate::policy::Policies;
use crate::runtime::{Options, Wakers};
use crate::status::Report;

/// Reconciles the objects of one kind.
pub(crate) struct Reconciler {
    pub(crate) kind: KindInfo,
    pub(crate) resource: ApiResource,
    pub(crate) client: Client,
    pub(crate) external: Box<dyn ErasedExternal>,
    pub(crate) configs: Option<Arc<Configs>>,
    pub(crate) memory: Memory,
    /// Shared by all kinds of the provider.
    pub(crate) blocked: Arc<Blocked>,
    /// Has resources of any kind of the provider looked at.
    pub(crate) wakers: Arc<Wakers>,
    pub(crate) recorder: Recorder,
    pub(crate) metrics: KindMetrics,
    pub(crate) options: Options,
    pub(crate) clock: Clock,
}

/// How a reconcile ended, and so when the object is looked at again.
#[derive(Debug)]
enum Ending {
    Stopped(Stop),
    Released,
    Gone,
    Failed(Failure),
}

/// One reconcile.
struct Run<'a> {
    on: &'a Reconciler,
    key: &'a Key,
    api: Api<DynamicObject>,
    object: DynamicObject,
    /// Generation of the spec that is acted upon.
    generation: i64,
    facts: Facts,
    progress: Progress,
    session: Option<Arc<dyn Session>>,
    observed: Option<Observed>,
    report: Report,
}

impl Reconciler {
    /// Reconciles one object and says when it is due again.
    pub(crate) async fn reconcile(&self, key: &Key) -> Due {
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &key.namespace, &self.resource);
        let object = match in_time(api.get_opt(&key.name)).await {
            Ok(Some(object)) => object,
            Ok(None) => return Due::Never,
            Err(failure) => return self.retry(key, &failure),
        };
        self.memory.handled(key, &object);
        let mut run = Run {
            on: self,
            key,
            api,
            generation: object.metadata.generation.unwrap_or(0),
            facts: self.facts(&object),
            object,
            progress: Progress::default(),
            session: None,
            observed: None,
            report: Report::default(),
        };
        let ending = run.go().await;
        let due = run.finish(ending).await;
        self.metrics.set_counts(self.memory.counts());
        due
    }

    fn facts(&self, object: &DynamicObject) -> Facts {
        let meta = &object.metadata;
        let annotations = meta.annotations.clone().unwrap_or_default();
        let policies = match object.data.pointer("/spec/managementPolicies") {
            Some(Value::Array(list)) => {
                let list: Vec<&str> = list.iter().map(|p| p.as_str().unwrap_or("")).collect();
                Policies::parse(&list)
            }
            _ => Ok(Policies::ALL),
        };
        let creation = Creation::of(&annotations);
        let asked_to_delete = ready_reason(object) == Some("Deleting");
        let named = annotations
            .get(keys::EXTERNAL_NAME)
            .is_some_and(|n| !n.is_empty());
        let ours = keys::MANAGED_FINALIZER;
        Facts {
            paused: annotations.get(keys::PAUSED).is_some_and(|v| v == "true"),
            policies,
            deleting: meta.deletion_timestamp.is_some(),
            other_finalizers: meta.finalizers.iter().flatten().any(|f| f != ours),
            unnamed: self.kind.naming == Naming::ObjectName && !named,
            create_incomplete: creation.is_incomplete(),
            in_grace: !asked_to_delete
                && creation.succeeded_within(self.kind.creation_grace, self.clock.now()),
            deterministic: self.kind.naming.is_deterministic(),
            finds_by_tag: self.external.finds_by_tag(),
        }
    }

    /// The due time after a failure that is not shown on the object.
    fn retry(&self, key: &Key, failure: &Failure) -> Due {
        debug!(kind = self.kind.kind, %key, %failure, "will try again");
        let failures = self.failed(key);
        let backoff = match failure {
            Failure::Conflict => CONFLICT_BACKOFF,
            _ => BACKOFF,
        };
        after(backoff.delay(failures, rand::random()))
    }

    /// Counts a failure; returns how many there were before in a row.
    fn failed(&self, key: &Key) -> u32 {
        self.memory
            .update(key, |record| {
                let before = record.failures;
                record.failures = before.saturating_add(1);
                record.settles = 0;
                before
            })
            .unwrap_or(0)
    }

    fn settle_delay(&self, key: &Key) -> Duration {
        let backoff = Backoff {
            min: self.options.settle_min,
            max: self.options.settle_max,
        };
        let settles = self
            .memory
            .update(key, |record| {
                record.settles = record.settles.saturating_add(1);
                record.settles - 1
            })
            .unwrap_or(0);
        backoff.delay(settles, 1.0)
    }

    fn poll_delay(&self, object: &DynamicObject) -> Duration {
        let asked = object
            .metadata
            .annotations
            .as_ref()
            .and_then(|a| a.get(keys::POLL_INTERVAL))
            .and_then(|text| crate::duration::parse(text).ok())
            .map(|interval| interval.clamp(limits::POLL_MIN, limits::POLL_MAX));
        jittered(
            asked.unwrap_or(self.options.poll),
            limits::POLL_JITTER,
            rand::random(),
        )
    }

    fn write_params(&self) -> PostParams {
        PostParams {
            field_manager: Some(self.kind.provider.field_manager()),
            ..PostParams::default()
        }
    }

    fn patch_params(&self) -> PatchParams {
        PatchParams {
            field_manager: Some(self.kind.provider.field_manager()),
            ..PatchParams::default()
        }
    }
}

const BACKOFF: Backoff = Backoff {
    min: limits::BACKOFF_MIN,
    max: limits::BACKOFF_MAX,
};

const CONFLICT_BACKOFF: Backoff = Backoff {
    min: limits::CONFLICT_BACKOFF_MIN,
    max: limits::CONFLICT_BACKOFF_MAX,
};

impl Run<'_> {
    fn waiting(&self) -> Waiting {
        Waiting {
            kind: self.on.kind.kind,
            key: self.key.clone(),
        }
    }

    async fn go(&mut self) -> Ending {
        for _ in 0..limits::STEPS_MAX {
            let step = decide(&self.facts, &self.progress);
            debug!(kind = self.on.kind.kind, key = %self.key, ?step, "decided");
            let done = match step {
                Step::Stop(stop) => return Ending::Stopped(stop),
                Step::Release => match self.release().await {
                    Ok(()) => return Ending::Released,
                    Err(failure) => Err(failure),
                },
                Step::Initialize => self.initialize().await,
                Step::Connect => self.connect().await,
                Step::FindByTag => self.find_by_tag().await,
                Step::Observe => self.observe().await,
                Step::Prepare => self.prepare().await,
                Step::Create => self.create().await,
                Step::LateInitialize => self.late_initialize().await,
                Step::Update => self.update().await,
                Step::Delete => self.delete().await,
            };
            match done {
                Ok(()) => {}
                Err(Failure::Gone) => return Ending::Gone,
                Err(failure) => return Ending::Failed(failure),
            }
        }
        Ending::Failed(Failure::reported(
            "CannotObserveExternalResource",
            "the decision does not end",
        ))
    }
}

/// A call to the cloud, with a deadline.
async fn answer<T>(
    call: impl Future<Output = Result<T, ExternalError>>,
) -> Result<T, ExternalError> {
    match timeout(limits::EXTERNAL_CALL_TIME_MAX, call).await {
        Ok(result) => result,
        Err(_) => Err(ExternalError::transient("the cloud did not answer in time")),
    }
}

/// A call to the cloud, whose failure is shown on the object.
async fn external<T>(
    call: impl Future<Output = Result<T, ExternalError>>,
    what: &str,
    reason: &'static str,
) -> Result<T, Failure> {
    let result = answer(call).await;
    result.map_err(|error| not_done(&error, what, reason))
}

fn not_done(error: &ExternalError, what: &str, reason: &'static str) -> Failure {
    Failure::Reported {
        reason,
        message: format!("{what} failed: {}", error.message),
        class: error.class,
        ready: None,
    }
}

/// A call to the Kubernetes API, with a deadline.
async fn in_time<T>(call: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
    match timeout(limits::API_CALL_TIME_MAX, call).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Failure::of_api(&error)),
        Err(_) => Err(Failure::api_timeout()),
    }
}

/// How long to wait after `failures` earlier failures in a row.
fn retry_delay(class: ErrorClass, failures: u32, random: f64) -> Duration {
    match class {
        ErrorClass::Transient {
            retry_after: Some(asked),
        } => asked
            .min(limits::RETRY_AFTER_MAX)
            .max(BACKOFF.delay(0, random)),
        ErrorClass::Conflict => CONFLICT_BACKOFF.delay(failures, random),
        ErrorClass::Transient { retry_after: None }
        | ErrorClass::Refused
        | ErrorClass::NotFound => BACKOFF.delay(failures, random),
    }
}

fn after(delay: Duration) -> Due {
    Due::At(Instant::now() + delay)
}

fn text_of(ready: &Readiness) -> String {
    match ready {
        Readiness::Available => String::new(),
        Readiness::Creating(m) | Readiness::Unavailable(m) | Readiness::Deleting(m) => m.clone(),
    }
}

fn has_finalizer(object: &DynamicObject) -> bool {
    let mut finalizers = object.metadata.finalizers.iter().flatten();
    finalizers.any(|f| f == keys::MANAGED_FINALIZER)
}

fn add_finalizer(object: &mut DynamicObject) {
    if !has_finalizer(object) {
        let finalizers = object.metadata.finalizers.get_or_insert_default();
        finalizers.push(keys::MANAGED_FINALIZER.into());
    }
}

fn condition_is(object: &DynamicObject, kind: &str) -> bool {
    condition::is_true(&object.data, kind)
}

fn ready_reason(object: &DynamicObject) -> Option<&str> {
    condition::find(&object.data, "Ready")?
        .get("reason")?
        .as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// public-bugs A35.
    #[test]
    fn a_clouds_retry_after_is_obeyed_within_bounds() {
        let asks = |seconds| ErrorClass::Transient {
            retry_after: Some(Duration::from_secs(seconds)),
        };
        assert_eq!(retry_delay(asks(5), 9, 0.0), Duration::from_secs(5));
        assert_eq!(retry_delay(asks(0), 0, 1.0), limits::BACKOFF_MIN);
        assert_eq!(retry_delay(asks(86_400), 0, 0.0), limits::RETRY_AFTER_MAX);
    }

    #[test]
    fn conflicts_are_tried_sooner_than_failures() {
        let failure = ErrorClass::Transient { retry_after: None };
        for class in [failure, ErrorClass::Refused, ErrorClass::NotFound] {
            assert_eq!(retry_delay(class, 0, 1.0), limits::BACKOFF_MIN);
            assert_eq!(retry_delay(class, 99, 1.0), limits::BACKOFF_MAX);
        }
        let conflict = retry_delay(ErrorClass::Conflict, 0, 1.0);
        assert_eq!(conflict, limits::CONFLICT_BACKOFF_MIN);
    }
}
