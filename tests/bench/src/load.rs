//! A closed loop of clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;

/// What a load measured.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) per_second: f64,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
}

/// Latencies in order, as percentiles.
pub(crate) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let last = sorted.len().saturating_sub(1);
    sorted
        .get(last * percent / 100)
        .copied()
        .unwrap_or_default()
}

/// `clients` tasks call `request` with ever new numbers for `time`, after a warm-up of a tenth.
///
/// # Errors
/// The first failed request.
pub(crate) async fn closed_loop<F, R>(
    clients: usize,
    time: Duration,
    request: F,
) -> anyhow::Result<Load>
where
    F: Fn(u64) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = anyhow::Result<()>> + Send,
{
    let number = Arc::new(AtomicU64::new(0));
    let warm = Instant::now() + time / 10;
    let end = warm + time;
    let tasks: Vec<_> = (0..clients)
        .map(|_| {
            let (request, number) = (request.clone(), number.clone());
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                while Instant::now() < end {
                    let started = Instant::now();
                    request(number.fetch_add(1, Ordering::Relaxed)).await?;
                    if started > warm {
                        latencies.push(started.elapsed());
                    }
                }
                anyhow::Ok(latencies)
            })
        })
        .collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await.context("a client panicked")??);
    }
    latencies.sort_unstable();
    Ok(Load {
        per_second: latencies.len() as f64 / time.as_secs_f64(),
        p50: percentile(&latencies, 50),
        p99: percentile(&latencies, 99),
    })
}
