//! `ecp xpkg push` and `ecp xpkg pull`.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use ecp_oci::{Platform, Progress, Source, reference};
use ecp_package::xpkg::Package;

use super::progress::Bars;
use super::{RegistryOptions, map, pair};
use crate::output;

/// Options of `ecp xpkg push`; those that `crossplane xpkg push` has mean the same.
#[derive(Debug, clap::Args)]
pub(crate) struct PushOptions {
    /// Where to: registry, repository and tag.
    #[arg(value_name = "REGISTRY/REPOSITORY:TAG")]
    package: String,
    /// Packages to push; several are pushed as an index, one for each platform.
    #[arg(
        short = 'f',
        long,
        value_name = "FILE",
        value_delimiter = ',',
        required = true
    )]
    package_files: Vec<PathBuf>,
    /// Annotation to add to the images, and to the index; may be repeated.
    #[arg(short = 'a', long, value_name = "KEY=VALUE", value_parser = pair)]
    oci_annotation: Vec<(String, String)>,
    /// Software bill of materials (SPDX, JSON) to attach to each image as a referrer.
    #[arg(long, value_name = "FILE")]
    sbom: Option<PathBuf>,
    #[command(flatten)]
    registry: RegistryOptions,
}

/// Options of `ecp xpkg pull`.
#[derive(Debug, clap::Args)]
pub(crate) struct PullOptions {
    /// Where from: registry, repository and tag or digest; or a file or folder.
    #[arg(value_name = "PACKAGE")]
    package: String,
    /// File to write if it ends with `.xpkg`, otherwise the folder of an OCI image layout.
    #[arg(short, long, value_name = "PATH")]
    output: PathBuf,
    /// The image to take from an index.
    #[arg(long, value_name = "OS/ARCH", default_value_t = Platform::package_manager())]
    platform: Platform,
    #[command(flatten)]
    registry: RegistryOptions,
}

/// Pushes packages, each of which is checked first.
pub(crate) async fn push(options: &PushOptions) -> anyhow::Result<()> {
    let to = reference(&options.package)?;
    if to.digest().is_some()
        || !options
            .package
            .ends_with(&format!(":{}", to.tag().unwrap_or_default()))
    {
        bail!(
            "{}: expected a tag, as in {}/{}:v1.0.0",
            options.package,
            to.registry(),
            to.repository()
        );
    }
    let client = options.registry.client();
    let annotations = map(&options.oci_annotation);
    let mut images = Vec::new();
    for path in &options.package_files {
        let failed = || format!("reading {}", path.display());
        let source = Source::File(path.clone());
        let any = Platform::package_manager();
        let (_, image) = client.image(&source, &any).await.with_context(failed)?;
        let yaml = image.package_yaml(&()).await.with_context(failed)?;
        let package = Package::parse(&yaml).with_context(failed)?;
        package.lint().with_context(failed)?;
        images.push(image.annotated(&annotations)?);
    }
    let progress: Arc<dyn Progress> = Arc::new(Bars::default());
    let digest = client.push(&to, &images, &annotations, &progress).await?;
    if let Some(path) = &options.sbom {
        let sbom = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        let parsed: serde_json::Value = serde_json::from_slice(&sbom)
            .with_context(|| format!("reading {} as JSON", path.display()))?;
        if !parsed["spdxVersion"].is_string() {
            bail!(
                "{}: expected an SPDX document with spdxVersion",
                path.display()
            );
        }
        for image in &images {
            let attached = client
                .attach_sbom(&to, image, sbom.clone(), &progress)
                .await?;
            output::note(&format!(
                "attached the bill of materials {attached} to {}",
                image.digest
            ));
        }
    }
    output::data(&format!("{}/{}@{digest}", to.registry(), to.repository()))
}

/// Pulls a package.
pub(crate) async fn pull(options: &PullOptions) -> anyhow::Result<()> {
    let source = Source::parse(&options.package)?;
    let client = options.registry.client();
    let bars = Bars::default();
    let fetched = client.fetch(&source, &options.platform, &bars).await?;
    let path = &options.output;
    let failed = || format!("writing {}", path.display());
    if path.extension().is_some_and(|ext| ext == "xpkg") {
        // It takes its place when it is whole.
        let folder = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        let folder = folder.unwrap_or(std::path::Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder).with_context(failed)?;
        ecp_oci::write_archive(&fetched.image, &mut file, &bars).await?;
        file.persist(path).with_context(failed)?;
    } else {
        ecp_oci::write_layout(&fetched.image, path, &bars).await?;
    }
    output::data(&format!("{} {}", fetched.image.digest, path.display()))
}
