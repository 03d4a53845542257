//! `examples/terraform` with the real Terraform and the real provider for SECA.
//!
//! `ECP_TEST_TERRAFORM` and `ECP_TEST_TERRAFORM_PROVIDER_SECA` name the two binaries; the second is
//! called `terraform-provider-seca`.

use std::path::{Path, PathBuf};
use std::process::Command;

use ecp_harness::{Ecp, Output, skipped, volume};

use crate::examples::folder;

/// Nothing to do, and something to do, as `plan -detailed-exitcode` tells it.
const EMPTY: i32 = 0;
const CHANGES: i32 = 2;

struct Terraform {
    binary: PathBuf,
    dir: tempfile::TempDir,
    endpoint: String,
    token: String,
}

impl Terraform {
    /// The example, against a running control plane; `None` where the binaries are not known.
    fn new(ecp: &Ecp) -> Option<Self> {
        let binary = |name| std::env::var_os(name).map(PathBuf::from);
        let found = binary("ECP_TEST_TERRAFORM").zip(binary("ECP_TEST_TERRAFORM_PROVIDER_SECA"));
        let Some((binary, provider)) = found else {
            skipped("no ECP_TEST_TERRAFORM and ECP_TEST_TERRAFORM_PROVIDER_SECA");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        let main = folder("terraform").join("main.tf");
        std::fs::copy(main, dir.path().join("main.tf")).unwrap();
        let provider = provider.canonicalize().unwrap();
        let config = format!(
            "provider_installation {{\n  dev_overrides {{\n    \"eu-sovereign-cloud/seca\" = {:?}\n  }}\n}}\n",
            provider.parent().unwrap_or(Path::new("/"))
        );
        std::fs::write(dir.path().join("cli.tfrc"), config).unwrap();
        Some(Self {
            binary,
            dir,
            endpoint: ecp.rest.clone(),
            token: ecp.token.clone(),
        })
    }

    fn run(&self, args: &[&str]) -> (i32, Output) {
        let output = Command::new(&self.binary)
            .args(args)
            .current_dir(self.dir.path())
            .env("HOME", self.dir.path())
            .env("CHECKPOINT_DISABLE", "1")
            .env("TF_IN_AUTOMATION", "1")
            .env("TF_CLI_CONFIG_FILE", self.dir.path().join("cli.tfrc"))
            .env("TF_VAR_endpoint", &self.endpoint)
            .env("TF_VAR_token", &self.token)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let told = Output {
            ok: output.status.success(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        };
        (output.status.code().unwrap(), told)
    }

    fn done(&self, args: &[&str]) -> String {
        self.run(args).1.done()
    }

    /// What a plan would do, and its exit code.
    fn plan(&self, vars: &[&str]) -> (i32, String) {
        let plan = ["plan", "-no-color", "-input=false", "-detailed-exitcode"];
        let (code, told) = self.run(&[&plan, vars].concat());
        (code, told.out + &told.err)
    }

    fn apply(&self, vars: &[&str]) -> String {
        let apply = ["apply", "-no-color", "-input=false", "-auto-approve"];
        self.done(&[&apply, vars].concat())
    }

    fn is_up_to_date(&self, vars: &[&str]) {
        let (code, told) = self.plan(vars);
        assert_eq!(code, EMPTY, "{told}");
    }
}

#[tokio::test]
async fn terraform_makes_changes_imports_and_destroys_all_its_resources() {
    let ecp = Ecp::start(&["--ephemeral"]).await;
    let Some(terraform) = Terraform::new(&ecp) else {
        return;
    };
    let (code, told) = terraform.plan(&[]);
    assert_eq!(code, CHANGES, "{told}");
    assert!(told.contains("Plan: 14 to add"), "{told}");
    let told = terraform.apply(&[]);
    assert!(told.contains("14 added, 0 changed, 0 destroyed"), "{told}");
    terraform.is_up_to_date(&[]);

    // Every resource has the label, some of them more than that.
    let vars = [
        "-var=env=prod",
        "-var=data_size_gb=80",
        "-var=web_port=8443",
    ];
    let told = terraform.apply(&vars);
    assert!(told.contains("0 added, 14 changed, 0 destroyed"), "{told}");
    terraform.is_up_to_date(&vars);
    let data = ecp.until_active(&volume("web", "data")).await;
    assert_eq!(data["status"]["sizeGB"], 80, "{data:#}");
    assert_eq!(data["labels"]["env"], "prod", "{data:#}");

    let address = "seca_block_storage.data";
    terraform.done(&["state", "rm", address]);
    let import = ["import", "-no-color", "-input=false"];
    terraform.done(&[&import[..], &vars, &[address, "web/data"]].concat());
    terraform.is_up_to_date(&vars);

    let destroy = ["destroy", "-no-color", "-input=false", "-auto-approve"];
    let told = terraform.done(&[&destroy[..], &vars].concat());
    assert!(told.contains("14 destroyed"), "{told}");
    assert_eq!(ecp.managed().await, Vec::<String>::new());
}

#[tokio::test]
async fn terraform_shows_what_is_refused() {
    let ecp = Ecp::start(&["--ephemeral"]).await;
    let Some(terraform) = Terraform::new(&ecp) else {
        return;
    };
    let volume = ["-target=seca_block_storage.data", "-var=data_size_gb=80"];
    terraform.apply(&volume);
    let shrink = ["-target=seca_block_storage.data", "-var=data_size_gb=10"];
    let apply = ["apply", "-no-color", "-input=false", "-auto-approve"];
    let (code, told) = terraform.run(&[&apply[..], &shrink].concat());
    assert_eq!(code, 1, "{told:?}");
    assert!(
        told.err.contains("Error updating block storage"),
        "{told:?}"
    );
    let (_, told) = terraform.plan(&volume);
    assert!(told.contains("No changes"), "{told}");
}
