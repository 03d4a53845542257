//! [`External`] without its types, so that one reconciler serves all kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use kube::api::DynamicObject;
use serde::Deserialize;
use serde_json::{Map, Value};

use ecp_meta::keys;

use crate::external::{
    Connection, Created, External, ExternalChange, ExternalError, ProviderConfig, Readiness,
    Resource,
};
use crate::kind::{KindInfo, Managed};

/// A kind's external client, with JSON in place of its types.
#[async_trait]
pub(crate) trait ErasedExternal: Send + Sync {
    /// The kind.
    fn kind(&self) -> KindInfo;
    /// Whether an unrecorded creation can be found again.
    fn finds_by_tag(&self) -> bool;
    /// See [`External::changes`].
    fn changes(&self) -> BoxStream<'static, ExternalChange>;
    /// See [`External::connect`].
    async fn connect(
        &self,
        object: &DynamicObject,
        config: &ProviderConfig,
    ) -> Result<Arc<dyn Session>, ExternalError>;
}

/// A connected [`ErasedExternal`].
#[async_trait]
pub(crate) trait Session: Send + Sync {
    async fn observe(&self, object: &DynamicObject) -> Result<Observed, ExternalError>;
    async fn create(&self, object: &DynamicObject) -> Result<Created, ExternalError>;
    async fn update(&self, object: &DynamicObject) -> Result<Connection, ExternalError>;
    async fn delete(&self, object: &DynamicObject) -> Result<(), ExternalError>;
    async fn find_by_tag(&self, object: &DynamicObject) -> Result<Option<String>, ExternalError>;
}

/// [`crate::Observation`] with JSON in place of its type.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    pub(crate) exists: bool,
    pub(crate) up_to_date: bool,
    pub(crate) ready: Readiness,
    pub(crate) settling: bool,
    pub(crate) late_init: Map<String, Value>,
    pub(crate) at_provider: Option<Value>,
    pub(crate) connection: Connection,
}

pub(crate) struct Erased<E>(pub(crate) Arc<E>);

struct Connected<E: External> {
    external: Arc<E>,
    client: E::Client,
}

#[async_trait]
impl<E: External> ErasedExternal for Erased<E> {
    fn kind(&self) -> KindInfo {
        KindInfo::of::<E::Managed>()
    }

    fn finds_by_tag(&self) -> bool {
        E::FINDS_BY_TAG
    }

    fn changes(&self) -> BoxStream<'static, ExternalChange> {
        self.0.changes()
    }

    async fn connect(
        &self,
        object: &DynamicObject,
        config: &ProviderConfig,
    ) -> Result<Arc<dyn Session>, ExternalError> {
        let client = self.0.connect(&typed(object)?, config).await?;
        Ok(Arc::new(Connected {
            external: Arc::clone(&self.0),
            client,
        }))
    }
}

#[async_trait]
impl<E: External> Session for Connected<E> {
    async fn observe(&self, object: &DynamicObject) -> Result<Observed, ExternalError> {
        let seen = self.external.observe(&self.client, &typed(object)?).await?;
        let at_provider = seen
            .at_provider
            .map(serde_json::to_value)
            .transpose()
            .map_err(|e| ExternalError::refused(format!("cannot write atProvider: {e}")))?;
        Ok(Observed {
            exists: seen.exists,
            up_to_date: seen.up_to_date,
            ready: seen.ready,
            settling: seen.settling,
            late_init: seen.late_init,
            at_provider,
            connection: seen.connection,
        })
    }

    async fn create(&self, object: &DynamicObject) -> Result<Created, ExternalError> {
        self.external.create(&self.client, &typed(object)?).await
    }

    async fn update(&self, object: &DynamicObject) -> Result<Connection, ExternalError> {
        self.external.update(&self.client, &typed(object)?).await
    }

    async fn delete(&self, object: &DynamicObject) -> Result<(), ExternalError> {
        self.external.delete(&self.client, &typed(object)?).await
    }

    async fn find_by_tag(&self, object: &DynamicObject) -> Result<Option<String>, ExternalError> {
        self.external
            .find_by_tag(&self.client, &typed(object)?)
            .await
    }
}

