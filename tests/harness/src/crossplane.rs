//! Crossplane's own core in place of our engine: our packages are installed from a registry, as on
//! any cluster.
//!
//! The cluster has no nodes. The function is one that Crossplane does not run itself
//! (`PACKAGE_RUNTIME` External), since its Service would have no address; a [`Kubelet`] runs the
//! pods of the providers' Deployments.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ecp_upstream::{Cluster, Process, Registry, free_ports};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus};
use k8s_openapi::api::core::v1::{Container, EnvVar, PodSpec, Secret};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::parts::{self, NAMESPACE, POLL, Parts, apply, documents};
use crate::{DEADLINE, part};

/// Names core's binary; the folder `cluster` of its sources must be beside it.
pub(crate) const CORE: &str = "ECP_TEST_CROSSPLANE";
const FUNCTION: &str = "eu-sovereign-cloud-function-ecp";
/// Templates of Crossplane's chart that give core and the RBAC manager their rights.
const RIGHTS: [&str; 5] = [
    "clusterrole",
    "clusterrolebinding",
    "rbac-manager-clusterrole",
    "rbac-manager-clusterrolebinding",
    "rbac-manager-managed-clusterroles",
];

/// Installs everything with the options of `ecp up`; returns when the REST API is ready. `None` on
/// a machine without Go, which is told.
pub(crate) async fn start(core: &Path, args: &[&str]) -> Option<Parts> {
    let options = parts::Options::of(args);
    let mut parts = Parts::new(Cluster::start().await.unwrap()?);
    let registry = Registry::start().await.unwrap()?;
    start_core(core, &mut parts).await;
    let rights = Rights::start(core, &parts).await;

    let manifests = push_packages(&parts, &registry);
    let client = parts.cluster.client().await.unwrap();
    let install = manifests.join("install");
    let read = |name: &str| documents(&std::fs::read_to_string(install.join(name)).unwrap());
    apply(&client, read("1-prepare.yaml")).await;
    let packages = match options.configuration {
        "configuration-ecp" => "2-packages.yaml",
        _ => "2-packages-claims.yaml",
    };
    let packages = apply(&client, read(packages)).await;
    parts.kubelet = Some(Kubelet::start(&parts.cluster));
    run_function(&mut parts, &client).await;
    parts::until(&client, &packages, "Healthy").await;
    let configuration = manifests.join(options.configuration);
    let xrds = parts::objects(&configuration.join("xrds"));
    parts::until(&client, &xrds, "Established").await;
    let offered = |xrd: &Value| xrd["spec"]["claimNames"].is_object();
    let offered: Vec<Value> = xrds.into_iter().filter(offered).collect();
    parts::until(&client, &offered, "Offered").await;

    drop(rights);

    parts.registry = Some(registry);
    parts.start_facade(&options).await;
    Some(parts)
}

