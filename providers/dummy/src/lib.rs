//! The reference cloud: no credentials; tunable delay, failure and drift.
//!
//! [`cloud`] is the simulated cloud with an API of its own; [`external`] says what the managed
//! resources of [`kinds`] mean in it. A `ProviderConfig` says how it behaves.
//!
//! Invariant: knows no other provider and not the engine.
//!
//! Entry points: [`run`], [`run_with`] (with a cloud to look into), [`crds`].

pub mod cloud;
pub mod config;
pub mod external;
pub mod kinds;
pub mod limits;

use std::path::PathBuf;

use anyhow::Context as _;
use ecp_provider::{Metrics, Runtime, config_crds, managed_crd};
use kube::Client;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use cloud::Cloud;
use config::ConfigSpec;
use external::DummyExternal;
use kinds::{Image, Location, PROVIDER, Project, Volume, VolumeType};

/// How the provider runs.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where the cloud keeps what it knows; in memory when absent.
    pub data_dir: Option<PathBuf>,
    /// Intervals and bounds.
    pub runtime: ecp_provider::Options,
    /// Metrics to record into.
    pub metrics: Metrics,
}

/// The CRDs of the provider: five kinds, and its configurations.
pub fn crds() -> Vec<Value> {
    let mut crds = vec![
        managed_crd::<Location>(),
        managed_crd::<Project>(),
        managed_crd::<VolumeType>(),
        managed_crd::<Volume>(),
        managed_crd::<Image>(),
    ];
    crds.extend(config_crds::<ConfigSpec>(&PROVIDER));
    crds
}

/// Runs the provider and its cloud until `shutdown`.
///
/// # Errors
/// The cloud's directory cannot be used.
pub async fn run(
    client: Client,
    options: Options,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let now = Cloud::wall_clock();
    let cloud = match &options.data_dir {
        None => Cloud::in_memory(now),
        Some(dir) => Cloud::open(dir, now).context("opening the dummy cloud")?,
    };
    run_with(client, cloud, options, shutdown).await;
    Ok(())
}

/// Runs the provider on a cloud that the caller can look into.
pub async fn run_with(client: Client, cloud: Cloud, options: Options, shutdown: CancellationToken) {
    Runtime::new(client, PROVIDER, options.runtime)
        .metrics(options.metrics)
        .with(DummyExternal::<Location>::new(cloud.clone()))
        .with(DummyExternal::<Project>::new(cloud.clone()))
        .with(DummyExternal::<VolumeType>::new(cloud.clone()))
        .with(DummyExternal::<Volume>::new(cloud.clone()))
        .with(DummyExternal::<Image>::new(cloud))
        .run(shutdown)
        .await;
}