/// The typed view of an object.
fn typed<M: Managed>(object: &DynamicObject) -> Result<Resource<M>, ExternalError> {
    let spec = object.data.get("spec");
    let (merged, init_only) = merge_init(
        spec.and_then(|s| s.get("forProvider")),
        spec.and_then(|s| s.get("initProvider")),
    );
    let for_provider = M::ForProvider::deserialize(Value::Object(merged))
        .map_err(|e| ExternalError::refused(format!("spec.forProvider is malformed: {e}")))?;
    // What an older version of the provider wrote may not fit; it is only a cache.
    let at_provider = object
        .data
        .get("status")
        .and_then(|s| s.get("atProvider"))
        .and_then(|at| M::AtProvider::deserialize(at).ok());
    let meta = &object.metadata;
    let annotations = meta.annotations.clone().unwrap_or_default();
    Ok(Resource {
        name: meta.name.clone().unwrap_or_default(),
        namespace: meta.namespace.clone().unwrap_or_default(),
        uid: meta.uid.clone().unwrap_or_default(),
        labels: meta.labels.clone().unwrap_or_default(),
        external_name: annotations
            .get(keys::EXTERNAL_NAME)
            .filter(|name| !name.is_empty())
            .cloned(),
        annotations,
        deleting: meta.deletion_timestamp.is_some(),
        for_provider,
        init_only,
        at_provider,
    })
}

/// `forProvider` over `initProvider`, and the top-level fields that come from the latter alone.
fn merge_init(
    for_provider: Option<&Value>,
    init_provider: Option<&Value>,
) -> (Map<String, Value>, BTreeSet<String>) {
    let mut merged = for_provider
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let mut init_only = BTreeSet::new();
    for (field, init) in init_provider
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        match merged.get_mut(field) {
            Some(wanted) => fill_in(wanted, init),
            None => {
                merged.insert(field.clone(), init.clone());
                init_only.insert(field.clone());
            }
        }
    }
    (merged, init_only)
}

/// Adds the fields of `init` that `wanted` lacks. Lists are not merged.
fn fill_in(wanted: &mut Value, init: &Value) {
    let (Some(wanted), Some(init)) = (wanted.as_object_mut(), init.as_object()) else {
        return;
    };
    for (field, value) in init {
        match wanted.get_mut(field) {
            Some(inner) => fill_in(inner, value),
            None => {
                wanted.insert(field.clone(), value.clone());
            }
        }
    }
}

/// The entries of `late_init` that `forProvider` lacks.
pub(crate) fn missing_fields(
    object: &DynamicObject,
    late_init: &Map<String, Value>,
) -> BTreeMap<String, Value> {
    let spec = object.data.get("spec");
    let has = |part: &str, field: &str| {
        spec.and_then(|s| s.get(part))
            .and_then(|p| p.get(field))
            .is_some_and(|v| !v.is_null())
    };
    late_init
        .iter()
        .filter(|(field, value)| {
            !value.is_null() && !has("forProvider", field) && !has("initProvider", field)
        })
        .map(|(field, value)| (field.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn init_provider_fills_in_and_is_remembered() {
        let (merged, init_only) = merge_init(
            Some(&json!({"size": 5, "net": {"a": 1}})),
            Some(&json!({"size": 9, "net": {"a": 2, "b": 3}, "zone": "z"})),
        );
        assert_eq!(
            Value::Object(merged),
            json!({"size": 5, "net": {"a": 1, "b": 3}, "zone": "z"})
        );
        assert_eq!(init_only, BTreeSet::from(["zone".to_owned()]));
    }

    #[test]
    fn only_absent_fields_are_late_initialized() {
        let object: DynamicObject = serde_json::from_value(json!({
            "metadata": {"name": "x"},
            "spec": {"forProvider": {"a": 1, "n": null}, "initProvider": {"i": 1}},
        }))
        .expect("an object");
        let late = json!({"a": 2, "b": 3, "i": 4, "n": 5, "z": null});
        let found = missing_fields(&object, late.as_object().expect("a map"));
        assert_eq!(
            found,
            BTreeMap::from([("b".into(), json!(3)), ("n".into(), json!(5))])
        );
    }
}
