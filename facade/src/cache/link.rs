//! Whether a cache is filled and in touch with the control plane.

use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::limits;

/// The state of one watch.
pub(crate) struct Link {
    synced: watch::Sender<bool>,
    lost_at: Mutex<Option<Instant>>,
}

impl Link {
    pub(crate) fn new() -> Self {
        Self {
            synced: watch::Sender::new(false),
            lost_at: Mutex::new(Some(Instant::now())),
        }
    }

    /// Records that the connection stands, or does not.
    pub(crate) fn set(&self, connected: bool) {
        let mut lost_at = self.lost_at.lock();
        if connected {
            *lost_at = None;
            self.synced
                .send_if_modified(|synced| !std::mem::replace(synced, true));
        } else {
            lost_at.get_or_insert_with(Instant::now);
        }
    }

    /// Whether the cache was filled once.
    pub(crate) fn synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Waits until the cache was filled once.
    pub(crate) async fn wait_synced(&self) {
        // The sender lives as long as `self`, so the wait cannot fail.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }

    /// Whether the cache may answer: filled, and not cut off for long.
    pub(crate) fn fresh(&self) -> bool {
        self.synced()
            && self
                .lost_at
                .lock()
                .is_none_or(|at| at.elapsed() < limits::CACHE_CUT_OFF_MAX)
    }
}
