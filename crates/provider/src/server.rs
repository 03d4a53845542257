//! Health and metrics over HTTP, for a provider that runs in a pod.

use std::net::SocketAddr;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::metrics::Metrics;

/// Serves `/metrics`, `/healthz` and `/readyz` until `shutdown`.
///
/// # Errors
/// The address cannot be bound, or the listener fails.
pub async fn serve(
    address: SocketAddr,
    metrics: Metrics,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    info!(address = %listener.local_addr()?, "serves metrics");
    let encode = move || {
        let text = metrics.encode();
        let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        async move { ([(CONTENT_TYPE, content_type)], text) }
    };
    let router = Router::new()
        .route("/metrics", get(encode))
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(|| async { "ok" }));
    axum::serve(listener, router)
        .with_graceful_shutdown(shutdown.cancelled_owned())
        .await
}
