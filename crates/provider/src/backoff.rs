//! Delays between attempts.

use std::time::Duration;

/// Delays that double from `min` to `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// First delay.
    pub min: Duration,
    /// Longest delay.
    pub max: Duration,
}

impl Backoff {
    /// The delay after `attempt` attempts (from 0), between half of it and all of it as `random`
    /// (from 0 to 1) says.
    pub fn delay(&self, attempt: u32, random: f64) -> Duration {
        let full = self
            .min
            .saturating_mul(1_u32.checked_shl(attempt.min(31)).unwrap_or(u32::MAX))
            .min(self.max);
        full.mul_f64(0.5 + 0.5 * random.clamp(0.0, 1.0))
    }
}

/// `interval` plus up to `share` of it at random.
pub fn jittered(interval: Duration, share: f64, random: f64) -> Duration {
    interval.mul_f64(1.0 + share * random.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest() {
        let backoff = Backoff {
            min: Duration::from_secs(1),
            max: Duration::from_secs(60),
        };
        let seconds: Vec<u64> = (0..8).map(|n| backoff.delay(n, 1.0).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff.delay(u32::MAX, 1.0).as_secs(), 60);
        assert_eq!(backoff.delay(1, 0.0), Duration::from_secs(1));
    }

    #[test]
    fn jitter_only_adds() {
        let minute = Duration::from_secs(60);
        assert_eq!(jittered(minute, 0.1, 0.0), minute);
        assert_eq!(jittered(minute, 0.1, 1.0), Duration::from_secs(66));
    }
}