/// Core and the RBAC manager, with the rights that the chart gives them.
async fn start_core(core: &Path, parts: &mut Parts) {
    let sources = core.parent().unwrap().join("cluster");
    let missing = format!("{} is not beside the binary", sources.display());
    assert!(sources.is_dir(), "{CORE}: {missing}");
    let client = parts.cluster.client().await.unwrap();
    let account = |name: &str| {
        json!({"apiVersion": "v1", "kind": "ServiceAccount",
               "metadata": {"name": name, "namespace": NAMESPACE}})
    };
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let first = vec![namespace, account("crossplane"), account("rbac-manager")];
    apply(&client, first).await;
    for template in RIGHTS {
        let file = sources.join(format!("charts/crossplane/templates/{template}.yaml"));
        apply(&client, rendered(&std::fs::read_to_string(file).unwrap())).await;
    }
    let crds = apply(&client, parts::objects(&sources.join("crds"))).await;
    parts::until(&client, &crds, "Established").await;

    let kubeconfig = parts.kubeconfig("crossplane").await;
    until_may_read_secrets(&kubeconfig).await;
    let [webhooks, metrics, health] = free_ports().unwrap();
    let dir = parts.cluster.dir().to_owned();
    let run = |action: &str| {
        let mut command = Command::new(core);
        command
            .args(["core", action, "--namespace", NAMESPACE])
            .env("KUBECONFIG", &kubeconfig)
            .env("ENABLE_WEBHOOKS", "true")
            .args(["--tls-server-secret-name=crossplane-tls-server"])
            .args(["--tls-client-secret-name=crossplane-tls-client"]);
        command
    };
    // The Service's name is in the certificate of the webhooks.
    let init = run("init")
        .args(["--activation=*", "--tlsca-secret-name=crossplane-root-ca"])
        .args(["--webhook-service-name=localhost"])
        .args(["--webhook-service-namespace", NAMESPACE])
        .args(["--webhook-service-port", &webhooks.to_string()])
        .arg("--webhook-configurations-path")
        .arg(sources.join("webhookconfigurations"))
        .arg("--cr-ds-path")
        .arg(sources.join("crds"))
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&init.stderr);
    assert!(init.status.success(), "crossplane core init: {log}");
    reach_webhooks(&client, webhooks).await;

    let cache = dir.join("xpkg");
    std::fs::create_dir(&cache).unwrap();
    let [client_certs, server_certs] = ["crossplane-tls-client", "crossplane-tls-server"];
    let client_certs = write_secret(&client, &dir, client_certs).await;
    let server_certs = write_secret(&client, &dir, server_certs).await;
    let mut command = run("start");
    command
        .env("PACKAGE_RUNTIME", "Provider=Deployment;Function=External")
        // The contract tests change one resource more often than the breaker allows by default.
        .args(["--circuit-breaker-burst=10000"])
        .arg("--xpkg-cache-dir")
        .arg(cache)
        .args(["--metrics-port", &metrics.to_string()])
        .args(["--health-probe-port", &health.to_string()])
        .args(["--webhook-port", &webhooks.to_string()])
        .arg("--tls-client-certs-dir")
        .arg(client_certs)
        .arg("--tls-server-certs-dir")
        .arg(server_certs);
    parts.start_process("crossplane", &mut command);
    until_answers(parts, &format!("http://127.0.0.1:{health}/readyz")).await;
}

/// The RBAC manager, which gives core and providers the rights that follow from packages. It takes
/// port 8080 for its metrics, whatever it is told, so that a machine can only have one: until
/// everything is installed.
#[derive(Debug)]
struct Rights {
    _manager: Process,
    _lock: std::fs::File,
}

impl Rights {
    async fn start(core: &Path, parts: &Parts) -> Self {
        let path = std::env::temp_dir().join("ecp-test-rbac-manager.lock");
        let lock = std::fs::File::create(path).unwrap();
        let lock = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock));
        let lock = lock.await.unwrap().unwrap();
        let taken = std::net::TcpListener::bind("0.0.0.0:8080").err();
        assert!(
            taken.is_none(),
            "the RBAC manager needs port 8080: {taken:?}"
        );
        let kubeconfig = parts.kubeconfig("rbac-manager").await;
        let mut command = Command::new(core);
        command
            .args(["rbac", "start"])
            .env("KUBECONFIG", kubeconfig);
        Self {
            _manager: Process::start("rbac-manager", &mut command).unwrap(),
            _lock: lock,
        }
    }
}

