//! Does what [`crate::decide`] decides: the thin adapter between the decision, the Kubernetes API
//! and the cloud.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout};
use tracing::{debug, info, warn};

use ecp_meta::{condition, keys};

use crate::backoff::{Backoff, jittered};
use crate::clock::Clock;
use crate::config::{ConfigRef, Configs};
use crate::creation::{Creation, rfc3339};
use crate::decide::{Facts, Progress, Seen, Step, Stop, decide};
use crate::erased::{ErasedExternal, Observed, Session, missing_fields};
use crate::events::{Event, Recorder};
use crate::external::{Connection, ErrorClass, ExternalError, ProviderConfig, Readiness};
use crate::failure::Failure;
use crate::key::Key;
use crate::kind::{KindInfo, Naming};
use crate::limits;
use crate::memory::{Due, Memory};
use crate::metrics::KindMetrics;
use crate::policy::Policies;
use crate::runtime::Options;
use crate::secret;
use crate::status::{Report, Synced, patch};

/// Reconciles the objects of one kind.
pub(crate) struct Reconciler {
    pub(crate) kind: KindInfo,
    pub(crate) resource: ApiResource,
    pub(crate) client: Client,
    pub(crate) external: Box<dyn ErasedExternal>,
    pub(crate) configs: Option<Arc<Configs>>,
    pub(crate) memory: Memory,
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
            .map(|interval| interval.max(limits::POLL_MIN));
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

    fn session(&self) -> Result<Arc<dyn Session>, Failure> {
        // The decision connects first; this is a fault of the decision, not of the object.
        self.session
            .clone()
            .ok_or_else(|| Failure::reported("CannotConnectToProvider", "not connected"))
    }

    async fn initialize(&mut self) -> Result<(), Failure> {
        let mut object = self.object.clone();
        let name = self.key.name.as_ref().to_owned();
        let annotations = object.metadata.annotations.get_or_insert_default();
        annotations.insert(keys::EXTERNAL_NAME.into(), name);
        self.replace(object, "CannotInitializeManagedResource")
            .await?;
        self.facts.unnamed = false;
        Ok(())
    }

    async fn connect(&mut self) -> Result<(), Failure> {
        const REASON: &str = "CannotConnectToProvider";
        let config = match &self.on.configs {
            None => ProviderConfig::default(),
            Some(configs) => {
                let reference = ConfigRef::of(&self.object).map_err(|kind| {
                    let error = crate::config::ConfigError::Kind(kind);
                    Failure::reported(REASON, format!("connect failed: {error}"))
                })?;
                self.on.memory.update(self.key, |record| {
                    record.config = Some(reference.clone());
                });
                timeout(
                    limits::API_CALL_TIME_MAX,
                    configs.connect(&self.object, &reference),
                )
                .await
                .map_err(|_| Failure::api_timeout())?
                .map_err(|error| {
                    let text = crate::failure::chain(&error);
                    Failure::reported(REASON, format!("connect failed: {text}"))
                })?
            }
        };
        let connecting = self.on.external.connect(&self.object, &config);
        let session = external(connecting, "connect", REASON).await?;
        self.session = Some(session);
        self.progress.connected = true;
        Ok(())
    }

    async fn find_by_tag(&mut self) -> Result<(), Failure> {
        let session = self.session()?;
        let found = external(
            session.find_by_tag(&self.object),
            "cannot determine creation result: lookup",
            "CannotInitializeManagedResource",
        )
        .await
        .map_err(|failure| failure.with_ready(Readiness::Creating(String::new())))?;
        info!(kind = self.on.kind.kind, key = %self.key, ?found, "unrecorded creation looked up");
        let result = match found {
            Some(name) => Recorded::Succeeded(Some(name)),
            None => Recorded::Failed,
        };
        self.record_creation(result).await?;
        self.progress.create_settled = true;
        Ok(())
    }

