//! The controller of XRDs: CRDs for XRs and claims, and the controllers of both.

mod live;
mod part;

use std::collections::BTreeMap;
use std::sync::Arc;

use ecp_meta::object;
use ecp_xr::composition::is_controlled_by;
use ecp_xr::event::Event;
use ecp_xr::prepare;
use ecp_xr::status::Conditions;
use ecp_xr::xrd::Xrd;
use serde_json::{Value, json};
use tokio::sync::{Mutex, watch};

use crate::api::Propagation;
use crate::composite::Running;
use crate::context::{Context, crd_kind, xrd_kind};
use crate::controller::{self, Failure, Next, Reconciler};
use crate::events::Recorder;
use crate::informer::{Handler, Informer, Subscription};
use crate::limits::{SYNC_TIMEOUT, WAIT_INTERVAL};
use crate::queue::Queue;

use live::{is_established, is_up_to_date, may_control, merged};
pub(crate) use part::Part;

/// A controller that runs, and for which XRD it was started.
#[derive(Debug)]
struct Started {
    xrd: Arc<Xrd>,
    running: Running,
}

#[derive(Debug)]
struct Definitions {
    context: Arc<Context>,
    recorder: Recorder,
    xrds: Arc<Informer>,
    crds: Arc<Informer>,
    started: Mutex<BTreeMap<(String, Part), Started>>,
}

/// Runs the controller until the context stops.
pub(crate) async fn run(context: Arc<Context>) {
    let queue: Arc<Queue<String>> = Arc::new(Queue::new());
    let xrds = watch_xrds(&context, &queue);
    let crds = watch_crds(&context, &queue);
    let ready = async {
        for subscription in [&xrds, &crds] {
            while !subscription.informer().wait_synced().await {
                tracing::debug!("waiting for the CRD of CompositeResourceDefinitions");
            }
        }
    };
    tokio::select! {
        () = context.stop.cancelled() => return,
        () = ready => {}
    }
    let definitions = Arc::new(Definitions {
        recorder: context.recorder.of_component(Part::Composite.component()),
        xrds: Arc::clone(xrds.informer()),
        crds: Arc::clone(crds.informer()),
        started: Mutex::default(),
        context: Arc::clone(&context),
    });
    controller::run(
        Arc::clone(&definitions),
        queue,
        context.reconciles_max,
        context.metrics.clone(),
        context.stop.clone(),
    )
    .await;
    let started = std::mem::take(&mut *definitions.started.lock().await);
    for started in started.into_values() {
        started.running.stop().await;
    }
}

fn watch_xrds(context: &Context, queue: &Arc<Queue<String>>) -> Subscription {
    let queue = Arc::clone(queue);
    let handler: Handler = Arc::new(move |change| {
        if let Some(xrd) = change.object() {
            queue.add(object::name(xrd).to_owned());
        }
    });
    context.informers.subscribe(&xrd_kind(), handler)
}

fn watch_crds(context: &Arc<Context>, queue: &Arc<Queue<String>>) -> Subscription {
    let queue = Arc::clone(queue);
    let weak = Arc::downgrade(context);
    let handler: Handler = Arc::new(move |change| {
        let Some(crd) = change.object() else { return };
        // Its kinds may have changed.
        let spec = |object: Option<&Arc<Value>>| object.and_then(|o| o.get("spec").cloned());
        if (change.new.is_none() || spec(change.old) != spec(change.new))
            && let Some(context) = weak.upgrade()
        {
            let group = crd.pointer("/spec/group").and_then(Value::as_str);
            context.mapper.forget(group.unwrap_or_default());
        }
        let owner = object::controller_ref(crd);
        let owner = owner.filter(|o| {
            let kind = o.get("kind").and_then(Value::as_str);
            kind == Some("CompositeResourceDefinition")
        });
        let name = owner.and_then(|o| o.get("name")?.as_str());
        if let Some(xrd) = name {
            queue.add(xrd.to_owned());
        }
    });
    context.informers.subscribe(&crd_kind(), handler)
}

