//! `ecp up` as a process: files, restarts, signals.

use std::process::{Command, Stdio};

use serde_json::json;

use ecp_harness::{Ecp, states, volume, volume_spec, workspace};

#[tokio::test]
async fn a_second_start_finds_the_data_and_ctrl_c_stops_cleanly() {
    let temp = tempfile::tempdir().unwrap();
    let ecp = Ecp::start_in(temp.path(), &[]).await;
    #[cfg(unix)]
    for file in ["kubeconfig", "token", "endpoints.json", "store.redb"] {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(ecp.dir.join(file))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{file} has mode {mode:o}");
    }
    ecp.put(&workspace("prod"), json!({})).await;
    ecp.until_active(&workspace("prod")).await;
    ecp.put(&volume("prod", "disk-1"), volume_spec(10)).await;
    let before = ecp.until_active(&volume("prod", "disk-1")).await;
    let token = ecp.token.clone();

    let second = Command::new(ecp_harness::binary())
        .args(["up", "--api-port", "0", "--rest-port", "0", "--data-dir"])
        .arg(&ecp.dir)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(!second.status.success());
    let told = String::from_utf8_lossy(&second.stderr);
    assert!(told.contains("in use by another process"), "{told}");

    assert!(ecp.interrupt().success());
    let ecp = Ecp::start_in(temp.path(), &[]).await;
    assert_eq!(ecp.token, token);
    let after = ecp.until_active(&volume("prod", "disk-1")).await;
    assert_eq!(states(&after), states(&before));
    assert_eq!(after["metadata"], before["metadata"]);
}

#[tokio::test]
async fn insecure_dev_asks_for_no_token_and_says_so() {
    let ecp = Ecp::start_embedded(&["--ephemeral", "--insecure-dev"]).await;
    let answer = Ecp::send(ecp.request("GET", "seca.region/v1/regions")).await;
    assert_eq!(answer.status, 200);
    assert!(
        ecp.log().contains("warning: --insecure-dev"),
        "{}",
        ecp.log()
    );
    assert!(ecp.rest.starts_with("http://127.0.0.1:"));
    assert!(ecp.api.starts_with("https://127.0.0.1:"));
    if let Some(regions) = ecp.kubectl(&["get", "regions"]) {
        assert!(regions.ok, "{}", regions.err);
    }
}

#[tokio::test]
async fn the_demo_applies_the_first_example() {
    let ecp = Ecp::start_embedded(&["--ephemeral", "--demo"]).await;
    let list = ecp
        .get("seca.workspace/v1/tenants/acme/workspaces")
        .await
        .body;
    assert!(!list["items"].as_array().unwrap().is_empty(), "{list:#}");
}

/// Runs `ecp up` with arguments until it ends by itself, and returns what it printed.
fn refused(dir: &std::path::Path, args: &[&str]) -> String {
    let output = Command::new(ecp_harness::binary())
        .args(["up", "--data-dir"])
        .arg(dir)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[tokio::test]
async fn a_quiet_start_logs_nothing() {
    let ecp = Ecp::start_embedded(&["--demo"]).await;
    let log = ecp.log();
    let logged: Vec<&str> = log.lines().filter(|line| line.contains("level")).collect();
    assert!(logged.is_empty(), "{logged:#?}");
}

#[test]
fn what_cannot_start_says_why_and_what_to_do() {
    let temp = tempfile::tempdir().unwrap();
    let free = ["--api-port", "0", "--rest-port", "0"];

    let file = temp.path().join("file");
    std::fs::write(&file, "").unwrap();
    let told = refused(&file, &free);
    assert!(told.contains("file is not a directory"), "{told}");

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let told = refused(
        &temp.path().join("port"),
        &["--api-port", &port, "--rest-port", "0"],
    );
    assert!(
        told.contains(&format!("listening on 127.0.0.1:{port}")),
        "{told}"
    );
    assert!(told.contains("\nhint: --api-port PORT"), "{told}");
    assert!(!temp.path().join("port/store.redb").exists());

    let told = refused(&temp.path().join("name"), &["--region", "Bad Name!"]);
    assert!(
        told.contains("invalid value 'Bad Name!' for '--region"),
        "{told}"
    );
    assert!(!temp.path().join("name").exists());
}

#[test]
fn a_log_filter_that_makes_no_sense_is_told() {
    let output = Command::new(ecp_harness::binary())
        .args(["manifests", "--out"])
        .arg(tempfile::tempdir().unwrap().path().join("out"))
        .env("RUST_LOG", "ecp=loud")
        .output()
        .unwrap();
    assert!(output.status.success());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.starts_with("warning: RUST_LOG is ignored: "), "{told}");
}

