//! Writing what an XR wants: deletions first, references, composed resources, status.

use std::collections::BTreeMap;

use ecp_meta::object;
use ecp_xr::compose::{self, COMPOSITE_MANAGER, Composed, Observed, Rendered};
use ecp_xr::event::{Event, TargetedEvent, reason};
use ecp_xr::machinery::{self, ResourceRef};
use ecp_xr::status::Applied;
use futures::{FutureExt as _, StreamExt as _};
use serde_json::Value;

use super::memo::Mark;
use super::reconcile::{Reconcile, Trouble};
use crate::api::{ApiError, Propagation};
use crate::limits::APPLIES_PER_XR_MAX;

/// What became of applying one composed resource.
enum Attempt {
    /// The API holds it.
    Applied(Box<Value>),
    /// Nothing had to be done.
    Skipped,
    /// The kind is not known.
    Unknown(String),
    /// The API refused.
    Refused(ApiError),
}

impl Reconcile<'_> {
    /// Deletes what is no longer desired, before anything is applied.
    pub(super) async fn collect_garbage(
        &mut self,
        observed: &Observed,
        rendered: &Rendered,
    ) -> Result<(), Trouble> {
        let garbage = compose::garbage(&self.xr, observed, rendered)?;
        if !garbage.is_empty() {
            self.write_prepared().await.map_err(Trouble::Told)?;
        }
        let context = &self.controller.context;
        for (name, resource) in garbage {
            let gvk = object::gvk(resource);
            let doing = |what: &str| {
                format!(
                    "cannot garbage collect composed resources that are no longer desired: cannot \
                     {what} composed resource{} {name:?} (a {} named {})",
                    if what == "cleanup" {
                        " labels of resource"
                    } else {
                        ""
                    },
                    gvk.kind,
                    object::name(resource)
                )
            };
            let kind = context.mapper.kind(&gvk).await;
            let kind = kind.map_err(|e| Trouble::new(format!("{}: {e}", doing("delete"))))?;
            if let Some(untied) = compose::without_ties(resource) {
                context.metrics.wrote("composed");
                match context.api.replace(&kind, &untied).await {
                    Ok(_) => {}
                    Err(error) if error.is_not_found() => {}
                    Err(error) => return Err(Trouble::from_api(&doing("cleanup"), &error)),
                }
            }
            context.metrics.wrote("delete");
            context
                .api
                .delete(&kind, resource, Propagation::Foreground)
                .await
                .map_err(|e| Trouble::from_api(&doing("delete"), &e))?;
            self.memo.composed.remove(name);
        }
        Ok(())
    }

    /// Stores the references, before anything is applied: no resource exists without one. A new XR
    /// gets them with its finalizer, in one write.
    pub(super) async fn apply_refs(&mut self, refs: &[ResourceRef]) -> Result<(), Trouble> {
        let wanted: Value = refs.iter().map(ResourceRef::to_json).collect();
        if self.machinery().field("resourceRefs") == Some(&wanted) {
            return self.write_prepared().await.map_err(Trouble::Told);
        }
        let controller = self.controller;
        if self.prepared.is_some() {
            machinery::set(&mut self.xr, controller.xrd.scope, "resourceRefs", wanted);
            return self.write_prepared().await.map_err(Trouble::Told);
        }
        let mut patch = compose::identity(&self.xr);
        machinery::set(&mut patch, controller.xrd.scope, "resourceRefs", wanted);
        controller.context.metrics.wrote("references");
        let written = controller
            .context
            .api
            .apply(&controller.kind, &patch, COMPOSITE_MANAGER)
            .await
            .map_err(|e| Trouble::from_api("cannot update composed resource references", &e))?;
        self.learn(written);
        Ok(())
    }

    /// Applies the composed resources that differ. What the API refuses as invalid is told and does
    /// not stop the others; anything else does.
    pub(super) async fn apply_composed(
        &mut self,
        observed: &Observed,
        rendered: &Rendered,
    ) -> Result<(BTreeMap<String, Applied>, Vec<TargetedEvent>), Trouble> {
        let manager = compose::composed_manager(&self.xr);
        let this = &*self;
        let mut attempts = Vec::with_capacity(rendered.composed.len());
        for (name, composed) in &rendered.composed {
            let live = observed.get(name).map(|r| &*r.object);
            let attempt = this.apply_one(name, composed, live, &manager);
            attempts.push(attempt.map(move |attempt| (name, attempt)).boxed());
        }
        let attempts: Vec<(&String, Attempt)> = futures::stream::iter(attempts)
            .buffered(APPLIES_PER_XR_MAX)
            .collect()
            .await;
        let mut applied = BTreeMap::new();
        let mut events = Vec::new();
        let mut trouble = None;
        for (name, attempt) in attempts {
            let doing = format!("cannot apply composed resource {name:?}");
            match attempt {
                Attempt::Skipped => {
                    applied.insert(name.clone(), Applied::Synced);
                }
                Attempt::Applied(live) => {
                    if let Some(composed) = rendered.composed.get(name) {
                        let mark = Mark::new(&composed.object, &live);
                        self.memo.composed.insert(name.clone(), mark);
                    }
                    applied.insert(name.clone(), Applied::Synced);
                }
                Attempt::Refused(error) if error.is_invalid() => {
                    self.memo.composed.remove(name);
                    events.push(TargetedEvent::composite(Event::warning(
                        reason::COMPOSE,
                        format!("{doing}: {error}"),
                    )));
                    applied.insert(name.clone(), Applied::Invalid);
                }
                Attempt::Refused(error) => {
                    trouble.get_or_insert(Trouble::from_api(&doing, &error));
                }
                Attempt::Unknown(error) => {
                    trouble.get_or_insert(Trouble::new(format!("{doing}: {error}")));
                }
            }
        }
        self.memo
            .composed
            .retain(|name, _| rendered.composed.contains_key(name));
        match trouble {
            Some(trouble) => Err(trouble),
            None => Ok((applied, events)),
        }
    }

    async fn apply_one(
        &self,
        name: &str,
        composed: &Composed,
        live: Option<&Value>,
        manager: &str,
    ) -> Attempt {
        let object = &composed.object;
        if let (Some(mark), Some(live)) = (self.memo.composed.get(name), live)
            && mark.still_holds(object, live)
        {
            return Attempt::Skipped;
        }
        let context = &self.controller.context;
        let kind = match context.mapper.kind(&object::gvk(object)).await {
            Ok(kind) => kind,
            Err(error) => return Attempt::Unknown(error),
        };
        // Watched before it is made, so that nothing that happens to it is missed.
        let informer = self.controller.watch(&kind);
        context.metrics.wrote("composed");
        match context.api.apply(&kind, object, manager).await {
            Ok(live) => {
                informer.learn(&live);
                Attempt::Applied(Box::new(live))
            }
            Err(error) => Attempt::Refused(error),
        }
    }

    /// Applies the status if it differs.
    pub(super) async fn apply_status(&mut self, wanted: &Value) -> Result<(), Trouble> {
        if let Some(mark) = &self.memo.status
            && mark.still_holds(wanted, &self.xr)
        {
            return Ok(());
        }
        let controller = self.controller;
        controller.context.metrics.wrote("status");
        let written = controller
            .context
            .api
            .apply_status(&controller.kind, wanted, COMPOSITE_MANAGER)
            .await
            .map_err(|e| Trouble::from_api("cannot apply composite resource status", &e))?;
        let written = self.correct_conditions(wanted, written).await?;
        self.memo.status = Some(Mark::new(wanted, &written));
        self.learn(written);
        Ok(())
    }

    /// After a failure the conditions were updated, not applied, and an apply does not remove what
    /// it did not apply: the message of a condition that has none now is updated away.
    async fn correct_conditions(&self, wanted: &Value, written: Value) -> Result<Value, Trouble> {
        let conditions = wanted.pointer("/status/conditions");
        if written.pointer("/status/conditions") == conditions {
            return Ok(written);
        }
        let controller = self.controller;
        let mut changed = written;
        changed["status"]["conditions"] = conditions.cloned().unwrap_or_default();
        controller.context.metrics.wrote("status");
        controller
            .context
            .api
            .replace_status(&controller.kind, &changed)
            .await
            .map_err(|e| Trouble::from_api("cannot update composite resource status", &e))
    }
}