impl Reconciler for Definitions {
    type Key = String;

    #[expect(clippy::unnecessary_literal_bound, reason = "the trait's signature")]
    fn name(&self) -> &str {
        "defined/compositeresourcedefinition"
    }

    async fn reconcile(&self, name: &String) -> Result<Next, Failure> {
        let Some(object) = self.xrds.get(&(String::new(), name.clone())) else {
            for part in [Part::Claim, Part::Composite] {
                self.stop(name, part).await;
            }
            return Ok(Next::Wait);
        };
        let xrd = match Xrd::parse(&object) {
            Ok(xrd) => Arc::new(xrd),
            Err(error) => {
                let event = Event::warning("RenderCRD", error.to_string());
                self.recorder.record(&object, &event);
                return Err(Failure::Error(error.to_string()));
            }
        };
        let mut work = Work {
            definitions: self,
            object: Value::clone(&object),
            recorder: self.recorder.clone(),
            xrd,
        };
        // Both parts get their turn, whatever becomes of the other.
        let composite = work.part(Part::Composite).await;
        let claim = if work.xrd.spec.claim_names.is_some() {
            work.part(Part::Claim).await
        } else {
            Ok(Next::Wait)
        };
        match (composite, claim) {
            (Err(failure), _) | (_, Err(failure)) => Err(failure),
            (Ok(Next::Wait), Ok(next)) | (Ok(next), Ok(_)) => Ok(next),
        }
    }
}

impl Definitions {
    async fn stop(&self, name: &str, part: Part) {
        let started = self.started.lock().await.remove(&(name.to_owned(), part));
        if let Some(started) = started {
            started.running.stop().await;
        }
    }
}

/// One reconcile of one XRD.
struct Work<'a> {
    definitions: &'a Definitions,
    object: Value,
    recorder: Recorder,
    xrd: Arc<Xrd>,
}

