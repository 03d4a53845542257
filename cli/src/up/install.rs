//! Installing packages: server-side apply of their objects, and waiting until they serve.

use std::time::Duration;

use anyhow::{Context as _, bail};
use ecp_meta::{condition, object};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Client, ResourceExt as _};
use serde_json::Value;

const FIELD_MANAGER: &str = "ecp-install";
const CONCURRENCY: usize = 16;
/// How often a change may lose against another one.
const CONFLICTS_MAX: usize = 5;
const WAIT: Duration = Duration::from_secs(30);

/// A kind that is installed: what `kube` needs to address it.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    resource: ApiResource,
    namespaced: bool,
}

impl Kind {
    /// A kind from its parts.
    pub(crate) fn new(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        let gvk = GroupVersionKind::gvk(group, version, kind);
        Self {
            resource: ApiResource::from_gvk_with_plural(&gvk, plural),
            namespaced: false,
        }
    }

    /// The same kind, namespaced.
    pub(crate) fn namespaced(self) -> Self {
        Self {
            namespaced: true,
            ..self
        }
    }

    fn api(&self, client: &Client, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace {
            Some(ns) if self.namespaced => Api::namespaced_with(client.clone(), ns, &self.resource),
            _ => Api::all_with(client.clone(), &self.resource),
        }
    }
}

/// Applies objects of one kind; an object that is already as wanted is left alone.
pub(crate) async fn apply(client: &Client, kind: &Kind, objects: Vec<Value>) -> anyhow::Result<()> {
    stream::iter(objects)
        .map(|value| async move {
            let (name, namespace) = (
                object::name(&value).to_owned(),
                object::namespace(&value).map(str::to_owned),
            );
            let params = PatchParams::apply(FIELD_MANAGER).force();
            kind.api(client, namespace.as_deref())
                .patch(&name, &params, &Patch::Apply(&value))
                .await
                .with_context(|| format!("applying {} {name}", kind.resource.kind))?;
            anyhow::Ok(())
        })
        .buffer_unordered(CONCURRENCY)
        .try_collect()
        .await
}

/// Applies CRDs; returns when all are served.
pub(crate) async fn install_crds(client: &Client, crds: Vec<Value>) -> anyhow::Result<()> {
    let kind = Kind::new(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    );
    let names = crds.iter().map(|c| object::name(c).to_owned()).collect();
    apply(client, &kind, crds).await?;
    wait_for(client, &kind, names, "Established").await
}

/// Creates an object unless one of its name exists; returns whether it did.
pub(crate) async fn create_if_absent(
    client: &Client,
    kind: &Kind,
    value: &Value,
) -> anyhow::Result<bool> {
    let name = object::name(value);
    let wanted: DynamicObject =
        serde_json::from_value(value.clone()).context("reading a manifest")?;
    let api = kind.api(client, object::namespace(value));
    match api.create(&Default::default(), &wanted).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error).with_context(|| format!("creating {} {name}", kind.resource.kind)),
    }
}

/// Gives the providers of an existing Region the URLs they have in `wanted`, and adds those that
/// are missing. All else stays as its owner has it.
pub(crate) async fn refresh_urls(
    client: &Client,
    kind: &Kind,
    wanted: &Value,
) -> anyhow::Result<()> {
    let name = object::name(wanted);
    let api = kind.api(client, None);
    let refresh = async || -> kube::Result<()> {
        let existing = api.get(name).await?;
        let old = existing.data["spec"]["providers"].as_array();
        let mut providers = old.cloned().unwrap_or_default();
        for provider in wanted["spec"]["providers"].as_array().into_iter().flatten() {
            let same = |p: &&mut Value| {
                p["name"] == provider["name"] && p["version"] == provider["version"]
            };
            match providers.iter_mut().find(same) {
                Some(known) => known["url"] = provider["url"].clone(),
                None => providers.push(provider.clone()),
            }
        }
        if old == Some(&providers) {
            return Ok(());
        }
        let patch = serde_json::json!({
            "metadata": {"resourceVersion": existing.metadata.resource_version},
            "spec": {"providers": providers},
        });
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.into()),
            ..PatchParams::default()
        };
        api.patch(name, &params, &Patch::Merge(patch)).await?;
        Ok(())
    };
    for _ in 1..CONFLICTS_MAX {
        match refresh().await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            done => return done.with_context(|| format!("telling region {name} its URLs")),
        }
    }
    refresh()
        .await
        .with_context(|| format!("telling region {name} its URLs"))
}

/// The names of all objects of a cluster-scoped kind.
pub(crate) async fn names(client: &Client, kind: &Kind) -> anyhow::Result<Vec<String>> {
    let all = kind.api(client, None).list(&Default::default()).await;
    let all = all.with_context(|| format!("listing objects of kind {}", kind.resource.kind))?;
    Ok(all.items.iter().map(|o| o.name_any()).collect())
}

/// Whether an object exists.
pub(crate) async fn exists(client: &Client, kind: &Kind, name: &str) -> anyhow::Result<bool> {
    let found = kind.api(client, None).get_opt(name).await;
    Ok(found
        .with_context(|| format!("reading {} {name}", kind.resource.kind))?
        .is_some())
}

/// Whether a condition is True, and of no older generation where it says of which: that of the
/// last start would not do.
fn holds(object: &Value, condition: &str, generation: i64) -> bool {
    let observed = condition::find(object, condition)
        .and_then(|c| c.get("observedGeneration"))
        .and_then(Value::as_i64);
    condition::is_true(object, condition) && observed.is_none_or(|seen| seen >= generation)
}

/// Waits until every named object of a kind has a condition with status True for what it is now.
pub(crate) async fn wait_for(
    client: &Client,
    kind: &Kind,
    names: Vec<String>,
    condition: &str,
) -> anyhow::Result<()> {
    let api = kind.api(client, None);
    let mut missing: std::collections::BTreeSet<String> = names.into_iter().collect();
    let watch = kube::runtime::watcher(api, Default::default());
    let mut events = std::pin::pin!(watch);
    let wait = async {
        while !missing.is_empty() {
            use kube::runtime::watcher::Event;
            match events.next().await {
                Some(Ok(Event::Apply(o) | Event::InitApply(o))) => {
                    let name = o.name_any();
                    let generation = o.metadata.generation.unwrap_or(0);
                    if holds(&o.data, condition, generation) {
                        missing.remove(&name);
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => tracing::debug!(%error, "watch failed, trying again"),
                None => break,
            }
        }
    };
    let in_time = tokio::time::timeout(WAIT, wait).await.is_ok();
    if !in_time || !missing.is_empty() {
        let names = missing.into_iter().collect::<Vec<_>>().join(", ");
        bail!(
            "{} {names}: not {condition} after {WAIT:?}",
            kind.resource.kind
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_condition_of_an_older_generation_does_not_hold() {
        let object = |status: &str, observed: Value| {
            let condition = json!({
                "type": "Established", "status": status, "observedGeneration": observed,
            });
            json!({"status": {"conditions": [condition]}})
        };
        for (object, want) in [
            (object("True", json!(3)), true),
            (object("True", json!(2)), false),
            (object("True", Value::Null), true),
            (object("False", json!(3)), false),
            (json!({}), false),
        ] {
            assert_eq!(holds(&object, "Established", 3), want, "{object}");
        }
    }
}
