//! A running server, and calls to it.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use ecp_harness::{DEADLINE, Ecp};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde_json::Value;

use crate::openapi::{OpenApi, Seen};

/// Regions of every server; the first is the default one.
pub(crate) const REGIONS: [&str; 2] = ["region-1", "region-2"];
/// Users whom every server knows, with their tokens.
pub(crate) const USERS: [(&str, &str); 2] = [
    ("token-of-alice", "alice@example.com"),
    ("token-of-bob", "bob@example.com"),
];

/// Status codes of refusals (contract, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    Conformance,
    Spec,
}

/// What becomes of a reference that names nothing (contract, section 3.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Reject,
    Defer,
}

/// What one server is started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    pub(crate) profile: Profile,
    pub(crate) policy: Policy,
}

impl Mode {
    pub(crate) const ALL: [Self; 4] = [
        Self::of(Profile::Conformance, Policy::Reject),
        Self::of(Profile::Spec, Policy::Defer),
        Self::of(Profile::Conformance, Policy::Defer),
        Self::of(Profile::Spec, Policy::Reject),
    ];

    const fn of(profile: Profile, policy: Policy) -> Self {
        Self { profile, policy }
    }

    /// The values of the options of `ecp up`.
    pub(crate) fn options(self) -> [&'static str; 2] {
        let profile = match self.profile {
            Profile::Conformance => "conformance",
            Profile::Spec => "spec",
        };
        let policy = match self.policy {
            Policy::Reject => "reject",
            Policy::Defer => "defer",
        };
        [profile, policy]
    }
}

/// Why a request is refused; the profile gives the status code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The content breaks a constraint.
    Invalid,
    /// A reference names nothing.
    Reference,
    /// The workspace or network of the path is missing.
    Parent,
    /// The state forbids it.
    Conflict,
}

/// A running server.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) ecp: Ecp,
    pub(crate) mode: Mode,
    _users: tempfile::NamedTempFile,
    openapi: OpenApi,
    http: reqwest::Client,
    tenants: AtomicU32,
}

impl World {
    pub(crate) async fn start(mode: Mode) -> Self {
        let users = tempfile::NamedTempFile::new().unwrap();
        let lines = USERS.map(|(token, subject)| format!("{token},{subject}\n"));
        std::fs::write(users.path(), lines.concat()).unwrap();
        let [profile, policy] = mode.options();
        let mut args = vec!["--ephemeral", "--profile", profile, "--references", policy];
        args.extend(["--users", users.path().to_str().unwrap()]);
        args.extend(REGIONS.iter().flat_map(|region| ["--region", region]));
        let ecp = Ecp::start(&args).await;
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let document = http.get(format!("{}/openapi.json", ecp.rest)).send().await;
        let document: Value = document.unwrap().json().await.unwrap();
        Self {
            ecp,
            mode,
            _users: users,
            openapi: OpenApi::new(document),
            http,
            tenants: AtomicU32::new(1),
        }
    }

    /// A tenant that nobody else uses.
    pub(crate) fn tenant(&self) -> String {
        format!("tenant-{}", self.tenants.fetch_add(1, Ordering::Relaxed))
    }

    /// The status code of a refusal.
    pub(crate) fn code(&self, refusal: Refusal) -> u16 {
        match (self.mode.profile, refusal) {
            (Profile::Conformance, _) => 412,
            (Profile::Spec, Refusal::Invalid | Refusal::Reference) => 422,
            (Profile::Spec, Refusal::Parent) => 404,
            (Profile::Spec, Refusal::Conflict) => 409,
        }
    }

    /// A call as the administrator.
    pub(crate) fn call(&self, method: &str, path: &str) -> Call<'_> {
        Call {
            world: self,
            method: method.into(),
            path: path.into(),
            token: Some(self.ecp.token.clone()),
            headers: Vec::new(),
            body: None,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call("GET", path).send().await
    }

    /// A PUT that waits until the resource has settled.
    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        let call = self.call("PUT", path).header("prefer", "wait=20");
        call.json(body).send().await
    }

    /// A DELETE that waits until the resource is gone.
    pub(crate) async fn delete(&self, path: &str) -> Answer {
        let call = self.call("DELETE", path);
        call.header("prefer", "wait=20").send().await
    }

    /// Reads until a condition holds.
    pub(crate) async fn until(
        &self,
        path: &str,
        what: &str,
        holds: impl Fn(&Answer) -> bool,
    ) -> Answer {
        let started = Instant::now();
        loop {
            let answer = self.get(path).await;
            if holds(&answer) {
                return answer;
            }
            assert!(started.elapsed() < DEADLINE, "not {what}: {answer:#?}");
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn until_active(&self, path: &str) -> Value {
        let active = |a: &Answer| a.body["status"]["state"] == "active";
        self.until(path, "active", active).await.body
    }

    pub(crate) async fn until_gone(&self, path: &str) {
        self.until(path, "gone", |a| a.status == 404).await;
    }

    /// All items of a list, page by page.
    pub(crate) async fn all(&self, path: &str, query: &str) -> Vec<Value> {
        let (mut items, mut token) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("{path}?{query}{token}")).await.ok(200);
            let shown = page["items"].as_array().unwrap();
            items.extend(shown.iter().cloned());
            let Some(next) = page["metadata"].get("skipToken") else {
                return items;
            };
            // Clients stop at an empty page, and ask for ever with an empty token (section 1.7).
            assert!(!shown.is_empty(), "an empty page with a token");
            assert_ne!(next, "", "{page:#}");
            token = format!("&skipToken={}", next.as_str().unwrap());
        }
    }
}

