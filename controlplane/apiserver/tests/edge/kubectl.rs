//! The real kubectl against the real listener.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use tokio::io::AsyncWriteExt as _;

use crate::support::{CRDS, DEADLINE, Front, disk_crd};

/// kubectl with a home and a kubeconfig of its own.
struct Kubectl {
    program: PathBuf,
    home: tempfile::TempDir,
    front: Front,
}

impl Kubectl {
    /// `None` where there is no kubectl.
    async fn start() -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = std::env::split_paths(&path)
            .map(|dir| dir.join("kubectl"))
            .find(|p| p.exists());
        let Some(program) = program else {
            use std::io::Write as _;
            let _ = writeln!(std::io::stderr(), "skipped: no kubectl in PATH");
            return None;
        };
        let front = Front::start().await;
        let home = tempfile::tempdir().unwrap();
        let kubectl = Self {
            program,
            home,
            front,
        };
        std::fs::write(
            kubectl.config(),
            kubectl.front.kubeconfig(kubectl.front.pki.token()),
        )
        .unwrap();
        Some(kubectl)
    }

    fn config(&self) -> PathBuf {
        self.home.path().join("config")
    }

    fn command(&self, args: &[&str]) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(&self.program);
        command
            .env_clear()
            .env("HOME", self.home.path())
            .env("PATH", Path::new("/usr/bin"))
            .env("KUBECONFIG", self.config())
            .args(args)
            .kill_on_drop(true)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    async fn output(&self, args: &[&str], stdin: &str) -> Output {
        let mut child = self.command(args).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(stdin.as_bytes()).await.unwrap();
        drop(input);
        let wait = tokio::time::timeout(DEADLINE, child.wait_with_output());
        wait.await
            .unwrap_or_else(|_| panic!("{args:?} does not end"))
            .unwrap()
    }

    /// What it prints; it must succeed.
    async fn ok(&self, args: &[&str], stdin: &str) -> String {
        let output = self.output(args, stdin).await;
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What it complains about; it must fail.
    async fn fails(&self, args: &[&str], stdin: &str) -> String {
        let output = self.output(args, stdin).await;
        assert!(!output.status.success(), "{args:?} works");
        String::from_utf8(output.stderr).unwrap()
    }

    async fn run(&self, args: &str) -> String {
        self.ok(&args.split(' ').collect::<Vec<_>>(), "").await
    }

    /// Each line of the table, with its columns.
    async fn table(&self, args: &str) -> Vec<Vec<String>> {
        let text = self.run(args).await;
        text.lines()
            .map(|l| l.split_whitespace().map(str::to_owned).collect())
            .collect()
    }
}

const DISK: &str = "apiVersion: ex.test/v1\nkind: Disk\nmetadata: {name: d}\nspec: {sizeGB: 5}\n";

#[tokio::test]
async fn it_learns_about_server_and_user() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    assert!(kubectl.run("version").await.contains("Server Version: v1."));
    let whoami = kubectl.run("auth whoami").await;
    assert!(
        whoami.contains("system:admin") && whoami.contains("system:masters"),
        "{whoami}"
    );
    assert_eq!(kubectl.run("auth can-i create secrets").await.trim(), "yes");
    assert!(kubectl.run("auth can-i --list").await.contains("*.*"));
    let resources = kubectl.table("api-resources --no-headers").await;
    assert!(
        resources
            .iter()
            .any(|r| r[..] == ["configmaps", "cm", "v1", "true", "ConfigMap"])
    );
    assert!(
        kubectl
            .run("api-versions")
            .await
            .contains("rbac.authorization.k8s.io/v1")
    );
}

#[tokio::test]
async fn it_makes_and_shows_built_in_objects() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    // These bodies are protobuf.
    kubectl.run("create namespace team").await;
    kubectl
        .run("-n team create configmap m --from-literal=k=v")
        .await;
    kubectl
        .run("-n team create secret generic s --from-literal=p=w")
        .await;
    kubectl.run("-n team create serviceaccount bot").await;
    kubectl
        .run("-n team create role r --verb=get --resource=secrets")
        .await;
    kubectl
        .run("-n team create rolebinding rb --role=r --user=jane")
        .await;
    let maps = kubectl.table("get configmaps -A").await;
    assert_eq!(maps[0], ["NAMESPACE", "NAME", "DATA", "AGE"]);
    assert_eq!(maps[1][..3], ["team", "m", "1"]);
    assert_eq!(
        kubectl.table("-n team get secret").await[1][..3],
        ["s", "Opaque", "1"]
    );
    assert_eq!(
        kubectl.table("get ns team").await[1][..2],
        ["team", "Active"]
    );
    assert!(
        kubectl
            .run("-n team describe configmap m")
            .await
            .contains("Name:         m")
    );
    assert!(
        kubectl
            .run("-n team describe secret s")
            .await
            .contains("p:  1 bytes")
    );
    kubectl.run("-n team label configmap m a=b").await;
    kubectl.run("-n team annotate configmap m note=hi").await;
    assert_eq!(
        kubectl.run("-n team get cm -l a=b -o name").await.trim(),
        "configmap/m"
    );
    kubectl.run("delete namespace team").await;
    assert!(kubectl.run("get configmaps -A").await.is_empty());
}

