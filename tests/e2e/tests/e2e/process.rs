//! `ecp up` as a process: files, restarts, signals.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::harness::{Ecp, states, volume, volume_spec, workspace};

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

    let second = Command::new(env!("CARGO_BIN_EXE_ecp-under-test"))
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
    let ecp = Ecp::start(&["--ephemeral", "--insecure-dev"]).await;
    let answer = Ecp::send(ecp.request("GET", "seca.region/v1/regions")).await;
    assert_eq!(answer.status, 200);
    assert!(
        ecp.log().contains("warning: --insecure-dev"),
        "{}",
        ecp.log()
    );
    assert!(ecp.rest.starts_with("http://127.0.0.1:"));
    assert!(ecp.api.starts_with("https://127.0.0.1:"));
}

#[tokio::test]
async fn the_demo_applies_the_first_example() {
    let ecp = Ecp::start(&["--ephemeral", "--demo"]).await;
    let list = ecp
        .get("seca.workspace/v1/tenants/acme/workspaces")
        .await
        .body;
    assert!(!list["items"].as_array().unwrap().is_empty(), "{list:#}");
}
