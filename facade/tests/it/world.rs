//! A facade over a control plane in memory.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use ecp_apiserver::{ApiServer, Identity};
use ecp_facade::{Access, Config, Facade, Profile, StaticTokens};
use ecp_store::MemoryStore;
use ecp_xr::crd::{claim_crd, composite_crd};
use ecp_xr::xrd::Xrd;
use ecp_xrds::Flavour;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::contract;
use crate::player::{self, Mood};

pub(crate) const TOKEN: &str = "admin-token";
pub(crate) const WORKSPACE: &str = "/providers/seca.workspace/v1/tenants/acme/workspaces/prod";
pub(crate) const DISKS: &str =
    "/providers/seca.storage/v1/tenants/acme/workspaces/prod/block-storages";
pub(crate) const IMAGES: &str = "/providers/seca.storage/v1/tenants/acme/images";
pub(crate) const NETWORKS: &str =
    "/providers/seca.network/v1/tenants/acme/workspaces/prod/networks";
pub(crate) const GATEWAYS: &str =
    "/providers/seca.network/v1/tenants/acme/workspaces/prod/internet-gateways";
pub(crate) const NICS: &str = "/providers/seca.network/v1/tenants/acme/workspaces/prod/nics";
pub(crate) const INSTANCES: &str =
    "/providers/seca.compute/v1/tenants/acme/workspaces/prod/instances";
pub(crate) const ROLES: &str = "/providers/seca.authorization/v1/tenants/acme/roles";
pub(crate) const ASSIGNMENTS: &str =
    "/providers/seca.authorization/v1/tenants/acme/role-assignments";
pub(crate) const SKUS: &str = "/providers/seca.storage/v1/tenants/acme/skus";

/// Longest wait for anything that should happen soon.
const SOON: Duration = Duration::from_secs(20);

