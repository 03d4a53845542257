//! The client: finds packages wherever they are.

use std::path::Path;

use ecp_package::xpkg::Package;
use oci_client::Reference;

use crate::blobs::Blobs;
use crate::image::Root;
use crate::registry::Registries;
use crate::{
    Base, BuildOptions, Digest, Error, Image, Platform, Progress, Source, archive, build, layout,
    root,
};

/// How registries are talked to.
#[derive(Clone, Debug)]
pub struct Options {
    /// Plain HTTP with every registry, not only with those on this machine.
    pub insecure: bool,
    /// Certificates of registries are not verified.
    pub skip_tls_verify: bool,
    /// Whether credentials are taken from Docker's file (`$DOCKER_CONFIG/config.json`,
    /// `~/.docker/config.json`) and the helpers it names.
    pub docker_config: bool,
    /// Contents of `.dockerconfigjson` of pull secrets, tried first.
    pub pull_secrets: Vec<Vec<u8>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            insecure: false,
            skip_tls_verify: false,
            docker_config: true,
            pull_secrets: Vec::new(),
        }
    }
}

/// Finds packages in files, folders and registries.
#[derive(Clone)]
pub struct Client {
    registries: Registries,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

/// A package that was found.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// What identifies this state of the package: the digest of the index if there is one, that of
    /// the image otherwise. It is what [`Client::resolve`] gives.
    pub digest: Digest,
    /// What the package holds.
    pub package: Package,
    /// The image that it was read from.
    pub image: Image,
}

impl Client {
    /// A client. Nothing is read before it is asked for something.
    pub fn new(options: Options) -> Self {
        // A TLS client without provider panics; whoever runs this may have installed one.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            let provider = rustls::crypto::aws_lc_rs::default_provider();
            drop(provider.install_default());
        }
        Self {
            registries: Registries::new(options),
        }
    }

    /// The digest of what is there now.
    ///
    /// # Errors
    /// There is nothing, or it cannot be read.
    pub async fn resolve(&self, source: &Source) -> Result<Digest, Error> {
        match source {
            Source::Registry(reference) => match reference.digest() {
                Some(digest) => Digest::parse(digest),
                None => self.registries.repository(reference).await?.digest().await,
            },
            Source::File(_) | Source::Directory(_) => Ok(self.root(source).await?.digest),
        }
    }

    /// The tags of a repository, in the registry's order.
    ///
    /// # Errors
    /// There is no such repository, or the registry cannot be reached.
    pub async fn tags(&self, reference: &Reference) -> Result<Vec<String>, Error> {
        self.registries.repository(reference).await?.tags().await
    }

    /// Finds a package and reads what it holds; its runtime stays where it is for now.
    ///
    /// It is read from the image for `platform`; the package manager's is
    /// [`Platform::package_manager`]. It is not linted.
    ///
    /// # Errors
    /// There is nothing, it cannot be read, is not what its digests say, or is no package.
    pub async fn fetch(
        &self,
        source: &Source,
        platform: &Platform,
        progress: &dyn Progress,
    ) -> Result<Fetched, Error> {
        let (digest, image) = self.image(source, platform).await?;
        let yaml = image.package_yaml(progress).await?;
        Ok(Fetched {
            digest,
            package: Package::parse(&yaml)?,
            image,
        })
    }

    /// Finds an image, whether it holds a package or not, and the digest of the index or image.
    ///
    /// # Errors
    /// There is nothing, or it cannot be read.
    pub async fn image(
        &self,
        source: &Source,
        platform: &Platform,
    ) -> Result<(Digest, Image), Error> {
        let root = self.root(source).await?;
        Ok((root.digest.clone(), root.image(platform).await?))
    }

    pub(crate) async fn root(&self, source: &Source) -> Result<Root, Error> {
        match source {
            Source::File(path) => archive::read(path),
            Source::Directory(path) if layout::is(path) => layout::read(path),
            Source::Directory(path) => built(path),
            Source::Registry(reference) => {
                let repository = self.registries.repository(reference).await?;
                let (bytes, digest) = repository.manifest().await?;
                Ok(Root {
                    digest,
                    bytes,
                    blobs: Blobs::Registry(repository),
                })
            }
        }
    }

    pub(crate) fn registries(&self) -> &Registries {
        &self.registries
    }
}

/// What a package root gives when it is built, without runtime.
fn built(path: &Path) -> Result<Root, Error> {
    let package = root::read(path, &[], None)?;
    let base = Base::Empty(Platform::package_manager());
    let image = build(&package, base, &BuildOptions::default())?;
    Ok(Root {
        digest: image.digest,
        bytes: image.manifest_bytes,
        blobs: image.blobs,
    })
}
