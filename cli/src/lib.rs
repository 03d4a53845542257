//! `ecp`: one binary for the whole control plane.
//!
//! The only crate that knows all parts. It wires them into one process: every controller and the
//! REST facade get a `kube::Client` whose transport is the API server's service, without a socket.
//!
//! Invariant: no behaviour of a part lives here; what is wired here must also run alone in a pod.
//!
//! Entry points: [`run`]; [`command`], for the reference of the command line.

mod engine;
mod facade;
mod logging;
mod manifests;
mod output;
mod up;
mod xpkg;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

/// Every object is many small JSON values, made and dropped on many threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The European Control Plane.
#[derive(Debug, Parser)]
#[command(name = "ecp", version, about, propagate_version = true)]
struct Cli {
    /// More logs: -v for what happens, -vv for why. `RUST_LOG` overrides.
    #[arg(short, long, action = clap::ArgAction::Count, global = true, display_order = 100)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the whole control plane in one process.
    Up(up::Options),
    /// Start Crossplane's engine alone, on any Kubernetes API.
    Engine(engine::Options),
    /// Start the SECA REST API alone, over any Kubernetes API.
    Facade(facade::Options),
    /// Write each package as a directory that `xpkg build` takes: CRDs, XRDs, Compositions.
    #[command(disable_version_flag = true)]
    Manifests(manifests::Options),
    /// Build, push, pull, explain and install packages.
    #[command(disable_version_flag = true)]
    Xpkg(xpkg::Options),
}

/// The definition of the command line.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let access_log = match &cli.command {
        Command::Up(options) => options.access_log,
        Command::Facade(_) => true,
        Command::Engine(_) | Command::Manifests(_) | Command::Xpkg(_) => false,
    };
    logging::init(cli.verbose, access_log);
    if rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .is_err()
    {
        tracing::warn!("a TLS provider was already installed");
    }
    let result = match cli.command {
        Command::Up(options) => up::run(options),
        Command::Engine(options) => engine::run(&options),
        Command::Facade(options) => facade::run(options),
        Command::Manifests(options) => manifests::run(&options),
        Command::Xpkg(options) => xpkg::run(options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&error);
            ExitCode::FAILURE
        }
    }
}
