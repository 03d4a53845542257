//! The `main` of the binary: the provider in a process of its own.

use std::path::PathBuf;

use clap::Parser;
use ecp_provider::{Flags, Metrics};

/// The provider of the dummy cloud.
#[derive(Debug, Parser)]
#[command(name = "provider-dummy", version)]
struct Cli {
    #[command(flatten)]
    flags: Flags,
    /// Where the simulated cloud keeps what it knows; in memory when absent.
    #[arg(long)]
    data_dir: Option<PathBuf>,
}

/// Runs the provider as this process's command line says, until SIGTERM or SIGINT.
///
/// # Errors
/// An address cannot be listened on, or what is to be talked to cannot be reached.
#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    // Fails only when one is installed already, and there is but one in this workspace.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let metrics = Metrics::default();
    let options = crate::Options {
        data_dir: cli.data_dir.clone(),
        runtime: cli.flags.options(),
        metrics: metrics.clone(),
    };
    cli.flags
        .serve(&crate::kinds::PROVIDER, metrics, |client, shutdown| {
            crate::run(client, options, shutdown)
        })
        .await
}
