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

/// Creates an object unless one of its name exists.
pub(crate) async fn create_if_absent(
    client: &Client,
    kind: &Kind,
    value: Value,
) -> anyhow::Result<()> {
    let (name, namespace) = (
        object::name(&value).to_owned(),
        object::namespace(&value).map(str::to_owned),
    );
    let wanted: DynamicObject = serde_json::from_value(value).context("reading a manifest")?;
    let api = kind.api(client, namespace.as_deref());
    match api.create(&Default::default(), &wanted).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error).with_context(|| format!("creating {} {name}", kind.resource.kind)),
    }
}

/// Whether an object exists.
pub(crate) async fn exists(client: &Client, kind: &Kind, name: &str) -> anyhow::Result<bool> {
    let found = kind.api(client, None).get_opt(name).await;
    Ok(found
        .with_context(|| format!("reading {} {name}", kind.resource.kind))?
        .is_some())
}

/// Waits until every named object of a kind has a condition with status True.
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
                    if condition::is_true(&o.data, condition) {
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
