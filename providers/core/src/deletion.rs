//! Deletes resources of the cluster, one rank after another.

use ecp_provider::ExternalError;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject};

use crate::contents::Item;
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
