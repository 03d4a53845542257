//! `ecp xpkg build`.

use std::fs::File;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use ecp_oci::{Base, BuildOptions, Platform, Source, root};
use ecp_package::xpkg::{Package, friendly_id};

use super::{map, pair};
use crate::output;

/// Options of `ecp xpkg build`; those that `crossplane xpkg build` has mean the same.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Folder with the package's `crossplane.yaml`.
    #[arg(short = 'f', long, value_name = "DIR", default_value = ".")]
    package_root: PathBuf,
    /// Folder with examples, which the package holds in a layer of their own.
    #[arg(short, long, value_name = "DIR", default_value = "./examples")]
    examples_root: PathBuf,
    /// File to write; without it, one in the package root that is named after package and digest.
    #[arg(short = 'o', long, value_name = "FILE")]
    package_file: Option<PathBuf>,
    /// Files of the package root that are no part of the package; `*` and `?` are wildcards.
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    ignore: Vec<String>,
    /// Statically linked program to run, in an image with nothing else.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "embed_runtime_image_tarball"
    )]
    runtime_binary: Option<PathBuf>,
    /// Image to run, as `docker save` writes it.
    #[arg(long, visible_alias = "runtime-tarball", value_name = "FILE")]
    embed_runtime_image_tarball: Option<PathBuf>,
    /// What the package is for; that of an image is its own.
    #[arg(long, value_name = "OS/ARCH", default_value_t = Platform::package_manager())]
    platform: Platform,
    /// Annotation of the image; may be repeated. Title, source and licence are known.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    annotation: Vec<(String, String)>,
}

/// Builds a package and says where it is.
pub(crate) async fn run(options: &Options) -> anyhow::Result<()> {
    let examples = options.package_root.join("examples");
    // The default is beside the caller; that of the root is left out all the same.
    let except = match options.examples_root.canonicalize() {
        Ok(path) => path,
        Err(_) => examples,
    };
    let root = options
        .package_root
        .canonicalize()
        .with_context(|| format!("reading {}", options.package_root.display()))?;
    let package = root::read(&root, &options.ignore, Some(&except))?;
    let mut annotations = provenance(&package);
    annotations.extend(map(&options.annotation));
    let build_options = BuildOptions {
        examples: root::examples(&options.examples_root, &options.ignore)?,
        annotations,
    };
    let image = ecp_oci::build(&package, base(options, &package).await?, &build_options)?;
    let file = options.package_file.clone().unwrap_or_else(|| {
        let name = friendly_id(&package.meta.name, image.digest.hex());
        options.package_root.join(format!("{name}.xpkg"))
    });
    let failed = || format!("writing {}", file.display());
    let mut writer = File::create(&file).with_context(failed)?;
    ecp_oci::write_archive(&image, &mut writer, &())
        .await
        .with_context(failed)?;
    output::data(&format!("{} {}", image.digest, file.display()))
}

async fn base(options: &Options, package: &Package) -> anyhow::Result<Base> {
    if let Some(path) = &options.runtime_binary {
        let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        if !bytes.starts_with(b"\x7fELF") {
            bail!(
                "{}: no ELF program, which is what runs on Linux",
                path.display()
            );
        }
        return Ok(Base::Binary {
            name: package.meta.name.clone(),
            bytes,
            platform: options.platform.clone(),
        });
    }
    if let Some(path) = &options.embed_runtime_image_tarball {
        let client = ecp_oci::Client::new(ecp_oci::Options::default());
        let (_, image) = client
            .image(&Source::File(path.clone()), &options.platform)
            .await?;
        return Ok(Base::Image(Box::new(image)));
    }
    Ok(Base::Empty(options.platform.clone()))
}

/// What the package says of where it comes from, as an image says it (OCI image spec,
/// `annotations.md`). The time is none, so that two builds are the same.
fn provenance(package: &Package) -> std::collections::BTreeMap<String, String> {
    let of = |key: &str| package.meta.annotations.get(key).cloned();
    [
        ("created", Some("1970-01-01T00:00:00Z".to_owned())),
        ("title", Some(package.meta.name.clone())),
        ("description", of("meta.crossplane.io/description")),
        ("licenses", of("meta.crossplane.io/license")),
        ("source", of("meta.crossplane.io/source")),
    ]
    .into_iter()
    .filter_map(|(key, value)| Some((format!("org.opencontainers.image.{key}"), value?)))
    .collect()
}
