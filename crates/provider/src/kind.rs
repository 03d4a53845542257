//! What a provider author declares: the provider, and each kind of managed resource.

use std::fmt;
use std::time::Duration;

use ecp_meta::gvk::GroupVersionKind;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::limits;

/// A provider: one API group, one cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Short name, such as `dummy`: category of its kinds and part of its field manager.
    pub name: &'static str,
    /// API group of all its kinds, such as `dummy.m.secapi.cloud`.
    pub group: &'static str,
    /// Version of all its kinds.
    pub version: &'static str,
    /// Whether resources need a `ProviderConfig` or `ClusterProviderConfig` to connect.
    pub configs: Configs,
}

/// Whether a provider has configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Configs {
    /// It connects with nothing but its own process; references to configurations are ignored.
    None,
    /// It serves `ProviderConfig`, `ClusterProviderConfig` and `ProviderConfigUsage`.
    Tracked,
}

/// How the external resources of a kind get their name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// The cloud chooses an id; [`crate::External::create`] returns it. After a creation whose
    /// result is unknown nothing is created again, unless it can be found by tag.
    Assigned,
    /// Like `Assigned`, but the name follows from the resource, so creating twice is harmless.
    Deterministic,
    /// The external name is the object's name unless the user chose another.
    ObjectName,
}

impl Naming {
    /// Whether a second creation can do no harm.
    pub fn is_deterministic(self) -> bool {
        match self {
            Self::Assigned => false,
            Self::Deterministic | Self::ObjectName => true,
        }
    }
}

/// One kind of managed resource.
pub trait Managed: Clone + fmt::Debug + Send + Sync + 'static {
    /// The provider it belongs to.
    const PROVIDER: Provider;
    /// Kind, such as `Volume`.
    const KIND: &'static str;
    /// Plural, such as `volumes`.
    const PLURAL: &'static str;
    /// How its external resources are named.
    const NAMING: Naming = Naming::Assigned;
    /// How long a created resource may stay invisible to `observe`; zero for a cloud whose reads
    /// are consistent.
    const CREATION_GRACE: Duration = limits::CREATION_GRACE;
    /// What the user wants: `spec.forProvider`.
    type ForProvider: Clone
        + fmt::Debug
        + Serialize
        + DeserializeOwned
        + JsonSchema
        + Send
        + Sync
        + 'static;
    /// What is: `status.atProvider`.
    type AtProvider: Clone
        + fmt::Debug
        + Serialize
        + DeserializeOwned
        + JsonSchema
        + Send
        + Sync
        + 'static;
}

/// The constants of a [`Managed`] kind, as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindInfo {
    /// Provider.
    pub provider: Provider,
    /// Kind.
    pub kind: &'static str,
    /// Plural.
    pub plural: &'static str,
    /// Naming.
    pub naming: Naming,
    /// Creation grace.
    pub creation_grace: Duration,
}

impl KindInfo {
    /// The constants of `M`.
    pub fn of<M: Managed>() -> Self {
        Self {
            provider: M::PROVIDER,
            kind: M::KIND,
            plural: M::PLURAL,
            naming: M::NAMING,
            creation_grace: M::CREATION_GRACE,
        }
    }

    /// The kind at its version.
    pub fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::new(self.provider.group, self.provider.version, self.kind)
    }

    /// The same for kube's dynamic API.
    pub fn api_resource(&self) -> kube::api::ApiResource {
        self.provider.api_resource(self.kind, self.plural)
    }
}

impl Provider {
    /// A resource of the provider's group.
    pub fn api_resource(&self, kind: &str, plural: &str) -> kube::api::ApiResource {
        kube::api::ApiResource {
            group: self.group.into(),
            version: self.version.into(),
            api_version: format!("{}/{}", self.group, self.version),
            kind: kind.into(),
            plural: plural.into(),
        }
    }

    /// The field manager of the provider's writes.
    pub fn field_manager(&self) -> String {
        format!("provider-{}", self.name)
    }
}
