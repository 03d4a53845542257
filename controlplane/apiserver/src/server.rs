//! The server: one store, one registry, one service for every client.

use std::collections::HashSet;
use std::convert::Infallible;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use ecp_meta::cluster::ClusterName;
use ecp_store::{Store, StoreError};
use futures::FutureExt as _;
use http::{HeaderMap, Method, Request, Response};
use parking_lot::RwLock;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::{self, Authorizer, MastersOnly};
use crate::body::ApiBody;
use crate::finish::Finish;
use crate::limits;
use crate::metrics::{self, Metrics, Operation};
use crate::registry::{Registry, Resources};
use crate::request::Target;
use crate::status::Status;
use crate::{discovery, handlers, openapi, request};

/// Who sends a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// User name.
    pub user: String,
    /// Groups.
    pub groups: Vec<String>,
}

impl Identity {
    /// The administrator: a member of `system:masters`.
    pub fn admin() -> Self {
        Self {
            user: "system:admin".into(),
            groups: vec!["system:masters".into(), "system:authenticated".into()],
        }
    }

    /// A user that is authenticated and in no other group.
    pub fn user(name: &str) -> Self {
        Self {
            user: name.into(),
            groups: vec!["system:authenticated".into()],
        }
    }
}

/// How the server behaves.
#[derive(Clone, Debug)]
pub struct Config {
    /// How long a request other than a watch may take.
    pub request_timeout: Duration,
    /// Shortest life of a watch that asks for no timeout.
    pub watch_timeout_min: Duration,
    /// How long a read waits for a revision that has not happened yet.
    pub future_revision_wait: Duration,
    /// Time between bookmarks of a quiet watch.
    pub bookmark_interval: Duration,
    /// Requests other than watches that may be under way.
    pub requests_max: usize,
    /// Watches that may be open.
    pub watches_max: usize,
    /// The current time.
    pub clock: fn() -> jiff::Timestamp,
    /// A random number, for generated names.
    pub random: fn() -> u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            request_timeout: limits::REQUEST_TIMEOUT,
            watch_timeout_min: limits::WATCH_TIMEOUT_MIN,
            future_revision_wait: limits::FUTURE_REVISION_WAIT,
            bookmark_interval: limits::BOOKMARK_INTERVAL,
            requests_max: limits::REQUESTS_MAX,
            watches_max: limits::WATCHES_MAX,
            clock: jiff::Timestamp::now,
            random: rand::random,
        }
    }
}

/// How much is under way, and how much may be.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) requests: Arc<Semaphore>,
    pub(crate) watches: Arc<Semaphore>,
}

impl Load {
    fn new(config: &Config) -> Self {
        Self {
            requests: Arc::new(Semaphore::new(config.requests_max)),
            watches: Arc::new(Semaphore::new(config.watches_max)),
        }
    }
}

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store does not answer.
    #[error("the store cannot be read")]
    Store(#[from] StoreError),
    /// The first objects cannot be written.
    #[error("the first objects cannot be written: {0}")]
    Bootstrap(String),
}

/// The API server.
#[derive(Debug)]
pub struct ApiServer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) registry: Registry,
    pub(crate) config: Config,
    pub(crate) metrics: Metrics,
    pub(crate) authorizer: Box<dyn Authorizer>,
    pub(crate) documents: openapi::Documents,
    /// Clusters known to have their default namespaces.
    pub(crate) known_clusters: RwLock<HashSet<ClusterName>>,
    /// Held while the names of a definition are decided and written.
    pub(crate) naming: tokio::sync::Mutex<()>,
    /// Requests under way, and watches.
    pub(crate) load: Load,
    /// Watch events that are encoded already.
    pub(crate) frames: handlers::Frames,
    /// Definitions whose deletion is under way.
    pub(crate) deleting: crate::crd::UnderWay,
    pub(crate) stopping: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

/// What a request that is not for a resource may look at.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The server.
    pub server: &'a Arc<ApiServer>,
    /// The logical cluster.
    pub cluster: &'a ClusterName,
    /// Its resources.
    pub resources: &'a Arc<Resources>,
    /// The path below the cluster, such as `/apis/apps/v1`.
    pub path: &'a str,
    /// The query, without `?`.
    pub query: &'a str,
    /// Request headers.
    pub headers: &'a HeaderMap,
}

