//! Connection secrets: what resources publish, what legacy XRs publish, what claims get.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ecp_meta::object;
use serde_json::{Map, Value, json};

use crate::api::ApiError;
use crate::context::{Context, secret_kind};

/// Type of connection secrets.
const SECRET_TYPE: &str = "connection.crossplane.io/v1alpha1";

/// Secret data.
pub(crate) type Data = BTreeMap<String, Vec<u8>>;

/// Why a connection secret was not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    /// A lost race.
    #[error("conflict")]
    Conflict,
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl ConnectionError {
    fn from_api(doing: &str, error: &ApiError) -> Self {
        if error.is_conflict() || error.already_exists() {
            Self::Conflict
        } else {
            Self::Other(format!("{doing}: {error}"))
        }
    }
}

/// Data of a Secret, `None` if it is not there.
pub(crate) async fn secret(
    context: &Context,
    namespace: &str,
    name: &str,
) -> Result<Option<Data>, ApiError> {
    let kind = secret_kind();
    let found = context.api.find(&kind, Some(namespace), name).await?;
    Ok(found.as_ref().map(data_of))
}

/// What a resource published, by its `spec.writeConnectionSecretToRef`.
pub(crate) async fn details(context: &Context, of: &Value) -> Result<Data, String> {
    let Some((namespace, name)) = secret_ref(of) else {
        return Ok(Data::new());
    };
    let found = secret(context, namespace, name).await;
    let found =
        found.map_err(|e| format!("cannot get connection secret of composed resource: {e}"))?;
    Ok(found.unwrap_or_default())
}

/// Writes an XR's connection secret. Returns whether it changed.
pub(crate) async fn publish(
    context: &Context,
    xr: &Value,
    details: Data,
) -> Result<bool, ConnectionError> {
    match secret_ref(xr) {
        Some((namespace, name)) => write(context, xr, (namespace, name), &details).await,
        None => Ok(false),
    }
}

/// Copies an XR's connection secret to its claim's. Returns whether it changed.
pub(crate) async fn propagate(
    context: &Context,
    claim: &Value,
    xr: &Value,
) -> Result<bool, ConnectionError> {
    let (Some(from), Some(to)) = (secret_ref(xr), secret_ref(claim)) else {
        return Ok(false);
    };
    let doing = "cannot get composite resource's connection secret";
    let source = context.api.get(&secret_kind(), Some(from.0), from.1).await;
    let source = source.map_err(|e| ConnectionError::from_api(doing, &e))?;
    if controller_uid(&source) != Some(object::uid(xr)) {
        return Err(ConnectionError::Other(
            "cannot establish control of existing connection secret".into(),
        ));
    }
    write(context, claim, to, &data_of(&source)).await
}

async fn write(
    context: &Context,
    owner: &Value,
    (namespace, name): (&str, &str),
    details: &Data,
) -> Result<bool, ConnectionError> {
    let doing = "cannot apply connection secret";
    let failed = |e: ApiError| ConnectionError::from_api(doing, &e);
    let kind = secret_kind();
    let encoded: Map<String, Value> = details
        .iter()
        .map(|(key, value)| (key.clone(), STANDARD.encode(value).into()))
        .collect();
    let existing = context.api.find(&kind, Some(namespace), name).await;
    let Some(existing) = existing.map_err(failed)? else {
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "ownerReferences": [object::controller_ref_to(owner)],
            },
            "type": SECRET_TYPE,
            "data": encoded,
        });
        context.metrics.wrote("secret");
        context.api.create(&kind, &secret).await.map_err(failed)?;
        return Ok(true);
    };
    check_control(&existing, owner).map_err(|e| ConnectionError::Other(format!("{doing}: {e}")))?;
    if data_of(&existing) == *details {
        return Ok(false);
    }
    context.metrics.wrote("secret");
    let mut changed = existing;
    changed["data"] = encoded.into();
    context.api.replace(&kind, &changed).await.map_err(failed)?;
    Ok(true)
}

/// A secret of somebody else is never touched.
fn check_control(secret: &Value, owner: &Value) -> Result<(), String> {
    match controller_uid(secret) {
        Some(uid) if uid == object::uid(owner) => Ok(()),
        Some(_) => Err(format!(
            "existing secret is not controlled by UID {:?}",
            object::uid(owner)
        )),
        None => {
            let kind = secret.get("type").and_then(Value::as_str);
            if kind == Some(SECRET_TYPE) {
                return Ok(());
            }
            let kind = kind.unwrap_or_default();
            Err(format!(
                "refusing to modify uncontrolled secret of type {kind:?}"
            ))
        }
    }
}

fn controller_uid(object: &Value) -> Option<&str> {
    object::controller_ref(object)?.get("uid")?.as_str()
}

/// Namespace and name of an object's connection secret: its own namespace if it has one.
fn secret_ref(of: &Value) -> Option<(&str, &str)> {
    let reference = of.pointer("/spec/writeConnectionSecretToRef")?;
    let text = |field: &str| {
        let text = reference.get(field)?.as_str()?;
        (!text.is_empty()).then_some(text)
    };
    let namespace = object::namespace(of).or_else(|| text("namespace"))?;
    Some((namespace, text("name")?))
}

fn data_of(secret: &Value) -> Data {
    object::string_map(secret.get("data"))
        .filter_map(|(key, value)| Some((key.to_owned(), STANDARD.decode(value).ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespaced_resource_publishes_into_its_own_namespace() {
        let of = |namespace: &str| {
            json!({"metadata": {"namespace": namespace},
                "spec": {"writeConnectionSecretToRef": {"name": "s", "namespace": "other"}}})
        };
        assert_eq!(secret_ref(&of("ns")), Some(("ns", "s")));
        assert_eq!(secret_ref(&of("")), Some(("other", "s")));
        assert_eq!(secret_ref(&json!({"spec": {}})), None);
    }

    /// crossplane#450: what belongs to another owner is not overwritten.
    #[test]
    fn secrets_of_others_are_left_alone() {
        let owner = json!({"metadata": {"uid": "a"}});
        let secret = |uid: Option<&str>, kind: &str| {
            let owners: Vec<Value> = uid
                .map(|uid| json!({"uid": uid, "controller": true}))
                .into_iter()
                .collect();
            json!({"metadata": {"ownerReferences": owners}, "type": kind})
        };
        assert!(check_control(&secret(Some("a"), "Opaque"), &owner).is_ok());
        assert!(check_control(&secret(Some("b"), SECRET_TYPE), &owner).is_err());
        assert!(check_control(&secret(None, SECRET_TYPE), &owner).is_ok());
        assert!(check_control(&secret(None, "Opaque"), &owner).is_err());
    }

    #[test]
    fn data_is_base64_and_odd_values_are_left_out() {
        let secret = json!({"data": {"a": "AP8=", "b": "not base64!", "c": 1}});
        assert_eq!(
            data_of(&secret),
            Data::from([("a".to_owned(), vec![0, 255])])
        );
    }
}