/// What a template of the chart holds with default values: names filled in, lines of logic left
/// out.
fn rendered(template: &str) -> Vec<Value> {
    let filled = template
        .replace(r#"{{ template "crossplane.name" . }}"#, "crossplane")
        .replace("{{ .Release.Namespace }}", NAMESPACE);
    let plain: Vec<&str> = filled.lines().filter(|l| !l.contains("{{")).collect();
    documents(&plain.join("\n"))
}

/// Waits until the roles that make up core's are put together.
async fn until_may_read_secrets(kubeconfig: &Path) {
    let client = ecp_upstream::client(kubeconfig).await.unwrap();
    let secrets: Api<Secret> = Api::namespaced(client, NAMESPACE);
    let started = Instant::now();
    while let Err(error) = secrets.list(&ListParams::default()).await {
        assert!(started.elapsed() < DEADLINE, "core has no rights: {error}");
        tokio::time::sleep(POLL).await;
    }
}

async fn until_answers(parts: &Parts, url: &str) {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let started = Instant::now();
    loop {
        let answer = http.get(url).send().await;
        if answer.is_ok_and(|answer| answer.status().is_success()) {
            return;
        }
        let late = started.elapsed() > DEADLINE;
        assert!(!late, "{url} does not answer:\n{}", parts.log());
        tokio::time::sleep(POLL).await;
    }
}

/// Makes the API server call core's webhooks where they are, instead of through a Service.
async fn reach_webhooks(client: &Client, port: u16) {
    let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    for configuration in api.list(&ListParams::default()).await.unwrap() {
        let name = configuration.metadata.name.unwrap();
        let count = configuration.webhooks.as_ref().map_or(0, Vec::len);
        for (index, webhook) in configuration.webhooks.iter().flatten().enumerate() {
            let service = webhook.client_config.service.as_ref();
            let path = service.and_then(|s| s.path.as_deref()).unwrap_or_default();
            let config = format!("/webhooks/{index}/clientConfig");
            let patch = json!([
                {"op": "remove", "path": format!("{config}/service")},
                {"op": "add", "path": format!("{config}/url"),
                 "value": format!("https://localhost:{port}{path}")},
            ]);
            let patch = Patch::Json::<()>(serde_json::from_value(patch).unwrap());
            api.patch(&name, &PatchParams::default(), &patch)
                .await
                .unwrap();
        }
        assert!(count > 0, "{name} has no webhooks");
    }
}

/// Writes the data of a Secret into a directory of its name, once it has a certificate.
async fn write_secret(client: &Client, dir: &Path, name: &str) -> PathBuf {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let started = Instant::now();
    let data = loop {
        let found = secrets.get_opt(name).await.unwrap();
        let data = found.and_then(|s| s.data).unwrap_or_default();
        if data.get("tls.crt").is_some_and(|c| !c.0.is_empty()) {
            break data;
        }
        assert!(started.elapsed() < DEADLINE, "Secret {name} stays empty");
        tokio::time::sleep(POLL).await;
    };
    let dir = dir.join(name);
    std::fs::create_dir_all(&dir).unwrap();
    for (key, value) in data {
        std::fs::write(dir.join(key), value.0).unwrap();
    }
    dir
}

/// Builds all packages and pushes them; returns where the manifests are.
fn push_packages(parts: &Parts, registry: &Registry) -> PathBuf {
    let dir = parts.cluster.dir().join("manifests");
    let organisation = format!("{}/eu-sovereign-cloud", registry.address);
    let ecp = |args: &[&str]| {
        let output = Command::new(part("ecp")).args(args).output().unwrap();
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ecp {args:?}: {log}");
    };
    let path = dir.to_str().unwrap();
    ecp(&["manifests", "--out", path, "--registry", &organisation]);
    for package in [
        "function-ecp",
        "provider-ecp",
        "provider-dummy",
        "configuration-ecp",
        "configuration-ecp-claims",
    ] {
        let file = format!("{path}/{package}.xpkg");
        let root = format!("{path}/{package}");
        ecp(&["xpkg", "build", "-f", &root, "-o", &file]);
        let reference = format!("{organisation}/{package}:v0.1.0");
        ecp(&["xpkg", "push", "-f", &file, &reference]);
    }
    dir
}

/// Runs the function and tells its revision where it is.
async fn run_function(parts: &mut Parts, client: &Client) {
    let dir = parts.cluster.dir().to_owned();
    let certificates = function_certificate(client, &dir).await;
    let [port] = free_ports().unwrap();
    let address = format!("127.0.0.1:{port}");
    let certificates = certificates.to_str().unwrap();
    let args = ["--metrics-address", "127.0.0.1:0", "--address", &address];
    let args = [&args[..], &["--tls-certs-dir", certificates]].concat();
    parts.run("function-ecp", None, &args);

    let revision = json!({
        "apiVersion": "pkg.crossplane.io/v1",
        "kind": "FunctionRevision",
        "metadata": {"name": ""},
    });
    let (revisions, _) = parts::api(client, &revision).await;
    let mine = ListParams::default().labels(&format!("pkg.crossplane.io/package={FUNCTION}"));
    let started = Instant::now();
    loop {
        let found = revisions
            .list(&mine)
            .await
            .unwrap()
            .items
            .into_iter()
            .next();
        if let Some(revision) = found {
            // Who writes a status replaces all conditions: with the version that was read.
            let mut conditions = match revision.data["status"]["conditions"].as_array() {
                Some(conditions) => conditions.clone(),
                None => Vec::new(),
            };
            conditions.retain(|c| c["type"] != "RuntimeHealthy");
            conditions.push(json!({
                "type": "RuntimeHealthy",
                "status": "True",
                "reason": "HealthyPackageRuntime",
                "lastTransitionTime": Timestamp::now(),
            }));
            let patch = json!({
                "metadata": {"resourceVersion": revision.metadata.resource_version},
                "status": {
                    "endpoint": format!("dns:///localhost:{port}"),
                    "tlsServerSecretName": format!("{FUNCTION}-tls-server"),
                    "conditions": conditions,
                },
            });
            let name = revision.metadata.name.unwrap();
            let params = PatchParams::default();
            match revisions
                .patch_status(&name, &params, &Patch::Merge(patch))
                .await
            {
                Ok(_) => return,
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => panic!("{name}: {error}"),
            }
        }
        let late = started.elapsed() > DEADLINE;
        assert!(!late, "the function has no revision:\n{}", parts.log());
        tokio::time::sleep(POLL).await;
    }
}

/// A certificate of the function, signed by core's authority; also in the Secret that its
/// revision names.
async fn function_certificate(client: &Client, dir: &Path) -> PathBuf {
    let authority = write_secret(client, dir, "crossplane-root-ca").await;
    let read = |name: &str| std::fs::read_to_string(authority.join(name)).unwrap();
    let (ca, key) = (read("tls.crt"), read("tls.key"));
    let key = rcgen::KeyPair::from_pem(&key).unwrap();
    let issuer = rcgen::Issuer::from_ca_cert_pem(&ca, key).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["localhost".into()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let files = json!({
        "ca.crt": ca,
        "tls.crt": certificate.pem(),
        "tls.key": key.serialize_pem(),
    });
    let name = format!("{FUNCTION}-tls-server");
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "stringData": files,
    });
    apply(client, vec![secret]).await;
    write_secret(client, dir, &name).await
}