/// A facade, its control plane, and the part behind it that the test plays.
pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) facade: Facade,
    pub(crate) shutdown: CancellationToken,
    router: axum::Router,
    profile: Profile,
    mood: watch::Sender<Mood>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// An answer of the facade.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: bytes::Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|e| panic!("{e}: {:?}", String::from_utf8_lossy(&self.bytes)))
    }

    /// The body of an answer that must have this status.
    pub(crate) fn ok(&self, status: u16) -> Value {
        assert_eq!(
            self.status,
            status,
            "{:?}",
            String::from_utf8_lossy(&self.bytes)
        );
        if self.bytes.is_empty() {
            Value::Null
        } else {
            self.json()
        }
    }

    /// The pointers of a problem that must have this status.
    pub(crate) fn problem(&self, status: u16) -> Vec<String> {
        let body = self.ok(status);
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(body["status"], status);
        for member in ["type", "title", "detail", "instance"] {
            assert!(body[member].is_string(), "{member}: {body}");
        }
        let sources = body["sources"].as_array().expect("sources");
        sources
            .iter()
            .map(|s| s["pointer"].as_str().expect("pointer").to_owned())
            .collect()
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// A world whose facade is set up by `change`.
    pub(crate) async fn with(change: impl FnOnce(&mut Config)) -> Self {
        Self::of(Flavour::V2, change).await
    }

    /// A world with one flavour of kinds.
    pub(crate) async fn of(flavour: Flavour, change: impl FnOnce(&mut Config)) -> Self {
        let server = ApiServer::new(Arc::new(MemoryStore::new()), Default::default())
            .await
            .expect("API server");
        let client = Client::new(server.service(Identity::admin()), "default");
        install_crds(&client, flavour).await;
        install_catalogue(&client).await;
        let shutdown = CancellationToken::new();
        let tokens = StaticTokens::admin(TOKEN).with(
            "plain",
            ecp_facade::Identity {
                subject: "bob".into(),
                admin: false,
            },
        );
        let mut config = Config::new(
            client.clone(),
            "region-1",
            "http://facade.test/",
            Access::Tokens(Arc::new(tokens)),
        );
        config.settle = SOON;
        change(&mut config);
        let profile = config.profile;
        let facade = Facade::start(config, shutdown.clone()).expect("facade");
        tokio::time::timeout(SOON, facade.ready())
            .await
            .expect("ready in time");
        let (mood, moods) = watch::channel(Mood::Willing);
        player::play(client.clone(), moods, shutdown.clone());
        Self {
            router: facade.router(),
            profile,
            client,
            facade,
            shutdown,
            mood,
        }
    }

    /// A world with a workspace.
    pub(crate) async fn with_workspace() -> Self {
        let world = Self::new().await;
        world.put(WORKSPACE, json!({})).await.ok(201);
        world
    }

    /// A world with a workspace, and in it network `n` with gateway `gw` and route table `rt`.
    pub(crate) async fn with_network() -> Self {
        let world = Self::with_workspace().await;
        world.add_network().await;
        world
    }

    /// Adds network `n` with gateway `gw` and route table `rt`.
    pub(crate) async fn add_network(&self) {
        self.put(&format!("{NETWORKS}/n"), network("10.1.0.0/16"))
            .await
            .ok(201);
        let gateway = json!({"spec": {"egressOnly": false}});
        self.put(&format!("{GATEWAYS}/gw"), gateway).await.ok(201);
        let routes = route("internet-gateways/gw");
        self.put(&format!("{NETWORKS}/n/route-tables/rt"), routes)
            .await
            .ok(201);
    }

    pub(crate) fn mood(&self, mood: Mood) {
        self.mood.send_replace(mood);
    }

    /// Sends a request; the answer is one that the OpenAPI document allows.
    pub(crate) async fn request(&self, request: Request<Body>) -> Answer {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = self
            .router
            .clone()
            .oneshot(request)
            .await
            .expect("infallible");
        let (parts, body) = response.into_parts();
        let answer = Answer {
            status: parts.status,
            headers: parts.headers,
            bytes: body.collect().await.expect("body").to_bytes(),
        };
        contract::check(
            self.profile,
            (&method, &path),
            answer.status,
            &answer.headers,
            &answer.bytes,
        );
        answer
    }

    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {TOKEN}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.request(request.body(body.into()).expect("request"))
            .await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, &[], Body::empty()).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.put_with(path, &[], body).await
    }

    pub(crate) async fn put_with(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: Value,
    ) -> Answer {
        self.call(Method::PUT, path, headers, body.to_string())
            .await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.call(Method::DELETE, path, &[], Body::empty()).await
    }

    /// The objects of a kind in the namespace of the workspace (or tenant).
    pub(crate) fn objects(&self, kind: &str) -> Api<DynamicObject> {
        let info = ecp_xrds::by_kind(kind).expect("kind");
        let namespace = match info.scope {
            ecp_xrds::Scope::Tenant => ecp_meta::names::tenant_namespace("acme"),
            _ => ecp_meta::names::workspace_namespace("acme", "prod"),
        };
        player::inside(&self.client, info, &namespace)
    }

    /// Makes an object of a cluster-scoped kind.
    pub(crate) async fn create(&self, kind: &str, object: Value) {
        create(&self.client, kind, object).await;
    }

    /// Makes a region that is like the first.
    pub(crate) async fn region(&self, name: &str) {
        self.create("Region", region(name)).await;
    }

    /// Makes a SKU that one region offers.
    pub(crate) async fn sku(&self, object: &str, name: &str, region: &str, iops: i64) {
        let sku = json!({
            "apiVersion": "storage.v1.secapi.cloud/v1", "kind": "StorageSKU",
            "metadata": {"name": object},
            "spec": {
                "name": name, "region": region, "iops": iops, "minVolumeSize": 50,
                "type": "remote-durable",
            },
        });
        self.create("StorageSKU", sku).await;
    }

    /// Merges a patch into an object behind the facade's back.
    pub(crate) async fn patch(&self, kind: &str, name: &str, patch: Value) {
        self.objects(kind)
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .expect("patched");
    }

    /// Merges a patch into the status of an object.
    pub(crate) async fn patch_status(&self, kind: &str, name: &str, patch: Value) {
        self.objects(kind)
            .patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .expect("patched");
    }

    /// Reads a path until its answer is as wanted.
    pub(crate) async fn eventually(&self, path: &str, wanted: impl Fn(&Answer) -> bool) -> Answer {
        let reading = async {
            loop {
                let answer = self.get(path).await;
                if wanted(&answer) {
                    return answer;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(SOON, reading).await.expect("in time")
    }
}

/// A valid block storage.
pub(crate) fn disk(size_gb: i64) -> Value {
    json!({"spec": {"sizeGB": size_gb, "skuRef": {"resource": "skus/RD500"}}})
}

/// A valid network with an IPv4 range.
pub(crate) fn network(cidr: &str) -> Value {
    json!({"spec": {"cidr": {"ipv4": cidr}, "skuRef": {"resource": "N1K"}}})
}

/// A valid route table with one route.
pub(crate) fn route(target: &str) -> Value {
    json!({"spec": {"routes": [
        {"destinationCidrBlock": "0.0.0.0/0", "targetRef": {"resource": target}},
    ]}})
}

/// A valid subnet of network `n`.
pub(crate) fn subnet(cidr: &str) -> Value {
    json!({"spec": {
        "cidr": {"ipv4": cidr}, "routeTableRef": {"resource": "rt"}, "zone": "zone-a",
    }})
}

/// A valid instance that starts from block storage `boot`.
pub(crate) fn instance() -> Value {
    json!({"spec": {
        "skuRef": {"resource": "skus/D2XS"}, "zone": "zone-a",
        "bootVolume": {"deviceRef": {"resource": "block-storages/boot"}},
    }})
}

/// The states of a document's conditions, newest first.
pub(crate) fn states(document: &Value) -> Vec<&str> {
    document["status"]["conditions"]
        .as_array()
        .expect("conditions")
        .iter()
        .filter_map(|c| c["state"].as_str())
        .collect()
}

/// Installs what users write: the namespaced XRs of one flavour, the claims of the other.
async fn install_crds(client: &Client, flavour: Flavour) {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for (info, xrd) in ecp_xrds::kinds().iter().zip(ecp_xrds::xrds(flavour)) {
        let xrd = Xrd::parse(&xrd).expect("XRD");
        let mut crd = if flavour == Flavour::Claims && info.has_claim() {
            claim_crd(&xrd).expect("CRD")
        } else {
            composite_crd(&xrd).expect("CRD")
        };
        // The XRD itself is not installed, so nothing can own the CRD.
        ecp_meta::object::metadata_mut(&mut crd).remove("ownerReferences");
        let crd = serde_json::from_value(crd).expect("typed CRD");
        crds.create(&PostParams::default(), &crd)
            .await
            .expect("created");
    }
}

async fn create(client: &Client, kind: &str, object: Value) {
    let info = ecp_xrds::by_kind(kind).expect("kind");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &player::resource(info));
    let object = serde_json::from_value(object).expect("object");
    api.create(&PostParams::default(), &object)
        .await
        .expect("created");
}

fn region(name: &str) -> Value {
    let provider = |name: &str| json!({"name": name, "version": "v1", "url": "http://set.later"});
    json!({
        "apiVersion": "v1.secapi.cloud/v1", "kind": "Region",
        "metadata": {"name": name},
        "spec": {
            "availableZones": ["zone-a", "zone-b"],
            "providers": [provider("seca.workspace"), provider("seca.storage")],
            "cloud": {"name": "dummy", "location": "here"},
        },
    })
}

async fn install_catalogue(client: &Client) {
    create(client, "Region", region("region-1")).await;
    for (name, tier) in [("RD500", "RD500"), ("RD100", "D2XS")] {
        let labels = json!({"labels": {"Tier": tier}});
        let spec = json!({
            "name": name, "iops": 500, "minVolumeSize": 50, "type": "remote-durable",
            "commonData": labels,
        });
        let sku = sku("storage", "StorageSKU", name, spec);
        create(client, "StorageSKU", sku).await;
    }
    let spec = json!({"name": "D2XS", "vCPU": 1, "ram": 2});
    let sku_object = sku("compute", "InstanceSKU", "D2XS", spec);
    create(client, "InstanceSKU", sku_object).await;
    for name in ["N1K", "N5K"] {
        let spec = json!({"name": name, "bandwidth": 1000, "packets": 10_000});
        let sku = sku("network", "NetworkSKU", name, spec);
        create(client, "NetworkSKU", sku).await;
    }
}

fn sku(api: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("{api}.v1.secapi.cloud/v1"), "kind": kind,
        "metadata": {"name": name.to_lowercase()}, "spec": spec,
    })
}
