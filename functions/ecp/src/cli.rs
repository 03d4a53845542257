//! The `main` of the binary: the function as a server.

use anyhow::Context as _;
use clap::Parser as _;
use function_sdk_rust::Args;

/// Runs the function as this process's command line says, until SIGTERM or SIGINT.
///
/// # Errors
/// An address cannot be listened on, or what is to be talked to cannot be reached.
#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    function_sdk_rust::logging::configure(args.debug);
    // rustls is built with one provider, but other crates in the process may bring another.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    crate::server::serve(&args)
        .await
        .context("serving function-ecp")
}
