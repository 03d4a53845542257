//! How a reconcile ends: what is said about it, and when the object is looked at again.

use kube::api::Patch;
use serde_json::Value;

use ecp_meta::keys;

use super::{Ending, Run, after, condition_is, in_time, ready_reason, retry_delay};
use crate::decide::Stop;
use crate::events::Event;
use crate::external::{ErrorClass, Readiness};
use crate::failure::Failure;
use crate::memory::Due;
use crate::status::{Synced, patch};

impl Run<'_> {
    pub(super) fn event(&self, event: Event) {
        self.on
            .recorder
            .record(&self.object, &event, self.on.clock.now());
    }

    /// Records a warning, unless it was the last thing said about the object.
    fn warn(&self, reason: &'static str, message: &str) {
        self.say(Event::warning(reason, message));
    }

    /// Records an event, unless it was the last thing said about the object.
    fn say(&self, event: Event) {
        let hash = crate::failure::hash(event.reason, &event.message);
        let said = self
            .on
            .memory
            .update(self.key, |r| r.last_said.replace(hash) == Some(hash));
        if said != Some(true) {
            self.event(event);
        }
    }

    /// Writes the status and says when the object is due.
    pub(super) async fn finish(mut self, ending: Ending) -> Due {
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
            Ending::Failed(Failure::Held(why)) => self.held(why),
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
        after(retry_delay(class, failures, rand::random()))
    }

    /// The cloud will delete it when something else is gone. Nobody has to do anything about that,
    /// so it is no error.
    fn held(&mut self, why: String) -> Due {
        self.on.metrics.reconciled("held");
        self.report.synced = Some(Synced::Success);
        self.report.ready = Some(Readiness::Deleting(why));
        let failures = self.on.failed(self.key);
        after(retry_delay(ErrorClass::Conflict, failures, rand::random()))
    }

    fn stopped(&mut self, stop: Stop) -> Due {
        let poll = after(self.on.poll_delay(&self.object));
        let (synced, due) = match stop {
            Stop::Paused => {
                let message = "Reconciliation is paused either through the \
                               `spec.managementPolicies` or the pause annotation";
                self.say(Event::normal("ReconciliationPaused", message));
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
                record.last_said = None;
            }
            if settled {
                record.settles = 0;
            }
        });
        self.report.synced = Some(synced);
        due
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
            // Nothing but the status should have changed.
            let expected = self.object.clone();
            self.patched(&expected, written);
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
