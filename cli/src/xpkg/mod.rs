//! `ecp xpkg`: builds, pushes, pulls, explains and installs packages.

mod build;
mod inspect;
mod install;
mod progress;
mod transfer;

use std::collections::BTreeMap;

use anyhow::Context as _;
use clap::Subcommand;
use ecp_oci::Client;

/// Options of `ecp xpkg`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build a package from a folder of YAML files, the same to the byte each time.
    Build(build::Options),
    /// Push packages to a registry, several as an index of platforms.
    Push(transfer::PushOptions),
    /// Pull a package into a file or a folder.
    Pull(transfer::PullOptions),
    /// Explain what a package holds.
    Inspect(inspect::Options),
    /// Install a package on a cluster that has Crossplane or `ecp up`.
    Install(install::Options),
}

/// How registries are talked to. Credentials are those of Docker: `$DOCKER_CONFIG/config.json` or
/// `~/.docker/config.json`, and the helpers it names.
#[derive(Debug, clap::Args)]
struct RegistryOptions {
    /// Plain HTTP; registries on this machine are always talked to so.
    #[arg(long)]
    insecure: bool,
    /// [INSECURE] Do not verify the registry's certificate.
    #[arg(long)]
    insecure_skip_tls_verify: bool,
}

impl RegistryOptions {
    fn client(&self) -> Client {
        Client::new(ecp_oci::Options {
            insecure: self.insecure,
            skip_tls_verify: self.insecure_skip_tls_verify,
            ..ecp_oci::Options::default()
        })
    }
}

/// Runs a command.
pub(crate) fn run(options: Options) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?;
    runtime.block_on(async {
        match options.command {
            Command::Build(options) => build::run(&options).await,
            Command::Push(options) => transfer::push(&options).await,
            Command::Pull(options) => transfer::pull(&options).await,
            Command::Inspect(options) => inspect::run(&options).await,
            Command::Install(options) => install::run(&options).await,
        }
    })
}

/// Reads `KEY=VALUE`.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.into(), value.into())),
        _ => Err("expected KEY=VALUE".into()),
    }
}

fn map(pairs: &[(String, String)]) -> BTreeMap<String, String> {
    pairs.iter().cloned().collect()
}
