//! Starts the control plane for tests and talks to it: REST, the Kubernetes API, `kubectl`.
//!
//! It is the real `ecp up`, or, where `ECP_TEST_BACKEND` is `processes`, every part as a process of
//! its own on a real Kubernetes API; where that is `crossplane`, with Crossplane's core, which
//! `ECP_TEST_CROSSPLANE` names, as engine and package manager.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::print_stderr,
    reason = "a skip and the log of a failure must be seen"
)]

mod crossplane;
mod parts;
pub mod scale;

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use parts::Parts;

/// The binary under test, which Cargo names to the integration tests of the package that has it
/// (docs/decisions/0008-binary-under-test.md).
pub fn binary() -> PathBuf {
    part("ecp")
}

/// The binary of a part: `ecp`, `function-ecp` and so on, with the package's suffix.
fn part(name: &str) -> PathBuf {
    let wanted = |(variable, path): (OsString, OsString)| {
        let binary = variable.to_str()?.strip_prefix("CARGO_BIN_EXE_")?;
        let suffix = binary.strip_prefix(name)?;
        ["-for-", "-under-"]
            .iter()
            .any(|s| suffix.starts_with(s))
            .then(|| path.into())
    };
    let found = std::env::vars_os().find_map(wanted);
    found.unwrap_or_else(|| panic!("run by `cargo test`, in a package with a binary {name}-..."))
}

/// Selects the backend: `processes`, `crossplane`, or `ecp up` without it.
const BACKEND: &str = "ECP_TEST_BACKEND";

/// How long any condition may take to come true.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Where the managed resources of regions and SKUs are.
const SYSTEM_NAMESPACE: &str = "secapi-system";

/// Says why a test does not run.
pub fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

/// A running control plane, killed when dropped.
#[derive(Debug)]
pub struct Ecp {
    running: Running,
    /// Its data directory; `kubeconfig` and `token` are in it.
    pub dir: PathBuf,
    _temp: Option<Arc<tempfile::TempDir>>,
    /// Base URL of the REST API, without a trailing slash.
    pub rest: String,
    /// Base URL of the Kubernetes API.
    pub api: String,
    /// The administrator's token.
    pub token: String,
    http: reqwest::Client,
}

/// What runs.
#[derive(Debug)]
enum Running {
    /// `ecp up`, and its log.
    One(Child, Arc<Mutex<String>>),
    /// A process for each part.
    Parts(Parts),
}

/// An answer of the REST API.
#[derive(Debug)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Headers.
    pub headers: reqwest::header::HeaderMap,
    /// The body; a string where it is not JSON.
    pub body: Value,
}

impl Ecp {
    /// Starts in a fresh temporary directory, with options of `ecp up`.
    pub async fn start(args: &[&str]) -> Self {
        match std::env::var(BACKEND).as_deref() {
            Ok("processes") => Self::of_parts(Parts::start(args).await),
            Ok("crossplane") => {
                let ecp = Self::start_on_crossplane(args).await;
                ecp.unwrap_or_else(|| panic!("{BACKEND}: see above"))
            }
            Ok(other) => panic!("{BACKEND}: unknown backend {other:?}"),
            Err(_) => Self::start_embedded(args).await,
        }
    }

    /// Starts `ecp up` in a fresh temporary directory, whatever the backend is.
    pub async fn start_embedded(args: &[&str]) -> Self {
        let temp = Arc::new(tempfile::tempdir().unwrap());
        let mut ecp = Self::start_in(temp.path(), args).await;
        ecp._temp = Some(temp);
        ecp
    }

    /// Starts on Crossplane's core, with options of `ecp up`. `None` where that or Go is not at
    /// hand, which is told.
    pub async fn start_on_crossplane(args: &[&str]) -> Option<Self> {
        let Some(core) = std::env::var_os(crossplane::CORE) else {
            let core = crossplane::CORE;
            skipped(&format!(
                "{core} is not set: nothing was run on Crossplane's core"
            ));
            return None;
        };
        let parts = crossplane::start(core.as_ref(), args).await?;
        Some(Self::of_parts(Some(parts)))
    }