#[tokio::test]
async fn the_endpoints_of_a_killed_process_are_forgotten_by_the_next_start() {
    let temp = tempfile::tempdir().unwrap();
    let ecp = Ecp::start_in(temp.path(), &[]).await;
    let dir = ecp.dir.clone();
    ecp.kill();
    assert!(dir.join("endpoints.json").exists());
    std::fs::write(dir.join("pki/ca.pem"), "damaged").unwrap();
    let told = refused(&dir, &["--api-port", "0", "--rest-port", "0"]);
    assert!(told.contains("ca.pem is damaged"), "{told}");
    assert!(!dir.join("endpoints.json").exists());
}

#[tokio::test]
async fn a_data_directory_keeps_its_flavour() {
    let temp = tempfile::tempdir().unwrap();
    let ecp = Ecp::start_in(temp.path(), &[]).await;
    let dir = ecp.dir.clone();
    assert!(ecp.interrupt().success());
    let args = ["--flavour", "claims", "--api-port", "0", "--rest-port", "0"];
    let told = refused(&dir, &args);
    assert!(told.contains("of flavour v2"), "{told}");
    assert!(told.contains("\nhint: start with --flavour v2"), "{told}");
    assert!(!told.contains("Status {"), "{told}");
    Ecp::start_in(temp.path(), &[]).await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_full_disk_ends_the_process_and_loses_nothing() {
    use k8s_openapi::api::core::v1::ConfigMap;

    let temp = tempfile::tempdir().unwrap();
    let mut ecp = Ecp::start_on_full_disk(temp.path(), 8192).await;
    let maps: kube::Api<ConfigMap> = kube::Api::namespaced(ecp.kube().await, "default");
    let map = |n: usize| -> ConfigMap {
        let data = json!({"key": "x".repeat(200_000)});
        let name = format!("map-{n}");
        serde_json::from_value(json!({"metadata": {"name": name}, "data": data})).unwrap()
    };
    let mut kept = 0;
    while maps.create(&Default::default(), &map(kept)).await.is_ok() {
        kept += 1;
        assert!(kept < 100, "the disk is never full");
    }
    assert!(!ecp.ended().success());
    let log = ecp.log();
    assert!(log.contains("a write to disk failed"), "{log}");
    assert!(log.contains("\nhint: all that was acknowledged"), "{log}");
    assert!(!ecp.dir.join("endpoints.json").exists());

    let ecp = Ecp::start_in(temp.path(), &[]).await;
    let maps: kube::Api<ConfigMap> = kube::Api::namespaced(ecp.kube().await, "default");
    for n in 0..kept {
        assert!(
            maps.get(&format!("map-{n}")).await.is_ok(),
            "map-{n} of {kept}"
        );
    }
    assert!(
        maps.create(&Default::default(), &map(kept + 1))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn every_part_is_measured_and_says_that_it_is_healthy() {
    let ecp = Ecp::start_embedded(&["--ephemeral"]).await;
    let metrics = ecp.kubectl(&["get", "--raw", "/metrics"]);
    if let Some(metrics) = metrics.map(ecp_harness::Output::done) {
        for name in [
            "apiserver_request_total",
            "crossplane_managed_resource_exists",
            "ecp_store_revision",
        ] {
            assert!(metrics.contains(name), "{name}: {metrics}");
        }
    }
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    for path in ["healthz", "livez", "readyz", "metrics"] {
        let answer = http
            .get(format!("{}/{path}", ecp.rest))
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 200, "{path}");
    }
}
