//! A kind of managed resource, its cloud, and a cluster that has both.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use async_trait::async_trait;
use ecp_provider::{
    Configs, Connection, Created, External, ExternalChange, ExternalError, Managed, Observation,
    Options, Provider, ProviderConfig, Resource, Runtime, managed_crd,
};
use futures::StreamExt as _;
use futures::channel::mpsc;
use futures::stream::BoxStream;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) use ecp_test_cluster::until;

/// A kind whose cloud chooses ids, cannot be asked by tag, and may be slow to show what it made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thing;

impl Managed for Thing {
    const PROVIDER: Provider = Provider {
        name: "fake",
        group: "fake.m.example.org",
        version: "v1alpha1",
        configs: Configs::None,
    };
    const KIND: &'static str = "Thing";
    const PLURAL: &'static str = "things";
    type ForProvider = Parameters;
    type AtProvider = Seen;
}

/// See [`Thing`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Parameters {
    /// Whatever.
    #[serde(default)]
    pub(crate) color: Option<String>,
}

/// See [`Thing`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Seen {
    /// Identity.
    pub(crate) id: String,
}

type Hook = Box<dyn FnOnce() -> futures::future::BoxFuture<'static, ()> + Send>;

/// What the cloud knows and how it behaves.
#[derive(Default)]
pub(crate) struct State {
    /// Tag by id.
    pub(crate) things: BTreeMap<String, String>,
    pub(crate) creates: usize,
    pub(crate) observes: usize,
    /// Whether things are not shown yet.
    pub(crate) hidden: bool,
    pub(crate) connection: BTreeMap<String, Vec<u8>>,
    /// Done during the next observation.
    pub(crate) on_observe: Option<Hook>,
    /// Name of an object whose observation panics.
    pub(crate) cursed: Option<String>,
    /// Ids of what cannot be deleted, and how often that was tried.
    pub(crate) in_use: BTreeMap<String, usize>,
    /// Tells the runtime of changes.
    pub(crate) tells: Option<mpsc::UnboundedSender<ExternalChange>>,
}

/// The cloud.
#[derive(Clone, Default)]
pub(crate) struct Fake(pub(crate) Arc<Mutex<State>>);

#[async_trait]
impl External for Fake {
    type Managed = Thing;
    type Client = ();

    async fn connect(&self, _: &Resource<Thing>, _: &ProviderConfig) -> Result<(), ExternalError> {
        Ok(())
    }

    async fn observe(
        &self,
        (): &(),
        resource: &Resource<Thing>,
    ) -> Result<Observation<Thing>, ExternalError> {
        let hook = {
            let mut state = self.0.lock();
            state.observes += 1;
            assert!(
                state.cursed.as_ref() != Some(&resource.name),
                "told to panic"
            );
            state.on_observe.take()
        };
        if let Some(hook) = hook {
            hook().await;
        }
        let state = self.0.lock();
        let id = resource.external_name.clone().unwrap_or_default();
        if state.hidden || !state.things.contains_key(&id) {
            return Ok(Observation::missing());
        }
        let mut seen = Observation::available(Seen { id });
        seen.connection = Connection(state.connection.clone());
        Ok(seen)
    }

    async fn create(&self, (): &(), resource: &Resource<Thing>) -> Result<Created, ExternalError> {
        let mut state = self.0.lock();
        state.creates += 1;
        let id = format!("thing-{}", state.creates);
        state.things.insert(id.clone(), resource.uid.clone());
        Ok(Created::named(id))
    }

    async fn update(&self, (): &(), _: &Resource<Thing>) -> Result<Connection, ExternalError> {
        Ok(Connection::default())
    }

    async fn delete(&self, (): &(), resource: &Resource<Thing>) -> Result<(), ExternalError> {
        let id = resource.external_name.clone().unwrap_or_default();
        let mut state = self.0.lock();
        if let Some(tries) = state.in_use.get_mut(&id) {
            *tries += 1;
            return Err(ExternalError::conflict("in use"));
        }
        state.things.remove(&id);
        // What it used is free.
        let used = resource.for_provider.color.as_deref().unwrap_or_default();
        state.in_use.remove(used);
        Ok(())
    }

    fn changes(&self) -> BoxStream<'static, ExternalChange> {
        let (tells, told) = mpsc::unbounded();
        self.0.lock().tells = Some(tells);
        told.boxed()
    }
}

/// A cluster with the kind, a namespace `ns`, and a running provider.
pub(crate) struct Cluster {
    cluster: ecp_test_cluster::Cluster,
    pub(crate) fake: Fake,
    stop: CancellationToken,
}

impl Deref for Cluster {
    type Target = ecp_test_cluster::Cluster;

    fn deref(&self) -> &Self::Target {
        &self.cluster
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Cluster {
    pub(crate) async fn new(options: Options) -> Self {
        let cluster = Self::bare(vec![managed_crd::<Thing>()]).await;
        cluster.run(cluster.client(), options);
        cluster
    }

    /// A cluster with these kinds, in which no provider runs.
    pub(crate) async fn bare(crds: Vec<Value>) -> Self {
        Self {
            cluster: ecp_test_cluster::Cluster::new(crds, &["ns"]).await,
            fake: Fake::default(),
            stop: CancellationToken::new(),
        }
    }

    /// Starts a provider that uses a client.
    pub(crate) fn run(&self, client: Client, options: Options) {
        let runtime = Runtime::new(client, Thing::PROVIDER, options).with(self.fake.clone());
        tokio::spawn(runtime.run(self.stop.clone()));
    }

    pub(crate) fn things(&self) -> Api<DynamicObject> {
        self.api("fake.m.example.org/v1alpha1", "things", "ns")
    }

    /// Creates a thing with these annotations and further spec fields.
    pub(crate) async fn thing(&self, name: &str, annotations: Value, spec: Value) {
        let mut object = json!({
            "apiVersion": "fake.m.example.org/v1alpha1",
            "kind": "Thing",
            "metadata": {"name": name, "namespace": "ns", "annotations": annotations},
            "spec": {"forProvider": {}},
        });
        for (key, value) in spec.as_object().into_iter().flatten() {
            object["spec"][key] = value.clone();
        }
        self.create("fake.m.example.org/v1alpha1", "things", "ns", object)
            .await;
    }

    pub(crate) async fn annotate(&self, name: &str, annotations: Value) {
        let patch = json!({"metadata": {"annotations": annotations}});
        self.things()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .expect("patched");
    }

    /// Waits until a condition of a thing has a reason, and returns its message.
    pub(crate) async fn reason(&self, name: &str, kind: &str, reason: &str) -> String {
        let things = self.things();
        until(&format!("{name} has {kind} {reason}"), async || {
            let thing = things.get(name).await.ok()?;
            let condition = ecp_meta::condition::find(&thing.data, kind)?;
            let message = condition["message"].as_str().unwrap_or_default().to_owned();
            (condition["reason"] == reason).then_some(message)
        })
        .await
    }

    pub(crate) async fn event(&self, name: &str, reason: &str) {
        let events = self.api("v1", "events", "ns");
        until(&format!("{name} has an event {reason}"), async || {
            let list = events.list(&Default::default()).await.ok()?;
            let mut items = list.items.iter();
            let is = |e: &DynamicObject| {
                e.data["involvedObject"]["name"] == name && e.data["reason"] == reason
            };
            items.any(is).then_some(())
        })
        .await;
    }
}
