//! The data directory: what `ecp up` keeps and tells on disk.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use ecp_apiserver::pki::write_private;

/// The data directory, private to its owner.
#[derive(Clone, Debug)]
pub(crate) struct DataDir(PathBuf);

impl DataDir {
    /// Opens the directory, which is created with mode 0700 when missing.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        if path.exists() && !path.is_dir() {
            bail!("the data directory {} is not a directory", path.display());
        }
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder
            .create(path)
            .with_context(|| format!("creating the data directory {}", path.display()))?;
        let path = path
            .canonicalize()
            .with_context(|| format!("opening the data directory {}", path.display()))?;
        Ok(Self(path))
    }

    /// The store's file.
    pub(crate) fn store(&self) -> PathBuf {
        self.0.join("store.redb")
    }

    /// Certificates and keys.
    pub(crate) fn pki(&self) -> PathBuf {
        self.0.join("pki")
    }

    /// The dummy cloud's own state.
    pub(crate) fn cloud(&self) -> PathBuf {
        self.0.join("dummy-cloud")
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.0.join("kubeconfig")
    }

    /// The administrator's bearer token, for REST and the Kubernetes API.
    pub(crate) fn token(&self) -> PathBuf {
        self.0.join("token")
    }

    /// Writes `kubeconfig` and `token` (0600), and `endpoints.json`.
    pub(crate) fn publish(
        &self,
        endpoints: &Endpoints,
        kubeconfig: &str,
        token: &str,
    ) -> anyhow::Result<()> {
        write_private(&self.kubeconfig(), kubeconfig.as_bytes()).context("writing kubeconfig")?;
        write_private(&self.token(), token.as_bytes()).context("writing token")?;
        let json = serde_json::json!({
            "api": endpoints.api_url(),
            "rest": endpoints.rest_url(),
            "kubeconfig": self.kubeconfig(),
            "token": self.token(),
            "pid": std::process::id(),
        });
        write_private(&self.endpoints(), format!("{json:#}\n").as_bytes())
            .context("writing endpoints.json")?;
        Ok(())
    }

    /// Removes the `endpoints.json` of this process: it does not serve any more.
    pub(crate) fn unpublish(&self) {
        let published = std::fs::read(self.endpoints());
        let pid = published
            .ok()
            .and_then(|json| serde_json::from_slice::<serde_json::Value>(&json).ok())
            .and_then(|json| json["pid"].as_u64());
        // Two that keep nothing may share a directory.
        if pid == Some(std::process::id().into()) {
            self.forget_endpoints();
        }
    }

    /// Removes `endpoints.json`, which a killed process leaves behind.
    pub(crate) fn forget_endpoints(&self) {
        match std::fs::remove_file(self.endpoints()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(%error, "endpoints.json was not removed");
            }
            Ok(()) | Err(_) => {}
        }
    }

    fn endpoints(&self) -> PathBuf {
        self.0.join("endpoints.json")
    }
}

/// Where the servers listen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoints {
    /// Kubernetes API.
    pub(crate) api: SocketAddr,
    /// SECA REST API.
    pub(crate) rest: SocketAddr,
}

impl Endpoints {
    /// URL of the Kubernetes API.
    pub(crate) fn api_url(&self) -> String {
        format!("https://127.0.0.1:{}", self.api.port())
    }

    /// URL of the SECA REST API, without a path.
    pub(crate) fn rest_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.rest.port())
    }
}
