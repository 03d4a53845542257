//! Every part of the control plane as a process of its own, on a real Kubernetes API.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use ecp_upstream::{Cluster, Process, Registry, free_ports};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{GroupVersionKind, TypeMeta};
use serde_json::{Value, json};

use crate::crossplane::Kubelet;
use crate::{DEADLINE, part};

/// Whom the parts run as.
const RIGHTS: &str = include_str!("rights.yaml");
pub(crate) const NAMESPACE: &str = "crossplane-system";
const FUNCTION: &str = "eu-sovereign-cloud-function-ecp";
/// What is shipped for the REST API on a cluster.
const FACADE: &str = include_str!("../../../package/install/facade.yaml");
const FACADE_NAMESPACE: &str = "ecp-system";
/// Kinds of it that say whom it runs as; nobody here runs pods.
const FACADE_RIGHTS: [&str; 3] = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding"];
/// What `ecp facade` prints before the URL when it is ready.
const READY: &str = "the SECA REST API is ready at ";
/// Token of the administrator of the REST API.
const ADMIN: &str = "rest-admin";

/// The running parts. They end before the cluster does.
#[derive(Debug)]
pub(crate) struct Parts {
    processes: Vec<Process>,
    /// Runs what Crossplane's core makes Deployments of.
    pub(crate) kubelet: Option<Kubelet>,
    /// Where it pulls packages from.
    pub(crate) registry: Option<Registry>,
    pub(crate) cluster: Arc<Cluster>,
    /// Base URL of the REST API.
    pub(crate) rest: String,
    /// The administrator's token of the REST API.
    pub(crate) token: &'static str,
}

impl Parts {
    /// None yet.
    pub(crate) fn new(cluster: Cluster) -> Self {
        Self {
            processes: Vec::new(),
            kubelet: None,
            registry: None,
            cluster: Arc::new(cluster),
            rest: String::new(),
            token: ADMIN,
        }
    }

    /// Starts them with the options of `ecp up`; returns when the REST API is ready. `None` on a
    /// machine without Go, which is told.
    pub(crate) async fn start(args: &[&str]) -> Option<Self> {
        let options = Options::of(args);
        let cluster = Cluster::start().await.unwrap()?;
        let client = cluster.client().await.unwrap();
        let manifests = cluster.dir().join("manifests");
        let written = Command::new(part("ecp"))
            .args(["manifests", "--out"])
            .arg(&manifests)
            .status();
        assert!(written.unwrap().success());

        apply(&client, documents(RIGHTS)).await;
        let file = manifests.join("install/1-prepare.yaml");
        let mut prepared = documents(&std::fs::read_to_string(file).unwrap());
        // How pods run is for the package manager to know.
        prepared.retain(|object| object["kind"] != "DeploymentRuntimeConfig");
        apply(&client, prepared).await;

        let certificates = certificates(cluster.dir());
        let [port] = free_ports().unwrap();
        let mut parts = Self::new(cluster);
        let function = ["--metrics-address", "127.0.0.1:0", "--tls-certs-dir"];
        let server = certificates.join("server");
        let address = format!("127.0.0.1:{port}");
        let args = [server.to_str().unwrap(), "--address", &address];
        parts.run("function-ecp", None, &[&function[..], &args].concat());
        let certificates = certificates.join("client");
        let engine = ["engine", "--metrics-address", "127.0.0.1:0"];
        let args = ["--tls-client-certs-dir", certificates.to_str().unwrap()];
        let config = parts.kubeconfig("crossplane").await;
        parts.run("ecp", Some(&config), &[&engine[..], &args].concat());

        let crds = ["provider-ecp", "provider-dummy"];
        let crds = crds.map(|provider| objects(&manifests.join(provider).join("crds")));
        let crds = apply(&client, crds.concat()).await;
        until(&client, &crds, "Established").await;
        for provider in ["provider-ecp", "provider-dummy"] {
            let config = parts.kubeconfig(provider).await;
            let args = ["--metrics-address", "127.0.0.1:0"];
            parts.run(provider, Some(&config), &args);
        }
        parts.until_log("ecp", "the engine runs").await;
        apply(&client, vec![function_object()]).await;
        let revision = function_revision(port);
        let status = json!({ "status": revision["status"] });
        apply(&client, vec![revision.clone()]).await;
        let (api, _) = api(&client, &revision).await;
        let name = revision["metadata"]["name"].as_str().unwrap();
        let merge = Patch::Merge(status);
        let params = PatchParams::default();
        api.patch_status(name, &params, &merge).await.unwrap();

        let configuration = manifests.join(options.configuration);
        let xrds = apply(&client, objects(&configuration.join("xrds"))).await;
        apply(&client, objects(&configuration.join("compositions"))).await;
        until(&client, &xrds, "Established").await;

        parts.start_facade(&options).await;
        Some(parts)
    }

