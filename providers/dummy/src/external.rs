//! Managed resources in terms of the cloud's API.
//!
//! All kinds work alike; what differs is a [`Mapping`].

use std::marker::PhantomData;

use async_trait::async_trait;
use ecp_provider::{
    Connection, Created, External, ExternalError, Managed, Observation, ProviderConfig, Readiness,
    Resource,
};

use serde_json::{Map, Value};

use crate::cloud::{Cloud, CloudError, ImageSpec, Kind, Object, Spec, State, VolumeSpec};
use crate::config::ConfigSpec;
use crate::kinds::{
    CatalogueObservation, ImageObservation, Location, Project, ProjectObservation, Volume,
    VolumeImage, VolumeObservation, VolumeType,
};

/// How a managed kind corresponds to a kind of the cloud.
pub trait Mapping: Managed {
    /// The cloud's kind.
    const CLOUD_KIND: Kind;

    /// What is wanted of the cloud. Fields that nobody manages are as `current` has them.
    fn wanted(resource: &Resource<Self>, current: Option<&Spec>) -> Spec;

    /// Values for fields that the user left out.
    fn late_init(object: &Object) -> Map<String, Value> {
        let _ = object;
        Map::new()
    }

    /// What to write into `atProvider`.
    fn observed(object: &Object, offered: bool) -> Self::AtProvider;
}

/// The external client of one kind.
#[derive(Clone, Debug)]
pub struct DummyExternal<M> {
    cloud: Cloud,
    kind: PhantomData<M>,
}

impl<M: Mapping> DummyExternal<M> {
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
        if object.spec.kind() != M::CLOUD_KIND {
            let (noun, is) = (M::CLOUD_KIND.noun(), object.spec.kind().noun());
            return Err(ExternalError::refused(format!(
                "{id} is a {is}, not a {noun}"
            )));
        }
        let offered = self.cloud.offers(&client.0, object.spec.location());
        let wanted = M::wanted(resource, Some(&object.spec));
        let as_wanted = wanted == object.spec && has_its_size(&object);
        let settling = object.state != State::Active;
        let mut seen = Observation::available(M::observed(&object, offered));
        seen.late_init = M::late_init(&object);
        Ok(seen
            // What is being made can be changed only when it is there.
            .up_to_date(as_wanted || matches!(object.state, State::Creating | State::Deleting))
            .settling(settling)
            .ready(readiness::<M>(&object, offered)))
    }

    async fn create(
        &self,
        client: &Account,
        resource: &Resource<M>,
    ) -> Result<Created, ExternalError> {
        let wanted = M::wanted(resource, None);
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
        let wanted = M::wanted(resource, current.as_ref().map(|o| &o.spec));
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
        let found = self.cloud.find(&client.0, M::CLOUD_KIND, &resource.uid);
        Ok(found.map_err(refusal)?.map(|object| object.id))
    }
}

/// A volume may have been resized by somebody else.
fn has_its_size(object: &Object) -> bool {
    match (&object.spec, object.state) {
        (Spec::Volume(volume), State::Active) => object.size_gb == Some(volume.size_gb),
        _ => true,
    }
}

