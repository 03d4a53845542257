//! Safe start: tells when kinds come to be served.
//!
//! A provider with the capability `safe-start` runs before its CRDs exist, since Crossplane makes
//! those alone that somebody activates (crossplane-runtime's `customresourcesgate`). Where CRDs
//! may not be watched, as with Crossplane 1.20, absent kinds are looked for every few seconds.

use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::Api;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher;
use tokio::sync::watch;
use tracing::{debug, info};

use crate::backoff::Backoff;
use crate::limits::{ABSENT_LOOK_MAX, CRD_WATCH_BACKOFF, WATCH_BACKOFF};

/// CRDs of one API group, as they come and change.
#[derive(Debug)]
pub(crate) struct Arrivals {
    group: &'static str,
    state: watch::Sender<State>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Whether an arrival will be told.
    followed: bool,
    /// Grows with every change.
    changes: u64,
}

impl Arrivals {
    /// Those of a group, once [`Arrivals::follow`] runs.
    pub(crate) fn new(group: &'static str) -> Self {
        Self {
            group,
            state: watch::Sender::default(),
        }
    }

    /// Who wants to know of changes from now on.
    pub(crate) fn listen(&self) -> Listener {
        let mut state = self.state.subscribe();
        let seen = state.borrow_and_update().changes;
        Listener { state, seen }
    }

    /// Follows CRDs for ever. Only their metadata: schemas are large.
    pub(crate) async fn follow(&self, client: Client) {
        let api: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client);
        let backoff = Backoff {
            min: CRD_WATCH_BACKOFF.0,
            max: CRD_WATCH_BACKOFF.1,
        };
        let suffix = format!(".{}", self.group);
        let mut failures = 0;
        let mut events = watcher(api, watcher::Config::default()).boxed();
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Init) => {}
                Ok(watcher::Event::InitDone) => {
                    failures = 0;
                    self.state.send_modify(|state| {
                        state.followed = true;
                        state.changes += 1;
                    });
                }
                Ok(watcher::Event::InitApply(crd) | watcher::Event::Apply(crd)) => {
                    let name = crd.metadata.name.unwrap_or_default();
                    if name.ends_with(&suffix) {
                        debug!(crd = name, "a kind came or changed");
                        self.state.send_modify(|state| state.changes += 1);
                    }
                }
                Ok(watcher::Event::Delete(_)) => {}
                Err(error) => {
                    if failures == 0 {
                        let every_s = WATCH_BACKOFF.1.as_secs();
                        info!(%error, every_s, "cannot watch CRDs: absent kinds are looked for");
                    }
                    self.state.send_modify(|state| state.followed = false);
                    tokio::time::sleep(backoff.delay(failures, rand::random())).await;
                    failures = failures.saturating_add(1);
                }
            }
        }
    }
}

/// Waits for arrivals.
#[derive(Debug)]
pub(crate) struct Listener {
    state: watch::Receiver<State>,
    seen: u64,
}

impl Listener {
    /// Waits until a CRD came or changed since the last call, or it is time to look again: after
    /// `delay`, or much later where arrivals are told and looking did not help for a while.
    /// Returns whether one came.
    pub(crate) async fn came(&mut self, delay: Duration) -> bool {
        let followed = self.state.borrow().followed;
        let delay = match followed && delay >= WATCH_BACKOFF.1 / 2 {
            true => ABSENT_LOOK_MAX,
            false => delay,
        };
        let seen = self.seen;
        let change = self.state.wait_for(|state| state.changes != seen);
        match tokio::time::timeout(delay, change).await {
            Ok(Ok(state)) => {
                self.seen = state.changes;
                true
            }
            Ok(Err(_)) | Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    fn tell(arrivals: &Arrivals, followed: bool) {
        arrivals.state.send_modify(|state| {
            state.followed = followed;
            state.changes += 1;
        });
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_is_told_once() {
        let arrivals = Arrivals::new("x.example.org");
        tell(&arrivals, true);
        let mut listener = arrivals.listen();
        assert!(
            !listener.came(Duration::from_secs(1)).await,
            "it was there before"
        );
        tell(&arrivals, true);
        tell(&arrivals, true);
        assert!(listener.came(Duration::from_secs(1)).await);
        assert!(!listener.came(Duration::from_secs(1)).await);
    }

    #[tokio::test(start_paused = true)]
    async fn absent_kinds_are_looked_for_seldom_only_where_arrivals_are_told() {
        let arrivals = Arrivals::new("x.example.org");
        for (followed, delay, waited) in [
            (false, WATCH_BACKOFF.1, WATCH_BACKOFF.1),
            (true, WATCH_BACKOFF.0, WATCH_BACKOFF.0),
            (true, WATCH_BACKOFF.1, ABSENT_LOOK_MAX),
        ] {
            tell(&arrivals, followed);
            let mut listener = arrivals.listen();
            let start = Instant::now();
            assert!(!listener.came(delay).await);
            assert_eq!(start.elapsed(), waited);
        }
    }
}
