//! The controller of the XRs of one XRD.

mod apply;
mod breaker;
mod deps;
mod fetch;
mod memo;
mod reconcile;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Weak};

use ecp_meta::gvk::GroupVersionKind;
use ecp_meta::object;
use ecp_xr::machinery::{Machinery, UpdatePolicy};
use ecp_xr::xrd::Xrd;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::api::Kind;
use crate::context::{Context, composition_kind, revision_kind};
use crate::controller::{self, Failure, Next, Reconciler};
use crate::definition::Part;
use crate::events::Recorder;
use crate::informer::{Change, Handler, Informer, Key, Subscription, key_of};
use crate::limits::{GATHER_TIME, RECONCILES_PER_XR, WATCH_GC_INTERVAL};
use crate::queue::Queue;

use breaker::{Breaker, Verdict};
use deps::Deps;
pub(crate) use memo::Mark;
use memo::Memo;
use reconcile::Reconcile;

/// A controller that runs.
#[derive(Debug)]
pub(crate) struct Running {
    stop: CancellationToken,
    task: JoinHandle<()>,
    ready: watch::Receiver<bool>,
}

impl Running {
    /// Starts a controller's task. It gets its end, and what to say when its watches are up.
    pub(crate) fn start<F>(
        context: &Context,
        run: impl FnOnce(CancellationToken, watch::Sender<bool>) -> F,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let stop = context.stop.child_token();
        let (sender, ready) = watch::channel(false);
        let task = context.tasks.spawn(run(stop.clone(), sender));
        Self { stop, task, ready }
    }

    /// Says when its watches are up.
    pub(crate) fn ready(&self) -> watch::Receiver<bool> {
        self.ready.clone()
    }

    /// Stops it and waits for what is under way.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            tracing::error!(%error, "controller broke");
        }
    }
}

/// The controller of the XRs of one XRD.
#[derive(Debug)]
pub(crate) struct Controller {
    context: Arc<Context>,
    name: String,
    xrd: Arc<Xrd>,
    kind: Kind,
    recorder: Recorder,
    queue: Arc<Queue<Key>>,
    xrs: Arc<Informer>,
    deps: Deps,
    breaker: Breaker,
    memos: Mutex<BTreeMap<Key, Memo>>,
    /// Watches of what XRs depend on.
    watches: Mutex<BTreeMap<GroupVersionKind, Subscription>>,
    /// Itself, for the handlers of those watches.
    this: Weak<Controller>,
}

/// The kind of an XRD's XRs.
pub(crate) fn composite_kind(xrd: &Xrd) -> Kind {
    Kind::new(
        xrd.composite_gvk(),
        &xrd.spec.names.plural,
        xrd.scope.is_namespaced(),
    )
}

/// Has an XR reconciled that a change concerns. The more there is to do, the longer what can wait
/// does: what follows takes longer, too.
fn wake(queue: &Queue<Key>, change: Change<'_>, xr: Key) {
    if change.can_wait() {
        let (least, most) = GATHER_TIME;
        let busy = u32::try_from(queue.busy()).unwrap_or(u32::MAX);
        queue.add_after(xr, least.saturating_mul(busy.max(1)).min(most));
    } else {
        queue.add(xr);
    }
}

/// Starts the controller of an XRD's XRs.
pub(crate) fn start(context: &Arc<Context>, xrd: Arc<Xrd>) -> Running {
    Running::start(context, |stop, ready| {
        run(Arc::clone(context), xrd, stop, ready)
    })
}

async fn run(
    context: Arc<Context>,
    xrd: Arc<Xrd>,
    stop: CancellationToken,
    ready: watch::Sender<bool>,
) {
    let kind = composite_kind(&xrd);
    context.mapper.learn(kind.clone());
    let queue: Arc<Queue<Key>> = Arc::new(Queue::new());
    let handler: Handler = {
        let queue = Arc::clone(&queue);
        Arc::new(move |change| {
            if let Some(xr) = change.object() {
                wake(&queue, change, key_of(xr));
            }
        })
    };
    let xrs = context.informers.subscribe(&kind, handler);
    let name = format!("composite/{}", xrd.name);
    let controller = Arc::new_cyclic(|this| Controller {
        recorder: context
            .recorder
            .of_component(Part::Composite.component())
            .for_controller(&name),
        name,
        xrd,
        kind,
        xrs: Arc::clone(xrs.informer()),
        queue: Arc::clone(&queue),
        deps: Deps::default(),
        breaker: Breaker::default(),
        memos: Mutex::default(),
        watches: Mutex::default(),
        this: this.clone(),
        context: Arc::clone(&context),
    });
    let _subscriptions = [composition_kind(), revision_kind()].map(|kind| {
        let this = Arc::downgrade(&controller);
        let handler: Handler = Arc::new(move |change| {
            if let Some(controller) = this.upgrade() {
                controller.composition_changed(change);
            }
        });
        context.informers.subscribe(&kind, handler)
    });
    let synced = async {
        context.catalogue.wait_synced().await;
        while !controller.xrs.wait_synced().await {}
    };
    tokio::select! {
        () = stop.cancelled() => return,
        () = synced => {}
    }
    ready.send_replace(true);
    let work = controller::run(
        Arc::clone(&controller),
        queue,
        context.reconciles_max,
        context.metrics.clone(),
        stop.clone(),
    );
    tokio::select! {
        () = work => {}
        () = controller.drop_unused_watches() => {}
    }
    controller.watches.lock().clear();
}

