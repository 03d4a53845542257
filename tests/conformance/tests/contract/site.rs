//! A tenant of its own for each test, and what is made in it.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::bodies;
use crate::kinds::*;
use crate::world::{Answer, World};

/// A tenant, a workspace in it, and a network in that.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) world: Arc<World>,
    pub(crate) tenant: String,
    pub(crate) workspace: String,
    pub(crate) network: String,
}

impl Site {
    /// A tenant that nobody else uses; nothing exists in it.
    pub(crate) fn new(world: Arc<World>) -> Self {
        Self {
            tenant: world.tenant(),
            world,
            workspace: WORKSPACE.sample.into(),
            network: NETWORK.sample.into(),
        }
    }

    /// The same tenant, with another workspace.
    pub(crate) fn in_workspace(&self, workspace: &str) -> Self {
        Self {
            workspace: workspace.into(),
            ..self.clone()
        }
    }

    /// What identifies a collection below its version: `tenants/t/workspaces/w/nics`.
    fn place(&self, kind: &Kind) -> String {
        let mut place = format!("tenants/{}/", self.tenant);
        if kind.scope >= Scope::Workspace {
            place += &format!("workspaces/{}/", self.workspace);
        }
        if kind.scope >= Scope::Network {
            place += &format!("networks/{}/", self.network);
        }
        place + kind.collection
    }

    /// Path of a kind's collection.
    pub(crate) fn list(&self, kind: &Kind) -> String {
        format!("/providers/{}/v1/{}", kind.provider, self.place(kind))
    }

    /// Path of a resource.
    pub(crate) fn path(&self, kind: &Kind, name: &str) -> String {
        format!("{}/{name}", self.list(kind))
    }

    /// URN of a resource, as in `metadata.ref` (contract, section 2.2).
    pub(crate) fn urn(&self, kind: &Kind, name: &str) -> String {
        format!("{}/v1/{}/{name}", kind.provider, self.place(kind))
    }

    /// URN of a SKU.
    pub(crate) fn sku(&self, api: &str, name: &str) -> String {
        format!("seca.{api}/v1/tenants/{}/skus/{name}", self.tenant)
    }

    /// A PUT of a spec alone that waits until the resource has settled.
    pub(crate) async fn put(&self, kind: &Kind, name: &str, spec: &Value) -> Answer {
        self.put_body(kind, name, &json!({ "spec": spec })).await
    }

    /// A PUT that waits until the resource has settled.
    pub(crate) async fn put_body(&self, kind: &Kind, name: &str, body: &Value) -> Answer {
        self.world.put(&self.path(kind, name), body).await
    }

    pub(crate) async fn get(&self, kind: &Kind, name: &str) -> Answer {
        self.world.get(&self.path(kind, name)).await
    }

    /// A DELETE that waits until the resource is gone.
    pub(crate) async fn delete(&self, kind: &Kind, name: &str) -> Answer {
        self.world.delete(&self.path(kind, name)).await
    }

    /// A DELETE that must succeed; afterwards the resource is gone.
    pub(crate) async fn remove(&self, kind: &Kind, name: &str) {
        self.delete(kind, name).await.ok(202);
        self.world.until_gone(&self.path(kind, name)).await;
    }

    pub(crate) async fn until_active(&self, kind: &Kind, name: &str) -> Value {
        self.world.until_active(&self.path(kind, name)).await
    }

    /// Makes a resource that must become active.
    pub(crate) async fn make(&self, kind: &Kind, name: &str, spec: &Value) -> Value {
        let made = self.put(kind, name, spec).await;
        assert!(matches!(made.status, 200 | 201), "{made:#?}");
        assert_eq!(made.body["status"]["state"], "active", "{made:#?}");
        made.body
    }

    /// Makes the resource that others refer to.
    pub(crate) async fn sample(&self, kind: &Kind) -> Value {
        let spec = bodies::minimal(self, kind);
        self.make(kind, kind.sample, &spec).await
    }

    /// Makes all that one of a kind needs.
    pub(crate) async fn prepare(&self, kind: &Kind) {
        for need in kind.needs {
            self.sample(need).await;
        }
    }

    /// Makes all that a spec with every field of a kind needs.
    pub(crate) async fn prepare_full(&self, kind: &Kind) {
        self.prepare(kind).await;
        for need in kind.refers {
            self.sample(need).await;
        }
        if kind.name == INSTANCE.name {
            // An instance takes each of its disks and NICs once.
            for (kind, name) in [(&BLOCK_STORAGE, "disk-2"), (&NIC, "nic-2")] {
                self.make(kind, name, &bodies::minimal(self, kind)).await;
            }
        }
    }

    /// Names in a list, as far as a query selects.
    pub(crate) async fn names(&self, kind: &Kind, query: &str) -> Vec<String> {
        let items = self.world.all(&self.list(kind), query).await;
        let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
        items.iter().map(name).collect()
    }
}