    /// Serves the REST API, and puts into it what every control plane starts with.
    pub(crate) async fn start_facade(&mut self, options: &Options<'_>) {
        let token = self.cluster.dir().join("rest-token");
        std::fs::write(&token, ADMIN).unwrap();
        let mut args = vec!["facade", "--listen", "127.0.0.1:0"];
        if !options.insecure {
            args.extend(["--admin-token-file", token.to_str().unwrap()]);
        }
        args.extend(options.regions.iter().flat_map(|r| ["--region", r]));
        args.extend(&options.rest);
        let client = self.cluster.client().await.unwrap();
        let namespace = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": { "name": FACADE_NAMESPACE },
        });
        let mut rights = documents(FACADE);
        rights.retain(|o| FACADE_RIGHTS.iter().any(|kind| o["kind"] == *kind));
        apply(&client, [vec![namespace], rights].concat()).await;
        let config = self.cluster.kubeconfig_of(FACADE_NAMESPACE, "ecp-facade");
        let config = config.await.unwrap();
        let mut command = Command::new(part("ecp"));
        command.args(args).env("KUBECONFIG", config);
        let process = Process::start("facade", &mut command).unwrap();
        self.processes.push(process);
        let log = self.until_log("facade", READY).await;
        let (_, url) = log.split_once(READY).unwrap();
        self.rest = url.lines().next().unwrap().to_owned();
        let rest = self.rest.clone();
        let url = |region: &str, provider: &str| match provider {
            "seca.region" | "seca.authorization" => format!("{rest}/providers/{provider}"),
            _ if region == options.regions[0] => format!("{rest}/providers/{provider}"),
            _ => format!("{rest}/regions/{region}/providers/{provider}"),
        };
        let regions: Vec<String> = options.regions.iter().map(|r| (*r).to_owned()).collect();
        apply(&client, ecp_package::catalogue(&regions, url)).await;
    }

    pub(crate) async fn kubeconfig(&self, account: &str) -> PathBuf {
        self.cluster
            .kubeconfig_of(NAMESPACE, account)
            .await
            .unwrap()
    }

    pub(crate) fn run(&mut self, name: &str, kubeconfig: Option<&Path>, args: &[&str]) {
        let mut command = Command::new(part(name));
        command.args(args);
        if let Some(config) = kubeconfig {
            command.env("KUBECONFIG", config);
        }
        self.start_process(name, &mut command);
    }

    pub(crate) fn start_process(&mut self, name: &str, command: &mut Command) {
        self.processes.push(Process::start(name, command).unwrap());
    }

    /// Waits until a part has printed something; returns all that it has printed.
    async fn until_log(&self, name: &str, text: &str) -> String {
        let process = self.processes.iter().find(|p| p.name() == name).unwrap();
        let started = Instant::now();
        loop {
            let log = process.log();
            if log.contains(text) {
                return log;
            }
            let late = started.elapsed() > DEADLINE;
            assert!(!late, "{name} did not say {text:?}:\n{}", self.log());
            tokio::time::sleep(POLL).await;
        }
    }

    /// What all of them have printed so far.
    pub(crate) fn log(&self) -> String {
        let log = |p: &Process| format!("--- {}\n{}", p.name(), p.log());
        let logs: Vec<String> = self.processes.iter().map(log).collect();
        logs.join("\n")
    }
}

/// How often a condition is looked at.
pub(crate) const POLL: std::time::Duration = std::time::Duration::from_millis(50);

/// What of the options of `ecp up` changes what is installed or how the REST API runs.
#[derive(Debug)]
pub(crate) struct Options<'a> {
    pub(crate) configuration: &'static str,
    regions: Vec<&'a str>,
    insecure: bool,
    rest: Vec<&'a str>,
}