/// Runs the pods of Deployments as processes of this machine, and says that they are available.
#[derive(Debug)]
pub(crate) struct Kubelet {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// How often the Deployments are looked at.
const LOOK: Duration = Duration::from_millis(100);

impl Kubelet {
    /// Runs beside the test until dropped.
    fn start(cluster: &Arc<Cluster>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let node = Node {
            cluster: Arc::clone(cluster),
            pods: BTreeMap::new(),
            stop: Arc::clone(&stop),
        };
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_all().build().unwrap();
            runtime.block_on(node.run());
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

struct Node {
    cluster: Arc<Cluster>,
    /// By Deployment.
    pods: BTreeMap<String, Process>,
    stop: Arc<AtomicBool>,
}

impl Node {
    async fn run(mut self) {
        let client = self.cluster.client().await.unwrap();
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
        while !self.stop.load(Ordering::Relaxed) {
            let found = deployments.list(&ListParams::default()).await.unwrap();
            let names: Vec<_> = found.iter().map(|d| d.metadata.name.clone()).collect();
            self.pods
                .retain(|name, _| names.contains(&Some(name.clone())));
            for deployment in found {
                let name = deployment.metadata.name.clone().unwrap();
                if self.pods.contains_key(&name) {
                    continue;
                }
                let Some(pod) = self.pod(&client, &deployment).await else {
                    continue;
                };
                self.pods.insert(name.clone(), pod);
                let status = Patch::Merge(json!({"status": available(&deployment)}));
                let params = PatchParams::default();
                let patched = deployments.patch_status(&name, &params, &status);
                patched.await.unwrap();
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The process of a Deployment's only container; `None` until its ServiceAccount is there.
    async fn pod(&self, client: &Client, deployment: &Deployment) -> Option<Process> {
        let template = &deployment.spec.as_ref()?.template;
        let spec = template.spec.as_ref()?;
        let [container] = &spec.containers[..] else {
            panic!("one container is expected: {spec:?}");
        };
        let labels = template.metadata.as_ref()?.labels.as_ref()?;
        let provider = labels.get("pkg.crossplane.io/provider")?;
        let binary = provider.strip_prefix("eu-sovereign-cloud-")?;
        let account = spec.service_account_name.as_deref()?;
        let kubeconfig = self.cluster.kubeconfig_of(NAMESPACE, account).await.ok()?;
        let mounts = self.mounts(client, spec, container).await;
        let mut command = Command::new(part(binary));
        command
            .args(container.args.iter().flatten())
            .args(["--metrics-address", "127.0.0.1:0"])
            .env("KUBECONFIG", kubeconfig);
        for variable in container.env.iter().flatten() {
            let value = value(variable, labels);
            let value = mounts.get(&value).cloned().unwrap_or(value);
            command.env(&variable.name, value);
        }
        Some(Process::start(binary, &mut command).unwrap())
    }

    /// Directories with the Secrets that are mounted, by mount path.
    async fn mounts(
        &self,
        client: &Client,
        spec: &PodSpec,
        container: &Container,
    ) -> BTreeMap<String, String> {
        let mut mounts = BTreeMap::new();
        for mount in container.volume_mounts.iter().flatten() {
            let volume = spec.volumes.iter().flatten().find(|v| v.name == mount.name);
            let secret = volume.and_then(|v| v.secret.as_ref()?.secret_name.as_deref());
            if let Some(secret) = secret {
                let dir = write_secret(client, self.cluster.dir(), secret).await;
                mounts.insert(mount.mount_path.clone(), dir.to_str().unwrap().to_owned());
            }
        }
        mounts
    }
}

/// The value of a variable: given, or a field of the pod.
fn value(variable: &EnvVar, labels: &BTreeMap<String, String>) -> String {
    let field = || variable.value_from.as_ref()?.field_ref.as_ref();
    let Some(field) = field() else {
        return variable.value.clone().unwrap_or_default();
    };
    match field.field_path.as_str() {
        "metadata.namespace" => NAMESPACE.to_owned(),
        path => {
            let label = path.strip_prefix("metadata.labels['");
            let label = label.and_then(|l| l.strip_suffix("']"));
            let label = label.unwrap_or_else(|| panic!("unknown field {path}"));
            labels.get(label).cloned().unwrap_or_default()
        }
    }
}

fn available(deployment: &Deployment) -> DeploymentStatus {
    DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: Some(1),
        ready_replicas: Some(1),
        available_replicas: Some(1),
        updated_replicas: Some(1),
        conditions: Some(vec![DeploymentCondition {
            type_: "Available".into(),
            status: "True".into(),
            reason: Some("MinimumReplicasAvailable".into()),
            ..DeploymentCondition::default()
        }]),
        ..DeploymentStatus::default()
    }
}
