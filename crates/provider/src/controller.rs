//! Runs the reconciler of one kind: watch, queue, turns.

use std::sync::Arc;

use futures::StreamExt as _;
use kube::api::{Api, DynamicObject};
use tokio::sync::{Semaphore, broadcast};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::warn;

use crate::arrivals::Listener;
use crate::config::ConfigRef;
use crate::external::ExternalChange;
use crate::key::Key;
use crate::limits::{DRAIN_TIME_MAX, UNBLOCK_DELAY};
use crate::memory::{Due, Turn};
use crate::queue::Queue;
use crate::reconcile::Reconciler;
use crate::watching::{Change, watch_arriving};

/// The controller of one kind.
pub(crate) struct Controller {
    pub(crate) reconciler: Reconciler,
    pub(crate) queue: Queue<Key>,
    /// Shared by all kinds of the process.
    pub(crate) slots: Arc<Semaphore>,
}

impl Controller {
    /// Runs until `shutdown`, then waits for reconciles that are under way.
    pub(crate) async fn run(self: Arc<Self>, arrivals: Listener, shutdown: CancellationToken) {
        let turns = TaskTracker::new();
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.follow(arrivals) => {}
            () = self.follow_configs() => {}
            () = self.follow_changes() => {}
            () = self.dispatch(&turns) => {}
        }
        turns.close();
        if tokio::time::timeout(DRAIN_TIME_MAX, turns.wait())
            .await
            .is_err()
        {
            let kind = self.reconciler.kind.kind;
            warn!(
                kind,
                running = turns.len(),
                "reconciles cut off at shutdown"
            );
        }
    }

    /// Follows the objects.
    async fn follow(&self, arrivals: Listener) {
        let reconciler = &self.reconciler;
        let api: Api<DynamicObject> =
            Api::all_with(reconciler.client.clone(), &reconciler.resource);
        let memory = &reconciler.memory;
        let (configs, kind) = (reconciler.configs.as_deref(), reconciler.kind.kind);
        watch_arriving(api, arrivals, |change| match change {
            Change::Applied(object) => {
                let key = Key::of(&object);
                memory.on_event(&key, &object);
                if let Some(configs) = configs {
                    configs.seen(kind, &key, &object);
                }
                self.queue.add(key);
            }
            Change::Removed(key) => {
                memory.on_removed(&key);
                if let Some(configs) = configs {
                    configs.gone(kind, &key);
                }
                self.queue.forget(&key);
                reconciler.metrics.set_counts(memory.counts());
            }
            Change::Listed => reconciler.metrics.set_counts(memory.counts()),
        })
        .await;
    }

    /// Wakes the users of a configuration whose spec changes.
    async fn follow_configs(&self) {
        let Some(configs) = &self.reconciler.configs else {
            return std::future::pending().await;
        };
        let mut changes = configs.changes();
        loop {
            match changes.recv().await {
                Ok(config) => self.wake_users(&config),
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    for key in self.reconciler.memory.keys() {
                        self.wake(key);
                    }
                }
                Err(broadcast::error::RecvError::Closed) => return std::future::pending().await,
            }
        }
    }

    fn wake_users(&self, config: &ConfigRef) {
        for key in self.reconciler.memory.users_of(config) {
            self.wake(key);
        }
    }

    /// Wakes the objects whose external resources the cloud says have changed.
    async fn follow_changes(&self) {
        let memory = &self.reconciler.memory;
        let mut changes = self.reconciler.external.changes();
        while let Some(change) = changes.next().await {
            let keys = match change {
                ExternalChange::Of(name) => memory.named(&name),
                ExternalChange::Unknown => memory.keys(),
            };
            for key in keys {
                self.wake(key);
            }
        }
        std::future::pending().await
    }

    /// Has an object looked at now.
    pub(crate) fn wake(&self, key: Key) {
        self.reconciler.memory.force(&key);
        self.queue.add(key);
    }

    /// Has an object looked at soon.
    pub(crate) fn wake_soon(&self, key: Key) {
        self.reconciler.memory.force(&key);
        self.queue.add_after(key, UNBLOCK_DELAY);
    }

    async fn dispatch(self: &Arc<Self>, turns: &TaskTracker) {
        loop {
            let key = self.queue.next().await;
            match self.reconciler.memory.begin(&key, Instant::now()) {
                Turn::Skip(at) => {
                    if let Some(at) = at {
                        let delay = at.saturating_duration_since(Instant::now());
                        self.queue.add_after(key.clone(), delay);
                    }
                    self.queue.done(&key);
                }
                Turn::Run => {
                    // The key first: an idle kind must not keep a slot from the others.
                    let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await else {
                        return;
                    };
                    let turn = TurnGuard {
                        controller: Arc::clone(self),
                        key,
                        due: None,
                    };
                    turns.spawn(async move {
                        let _slot = slot;
                        turn.run().await;
                    });
                }
            }
        }
    }
}

/// Ends a turn even when the reconcile panics: the key must not be stuck.
struct TurnGuard {
    controller: Arc<Controller>,
    key: Key,
    due: Option<Due>,
}

impl TurnGuard {
    async fn run(mut self) {
        self.due = Some(self.controller.reconciler.reconcile(&self.key).await);
    }
}

impl Drop for TurnGuard {
    fn drop(&mut self) {
        let now = Instant::now();
        let due = self
            .due
            .unwrap_or(Due::At(now + crate::limits::BACKOFF_MAX));
        self.controller.reconciler.memory.end(&self.key, due);
        if let Due::At(at) = due {
            let delay = at.saturating_duration_since(now);
            self.controller.queue.add_after(self.key.clone(), delay);
        }
        self.controller.queue.done(&self.key);
    }
}
