//! `ecp facade`: the SECA REST API alone, over any Kubernetes API.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use ecp_facade::{Access, Apis, Config, Facade, Served, StaticTokens, Users};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::output::note;
use crate::up::{ProfileOption, ReferencesOption, Signals, policies, references, region};

/// Options of the REST API, wherever it runs.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RestOptions {
    /// Which APIs the REST API has: all of them, the global ones (regions, roles), or the others.
    #[arg(long, value_enum, default_value_t = ServeOption::All)]
    pub(crate) serve: ServeOption,
    /// File of users, `token,subject` a line. They may do what roles grant them.
    #[arg(long, value_name = "FILE")]
    pub(crate) users: Option<PathBuf>,
    /// Requests a second that each caller of the REST API may make; no limit without it.
    #[arg(long, value_name = "N")]
    pub(crate) rate_limit: Option<NonZeroU32>,
    /// Status codes of refusals over REST: as the conformance suite wants them, or as the
    /// specification has them.
    #[arg(long, value_enum, default_value_t = ProfileOption::Conformance)]
    pub(crate) profile: ProfileOption,
    /// What happens over REST when a reference names nothing, where its resource can do without:
    /// `reject`, or `defer` to do without it until it comes; for all such fields, or for one, such
    /// as `NIC.publicIpRefs=defer`. May be repeated.
    #[arg(long, value_name = "[KIND.FIELD=]POLICY", default_value = "reject", value_parser = references)]
    pub(crate) references: Vec<ReferencesOption>,
}

/// Which APIs are served, as a command-line value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ServeOption {
    /// Global and regional ones.
    All,
    /// Regions, roles and role assignments.
    Global,
    /// All others, for the regions named.
    Regional,
}

impl From<ServeOption> for Apis {
    fn from(option: ServeOption) -> Self {
        match option {
            ServeOption::All => Self::All,
            ServeOption::Global => Self::Global,
            ServeOption::Regional => Self::Regional,
        }
    }
}

impl RestOptions {
    /// What is served for regions at a base URL. A region that is named twice counts once.
    pub(crate) fn served(&self, named: &[String], public_url: &str) -> Served {
        let mut regions: Vec<String> = Vec::new();
        for region in named {
            if !regions.contains(region) {
                regions.push(region.clone());
            }
        }
        let mut served = Served::new(regions, public_url);
        served.apis = self.serve.into();
        served
    }

    /// The users, beside administrators. The file is read again when it changes, until `stop`.
    pub(crate) fn access(
        &self,
        administrators: StaticTokens,
        stop: &CancellationToken,
    ) -> anyhow::Result<Access> {
        let Some(path) = &self.users else {
            return Ok(Access::Tokens(Arc::new(administrators)));
        };
        warn_if_open(path);
        let users = Users::open(path, administrators).context("reading the users")?;
        let users = Arc::new(users);
        let (following, stop) = (Arc::clone(&users), stop.clone());
        tokio::spawn(async move { following.follow(stop).await });
        Ok(Access::Tokens(users))
    }

    /// Sets what is the same wherever the REST API runs.
    pub(crate) fn set(&self, config: &mut Config) {
        config.rate_limit = self.rate_limit;
        config.profile = self.profile.into();
        config.references = policies(&self.references);
    }
}

/// Options of `ecp facade`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// How to reach the Kubernetes API; without it `KUBECONFIG`, or the pod's service account.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// Name of a region to serve. May be repeated: the first is the default one.
    #[arg(long = "region", value_name = "NAME", value_parser = region)]
    pub(crate) regions: Vec<String>,
    /// Base of the URLs that clients are told; by default that of the address.
    #[arg(long, value_name = "URL")]
    pub(crate) public_url: Option<String>,
    /// File with the token of the administrator, who may do everything.
    #[arg(long, value_name = "FILE")]
    pub(crate) admin_token_file: Option<PathBuf>,
    /// Serve TLS with this chain of certificates (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Ask for no token, on loopback only. Never for anything but a laptop.
    #[arg(long, conflicts_with_all = ["users", "admin_token_file"])]
    pub(crate) insecure_dev: bool,
    #[command(flatten)]
    pub(crate) rest: RestOptions,
}

/// Runs until Ctrl-C or SIGTERM.
pub(crate) fn run(options: Options) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?;
    runtime.block_on(serve(options))
}