impl ApiServer {
    /// Starts a server on a store: loads the definitions of custom resources, writes the default
    /// namespaces of `root` and starts the background tasks.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn new(store: Arc<dyn Store>, config: Config) -> Result<Arc<Self>, StartError> {
        let server = Arc::new(Self {
            store,
            registry: Registry::new(),
            metrics: Metrics::new(),
            authorizer: Box::new(MastersOnly),
            documents: openapi::Documents::default(),
            known_clusters: RwLock::default(),
            naming: tokio::sync::Mutex::default(),
            load: Load::new(&config),
            frames: handlers::Frames::default(),
            deleting: crate::crd::UnderWay::default(),
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
            config,
        });
        crate::crd::start(&server).await?;
        crate::expiry::start(&server);
        server
            .ensure_cluster(&ClusterName::root())
            .await
            .map_err(|e| StartError::Bootstrap(e.to_string()))?;
        crate::controllers::start(&server);
        Ok(server)
    }

    /// The service for one client, or for an authenticator in front: an [`Identity`] among the
    /// request's extensions goes before `identity`.
    pub fn service(self: &Arc<Self>, identity: Identity) -> ApiService {
        ApiService {
            server: Arc::clone(self),
            identity: Arc::new(identity),
        }
    }

    /// The resources of every logical cluster.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The store below.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The current time.
    pub fn now(&self) -> jiff::Timestamp {
        (self.config.clock)()
    }

    /// Cancelled when the server stops; background tasks end with it.
    pub fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    /// Where background tasks are spawned, so that `shutdown` waits for them.
    pub fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Ends watches and background tasks. The store stays open: its owner closes it.
    pub async fn shutdown(&self) {
        self.stopping.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    async fn handle<B>(self: Arc<Self>, request: Request<B>, identity: Arc<Identity>) -> Answer
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (mut parts, body) = request.into_parts();
        let identity = parts
            .extensions
            .remove::<Identity>()
            .map_or(identity, Arc::new);
        let authorizer = &*self.authorizer;
        let identity = match auth::impersonated(authorizer, &parts.headers, identity) {
            Ok(identity) => identity,
            Err(status) => return status.into_response(),
        };
        if let Some(below) = request::below_wildcard(parts.uri.path()) {
            if auth::is_anonymous(&identity) {
                return auth::Unauthorized.into_response();
            }
            return handlers::handle_wildcard(&self, &identity, &parts, below).await;
        }
        let query = parts.uri.query().unwrap_or_default();
        let (cluster, path) = match request::split_cluster(parts.uri.path()) {
            Ok(split) => split,
            Err(status) => return status.into_response(),
        };
        let target = match request::route(path) {
            Ok(target) => target,
            // Who may not know anything is not told which paths exist.
            Err(_) if auth::is_anonymous(&identity) => return auth::Unauthorized.into_response(),
            Err(status) => return status.into_response(),
        };
        let asked = auth::attributes(&identity, &cluster, &parts.method, path, query, &target);
        let resources = self.registry.resources(&cluster);
        let served = target.is_served(&resources);
        let operation = self.metrics.operation(asked.verb, &asked.scope, served);
        let mut response = match auth::admit(authorizer, &asked) {
            Err(refusal) => {
                handlers::discard(&parts.headers, body).await;
                *refusal
            }
            Ok(()) => {
                let scope = Scope {
                    server: &self,
                    cluster: &cluster,
                    resources: &resources,
                    path,
                    query,
                    headers: &parts.headers,
                };
                dispatch(scope, &parts.method, &identity, target, body).await
            }
        };
        response.extensions_mut().insert(operation);
        response
    }
}

async fn dispatch<B>(
    scope: Scope<'_>,
    method: &Method,
    identity: &Identity,
    target: Target<'_>,
    body: B,
) -> Answer
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match target {
        Target::Resource(path) if auth::review::find(&path).is_some() => {
            auth::review::handle(&scope, method, identity, &path, body).await
        }
        Target::Resource(path) => {
            let call = handlers::Call {
                scope,
                method,
                identity,
                path,
            };
            handlers::handle(call, body).await
        }
        _ if !matches!(*method, Method::GET | Method::HEAD) => {
            Status::method_not_allowed(method.as_str()).into_response()
        }
        Target::Discovery => discovery::handle(&scope),
        Target::OpenApi => openapi::handle(&scope),
        Target::Health => handlers::health(&scope),
        Target::Version => handlers::version(),
        Target::Metrics => metrics::handle(scope.server).await,
    }
}

type Answer = Response<ApiBody>;

/// The server as a tower service.
#[derive(Clone, Debug)]
pub struct ApiService {
    server: Arc<ApiServer>,
    identity: Arc<Identity>,
}

impl<B> tower::Service<Request<B>> for ApiService
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Answer;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = Arc::clone(&self.server);
        let identity = Arc::clone(&self.identity);
        let started = Instant::now();
        let writes = !matches!(*request.method(), Method::GET | Method::HEAD);
        let patience = handlers::timeout(&server, request.uri().query().unwrap_or_default());
        let answered = async move {
            let handled = Arc::clone(&server).handle(request, identity);
            // A fault of ours must cost one request, not the process.
            let mut response = AssertUnwindSafe(handled)
                .catch_unwind()
                .await
                .unwrap_or_else(|panic| {
                    let text = panic
                        .downcast_ref::<&str>()
                        .map(|s| (*s).to_owned())
                        .or_else(|| panic.downcast_ref::<String>().cloned())
                        .unwrap_or_default();
                    tracing::error!(panic = text, "request handler panicked");
                    Status::internal("the request could not be handled").into_response()
                });
            let operation = response.extensions_mut().remove::<Operation>();
            let status = response.status();
            server
                .metrics
                .request(operation.as_ref(), status, started.elapsed());
            response
        };
        if !writes {
            return Box::pin(answered.map(Ok));
        }
        Box::pin(async move {
            let answered = tokio::time::timeout(patience, Finish::new(answered));
            Ok(answered
                .await
                .unwrap_or_else(|_| handlers::timed_out(patience).into_response()))
        })
    }
}
