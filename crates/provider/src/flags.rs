//! The command line that all providers have (crossplane-runtime's conventional flags), and what
//! their binaries do with it.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use kube::Client;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::duration;
use crate::kind::Provider;
use crate::leader::Candidate;
use crate::limits;
use crate::metrics::Metrics;
use crate::runtime::Options;
use crate::server;

/// Flags of a provider binary.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// Log why things are done, not only what.
    #[arg(long, short = 'd')]
    pub debug: bool,
    /// How often each resource that is up to date is observed.
    #[arg(long, default_value = "1m", value_parser = go_duration)]
    pub poll: Duration,
    /// How many reconciles may run at the same time.
    #[arg(long, default_value_t = limits::CONCURRENCY_DEFAULT)]
    pub max_reconcile_rate: usize,
    /// Accepted for compatibility: watches are never synced again without a reason.
    #[arg(long, short = 's', default_value = "1h", value_parser = go_duration)]
    pub sync: Duration,
    /// Accepted for compatibility: state metrics are always current.
    #[arg(long, default_value = "5s", value_parser = go_duration)]
    pub poll_state_metric: Duration,
    /// Accepted for compatibility: management policies are always on.
    #[arg(
        long,
        default_value_t = true,
        default_missing_value = "true",
        num_args = 0..=1,
        action = clap::ArgAction::Set
    )]
    pub enable_management_policies: bool,
    /// Run in more than one pod, of which one works at a time.
    #[arg(long, short = 'l', env = "LEADER_ELECTION")]
    pub leader_election: bool,
    /// Namespace of the lease.
    #[arg(long, default_value = "crossplane-system", env = "POD_NAMESPACE")]
    pub leader_election_namespace: String,
    /// Where metrics and health are served.
    #[arg(long, default_value = "0.0.0.0:8080")]
    pub metrics_address: SocketAddr,
}

fn go_duration(text: &str) -> Result<Duration, duration::DurationError> {
    duration::parse(text)
}

impl Flags {
    /// The runtime's options.
    pub fn options(&self) -> Options {
        Options {
            poll: self.poll.max(limits::POLL_MIN),
            concurrency: self.max_reconcile_rate.max(1),
            ..Options::default()
        }
    }

    /// Who stands for election for a provider.
    fn candidate(&self, provider: &Provider) -> Candidate {
        let lease = format!("crossplane-leader-election-provider-{}", provider.name);
        Candidate::new(&self.leader_election_namespace, &lease)
    }

    /// What a provider's `main` does: logs as JSON, a client from the pod's service account or the
    /// kubeconfig, metrics and health, and `run` until SIGTERM or SIGINT.
    ///
    /// # Errors
    /// There is no cluster to talk to, the metrics port is taken, or `run` fails.
    pub async fn serve<F>(
        &self,
        provider: &Provider,
        metrics: Metrics,
        run: impl FnOnce(Client, CancellationToken) -> F,
    ) -> anyhow::Result<()>
    where
        F: Future<Output = anyhow::Result<()>>,
    {
        let level = if self.debug { "debug" } else { "info" };
        let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
        tracing_subscriber::fmt()
            .json()
            .with_env_filter(filter)
            .init();
        let client = Client::try_default()
            .await
            .context("finding a Kubernetes API")?;
        let shutdown = CancellationToken::new();
        let encode = move || metrics.encode();
        let serving = server::serve(self.metrics_address, encode, shutdown.clone());
        let running = self.lead(provider, client, shutdown.clone(), run);
        let mut terminate = signal(SignalKind::terminate()).context("catching SIGTERM")?;
        let stopping = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            shutdown.cancel();
        };
        let serving = async {
            let result = serving.await.context("serving metrics");
            if result.is_err() {
                shutdown.cancel();
            }
            result
        };
        let running = async {
            let result = running.await;
            shutdown.cancel();
            result
        };
        tokio::select! {
            biased;
            results = async { tokio::join!(serving, running) } => {
                results.1?;
                results.0
            }
            () = async { stopping.await; std::future::pending::<()>().await } => Ok(()),
        }
    }

    /// Runs, once this replica leads if leaders are elected, and no longer than it leads.
    async fn lead<F>(
        &self,
        provider: &Provider,
        client: Client,
        shutdown: CancellationToken,
        run: impl FnOnce(Client, CancellationToken) -> F,
    ) -> anyhow::Result<()>
    where
        F: Future<Output = anyhow::Result<()>>,
    {
        if !self.leader_election {
            return run(client, shutdown).await;
        }
        let work = {
            let (client, shutdown) = (client.clone(), shutdown.clone());
            || run(client, shutdown)
        };
        self.candidate(provider).lead(&client, shutdown, work).await
    }
}
