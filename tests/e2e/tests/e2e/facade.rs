//! `ecp facade`: the REST API in a process of its own, over the Kubernetes API of another one.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Instant;

use serde_json::{Value, json};

use ecp_harness::{ACME, Answer, DEADLINE, Ecp, binary, workspace};

const ROLES: &str = "seca.authorization/v1/tenants/acme/roles";
const ASSIGNMENTS: &str = "seca.authorization/v1/tenants/acme/role-assignments";

/// A running `ecp facade`, killed when dropped.
struct Facade {
    child: Child,
    url: String,
    http: reqwest::Client,
}

impl Drop for Facade {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Facade {
    /// Starts one over the Kubernetes API of an `ecp up`, and waits until it is ready.
    fn start(ecp: &Ecp, args: &[&str]) -> Self {
        let mut child = Command::new(binary())
            .args(["facade", "--listen", "127.0.0.1:0", "--kubeconfig"])
            .arg(ecp.dir.join("kubeconfig"))
            .arg("--admin-token-file")
            .arg(ecp.dir.join("token"))
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (ready, is_ready) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if let Some(url) = line.strip_prefix("the SECA REST API is ready at ") {
                    ready.send(url.to_owned()).unwrap_or_default();
                }
            }
        });
        let ca = std::fs::read(ecp.dir.join("pki/ca.crt")).unwrap();
        let ca = reqwest::Certificate::from_pem(&ca).unwrap();
        let http = reqwest::Client::builder().no_proxy().tls_certs_only([ca]);
        Self {
            child,
            url: is_ready.recv_timeout(DEADLINE).unwrap(),
            http: http.build().unwrap(),
        }
    }

    async fn call(&self, token: &str, method: &str, path: &str, body: &Value) -> Answer {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let url = format!("{}/providers/{path}", self.url);
        let request = self.http.request(method, url).timeout(DEADLINE);
        Ecp::send(request.bearer_auth(token).json(body)).await
    }

    async fn get(&self, token: &str, path: &str) -> Answer {
        self.call(token, "GET", path, &Value::Null).await
    }

    /// The APIs that discovery names.
    async fn providers(&self) -> Vec<String> {
        let request = self.http.get(format!("{}/.wellknown/secapi", self.url));
        let told = Ecp::send(request.timeout(DEADLINE)).await.body;
        let endpoints = told["endpoints"].as_array().unwrap().iter();
        endpoints
            .map(|endpoint| {
                let url = endpoint["url"].as_str().unwrap();
                assert!(url.starts_with(&self.url), "{url}");
                endpoint["provider"].as_str().unwrap().to_owned()
            })
            .collect()
    }
}

#[tokio::test]
async fn global_and_regional_apis_are_processes_over_one_control_plane() {
    let ecp = Ecp::start_embedded(&["--ephemeral"]).await;
    let users = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(users.path(), "alices-token,alice\n").unwrap();
    let users = ["--users", users.path().to_str().unwrap()];
    let pem = ecp.dir.join("pki/server.pem");
    let pem = pem.to_str().unwrap();
    let tls = ["--tls-cert", pem, "--tls-key", pem];
    let global = Facade::start(&ecp, &[&["--serve", "global"], &users[..]].concat());
    let regional = ["--serve", "regional", "--region", "region-1"];
    let regional = Facade::start(&ecp, &[&regional[..], &users, &tls].concat());
    assert!(global.url.starts_with("http://"), "{}", global.url);
    assert!(regional.url.starts_with("https://"), "{}", regional.url);
    assert_eq!(
        global.providers().await,
        ["seca.authorization/v1", "seca.region/v1"]
    );
    let served = regional.providers().await;
    assert!(served.contains(&"seca.workspace/v1".into()), "{served:?}");
    assert!(!served.contains(&"seca.region/v1".into()), "{served:?}");

    // What one takes, the others have.
    let admin = ecp.token.as_str();
    let made = regional
        .call(admin, "PUT", &workspace("prod"), &json!({}))
        .await;
    assert_eq!(made.status, 201, "{made:#?}");
    ecp.until_active(&workspace("prod")).await;
    for (facade, path) in [(&global, ACME), (&regional, ROLES)] {
        let elsewhere = facade.get(admin, path).await;
        assert_eq!(elsewhere.status, 404, "{elsewhere:#?}");
        let detail = elsewhere.body["detail"].as_str().unwrap();
        assert!(detail.contains("APIs only"), "{detail}");
    }

    // A role that one takes holds in the other.
    assert_eq!(regional.get("no-token", ACME).await.status, 401);
    assert_eq!(regional.get("alices-token", ACME).await.status, 403);
    let role = json!({ "spec": { "permissions": [
        { "provider": "seca.workspace", "resources": ["workspaces"], "verb": ["list"] },
    ] } });
    let assignment = json!({ "spec": { "subs": ["alice"], "roles": ["r"], "scopes": [{}] } });
    for (path, body) in [(ROLES, role), (ASSIGNMENTS, assignment)] {
        let path = format!("{path}/r");
        let made = global.call(admin, "PUT", &path, &body).await;
        assert_eq!(made.status, 201, "{made:#?}");
    }
    let started = Instant::now();
    let list = loop {
        let list = regional.get("alices-token", ACME).await;
        if list.status != 403 {
            break list;
        }
        assert!(started.elapsed() < DEADLINE, "{list:#?}");
        tokio::task::yield_now().await;
    };
    assert_eq!(list.body["items"][0]["metadata"]["name"], "prod");
    let other = regional.get("alices-token", &workspace("prod")).await;
    assert_eq!(other.status, 403, "{other:#?}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_facade_that_is_told_to_stop_stops_and_its_control_plane_goes_on() {
    let ecp = Ecp::start_embedded(&["--ephemeral"]).await;
    let mut facade = Facade::start(&ecp, &["--region", "region-1"]);
    let pid = facade.child.id().to_string();
    let told = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    assert!(told.success());
    let started = Instant::now();
    let ended = loop {
        if let Some(status) = facade.child.try_wait().unwrap() {
            break status;
        }
        assert!(started.elapsed() < DEADLINE, "did not stop");
        std::thread::yield_now();
    };
    assert!(ended.success(), "{ended}");
    assert_eq!(ecp.get("seca.region/v1/regions").await.status, 200);
}
