//! The running parts: each is a task with an owner, a shutdown path, and a name for its failure.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use ecp_apiserver::auth::Authenticator;
use ecp_apiserver::pki::Pki;
use ecp_apiserver::serve::serve;
use ecp_apiserver::{ApiServer, Identity};
use ecp_fnproto::InProcess;
use ecp_meta::gvk::GroupVersionKind;
use ecp_store::Store;
use futures::StreamExt as _;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::client::in_process;
use super::data_dir::Endpoints;
use super::install::Kind;
use super::options::Options;
use crate::output::Hint;

/// A prefix that no key of the API server has.
const NO_KEYS: &str = "\0";

/// How long the REST API may take to fill its caches.
const READY_MAX: Duration = Duration::from_secs(30);

/// The running parts.
pub(crate) struct Parts {
    tasks: JoinSet<(&'static str, anyhow::Result<()>)>,
    stop: CancellationToken,
}

impl Parts {
    /// No parts yet; all of them stop with `stop`.
    pub(crate) fn new(stop: CancellationToken) -> Self {
        Self {
            tasks: JoinSet::new(),
            stop,
        }
    }

    fn spawn(
        &mut self,
        name: &'static str,
        part: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) {
        self.tasks.spawn(async move { (name, part.await) });
    }

    /// Ends when the store does by itself, as it does once a write to disk has failed. What is
    /// stored can only be told by opening it anew, so the process must not go on without it.
    pub(crate) async fn store(&mut self, store: Arc<dyn Store>) -> anyhow::Result<()> {
        let watch = store.watch(NO_KEYS, store.revision()).await;
        let mut watch = watch.context("watching the store")?;
        let stop = self.stop.clone();
        self.spawn("the store", async move {
            tokio::select! {
                () = stop.cancelled() => Ok(()),
                _ = watch.next() => match store_failure(&*store).await {
                    Some(failure) => Err(failure),
                    None => bail!("its watch ended"),
                },
            }
        });
        Ok(())
    }

    /// The Kubernetes API on a socket.
    pub(crate) fn api(
        &mut self,
        server: &Arc<ApiServer>,
        listener: TcpListener,
        pki: &Pki,
        insecure_dev: bool,
    ) -> anyhow::Result<()> {
        let tls = pki.server_config().context("setting TLS up")?;
        let mut authenticator = Authenticator::new().with_token(pki.token(), Identity::admin());
        if insecure_dev {
            authenticator = authenticator.insecure_dev();
        }
        let (server, stop) = (server.clone(), self.stop.clone());
        self.spawn("the Kubernetes API", async move {
            serve(server, listener, tls.into(), Arc::new(authenticator), stop).await?;
            Ok(())
        });
        Ok(())
    }

    /// The engine with function-ecp, the package manager, and the providers.
    pub(crate) fn controllers(&mut self, server: &Arc<ApiServer>, cloud: Option<PathBuf>) {
        let runner = InProcess::default().with(function_ecp::NAME, function_ecp::plain());
        let engine = ecp_engine::Config::new(in_process(server, "engine"), Arc::new(runner));
        // One set for both providers: their series differ by kind.
        let metrics = ecp_provider::Metrics::default();
        let mut registry = Registry::default();
        engine.metrics.register(&mut registry);
        metrics.register(&mut registry);
        server.metrics().serve_too(registry);
        let stop = self.stop.clone();
        self.spawn("the engine", async move {
            Ok(ecp_engine::run(engine, stop).await?)
        });

        let (client, stop) = (in_process(server, "packages"), self.stop.clone());
        let registries = ecp_oci::Client::new(ecp_oci::Options::default());
        let packages = ecp_packages::Config {
            client,
            packages: Arc::new(ecp_packages::Images::new(registries, true)),
        };
        self.spawn("the package manager", async move {
            ecp_packages::run(packages, stop).await;
            Ok(())
        });

        let (client, stop) = (in_process(server, "provider-ecp"), self.stop.clone());
        let options = provider_ecp::Options {
            metrics: metrics.clone(),
            ..Default::default()
        };
        self.spawn("provider-ecp", provider_ecp::run(client, options, stop));

        let (client, stop) = (in_process(server, "provider-dummy"), self.stop.clone());
        let options = provider_dummy::Options {
            data_dir: cloud,
            metrics,
            ..Default::default()
        };
        self.spawn("provider-dummy", provider_dummy::run(client, options, stop));
    }

