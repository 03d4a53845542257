//! Managed resources that every cloud needs: workspace namespaces, contents of networks.
//!
//! `WorkspaceNamespace` makes the namespace of a SECA workspace, counts the SECA resources in it,
//! and tears it down in order. `NetworkContents` deletes what is below a network before the
//! network. Their cloud is the cluster that they run in.
//!
//! Invariant: knows no cloud, no other provider and not the engine.
//!
//! Entry points: [`run`], [`crds`].

mod cli;
mod contents;
mod deletion;
mod external;
pub mod kinds;
pub mod limits;
mod networks;
mod teardown;

use ecp_provider::{Metrics, Runtime, Waker, managed_crd};
use kube::Client;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use contents::{Contents, Owner, OwnerKind};
use external::Namespaces;
use kinds::{NetworkContents, PROVIDER, WorkspaceNamespace};
use networks::Networks;

pub use cli::main;

/// How the provider runs.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Intervals and bounds.
    pub runtime: ecp_provider::Options,
    /// Metrics to record into.
    pub metrics: Metrics,
}

/// The CRDs of the provider.
pub fn crds() -> Vec<Value> {
    vec![
        managed_crd::<WorkspaceNamespace>(),
        managed_crd::<NetworkContents>(),
    ]
}

/// Runs the provider until `shutdown`.
///
/// # Errors
/// None at present; what goes wrong is shown on the resources and tried again.
pub async fn run(
    client: Client,
    options: Options,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let contents = Contents::default();
    let (workspaces, networks) = (Waker::default(), Waker::default());
    let intervals = ecp_provider::Options {
        settle_max: limits::TEARDOWN_LOOK_MAX,
        ..options.runtime
    };
    let runtime = Runtime::new(client.clone(), PROVIDER, intervals)
        .metrics(options.metrics)
        .with(Namespaces::new(client.clone(), contents.clone()))
        .with(Networks::new(client.clone(), contents.clone()))
        .waker::<WorkspaceNamespace>(workspaces.clone())
        .waker::<NetworkContents>(networks.clone());
    let wake = move |owner: Owner| match owner.kind {
        OwnerKind::Workspace => workspaces.wake(owner.key),
        OwnerKind::Network => networks.wake(owner.key),
    };
    let counting = contents.run(client, wake, shutdown.clone());
    tokio::join!(runtime.run(shutdown), counting);
    Ok(())
}
