//! `/clusters/*`: lists and watches across all logical clusters, for controllers that serve many.
//!
//! As kcp does: reads only, for administrators only, each object with the annotation
//! `kcp.io/cluster` that says where it is.

use std::sync::Arc;

use bytes::Bytes;
use ecp_meta::object;
use ecp_store::{Entry, Revision};
use http::request::Parts;
use http::{Response, StatusCode};

use super::{Place, Request, read, watch};
use crate::body::ApiBody;
use crate::registry::Resource;
use crate::request::{Params, Target, route};
use crate::server::{ApiServer, Identity};
use crate::status::Status;
use crate::{storage, table};

const CLUSTER_ANNOTATION: &str = "kcp.io/cluster";
const ADMINISTRATORS: &str = "system:masters";

/// Answers a request below `/clusters/*`.
pub(crate) async fn handle(
    server: &Arc<ApiServer>,
    identity: &Identity,
    parts: &Parts,
    path: &str,
) -> Response<ApiBody> {
    answer(server, identity, parts, path)
        .await
        .unwrap_or_else(Status::into_response)
}

async fn answer(
    server: &Arc<ApiServer>,
    identity: &Identity,
    parts: &Parts,
    path: &str,
) -> super::Answer {
    if !identity.groups.iter().any(|g| g == ADMINISTRATORS) {
        return Err(Status::failure(
            StatusCode::FORBIDDEN,
            "Forbidden",
            format!("{:?} may not read all logical clusters", identity.user),
        ));
    }
    let Target::Resource(path) = route(path)? else {
        return Err(Status::no_such_resource());
    };
    let is_collection = path.name.is_none() && path.namespace.is_none();
    if parts.method != http::Method::GET || !is_collection {
        return Err(Status::method_not_allowed(
            "anything but list and watch of whole resources in the `*` logical cluster",
        ));
    }
    let resource = server
        .registry
        .find_anywhere(&path.group, &path.version, &path.resource)
        .ok_or_else(Status::no_such_resource)?;
    let query = parts.uri.query().unwrap_or_default();
    let root = ecp_meta::cluster::ClusterName::root();
    let request = Request {
        place: Place {
            server,
            cluster: &root,
            resource: &resource,
            namespace: None,
            all_clusters: true,
        },
        name: None,
        subresource: None,
        params: Params::parse(query)?,
        representation: table::negotiate(&parts.headers, query)?,
        headers: &parts.headers,
        body: Bytes::new(),
    };
    let load = &server.load;
    if request.params.watch || path.watch {
        let permit = Arc::clone(&load.watches)
            .try_acquire_owned()
            .map_err(|_| Status::too_many_requests())?;
        return watch::watch(&request, permit).await;
    }
    let _permit = load
        .requests
        .try_acquire()
        .map_err(|_| Status::too_many_requests())?;
    tokio::time::timeout(server.config.request_timeout, read::list(&request))
        .await
        .unwrap_or_else(|_| Err(Status::timeout("request did not complete in time")))
}

/// An object as it is shown beside those of other clusters: by its own cluster's definition, with
/// its cluster's name.
pub(super) fn json(
    server: &ApiServer,
    resource: &Resource,
    key: &str,
    value: &[u8],
    revision: Revision,
) -> Bytes {
    let cluster = storage::parse_key(key).and_then(|k| k.cluster.parse().ok());
    let Some(cluster) = cluster else {
        return storage::json(resource, value, revision);
    };
    let resources = server.registry.resources(&cluster);
    let own = resources
        .find(&resource.gvk.group, &resource.gvk.version, &resource.plural)
        .unwrap_or(resource);
    let mut object = storage::decode_at(own, value, revision);
    object::set_annotation(&mut object, CLUSTER_ANNOTATION, cluster.as_str());
    object.to_string().into()
}

/// The encoded objects of a page.
pub(super) fn items(place: &Place<'_>, entries: &[Entry]) -> Vec<Bytes> {
    entries
        .iter()
        .map(|e| {
            if place.all_clusters {
                json(place.server, place.resource, &e.key, &e.value, e.modified)
            } else {
                storage::json(place.resource, &e.value, e.modified)
            }
        })
        .collect()
}
