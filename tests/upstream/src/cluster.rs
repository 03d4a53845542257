//! etcd, kube-apiserver and kube-controller-manager.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Weak};
use std::time::Instant;

use anyhow::{Context as _, bail};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::Client;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::Mutex;

use crate::build::servers;
use crate::limits::{READY_INTERVAL, READY_MAX, STARTS_MAX, TOKEN_SECONDS};
use crate::process::{Process, free_ports};

/// Token of the member of `system:masters`.
const ADMIN_TOKEN: &str = "admin-token";
/// The controllers that what we test relies on; nobody runs pods.
const CONTROLLERS: [&str; 5] = [
    "clusterrole-aggregation-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
];
/// What the publisher of the root certificate puts into each namespace.
const ROOT_CA: &str = "kube-root-ca.crt";

/// A cluster that is empty at first, with RBAC and without nodes; gone when dropped.
#[derive(Debug)]
pub struct Cluster {
    /// In the order in which they end.
    processes: Vec<Process>,
    /// Base URL of the Kubernetes API.
    pub url: String,
    dir: TempDir,
}

impl Cluster {
    /// Starts a cluster, which is ready when this returns; `None` on a machine without Go, which is
    /// told.
    ///
    /// # Errors
    /// The servers cannot be built or do not become ready; their logs are part of the error.
    pub async fn start() -> anyhow::Result<Option<Self>> {
        let Some(binary) = tokio::task::spawn_blocking(servers).await?? else {
            return Ok(None);
        };
        // Another test of this process may have been first.
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        let mut attempt = 1;
        loop {
            match Self::try_start(&binary).await {
                Err(_) if attempt < STARTS_MAX => attempt += 1,
                done => return done.map(Some),
            }
        }
    }

