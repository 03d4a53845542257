//! The facade: what all requests share, and finding things in it.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use ecp_meta::object;
use ecp_xrds::{KindInfo, Scope};
use governor::clock::{Clock as _, DefaultClock};
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::Identity;
use crate::body::refused_by_server;
use crate::cache::{
    Cache, Entry, KindCache, derived_name, item_key, namespaces_collection, regional_key,
};
use crate::config::{Access, Config};
use crate::control::{CallError, ControlPlane};
use crate::error::{ApiError, ErrorKind};
use crate::limits;
use crate::metrics::Metrics;
use crate::path::Target;
use crate::regions::Apis;
use crate::view::Lens;

/// A running facade: caches in step with the control plane, ready to be served.
///
/// Cheap to clone; all clones are the same facade.
#[derive(Clone)]
pub struct Facade {
    inner: Arc<Inner>,
}

struct Inner {
    config: Config,
    control: ControlPlane,
    cache: Cache,
    metrics: Metrics,
    openapi: OnceLock<Bytes>,
    in_flight: Semaphore,
    rates: Option<Rates>,
    waiting: Semaphore,
    draining: CancellationToken,
    watches: CancellationToken,
    tasks: TaskTracker,
}

/// How many requests each caller has made lately. Callers are authenticated, so there are not more
/// of them than users.
type Rates = RateLimiter<String, HashMapStateStore<String>, DefaultClock>;

/// A place among the requests that are worked on.
#[expect(dead_code, reason = "the permit is held, not read")]
pub(crate) struct Slot<'a>(SemaphorePermit<'a>);

/// A facade cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Without authentication, only the same machine may connect.
    #[error("without authentication the facade listens on loopback only, not on {0}")]
    NotLoopback(std::net::SocketAddr),
    /// There is nothing to serve regional APIs for.
    #[error("regional APIs need a region")]
    NoRegion,
    /// The listener has no address.
    #[error("cannot read the address of the listener")]
    Listener(#[source] std::io::Error),
}

impl std::fmt::Debug for Facade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Facade")
            .field("config", &self.inner.config)
            .finish_non_exhaustive()
    }
}

impl Facade {
    /// Starts the watches. They end when `shutdown` is cancelled, or, under
    /// [`Facade::serve`], when the last request after that has ended.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(config: Config, shutdown: CancellationToken) -> Result<Self, StartError> {
        if config.served.apis != Apis::Global && config.served.regions.is_empty() {
            return Err(StartError::NoRegion);
        }
        if matches!(config.access, Access::InsecureDev) {
            tracing::warn!("the SECA API asks nobody for a token");
        }
        let inner = Inner {
            control: ControlPlane::new(config.client.clone()),
            cache: Cache::new(),
            metrics: Metrics::new(),
            openapi: OnceLock::new(),
            in_flight: Semaphore::new(config.requests_in_flight_max),
            rates: config
                .rate_limit
                .map(|n| Rates::hashmap(Quota::per_second(n))),
            waiting: Semaphore::new(limits::WAITING_MAX),
            draining: shutdown,
            watches: CancellationToken::new(),
            tasks: TaskTracker::new(),
            config,
        };
        inner
            .cache
            .start(&inner.control, &inner.tasks, &inner.watches);
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Waits until the caches are filled: from then on `/readyz` answers 200.
    ///
    /// # Cancellation
    /// Safe.
    pub async fn ready(&self) {
        self.inner.cache.wait_synced().await;
    }

    /// Ends the watches and waits for them.
    pub(crate) async fn stop(&self) {
        self.inner.watches.cancel();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }

    pub(crate) fn config(&self) -> &Config {
        &self.inner.config
    }

    pub(crate) fn control(&self) -> &ControlPlane {
        &self.inner.control
    }

    pub(crate) fn cache(&self) -> &Cache {
        &self.inner.cache
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// The OpenAPI document, made when first asked for.
    pub(crate) fn openapi(&self) -> Bytes {
        let Config {
            profile, served, ..
        } = self.config();
        let make = || Bytes::from(crate::openapi::openapi(*profile, served).to_string());
        self.inner.openapi.get_or_init(make).clone()
    }

    /// Takes a place among the requests that are worked on, if there is one.
    pub(crate) fn slot(&self) -> Option<Slot<'_>> {
        self.inner.in_flight.try_acquire().ok().map(Slot)
    }