impl Controller {
    /// Wakes the XRs that use a Composition, or that have found none yet.
    fn composition_changed(&self, change: Change<'_>) {
        let Some(object) = change.object() else {
            return;
        };
        let gvk = self.xrd.composite_gvk();
        let of = |field: &str| {
            let path = format!("/spec/compositeTypeRef/{field}");
            object.pointer(&path).and_then(Value::as_str)
        };
        if of("apiVersion") != Some(&gvk.api_version()) || of("kind") != Some(&gvk.kind) {
            return;
        }
        let composition = object::label(object, ecp_meta::keys::COMPOSITION_NAME)
            .unwrap_or_else(|| object::name(object));
        let waiting = self.xrs.select(None, |xr| {
            let machinery = Machinery::of(xr, self.xrd.scope);
            let used = machinery
                .composition()
                .is_none_or(|name| name == composition);
            used && machinery.update_policy() != Some(UpdatePolicy::Manual)
                || machinery.revision().is_none()
        });
        for xr in waiting {
            self.queue.add(key_of(&xr));
        }
    }

    /// The cache of a kind that XRs depend on, watched from now on.
    fn watch(&self, kind: &Kind) -> Arc<Informer> {
        let mut watches = self.watches.lock();
        let subscription = watches.entry(kind.gvk.clone()).or_insert_with(|| {
            let this = self.this.clone();
            let gvk = kind.gvk.clone();
            let handler: Handler = Arc::new(move |change| {
                let Some(controller) = this.upgrade() else {
                    return;
                };
                for xr in controller.deps.dependants(&gvk, change) {
                    wake(&controller.queue, change, xr);
                }
            });
            self.context.informers.subscribe(kind, handler)
        });
        Arc::clone(subscription.informer())
    }

    /// Ends the watches of kinds that no XR depends on any more. Runs until dropped.
    async fn drop_unused_watches(&self) {
        loop {
            tokio::time::sleep(WATCH_GC_INTERVAL).await;
            let unused: Vec<Subscription> = {
                let mut watches = self.watches.lock();
                // Under the lock: who depends on a kind says so before it asks for the watch.
                let used = self.deps.kinds();
                let gone: Vec<GroupVersionKind> = watches
                    .keys()
                    .filter(|k| !used.contains(k))
                    .cloned()
                    .collect();
                gone.iter().filter_map(|k| watches.remove(k)).collect()
            };
            drop(unused);
        }
    }

    fn forget(&self, key: &Key) {
        self.deps.forget(key);
        self.breaker.forget(key);
        if let Some(memo) = self.memos.lock().remove(key) {
            self.recorder.forget(&memo.uid);
        }
    }
}

impl Reconciler for Controller {
    type Key = Key;

    fn name(&self) -> &str {
        &self.name
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Failure> {
        let Some(xr) = self.xrs.get(key) else {
            self.forget(key);
            return Ok(Next::Wait);
        };
        let fight = match self.breaker.take(key) {
            Verdict::Later => return Ok(Next::After(RECONCILES_PER_XR.1)),
            Verdict::Open => Some(self.deps.woken_by(key)),
            Verdict::Closed => None,
        };
        let uid = object::uid(&xr);
        let mut memo = self.memos.lock().remove(key).unwrap_or_default();
        if memo.uid != uid {
            memo = Memo {
                uid: uid.to_owned(),
                ..Memo::default()
            };
        }
        let result = Reconcile::new(self, key, Value::clone(&xr), &mut memo, fight.as_deref())
            .run()
            .await;
        self.memos.lock().insert(key.clone(), memo);
        result
    }
}
