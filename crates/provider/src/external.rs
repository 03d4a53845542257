//! The one trait a provider author writes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::kind::Managed;

/// Talks to a cloud about one kind of managed resource.
///
/// The runtime calls these methods, never two at the same time for the same object, each with a
/// deadline of [`crate::limits::EXTERNAL_CALL_TIME_MAX`].
#[async_trait]
pub trait External: Send + Sync + 'static {
    /// The kind.
    type Managed: Managed;
    /// A connection to the cloud.
    type Client: Send + Sync + 'static;

    /// Whether [`External::find_by_tag`] is implemented.
    const FINDS_BY_TAG: bool = false;

    /// Makes (or takes from a cache) a client for the resource's configuration.
    ///
    /// # Errors
    /// Shown as `connect failed: …`.
    async fn connect(
        &self,
        resource: &Resource<Self::Managed>,
        config: &ProviderConfig,
    ) -> Result<Self::Client, ExternalError>;

    /// Looks at the external resource. Must not change it, and must not rely on status fields:
    /// its identity is [`Resource::external_name`].
    ///
    /// # Errors
    /// Shown as `observe failed: …`. A missing resource is no error but [`Observation::missing`].
    async fn observe(
        &self,
        client: &Self::Client,
        resource: &Resource<Self::Managed>,
    ) -> Result<Observation<Self::Managed>, ExternalError>;

    /// Asks the cloud to create the resource; does not wait until it is ready.
    ///
    /// # Errors
    /// Shown as `create failed: …`.
    async fn create(
        &self,
        client: &Self::Client,
        resource: &Resource<Self::Managed>,
    ) -> Result<Created, ExternalError>;

    /// Asks the cloud to make the resource as wanted.
    ///
    /// # Errors
    /// Shown as `update failed: …`.
    async fn update(
        &self,
        client: &Self::Client,
        resource: &Resource<Self::Managed>,
    ) -> Result<Connection, ExternalError>;

    /// Asks the cloud to delete the resource. Deleting what is gone is no error.
    ///
    /// # Errors
    /// Shown as `delete failed: …`.
    async fn delete(
        &self,
        client: &Self::Client,
        resource: &Resource<Self::Managed>,
    ) -> Result<(), ExternalError>;

    /// Looks for a resource that an earlier [`External::create`] may have made, by a tag that
    /// create put on it (the object's uid).
    ///
    /// `Ok(None)` must mean that the cloud surely has none: it will be created again.
    ///
    /// # Errors
    /// Shown as `cannot determine creation result: …`.
    async fn find_by_tag(
        &self,
        client: &Self::Client,
        resource: &Resource<Self::Managed>,
    ) -> Result<Option<String>, ExternalError> {
        let _ = (client, resource);
        Ok(None)
    }

    /// Resources that changed without a call of this client about them, where the cloud tells:
    /// each is observed at once instead of at its next poll. Asked for once, when the runtime
    /// starts; a stream that ends tells no more.
    fn changes(&self) -> BoxStream<'static, ExternalChange> {
        stream::pending().boxed()
    }
}

/// What [`External::changes`] tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExternalChange {
    /// The resource with this external name may have changed.
    Of(String),
    /// Some may have changed, and it is not known which: all are observed.
    Unknown,
}

/// A managed resource as the external client sees it.
#[derive(Clone, Debug)]
pub struct Resource<M: Managed> {
    /// Object name.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// Object uid: unique for ever, so a good tag.
    pub uid: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Identity in the cloud, once known (`crossplane.io/external-name`).
    pub external_name: Option<String>,
    /// Whether the object is being deleted.
    pub deleting: bool,
    /// `spec.forProvider`, with fields that only `spec.initProvider` has filled in.
    pub for_provider: M::ForProvider,
    /// Top-level fields that come from `spec.initProvider` alone: they count for create, and are
    /// no difference afterwards.
    pub init_only: BTreeSet<String>,
    /// `status.atProvider` as last written; a cache, never an identity.
    pub at_provider: Option<M::AtProvider>,
}

impl<M: Managed> Resource<M> {
    /// Whether a difference in this top-level field of `forProvider` is to be corrected.
    pub fn manages(&self, field: &str) -> bool {
        !self.init_only.contains(field)
    }
}

/// A provider configuration that a resource refers to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProviderConfig {
    /// `ProviderConfig` or `ClusterProviderConfig`.
    pub kind: String,
    /// Namespace of a `ProviderConfig`; secrets it refers to are read from there only.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// Its `spec`.
    pub spec: Value,
}

