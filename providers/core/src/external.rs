//! Makes, counts and tears down the namespaces of workspaces.

use std::collections::BTreeMap;

use async_trait::async_trait;
use ecp_meta::{keys, names};
use ecp_provider::{
    Connection, Created, External, ExternalError, Key, Observation, ProviderConfig, Readiness,
    Resource,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use serde_json::json;

use crate::contents::{Contents, Item, Owner, OwnerKind, Part};
use crate::deletion::{delete_next, going_before, refusal};
use crate::kinds::{PROVIDER, WorkspaceNamespace, WorkspaceNamespaceObservation};
use crate::teardown;

/// The external client of `WorkspaceNamespace`: the cluster that it runs in.
#[derive(Clone)]
pub(crate) struct Namespaces {
    client: Client,
    contents: Contents,
}

/// The namespace of one workspace.
struct Wanted {
    name: String,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

impl Wanted {
    fn of(resource: &Resource<WorkspaceNamespace>) -> Self {
        let (tenant, workspace) = (
            &resource.for_provider.tenant,
            &resource.for_provider.workspace,
        );
        Self {
            name: names::workspace_namespace(tenant, workspace),
            labels: BTreeMap::from([
                (keys::TENANT.to_owned(), names::label_value(tenant)),
                (keys::WORKSPACE.to_owned(), names::label_value(workspace)),
            ]),
            annotations: BTreeMap::from([
                (keys::TENANT_NAME.to_owned(), tenant.clone()),
                (keys::WORKSPACE_NAME.to_owned(), workspace.clone()),
            ]),
        }
    }

    fn part(&self) -> Part {
        Part::namespace(&self.name)
    }

    /// Whether a namespace is that of the workspace, whatever else is on it.
    fn owns(&self, meta: &ObjectMeta) -> bool {
        contains(meta.annotations.as_ref(), &self.annotations)
    }
}

fn contains(have: Option<&BTreeMap<String, String>>, wanted: &BTreeMap<String, String>) -> bool {
    wanted
        .iter()
        .all(|(k, v)| have.and_then(|have| have.get(k)) == Some(v))
}

impl Namespaces {
    pub(crate) fn new(client: Client, contents: Contents) -> Self {
        Self { client, contents }
    }

    fn api(&self) -> Api<Namespace> {
        Api::all(self.client.clone())
    }

    /// The namespace, if there is one and it is the workspace's.
    async fn find(&self, wanted: &Wanted) -> Result<Found, ExternalError> {
        let found = self.api().get_opt(&wanted.name).await;
        match found.map_err(|e| refusal(&e))? {
            None => Ok(Found::Missing),
            Some(namespace) if wanted.owns(&namespace.metadata) => {
                Ok(Found::Ours(Box::new(namespace)))
            }
            Some(_) => Ok(Found::Foreign),
        }
    }

    fn observation(
        &self,
        resource: &Resource<WorkspaceNamespace>,
        wanted: &Wanted,
        namespace: &Namespace,
    ) -> Observation<WorkspaceNamespace> {
        let items = self.contents.of(&wanted.part());
        let before = resource.at_provider.as_ref();
        let count = |items: &Vec<Item>| i64::try_from(items.len()).unwrap_or(i64::MAX);
        let resource_count = items
            .as_ref()
            .map(count)
            .or_else(|| before.and_then(|b| b.resource_count));
        let terminating = namespace.metadata.deletion_timestamp.is_some();
        let teardown = resource.deleting || terminating;
        let at_provider = WorkspaceNamespaceObservation {
            namespace: wanted.name.clone(),
            resource_count,
            remaining: items
                .as_ref()
                .filter(|_| teardown)
                .map(|items| teardown::remaining(items)),
        };
        let as_wanted = contains(namespace.metadata.labels.as_ref(), &wanted.labels);
        let observation = Observation::available(at_provider).up_to_date(as_wanted || teardown);
        if !teardown {
            return observation;
        }
        let message = match &items {
            None => "waiting for the kinds of resources to be known".into(),
            Some(items) if !items.is_empty() => teardown::message(items),
            Some(_) => content_remaining(namespace)
                .unwrap_or_else(|| "waiting for the namespace to be deleted".into()),
        };
        let ready = if resource.deleting {
            Readiness::Deleting(message)
        } else {
            Readiness::Unavailable(format!("the namespace is being deleted: {message}"))
        };
        observation.settling(true).ready(ready)
    }
}

enum Found {
    Missing,
    Ours(Box<Namespace>),
    Foreign,
}

#[async_trait]
impl External for Namespaces {
    type Managed = WorkspaceNamespace;
    type Client = ();

    async fn connect(
        &self,
        _resource: &Resource<WorkspaceNamespace>,
        _config: &ProviderConfig,
    ) -> Result<(), ExternalError> {
        Ok(())
    }

    async fn observe(
        &self,
        _client: &(),
        resource: &Resource<WorkspaceNamespace>,
    ) -> Result<Observation<WorkspaceNamespace>, ExternalError> {
        let wanted = Wanted::of(resource);
        let named = resource.external_name.as_ref();
        if let Some(other) = named.filter(|name| **name != wanted.name && !resource.deleting) {
            return Err(ExternalError::refused(format!(
                "tenant and workspace cannot be changed: the namespace is {other}"
            )));
        }
        let owner = Owner {
            kind: OwnerKind::Workspace,
            key: Key::new(&resource.namespace, &resource.name),
            deleting: resource.deleting,
        };
        let namespace = match self.find(&wanted).await? {
            Found::Ours(namespace) => namespace,
            Found::Missing => {
                self.contents.disown(&wanted.part(), &owner);
                return Ok(Observation::missing());
            }
            // What is not ours is none of our business when we go.
            Found::Foreign if resource.deleting => {
                self.contents.disown(&wanted.part(), &owner);
                return Ok(Observation::missing());
            }
            Found::Foreign => return Err(foreign(&wanted)),
        };
        self.contents.own(wanted.part(), owner.clone());
        let seen = self.observation(resource, &wanted, &namespace);
        if resource.deleting || namespace.metadata.deletion_timestamp.is_some() {
            return Ok(seen);
        }
        let (contents, part) = (&self.contents, wanted.part());
        let going = going_before::<WorkspaceNamespace>(&self.client, contents, &part, &owner);
        Ok(match going.await? {
            true => seen.settling(true).ready(Readiness::Unavailable(
                "waiting for an earlier workspace of this name to be deleted".into(),
            )),
            false => seen,
        })
    }

    async fn create(
        &self,
        _client: &(),
        resource: &Resource<WorkspaceNamespace>,
    ) -> Result<Created, ExternalError> {
        let wanted = Wanted::of(resource);
        let namespace = Namespace {
            metadata: ObjectMeta {
                name: Some(wanted.name.clone()),
                labels: Some(wanted.labels.clone()),
                annotations: Some(wanted.annotations.clone()),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        let params = PostParams {
            field_manager: Some(PROVIDER.field_manager()),
            ..PostParams::default()
        };
        match self.api().create(&params, &namespace).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 409 => {
                match self.find(&wanted).await? {
                    Found::Ours(_) => {}
                    Found::Foreign => return Err(foreign(&wanted)),
                    Found::Missing => return Err(ExternalError::conflict(status.message)),
                }
            }
            Err(error) => return Err(refusal(&error)),
        }
        Ok(Created::named(wanted.name))
    }

    async fn update(
        &self,
        _client: &(),
        resource: &Resource<WorkspaceNamespace>,
    ) -> Result<Connection, ExternalError> {
        let wanted = Wanted::of(resource);
        let params = PatchParams {
            field_manager: Some(PROVIDER.field_manager()),
            ..PatchParams::default()
        };
        let patch = json!({"metadata": {"labels": wanted.labels}});
        self.api()
            .patch(&wanted.name, &params, &Patch::Merge(patch))
            .await
            .map_err(|e| refusal(&e))?;
        Ok(Connection::default())
    }

    /// One step of an ordered teardown: the resources of the next rank, and the namespace when
    /// none are left. The runtime calls it again until the namespace is gone.
    async fn delete(
        &self,
        _client: &(),
        resource: &Resource<WorkspaceNamespace>,
    ) -> Result<(), ExternalError> {
        let wanted = Wanted::of(resource);
        let Found::Ours(namespace) = self.find(&wanted).await? else {
            return Ok(());
        };
        match self.contents.of(&wanted.part()) {
            None => return Ok(()),
            Some(items) if !items.is_empty() => {
                return delete_next(&self.client, &wanted.name, &items).await;
            }
            Some(_) => {}
        }
        if namespace.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: namespace.metadata.uid.clone(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match self.api().delete(&wanted.name, &params).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(refusal(&error)),
        }
    }
}

fn foreign(wanted: &Wanted) -> ExternalError {
    ExternalError::refused(format!(
        "namespace {} exists and does not belong to this workspace",
        wanted.name
    ))
}

/// What the namespace controller says is left in a namespace that is being deleted.
fn content_remaining(namespace: &Namespace) -> Option<String> {
    let conditions = namespace.status.as_ref()?.conditions.as_ref()?;
    let says = |kind: &str| {
        conditions
            .iter()
            .find(|c| c.type_ == kind && c.status == "True")
            .and_then(|c| c.message.clone())
    };
    says("NamespaceContentRemaining").or_else(|| says("NamespaceFinalizersRemaining"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_recognised_by_the_whole_names() {
        let wanted = Wanted {
            name: "a-b-12345678".into(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::from([
                (keys::TENANT_NAME.to_owned(), "a".to_owned()),
                (keys::WORKSPACE_NAME.to_owned(), "b".to_owned()),
            ]),
        };
        let mut meta = ObjectMeta::default();
        assert!(!wanted.owns(&meta));
        let mut annotations = wanted.annotations.clone();
        annotations.insert("more".into(), "x".into());
        meta.annotations = Some(annotations.clone());
        assert!(wanted.owns(&meta));
        annotations.insert(keys::WORKSPACE_NAME.into(), "c".into());
        meta.annotations = Some(annotations);
        assert!(!wanted.owns(&meta));
    }
}
