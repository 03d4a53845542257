//! The reference: a bare HTTP server that answers fixed bytes.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

/// Starts a server that answers every request with `body`, in this process.
///
/// # Errors
/// No port could be bound.
pub(crate) async fn serve(body: Bytes) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let body = body.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                    let body = body.clone();
                    async move {
                        drop(request);
                        let response = http::Response::builder()
                            .header("content-type", "application/json")
                            .body(Full::new(body));
                        Ok::<_, Infallible>(response.unwrap_or_default())
                    }
                });
                let server = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                // A client that hangs up ends its connection with an error.
                drop(server.serve_connection(TokioIo::new(stream), service).await);
            });
        }
    });
    Ok(address)
}
