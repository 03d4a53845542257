//! Connection Secrets.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::external::Connection;
use crate::owner;

/// Type of connection Secrets.
pub const SECRET_TYPE: &str = "connection.crossplane.io/v1alpha1";

/// A connection Secret could not be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PublishError {
    /// The Secret belongs to something else.
    #[error("secret {0} exists and is not controlled by this resource")]
    NotControlled(String),
    /// The API refused.
    #[error("cannot write connection secret")]
    Api(#[from] kube::Error),
}

/// Writes connection details into the Secret that the object asks for, if it asks for one and if
/// they are not there yet. Keys that are not in `connection` are kept.
///
/// # Errors
/// The Secret is not controlled by the object, or cannot be read or written.
pub(crate) async fn publish(
    client: &Client,
    object: &DynamicObject,
    connection: &Connection,
    field_manager: &str,
) -> Result<(), PublishError> {
    let name = object
        .data
        .pointer("/spec/writeConnectionSecretToRef/name")
        .and_then(|n| n.as_str())
        .filter(|n| !n.is_empty());
    let (Some(name), Some(namespace)) = (name, object.metadata.namespace.as_deref()) else {
        return Ok(());
    };
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let data: BTreeMap<String, ByteString> = connection
        .0
        .iter()
        .map(|(key, value)| (key.clone(), ByteString(value.clone())))
        .collect();
    let Some(secret) = api.get_opt(name).await? else {
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(name.into()),
                namespace: Some(namespace.into()),
                owner_references: Some(vec![owner::controller(object)]),
                ..ObjectMeta::default()
            },
            type_: Some(SECRET_TYPE.into()),
            data: Some(data),
            ..Secret::default()
        };
        let params = PostParams {
            field_manager: Some(field_manager.into()),
            ..PostParams::default()
        };
        api.create(&params, &secret).await?;
        return Ok(());
    };
    if !owner::is_controlled_by(&secret.metadata, object) {
        return Err(PublishError::NotControlled(name.into()));
    }
    let current = secret.data.unwrap_or_default();
    if data
        .iter()
        .all(|(key, value)| current.get(key) == Some(value))
    {
        return Ok(());
    }
    let params = PatchParams {
        field_manager: Some(field_manager.into()),
        ..PatchParams::default()
    };
    api.patch(name, &params, &Patch::Merge(json!({ "data": data })))
        .await?;
    Ok(())
}
