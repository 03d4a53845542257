//! `ecp manifests`: each package as a directory, ready to be built.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use ecp_package::install;
use ecp_package::roots::{REGISTRY, ROOTS, Release, RootFile};
use semver::Version;
use serde_json::Value;

/// Options of `ecp manifests`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Directory to write into: one directory a package, `examples/` with one for each, and
    /// `install/` with what to apply to a cluster that has Crossplane.
    #[arg(long, value_name = "DIR", default_value = "dist")]
    out: PathBuf,
    /// Where the packages are or will be published: they depend on each other there.
    #[arg(long, value_name = "HOST[:PORT]/ORG", default_value = REGISTRY)]
    registry: String,
    /// Version of the packages: they depend on it and on later ones of the same major version.
    #[arg(long, value_name = "VERSION", default_value = env!("CARGO_PKG_VERSION"), value_parser = version)]
    version: Version,
}

/// A version, with or without the `v` that tags have.
fn version(text: &str) -> Result<Version, semver::Error> {
    text.strip_prefix('v').unwrap_or(text).parse()
}

/// Writes one directory for each package, one for its examples, and the install manifests.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let release =
        Release::new(&options.registry, options.version.clone()).context("reading --registry")?;
    for root in &ROOTS {
        let dir = options.out.join(root.name);
        for folder in ["compositions", "crds", "xrds"] {
            clear(&dir.join(folder))?;
        }
        write(&dir, &root.files(&release, crds(root.name)))?;
        let dir = options.out.join("examples").join(root.name);
        clear(&dir)?;
        write(&dir, &root.examples())?;
    }
    write(&options.out.join("install"), &install::manifests(&release))
}

/// The CRDs of a provider.
fn crds(package: &str) -> Vec<Value> {
    match package {
        "provider-ecp" => provider_ecp::crds(),
        "provider-dummy" => provider_dummy::crds(),
        _ => Vec::new(),
    }
}

/// Removes a folder of generated files: a kind that is no more must not stay in the package.
fn clear(folder: &Path) -> anyhow::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Writes files, each with its folder.
fn write(dir: &Path, files: &[RootFile]) -> anyhow::Result<()> {
    for file in files {
        let path = dir.join(&file.path);
        let text = file.text.to_yaml().context("writing YAML")?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("creating {}", folder.display()))?;
        }
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}
