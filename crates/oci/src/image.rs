//! An image: manifest, configuration and layers.

use std::collections::BTreeMap;

use bytes::Bytes;
use ecp_package::xpkg::{self, Found, LAYER_ANNOTATION, LAYER_OF_PACKAGE};
use oci_client::manifest::{OciDescriptor, OciImageIndex, OciImageManifest};
use serde::Deserialize;
use serde_json::Value;

use crate::blobs::{Blob, Blobs, Wanted};
use crate::limits::{
    CONFIG_BYTES_MAX, LAYER_BLOB_BYTES_MAX, LAYERS_MAX, MANIFEST_BYTES_MAX, PACKAGE_BLOB_BYTES_MAX,
};
use crate::{Digest, Error, Platform, Progress, build};

/// An image of one platform. Its layers may still be where they were found.
#[derive(Clone, Debug)]
pub struct Image {
    /// Digest of the manifest.
    pub digest: Digest,
    /// The manifest, whose layers have the annotations that say what they hold.
    pub manifest: OciImageManifest,
    /// The configuration, as JSON.
    pub config: Value,
    pub(crate) manifest_bytes: Bytes,
    pub(crate) config_bytes: Bytes,
    pub(crate) blobs: Blobs,
    /// The index it was chosen from.
    pub(crate) index: Option<OciImageIndex>,
}

/// What a registry, a folder or a file holds: one image, or an index of several.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    pub digest: Digest,
    pub bytes: Bytes,
    pub blobs: Blobs,
}

/// An image or an index.
pub(crate) enum Manifest {
    Image(Box<OciImageManifest>),
    Index(OciImageIndex),
}

/// Reads a manifest or an index: an index has `manifests`.
pub(crate) fn read_manifest(digest: &Digest, bytes: &[u8]) -> Result<Manifest, Error> {
    let wrong = |error: serde_json::Error| Error::Manifest {
        what: format!("manifest {digest}"),
        why: error.to_string(),
    };
    let value: Value = serde_json::from_slice(bytes).map_err(wrong)?;
    Ok(match value.get("manifests") {
        Some(_) => Manifest::Index(OciImageIndex::deserialize(value).map_err(wrong)?),
        None => Manifest::Image(Box::new(
            OciImageManifest::deserialize(value).map_err(wrong)?,
        )),
    })
}

/// The platforms of an index, without what is no image of one, such as attestations.
pub(crate) fn platforms(index: &OciImageIndex) -> Vec<(Platform, &str)> {
    let of = |entry: &'_ oci_client::manifest::ImageIndexEntry| {
        let platform = entry.platform.as_ref()?;
        Some(Platform {
            os: platform.os.to_string(),
            architecture: platform.architecture.to_string(),
        })
    };
    index
        .manifests
        .iter()
        .filter_map(|entry| Some((of(entry)?, entry.digest.as_str())))
        .filter(|(platform, _)| platform.os != "unknown")
        .collect()
}

impl Root {
    /// The image for a platform. An image that is in no index is for all.
    pub(crate) async fn image(self, platform: &Platform) -> Result<Image, Error> {
        let index = match read_manifest(&self.digest, &self.bytes)? {
            Manifest::Image(manifest) => {
                let blobs = self.blobs;
                return Image::load(self.digest, self.bytes, *manifest, blobs, None).await;
            }
            Manifest::Index(index) => index,
        };
        Image::of_index(index, platform, self.blobs).await
    }
}

impl Image {
    async fn of_index(
        index: OciImageIndex,
        platform: &Platform,
        blobs: Blobs,
    ) -> Result<Self, Error> {
        let all = platforms(&index);
        let Some((_, digest)) = all.iter().find(|(of, _)| of == platform) else {
            let have: Vec<_> = all.iter().map(|(of, _)| of.to_string()).collect();
            return Err(Error::Platform {
                wanted: platform.to_string(),
                have: have.join(", "),
            });
        };
        let digest = Digest::parse(digest)?;
        let size = index.manifests.iter().find(|e| e.digest == digest.as_str());
        let size = size.map_or(0, |entry| entry.size);
        let bytes = blobs.manifest(&digest, size).await?;
        match read_manifest(&digest, &bytes)? {
            Manifest::Image(manifest) => {
                Self::load(digest, bytes, *manifest, blobs, Some(index)).await
            }
            Manifest::Index(_) => Err(Error::Manifest {
                what: format!("manifest {digest}"),
                why: "is an index in an index: expected an image".into(),
            }),
        }
    }