    /// Refuses a caller that has made too many requests lately.
    pub(crate) fn admit(&self, identity: &Identity) -> Result<(), ApiError> {
        let Some(rates) = &self.inner.rates else {
            return Ok(());
        };
        rates.check_key(&identity.subject).map_err(|until| {
            let wait = until.wait_time_from(DefaultClock::default().now());
            ApiError::new(ErrorKind::TooMany, "too many requests a second; slow down")
                .retry_after(wait)
        })
    }

    /// Gives a request's place back while it waits for the control plane, so that a slow cloud
    /// does not keep others out. None when too many wait already: then there is no wait.
    pub(crate) fn wait_instead_of(&self, slot: Slot<'_>) -> Option<SemaphorePermit<'_>> {
        drop(slot);
        self.inner.waiting.try_acquire().ok()
    }

    /// Ends at a deadline, and soon after a drain began: who waits is to be answered before
    /// connections are cut.
    pub(crate) async fn wait_over(&self, deadline: Instant) {
        let drained = async {
            self.draining().cancelled().await;
            tokio::time::sleep(limits::DRAIN_WAIT_MAX).await;
        };
        tokio::select! {
            () = tokio::time::sleep_until(deadline) => {}
            () = drained => {}
        }
    }

    /// Cancelled when the facade takes no new connections.
    pub(crate) fn draining(&self) -> &CancellationToken {
        &self.inner.draining
    }

    pub(crate) fn kind(&self, info: &KindInfo) -> &Arc<KindCache> {
        self.inner.cache.kind(info)
    }

    /// How a target's documents look.
    pub(crate) fn lens<'a>(&'a self, target: &'a Target) -> Lens<'a> {
        Lens {
            info: target.info,
            place: target.place(),
            region: &target.region,
            served: &self.config().served,
            doomed: self.doomed(target),
        }
    }

    /// Since when the workspace or network of a target is being deleted, if it is.
    fn doomed(&self, target: &Target) -> Option<Timestamp> {
        let since = |kind: &str, workspace: &str, key: &str| {
            let namespace = self.cache().namespaces().find(&target.tenant, workspace)?;
            let parent = self.cache().by_kind(kind)?.get(&namespace.name, key)?;
            object::meta_str(parent.object(), "deletionTimestamp")?
                .parse::<Timestamp>()
                .ok()
        };
        let workspace = target.workspace.as_str();
        match target.info.scope {
            Scope::Cluster | Scope::Tenant => None,
            Scope::Workspace => since("Workspace", "", workspace),
            Scope::Network => since("Network", workspace, &target.network)
                .or_else(|| since("Workspace", "", workspace)),
        }
    }

    /// The region that a resource says it is in, else the first.
    pub(crate) fn region_of<'a>(&'a self, entry: &'a Entry) -> &'a str {
        let said = entry.spec("region").and_then(Value::as_str);
        said.unwrap_or(self.config().served.first_region())
    }

    /// Whether a resource belongs to the region of a URL. Global APIs are about all regions, and a
    /// catalogue entry without a region is offered in all of them.
    pub(crate) fn sees(&self, target: &Target, entry: &Entry) -> bool {
        let inside = matches!(target.info.scope, Scope::Workspace | Scope::Network);
        if target.region.is_empty() {
            return true;
        }
        match entry.spec("region") {
            None if target.info.catalogue => true,
            // It is where its workspace is.
            None if inside => self.workspace_elsewhere(target).is_none(),
            _ => self.region_of(entry) == target.region,
        }
    }

    /// Says that the workspace of a target is in another region, when that is so.
    pub(crate) fn workspace_elsewhere(&self, target: &Target) -> Option<String> {
        let workspaces = self.cache().by_kind("Workspace")?;
        let tenant = self.cache().namespaces().find(&target.tenant, "")?;
        let workspace = workspaces.get(&tenant.name, &target.workspace)?;
        let (region, asked) = (self.region_of(&workspace), &target.region);
        (!asked.is_empty() && region != asked).then(|| {
            let name = &target.workspace;
            format!("workspace {name:?} is in region {region:?}, and this is the URL of {asked:?}")
        })
    }

    /// The namespace of a target's resources, if it exists: empty for cluster-scoped kinds.
    ///
    /// What the cache does not have is read through, under the name it would have.
    pub(crate) async fn namespace_of(&self, target: &Target) -> Result<Option<String>, ApiError> {
        let workspace = match target.info.scope {
            Scope::Cluster => return Ok(Some(String::new())),
            Scope::Tenant => "",
            Scope::Workspace | Scope::Network => target.workspace.as_str(),
        };
        let namespaces = self.cache().namespaces();
        if let Some(namespace) = namespaces.find(&target.tenant, workspace) {
            return Ok(Some(namespace.name));
        }
        let name = derived_name(&target.tenant, workspace);
        if !ecp_meta::names::is_dns1123_label(&name) {
            return Ok(None);
        }
        match self
            .control()
            .get(&namespaces_collection(), None, &name)
            .await
        {
            Ok(object) => {
                namespaces.insert(&object);
                Ok(namespaces.find(&target.tenant, workspace).map(|n| n.name))
            }
            Err(CallError::NotFound(_)) => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Whether the workspace (and network) of a target exist and are not being deleted, as far as
    /// the cache knows.
    pub(crate) fn parents_exist(&self, target: &Target) -> bool {
        let workspace = match target.info.scope {
            Scope::Cluster | Scope::Tenant => return true,
            Scope::Workspace | Scope::Network => &target.workspace,
        };
        let namespaces = self.cache().namespaces();
        let live = |kind: &str, namespace: &str, key: &str| {
            let entry = self
                .cache()
                .by_kind(kind)
                .and_then(|c| c.get(namespace, key));
            entry.is_some_and(|e| !e.deleting())
        };
        let Some(tenant) = namespaces.find(&target.tenant, "") else {
            return false;
        };
        if !live("Workspace", &tenant.name, workspace) || self.workspace_elsewhere(target).is_some()
        {
            return false;
        }
        target.info.scope != Scope::Network
            || namespaces
                .find(&target.tenant, workspace)
                .is_some_and(|n| live("Network", &n.name, &target.network))
    }

    /// The entry of a resource that the region of the URL has, read through when the cache misses
    /// it.
    pub(crate) async fn find(
        &self,
        target: &Target,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<Entry>>, ApiError> {
        let kind = self.kind(target.info);
        let cached = if kind.link().fresh() {
            cached(kind, target, namespace, name)
        } else {
            None
        };
        match cached {
            Some(entry) => Ok(Some(entry).filter(|entry| self.sees(target, entry))),
            None => self.find_now(target, namespace, name).await,
        }
    }

    /// The entry of the resource that a target names; see [`Self::find`].
    pub(crate) async fn look_up(&self, target: &Target) -> Result<Option<Arc<Entry>>, ApiError> {
        let name = target.name.as_deref().unwrap_or_default();
        match self.namespace_of(target).await? {
            Some(namespace) => self.find(target, &namespace, name).await,
            None => Ok(None),
        }
    }

    /// The entry of a resource that the region of the URL has, as the control plane has it now.
    pub(crate) async fn find_now(
        &self,
        target: &Target,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<Entry>>, ApiError> {
        let found = self.read_through(target, namespace, name).await?;
        Ok(found.filter(|entry| self.sees(target, entry)))
    }

    /// The entry of a resource as the control plane has it now, in whatever region.
    pub(crate) async fn read_through(
        &self,
        target: &Target,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<Entry>>, ApiError> {
        let kind = self.kind(target.info);
        let cached = cached(kind, target, namespace, name);
        let object_names = match &cached {
            Some(entry) => vec![entry.object_name().to_owned()],
            // Who uses kubectl may have given it its own name.
            None if target.info.scope == Scope::Network => {
                vec![target.object_name(name), name.to_owned()]
            }
            None => vec![target.object_name(name)],
        };
        let namespace = Some(namespace).filter(|ns| !ns.is_empty());
        let keys = keys(target, name);
        for object_name in object_names {
            if !ecp_meta::names::is_dns1123_subdomain(&object_name) {
                continue;
            }
            match self
                .control()
                .get(kind.collection(), namespace, &object_name)
                .await
            {
                Ok(object) => {
                    let entry = kind.written(object);
                    if keys.iter().any(|key| key == entry.key()) {
                        return Ok(Some(entry));
                    }
                }
                Err(CallError::NotFound(_)) => {
                    if let Some(entry) = &cached {
                        kind.gone(entry.uid());
                    }
                }
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(None)
    }

    /// What a failed call means for the client, where nothing better is known.
    pub(crate) fn failed(&self, error: CallError) -> ApiError {
        match error {
            CallError::Invalid { message, causes } => refused_by_server(&message, &causes),
            CallError::TooMany(cause) => {
                tracing::warn!(cause, "the control plane is overloaded");
                ApiError::new(ErrorKind::TooMany, "the control plane is busy; try again")
            }
            CallError::Denied(words) => ApiError::new(ErrorKind::Conflict, words),
            CallError::Terminating(_) => ApiError::new(
                ErrorKind::Conflict,
                "the workspace or tenant is being deleted",
            ),
            CallError::Conflict(cause) => {
                tracing::debug!(cause, "write lost a race");
                ApiError::new(
                    ErrorKind::Conflict,
                    "the resource was changed at the same time; try again",
                )
            }
            CallError::NotFound(cause) | CallError::Expired(cause) => ApiError::unavailable(cause),
            CallError::Unavailable(cause) => ApiError::unavailable(cause),
            CallError::Unexpected { code: 400, message } => refused_by_server(&message, &[]),
            error @ CallError::Unexpected { .. } => ApiError::internal(error),
        }
    }

    /// Makes sure that a tenant's namespace exists.
    pub(crate) async fn ensure_tenant(&self, tenant: &str) -> Result<String, ApiError> {
        let namespaces = self.cache().namespaces();
        if let Some(namespace) = namespaces.find(tenant, "") {
            if namespace.terminating {
                return Err(ApiError::new(
                    ErrorKind::Conflict,
                    format!("tenant {tenant} is being deleted; try again"),
                ));
            }
            return Ok(namespace.name);
        }
        let name = derived_name(tenant, "");
        let collection = namespaces_collection();
        let wanted = tenant_namespace(&name, tenant);
        let object = match self.control().create(&collection, None, &wanted).await {
            Ok(object) => object,
            Err(CallError::Conflict(_)) => self
                .control()
                .get(&collection, None, &name)
                .await
                .map_err(|e| self.failed(e))?,
            Err(error) => return Err(self.failed(error)),
        };
        namespaces.insert(&object);
        namespaces.find(tenant, "").map(|n| n.name).ok_or_else(|| {
            ApiError::internal(format!(
                "namespace {name} exists and is not that of tenant {tenant}"
            ))
        })
    }
}

/// Says that a resource does not exist.
pub(crate) fn not_found(target: &Target, name: &str) -> ApiError {
    ApiError::new(
        ErrorKind::NotFound,
        format!("{} {name:?} does not exist", target.info.noun),
    )
}

/// The keys under which a resource can be, the likeliest first: a region may have a catalogue entry
/// of its own.
fn keys(target: &Target, name: &str) -> Vec<String> {
    // No name has any, and keys use one as a separator.
    if name.contains(char::is_control) {
        return Vec::new();
    }
    let key = item_key(&target.network, name);
    if target.info.catalogue && target.info.regional() {
        vec![regional_key(name, &target.region), key]
    } else {
        vec![key]
    }
}

fn cached(kind: &KindCache, target: &Target, namespace: &str, name: &str) -> Option<Arc<Entry>> {
    let keys = keys(target, name);
    keys.iter().find_map(|key| kind.get(namespace, key))
}

/// The namespace of a tenant (ARCHITECTURE.md, Namespaces).
fn tenant_namespace(name: &str, tenant: &str) -> Value {
    let mut namespace = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name},
    });
    object::set_label(
        &mut namespace,
        ecp_meta::keys::TENANT,
        &ecp_meta::names::label_value(tenant),
    );
    object::set_annotation(&mut namespace, ecp_meta::keys::TENANT_NAME, tenant);
    namespace
}