impl ProviderConfig {
    /// The spec as a type.
    ///
    /// # Errors
    /// The spec does not fit.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, ExternalError> {
        T::deserialize(&self.spec).map_err(|e| {
            ExternalError::refused(format!("{} {} is malformed: {e}", self.kind, self.name))
        })
    }

    /// A text that identifies it: kind, namespace and name.
    pub fn id(&self) -> String {
        match &self.namespace {
            Some(ns) => format!("{}/{ns}/{}", self.kind, self.name),
            None => format!("{}/{}", self.kind, self.name),
        }
    }
}

/// What [`External::observe`] saw.
#[derive(Clone, Debug)]
pub struct Observation<M: Managed> {
    /// Whether the external resource exists (also while it is being created or deleted).
    pub exists: bool,
    /// Whether nothing needs to be changed, or the cloud is already changing it as wanted.
    pub up_to_date: bool,
    /// Whether it can be used.
    pub ready: Readiness,
    /// Whether the cloud is working on it: it is observed again soon instead of at the next poll.
    pub settling: bool,
    /// Values for `forProvider` fields that the user left out, by field name.
    pub late_init: Map<String, Value>,
    /// What is.
    pub at_provider: Option<M::AtProvider>,
    /// Secrets to publish.
    pub connection: Connection,
}

impl<M: Managed> Observation<M> {
    /// There is no external resource.
    pub fn missing() -> Self {
        Self {
            exists: false,
            up_to_date: false,
            ready: Readiness::Creating(String::new()),
            settling: false,
            late_init: Map::new(),
            at_provider: None,
            connection: Connection::default(),
        }
    }

    /// There is one, up to date and available.
    pub fn available(at_provider: M::AtProvider) -> Self {
        Self {
            exists: true,
            up_to_date: true,
            ready: Readiness::Available,
            settling: false,
            late_init: Map::new(),
            at_provider: Some(at_provider),
            connection: Connection::default(),
        }
    }

    /// The same, up to date or not.
    pub fn up_to_date(mut self, up_to_date: bool) -> Self {
        self.up_to_date = up_to_date;
        self
    }

    /// The same with another readiness.
    pub fn ready(mut self, ready: Readiness) -> Self {
        self.ready = ready;
        self
    }

    /// The same, with the cloud working on it or not.
    pub fn settling(mut self, settling: bool) -> Self {
        self.settling = settling;
        self
    }
}

/// The `Ready` condition. Texts say what it waits for; they may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It can be used.
    Available,
    /// The cloud is creating it.
    Creating(String),
    /// It exists and cannot be used now.
    Unavailable(String),
    /// The cloud is deleting it.
    Deleting(String),
}

/// What [`External::create`] learned.
#[derive(Clone, Debug, Default)]
pub struct Created {
    /// Identity in the cloud; recorded before anything else is done.
    pub external_name: Option<String>,
    /// Secrets to publish.
    pub connection: Connection,
}

impl Created {
    /// A resource with this identity.
    pub fn named(external_name: impl Into<String>) -> Self {
        Self {
            external_name: Some(external_name.into()),
            connection: Connection::default(),
        }
    }
}

/// Connection details: secret bytes by key. `Debug` does not show them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Connection(pub BTreeMap<String, Vec<u8>>);

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let redacted: BTreeMap<&str, &str> =
            self.0.keys().map(|k| (k.as_str(), "redacted")).collect();
        f.debug_tuple("Connection").field(&redacted).finish()
    }
}

/// A cloud said no, or said nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExternalError {
    /// What kind of failure.
    pub class: ErrorClass,
    /// The cloud's words; they are shown to the user.
    pub message: String,
}

/// What can be done about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// It may work later: outage, throttling, time-out.
    Transient {
        /// The cloud's `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// It will not work until somebody changes something.
    Refused,
    /// The resource, or one it refers to, does not exist.
    NotFound,
    /// The cloud will be able to do it by itself: busy, or still in use by something that is on
    /// its way out. Tried again sooner than the others.
    Conflict,
}

impl ExternalError {
    /// A failure that may pass.
    pub fn transient(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Transient { retry_after: None }, message)
    }

    /// A refusal.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Refused, message)
    }

    /// Something does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::NotFound, message)
    }

    /// Busy or in use.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Conflict, message)
    }

    /// A failure of some class.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
        }
    }
}
