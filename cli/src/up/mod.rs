//! `ecp up`: the whole control plane in one process.

mod client;
mod data_dir;
mod demo;
mod install;
mod options;
mod parts;
mod progress;
mod welcome;

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use ecp_apiserver::pki::{Pki, kubeconfig};
use ecp_apiserver::{ApiServer, Config};
use ecp_store::{EmbeddedStore, MemoryStore, Store};
use ecp_xrds::Flavour;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::output::{self, Hint};
use data_dir::{DataDir, Endpoints};
pub(crate) use install::install_crds;
pub(crate) use options::{Options, ProfileOption, ReferencesOption, policies, references, region};
use parts::Parts;
pub(crate) use parts::Signals;
use progress::Progress;

/// How long a shutdown may take before the process ends anyway.
const DRAIN_MAX: Duration = Duration::from_secs(20);

/// Runs until Ctrl-C, SIGTERM, or the failure of a part.
pub(crate) fn run(options: Options) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?;
    let result = runtime.block_on(up(options));
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

async fn up(options: Options) -> anyhow::Result<()> {
    let progress = Progress::start();
    progress.step("opening the data directory");
    let data_dir = DataDir::open(&options.data_dir)?;
    // Bound first: a port that is taken must be found before anything is written.
    let api_listener = bind(options.api_port, "the Kubernetes API", "--api-port").await?;
    let rest_listener = bind(options.rest_port, "the SECA REST API", "--rest-port").await?;
    let endpoints = Endpoints {
        api: api_listener.local_addr().context("reading the API port")?,
        rest: rest_listener
            .local_addr()
            .context("reading the REST port")?,
    };
    let store = open_store(&options, &data_dir).await?;
    let pki = Pki::open(&data_dir.pki(), &[], SystemTime::now()).context("opening certificates")?;

    progress.step("starting the API server");
    let server = ApiServer::new(store.clone(), Config::default())
        .await
        .context("starting the API server")?;
    let stop = CancellationToken::new();
    let mut parts = Parts::new(stop.clone());
    parts.api(&server, api_listener, &pki, options.insecure_dev)?;

    parts.store(store.clone()).await?;
    let started = async {
        progress.step("installing kinds");
        install_and_start(
            &options, &data_dir, &server, endpoints, &mut parts, &progress,
        )
        .await?;
        progress.step("starting the REST API");
        parts
            .facade(&server, rest_listener, &options, endpoints, pki.token())
            .await
    }
    .await;
    if let Err(error) = started {
        // All else that fails then follows from it.
        return Err(parts::store_failure(&*store).await.unwrap_or(error));
    }

    // Without a token kubectl would ask for a user name, even where the server asks for nothing.
    let config = kubeconfig(&endpoints.api_url(), Some(pki.ca_pem()), Some(pki.token()));
    data_dir.publish(&endpoints, &config, pki.token())?;
    if options.demo {
        progress.step("applying the examples");
        demo::apply_all(&client::in_process(&server, "demo")).await?;
    }
    // From here on somebody may rely on a clean stop.
    let mut signals = Signals::install()?;
    let took = progress.finish();
    welcome::show(&options, &data_dir, &endpoints, took);

    let failure = parts.run_until_stopped(&mut signals).await;
    output::note("stopping: no new requests, finishing those under way (Ctrl-C again to force)");
    data_dir.unpublish();
    stop.cancel();
    let drained = tokio::select! {
        drained = tokio::time::timeout(DRAIN_MAX, parts.drain()) => drained.is_ok(),
        () = signals.next() => false,
    };
    server.shutdown().await;
    store.close().await;
    if !drained {
        output::note("stopped without waiting for everything under way");
    }
    failure.map_or(Ok(()), Err)
}

async fn bind(port: u16, what: &str, flag: &str) -> anyhow::Result<TcpListener> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpListener::bind(address)
        .await
        .with_context(|| format!("listening on {address} for {what}"))
        .with_context(|| {
            Hint(format!(
                "{flag} PORT takes another port, {flag} 0 a free one"
            ))
        })
}

