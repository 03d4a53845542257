//! Deletes resources of the cluster, one rank after another.

use ecp_provider::{ExternalError, Managed};
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject};

use crate::contents::{Contents, Item, Owner, Part};
use crate::teardown;

/// Asks for the deletion of what is next among these items of a namespace.
///
/// # Errors
/// The API refuses one.
pub(crate) async fn delete_next(
    client: &Client,
    namespace: &str,
    items: &[Item],
) -> Result<(), ExternalError> {
    // It is there until what was made for it in the cloud is gone: only then is it the turn of the
    // next rank.
    let foreground = DeleteParams::foreground();
    for item in teardown::next(items) {
        if item.deleting {
            continue;
        }
        let api: Api<DynamicObject> =
            Api::namespaced_with(client.clone(), namespace, item.kind.as_ref());
        match api.delete(&item.name, &foreground).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(refusal(&error)),
        }
    }
    Ok(())
}

/// Whether another managed resource of the same kind, which the same part belongs to, is still being
/// deleted: what is in the part now goes with it.
///
/// # Errors
/// The API does not say.
pub(crate) async fn going_before<M: Managed>(
    client: &Client,
    contents: &Contents,
    part: &Part,
    owner: &Owner,
) -> Result<bool, ExternalError> {
    let resource = M::PROVIDER.api_resource(M::KIND, M::PLURAL);
    for other in contents.others_going(part, owner) {
        let namespace = &other.key.namespace;
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
        let found = api.get_metadata_opt(&other.key.name).await;
        let found = found.map_err(|e| refusal(&e))?;
        if found.is_some_and(|o| o.metadata.deletion_timestamp.is_some()) {
            return Ok(true);
        }
        // Somebody took its finalizer away.
        contents.disown(part, &other);
    }
    Ok(false)
}

/// What an answer of the Kubernetes API means for a managed resource.
pub(crate) fn refusal(error: &kube::Error) -> ExternalError {
    match error {
        kube::Error::Api(status) => {
            let message = status.message.clone();
            match status.code {
                404 => ExternalError::not_found(message),
                409 => ExternalError::conflict(message),
                400 | 403 | 422 => ExternalError::refused(message),
                _ => ExternalError::transient(message),
            }
        }
        other => ExternalError::transient(other.to_string()),
    }
}
