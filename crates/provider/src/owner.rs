//! Owner references to managed resources.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::DynamicObject;

/// A controller reference to `object`, as crossplane-runtime's `meta.AsController`.
pub(crate) fn controller(object: &DynamicObject) -> OwnerReference {
    let types = object.types.clone().unwrap_or_default();
    OwnerReference {
        api_version: types.api_version,
        kind: types.kind,
        name: object.metadata.name.clone().unwrap_or_default(),
        uid: object.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Whether `object` is the controller of something with this metadata.
pub(crate) fn is_controlled_by(metadata: &ObjectMeta, object: &DynamicObject) -> bool {
    metadata
        .owner_references
        .iter()
        .flatten()
        .any(|r| r.controller == Some(true) && Some(&r.uid) == object.metadata.uid.as_ref())
}