fn readiness<M: Mapping>(object: &Object, offered: bool) -> Readiness {
    let noun = M::CLOUD_KIND.noun();
    match object.state {
        State::Active if M::CLOUD_KIND == Kind::Location && !offered => {
            Readiness::Unavailable(format!(
                "the cloud does not offer location {}",
                object.spec.location()
            ))
        }
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

impl Mapping for Location {
    const CLOUD_KIND: Kind = Kind::Location;

    fn wanted(resource: &Resource<Self>, _current: Option<&Spec>) -> Spec {
        Spec::Location {
            location: resource.for_provider.location.clone(),
        }
    }

    fn observed(object: &Object, offered: bool) -> CatalogueObservation {
        CatalogueObservation {
            id: object.id.clone(),
            available: offered,
        }
    }
}

impl Mapping for Project {
    const CLOUD_KIND: Kind = Kind::Project;

    fn wanted(resource: &Resource<Self>, current: Option<&Spec>) -> Spec {
        let mut wanted = (
            resource.for_provider.location.clone(),
            resource.for_provider.display_name.clone(),
        );
        if let Some(Spec::Project {
            location,
            display_name,
        }) = current
        {
            keep(resource, "location", &mut wanted.0, location);
            keep(resource, "displayName", &mut wanted.1, display_name);
        }
        Spec::Project {
            location: wanted.0,
            display_name: wanted.1,
        }
    }

    fn observed(object: &Object, _offered: bool) -> ProjectObservation {
        ProjectObservation {
            id: object.id.clone(),
            state: object.state.as_str().into(),
        }
    }
}

impl Mapping for VolumeType {
    const CLOUD_KIND: Kind = Kind::VolumeType;

    fn wanted(resource: &Resource<Self>, _current: Option<&Spec>) -> Spec {
        let p = &resource.for_provider;
        Spec::VolumeType {
            location: p.location.clone(),
            name: p.kind.clone(),
            iops: p.iops,
            min_size_gb: p.min_size_gb,
        }
    }

    fn observed(object: &Object, offered: bool) -> CatalogueObservation {
        CatalogueObservation {
            id: object.id.clone(),
            available: offered,
        }
    }
}

impl Mapping for Volume {
    const CLOUD_KIND: Kind = Kind::Volume;

    fn wanted(resource: &Resource<Self>, current: Option<&Spec>) -> Spec {
        let p = &resource.for_provider;
        let mut wanted = VolumeSpec {
            location: p.location.clone(),
            project: p.project.clone(),
            display_name: p.display_name.clone(),
            size_gb: p.size_gb,
            volume_type: p.volume_type.clone(),
            iops: p.iops,
            source_image: p.source_image.clone(),
        };
        if let Some(Spec::Volume(current)) = current {
            keep(
                resource,
                "location",
                &mut wanted.location,
                &current.location,
            );
            keep_option(resource, "project", &mut wanted.project, &current.project);
            keep(
                resource,
                "displayName",
                &mut wanted.display_name,
                &current.display_name,
            );
            keep(resource, "sizeGB", &mut wanted.size_gb, &current.size_gb);
            keep(
                resource,
                "volumeType",
                &mut wanted.volume_type,
                &current.volume_type,
            );
            keep_option(resource, "iops", &mut wanted.iops, &current.iops);
            keep_option(
                resource,
                "sourceImage",
                &mut wanted.source_image,
                &current.source_image,
            );
        }
        Spec::Volume(wanted)
    }

    fn late_init(object: &Object) -> Map<String, Value> {
        match &object.spec {
            Spec::Volume(VolumeSpec {
                iops: Some(iops), ..
            }) => Map::from_iter([("iops".to_owned(), (*iops).into())]),
            _ => Map::new(),
        }
    }

    fn observed(object: &Object, _offered: bool) -> VolumeObservation {
        VolumeObservation {
            id: object.id.clone(),
            state: object.state.as_str().into(),
            size_gb: object.size_gb.unwrap_or_default(),
            attached_to: object.attached_to.clone(),
        }
    }
}

impl Mapping for VolumeImage {
    const CLOUD_KIND: Kind = Kind::Image;

    fn wanted(resource: &Resource<Self>, current: Option<&Spec>) -> Spec {
        let p = &resource.for_provider;
        let mut wanted = ImageSpec {
            location: p.location.clone(),
            display_name: p.display_name.clone(),
            source_volume: p.source_volume.clone(),
            cpu_architecture: p.cpu_architecture.clone(),
            boot: p.boot.clone(),
            initializer: p.initializer.clone(),
        };
        if let Some(Spec::Image(current)) = current {
            keep(
                resource,
                "location",
                &mut wanted.location,
                &current.location,
            );
            keep(
                resource,
                "displayName",
                &mut wanted.display_name,
                &current.display_name,
            );
            keep(
                resource,
                "sourceVolume",
                &mut wanted.source_volume,
                &current.source_volume,
            );
            keep(
                resource,
                "cpuArchitecture",
                &mut wanted.cpu_architecture,
                &current.cpu_architecture,
            );
            keep_option(resource, "boot", &mut wanted.boot, &current.boot);
            keep_option(
                resource,
                "initializer",
                &mut wanted.initializer,
                &current.initializer,
            );
        }
        Spec::Image(wanted)
    }

    fn observed(object: &Object, _offered: bool) -> ImageObservation {
        ImageObservation {
            id: object.id.clone(),
            state: object.state.as_str().into(),
            size_mb: object.size_mb,
        }
    }
}

/// Leaves a field that counts only for creation as the cloud has it.
fn keep<M: Managed, T: Clone>(resource: &Resource<M>, field: &str, wanted: &mut T, current: &T) {
    if !resource.manages(field) {
        wanted.clone_from(current);
    }
}

/// The same for a field that the user may leave out: then the cloud's value is no difference.
fn keep_option<M: Managed, T: Clone>(
    resource: &Resource<M>,
    field: &str,
    wanted: &mut Option<T>,
    current: &Option<T>,
) {
    if wanted.is_none() || !resource.manages(field) {
        wanted.clone_from(current);
    }
}
