//! `ecp engine`: the engine alone, on any Kubernetes API.
//!
//! Flags have the names of upstream's `crossplane core start` where they mean the same.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use ecp_fnproto::{GrpcConfig, GrpcRunner, Transport};
use ecp_provider::leader::Candidate;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use crate::facade::client;
use crate::output::note;
use crate::up::{Signals, install_crds};

/// The Lease of upstream's core: of both on one cluster, one works at a time.
const LEASE: &str = "crossplane-leader-election-core";

/// Options of `ecp engine`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// How to reach the Kubernetes API; without it `KUBECONFIG`, or the pod's service account.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Namespace of the lease.
    #[arg(
        short,
        long,
        value_name = "NAME",
        env = "POD_NAMESPACE",
        default_value = "crossplane-system"
    )]
    pub(crate) namespace: String,
    /// Run in more than one pod, of which one works at a time.
    #[arg(short, long, env = "LEADER_ELECTION")]
    pub(crate) leader_election: bool,
    /// How many reconciles of one controller may run at the same time.
    #[arg(long, value_name = "N", default_value_t = ecp_engine::limits::RECONCILES_MAX)]
    pub(crate) max_concurrent_reconciles: usize,
    /// Directory of `tls.crt`, `tls.key` and `ca.crt`, with which functions are called. They are
    /// read again when they change.
    #[arg(
        long,
        value_name = "DIR",
        env = "TLS_CLIENT_CERTS_DIR",
        required_unless_present = "insecure"
    )]
    pub(crate) tls_client_certs_dir: Option<PathBuf>,
    /// Call functions without TLS. For tests only.
    #[arg(long, conflicts_with = "tls_client_certs_dir")]
    pub(crate) insecure: bool,
    /// Where metrics and health are served.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080")]
    pub(crate) metrics_address: SocketAddr,
}

impl Options {
    fn transport(&self) -> Transport {
        match &self.tls_client_certs_dir {
            Some(dir) => Transport::MutualTls(dir.clone()),
            None => Transport::Plaintext,
        }
    }
}

/// Runs until Ctrl-C or SIGTERM, then ends the reconciles that are under way.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?;
    runtime.block_on(serve(options))
}

async fn serve(options: &Options) -> anyhow::Result<()> {
    let client = client(options.kubeconfig.as_deref()).await?;
    let functions = GrpcRunner::new(GrpcConfig::new(options.transport()));
    let mut config = ecp_engine::Config::new(client.clone(), Arc::new(functions.clone()));
    config.endpoints = Some(functions);
    config.reconciles_max = options.max_concurrent_reconciles.max(1);
    let mut registry = Registry::default();
    config.metrics.register(&mut registry);
    let registry = Arc::new(registry);

    let shutdown = CancellationToken::new();
    let encode = move || {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
        text
    };
    let serving = ecp_provider::serve(options.metrics_address, encode, shutdown.clone());
    let work = || {
        let (client, shutdown) = (client.clone(), shutdown.clone());
        async move {
            install_crds(&client, ecp_engine::crds()).await?;
            note("the engine runs");
            Ok(ecp_engine::run(config, shutdown).await?)
        }
    };
    let working = async {
        if !options.leader_election {
            return work().await;
        }
        let candidate = Candidate::new(&options.namespace, LEASE);
        candidate.lead(&client, shutdown.clone(), work).await
    };
    let mut signals = Signals::install()?;
    let stopping = async {
        signals.next().await;
        note("stopping: finishing the reconciles under way (Ctrl-C again to force)");
        shutdown.cancel();
        signals.next().await;
    };
    // Whichever ends first ends the other.
    let serving = async {
        let served = serving.await;
        shutdown.cancel();
        served.with_context(|| format!("serving metrics on {}", options.metrics_address))
    };
    let working = async {
        let worked = working.await;
        shutdown.cancel();
        worked
    };
    tokio::select! {
        (worked, served) = async { tokio::join!(working, serving) } => worked.and(served),
        () = stopping => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Command {
        #[command(flatten)]
        options: Options,
    }

    fn transport(line: &str) -> Result<Transport, clap::Error> {
        let words = std::iter::once("engine").chain(line.split_whitespace());
        Command::try_parse_from(words).map(|c| c.options.transport())
    }

    #[test]
    fn functions_are_called_in_the_clear_only_when_asked_for() {
        let with = transport("--tls-client-certs-dir d").expect("options");
        assert_eq!(with, Transport::MutualTls("d".into()));
        let without = transport("--insecure").expect("options");
        assert_eq!(without, Transport::Plaintext);
        assert!(transport("").is_err());
        assert!(transport("--insecure --tls-client-certs-dir d").is_err());
    }
}