#[tokio::test]
async fn it_applies_built_in_objects_with_its_three_way_patch() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    let map = |data: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m}}\ndata: {data}\n")
    };
    let apply = ["apply", "-f", "-"];
    assert!(
        kubectl
            .ok(&apply, &map("{a: x, b: two}"))
            .await
            .contains("created")
    );
    assert!(
        kubectl
            .ok(&apply, &map("{a: x, b: two}"))
            .await
            .contains("unchanged")
    );
    assert!(
        kubectl
            .ok(&apply, &map("{a: x, c: three}"))
            .await
            .contains("configured")
    );
    let data = kubectl.run("get cm m -o jsonpath={.data}").await;
    assert_eq!(data, r#"{"a":"x","c":"three"}"#);
    kubectl
        .ok(
            &["apply", "--server-side", "--force-conflicts", "-f", "-"],
            &map("{a: w}"),
        )
        .await;
    assert_eq!(kubectl.run("get cm m -o jsonpath={.data.a}").await, "w");
    let list = r#"{"kind": "List", "apiVersion": "v1", "items": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "two"}}]}"#;
    let made = kubectl.ok(&apply, list).await;
    assert!(made.contains("configmap/one created") && made.contains("secret/two created"));
    let typo = map("{a: x}").replace("\ndata:", "\ndataa:");
    let complaint = kubectl.fails(&apply, &typo).await;
    assert!(complaint.contains("unknown field \"dataa\""), "{complaint}");
}

#[tokio::test]
async fn it_works_with_custom_objects() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    kubectl
        .ok(&["apply", "-f", "-"], &disk_crd().to_string())
        .await;
    kubectl
        .run("wait --for=condition=Established crd/disks.ex.test --timeout=10s")
        .await;
    let explained = kubectl.run("explain disk.spec.sizeGB").await;
    assert!(explained.contains("FIELD: sizeGB <integer>") && explained.contains("Size in GB."));
    assert!(
        kubectl
            .run("explain configmap.data")
            .await
            .contains("FIELD: data <map[string]string>")
    );

    assert!(
        kubectl
            .ok(&["apply", "-f", "-"], DISK)
            .await
            .contains("created")
    );
    assert_eq!(kubectl.table("get dk").await[1][..2], ["d", "5"]);
    assert_eq!(kubectl.table("get all").await[1][0], "d");
    let bigger = DISK.replace('5', "9");
    let diff = kubectl.output(&["diff", "-f", "-"], &bigger).await;
    assert!(String::from_utf8_lossy(&diff.stdout).contains("+  sizeGB: 9"));
    assert!(
        kubectl
            .ok(&["apply", "-f", "-"], &bigger)
            .await
            .contains("configured")
    );
    kubectl
        .ok(
            &["apply", "--server-side", "--force-conflicts", "-f", "-"],
            &bigger,
        )
        .await;
    let status = r#"{"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#;
    let patch = [
        "patch",
        "disk",
        "d",
        "--subresource=status",
        "--type=merge",
        "-p",
        status,
    ];
    kubectl.ok(&patch, "").await;
    kubectl
        .run("wait --for=condition=Ready disk/d --timeout=10s")
        .await;
    assert_eq!(kubectl.table("get disks").await[1][..3], ["d", "9", "True"]);
    assert!(kubectl.run("describe disk d").await.contains("Size GB:  9"));

    let typo = DISK.replace("sizeGB", "sizeGb");
    let complaint = kubectl.fails(&["apply", "-f", "-"], &typo).await;
    assert!(
        complaint.contains("unknown field \"spec.sizeGb\""),
        "{complaint}"
    );
    let small = DISK.replace('5', "0");
    assert!(
        kubectl
            .fails(&["apply", "-f", "-"], &small)
            .await
            .contains("spec.sizeGB")
    );
    kubectl.run("delete disk d").await;
    assert!(
        kubectl
            .fails(&["get", "disk", "d"], "")
            .await
            .contains("NotFound")
    );
    kubectl.run("delete crd disks.ex.test").await;
    kubectl.fails(&["get", "disks"], "").await;
}

#[tokio::test]
async fn it_watches_tables() {
    use tokio::io::AsyncBufReadExt as _;
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    kubectl.front.api.create(CRDS, disk_crd()).await;
    kubectl.ok(&["apply", "-f", "-"], DISK).await;
    let mut child = kubectl.command(&["get", "disks", "-w"]).spawn().unwrap();
    let mut lines = tokio::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = async || {
        let line = tokio::time::timeout(DEADLINE, lines.next_line())
            .await
            .unwrap();
        let line = line.unwrap().unwrap();
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(next().await, ["NAME", "SIZE", "READY", "AGE"]);
    assert_eq!(next().await[..2], ["d", "5"]);
    kubectl
        .ok(&["apply", "-f", "-"], &DISK.replace('5', "7"))
        .await;
    assert_eq!(next().await[..2], ["d", "7"]);
}
