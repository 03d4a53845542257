//! Working off a queue: bounded, with backoff, metrics and an orderly end.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api::ApiError;
use crate::limits::{BACKOFF, CONFLICT_BACKOFF, RECONCILE_TIMEOUT};
use crate::metrics::Metrics;
use crate::queue::{Queue, backoff};

/// What follows a reconcile that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing, until something changes.
    Wait,
    /// Another one after a while.
    After(Duration),
}

/// Why a reconcile did not come to its end.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Somebody else wrote first: once more with what they wrote, without a word.
    Conflict,
    /// Something is wrong; it has been told in conditions and events.
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
    /// What identifies an object.
    type Key: Ord + Clone + Send + Sync + fmt::Debug + 'static;

    /// Name in logs and metrics.
    fn name(&self) -> &str;

    /// Reconciles one object. Called for one key at most once at a time.
    fn reconcile(&self, key: &Self::Key) -> impl Future<Output = Result<Next, Failure>> + Send;
}

/// Works off a queue until stopped; then lets what is under way end.
pub(crate) async fn run<R: Reconciler>(
    reconciler: Arc<R>,
    queue: Arc<Queue<R::Key>>,
    concurrency: usize,
    metrics: Metrics,
    stop: CancellationToken,
) {
    let permits = Arc::new(Semaphore::new(concurrency));
    let tasks = TaskTracker::new();
    loop {
        let next = async {
            let permit = Arc::clone(&permits).acquire_owned().await;
            (permit, queue.next().await)
        };
        let (permit, key) = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            next = next => next,
        };
        metrics.queued(reconciler.name(), queue.depth());
        let held = Held {
            queue: Arc::clone(&queue),
            key,
        };
        let (reconciler, metrics) = (Arc::clone(&reconciler), metrics.clone());
        tasks.spawn(async move {
            let _permit = permit;
            reconcile(&*reconciler, &held, &metrics).await;
        });
    }
    tasks.close();
    tasks.wait().await;
}

/// A key that is being worked on; given back when dropped. After a panic it has another turn, as
/// after any failure.
struct Held<K: Ord + Clone> {
    queue: Arc<Queue<K>>,
    key: K,
}

impl<K: Ord + Clone> Drop for Held<K> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let pause = backoff(BACKOFF, self.queue.failed(&self.key));
            self.queue.add_after(self.key.clone(), pause);
        }
        self.queue.done(&self.key);
    }
}

async fn reconcile<R: Reconciler>(reconciler: &R, held: &Held<R::Key>, metrics: &Metrics) {
    let (queue, key) = (&held.queue, &held.key);
    let started = Instant::now();
    let result = tokio::time::timeout(RECONCILE_TIMEOUT, reconciler.reconcile(key))
        .await
        .unwrap_or_else(|_| Err(Failure::Error("it took too long".into())));
    let controller = reconciler.name();
    let outcome = match result {
        Ok(next) => {
            queue.succeeded(key);
            if let Next::After(delay) = next {
                queue.add_after(key.clone(), delay);
            }
            "success"
        }
        Err(Failure::Conflict) => {
            let pause = backoff(CONFLICT_BACKOFF, queue.failed(key));
            queue.add_after(key.clone(), pause);
            "conflict"
        }
        Err(Failure::Error(error)) => {
            let pause = backoff(BACKOFF, queue.failed(key));
            tracing::debug!(controller, ?key, error, ?pause, "reconcile failed");
            queue.add_after(key.clone(), pause);
            "error"
        }
    };
    metrics.reconciled(controller, outcome, started.elapsed());
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    struct Clumsy(AtomicUsize);

    impl Reconciler for Clumsy {
        type Key = &'static str;

        #[expect(clippy::unnecessary_literal_bound, reason = "the trait's signature")]
        fn name(&self) -> &str {
            "clumsy"
        }

        async fn reconcile(&self, _: &&'static str) -> Result<Next, Failure> {
            assert!(self.0.fetch_add(1, Ordering::SeqCst) > 0, "told to panic");
            Ok(Next::Wait)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_whose_reconcile_panicked_has_another_turn() {
        let (queue, stop) = (Arc::new(Queue::new()), CancellationToken::new());
        let clumsy = Arc::new(Clumsy(AtomicUsize::new(0)));
        queue.add("a");
        let work = run(
            Arc::clone(&clumsy),
            queue,
            1,
            Metrics::default(),
            stop.clone(),
        );
        let work = tokio::spawn(work);
        tokio::time::sleep(BACKOFF.1).await;
        stop.cancel();
        work.await.expect("no panic");
        assert_eq!(clumsy.0.load(Ordering::SeqCst), 2);
    }
}
