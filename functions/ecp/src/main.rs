//! `function-ecp`: the composition function as a server.

use anyhow::Context as _;
use clap::Parser as _;
use function_sdk_rust::Args;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    function_sdk_rust::logging::configure(args.debug);
    // rustls is built with one provider, but other crates in the process may bring another.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    function_ecp::server::serve(&args)
        .await
        .context("serving function-ecp")
}
