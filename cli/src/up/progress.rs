//! A short display of what the start is doing.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// The current step of the start, on a terminal; silent elsewhere.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
}

impl Progress {
    /// Starts the display and the clock.
    pub(crate) fn start() -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(80));
        Self {
            bar,
            started: Instant::now(),
        }
    }

    /// Names the next step.
    pub(crate) fn step(&self, what: &'static str) {
        tracing::debug!(
            elapsed_ms = self.started.elapsed().as_millis() as u64,
            "{what}"
        );
        self.bar.set_message(what);
    }

    /// Clears the display; returns the time since the start.
    pub(crate) fn finish(self) -> Duration {
        self.bar.finish_and_clear();
        self.started.elapsed()
    }
}
