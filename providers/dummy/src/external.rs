//! Managed resources in terms of the cloud's API.
//!
//! All kinds work alike: what a resource should be is what the cloud is asked for. What differs is
//! a [`Mapping`].

use std::marker::PhantomData;

use async_trait::async_trait;
use ecp_provider::{
    Connection, Created, External, ExternalChange, ExternalError, Managed, Observation,
    ProviderConfig, Readiness, Resource,
};
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::broadcast::error::RecvError;

use crate::cloud::{Cloud, CloudError, Kind, Object, Spec, SpecOf, State};
use crate::config::ConfigSpec;

/// How a managed kind corresponds to a kind of the cloud.
pub trait Mapping: Managed<ForProvider: SpecOf + Into<Spec>> {
    /// Fields that are as the cloud has them where the user left them out.
    const LEFT: &'static [&'static str] = &[];

    /// Fields of [`Mapping::LEFT`] that are filled in for the user to see.
    const FILLED_IN: &'static [&'static str] = &[];

    /// What to write into `atProvider`.
    fn observed(object: &Object, spec: &Self::ForProvider, offered: bool) -> Self::AtProvider;
}

/// The external client of one kind.
#[derive(Clone, Debug)]
pub struct DummyExternal<M> {
    cloud: Cloud,
    kind: PhantomData<M>,
}

impl<M: Mapping> DummyExternal<M> {
    const KIND: Kind = M::ForProvider::KIND;

    /// A client of this cloud.
    pub fn new(cloud: Cloud) -> Self {
        Self {
            cloud,
            kind: PhantomData,
        }
    }
}

/// A connection: the account whose behaviour applies.
#[derive(Clone, Debug)]
pub struct Account(String);

#[async_trait]
impl<M: Mapping> External for DummyExternal<M> {
    type Managed = M;
    type Client = Account;

    const FINDS_BY_TAG: bool = true;

    async fn connect(
        &self,
        _resource: &Resource<M>,
        config: &ProviderConfig,
    ) -> Result<Account, ExternalError> {
        let settings = config.parse::<ConfigSpec>()?.settings()?;
        let account = config.id();
        self.cloud.configure(&account, &settings);
        Ok(Account(account))
    }

    async fn observe(
        &self,
        client: &Account,
        resource: &Resource<M>,
    ) -> Result<Observation<M>, ExternalError> {
        let Some(id) = &resource.external_name else {
            return Ok(Observation::missing());
        };
        let Some(object) = self.cloud.get(&client.0, id).map_err(refusal)? else {
            return Ok(Observation::missing());
        };
        let Some(spec) = M::ForProvider::of(&object.spec) else {
            let (noun, is) = (Self::KIND.noun(), object.spec.kind().noun());
            return Err(ExternalError::refused(format!(
                "{id} is a {is}, not a {noun}"
            )));
        };
        let offered = self.cloud.offers(&client.0, object.spec.location());
        let as_wanted = wanted::<M>(resource, Some(spec))? == object.spec && is_as_asked(&object);
        let mut seen = Observation::available(M::observed(&object, spec, offered));
        seen.late_init = fields(spec)?;
        seen.late_init
            .retain(|field, _| M::FILLED_IN.contains(&field.as_str()));
        Ok(seen
            // What is being made can be changed only when it is there.
            .up_to_date(as_wanted || matches!(object.state, State::Creating | State::Deleting))
            .settling(object.state != State::Active)
            .ready(readiness(&object, offered)))
    }

    async fn create(
        &self,
        client: &Account,
        resource: &Resource<M>,
    ) -> Result<Created, ExternalError> {
        let wanted = wanted::<M>(resource, None)?;
        let object = self
            .cloud
            .create(&client.0, &resource.uid, wanted)
            .map_err(refusal)?;
        Ok(Created::named(object.id))
    }