impl<'a> Options<'a> {
    pub(crate) fn of(args: &[&'a str]) -> Self {
        let mut options = Self {
            configuration: "configuration-ecp",
            regions: Vec::new(),
            insecure: false,
            rest: Vec::new(),
        };
        let mut args = args.iter().copied();
        while let Some(arg) = args.next() {
            match arg {
                "--ephemeral" => {}
                "--flavour" if args.next() == Some("claims") => {
                    options.configuration = "configuration-ecp-claims";
                }
                "--flavour" => {}
                "--region" => options.regions.extend(args.next()),
                "--insecure-dev" => {
                    options.insecure = true;
                    options.rest.push(arg);
                }
                _ => options.rest.push(arg),
            }
        }
        if options.regions.is_empty() {
            options.regions.push("region-1");
        }
        options
    }
}

pub(crate) fn documents(yaml: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(yaml).unwrap()
}

/// All objects in the files of a directory.
pub(crate) fn objects(dir: &Path) -> Vec<Value> {
    let files = std::fs::read_dir(dir).unwrap();
    let text = |file: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(file.unwrap().path()).unwrap()
    };
    files.flat_map(|file| documents(&text(file))).collect()
}

/// The API of an object's kind, and the object itself.
pub(crate) async fn api(client: &Client, object: &Value) -> (Api<DynamicObject>, DynamicObject) {
    let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    let types: TypeMeta = object.types.clone().unwrap();
    let gvk = GroupVersionKind::try_from(types).unwrap();
    let (kind, _) = kube::discovery::pinned_kind(client, &gvk).await.unwrap();
    let api = match object.metadata.namespace.as_deref() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    };
    (api, object)
}

/// Applies objects; returns them.
pub(crate) async fn apply(client: &Client, objects: Vec<Value>) -> Vec<Value> {
    for value in &objects {
        let (api, object) = api(client, value).await;
        let name = object.metadata.name.clone().unwrap();
        let params = PatchParams::apply("test").validation_strict();
        let applied = api.patch(&name, &params, &Patch::Apply(&object)).await;
        applied.unwrap_or_else(|error| panic!("{} {name}: {error}", value["kind"]));
    }
    objects
}

/// Waits until all objects have a condition.
pub(crate) async fn until(client: &Client, objects: &[Value], condition: &str) {
    let started = Instant::now();
    for object in objects {
        let (api, object) = api(client, object).await;
        let name = object.metadata.name.unwrap();
        loop {
            let found = api.get(&name).await.unwrap();
            let conditions = found.data["status"]["conditions"].as_array();
            let is_true = |c: &&Value| c["type"] == condition && c["status"] == "True";
            if conditions.into_iter().flatten().any(|c| is_true(&c)) {
                break;
            }
            let late = started.elapsed() > DEADLINE;
            assert!(
                !late,
                "{name} is not {condition}: {:#}",
                found.data["status"]
            );
            tokio::time::sleep(POLL).await;
        }
    }
}

fn function_object() -> Value {
    json!({
        "apiVersion": "pkg.crossplane.io/v1",
        "kind": "Function",
        "metadata": { "name": FUNCTION },
        "spec": { "package": "ghcr.io/eu-sovereign-cloud/function-ecp:v0.1.0" },
    })
}

/// What Crossplane's package manager makes of the Function.
fn function_revision(port: u16) -> Value {
    json!({
        "apiVersion": "pkg.crossplane.io/v1",
        "kind": "FunctionRevision",
        "metadata": {
            "name": format!("{FUNCTION}-1"),
            "labels": { "pkg.crossplane.io/package": FUNCTION },
        },
        "spec": {
            "desiredState": "Active",
            "image": "ghcr.io/eu-sovereign-cloud/function-ecp:v0.1.0",
            "revision": 1,
        },
        "status": { "endpoint": format!("dns:///localhost:{port}") },
    })
}

/// Writes certificates of one authority: `server/` for the function and `client/` for the engine.
fn certificates(dir: &Path) -> PathBuf {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

    let authority = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = params.self_signed(&authority).unwrap().pem();
    let issuer = Issuer::new(params, authority);
    let dir = dir.join("tls");
    for (name, host) in [("server", "localhost"), ("client", "crossplane")] {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.into()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let dir = dir.join(name);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("ca.crt"), &ca).unwrap();
        std::fs::write(dir.join("tls.crt"), certificate.pem()).unwrap();
        std::fs::write(dir.join("tls.key"), key.serialize_pem()).unwrap();
    }
    dir
}