    fn of_parts(parts: Option<Parts>) -> Self {
        let parts = parts.unwrap_or_else(|| panic!("{BACKEND} needs go"));
        let dir = parts.cluster.dir().join("admin");
        std::fs::create_dir(&dir).unwrap();
        std::fs::copy(parts.cluster.kubeconfig(), dir.join("kubeconfig")).unwrap();
        std::fs::write(dir.join("token"), parts.token).unwrap();
        Self {
            dir,
            _temp: None,
            rest: parts.rest.clone(),
            api: parts.cluster.url.clone(),
            token: parts.token.into(),
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            running: Running::Parts(parts),
        }
    }

    /// Starts `ecp up` in a given directory.
    pub async fn start_in(dir: &Path, args: &[&str]) -> Self {
        Self::start_with(Command::new(binary()), dir, args).await
    }

    /// Starts in a given directory, where no file can grow over a number of KiB: a full disk.
    #[cfg(unix)]
    pub async fn start_on_full_disk(dir: &Path, kib: u32) -> Self {
        let mut command = Command::new("sh");
        // A write over the limit is an error then, and no signal. `ulimit` counts in 512 bytes.
        let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$@\"", kib * 2);
        command.args(["-c", &script, "sh"]).arg(binary());
        Self::start_with(command, dir, &[]).await
    }

    async fn start_with(mut command: Command, dir: &Path, args: &[&str]) -> Self {
        let dir = dir.join("data");
        let endpoints = dir.join("endpoints.json");
        // A killed process leaves its endpoints behind.
        drop(std::fs::remove_file(&endpoints));
        let mut child = command
            .args(["up", "--api-port", "0", "--rest-port", "0", "--data-dir"])
            .arg(&dir)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (ready, is_ready) = tokio::sync::oneshot::channel();
        std::thread::spawn({
            let log = log.clone();
            move || {
                let mut ready = Some(ready);
                for line in stderr.lines().map_while(Result::ok) {
                    if line.starts_with("Ctrl-C stops it")
                        && let Some(ready) = ready.take()
                    {
                        ready.send(()).unwrap_or_default();
                    }
                    let mut log = log.lock().unwrap();
                    log.push_str(&line);
                    log.push('\n');
                }
            }
        });
        let started = tokio::time::timeout(DEADLINE, is_ready).await;
        if !matches!(started, Ok(Ok(()))) {
            drop(child.kill());
            panic!("ecp up did not become ready:\n{}", log.lock().unwrap());
        }
        let endpoints: Value =
            serde_json::from_str(&std::fs::read_to_string(endpoints).unwrap()).unwrap();
        let token = std::fs::read_to_string(dir.join("token")).unwrap();
        // Another test of this process may have been first.
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self {
            running: Running::One(child, log),
            dir,
            _temp: None,
            rest: endpoints["rest"].as_str().unwrap().into(),
            api: endpoints["api"].as_str().unwrap().into(),
            token: token.trim().into(),
            http,
        }
    }

    /// What it has printed so far.
    pub fn log(&self) -> String {
        match &self.running {
            Running::One(_, log) => log.lock().unwrap().clone(),
            Running::Parts(parts) => parts.log(),
        }
    }

    /// Whether it is `ecp up`, all in one process.
    pub fn is_embedded(&self) -> bool {
        matches!(self.running, Running::One(..))
    }

    /// The process of `ecp up`.
    fn child(&mut self) -> &mut Child {
        match &mut self.running {
            Running::One(child, _) => child,
            Running::Parts(_) => panic!("only `ecp up` is one process"),
        }
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.child().kill().unwrap();
        self.child().wait().unwrap();
    }

    /// Ctrl-C, and the exit status.
    pub fn interrupt(mut self) -> std::process::ExitStatus {
        let pid = self.child().id().to_string();
        assert!(
            Command::new("kill")
                .args(["-INT", &pid])
                .status()
                .unwrap()
                .success()
        );
        self.ended()
    }

    /// Waits until it has ended.
    pub fn ended(&mut self) -> std::process::ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child().try_wait().unwrap() {
                return status;
            }
            assert!(
                started.elapsed() < DEADLINE,
                "did not stop:\n{}",
                self.log()
            );
            std::thread::yield_now();
        }
    }

    /// A REST call with the admin's token.
    pub async fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let mut request = self.request(method, path).bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.json(body);
        }
        Self::send(request).await
    }

    /// A REST call without a token or body.
    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let url = format!("{}/providers/{path}", self.rest);
        self.http.request(method, url).timeout(DEADLINE)
    }

    /// Sends a prepared request.
    pub async fn send(request: reqwest::RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Answer {
            status,
            headers,
            body,
        }
    }

    /// A GET with the admin's token.
    pub async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, None).await
    }

    /// A PUT of a spec with the admin's token.
    pub async fn put(&self, path: &str, spec: Value) -> Answer {
        self.call("PUT", path, Some(&json!({ "spec": spec }))).await
    }

    /// A DELETE with the admin's token.
    pub async fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path, None).await
    }

    /// Reads until a condition holds.
    pub async fn until(&self, path: &str, what: &str, holds: impl Fn(&Answer) -> bool) -> Answer {
        let started = Instant::now();
        loop {
            let answer = self.get(path).await;
            if holds(&answer) {
                return answer;
            }
            assert!(
                started.elapsed() < DEADLINE,
                "{path}: not {what}: {answer:#?}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Reads until the state is `active`.
    pub async fn until_active(&self, path: &str) -> Value {
        let active = |a: &Answer| a.body["status"]["state"] == "active";
        self.until(path, "active", active).await.body
    }

    /// Reads until there is nothing.
    pub async fn until_gone(&self, path: &str) {
        self.until(path, "gone", |a| a.status == 404).await;
    }

    /// What [`scale::fill`] needs to know of it.
    pub fn plane(&self) -> scale::Plane {
        let Running::One(child, _) = &self.running else {
            panic!("only `ecp up` is one process");
        };
        let ca = std::fs::read(self.dir.join("pki/ca.crt")).unwrap();
        let mut headers = reqwest::header::HeaderMap::new();
        let bearer = format!("Bearer {}", self.token);
        headers.insert("authorization", bearer.parse().unwrap());
        let http = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([reqwest::Certificate::from_pem(&ca).unwrap()])
            .default_headers(headers);
        scale::Plane {
            http: http.build().unwrap(),
            rest: self.rest.clone(),
            api: self.api.clone(),
            pid: child.id(),
        }
    }

    /// A client for the Kubernetes API, from the kubeconfig on disk.
    pub async fn kube(&self) -> kube::Client {
        let file = self.dir.join("kubeconfig");
        let config = kube::config::Kubeconfig::read_from(file).unwrap();
        let options = kube::config::KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(config, &options).await;
        kube::Client::try_from(config.unwrap()).unwrap()
    }

    /// A raw GET of the Kubernetes API.
    pub async fn raw(&self, path: &str) -> Value {
        let request = http_request("GET", path, Vec::new());
        self.kube().await.request(request).await.unwrap()
    }

    /// A JSON merge patch through the Kubernetes API.
    pub async fn merge(&self, path: &str, patch: &Value) -> Value {
        let mut request = http_request("PATCH", path, serde_json::to_vec(patch).unwrap());
        let json = "application/merge-patch+json".parse().unwrap();
        request.headers_mut().insert("content-type", json);
        self.kube().await.request(request).await.unwrap()
    }

    /// The items of a list, everywhere.
    pub async fn items(&self, group: &str, plural: &str) -> Vec<Value> {
        let list = self.raw(&format!("/apis/{group}/{plural}")).await;
        list["items"].as_array().unwrap().clone()
    }

    /// Waits until a list has this many items, everywhere.
    pub async fn until_items(&self, group: &str, plural: &str, count: usize) {
        let started = Instant::now();
        loop {
            let items = self.items(group, plural).await;
            if items.len() == count {
                return;
            }
            assert!(started.elapsed() < DEADLINE, "{plural}: {items:#?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until there is an event with a reason.
    pub async fn until_event(&self, reason: &str) {
        let started = Instant::now();
        while !self
            .raw("/api/v1/events")
            .await
            .to_string()
            .contains(reason)
        {
            assert!(started.elapsed() < DEADLINE, "no event {reason}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// All managed resources that users' resources made, of every kind that is served.
    pub async fn managed(&self) -> Vec<String> {
        let mut found = Vec::new();
        for group in [
            "dummy.m.secapi.cloud/v1alpha1",
            "ecp.m.secapi.cloud/v1alpha1",
        ] {
            let served = self.raw(&format!("/apis/{group}")).await;
            for resource in served["resources"].as_array().unwrap() {
                let categories = resource["categories"].as_array();
                if !categories.is_some_and(|c| c.contains(&"managed".into())) {
                    continue;
                }
                let plural = resource["name"].as_str().unwrap();
                let items = self.items(group, plural).await.into_iter();
                found.extend(
                    items
                        .filter(|i| i["metadata"]["namespace"] != SYSTEM_NAMESPACE)
                        .map(|i| format!("{plural}/{}", i["metadata"]["name"].as_str().unwrap())),
                );
            }
        }
        found
    }

    /// `kubectl` with the admin's kubeconfig; `None` when this machine has none.
    pub fn kubectl(&self, args: &[&str]) -> Option<Output> {
        self.kubectl_with(args, None)
    }

    /// `kubectl` with text on its standard input.
    pub fn kubectl_with(&self, args: &[&str], input: Option<&str>) -> Option<Output> {
        use std::io::Write as _;
        let kubectl = std::env::var("ECP_TEST_KUBECTL").unwrap_or_else(|_| "kubectl".into());
        let child = Command::new(kubectl)
            .arg("--kubeconfig")
            .arg(self.dir.join("kubeconfig"))
            .args(args)
            .env("HOME", &self.dir)
            .stdin(if input.is_some() {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else {
            skipped("no kubectl in PATH (or ECP_TEST_KUBECTL)");
            return None;
        };
        if let Some(input) = input {
            child
                .stdin
                .take()
                .unwrap()
                .write_all(input.as_bytes())
                .unwrap();
        }
        let output = child.wait_with_output().unwrap();
        Some(Output {
            ok: output.status.success(),
            out: String::from_utf8_lossy(&output.stdout).into(),
            err: String::from_utf8_lossy(&output.stderr).into(),
        })
    }
}

impl Drop for Ecp {
    fn drop(&mut self) {
        if let Running::One(child, _) = &mut self.running {
            drop(child.kill());
            drop(child.wait());
        }
        if std::thread::panicking() {
            eprintln!("--- log of the control plane\n{}", self.log());
        }
    }
}

/// What a command printed.
#[derive(Debug)]
pub struct Output {
    /// Whether its exit status was 0.
    pub ok: bool,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Output {
    /// Its standard output, when it succeeded.
    pub fn done(self) -> String {
        assert!(self.ok, "{}{}", self.out, self.err);
        self.out
    }
}

fn http_request(method: &str, path: &str, body: Vec<u8>) -> http::Request<Vec<u8>> {
    http::Request::builder()
        .method(method)
        .uri(path)
        .body(body)
        .unwrap()
}

/// The states of a resource's SECA conditions, newest first.
pub fn states(document: &Value) -> Vec<&str> {
    let conditions = document["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .filter_map(|c| c["state"].as_str())
        .collect()
}

/// Path of the workspaces of tenant `acme`.
pub const ACME: &str = "seca.workspace/v1/tenants/acme/workspaces";

/// Path of a workspace of tenant `acme`.
pub fn workspace(name: &str) -> String {
    format!("{ACME}/{name}")
}

/// Path of a block storage of tenant `acme`.
pub fn volume(workspace: &str, name: &str) -> String {
    format!("seca.storage/v1/tenants/acme/workspaces/{workspace}/block-storages/{name}")
}

/// Spec of a block storage.
pub fn volume_spec(size: i64) -> Value {
    json!({ "sizeGB": size, "skuRef": { "resource": "skus/RD500" } })
}