    async fn update(
        &self,
        client: &Account,
        resource: &Resource<M>,
    ) -> Result<Connection, ExternalError> {
        let id = resource.external_name.as_deref().unwrap_or_default();
        let current = self.cloud.get(&client.0, id).map_err(refusal)?;
        let current = current.as_ref().and_then(|o| M::ForProvider::of(&o.spec));
        let wanted = wanted::<M>(resource, current)?;
        self.cloud.update(&client.0, id, wanted).map_err(refusal)?;
        Ok(Connection::default())
    }

    async fn delete(&self, client: &Account, resource: &Resource<M>) -> Result<(), ExternalError> {
        match &resource.external_name {
            Some(id) => self.cloud.delete(&client.0, id).map_err(refusal),
            None => Ok(()),
        }
    }

    async fn find_by_tag(
        &self,
        client: &Account,
        resource: &Resource<M>,
    ) -> Result<Option<String>, ExternalError> {
        let found = self.cloud.find(&client.0, Self::KIND, &resource.uid);
        Ok(found.map_err(refusal)?.map(|object| object.id))
    }

    fn changes(&self) -> BoxStream<'static, ExternalChange> {
        stream::unfold(self.cloud.changes(), async |mut changes| {
            loop {
                let change = match changes.recv().await {
                    Ok(id) if id.starts_with(Self::KIND.prefix()) => ExternalChange::Of(id),
                    Ok(_) => continue,
                    Err(RecvError::Lagged(_)) => ExternalChange::Unknown,
                    Err(RecvError::Closed) => return None,
                };
                return Some((change, changes));
            }
        })
        .boxed()
    }
}

/// What to ask the cloud for: what the user wants, with fields that nobody manages as the cloud
/// has them.
fn wanted<M: Mapping>(
    resource: &Resource<M>,
    current: Option<&M::ForProvider>,
) -> Result<Spec, ExternalError> {
    let Some(current) = current else {
        return Ok(resource.for_provider.clone().into());
    };
    let mut wanted = fields(&resource.for_provider)?;
    for (field, value) in fields(current)? {
        let left_out = !wanted.contains_key(&field) && M::LEFT.contains(&field.as_str());
        if left_out || !resource.manages(&field) {
            wanted.insert(field, value);
        }
    }
    read::<M::ForProvider>(wanted).map(Into::into)
}

fn fields<T: Serialize>(spec: &T) -> Result<Map<String, Value>, ExternalError> {
    match serde_json::to_value(spec) {
        Ok(Value::Object(fields)) => Ok(fields),
        other => Err(ExternalError::refused(format!("no object: {other:?}"))),
    }
}

fn read<T: DeserializeOwned>(fields: Map<String, Value>) -> Result<T, ExternalError> {
    serde_json::from_value(Value::Object(fields))
        .map_err(|e| ExternalError::refused(format!("spec.forProvider is malformed: {e}")))
}

/// Somebody else may have resized a volume, or switched a machine.
fn is_as_asked(object: &Object) -> bool {
    match &object.spec {
        _ if object.state != State::Active => true,
        Spec::Volume(volume) => object.size_gb == Some(volume.size_gb),
        Spec::Machine(machine) => machine.power.is_none() || machine.power == object.choices.power,
        _ => true,
    }
}

fn readiness(object: &Object, offered: bool) -> Readiness {
    let kind = object.spec.kind();
    let noun = kind.noun();
    match object.state {
        State::Active if kind == Kind::Location && !offered => Readiness::Unavailable(format!(
            "the cloud does not offer location {}",
            object.spec.location()
        )),
        State::Active => Readiness::Available,
        State::Creating => Readiness::Creating(format!("the cloud is creating the {noun}")),
        State::Updating => Readiness::Unavailable(format!("the cloud is updating the {noun}")),
        State::Deleting => Readiness::Deleting(format!("the cloud is deleting the {noun}")),
    }
}

fn refusal(error: CloudError) -> ExternalError {
    match error {
        CloudError::NotFound(m) => ExternalError::not_found(m),
        CloudError::Refused(m) => ExternalError::refused(m),
        CloudError::Busy(m) => ExternalError::conflict(m),
        CloudError::Unavailable(m) => ExternalError::transient(m),
    }
}