    pub(crate) async fn load(
        digest: Digest,
        manifest_bytes: Bytes,
        mut manifest: OciImageManifest,
        blobs: Blobs,
        index: Option<OciImageIndex>,
    ) -> Result<Self, Error> {
        let wrong = |why: String| Error::Manifest {
            what: format!("image {digest}"),
            why,
        };
        if manifest.layers.len() > LAYERS_MAX {
            let found = manifest.layers.len();
            return Err(wrong(format!(
                "{found} layers: expected at most {LAYERS_MAX}"
            )));
        }
        let OciDescriptor {
            digest: of, size, ..
        } = &manifest.config;
        let wanted = Wanted::new("configuration", of, *size, CONFIG_BYTES_MAX)?;
        let config_bytes = blobs.read(&wanted, &()).await?;
        let config: Value = serde_json::from_slice(&config_bytes)
            .map_err(|error| wrong(format!("configuration: {error}")))?;
        // What `xpkg build` of Crossplane notes there, since its files have no annotations.
        build::annotate_layers(&mut manifest, &config);
        Ok(Self {
            digest,
            manifest,
            config,
            manifest_bytes,
            config_bytes,
            blobs,
            index,
        })
    }

    /// The same image for another platform, if it was chosen from an index; itself otherwise.
    ///
    /// # Errors
    /// The index has none for it, or it cannot be read.
    pub async fn for_platform(&self, platform: &Platform) -> Result<Self, Error> {
        match &self.index {
            None => Ok(self.clone()),
            Some(index) => Self::of_index(index.clone(), platform, self.blobs.clone()).await,
        }
    }

    /// The platform of the configuration.
    pub fn platform(&self) -> Platform {
        let text = |field: &str| self.config[field].as_str().unwrap_or_default().to_owned();
        Platform {
            os: text("os"),
            architecture: text("architecture"),
        }
    }

    /// Every platform of the index that it was chosen from, with digest; its own otherwise.
    pub fn platforms(&self) -> Vec<(Platform, String)> {
        match &self.index {
            None => vec![(self.platform(), self.digest.to_string())],
            Some(index) => platforms(index)
                .into_iter()
                .map(|(platform, digest)| (platform, digest.to_owned()))
                .collect(),
        }
    }

    /// Annotations of the manifest.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        self.manifest.annotations.clone().unwrap_or_default()
    }

    /// What a layer holds of a package, if anything: see [`LAYER_ANNOTATION`].
    pub fn role(layer: &OciDescriptor) -> Option<&str> {
        let annotations = layer.annotations.as_ref()?;
        annotations.get(LAYER_ANNOTATION).map(String::as_str)
    }

    /// Reads `package.yaml`: from the layer annotated to hold it; if none is, from the uppermost
    /// layer that has the file (crossplane-runtime `ExtractPackageYAML`).
    ///
    /// # Errors
    /// There is none, or it cannot be read; or more than one layer is annotated, as in Crossplane
    /// 1.20.
    pub async fn package_yaml(&self, progress: &dyn Progress) -> Result<Vec<u8>, Error> {
        let mut annotated = self
            .manifest
            .layers
            .iter()
            .filter(|layer| Self::role(layer) == Some(LAYER_OF_PACKAGE));
        match (annotated.next(), annotated.next()) {
            (Some(layer), None) => {
                let blob = self.layer(layer, PACKAGE_BLOB_BYTES_MAX, progress).await?;
                Ok(xpkg::read_package_yaml(blob)?)
            }
            (Some(_), Some(_)) => Err(Error::Manifest {
                what: format!("image {}", self.digest),
                why: format!(
                    "more than one layer is annotated {LAYER_ANNOTATION}: {LAYER_OF_PACKAGE}"
                ),
            }),
            (None, _) => {
                for layer in self.manifest.layers.iter().rev() {
                    let blob = self.layer(layer, LAYER_BLOB_BYTES_MAX, progress).await?;
                    match xpkg::find_package_yaml(blob)? {
                        Found::File(bytes) => return Ok(bytes),
                        Found::Deleted => break,
                        Found::Nothing => {}
                    }
                }
                Err(xpkg::Error::NoPackage("any layer of the image").into())
            }
        }
    }

    pub(crate) async fn layer(
        &self,
        layer: &OciDescriptor,
        max: u64,
        progress: &dyn Progress,
    ) -> Result<Blob, Error> {
        let wanted = Wanted::new("layer", &layer.digest, layer.size, max)?;
        self.blobs.open(&wanted, progress).await
    }

    pub(crate) async fn layer_bytes(
        &self,
        layer: &OciDescriptor,
        progress: &dyn Progress,
    ) -> Result<Bytes, Error> {
        let wanted = Wanted::new("layer", &layer.digest, layer.size, LAYER_BLOB_BYTES_MAX)?;
        self.blobs.read(&wanted, progress).await
    }
}

impl Blobs {
    /// A manifest that an index names.
    async fn manifest(&self, digest: &Digest, size: i64) -> Result<Bytes, Error> {
        let wanted = Wanted::new("manifest", digest.as_str(), size, MANIFEST_BYTES_MAX)?;
        match self {
            Self::Registry(repository) => {
                let bytes = repository.manifest_at(digest).await?;
                wanted.verify(bytes.len() as u64, Digest::of(&bytes))?;
                Ok(bytes)
            }
            Self::Memory(_) | Self::Layout(_) => self.read(&wanted, &()).await,
        }
    }
}
