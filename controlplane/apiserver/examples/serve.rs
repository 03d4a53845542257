//! An API server in memory, for trying things with kubectl.
//!
//! `cargo run -p ecp-apiserver --example serve -- DIR` keeps its credentials and kubeconfig in `DIR`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context as _;
use ecp_apiserver::auth::Authenticator;
use ecp_apiserver::pki::{self, Pki};
use ecp_apiserver::{ApiServer, Config, Identity, serve};
use ecp_store::MemoryStore;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let dir = PathBuf::from(std::env::args().nth(1).context("usage: serve DIR")?);
    let pki = Pki::open(&dir, &[], SystemTime::now())?;
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .context("binding a port")?;
    let url = format!("https://{}", listener.local_addr()?);
    let kubeconfig = pki::kubeconfig(&url, Some(pki.ca_pem()), Some(pki.token()));
    pki::write_private(&dir.join("kubeconfig"), kubeconfig.as_bytes())?;
    let api = ApiServer::new(Arc::new(MemoryStore::new()), Config::default()).await?;
    let authenticator = Authenticator::new().with_token(pki.token(), Identity::admin());
    let shutdown = tokio_util::sync::CancellationToken::new();
    let signal = shutdown.clone();
    tokio::spawn(async move {
        let _ = tokio::signal::ctrl_c().await;
        signal.cancel();
    });
    let tls = pki.server_config()?.into();
    serve::serve(
        Arc::clone(&api),
        listener,
        tls,
        Arc::new(authenticator),
        shutdown,
    )
    .await?;
    api.shutdown().await;
    Ok(())
}
