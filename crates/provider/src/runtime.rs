//! Runs all kinds of one provider in one process.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use kube::Client;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::info;

use crate::arrivals::Arrivals;
use crate::blocked::{Blocked, Waiting};
use crate::clock::Clock;
use crate::config::Configs;
use crate::controller::Controller;
use crate::erased::{Erased, ErasedExternal};
use crate::events;
use crate::external::External;
use crate::key::Key;
use crate::kind::{Configs as UsesConfigs, KindInfo, Managed, Provider};
use crate::limits;
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::queue::Queue;
use crate::reconcile::Reconciler;

/// Intervals and bounds of a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How often a resource that is up to date is observed.
    pub poll: Duration,
    /// How many reconciles run at the same time.
    pub concurrency: usize,
    /// First delay before a resource that the cloud is working on is observed again.
    pub settle_min: Duration,
    /// Longest such delay.
    pub settle_max: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            poll: limits::POLL_DEFAULT,
            concurrency: limits::CONCURRENCY_DEFAULT,
            settle_min: limits::SETTLE_MIN,
            settle_max: limits::SETTLE_MAX,
        }
    }
}

/// Runs the controllers of a provider's kinds.
pub struct Runtime {
    client: Client,
    provider: Provider,
    options: Options,
    metrics: Metrics,
    clock: Clock,
    kinds: Vec<Box<dyn ErasedExternal>>,
    wakers: Vec<(&'static str, Waker)>,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kinds: Vec<&str> = self.kinds.iter().map(|k| k.kind().kind).collect();
        f.debug_struct("Runtime")
            .field("provider", &self.provider)
            .field("options", &self.options)
            .field("kinds", &kinds)
            .finish_non_exhaustive()
    }
}

/// Has objects of one kind looked at when something outside the object changed.
#[derive(Clone, Debug, Default)]
pub struct Waker(Arc<Mutex<WakerState>>);

#[derive(Default)]
enum WakerState {
    #[default]
    Idle,
    Running(Arc<Controller>),
}

impl std::fmt::Debug for WakerState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Idle => "Idle",
            Self::Running(_) => "Running",
        })
    }
}

impl Waker {
    /// Wakes one object. Before the runtime runs there is nothing to wake: it looks at every
    /// object when it starts.
    pub fn wake(&self, key: Key) {
        if let WakerState::Running(controller) = &*self.0.lock() {
            controller.wake(key);
        }
    }
}

/// The controllers of all kinds of a provider, once they run.
#[derive(Default)]
pub(crate) struct Wakers(OnceLock<BTreeMap<&'static str, Weak<Controller>>>);

impl Wakers {
    /// Has an object looked at soon.
    pub(crate) fn wake_soon(&self, waiting: &Waiting) {
        let controllers = self.0.get();
        let controller = controllers.and_then(|all| all.get(waiting.kind)?.upgrade());
        if let Some(controller) = controller {
            controller.wake_soon(waiting.key.clone());
        }
    }
}

impl Runtime {
    /// A runtime without kinds.
    pub fn new(client: Client, provider: Provider, options: Options) -> Self {
        Self {
            client,
            provider,
            options,
            metrics: Metrics::default(),
            clock: Clock::default(),
            kinds: Vec::new(),
            wakers: Vec::new(),
        }
    }

    /// Uses these metrics, so that they can be served.
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// Uses another clock.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Adds a kind.
    pub fn with<E: External>(mut self, external: E) -> Self {
        self.kinds.push(Box::new(Erased(Arc::new(external))));
        self
    }

    /// Connects `waker` to a kind that was or will be added.
    pub fn waker<M: Managed>(mut self, waker: Waker) -> Self {
        self.wakers.push((M::KIND, waker));
        self
    }

    /// Runs until `shutdown`, then lets reconciles that are under way end.
    pub async fn run(self, shutdown: CancellationToken) {
        let configs = match self.provider.configs {
            UsesConfigs::None => None,
            UsesConfigs::Tracked => Some(Arc::new(Configs::new(
                self.client.clone(),
                self.provider,
                self.clock.clone(),
            ))),
        };
        let (recorder, recorded) = events::Recorder::new(self.provider.field_manager());
        let slots = Arc::new(Semaphore::new(self.options.concurrency.max(1)));
        let tasks = TaskTracker::new();
        let (blocked, wakers) = (Arc::<Blocked>::default(), Arc::<Wakers>::default());
        let mut controllers = BTreeMap::new();
        for external in self.kinds {
            let kind: KindInfo = external.kind();
            let controller = Arc::new(Controller {
                reconciler: Reconciler {
                    kind,
                    resource: kind.api_resource(),
                    client: self.client.clone(),
                    external,
                    configs: configs.clone(),
                    memory: Memory::default(),
                    blocked: Arc::clone(&blocked),
                    wakers: Arc::clone(&wakers),
                    recorder: recorder.clone(),
                    metrics: self.metrics.of(&kind.gvk()),
                    options: self.options,
                    clock: self.clock.clone(),
                },
                queue: Queue::default(),
                slots: Arc::clone(&slots),
            });
            for (_, waker) in self.wakers.iter().filter(|(of, _)| *of == kind.kind) {
                *waker.0.lock() = WakerState::Running(Arc::clone(&controller));
            }
            controllers.insert(kind.kind, controller);
        }
        let weak = controllers
            .iter()
            .map(|(kind, c)| (*kind, Arc::downgrade(c)));
        // It is new, so this is the first and only time.
        let _ = wakers.0.set(weak.collect());
        let arrivals = Arc::new(Arrivals::new(self.provider.group));
        for controller in controllers.into_values() {
            tasks.spawn(controller.run(arrivals.listen(), shutdown.clone()));
        }
        if let Some(configs) = configs {
            let (arrivals, shutdown) = (Arc::clone(&arrivals), shutdown.clone());
            tasks.spawn(async move { configs.run(&arrivals, shutdown).await });
        }
        let (client, stop) = (self.client.clone(), shutdown.clone());
        tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = arrivals.follow(client) => {}
            }
        });
        drop(recorder);
        let sender = tokio::spawn(events::send(self.client.clone(), recorded));
        info!(provider = self.provider.name, "runs");
        tasks.close();
        tasks.wait().await;
        for (_, waker) in &self.wakers {
            *waker.0.lock() = WakerState::Idle;
        }
        // All recorders are gone; what they recorded is sent if the API still answers.
        let _ = tokio::time::timeout(limits::EVENTS_DRAIN_TIME_MAX, sender).await;
    }
}
