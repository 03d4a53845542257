//! The steps of a reconcile, one function each.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{DynamicObject, Patch};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout};
use tracing::{info, warn};

use ecp_meta::keys;

use super::{
    Run, add_finalizer, answer, external, has_finalizer, in_time, not_done, ready_reason, text_of,
};
use crate::backoff::Backoff;
use crate::config::ConfigRef;
use crate::creation::{Creation, rfc3339};
use crate::decide::Seen;
use crate::erased::{Observed, Session, missing_fields};
use crate::events::Event;
use crate::external::{Connection, ErrorClass, ExternalError, ProviderConfig, Readiness};
use crate::failure::Failure;
use crate::limits;
use crate::secret;

/// How a creation ended.
#[derive(Debug)]
enum Recorded {
    Succeeded(Option<String>),
    Failed,
}

impl Run<'_> {
    fn session(&self) -> Result<Arc<dyn Session>, Failure> {
        // The decision connects first; this is a fault of the decision, not of the object.
        self.session
            .clone()
            .ok_or_else(|| Failure::reported("CannotConnectToProvider", "not connected"))
    }

    pub(super) async fn initialize(&mut self) -> Result<(), Failure> {
        let mut object = self.object.clone();
        let name = self.key.name.as_ref().to_owned();
        let annotations = object.metadata.annotations.get_or_insert_default();
        annotations.insert(keys::EXTERNAL_NAME.into(), name);
        self.replace(object, "CannotInitializeManagedResource")
            .await?;
        self.facts.unnamed = false;
        Ok(())
    }

    pub(super) async fn connect(&mut self) -> Result<(), Failure> {
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

    pub(super) async fn find_by_tag(&mut self) -> Result<(), Failure> {
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

    pub(super) async fn observe(&mut self) -> Result<(), Failure> {
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

    pub(super) async fn prepare(&mut self) -> Result<(), Failure> {
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

    pub(super) async fn create(&mut self) -> Result<(), Failure> {
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
            // It may have happened all the same. The mark stays pending, so that it is looked up by
            // tag next: a resource that is deleted now must not be left behind in the cloud.
            Err(failure) if self.facts.finds_by_tag && failure.is_transient() => Err(failure),
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
        let mut expected = self.object.clone();
        let annotations = expected.metadata.annotations.get_or_insert_default();
        for (key, value) in &changes {
            let text = value.as_str().unwrap_or_default();
            annotations.insert(key.clone(), text.into());
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
                    self.patched(&expected, object);
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

    pub(super) async fn late_initialize(&mut self) -> Result<(), Failure> {
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

    pub(super) async fn update(&mut self) -> Result<(), Failure> {
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

    pub(super) async fn delete(&mut self) -> Result<(), Failure> {
        let session = self.session()?;
        let waiting = self.waiting();
        self.on.blocked.add(&self.object, waiting.clone());
        let deleted = answer(session.delete(&self.object)).await;
        let held = |e: &ExternalError| e.class == ErrorClass::Conflict;
        if !deleted.as_ref().is_err_and(held) {
            self.on.blocked.remove(&self.object, &waiting);
        }
        deleted.map_err(|error| {
            if held(&error) {
                return Failure::Held(error.message);
            }
            let failure = not_done(&error, "delete", "CannotDeleteExternalResource");
            failure.with_ready(Readiness::Deleting(String::new()))
        })?;
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

    pub(super) async fn release(&mut self) -> Result<(), Failure> {
        // The connection Secret is owned by the object and goes with it.
        if !has_finalizer(&self.object) {
            return Ok(());
        }
        let mut object = self.object.clone();
        if let Some(finalizers) = &mut object.metadata.finalizers {
            finalizers.retain(|f| f != keys::MANAGED_FINALIZER);
        }
        match self.replace(object, "CannotUpdateManagedResource").await {
            Ok(()) | Err(Failure::Gone) => {
                self.on.blocked.remove(&self.object, &self.waiting());
                for freed in self.on.blocked.released(&self.object) {
                    self.on.wakers.wake_soon(&freed);
                }
                Ok(())
            }
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

    /// Takes in the answer to a patch that should have left `expected`.
    pub(super) fn patched(&mut self, expected: &DynamicObject, answer: DynamicObject) {
        self.on.memory.patched(self.key, expected, &answer);
        self.object = answer;
    }
}
