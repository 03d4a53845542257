//! Typed access without HTTP, for controllers that run inside the server.

use std::sync::Arc;

use ecp_meta::cluster::ClusterName;
use ecp_meta::object;
use ecp_store::{ListRequest, Revision};
use serde_json::Value;

use crate::handlers::{self, DeleteOptions, Deleted, Place};
use crate::registry::Resource;
use crate::server::ApiServer;
use crate::status::Status;
use crate::storage;

/// Access to the objects of every logical cluster, as the server itself.
#[derive(Clone, Debug)]
pub struct Internal {
    server: Arc<ApiServer>,
}

/// An object and where it is.
#[derive(Clone, Debug)]
pub struct Object {
    /// Logical cluster.
    pub cluster: ClusterName,
    /// Resource.
    pub resource: Resource,
    /// The object, with its `resourceVersion`.
    pub value: Value,
    /// Its revision.
    pub revision: Revision,
    /// Revision at which it was created.
    pub created: Revision,
}

impl Object {
    /// Namespace.
    pub fn namespace(&self) -> Option<&str> {
        object::namespace(&self.value)
    }

    /// Name.
    pub fn name(&self) -> &str {
        object::name(&self.value)
    }

    /// Uid.
    pub fn uid(&self) -> &str {
        object::uid(&self.value)
    }

    fn place<'a>(&'a self, server: &'a Arc<ApiServer>) -> Place<'a> {
        Place {
            server,
            cluster: &self.cluster,
            resource: &self.resource,
            namespace: self.namespace(),
            all_clusters: false,
        }
    }
}

impl ApiServer {
    /// Typed access without HTTP.
    pub fn internal(self: &Arc<Self>) -> Internal {
        Internal {
            server: Arc::clone(self),
        }
    }
}

impl Internal {
    /// One object.
    ///
    /// # Errors
    /// The store failed.
    pub async fn get(
        &self,
        cluster: &ClusterName,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Object>, Status> {
        let key = storage::key(resource, cluster, namespace, name);
        let entry = self
            .server
            .store
            .get(&key)
            .await
            .map_err(handlers::store_error)?;
        Ok(entry.map(|entry| Object {
            cluster: cluster.clone(),
            resource: resource.clone(),
            value: storage::decode(resource, &entry),
            revision: entry.modified,
            created: entry.created,
        }))
    }

    /// All objects of a resource in a cluster, or in one of its namespaces, at one revision.
    ///
    /// # Errors
    /// The store failed.
    pub async fn list(
        &self,
        cluster: &ClusterName,
        resource: &Resource,
        namespace: Option<&str>,
    ) -> Result<(Vec<Object>, Revision), Status> {
        let request = ListRequest {
            prefix: storage::prefix(resource, Some(cluster), namespace),
            ..ListRequest::default()
        };
        let found = self
            .server
            .store
            .list(request)
            .await
            .map_err(handlers::store_error)?;
        let objects = found
            .entries
            .iter()
            .map(|entry| Object {
                cluster: cluster.clone(),
                resource: resource.clone(),
                value: storage::decode(resource, entry),
                revision: entry.modified,
                created: entry.created,
            })
            .collect();
        Ok((objects, found.revision))
    }

    /// Writes an object as it is given, if it is still at its revision. One that is being deleted
    /// and has no finalizers left is removed. An unchanged object is not written.
    ///
    /// # Errors
    /// 409: it has changed meanwhile; 404: it is gone; the store failed.
    pub async fn update(&self, object: &Object) -> Result<Object, Status> {
        let place = object.place(&self.server);
        let revision = handlers::write_raw(&place, &object.value, object.revision).await?;
        let mut written = object.clone();
        written.revision = revision;
        object::metadata_mut(&mut written.value)
            .insert("resourceVersion".into(), revision.to_string().into());
        Ok(written)
    }

    /// Deletes an object as a client would: finalizers hold it.
    ///
    /// # Errors
    /// 404: it is gone; 409: a precondition failed; the store failed.
    pub async fn delete(
        &self,
        cluster: &ClusterName,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        let place = Place {
            server: &self.server,
            cluster,
            resource,
            namespace,
            all_clusters: false,
        };
        handlers::delete_object(&place, name, options).await
    }
}
