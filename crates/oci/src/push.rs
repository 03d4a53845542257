//! Pushes images to a registry.

use std::sync::Arc;

use bytes::Bytes;
use oci_client::Reference;
use oci_client::manifest::{OCI_IMAGE_INDEX_MEDIA_TYPE, OCI_IMAGE_MEDIA_TYPE};
use serde_json::{Value, json};

use crate::registry::Repository;
use crate::{Client, Digest, Error, Image, Progress};

/// Media types of a software bill of materials, and of a blob that says nothing.
const SPDX: &str = "application/spdx+json";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
const EMPTY_BYTES: &[u8] = b"{}";

impl Client {
    /// Pushes images under one tag: a single one as it is, several by their digests and an index of
    /// them. The digest is that of what the tag then stands for.
    ///
    /// # Errors
    /// Two are for the same platform, or the registry refuses.
    pub async fn push(
        &self,
        reference: &Reference,
        images: &[Image],
        annotations: &std::collections::BTreeMap<String, String>,
        progress: &Arc<dyn Progress>,
    ) -> Result<Digest, Error> {
        let repository = self.registries().repository(reference).await?;
        for image in images {
            push_parts(&repository, image, progress).await?;
        }
        if let [image] = images {
            let media_type = media_type(image);
            repository
                .push_manifest(None, image.manifest_bytes.clone(), media_type)
                .await?;
            return Ok(image.digest.clone());
        }
        let mut entries: Vec<Value> = Vec::new();
        for image in images {
            let platform = image.platform();
            let entry = json!({"os": platform.os, "architecture": platform.architecture});
            if entries.iter().any(|other| other["platform"] == entry) {
                return Err(Error::Manifest {
                    what: reference.to_string(),
                    why: format!("more than one image is for {platform}"),
                });
            }
            let digest = Some(&image.digest);
            repository
                .push_manifest(digest, image.manifest_bytes.clone(), media_type(image))
                .await?;
            entries.push(json!({
                "mediaType": media_type(image),
                "digest": image.digest.as_str(),
                "size": image.manifest_bytes.len(),
                "platform": entry,
            }));
        }
        let mut index = json!({
            "schemaVersion": 2,
            "mediaType": OCI_IMAGE_INDEX_MEDIA_TYPE,
            "manifests": entries,
        });
        if !annotations.is_empty() {
            index["annotations"] = json!(annotations);
        }
        let bytes = Bytes::from(index.to_string());
        let digest = Digest::of(&bytes);
        repository
            .push_manifest(None, bytes, OCI_IMAGE_INDEX_MEDIA_TYPE)
            .await?;
        Ok(digest)
    }

    /// Attaches a software bill of materials (SPDX, JSON) to what was pushed, as a referrer.
    ///
    /// # Errors
    /// The registry refuses.
    pub async fn attach_sbom(
        &self,
        reference: &Reference,
        subject: &Image,
        sbom: Vec<u8>,
        progress: &Arc<dyn Progress>,
    ) -> Result<Digest, Error> {
        let repository = self.registries().repository(reference).await?;
        let sbom = Bytes::from(sbom);
        let (of, empty) = (Digest::of(&sbom), Digest::of(EMPTY_BYTES));
        repository.push_blob(&of, sbom.clone(), progress).await?;
        let nothing = Bytes::from_static(EMPTY_BYTES);
        repository.push_blob(&empty, nothing, progress).await?;
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": OCI_IMAGE_MEDIA_TYPE,
            "artifactType": SPDX,
            "config": {"mediaType": EMPTY, "digest": empty.as_str(), "size": EMPTY_BYTES.len()},
            "layers": [{"mediaType": SPDX, "digest": of.as_str(), "size": sbom.len()}],
            "subject": {
                "mediaType": media_type(subject),
                "digest": subject.digest.as_str(),
                "size": subject.manifest_bytes.len(),
            },
        });
        let bytes = Bytes::from(manifest.to_string());
        let digest = Digest::of(&bytes);
        repository
            .push_manifest(Some(&digest), bytes, OCI_IMAGE_MEDIA_TYPE)
            .await?;
        Ok(digest)
    }
}

fn media_type(image: &Image) -> &str {
    let media_type = image.manifest.media_type.as_deref();
    media_type.unwrap_or(OCI_IMAGE_MEDIA_TYPE)
}

async fn push_parts(
    repository: &Repository,
    image: &Image,
    progress: &Arc<dyn Progress>,
) -> Result<(), Error> {
    for layer in &image.manifest.layers {
        let bytes = image.layer_bytes(layer, &()).await?;
        let digest = Digest::parse(&layer.digest)?;
        repository.push_blob(&digest, bytes, progress).await?;
    }
    let config = Digest::parse(&image.manifest.config.digest)?;
    let bytes = image.config_bytes.clone();
    repository.push_blob(&config, bytes, progress).await
}

impl Image {
    /// The same image with more annotations, and so another digest.
    ///
    /// # Errors
    /// Never but for want of memory.
    pub fn annotated(
        mut self,
        annotations: &std::collections::BTreeMap<String, String>,
    ) -> Result<Self, Error> {
        if !annotations.is_empty() {
            let all = self.manifest.annotations.get_or_insert_default();
            all.extend(annotations.clone());
            let bytes = serde_json::to_vec(&self.manifest).map_err(|error| Error::Manifest {
                what: format!("image {}", self.digest),
                why: error.to_string(),
            })?;
            self.digest = Digest::of(&bytes);
            self.manifest_bytes = bytes.into();
        }
        Ok(self)
    }
}