    async fn observe(&mut self) -> Result<(), Failure> {
        let session = self.session()?;
        let seen = external(
            session.observe(&self.object),
            "observe",
            "CannotObserveExternalResource",
        )
        .await?;
        let late_init = !missing_fields(&self.object, &seen.late_init).is_empty();
        self.progress.seen = Some(if seen.exists {
            self.note_drift(&seen);
            self.report.ready = Some(if self.facts.deleting {
                Readiness::Deleting(text_of(&seen.ready))
            } else {
                seen.ready.clone()
            });
            self.report.at_provider.clone_from(&seen.at_provider);
            Seen::Exists {
                up_to_date: seen.up_to_date,
                late_init,
                settling: seen.settling,
            }
        } else {
            Seen::Missing
        });
        self.observed = Some(seen);
        Ok(())
    }

    /// Measures how long ago an object was in sync that is not any more.
    fn note_drift(&self, seen: &Observed) {
        let now = Instant::now();
        let drifted = self.on.memory.update(self.key, |record| {
            if seen.up_to_date {
                record.in_sync_at = Some(now);
                None
            } else {
                record.in_sync_at.take()
            }
        });
        if let Some(Some(at)) = drifted {
            self.on.metrics.drift(now.duration_since(at).as_secs_f64());
        }
    }

