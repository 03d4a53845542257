//! A watch that never ends: lists, watches, lists again when it must, and says what changed.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use kube::api::{Api, DynamicObject};
use kube::runtime::watcher;
use tracing::{debug, warn};

use crate::arrivals::Listener;
use crate::backoff::Backoff;
use crate::key::Key;
use crate::limits::WATCH_BACKOFF;

/// A change of the watched objects.
#[derive(Clone, Debug)]
pub enum Change {
    /// An object was added or changed, or is still there after the watch was started again.
    Applied(Box<DynamicObject>),
    /// An object is gone.
    Removed(Key),
    /// Everything that is there has been told.
    Listed,
}

/// Watches for ever and tells `on` each change, in order. Dropping the future ends it.
///
/// # Guarantees
/// An object that vanished while the watch was broken is told as removed. A kind that is not
/// served (yet) is tried again, with delays of up to ten seconds.
pub async fn watch(api: Api<DynamicObject>, on: impl FnMut(Change)) {
    follow(api, "", None, on).await;
}

/// The same for objects whose labels match a selector.
pub async fn watch_selected(api: Api<DynamicObject>, labels: &str, on: impl FnMut(Change)) {
    follow(api, labels, None, on).await;
}

/// The same for a kind whose CRD may come later, which is watched as soon as it does.
pub(crate) async fn watch_arriving(
    api: Api<DynamicObject>,
    arrivals: Listener,
    on: impl FnMut(Change),
) {
    follow(api, "", Some(arrivals), on).await;
}

async fn follow(
    api: Api<DynamicObject>,
    labels: &str,
    mut arrivals: Option<Listener>,
    mut on: impl FnMut(Change),
) {
    let backoff = Backoff {
        min: WATCH_BACKOFF.0,
        max: WATCH_BACKOFF.1,
    };
    let what = api.resource_url().to_owned();
    let mut known: BTreeSet<Key> = BTreeSet::new();
    let mut listed: Option<BTreeSet<Key>> = None;
    let mut failures = 0;
    let mut config = watcher::Config::default();
    if !labels.is_empty() {
        config = config.labels(labels);
    }
    let mut events = watcher(api, config).boxed();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                // A new attempt begins with `Init`, whether or not the list then succeeds.
                if !matches!(event, watcher::Event::Init) {
                    failures = 0;
                }
                match event {
                    watcher::Event::Init => listed = Some(BTreeSet::new()),
                    watcher::Event::InitApply(object) => {
                        let key = Key::of(&object);
                        if let Some(listed) = &mut listed {
                            listed.insert(key.clone());
                        }
                        known.insert(key);
                        on(Change::Applied(Box::new(object)));
                    }
                    watcher::Event::InitDone => {
                        let listed = listed.take().unwrap_or_default();
                        for key in known.difference(&listed) {
                            on(Change::Removed(key.clone()));
                        }
                        known = listed;
                        on(Change::Listed);
                    }
                    watcher::Event::Apply(object) => {
                        known.insert(Key::of(&object));
                        on(Change::Applied(Box::new(object)));
                    }
                    watcher::Event::Delete(object) => {
                        let key = Key::of(&object);
                        known.remove(&key);
                        on(Change::Removed(key));
                    }
                }
            }
            Err(error) => {
                if is_absent(&error) {
                    debug!(what, %error, "kind is not served yet");
                } else if failures > 3 {
                    warn!(what, %error, "watch is broken");
                } else {
                    debug!(what, %error, "watch ended");
                }
                let delay = backoff.delay(failures, rand::random());
                failures = failures.saturating_add(1);
                match &mut arrivals {
                    Some(arrivals) if is_absent(&error) => {
                        if arrivals.came(delay).await {
                            failures = 0;
                        }
                    }
                    _ => tokio::time::sleep(delay).await,
                }
            }
        }
    }
}

fn is_absent(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status.code == 404,
        _ => false,
    }
}
