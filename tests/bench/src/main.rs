//! Benchmarks of the whole control plane, as its users meet it: the real binary over real sockets.
//!
//! Rates are given beside a reference taken in the same run on the same machine: a bare HTTP
//! server that answers the same bytes to the same client. The ratio is what can be compared between
//! machines; the absolute figure is not.
#![expect(
    clippy::print_stdout,
    reason = "the report is what this program is for"
)]

mod control_plane;
mod load;
mod measure;
mod reference;
mod report;

use std::path::PathBuf;

use clap::Parser;

/// Measures the control plane and writes a report.
#[derive(Debug, Parser)]
struct Options {
    /// The `ecp` binary, built for release.
    #[arg(long)]
    ecp: PathBuf,
    /// Markdown file to write.
    #[arg(long)]
    report: Option<PathBuf>,
    /// Clients that send at once.
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// Seconds each rate is measured for.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Block storages made one after another to measure the time to Ready.
    #[arg(long, default_value_t = 200)]
    volumes: usize,
    /// Objects in the store for the second start.
    #[arg(long, default_value_t = 100_000)]
    objects: usize,
    /// Block storages made at once to measure the cost of one.
    #[arg(long, default_value_t = 1000)]
    scale_volumes: usize,
    /// Instances made at once with them.
    #[arg(long, default_value_t = 200)]
    scale_instances: usize,
    /// Measure that and nothing else.
    #[arg(long)]
    scale_only: bool,
    /// A kube-apiserver to measure in the same run, as the reference of the API server's rows.
    #[arg(long, env = "ECP_BENCH_KUBE_APISERVER", value_name = "URL")]
    kube_apiserver: Option<String>,
    /// Its administrator's bearer token.
    #[arg(
        long,
        env = "ECP_BENCH_KUBE_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    kube_token: Option<String>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    anyhow::ensure!(
        provider.install_default().is_ok(),
        "a TLS provider is already installed"
    );
    let rows = measure::all(&options).await?;
    let text = report::markdown(&options, &rows);
    println!("{text}");
    if let Some(path) = &options.report {
        std::fs::write(path, text)?;
    }
    Ok(())
}
