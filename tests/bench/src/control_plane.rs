//! A running `ecp up`.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use ecp_harness::scale::Plane;
use serde_json::Value;

/// A running `ecp up`, and how to reach it.
pub(crate) struct ControlPlane {
    child: Child,
    /// From exec to the line that says it is ready.
    pub(crate) start: Duration,
    pub(crate) api: String,
    pub(crate) rest: String,
    pub(crate) http: reqwest::Client,
}

impl ControlPlane {
    /// Starts the binary and waits until it is ready.
    ///
    /// # Errors
    /// It cannot be started, or ends before it is ready.
    pub(crate) fn start(ecp: &Path, dir: &Path) -> anyhow::Result<Self> {
        let started = Instant::now();
        let mut child = Command::new(ecp)
            .args(["up", "--api-port", "0", "--rest-port", "0", "--data-dir"])
            .arg(dir)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", ecp.display()))?;
        let mut stderr = BufReader::new(child.stderr.take().context("no stderr")?);
        let (mut line, mut log) = (String::new(), String::new());
        loop {
            line.clear();
            if stderr.read_line(&mut line)? == 0 {
                bail!("ecp up ended before it was ready:\n{log}");
            }
            if line.contains("ready after") {
                break;
            }
            log.push_str(&line);
        }
        let start = started.elapsed();
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        let file = |name: &str| -> anyhow::Result<String> {
            let path: PathBuf = dir.join(name);
            std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
        };
        let endpoints: Value = serde_json::from_str(&file("endpoints.json")?)?;
        let url = |name: &str| endpoints[name].as_str().unwrap_or_default().to_owned();
        let ca = reqwest::Certificate::from_pem(file("pki/ca.crt")?.as_bytes())?;
        let mut headers = reqwest::header::HeaderMap::new();
        let bearer = format!("Bearer {}", file("token")?.trim());
        headers.insert("authorization", bearer.parse()?);
        let http = reqwest::Client::builder()
            .no_proxy()
            .http1_only()
            .tls_certs_only([ca])
            .default_headers(headers)
            .build()?;
        Ok(Self {
            child,
            start,
            api: url("api"),
            rest: url("rest"),
            http,
        })
    }

    /// Resident memory, in MiB.
    ///
    /// # Errors
    /// The process is gone, or this is no Linux.
    pub(crate) fn resident_mib(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status
            .lines()
            .find(|l| l.starts_with("VmRSS:"))
            .context("no VmRSS")?;
        let kib: f64 = line
            .split_whitespace()
            .nth(1)
            .context("no VmRSS value")?
            .parse()?;
        Ok(kib / 1024.0)
    }

    /// What the load of many resources needs to know of it.
    pub(crate) fn plane(&self) -> Plane {
        Plane {
            http: self.http.clone(),
            rest: self.rest.clone(),
            api: self.api.clone(),
            pid: self.child.id(),
        }
    }

    /// Stops it with SIGTERM and waits.
    ///
    /// # Errors
    /// It does not stop well.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        let pid = self.child.id().to_string();
        ensure!(
            Command::new("kill").arg(&pid).status()?.success(),
            "kill failed"
        );
        ensure!(self.child.wait()?.success(), "ecp up did not stop well");
        Ok(())
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Sends a request and reads the answer.
///
/// # Errors
/// It cannot be sent, or the answer is no success.
pub(crate) async fn send(request: reqwest::RequestBuilder) -> anyhow::Result<bytes::Bytes> {
    let response = request.send().await?;
    let status = response.status();
    let url = response.url().clone();
    let body = response.bytes().await?;
    ensure!(
        status.is_success(),
        "{url}: {status}: {}",
        String::from_utf8_lossy(&body)
    );
    Ok(body)
}