    /// The SECA REST API; returns once it has seen everything that it serves.
    pub(crate) async fn facade(
        &mut self,
        server: &Arc<ApiServer>,
        listener: TcpListener,
        options: &Options,
        endpoints: Endpoints,
        token: &str,
    ) -> anyhow::Result<()> {
        use ecp_facade::{Access, Config, Facade, StaticTokens};

        let access = if options.insecure_dev {
            Access::InsecureDev
        } else {
            options
                .rest
                .access(StaticTokens::admin(token), &self.stop)?
        };
        let client = in_process(server, "facade");
        let mut config = Config::new(client, "", "", access);
        config.served = options.served(endpoints);
        options.rest.set(&mut config);
        let facade = Facade::start(config, self.stop.clone()).context("starting the REST API")?;
        let serving = facade.clone();
        self.spawn(
            "the REST API",
            async move { Ok(serving.serve(listener).await?) },
        );
        let ready = tokio::time::timeout(READY_MAX, facade.ready());
        tokio::select! {
            ready = ready => ready.context("waiting for the REST API to see its resources"),
            failure = first_failure(&mut self.tasks) => Err(failure),
        }
    }

    /// Waits for a signal or the first part that ends; returns why it ended.
    pub(crate) async fn run_until_stopped(
        &mut self,
        signals: &mut Signals,
    ) -> Option<anyhow::Error> {
        tokio::select! {
            () = signals.next() => None,
            failure = first_failure(&mut self.tasks) => Some(failure),
        }
    }

    /// Waits until all parts have ended.
    pub(crate) async fn drain(&mut self) {
        while let Some(ended) = self.tasks.join_next().await {
            match ended {
                Ok((name, Err(error))) => {
                    tracing::warn!(name, %error, "part failed while stopping")
                }
                Ok((name, Ok(()))) => tracing::debug!(name, "part stopped"),
                Err(error) => tracing::warn!(%error, "part panicked while stopping"),
            }
        }
    }
}

/// Why the store takes nothing any more, when that is so.
pub(crate) async fn store_failure(store: &dyn Store) -> Option<anyhow::Error> {
    let error = anyhow::Error::from(store.get(NO_KEYS).await.err()?);
    Some(error.context(Hint(
        "all that was acknowledged is on disk; make writing possible there and start again".into(),
    )))
}

/// The first part that ends before it is told to; that is always a failure.
async fn first_failure(tasks: &mut JoinSet<(&'static str, anyhow::Result<()>)>) -> anyhow::Error {
    match tasks.join_next().await {
        Some(Ok((name, Ok(())))) => anyhow::anyhow!("{name} stopped"),
        Some(Ok((name, Err(error)))) => error.context(format!("{name} failed")),
        Some(Err(error)) => anyhow::Error::from(error).context("a part panicked"),
        None => std::future::pending().await,
    }
}

/// Ctrl-C and SIGTERM, caught from [`Signals::install`] on instead of ending the process.
#[derive(Debug)]
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// Starts to catch the signals.
    #[cfg(unix)]
    pub(crate) fn install() -> anyhow::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let catch = |kind| signal(kind).context("catching signals");
        Ok(Self {
            interrupt: catch(SignalKind::interrupt())?,
            terminate: catch(SignalKind::terminate())?,
        })
    }

    /// Starts to catch the signals.
    #[cfg(not(unix))]
    pub(crate) fn install() -> anyhow::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        #[cfg(not(unix))]
        drop(tokio::signal::ctrl_c().await);
    }
}

/// Kinds that the catalogue and the examples use.
pub(crate) fn kind_of(gvk: &GroupVersionKind) -> Option<Kind> {
    let kind = |plural: &str| Kind::new(&gvk.group, &gvk.version, &gvk.kind, plural);
    if let Some(info) = ecp_xrds::by_kind(&gvk.kind).filter(|i| i.group == gvk.group) {
        let kind = kind(info.plural);
        return Some(match info.scope {
            ecp_xrds::Scope::Cluster => kind,
            _ => kind.namespaced(),
        });
    }
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "Namespace") => Some(kind("namespaces")),
        ("dummy.m.secapi.cloud", "ClusterProviderConfig") => Some(kind("clusterproviderconfigs")),
        ("dummy.m.secapi.cloud", "ProviderConfig") => Some(kind("providerconfigs").namespaced()),
        ("ecp.m.secapi.cloud", "ClusterProviderConfig") => Some(kind("clusterproviderconfigs")),
        _ => None,
    }
}
