//! Images in a folder: the OCI image layout.

use std::path::Path;

use bytes::Bytes;
use oci_client::manifest::{OCI_IMAGE_INDEX_MEDIA_TYPE, OCI_IMAGE_MEDIA_TYPE};
use serde_json::{Value, json};

use crate::blobs::Blobs;
use crate::image::Root;
use crate::{Digest, Error, Image, Progress};

/// The file that says that a folder is a layout.
pub(crate) const MARK: &str = "oci-layout";
pub(crate) const MARK_TEXT: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;
/// The file that names the images.
pub(crate) const INDEX: &str = "index.json";
/// The folder of all parts.
pub(crate) const BLOBS: &str = "blobs/sha256";

/// Whether a folder is a layout.
pub(crate) fn is(path: &Path) -> bool {
    path.join(MARK).is_file()
}

/// Reads the image or index of a layout.
pub(crate) fn read(path: &Path) -> Result<Root, Error> {
    let file = path.join(INDEX);
    let index = std::fs::read(&file).map_err(Error::file(&file))?;
    let blobs = Blobs::Layout(path.join(BLOBS));
    root(path, index.into(), blobs, |_, digest| {
        let bytes = std::fs::read(path.join(BLOBS).join(digest.hex())).ok()?;
        Some(bytes.into())
    })
}

/// What an `index.json` names: the one entry it has, or itself when it has several.
pub(crate) fn root(
    path: &Path,
    index: Bytes,
    blobs: Blobs,
    find: impl Fn(&Blobs, &Digest) -> Option<Bytes>,
) -> Result<Root, Error> {
    let not_image = |why: String| Error::NotImage {
        path: path.into(),
        why,
    };
    let parsed: Value =
        serde_json::from_slice(&index).map_err(|error| not_image(format!("{INDEX}: {error}")))?;
    let entries = parsed["manifests"].as_array().map(Vec::as_slice);
    let (digest, bytes) = match entries.unwrap_or_default() {
        [] => return Err(not_image(format!("{INDEX} names no image"))),
        [one] => {
            let digest = Digest::parse(one["digest"].as_str().unwrap_or_default())?;
            let bytes = find(&blobs, &digest)
                .ok_or_else(|| not_image(format!("{digest}, which {INDEX} names, is not there")))?;
            digest.verify(&format!("manifest {digest}"), Digest::of(&bytes))?;
            (digest, bytes)
        }
        [_, _, ..] => (Digest::of(&index), index),
    };
    Ok(Root {
        digest,
        bytes,
        blobs,
    })
}

/// The `index.json` of one image.
pub(crate) fn index(image: &Image) -> Vec<u8> {
    let platform = image.platform();
    let media_type = image.manifest.media_type.as_deref();
    json!({
        "schemaVersion": 2,
        "mediaType": OCI_IMAGE_INDEX_MEDIA_TYPE,
        "manifests": [{
            "mediaType": media_type.unwrap_or(OCI_IMAGE_MEDIA_TYPE),
            "digest": image.digest.as_str(),
            "size": image.manifest_bytes.len(),
            "platform": {"os": platform.os, "architecture": platform.architecture},
        }],
    })
    .to_string()
    .into_bytes()
}

/// Writes an image as a layout, into a folder that is made if it is not there.
///
/// # Errors
/// A part cannot be read, or a file not be written.
pub async fn write(image: &Image, folder: &Path, progress: &dyn Progress) -> Result<(), Error> {
    let blobs = folder.join(BLOBS);
    std::fs::create_dir_all(&blobs).map_err(Error::file(&blobs))?;
    let put = |path: &Path, bytes: &[u8]| std::fs::write(path, bytes).map_err(Error::file(path));
    for layer in &image.manifest.layers {
        let bytes = image.layer_bytes(layer, progress).await?;
        put(&blobs.join(Digest::parse(&layer.digest)?.hex()), &bytes)?;
    }
    let config = Digest::parse(&image.manifest.config.digest)?;
    put(&blobs.join(config.hex()), &image.config_bytes)?;
    put(&blobs.join(image.digest.hex()), &image.manifest_bytes)?;
    put(&folder.join(INDEX), &index(image))?;
    put(&folder.join(MARK), MARK_TEXT.as_bytes())
}