async fn serve(options: Options) -> anyhow::Result<()> {
    if options.rest.serve != ServeOption::Global && options.regions.is_empty() {
        bail!("regional APIs need --region NAME");
    }
    let stop = CancellationToken::new();
    let access = access(&options, &stop)?;
    let tls = match (&options.tls_cert, &options.tls_key) {
        (Some(cert), Some(key)) => Some(Arc::new(tls(cert, key)?)),
        _ => None,
    };
    let client = client(options.kubeconfig.as_deref()).await?;
    let listener = TcpListener::bind(options.listen)
        .await
        .with_context(|| format!("listening on {}", options.listen))?;
    let address = listener.local_addr().context("reading the address")?;
    if tls.is_none() && !address.ip().is_loopback() {
        note("warning: tokens travel in the clear without --tls-cert and --tls-key");
    }
    let scheme = if tls.is_some() { "https" } else { "http" };
    let own_url = format!("{scheme}://{address}");
    let url = options.public_url.as_deref().unwrap_or(&own_url);
    let mut config = Config::new(client, "", "", access);
    config.served = options.rest.served(&options.regions, url);
    config.tls = tls;
    options.rest.set(&mut config);
    let facade = Facade::start(config, stop.clone()).context("starting the REST API")?;
    let mut signals = Signals::install()?;
    let serving = facade.serve(listener);
    let told = async {
        facade.ready().await;
        note(&format!("the SECA REST API is ready at {url}"));
        std::future::pending::<()>().await;
    };
    let stopping = async {
        signals.next().await;
        note("stopping: no new requests, finishing those under way");
        stop.cancel();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        served = serving => served.context("serving the REST API"),
        () = told => Ok(()),
        () = stopping => Ok(()),
    }
}

fn access(options: &Options, stop: &CancellationToken) -> anyhow::Result<Access> {
    if options.insecure_dev {
        return Ok(Access::InsecureDev);
    }
    let administrators = match &options.admin_token_file {
        Some(path) => {
            warn_if_open(path);
            let token = std::fs::read_to_string(path)
                .with_context(|| format!("reading the token in {}", path.display()))?;
            if token.trim().is_empty() {
                bail!("{} holds no token", path.display());
            }
            StaticTokens::admin(token.trim())
        }
        None if options.rest.users.is_none() => {
            bail!("nobody could get in: give --users or --admin-token-file, or --insecure-dev");
        }
        None => StaticTokens::default(),
    };
    options.rest.access(administrators, stop)
}

/// Tells when anybody may read a file of secrets. A group may: it is the pod's, for mounted Secrets.
fn warn_if_open(path: &Path) {
    #[cfg(unix)]
    if let Ok(metadata) = std::fs::metadata(path)
        && std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o007 != 0
    {
        note(&format!(
            "warning: others can read {}; chmod 600 it",
            path.display()
        ));
    }
}

/// A client from a kubeconfig, or from what the environment says.
pub(crate) async fn client(kubeconfig: Option<&Path>) -> anyhow::Result<kube::Client> {
    let config = match kubeconfig {
        Some(path) => {
            let file = kube::config::Kubeconfig::read_from(path)
                .with_context(|| format!("reading {}", path.display()))?;
            kube::Config::from_custom_kubeconfig(file, &Default::default())
                .await
                .with_context(|| format!("using {}", path.display()))?
        }
        None => kube::Config::infer()
            .await
            .context("finding the Kubernetes API; --kubeconfig FILE says where it is")?,
    };
    kube::Client::try_from(config).context("setting up the Kubernetes client")
}

fn tls(cert: &Path, key: &Path) -> anyhow::Result<rustls::ServerConfig> {
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("reading certificates in {}", cert.display()))?;
    let key = PrivateKeyDer::from_pem_file(key)
        .with_context(|| format!("reading the key in {}", key.display()))?;
    let mut config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context("using the certificate and its key")?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Command {
        #[command(flatten)]
        options: Options,
    }

    fn parse(line: &str) -> Result<Options, clap::Error> {
        let words = std::iter::once("facade").chain(line.split_whitespace());
        Command::try_parse_from(words).map(|c| c.options)
    }

    #[tokio::test]
    async fn somebody_must_be_able_to_get_in() {
        let stop = CancellationToken::new();
        let nobody = parse("--region a").expect("options");
        assert!(access(&nobody, &stop).is_err());
        let open = parse("--region a --insecure-dev").expect("options");
        assert!(matches!(
            access(&open, &stop).expect("access"),
            Access::InsecureDev
        ));
        assert!(parse("--insecure-dev --users f").is_err());
        assert!(parse("--tls-cert f").is_err());
        assert!(parse("--rate-limit 0").is_err());
        assert!(parse("--region A_b").is_err());
    }

    #[tokio::test]
    async fn regional_apis_need_a_region() {
        let options = parse("--serve regional --insecure-dev").expect("options");
        let error = serve(options).await.expect_err("refused");
        assert!(error.to_string().contains("--region"), "{error}");
    }

    #[test]
    fn a_region_named_twice_counts_once() {
        let options = parse("--region a --region b --region a --serve regional").expect("options");
        let served = options.rest.served(&options.regions, "http://x/");
        assert_eq!(served.regions, ["a", "b"]);
        assert_eq!(served.apis, Apis::Regional);
    }
}
