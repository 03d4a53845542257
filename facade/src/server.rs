//! Serving a facade on a socket, until it is told to stop.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::config::{Access, Config};
use crate::facade::{Facade, StartError};
use crate::limits;

/// Pause after a failed accept, such as when there are no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Starts a facade and serves it until `shutdown`; see [`Facade::serve`].
///
/// # Errors
/// See [`StartError`].
pub async fn serve(
    listener: TcpListener,
    config: Config,
    shutdown: CancellationToken,
) -> Result<(), StartError> {
    Facade::start(config, shutdown)?.serve(listener).await
}

/// Starts a facade and gives its router, for use without a socket. The watches end at `shutdown`.
///
/// # Errors
/// See [`StartError`].
pub fn router(config: Config, shutdown: CancellationToken) -> Result<axum::Router, StartError> {
    let facade = Facade::start(config, shutdown)?;
    let stopping = facade.clone();
    tokio::spawn(async move {
        stopping.draining().cancelled().await;
        stopping.stop().await;
    });
    Ok(facade.router())
}

impl Facade {
    /// Serves until the token given to [`Facade::start`] is cancelled. Then no new connection is
    /// taken, `/readyz` answers 503, open requests end (within a limit), and the watches stop.
    ///
    /// # Errors
    /// Without authentication, a listener that is not on loopback.
    pub async fn serve(&self, listener: TcpListener) -> Result<(), StartError> {
        let address = listener.local_addr().map_err(StartError::Listener)?;
        if matches!(self.config().access, Access::InsecureDev) && !address.ip().is_loopback() {
            return Err(StartError::NotLoopback(address));
        }
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.config().header_read_timeout);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(limits::HEADER_READ_TIMEOUT);
        let router = self.router();
        let tls = self.config().tls.clone().map(TlsAcceptor::from);
        let patience = self.config().header_read_timeout;
        let graceful = GracefulShutdown::new();
        let room = Arc::new(Semaphore::new(limits::CONNECTIONS_MAX));
        loop {
            let accepting = async {
                let permit = Arc::clone(&room).acquire_owned().await;
                (listener.accept().await, permit)
            };
            let (accepted, permit) = tokio::select! {
                () = self.draining().cancelled() => break,
                accepted = accepting => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => {
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "cannot set TCP_NODELAY");
                    }
                    stream
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let (builder, router) = (builder.clone(), router.clone());
            let (tls, watcher) = (tls.clone(), graceful.watcher());
            tokio::spawn(async move {
                match tls {
                    None => connection(builder, router, stream, watcher, patience).await,
                    Some(tls) => match tokio::time::timeout(patience, tls.accept(stream)).await {
                        Ok(Ok(stream)) => {
                            connection(builder, router, stream, watcher, patience).await;
                        }
                        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                        Err(_) => tracing::debug!("TLS handshake took too long"),
                    },
                }
                drop(permit);
            });
        }
        drop(listener);
        tracing::info!(%address, "draining");
        if tokio::time::timeout(limits::DRAIN_TIMEOUT, graceful.shutdown())
            .await
            .is_err()
        {
            tracing::warn!("some requests did not end in time");
        }
        self.stop().await;
        Ok(())
    }
}

/// Serves one connection. One that asks for nothing is closed after `patience`.
async fn connection(
    builder: Builder<TokioExecutor>,
    router: axum::Router,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    watcher: Watcher,
    patience: Duration,
) {
    let asked = CancellationToken::new();
    let asking = asked.clone();
    let service = router.map_request(move |request: Request<Incoming>| {
        asking.cancel();
        request
    });
    let served = builder
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
        .into_owned();
    // hyper waits for ever for the bytes that tell HTTP/1 from HTTP/2.
    let silent = async {
        if tokio::time::timeout(patience, asked.cancelled())
            .await
            .is_ok()
        {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        ended = watcher.watch(served) => if let Err(error) = ended {
            tracing::debug!(error, "connection ended");
        },
        () = silent => tracing::debug!("connection asked for nothing"),
    }
}