async fn open_store(options: &Options, data_dir: &DataDir) -> anyhow::Result<Arc<dyn Store>> {
    if options.ephemeral {
        return Ok(Arc::new(MemoryStore::new()));
    }
    let path = data_dir.store();
    let opened = tokio::task::spawn_blocking(move || EmbeddedStore::open(&path))
        .await
        .context("opening the store")?
        .context("opening the store")?;
    // The store is open, so whoever served this directory is gone.
    data_dir.forget_endpoints();
    Ok(Arc::new(opened))
}

/// Installs every package, and starts the controllers as soon as their kinds exist.
async fn install_and_start(
    options: &Options,
    data_dir: &DataDir,
    server: &Arc<ApiServer>,
    endpoints: Endpoints,
    parts: &mut Parts,
    progress: &Progress,
) -> anyhow::Result<()> {
    use ecp_meta::object;
    use install::{Kind, apply, create_if_absent, wait_for};

    let client = client::in_process(server, "install");
    let mut crds = ecp_engine::crds();
    crds.extend(provider_ecp::crds());
    crds.extend(provider_dummy::crds());
    install_crds(&client, crds).await?;

    progress.step("starting controllers");
    let cloud = (!options.ephemeral).then(|| data_dir.cloud());
    parts.controllers(server, cloud);

    progress.step("installing SECA resources");
    let flavour = options.flavour.into();
    let version = match flavour {
        Flavour::V2 => "v2",
        Flavour::Claims => "v1",
    };
    let xrd = Kind::new(
        "apiextensions.crossplane.io",
        version,
        "CompositeResourceDefinition",
        "compositeresourcedefinitions",
    );
    let xrds = ecp_xrds::xrds(flavour);
    let names = xrds.iter().map(|x| object::name(x).to_owned()).collect();
    refuse_other_flavour(&client, &xrd, flavour).await?;
    apply(&client, &xrd, xrds).await?;
    let composition = Kind::new(
        "apiextensions.crossplane.io",
        "v1",
        "Composition",
        "compositions",
    );
    apply(&client, &composition, ecp_package::compositions(flavour)).await?;
    wait_for(&client, &xrd, names, "Established").await?;
    let served = options.served(endpoints);
    let url = |region: &str, provider: &str| served.url(region, provider);
    for value in ecp_package::catalogue(&served.regions, url) {
        let gvk = object::gvk(&value);
        let kind = parts::kind_of(&gvk)
            .with_context(|| format!("the catalogue has a {gvk}, which nothing installs"))?;
        if !create_if_absent(&client, &kind, &value).await? && gvk.kind == "Region" {
            // The port may differ from the last start's; the rest of a Region is its owner's.
            install::refresh_urls(&client, &kind, &value).await?;
        }
    }
    let region = Kind::new("v1.secapi.cloud", "v1", "Region", "regions");
    for name in install::names(&client, &region).await? {
        if !served.region(&name) {
            output::note(&format!(
                "note: region {name} exists, but is not served: add --region {name}"
            ));
        }
    }
    Ok(())
}

/// A flavour's definitions cannot become the other's: their scope cannot change, and the resources
/// that exist would be orphans.
async fn refuse_other_flavour(
    client: &kube::Client,
    xrd: &install::Kind,
    flavour: Flavour,
) -> anyhow::Result<()> {
    let (other, its_name) = match flavour {
        Flavour::V2 => (Flavour::Claims, "claims"),
        Flavour::Claims => (Flavour::V2, "v2"),
    };
    let names = |flavour| {
        let xrds = ecp_xrds::xrds(flavour).into_iter();
        xrds.map(|x| ecp_meta::object::name(&x).to_owned())
    };
    let ours: BTreeSet<String> = names(flavour).collect();
    for name in names(other).filter(|name| !ours.contains(name)) {
        if install::exists(client, xrd, &name).await? {
            let hint = format!("start with --flavour {its_name}, or with another --data-dir");
            return Err(
                anyhow::anyhow!("this data directory is of flavour {its_name}, for good")
                    .context(Hint(hint)),
            );
        }
    }
    Ok(())
}
