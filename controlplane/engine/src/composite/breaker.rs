//! Damping of XRs that are woken without end.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::informer::Key;
use crate::limits::RECONCILES_PER_XR;

/// Counts reconciles of each XR. Many in a row are fine: an XR with many resources is woken often
/// while they come up. Reconciles, not events, are counted, so that a burst counts once.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    budgets: Mutex<BTreeMap<Key, Budget>>,
}

#[derive(Debug)]
struct Budget {
    left: f64,
    at: Instant,
    open: bool,
}

/// What the breaker says to one more reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Go ahead.
    Closed,
    /// Go ahead, but it is too much.
    Open,
    /// Not now.
    Later,
}

impl Breaker {
    /// Takes one reconcile from an XR's budget.
    pub(crate) fn take(&self, xr: &Key) -> Verdict {
        let (burst, refill) = RECONCILES_PER_XR;
        let burst = f64::from(burst);
        let now = Instant::now();
        let mut budgets = self.budgets.lock();
        let budget = budgets.entry(xr.clone()).or_insert(Budget {
            left: burst,
            at: now,
            open: false,
        });
        let earned = now.duration_since(budget.at).as_secs_f64() / refill.as_secs_f64();
        budget.left = (budget.left + earned).min(burst);
        budget.at = now;
        if budget.left < 1.0 {
            budget.open = true;
            return Verdict::Later;
        }
        budget.left -= 1.0;
        // It stays open until there was some quiet.
        budget.open &= budget.left < burst / 10.0;
        if budget.open {
            Verdict::Open
        } else {
            Verdict::Closed
        }
    }

    /// Forgets an XR.
    pub(crate) fn forget(&self, xr: &Key) {
        self.budgets.lock().remove(xr);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_large_xr_is_no_fight_and_a_fight_is_damped() {
        let breaker = Breaker::default();
        let xr = ("ns".to_owned(), "x".to_owned());
        for _ in 0..RECONCILES_PER_XR.0 {
            assert_eq!(breaker.take(&xr), Verdict::Closed);
        }
        assert_eq!(breaker.take(&xr), Verdict::Later);
        tokio::time::advance(RECONCILES_PER_XR.1).await;
        assert_eq!(breaker.take(&xr), Verdict::Open);
        assert_eq!(breaker.take(&xr), Verdict::Later);
        assert_eq!(
            breaker.take(&("ns".to_owned(), "y".to_owned())),
            Verdict::Closed
        );
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(breaker.take(&xr), Verdict::Closed);
    }
}
