//! `ecp manifests`: what each package installs, as YAML.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use ecp_xrds::Flavour;
use serde_json::Value;

/// Options of `ecp manifests`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Directory to write into; one file a package.
    #[arg(long, default_value = "dist")]
    out: PathBuf,
}

/// Writes one file of YAML documents for each package.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    std::fs::create_dir_all(&options.out)
        .with_context(|| format!("creating {}", options.out.display()))?;
    for (name, objects) in packages()? {
        write(&options.out.join(format!("{name}.yaml")), &objects)?;
    }
    Ok(())
}

fn packages() -> anyhow::Result<Vec<(&'static str, Vec<Value>)>> {
    let configuration = |flavour| {
        let mut objects = ecp_xrds::xrds(flavour);
        objects.extend(ecp_package::compositions(flavour));
        objects
    };
    Ok(vec![
        ("provider-ecp", provider_ecp::crds()),
        ("provider-dummy", provider_dummy::crds()),
        ("configuration-ecp", configuration(Flavour::V2)),
        ("configuration-ecp-claims", configuration(Flavour::Claims)),
    ])
}

fn write(path: &Path, objects: &[Value]) -> anyhow::Result<()> {
    let mut text = String::new();
    for object in objects {
        let yaml = serde_saphyr::to_string(object).context("writing YAML")?;
        write!(text, "---\n{yaml}").context("writing YAML")?;
    }
    std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}
