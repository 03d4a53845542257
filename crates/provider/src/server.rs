//! Health and metrics over HTTP, for a controller that runs in a pod.

use std::net::SocketAddr;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::info;

/// Serves `/metrics`, `/healthz` and `/readyz` until `shutdown`. `encode` gives the metrics, in
/// the OpenMetrics text format.
///
/// # Errors
/// The address cannot be bound, or the listener fails.
pub async fn serve(
    address: SocketAddr,
    encode: impl Fn() -> String + Clone + Send + Sync + 'static,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    info!(address = %listener.local_addr()?, "serves metrics");
    let encode = move || {
        let text = encode();
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
