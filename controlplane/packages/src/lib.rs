//! The package manager: installs xpkg packages (Providers, Functions, Configurations) on any
//! Kubernetes API, as upstream's does.
//!
//! [`run`] starts for each kind of package a controller of packages, which makes revisions, and one
//! of revisions, which installs what they hold; and one of the Lock, which installs what packages
//! depend on. Where packages come from is behind [`Packages`].
//!
//! Invariant: talks to the API through `kube::Client` alone; knows neither the embedded server nor
//! SECA. Its CRDs are those of the engine.
//!
//! Entry points: [`run`], [`Images`].

mod api;
mod controller;
mod establish;
mod events;
mod kinds;
pub mod limits;
mod lock;
mod names;
mod package;
mod resolver;
mod revision;
mod source;

use std::fmt;
use std::sync::Arc;

use ecp_package::xpkg::PackageKind;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use api::Api;
use controller::Wakes;
use events::Recorder;
use kinds::PARENT_LABEL;
pub use names::dependency_name;
pub use source::{Contents, Images, Packages, PullPolicy};

/// The release of Crossplane whose contract is kept here: what packages may ask for in
/// `spec.crossplane.version`.
pub const CROSSPLANE_VERSION: &str = "2.3.4";

/// How the package manager runs.
#[derive(Clone)]
pub struct Config {
    /// The cluster.
    pub client: kube::Client,
    /// Where packages come from.
    pub packages: Arc<dyn Packages>,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("packages", &self.packages)
            .finish_non_exhaustive()
    }
}

/// What all controllers share.
struct Shared {
    api: Api,
    recorder: Recorder,
    packages: Arc<dyn Packages>,
}

/// Runs the package manager until `shutdown`, then lets what is under way end.
///
/// The engine's CRDs must be there.
pub async fn run(config: Config, shutdown: CancellationToken) {
    let api = Api {
        client: config.client,
    };
    let shared = Arc::new(Shared {
        recorder: Recorder::new(api.clone()),
        api: api.clone(),
        packages: config.packages,
    });
    let mut tasks = JoinSet::new();
    for kind in PackageKind::ALL {
        let manager = package::Manager {
            kind,
            shared: Arc::clone(&shared),
        };
        let owned = vec![(kinds::revision(kind), Wakes::One(package_of))];
        tasks.spawn(controller::run(
            api.clone(),
            manager,
            owned,
            shutdown.clone(),
        ));
        let revisions = revision::Revisions {
            kind,
            shared: Arc::clone(&shared),
        };
        let lock = vec![(kinds::lock(), Wakes::All)];
        tasks.spawn(controller::run(
            api.clone(),
            revisions,
            lock,
            shutdown.clone(),
        ));
    }
    let resolver = resolver::Resolver { shared };
    let packages = PackageKind::ALL.map(|kind| (kinds::package(kind), Wakes::All));
    tasks.spawn(controller::run(api, resolver, packages.into(), shutdown));
    while tasks.join_next().await.is_some() {}
}

fn package_of(revision: &DynamicObject) -> Option<String> {
    revision.labels().get(PARENT_LABEL).cloned()
}

/// The current time as Kubernetes writes it: RFC 3339, whole seconds, UTC.
fn now() -> String {
    jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string()
}