    /// The cluster that tests which run at the same time share: started by the first, and gone when
    /// the last one lets go of it.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub async fn shared() -> anyhow::Result<Option<Arc<Self>>> {
        static SHARED: Mutex<Weak<Cluster>> = Mutex::const_new(Weak::new());
        let mut shared = SHARED.lock().await;
        if let Some(cluster) = shared.upgrade() {
            return Ok(Some(cluster));
        }
        let Some(cluster) = Self::start().await?.map(Arc::new) else {
            return Ok(None);
        };
        *shared = Arc::downgrade(&cluster);
        Ok(Some(cluster))
    }

    async fn try_start(binary: &Path) -> anyhow::Result<Self> {
        let dir = TempDir::with_prefix("ecp-upstream-").context("making a directory")?;
        let [etcd, peer, api] = free_ports()?;
        let mut cluster = Self {
            processes: Vec::new(),
            url: format!("https://127.0.0.1:{api}"),
            dir,
        };
        let (etcd, peer) = (
            format!("http://127.0.0.1:{etcd}"),
            format!("http://127.0.0.1:{peer}"),
        );
        let path = |name: &str| cluster.dir.path().join(name);
        let key = rcgen::KeyPair::generate().context("making the key of tokens")?;
        std::fs::write(path("sa.key"), key.serialize_pem()).context("writing a key")?;
        std::fs::write(path("sa.pub"), key.public_key_pem()).context("writing a key")?;
        let admin = format!("{ADMIN_TOKEN},admin,admin,\"system:masters\"\n");
        std::fs::write(path("tokens.csv"), admin).context("writing tokens")?;

        let mut command = Command::new(binary);
        command
            .args(["etcd", "--unsafe-no-fsync", "--log-level=error"])
            .arg("--data-dir")
            .arg(path("etcd"))
            .args(["--listen-client-urls", &etcd])
            .args(["--advertise-client-urls", &etcd])
            .args(["--listen-peer-urls", &peer])
            .args(["--initial-advertise-peer-urls", &peer])
            .arg(format!("--initial-cluster=default={peer}"));
        let etcd_process = Process::start("etcd", &mut command)?;

        let mut command = Command::new(binary);
        command
            .args(["kube-apiserver", "--bind-address=127.0.0.1"])
            .args(["--etcd-servers", &etcd])
            .args(["--secure-port", &api.to_string()])
            .arg("--cert-dir")
            .arg(path("certs"))
            .arg("--service-account-key-file")
            .arg(path("sa.pub"))
            .arg("--service-account-signing-key-file")
            .arg(path("sa.key"))
            .args(["--service-account-issuer=https://kubernetes.default.svc"])
            .arg("--token-auth-file")
            .arg(path("tokens.csv"))
            .args(["--authorization-mode=RBAC"])
            .args(["--service-cluster-ip-range=10.0.0.0/24"]);
        let api_process = Process::start("kube-apiserver", &mut command)?;
        cluster.processes = vec![api_process, etcd_process];
        cluster.until_api_ready().await?;

        let mut command = Command::new(binary);
        command
            .args(["kube-controller-manager", "--leader-elect=false"])
            .args(["--secure-port=0", "--concurrent-gc-syncs=20"])
            .arg("--kubeconfig")
            .arg(cluster.kubeconfig())
            .args(["--controllers", &CONTROLLERS.join(",")])
            .arg("--service-account-private-key-file")
            .arg(cluster.path("sa.key"))
            .arg("--root-ca-file")
            .arg(cluster.ca_file());
        let controllers = Process::start("kube-controller-manager", &mut command)?;
        cluster.processes.insert(0, controllers);
        cluster.until_controllers_run().await?;
        Ok(cluster)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn ca_file(&self) -> PathBuf {
        self.path("certs/apiserver.crt")
    }

    /// A directory that lives as long as the cluster.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Token of the administrator, a member of `system:masters`.
    pub fn token(&self) -> &'static str {
        ADMIN_TOKEN
    }

    /// kubeconfig of the administrator, a member of `system:masters`.
    pub fn kubeconfig(&self) -> PathBuf {
        self.path("admin.kubeconfig")
    }

    /// What a server has printed so far.
    pub fn log(&self, server: &str) -> String {
        let process = self.processes.iter().find(|p| p.name() == server);
        process.map(Process::log).unwrap_or_default()
    }

    /// A client of the administrator. It belongs to the runtime in which it is made.
    ///
    /// # Errors
    /// The kubeconfig cannot be used.
    pub async fn client(&self) -> anyhow::Result<Client> {
        client(&self.kubeconfig()).await
    }

    /// A new token of a ServiceAccount, which must exist.
    ///
    /// # Errors
    /// The API refuses.
    pub async fn token_of(&self, namespace: &str, account: &str) -> anyhow::Result<String> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client().await?, namespace);
        let request = TokenRequest {
            spec: TokenRequestSpec {
                expiration_seconds: Some(TOKEN_SECONDS),
                ..TokenRequestSpec::default()
            },
            ..TokenRequest::default()
        };
        let answer = accounts
            .create_token_request(account, &PostParams::default(), &request)
            .await
            .with_context(|| format!("asking for a token of {namespace}/{account}"))?;
        Ok(answer.status.context("no token in the answer")?.token)
    }

    /// kubeconfig of a ServiceAccount, which must exist.
    ///
    /// # Errors
    /// The API refuses, or the file cannot be written.
    pub async fn kubeconfig_of(&self, namespace: &str, account: &str) -> anyhow::Result<PathBuf> {
        let path = self.path(&format!("{namespace}.{account}.kubeconfig"));
        let token = self.token_of(namespace, account).await?;
        self.write_kubeconfig(&path, &token)?;
        Ok(path)
    }

    fn write_kubeconfig(&self, path: &Path, token: &str) -> anyhow::Result<()> {
        let cluster = json!({ "server": self.url, "certificate-authority": self.ca_file() });
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "test", "cluster": cluster }],
            "users": [{ "name": "user", "user": { "token": token } }],
            "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "user" } }],
            "current-context": "test",
        });
        std::fs::write(path, config.to_string())
            .with_context(|| format!("writing {}", path.display()))
    }

    async fn until_api_ready(&mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        self.until("ready", started, async |cluster| {
            // The certificate comes first.
            if !cluster.ca_file().exists() {
                return false;
            }
            let path = cluster.kubeconfig();
            if !path.exists() && cluster.write_kubeconfig(&path, ADMIN_TOKEN).is_err() {
                return false;
            }
            let Ok(client) = cluster.client().await else {
                return false;
            };
            let request = http::Request::get("/readyz").body(Vec::new());
            match request {
                Ok(request) => client.request_text(request).await.is_ok(),
                Err(_) => false,
            }
        })
        .await
    }

    /// All are started in turn; this waits for the two that leave a mark.
    async fn until_controllers_run(&mut self) -> anyhow::Result<()> {
        let client = self.client().await?;
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
        let config_maps: Api<ConfigMap> = Api::namespaced(client, "default");
        self.until("served by its controllers", Instant::now(), async |_| {
            let account = accounts.get_opt("default").await;
            let root = config_maps.get_opt(ROOT_CA).await;
            matches!((account, root), (Ok(Some(_)), Ok(Some(_))))
        })
        .await
    }

    async fn until(
        &mut self,
        what: &str,
        started: Instant,
        holds: impl AsyncFn(&Self) -> bool,
    ) -> anyhow::Result<()> {
        while !holds(self).await {
            let ended = self.processes.iter_mut().any(|p| p.ended().is_some());
            if ended || started.elapsed() > READY_MAX {
                let log = |p: &Process| format!("--- {}\n{}", p.name(), p.log());
                let logs: Vec<String> = self.processes.iter().map(log).collect();
                bail!("the cluster is not {what}:\n{}", logs.join("\n"));
            }
            tokio::time::sleep(READY_INTERVAL).await;
        }
        Ok(())
    }
}

/// A client of whom a kubeconfig names.
///
/// # Errors
/// The kubeconfig cannot be used.
pub async fn client(kubeconfig: &Path) -> anyhow::Result<Client> {
    let file = Kubeconfig::read_from(kubeconfig)
        .with_context(|| format!("reading {}", kubeconfig.display()))?;
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    let config = config.context("using the kubeconfig")?;
    Client::try_from(config).context("setting up the client")
}
