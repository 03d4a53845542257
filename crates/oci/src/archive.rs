//! Images in a file: a tar archive as `docker save` and `xpkg build` write it.
//!
//! What is written here is an image layout too, as newer Docker does, so that the manifest with its
//! annotations is kept and the digest is the same in the file and in a registry.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write};
use std::path::Path;

use bytes::Bytes;
use ecp_package::xpkg::Layer;
use oci_client::manifest::{
    IMAGE_DOCKER_CONFIG_MEDIA_TYPE, IMAGE_DOCKER_LAYER_GZIP_MEDIA_TYPE, IMAGE_MANIFEST_MEDIA_TYPE,
    OciDescriptor, OciImageManifest,
};
use serde::Deserialize;
use serde_json::json;
use tar::{Archive, Builder, EntryType, Header};

use crate::blobs::Blobs;
use crate::image::Root;
use crate::limits::{FILE_BYTES_MAX, LAYERS_MAX};
use crate::{Digest, Error, Image, build, layout};

/// Names the configuration and the layers of each image of the file.
const DOCKER_MANIFEST: &str = "manifest.json";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DockerImage {
    config: String,
    layers: Vec<String>,
}

/// Reads an image from a file.
pub(crate) fn read(path: &Path) -> Result<Root, Error> {
    let file = File::open(path).map_err(Error::file(path))?;
    let size = file.metadata().map_err(Error::file(path))?.len();
    if size > FILE_BYTES_MAX {
        return Err(Error::TooLarge {
            what: path.display().to_string(),
            size,
            max: FILE_BYTES_MAX,
        });
    }
    let not_image = |why: String| Error::NotImage {
        path: path.into(),
        why,
    };
    let broken = |error: std::io::Error| not_image(format!("reading the archive: {error}"));
    let mut files = BTreeMap::new();
    let mut archive = Archive::new(file);
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let mut bytes = Vec::new();
        // A sparse file can claim more than the archive holds.
        let mut data = (&mut entry).take(size);
        data.read_to_end(&mut bytes).map_err(broken)?;
        files.insert(name.trim_start_matches("./").to_owned(), Bytes::from(bytes));
    }
    if let Some(index) = files.get(layout::INDEX) {
        let blobs = files
            .iter()
            .filter_map(|(name, bytes)| Some((name.strip_prefix(layout::BLOBS)?, bytes)))
            .filter_map(|(hex, bytes)| {
                let digest = Digest::parse(&format!("sha256:{}", hex.trim_start_matches('/')));
                Some((digest.ok()?, bytes.clone()))
            })
            .collect();
        return layout::root(
            path,
            index.clone(),
            Blobs::Memory(blobs),
            |blobs, digest| {
                let Blobs::Memory(all) = blobs else {
                    return None;
                };
                all.get(digest).cloned()
            },
        );
    }
    docker(&files).map_err(not_image)
}

/// The image of `manifest.json`; the manifest is made from it, as go-containerregistry does.
fn docker(files: &BTreeMap<String, Bytes>) -> Result<Root, String> {
    let manifest = files
        .get(DOCKER_MANIFEST)
        .ok_or("it has neither manifest.json nor index.json")?;
    let images: Vec<DockerImage> =
        serde_json::from_slice(manifest).map_err(|error| format!("{DOCKER_MANIFEST}: {error}"))?;
    let [image] = &images[..] else {
        let found = images.len();
        return Err(format!(
            "{DOCKER_MANIFEST}: {found} images: expected exactly one"
        ));
    };
    if image.layers.len() > LAYERS_MAX {
        return Err(format!("{DOCKER_MANIFEST}: more than {LAYERS_MAX} layers"));
    }
    let file = |name: &str| {
        let found = files.get(name).cloned();
        found.ok_or_else(|| format!("{DOCKER_MANIFEST} names {name:?}, which is not there"))
    };
    let mut blobs = BTreeMap::new();
    let mut add = |media_type: &str, bytes: Bytes| {
        let digest = Digest::of(&bytes);
        let descriptor = OciDescriptor {
            media_type: media_type.into(),
            digest: digest.to_string(),
            size: bytes.len() as i64,
            ..OciDescriptor::default()
        };
        blobs.insert(digest, bytes);
        descriptor
    };
    let config = file(&image.config)?;
    // go-containerregistry names it by its digest.
    if let Ok(digest) = Digest::parse(&image.config) {
        let found = Digest::of(&config);
        digest
            .verify("the configuration", found)
            .map_err(|error| error.to_string())?;
    }
    let parsed: serde_json::Value =
        serde_json::from_slice(&config).map_err(|error| format!("configuration: {error}"))?;
    let config = add(IMAGE_DOCKER_CONFIG_MEDIA_TYPE, config);
    let mut layers = Vec::new();
    for (i, name) in image.layers.iter().enumerate() {
        let mut bytes = file(name)?;
        if !bytes.starts_with(&[0x1f, 0x8b]) {
            let layer = Layer::compress(&bytes).map_err(|error| error.to_string())?;
            bytes = layer.bytes.into();
        }
        verify_layer(name, &bytes, parsed["rootfs"]["diff_ids"][i].as_str())?;
        layers.push(add(IMAGE_DOCKER_LAYER_GZIP_MEDIA_TYPE, bytes));
    }
    let mut manifest = OciImageManifest {
        media_type: Some(IMAGE_MANIFEST_MEDIA_TYPE.into()),
        config,
        layers,
        ..OciImageManifest::default()
    };
    build::annotate_layers(&mut manifest, &parsed);
    let bytes: Bytes = serde_json::to_vec(&manifest)
        .map_err(|error| error.to_string())?
        .into();
    Ok(Root {
        digest: Digest::of(&bytes),
        bytes,
        blobs: Blobs::Memory(blobs),
    })
}