impl Work<'_> {
    async fn part(&mut self, part: Part) -> Result<Next, Failure> {
        self.recorder = self.recorder.of_component(part.component());
        let rendered = match part.crd(&self.xrd) {
            Ok(crd) => crd,
            Err(error) => {
                let message = format!(
                    "cannot render {} CustomResourceDefinition: {error}",
                    part.what()
                );
                self.warn("RenderCRD", &message);
                return Err(Failure::Error(message));
            }
        };
        if object::is_deleting(&self.object) {
            if object::finalizers(&self.object).any(|f| f == part.finalizer()) {
                return self.terminate(part, &rendered).await;
            }
            return Ok(Next::Wait);
        }
        self.add_finalizer(part).await?;
        if !self.apply_crd(part, &rendered).await? {
            let message = format!(
                "waiting for {} CustomResourceDefinition to be established",
                part.what()
            );
            self.recorder.record_later(
                &self.object,
                &Event::normal(part.event_reasons().0, message),
            );
            return Ok(Next::After(WAIT_INTERVAL));
        }
        let mut ready = self.start(part).await;
        // Who is told that the kind is established may use it at once.
        let synced = ready.wait_for(|ready| *ready);
        if !matches!(tokio::time::timeout(SYNC_TIMEOUT, synced).await, Ok(Ok(_))) {
            return Ok(Next::After(WAIT_INTERVAL));
        }
        let mut status = self.status();
        let gvk = part.kind(&self.xrd).map(|k| k.gvk).unwrap_or_default();
        status["controllers"][part.controller_field()] =
            json!({"apiVersion": gvk.api_version(), "kind": gvk.kind});
        let mut conditions = Conditions::of(&self.object, &crate::now());
        conditions.set(part.condition(), true, part.condition_reasons().0, "");
        status["conditions"] = conditions.to_json();
        self.write_status(status).await?;
        Ok(Next::Wait)
    }

    fn warn(&self, reason: &str, message: &str) {
        let event = Event::warning(reason, message);
        self.recorder.record(&self.object, &event);
    }

    fn tell(&self, reason: &str, message: String) {
        let event = Event::normal(reason, message);
        self.recorder.record(&self.object, &event);
    }

    /// A failed API call, told in an event.
    fn failed(&self, reason: &str, doing: &str, error: &crate::api::ApiError) -> Failure {
        let failure = Failure::from_api(doing, error);
        if let Failure::Error(message) = &failure {
            self.warn(reason, message);
        }
        failure
    }

    fn status(&self) -> Value {
        let status = self.object.get("status").filter(|s| s.is_object());
        status.cloned().unwrap_or_else(|| json!({}))
    }

    async fn write_status(&mut self, status: Value) -> Result<(), Failure> {
        if self.object.get("status") == Some(&status) {
            return Ok(());
        }
        let mut changed = self.object.clone();
        changed["status"] = status;
        let context = &self.definitions.context;
        context.metrics.wrote("definition");
        match context.api.replace_status(&xrd_kind(), &changed).await {
            Ok(written) => {
                self.learn(written);
                Ok(())
            }
            Err(error) => Err(Failure::from_api(
                "cannot update status of CompositeResourceDefinition",
                &error,
            )),
        }
    }

    fn learn(&mut self, object: Value) {
        self.definitions.xrds.learn(&object);
        self.object = object;
    }

    async fn add_finalizer(&mut self, part: Part) -> Result<(), Failure> {
        let mut changed = self.object.clone();
        prepare::add_finalizer(&mut changed, part.finalizer());
        if changed == self.object {
            return Ok(());
        }
        self.replace(&changed, part.event_reasons().0, "add").await
    }

    async fn replace(&mut self, changed: &Value, reason: &str, verb: &str) -> Result<(), Failure> {
        let context = &self.definitions.context;
        context.metrics.wrote("definition");
        match context.api.replace(&xrd_kind(), changed).await {
            Ok(written) => {
                self.learn(written);
                Ok(())
            }
            Err(error) => {
                let doing = format!("cannot {verb} composite resource finalizer");
                Err(self.failed(reason, &doing, &error))
            }
        }
    }

    /// Makes the CRD what it should be. Returns whether it is established.
    async fn apply_crd(&mut self, part: Part, rendered: &Value) -> Result<bool, Failure> {
        let context = &self.definitions.context;
        let kind = crd_kind();
        let reason = part.event_reasons().0;
        let doing = format!(
            "cannot apply rendered {} CustomResourceDefinition",
            part.what()
        );
        let live = self.crd(rendered).await?;
        let written = match &live {
            None => {
                context.metrics.wrote("definition");
                context.api.create(&kind, rendered).await
            }
            Some(live) if !may_control(live, &self.object) => {
                let message = format!(
                    "{doing}: existing object is not controlled by UID {:?}",
                    object::uid(&self.object)
                );
                self.warn(reason, &message);
                return Err(Failure::Error(message));
            }
            Some(live) if is_up_to_date(live, rendered) => return Ok(is_established(live)),
            Some(live) => {
                context.metrics.wrote("definition");
                context.api.replace(&kind, &merged(live, rendered)).await
            }
        };
        let written = written.map_err(|e| self.failed(reason, &doing, &e))?;
        let before = live.as_deref().map(object::resource_version);
        if before != Some(object::resource_version(&written)) {
            self.tell(
                reason,
                format!(
                    "Applied {} CustomResourceDefinition: {}",
                    part.what(),
                    object::name(&written)
                ),
            );
        }
        self.definitions.crds.learn(&written);
        Ok(is_established(&written))
    }

    async fn crd(&self, rendered: &Value) -> Result<Option<Arc<Value>>, Failure> {
        let name = object::name(rendered).to_owned();
        if let Some(crd) = self.definitions.crds.get(&(String::new(), name.clone())) {
            return Ok(Some(crd));
        }
        let api = &self.definitions.context.api;
        match api.find(&crd_kind(), None, &name).await {
            Ok(found) => Ok(found.map(Arc::new)),
            Err(error) => Err(Failure::from_api(
                "cannot get CustomResourceDefinition",
                &error,
            )),
        }
    }

    /// Starts the controller, anew if the XRD changed. Returns what says when it is ready.
    async fn start(&self, part: Part) -> watch::Receiver<bool> {
        let key = (self.xrd.name.clone(), part);
        let mut started = self.definitions.started.lock().await;
        if let Some(old) = started.get(&key) {
            if old.xrd.uid == self.xrd.uid && old.xrd.spec == self.xrd.spec {
                return old.running.ready();
            }
            self.tell(
                "RestartComposite",
                "XRD specification changed; restarting controller to apply updates".into(),
            );
            if let Some(old) = started.remove(&key) {
                old.running.stop().await;
            }
        }
        let context = &self.definitions.context;
        let Some(running) = part.start(context, Arc::clone(&self.xrd)) else {
            return watch::channel(false).1;
        };
        let ready = running.ready();
        let xrd = Arc::clone(&self.xrd);
        started.insert(key, Started { xrd, running });
        ready
    }

    /// Deletes all objects, then the CRD, then lets the XRD go.
    async fn terminate(&mut self, part: Part, rendered: &Value) -> Result<Next, Failure> {
        let mut conditions = Conditions::of(&self.object, &crate::now());
        conditions.set(part.condition(), false, part.condition_reasons().1, "");
        let mut status = self.status();
        status["conditions"] = conditions.to_json();
        self.write_status(status).await?;
        let crd = self.crd(rendered).await?;
        let Some(crd) = crd.filter(|crd| is_controlled_by(crd, &self.object)) else {
            self.definitions.stop(&self.xrd.name, part).await;
            let mut without = self.object.clone();
            prepare::remove_finalizer(&mut without, part.finalizer());
            self.replace(&without, part.event_reasons().1, "remove")
                .await?;
            return Ok(Next::Wait);
        };
        if object::is_deleting(&crd) {
            return Ok(Next::After(WAIT_INTERVAL));
        }
        if self.delete_objects(part).await? > 0 {
            let message = format!("waiting for defined {}s to be deleted", part.what());
            self.tell(part.event_reasons().1, message);
            return Ok(Next::After(WAIT_INTERVAL));
        }
        self.definitions.stop(&self.xrd.name, part).await;
        let context = &self.definitions.context;
        context.metrics.wrote("delete");
        let kind = crd_kind();
        let deleted = context.api.delete(&kind, &crd, Propagation::Background);
        deleted.await.map_err(|e| {
            let doing = format!("cannot delete {} CustomResourceDefinition", part.what());
            self.failed(part.event_reasons().1, &doing, &e)
        })?;
        self.tell(
            part.event_reasons().1,
            format!(
                "Deleted {} CustomResourceDefinition: {}",
                part.what(),
                object::name(&crd)
            ),
        );
        Ok(Next::After(WAIT_INTERVAL))
    }

    /// Deletes what is left; returns how many there were.
    async fn delete_objects(&self, part: Part) -> Result<usize, Failure> {
        let Some(kind) = part.kind(&self.xrd) else {
            return Ok(0);
        };
        let context = &self.definitions.context;
        let reason = part.event_reasons().1;
        let (objects, _) = match context.api.list(&kind).await {
            Err(error) if error.is_not_found() => return Ok(0),
            Err(error) => {
                let doing = format!("cannot list defined {}s", part.what());
                return Err(self.failed(reason, &doing, &error));
            }
            Ok(listed) => listed,
        };
        for object in objects.iter().filter(|o| !object::is_deleting(o)) {
            context.metrics.wrote("delete");
            let deleted = context.api.delete(&kind, object, Propagation::Background);
            deleted.await.map_err(|e| {
                let doing = format!("cannot delete defined {}s", part.what());
                self.failed(reason, &doing, &e)
            })?;
        }
        Ok(objects.len())
    }
}
