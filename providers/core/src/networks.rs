//! Counts what is below a network, and deletes it before the network.

use async_trait::async_trait;
use ecp_provider::{
    Connection, Created, External, ExternalError, Key, Observation, ProviderConfig, Readiness,
    Resource,
};
use kube::Client;

use crate::contents::{Contents, Owner, OwnerKind, Part};
use crate::deletion::{delete_next, going_before};
use crate::kinds::{NetworkContents, NetworkContentsObservation};
use crate::teardown;

/// The external client of `NetworkContents`: the namespace that it is in.
#[derive(Clone)]
pub(crate) struct Networks {
    client: Client,
    contents: Contents,
}

impl Networks {
    pub(crate) fn new(client: Client, contents: Contents) -> Self {
        Self { client, contents }
    }
}

fn part(resource: &Resource<NetworkContents>) -> Part {
    Part::network(&resource.namespace, &resource.for_provider.network)
}

#[async_trait]
impl External for Networks {
    type Managed = NetworkContents;
    type Client = ();

    async fn connect(
        &self,
        _resource: &Resource<NetworkContents>,
        _config: &ProviderConfig,
    ) -> Result<(), ExternalError> {
        Ok(())
    }

    /// There are always contents, be it none, until the network goes.
    async fn observe(
        &self,
        _client: &(),
        resource: &Resource<NetworkContents>,
    ) -> Result<Observation<NetworkContents>, ExternalError> {
        let part = part(resource);
        let owner = Owner {
            kind: OwnerKind::Network,
            key: Key::new(&resource.namespace, &resource.name),
            deleting: resource.deleting,
        };
        // Before it looks: a change after the look wakes it.
        self.contents.own(part.clone(), owner.clone());
        let items = self.contents.of(&part);
        if resource.deleting && items.as_ref().is_some_and(Vec::is_empty) {
            self.contents.disown(&part, &owner);
            return Ok(Observation::missing());
        }
        let count = |items: &[_]| i64::try_from(items.len()).unwrap_or(i64::MAX);
        let before = || resource.at_provider.as_ref()?.remaining;
        let seen = Observation::available(NetworkContentsObservation {
            remaining: items.as_deref().map(count).or_else(before),
        });
        if !resource.deleting {
            let going =
                going_before::<NetworkContents>(&self.client, &self.contents, &part, &owner);
            return Ok(match going.await? {
                true => seen.settling(true).ready(Readiness::Unavailable(
                    "waiting for the contents of an earlier network of this name to be deleted"
                        .into(),
                )),
                false => seen,
            });
        }
        let message = match &items {
            None => "waiting for the kinds of resources to be known".into(),
            Some(items) => teardown::message(items),
        };
        Ok(seen.settling(true).ready(Readiness::Deleting(message)))
    }

    async fn create(
        &self,
        _client: &(),
        _resource: &Resource<NetworkContents>,
    ) -> Result<Created, ExternalError> {
        Ok(Created::default())
    }

    async fn update(
        &self,
        _client: &(),
        _resource: &Resource<NetworkContents>,
    ) -> Result<Connection, ExternalError> {
        Ok(Connection::default())
    }

    /// One step: the subnets, then the route tables. The runtime calls it again until none are
    /// left.
    async fn delete(
        &self,
        _client: &(),
        resource: &Resource<NetworkContents>,
    ) -> Result<(), ExternalError> {
        match self.contents.of(&part(resource)) {
            None => Ok(()),
            Some(items) => delete_next(&self.client, &resource.namespace, &items).await,
        }
    }
}