/// Refuses a layer that is cut off, or another than the configuration says: there is no manifest in
/// the file that would have its digest.
fn verify_layer(name: &str, bytes: &[u8], diff_id: Option<&str>) -> Result<(), String> {
    let wrong = |error: &dyn std::fmt::Display| format!("layer {name}: {error}");
    let expected = diff_id.ok_or_else(|| wrong(&"the configuration has no digest for it"))?;
    let expected = Digest::parse(expected).map_err(|error| wrong(&error))?;
    let reader = ecp_package::xpkg::decompress(bytes).map_err(|error| wrong(&error))?;
    let mut reader = reader.take(crate::limits::RUNTIME_BYTES_MAX);
    let found = Digest::of_reader(&mut reader).map_err(|error| wrong(&error))?;
    expected
        .verify("the archive in it", found)
        .map_err(|error| wrong(&error))
}

/// Writes an image as a file that `crossplane xpkg push`, `docker load` and [`crate::Client`] read.
///
/// # Errors
/// A part cannot be read, or the file not be written.
pub async fn write(
    image: &Image,
    to: &mut impl Write,
    progress: &dyn crate::Progress,
) -> Result<(), Error> {
    let failed = |source| Error::File {
        path: "archive".into(),
        source,
    };
    let blob = |digest: &Digest| format!("{}/{}", layout::BLOBS, digest.hex());
    let config = Digest::parse(&image.manifest.config.digest)?;
    let mut layers = Vec::new();
    for layer in &image.manifest.layers {
        layers.push(blob(&Digest::parse(&layer.digest)?));
    }
    let docker = json!([{"Config": blob(&config), "RepoTags": null, "Layers": layers}]);
    let mut tar = Builder::new(to);
    append(&mut tar, layout::MARK, layout::MARK_TEXT.as_bytes()).map_err(failed)?;
    append(&mut tar, layout::INDEX, &layout::index(image)).map_err(failed)?;
    append(&mut tar, DOCKER_MANIFEST, docker.to_string().as_bytes()).map_err(failed)?;
    append(&mut tar, &blob(&image.digest), &image.manifest_bytes).map_err(failed)?;
    append(&mut tar, &blob(&config), &image.config_bytes).map_err(failed)?;
    let mut written = std::collections::BTreeSet::new();
    for layer in &image.manifest.layers {
        if written.insert(&layer.digest) {
            let bytes = image.layer_bytes(layer, progress).await?;
            append(&mut tar, &blob(&Digest::parse(&layer.digest)?), &bytes).map_err(failed)?;
        }
    }
    tar.finish().map_err(failed)
}

fn append(tar: &mut Builder<impl Write>, path: &str, data: &[u8]) -> std::io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::Regular);
    header.set_size(data.len() as u64);
    header.set_mode(0o644);
    header.set_mtime(0);
    tar.append_data(&mut header, path, data)
}
