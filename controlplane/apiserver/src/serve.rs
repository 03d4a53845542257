//! The listener: TLS, HTTP/1.1 and HTTP/2, authentication, limits, drain.

mod drain;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service as _;

use crate::auth::{self, Authenticator};
use crate::server::{ApiServer, ApiService, Identity};
use crate::{ApiBody, limits};
use drain::{Drained, is_watch};

/// How clients talk to a listener.
#[derive(Clone)]
pub enum Transport {
    /// With TLS.
    Tls(Arc<rustls::ServerConfig>),
    /// In the clear. Only on loopback.
    Plain,
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tls(_) => "Tls",
            Self::Plain => "Plain",
        })
    }
}

impl From<rustls::ServerConfig> for Transport {
    fn from(config: rustls::ServerConfig) -> Self {
        Self::Tls(Arc::new(config))
    }
}

/// Why a listener cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It could be reached from other machines, without TLS or without credentials.
    #[error("{0} is not a loopback address: it needs TLS and credentials")]
    NotLoopback(SocketAddr),
    /// The listener is broken.
    #[error("listener")]
    Listener(#[from] io::Error),
}

/// Serves a listener until `shutdown` is cancelled; then takes no new connections, ends watches
/// cleanly, lets other requests finish for a while, and returns.
///
/// # Errors
/// The listener may be reached from elsewhere without TLS or credentials.
///
/// # Cancellation
/// A dropped future closes the listener; connections under way are not drained.
pub async fn serve(
    api: Arc<ApiServer>,
    listener: TcpListener,
    transport: Transport,
    authenticator: Arc<Authenticator>,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let address = listener.local_addr()?;
    let exposed = authenticator.is_insecure() || matches!(transport, Transport::Plain);
    if exposed && !address.ip().is_loopback() {
        return Err(ServeError::NotLoopback(address));
    }
    let front = Arc::new(Front {
        api,
        authenticator,
        shutdown: shutdown.clone(),
    });
    let acceptor = match transport {
        Transport::Tls(config) => Some(TlsAcceptor::from(config)),
        Transport::Plain => None,
    };
    let graceful = GracefulShutdown::new();
    let connections = TaskTracker::new();
    let permits = Arc::new(Semaphore::new(limits::CONNECTIONS_MAX));
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = accept(&listener, &permits) => accepted,
        };
        let (stream, permit) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections");
                tokio::select! {
                    () = shutdown.cancelled() => break,
                    () = tokio::time::sleep(limits::ACCEPT_RETRY_DELAY) => continue,
                }
            }
        };
        let connection = connection(
            Arc::clone(&front),
            stream,
            acceptor.clone(),
            graceful.watcher(),
        );
        connections.spawn(async move {
            connection.await;
            drop(permit);
        });
    }
    drop(listener);
    drain_connections(graceful, connections).await;
    Ok(())
}

async fn drain_connections(graceful: GracefulShutdown, connections: TaskTracker) {
    connections.close();
    let drained = async {
        graceful.shutdown().await;
        connections.wait().await;
    };
    if tokio::time::timeout(limits::DRAIN_TIMEOUT, drained)
        .await
        .is_err()
    {
        tracing::warn!(
            connections = connections.len(),
            "connections did not end in time"
        );
    }
}

/// The next connection. Errors that concern only one client are skipped.
async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    // Waiting for a free place before accepting leaves the rest in the kernel's queue.
    let permit = Arc::clone(permits)
        .acquire_owned()
        .await
        .map_err(io::Error::other)?;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                stream.set_nodelay(true)?;
                return Ok((stream, permit));
            }
            Err(error) => match error.kind() {
                io::ErrorKind::ConnectionAborted
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionRefused
                | io::ErrorKind::Interrupted => {}
                _ => return Err(error),
            },
        }
    }
}

async fn connection(
    front: Arc<Front>,
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let Some(acceptor) = acceptor else {
        return http(front, stream, None, watcher).await;
    };
    let handshake = tokio::time::timeout(limits::TLS_HANDSHAKE_TIMEOUT, acceptor.accept(stream));
    match handshake.await {
        Ok(Ok(stream)) => {
            let certificate = stream
                .get_ref()
                .1
                .peer_certificates()
                .and_then(<[_]>::first)
                .and_then(|certificate| auth::certificate_identity(certificate));
            http(front, stream, certificate, watcher).await;
        }
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => tracing::debug!("TLS handshake took too long"),
    }
}

async fn http(
    front: Arc<Front>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    certificate: Option<Identity>,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let certificate = Arc::new(certificate);
    let asked = CancellationToken::new();
    let asking = asked.clone();
    let service = hyper::service::service_fn(move |request| {
        asking.cancel();
        let (front, certificate) = (Arc::clone(&front), Arc::clone(&certificate));
        async move { front.answer(request, (*certificate).as_ref()).await }
    });
    let connection = builder()
        .serve_connection_with_upgrades(TokioIo::new(stream), service)
        .into_owned();
    // hyper waits for ever for the bytes that tell HTTP/1 from HTTP/2.
    let silent = async {
        let first = tokio::time::timeout(limits::HEADER_READ_TIMEOUT, asked.cancelled());
        if first.await.is_ok() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        ended = watcher.watch(connection) => if let Err(error) = ended {
            tracing::debug!(%error, "connection ended");
        },
        () = silent => tracing::debug!("connection asked for nothing"),
    }
}

fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits::HEADER_READ_TIMEOUT)
        .max_buf_size(limits::HEADER_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        // client-go puts every watch of a process on one connection.
        .max_concurrent_streams(limits::HTTP2_STREAMS_MAX)
        .max_header_list_size(u32::try_from(limits::HEADER_BYTES_MAX).unwrap_or(u32::MAX))
        .keep_alive_interval(Some(limits::HTTP2_PING_INTERVAL))
        .keep_alive_timeout(limits::HTTP2_PING_TIMEOUT);
    builder
}

/// What stands between a socket and the API service.
struct Front {
    api: Arc<ApiServer>,
    authenticator: Arc<Authenticator>,
    shutdown: CancellationToken,
}

impl Front {
    async fn answer(
        &self,
        mut request: Request<Incoming>,
        certificate: Option<&Identity>,
    ) -> Result<http::Response<Drained<ApiBody>>, std::convert::Infallible> {
        let watch = is_watch(request.uri());
        let identity = match self
            .authenticator
            .authenticate(request.headers(), certificate)
        {
            Ok(identity) => identity,
            Err(refusal) => return Ok(refusal.into_response().map(Drained::to_its_end)),
        };
        // Nothing that came over the wire can be among the extensions.
        request.extensions_mut().insert(identity);
        let mut service: ApiService = self.api.service(auth::anonymous());
        let response = service.call(request).await?;
        Ok(response.map(|body| match watch {
            true => Drained::until(body, self.shutdown.clone()),
            false => Drained::to_its_end(body),
        }))
    }
}

/// Longest time between a cancelled `shutdown` and the return of [`serve`].
pub const DRAIN_TIMEOUT: Duration = limits::DRAIN_TIMEOUT;
