//! `provider-ecp`: workspace namespaces, in a process of its own.

use clap::Parser;
use ecp_provider::{Flags, Metrics};

/// The provider of what every cloud needs.
#[derive(Debug, Parser)]
#[command(name = "provider-ecp", version)]
struct Cli {
    #[command(flatten)]
    flags: Flags,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    // Fails only when one is installed already, and there is but one in this workspace.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let metrics = Metrics::default();
    let options = provider_ecp::Options {
        runtime: cli.flags.options(),
        metrics: metrics.clone(),
    };
    cli.flags
        .serve(
            &provider_ecp::kinds::PROVIDER,
            metrics,
            |client, shutdown| provider_ecp::run(client, options, shutdown),
        )
        .await
}
