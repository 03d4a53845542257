//! Reading what an XR composed, what its functions require, and its claim.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ecp_meta::gvk::GroupVersionKind;
use ecp_meta::object;
use ecp_xr::compose::{self, Observed, Scopes};
use ecp_xr::function::{Match, Resource, ResourceSelector};
use ecp_xr::pipeline::{Fetched, Outcome, Wanted};
use serde_json::Value;

use super::deps::Dependency;
use super::reconcile::{Reconcile, Trouble};
use crate::api::Kind;
use crate::informer::{Informer, slim};
use crate::{connection, openapi};

impl Reconcile<'_> {
    /// The composed resources there are: those that the XR refers to and nobody else controls.
    pub(super) async fn observe(&self) -> Result<Observed, Trouble> {
        let error = |e: String| {
            Trouble::new(format!(
                "cannot get existing composed resources: cannot get composed resource: {e}"
            ))
        };
        let refs = self.machinery().resource_refs();
        let namespace = object::namespace(&self.xr);
        let dependencies = refs.iter().map(|r| Dependency::composed(r, namespace));
        self.controller.deps.add(self.key, dependencies);
        let mut observed = Observed::new();
        for reference in refs {
            let gvk = GroupVersionKind::from_api_version(&reference.api_version, &reference.kind);
            let namespace = namespace.or(reference.namespace.as_deref());
            let found = self
                .get(&gvk, namespace, &reference.name)
                .await
                .map_err(error)?;
            let Some(found) = found else { continue };
            let Some(name) = compose::observe(&self.xr, &found)? else {
                continue;
            };
            let connection = connection::details(&self.controller.context, &found)
                .await
                .map_err(|e| {
                    Trouble::new(format!(
                        "cannot get existing composed resources: cannot fetch connection details \
                         for composed resource {name:?} (a {} named {}): {e}",
                        gvk.kind,
                        object::name(&found)
                    ))
                })?;
            let resource = Resource {
                object: found.clone(),
                connection,
                ..Resource::default()
            };
            observed.insert(name, resource);
        }
        Ok(observed)
    }

    /// The XR's own connection details.
    pub(super) async fn own_connection(&self) -> Result<BTreeMap<String, Vec<u8>>, Trouble> {
        if !self.controller.xrd.scope.is_legacy() {
            return Ok(BTreeMap::new());
        }
        connection::details(&self.controller.context, &self.xr)
            .await
            .map_err(|e| {
                Trouble::new(format!(
                    "cannot fetch composite resource connection details: {e}"
                ))
            })
    }

    /// An object from the watch cache, and from the API itself if the cache does not have it.
    async fn get(
        &self,
        gvk: &GroupVersionKind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Arc<Value>>, String> {
        let kind = self.controller.context.mapper.kind(gvk).await?;
        if let Some(informer) = self.cache(&kind).await
            && let Some(found) = informer.get(&cache_key(&kind, namespace, name))
        {
            return Ok(Some(found));
        }
        let found = self.controller.context.api.find(&kind, namespace, name);
        let found = found.await.map_err(|e| e.to_string())?;
        Ok(found.map(|o| Arc::new(slim(o))))
    }

    /// The watch cache of a kind, unless it cannot be watched.
    async fn cache(&self, kind: &Kind) -> Option<Arc<Informer>> {
        let informer = self.controller.watch(kind);
        informer.wait_synced().await.then_some(informer)
    }

    /// What a pipeline wants to see.
    pub(super) async fn fetch(&self, wanted: &Wanted) -> Fetched {
        let context = &self.controller.context;
        let dependencies = wanted.resources.iter().map(Dependency::required);
        self.controller.deps.add(self.key, dependencies);
        let mut fetched = Fetched::default();
        for selector in &wanted.resources {
            let found = self.required(selector).await;
            fetched.resources.insert(selector.clone(), found);
        }
        for (api_version, kind) in &wanted.schemas {
            let gvk = GroupVersionKind::from_api_version(api_version, kind);
            let schema = openapi::schema(&context.api, &gvk).await;
            fetched.schemas.insert(
                (api_version.clone(), kind.clone()),
                schema.map_err(|e| e.to_string()),
            );
        }
        for secret in &wanted.secrets {
            let data = connection::secret(context, &secret.namespace, &secret.name).await;
            let data = match data {
                Ok(Some(data)) => Ok(data),
                Ok(None) => Err(format!("Secret {:?} not found", secret.name)),
                Err(error) => Err(error.to_string()),
            };
            fetched.secrets.insert(secret.clone(), data);
        }
        fetched
    }

    async fn required(&self, selector: &ResourceSelector) -> Result<Vec<Arc<Value>>, String> {
        let gvk = GroupVersionKind::from_api_version(&selector.api_version, &selector.kind);
        let doing = match &selector.matching {
            Match::Name(_) => "cannot get required resource by name",
            Match::Labels(_) => "cannot list required resources",
        };
        let error = |e: String| format!("{doing}: {e}");
        let kind = self.controller.context.mapper.kind(&gvk).await;
        let kind = kind.map_err(error)?;
        let Some(cache) = self.cache(&kind).await else {
            return Err(error(format!("{} cannot be watched", gvk.group_kind())));
        };
        let namespace = selector.namespace.as_deref();
        let found = match &selector.matching {
            Match::Name(name) => {
                let found = cache.get(&cache_key(&kind, namespace, name));
                found.into_iter().collect()
            }
            Match::Labels(labels) => {
                let namespace = namespace.filter(|_| kind.namespaced);
                cache.labelled(namespace, labels)
            }
        };
        Ok(found)
    }

    /// Whether the kinds of desired resources are namespaced, where that matters.
    pub(super) async fn scopes(&self, outcome: &Outcome, observed: &Observed) -> Scopes {
        let kinds: BTreeSet<GroupVersionKind> =
            compose::kinds_to_check(&self.xr, &outcome.desired, observed);
        let mut scopes = Scopes::new();
        for gvk in kinds {
            let kind = self.controller.context.mapper.kind(&gvk).await;
            scopes.insert(gvk, kind.map(|k| k.namespaced));
        }
        scopes
    }

    /// The claim the XR belongs to.
    pub(super) async fn claim(&self) -> Option<Arc<Value>> {
        let reference = self.xr.pointer("/spec/claimRef")?;
        let text = |field: &str| reference.get(field).and_then(Value::as_str);
        let gvk = GroupVersionKind::from_api_version(text("apiVersion")?, text("kind")?);
        let (namespace, name) = (text("namespace")?, text("name")?);
        let informer = self.controller.context.informers.synced(&gvk)?;
        informer.get(&(namespace.to_owned(), name.to_owned()))
    }
}

fn cache_key(kind: &Kind, namespace: Option<&str>, name: &str) -> (String, String) {
    let namespace = namespace.filter(|_| kind.namespaced).unwrap_or_default();
    (namespace.to_owned(), name.to_owned())
}