    async fn publish(&self, connection: &Connection) -> Result<(), Failure> {
        let manager = self.on.kind.provider.field_manager();
        let publishing = secret::publish(&self.on.client, &self.object, connection, &manager);
        let reason = "CannotPublishConnectionDetails";
        match timeout(limits::API_CALL_TIME_MAX, publishing).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(secret::PublishError::Api(kube::Error::Api(status)))) if status.code == 409 => {
                Err(Failure::Conflict)
            }
            Ok(Err(error)) => Err(Failure::reported(reason, crate::failure::chain(&error))),
            Err(_) => Err(Failure::api_timeout()),
        }
    }

    async fn prepare(&mut self) -> Result<(), Failure> {
        if let Some(observed) = &self.observed {
            self.publish(&observed.connection).await?;
        }
        if !has_finalizer(&self.object) {
            let mut object = self.object.clone();
            add_finalizer(&mut object);
            self.replace(object, "CannotUpdateManagedResource").await?;
        }
        self.progress.prepared = true;
        Ok(())
    }

    async fn create(&mut self) -> Result<(), Failure> {
        const REASON: &str = "CannotCreateExternalResource";
        let session = self.session()?;
        self.report.ready = Some(Readiness::Creating(String::new()));
        // A plain update: it fails if the object was read from an old state, in which it may lack
        // the record of a creation (crossplane-runtime, "critical annotations").
        let now = self.on.clock.now();
        let mut object = self.object.clone();
        add_finalizer(&mut object);
        let annotations = object.metadata.annotations.get_or_insert_default();
        let pending = Creation::of(annotations).next_pending(now);
        annotations.insert(keys::EXTERNAL_CREATE_PENDING.into(), rfc3339(pending));
        self.replace(object, "CannotUpdateManagedResource").await?;

        match external(session.create(&self.object), "create", REASON).await {
            Ok(created) => {
                let result = Recorded::Succeeded(created.external_name);
                self.record_creation(result).await?;
                self.event(Event::normal(
                    "CreatedExternalResource",
                    "Successfully requested creation of external resource",
                ));
                self.publish(&created.connection).await?;
                self.progress.created = true;
                self.progress.seen = None;
                Ok(())
            }
            Err(failure) => {
                self.record_creation(Recorded::Failed).await?;
                Err(failure)
            }
        }
    }

    /// Writes down how a creation ended, trying again and again: losing it is what leaks
    /// resources. A merge patch cannot conflict.
    async fn record_creation(&mut self, result: Recorded) -> Result<(), Failure> {
        let annotations = self.object.metadata.annotations.clone().unwrap_or_default();
        let at = rfc3339(Creation::of(&annotations).result_time(self.on.clock.now()));
        let mut changes = Map::new();
        match &result {
            Recorded::Succeeded(name) => {
                changes.insert(keys::EXTERNAL_CREATE_SUCCEEDED.into(), at.into());
                if let Some(name) = name {
                    changes.insert(keys::EXTERNAL_NAME.into(), name.clone().into());
                }
            }
            Recorded::Failed => {
                changes.insert(keys::EXTERNAL_CREATE_FAILED.into(), at.into());
            }
        }
        let patch = Patch::Merge(json!({"metadata": {"annotations": changes}}));
        let backoff = Backoff {
            min: Duration::from_millis(10),
            max: Duration::from_secs(5),
        };
        let params = self.on.patch_params();
        let mut attempt = 0;
        loop {
            let failure = match in_time(self.api.patch(&self.key.name, &params, &patch)).await {
                Ok(object) => {
                    self.written(object);
                    return Ok(());
                }
                Err(failure) => failure,
            };
            attempt += 1;
            if attempt >= limits::RECORD_ATTEMPTS_MAX || matches!(failure, Failure::Gone) {
                warn!(kind = self.on.kind.kind, key = %self.key, ?result, "creation not recorded");
                return Err(Failure::reported(
                    "CannotUpdateManagedResource",
                    format!("cannot record creation: {failure}"),
                ));
            }
            tokio::time::sleep(backoff.delay(attempt, rand::random())).await;
        }
    }

    async fn late_initialize(&mut self) -> Result<(), Failure> {
        let Some(observed) = &self.observed else {
            return Ok(());
        };
        let fields = missing_fields(&self.object, &observed.late_init);
        let mut object = self.object.clone();
        if let Some(for_provider) = object
            .data
            .pointer_mut("/spec/forProvider")
            .and_then(Value::as_object_mut)
        {
            for_provider.extend(fields);
        }
        self.replace(object, "CannotUpdateManagedResource").await?;
        self.generation = self.object.metadata.generation.unwrap_or(0);
        self.progress.late_initialized = true;
        Ok(())
    }

    async fn update(&mut self) -> Result<(), Failure> {
        let session = self.session()?;
        let connection = external(
            session.update(&self.object),
            "update",
            "CannotUpdateExternalResource",
        )
        .await?;
        self.event(Event::normal(
            "UpdatedExternalResource",
            "Successfully requested update of external resource",
        ));
        self.publish(&connection).await?;
        self.progress.updated = true;
        self.progress.seen = None;
        Ok(())
    }

    async fn delete(&mut self) -> Result<(), Failure> {
        let session = self.session()?;
        external(
            session.delete(&self.object),
            "delete",
            "CannotDeleteExternalResource",
        )
        .await
        .map_err(|f| f.with_ready(Readiness::Deleting(String::new())))?;
        if ready_reason(&self.object) != Some("Deleting") {
            self.event(Event::normal(
                "DeletedExternalResource",
                "Successfully requested deletion of external resource",
            ));
        }
        self.report.ready = Some(Readiness::Deleting(String::new()));
        self.progress.deleted = true;
        self.progress.seen = None;
        Ok(())
    }

    async fn release(&mut self) -> Result<(), Failure> {
        // The connection Secret is owned by the object and goes with it.
        if !has_finalizer(&self.object) {
            return Ok(());
        }
        let mut object = self.object.clone();
        if let Some(finalizers) = &mut object.metadata.finalizers {
            finalizers.retain(|f| f != keys::MANAGED_FINALIZER);
        }
        match self.replace(object, "CannotUpdateManagedResource").await {
            Ok(()) | Err(Failure::Gone) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// A plain update, which fails when the object has changed since it was read.
    async fn replace(
        &mut self,
        object: DynamicObject,
        reason: &'static str,
    ) -> Result<(), Failure> {
        let params = self.on.write_params();
        let written = in_time(self.api.replace(&self.key.name, &params, &object))
            .await
            .map_err(|failure| failure.or_reason(reason))?;
        self.written(written);
        Ok(())
    }

    fn written(&mut self, object: DynamicObject) {
        self.on.memory.handled(self.key, &object);
        self.object = object;
    }

    fn event(&self, event: Event) {
        self.on
            .recorder
            .record(&self.object, &event, self.on.clock.now());
    }

    /// Records a warning, unless it was the last thing said about the object.
    fn warn(&self, reason: &'static str, message: &str) {
        let hash = crate::failure::hash(reason, message);
        let said = self
            .on
            .memory
            .update(self.key, |r| r.last_warning.replace(hash) == Some(hash));
        if said != Some(true) {
            self.event(Event::warning(reason, message));
        }
    }

    /// Writes the status and says when the object is due.
    async fn finish(mut self, ending: Ending) -> Due {
        let due = match ending {
            Ending::Gone => return Due::Never,
            Ending::Released => {
                self.measure_deletion();
                self.on.metrics.reconciled("released");
                return Due::Never;
            }
            Ending::Failed(Failure::Conflict) => {
                return self.on.retry(self.key, &Failure::Conflict);
            }
            Ending::Failed(failure) => self.failed(failure),
            Ending::Stopped(Stop::Pending) => {
                self.warn(
                    "PendingExternalResource",
                    "Waiting for external resource existence to be confirmed",
                );
                return after(self.on.settle_delay(self.key));
            }
            Ending::Stopped(stop) => self.stopped(stop),
        };
        self.handle_token();
        match self.write_status().await {
            Ok(()) => due,
            Err(Failure::Gone) => Due::Never,
            Err(failure) => self.on.retry(self.key, &failure),
        }
    }

    fn failed(&mut self, failure: Failure) -> Due {
        let Failure::Reported {
            reason,
            message,
            class,
            ready,
        } = failure
        else {
            return self.on.retry(self.key, &failure);
        };
        self.on.metrics.reconciled("error");
        self.warn(reason, &message);
        self.report.synced = Some(match class {
            ErrorClass::Refused => Synced::Refused(message),
            ErrorClass::Transient { .. } | ErrorClass::NotFound | ErrorClass::Conflict => {
                Synced::Error(message)
            }
        });
        if ready.is_some() {
            self.report.ready = ready;
        }
        let failures = self.on.failed(self.key);
        let random = rand::random();
        after(match class {
            ErrorClass::Transient {
                retry_after: Some(delay),
            } => delay
                .min(limits::RETRY_AFTER_MAX)
                .max(BACKOFF.delay(0, random)),
            ErrorClass::Conflict => CONFLICT_BACKOFF.delay(failures, random),
            ErrorClass::Transient { retry_after: None }
            | ErrorClass::Refused
            | ErrorClass::NotFound => BACKOFF.delay(failures, random),
        })
    }

    fn stopped(&mut self, stop: Stop) -> Due {
        let poll = after(self.on.poll_delay(&self.object));
        let (synced, due) = match stop {
            Stop::Paused => {
                let message = "Reconciliation is paused either through the \
                               `spec.managementPolicies` or the pause annotation";
                self.warn_paused(message);
                (Synced::Paused(message.into()), Due::Never)
            }
            Stop::InvalidPolicies(error) => {
                let message = error.to_string();
                self.warn("CannotUseInvalidManagementPolicy", &message);
                (Synced::Error(message), Due::Never)
            }
            Stop::CreateIncomplete => {
                let message = "cannot determine creation result - remove the \
                               crossplane.io/external-create-pending annotation if it is safe to \
                               proceed";
                self.warn("CannotInitializeManagedResource", message);
                self.report.ready = Some(Readiness::Creating(String::new()));
                (Synced::Error(message.into()), Due::Never)
            }
            Stop::MissingNotCreated => {
                let message = "external resource does not exist";
                self.warn("CannotObserveExternalResource", message);
                self.report.ready = Some(Readiness::Unavailable(String::new()));
                (Synced::Error(message.into()), poll)
            }
            Stop::OtherFinalizers => {
                self.report.ready = Some(Readiness::Deleting(
                    "waiting for other finalizers to be removed".into(),
                ));
                (Synced::Success, poll)
            }
            Stop::Deleting | Stop::Created | Stop::Synced { settling: true } => {
                (Synced::Success, after(self.on.settle_delay(self.key)))
            }
            Stop::Pending | Stop::Synced { settling: false } => (Synced::Success, poll),
        };
        self.on.metrics.reconciled(match synced {
            Synced::Success => "synced",
            Synced::Error(_) | Synced::Refused(_) => "error",
            Synced::Paused(_) => "paused",
        });
        let settled = due == poll;
        self.on.memory.update(self.key, |record| {
            record.failures = 0;
            if synced == Synced::Success {
                record.last_warning = None;
            }
            if settled {
                record.settles = 0;
            }
        });
        self.report.synced = Some(synced);
        due
    }

    fn warn_paused(&self, message: &str) {
        let hash = crate::failure::hash("ReconciliationPaused", message);
        let said = self
            .on
            .memory
            .update(self.key, |r| r.last_warning.replace(hash) == Some(hash));
        if said != Some(true) {
            self.event(Event::normal("ReconciliationPaused", message));
        }
    }

    /// Answers a `reconcile-requested-at` token once.
    fn handle_token(&mut self) {
        if self.facts.paused {
            return;
        }
        let annotations = self.object.metadata.annotations.as_ref();
        let Some(token) = annotations.and_then(|a| a.get(keys::RECONCILE_REQUESTED_AT)) else {
            return;
        };
        let handled = self.object.data.pointer("/status/lastHandledReconcileAt");
        if handled.and_then(Value::as_str) != Some(token) {
            let token = token.clone();
            self.event(Event::normal(
                "ReconcileRequestHandled",
                format!("Handled reconcile request {token:?}"),
            ));
            self.report.handled = Some(token);
        }
    }

    async fn write_status(&mut self) -> Result<(), Failure> {
        let now = self.on.clock.now();
        let old = self.object.data.get("status");
        let first = old.is_none_or(|s| s.get("conditions").is_none());
        let was_ready = condition_is(&self.object, "Ready");
        let never_ready = matches!(ready_reason(&self.object), None | Some("Creating"));
        if let Some(change) = patch(old, &self.report, self.generation, now) {
            let params = self.on.patch_params();
            let patch = Patch::Merge(change);
            let name = &self.key.name;
            let written = in_time(self.api.patch_status(name, &params, &patch)).await?;
            self.written(written);
        }
        let ready = condition_is(&self.object, "Ready");
        let synced = condition_is(&self.object, "Synced");
        self.on.memory.update(self.key, |record| {
            record.ready = ready;
            record.synced = synced;
        });
        let age = self
            .object
            .metadata
            .creation_timestamp
            .as_ref()
            .map(|created| now.duration_since(created.0).as_secs_f64().max(0.0));
        if let Some(age) = age {
            if first {
                self.on.metrics.first_reconcile(age);
            }
            if ready && !was_ready && never_ready {
                self.on.metrics.first_readiness(age);
            }
        }
        Ok(())
    }

    fn measure_deletion(&self) {
        if let Some(since) = &self.object.metadata.deletion_timestamp {
            let age = self.on.clock.now().duration_since(since.0);
            self.on.metrics.deletion(age.as_secs_f64().max(0.0));
        }
    }
}

/// How a creation ended.
#[derive(Debug)]
enum Recorded {
    Succeeded(Option<String>),
    Failed,
}

/// A call to the cloud, with a deadline.
async fn external<T>(
    call: impl Future<Output = Result<T, ExternalError>>,
    what: &str,
    reason: &'static str,
) -> Result<T, Failure> {
    let result = match timeout(limits::EXTERNAL_CALL_TIME_MAX, call).await {
        Ok(result) => result,
        Err(_) => Err(ExternalError::transient("the cloud did not answer in time")),
    };
    result.map_err(|error| Failure::Reported {
        reason,
        message: format!("{what} failed: {}", error.message),
        class: error.class,
        ready: None,
    })
}

/// A call to the Kubernetes API, with a deadline.
async fn in_time<T>(call: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
    match timeout(limits::API_CALL_TIME_MAX, call).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Failure::of_api(&error)),
        Err(_) => Err(Failure::api_timeout()),
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
