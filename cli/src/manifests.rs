//! `ecp manifests`: each package as a directory, ready to be built.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use ecp_package::roots::{FileText, REGISTRY, ROOTS, Release};
use semver::Version;
use serde_json::Value;

/// Options of `ecp manifests`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Directory to write into: one directory a package, and `examples/` with one for each.
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

/// Writes one directory for each package, and one for its examples.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let release =
        Release::new(&options.registry, options.version.clone()).context("reading --registry")?;
    for root in &ROOTS {
        let mut files = Vec::new();
        for file in root.files(&release, crds(root.name)) {
            let text = match file.text {
                FileText::Object(object) => {
                    serde_saphyr::to_string(&object).context("writing YAML")?
                }
                FileText::Yaml(text) => text.to_owned(),
            };
            files.push((file.path, text));
        }
        let dir = options.out.join(root.name);
        for folder in ["compositions", "crds", "xrds"] {
            clear(&dir.join(folder))?;
        }
        write(&dir, &files)?;
        let dir = options.out.join("examples").join(root.name);
        clear(&dir)?;
        let text = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        let examples: Vec<_> = root.examples().iter().map(text).collect();
        write(&dir, &examples)?;
    }
    Ok(())
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
fn write(dir: &Path, files: &[(String, String)]) -> anyhow::Result<()> {
    for (path, text) in files {
        let path = dir.join(path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("creating {}", folder.display()))?;
        }
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}
