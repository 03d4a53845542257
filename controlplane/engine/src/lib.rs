//! Hosts the composite resource engine on any Kubernetes API.
//!
//! [`run`] starts, for the cluster of one `kube::Client`:
//! - a controller of XRDs, which makes CRDs and starts and stops the two controllers below;
//! - for each XRD a controller of its XRs, and one of its claims;
//! - a controller of Compositions and one of their revisions.
//!
//! All of them read from watch caches that they share (one watch per kind, dropped when unused) and
//! write only what differs. What they decide is decided by `ecp_xr`; here is only the I/O.
//!
//! Invariant: talks to the API through `kube::Client` alone; never names the embedded server, knows
//! nothing of SECA.
//!
//! Entry points: [`crds`] for what must be installed first, [`Config`], [`run`].

mod api;
mod catalogue;
mod claim;
mod composite;
mod connection;
mod context;
mod controller;
mod crds;
mod definition;
mod events;
mod functions;
mod informer;
pub mod limits;
mod mapper;
mod metrics;
mod objects;
mod openapi;
mod queue;

use std::fmt;
use std::sync::Arc;

use ecp_fnproto::{FunctionRunner, GrpcRunner};
use tokio_util::sync::CancellationToken;

pub use crds::crds;
pub use metrics::Metrics;

/// How the engine runs.
#[derive(Clone)]
pub struct Config {
    /// The cluster.
    pub client: kube::Client,
    /// Runs functions.
    pub runner: Arc<dyn FunctionRunner>,
    /// Told the endpoints of active FunctionRevisions; usually a part of `runner`.
    pub endpoints: Option<GrpcRunner>,
    /// Reconciles of one controller that run at once.
    pub reconciles_max: usize,
    /// Counters; register them where the process serves its metrics.
    pub metrics: Metrics,
}

impl Config {
    /// The default configuration.
    pub fn new(client: kube::Client, runner: Arc<dyn FunctionRunner>) -> Self {
        Self {
            client,
            runner,
            endpoints: None,
            reconciles_max: limits::RECONCILES_MAX,
            metrics: Metrics::default(),
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("runner", &self.runner)
            .field("endpoints", &self.endpoints)
            .field("reconciles_max", &self.reconciles_max)
            .finish_non_exhaustive()
    }
}

/// Why the engine stopped without being told to.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// One of its controllers broke.
    #[error("the {0} controller stopped")]
    Stopped(&'static str),
}

/// Runs the engine until `shutdown`.
///
/// It may start before its CRDs are there, and waits for them.
///
/// # Errors
/// A controller stopped by itself, which is a bug.
///
/// # Cancellation
/// Use `shutdown`: it lets reconciles that are under way end. Dropping the future leaves its tasks
/// running.
pub async fn run(config: Config, shutdown: CancellationToken) -> Result<(), EngineError> {
    let stop = CancellationToken::new();
    let context = context::Context::start(config, stop.clone());
    let functions = context.tasks.spawn(functions::run(Arc::clone(&context)));
    let definitions = context.tasks.spawn(definition::run(Arc::clone(&context)));
    let result = tokio::select! {
        () = shutdown.cancelled() => Ok(()),
        _ = functions => Err(EngineError::Stopped("composition")),
        _ = definitions => Err(EngineError::Stopped("definition")),
    };
    stop.cancel();
    context.tasks.close();
    context.tasks.wait().await;
    result
}

/// The current time as Kubernetes writes it: RFC 3339, whole seconds, UTC.
fn now() -> String {
    jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string()
}