/// A request that is being put together.
#[derive(Debug)]
pub(crate) struct Call<'w> {
    world: &'w World,
    method: String,
    path: String,
    token: Option<String>,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Call<'_> {
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn token(mut self, token: &str) -> Self {
        self.token = Some(token.into());
        self
    }

    pub(crate) fn anonymous(mut self) -> Self {
        self.token = None;
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json")
            .bytes(body.to_string())
    }

    pub(crate) fn bytes(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Sends it, and holds the answer against the contract of all answers.
    pub(crate) async fn send(self) -> Answer {
        let method = reqwest::Method::from_bytes(self.method.as_bytes()).unwrap();
        let url = format!("{}{}", self.world.ecp.rest, self.path);
        let mut request = self.world.http.request(method, url).timeout(DEADLINE);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let Some(body) = self.body {
            request = request.body(body);
        }
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.unwrap();
        let path = self.path.split('?').next().unwrap_or_default();
        let media = headers
            .get(CONTENT_TYPE)
            .map_or("", |v| v.to_str().unwrap());
        let seen = Seen {
            method: &self.method,
            path,
            status,
            media,
            text: &text,
        };
        self.world.openapi.check(&seen);
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        let answer = Answer {
            call: format!("{} {}", self.method, self.path),
            status,
            headers,
            body,
        };
        assert!(status < 500, "{answer:#?}");
        if status >= 400 && self.method != "HEAD" {
            answer.is_a_problem(path);
        }
        answer
    }
}

/// What was answered.
pub(crate) struct Answer {
    pub(crate) call: String,
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// The body; a string where it is not JSON.
    pub(crate) body: Value,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.call, self.status)?;
        for (name, value) in &self.headers {
            writeln!(f, "{name}: {value:?}")?;
        }
        write!(f, "{:#}", self.body)
    }
}

impl Answer {
    /// The body of an answer that must have this status code.
    pub(crate) fn ok(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:#?}");
        self.body
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|v| v.to_str().unwrap())
    }

    /// The places at fault: pointers and parameters.
    pub(crate) fn sources(&self) -> Vec<&str> {
        let sources = self.body["sources"].as_array().into_iter().flatten();
        sources
            .flat_map(|s| [s["pointer"].as_str(), s["parameter"].as_str()])
            .flatten()
            .filter(|text| !text.is_empty())
            .collect()
    }

    /// The shape of every refusal (contract, section 1.5).
    fn is_a_problem(&self, path: &str) {
        let (body, told) = (&self.body, format!("{self:#?}"));
        assert_eq!(body["status"], self.status, "{told}");
        let kind = match self.status {
            400 => "invalid-request",
            401 => "unauthorized",
            403 => "forbidden",
            404 => "resource-not-found",
            405 => "method-not-allowed",
            406 => "not-acceptable",
            409 => "resource-conflict",
            412 => "precondition-failed",
            413 => "content-too-large",
            415 => "unsupported-media-type",
            422 => "validation-error",
            429 => "too-many-requests",
            other => panic!("{other} is no refusal of the contract: {told}"),
        };
        assert_eq!(
            body["type"],
            format!("http://secapi.cloud/errors/{kind}"),
            "{told}"
        );
        for (field, max) in [("title", 1024), ("detail", 32768), ("instance", 256)] {
            let text = body[field].as_str().unwrap_or_default();
            assert!((1..=max).contains(&text.chars().count()), "{field}: {told}");
        }
        let shown: String = path.chars().take(256).collect();
        assert_eq!(body["instance"], shown, "{told}");
        for source in body["sources"].as_array().unwrap() {
            let pointer = source["pointer"].as_str().unwrap();
            assert!(pointer.is_empty() || pointer.starts_with('/'), "{told}");
            assert!(pointer.chars().count() <= 256, "{told}");
            assert!(source["parameter"].as_str().unwrap().len() <= 64, "{told}");
        }
    }
}
