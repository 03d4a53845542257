//! Builds an image of a package; the same input gives the same bytes.

use std::collections::BTreeMap;

use bytes::Bytes;
use ecp_package::xpkg::{
    EXAMPLES_FILE, Entry, LAYER_ANNOTATION, LAYER_OF_EXAMPLES, LAYER_OF_PACKAGE, Layer,
    PACKAGE_FILE, Package,
};
use oci_client::manifest::{
    IMAGE_CONFIG_MEDIA_TYPE, IMAGE_LAYER_GZIP_MEDIA_TYPE, OCI_IMAGE_MEDIA_TYPE, OciDescriptor,
    OciImageManifest,
};
use serde_json::{Value, json};

use crate::blobs::Blobs;
use crate::{Digest, Error, Image, Platform};

/// When everything was made: a time that does not change.
const CREATED: &str = "1970-01-01T00:00:00Z";
/// Whom Crossplane runs packages as (contract 5.1).
const USER: &str = "2000:2000";
const PASSWD: &str =
    "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:2000:2000:nonroot:/:/sbin/nologin\n";
const NSSWITCH: &str = "hosts: files dns\n";

/// What a package is put on.
#[derive(Debug)]
pub enum Base {
    /// Nothing: a package that runs nothing.
    Empty(Platform),
    /// A statically linked program, in an image without anything else.
    Binary {
        /// Name of the program in the image.
        name: String,
        /// The program.
        bytes: Vec<u8>,
        /// What it runs on.
        platform: Platform,
    },
    /// An image with the runtime of the package.
    Image(Box<Image>),
}

/// What else goes into an image.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Examples, as a YAML stream.
    pub examples: Option<String>,
    /// Annotations of the manifest.
    pub annotations: BTreeMap<String, String>,
}

/// Builds an image: the base, then the package, then examples.
///
/// # Errors
/// The package cannot be written, or the base is no image that has a configuration.
pub fn build(package: &Package, base: Base, options: &Options) -> Result<Image, Error> {
    let mut blobs = BTreeMap::new();
    let mut layers = Vec::new();
    let mut config = match base {
        Base::Empty(platform) => config(&platform),
        Base::Binary {
            name,
            bytes,
            platform,
        } => {
            let layer = Layer::new(&[
                Entry::file("etc/nsswitch.conf", NSSWITCH),
                Entry::file("etc/passwd", PASSWD),
                Entry::program(&format!("usr/local/bin/{name}"), bytes),
            ])?;
            let mut config = config(&platform);
            config["config"] = json!({
                "User": USER,
                "Entrypoint": [format!("/usr/local/bin/{name}")],
                "Env": ["PATH=/usr/local/bin"],
                "WorkingDir": "/",
                "ExposedPorts": {"8080/tcp": {}, "9443/tcp": {}},
            });
            push(&mut config, &mut layers, &mut blobs, layer, None)?;
            config
        }
        Base::Image(image) => {
            layers.clone_from(&image.manifest.layers);
            if let Blobs::Memory(all) = image.blobs {
                blobs = all;
            }
            for layer in &mut layers {
                layer.media_type = IMAGE_LAYER_GZIP_MEDIA_TYPE.into();
            }
            image.config
        }
    };
    let yaml = package.to_yaml()?;
    let layer = Layer::new(&[Entry::file(PACKAGE_FILE, yaml)])?;
    push(
        &mut config,
        &mut layers,
        &mut blobs,
        layer,
        Some(LAYER_OF_PACKAGE),
    )?;
    if let Some(examples) = &options.examples {
        let layer = Layer::new(&[Entry::file(EXAMPLES_FILE, examples.as_str())])?;
        push(
            &mut config,
            &mut layers,
            &mut blobs,
            layer,
            Some(LAYER_OF_EXAMPLES),
        )?;
    }
    let config_bytes = Bytes::from(config.to_string());
    let mut manifest = OciImageManifest {
        schema_version: 2,
        media_type: Some(OCI_IMAGE_MEDIA_TYPE.into()),
        config: descriptor(IMAGE_CONFIG_MEDIA_TYPE, &config_bytes),
        layers,
        annotations: (!options.annotations.is_empty()).then(|| options.annotations.clone()),
        ..OciImageManifest::default()
    };
    annotate_layers(&mut manifest, &config);
    blobs.insert(Digest::of(&config_bytes), config_bytes.clone());
    let manifest_bytes = serde_json::to_vec(&manifest).map_err(|error| Error::Manifest {
        what: "the image".into(),
        why: error.to_string(),
    })?;
    Ok(Image {
        digest: Digest::of(&manifest_bytes),
        manifest,
        config,
        manifest_bytes: manifest_bytes.into(),
        config_bytes,
        blobs: Blobs::Memory(blobs),
        index: None,
    })
}

fn config(platform: &Platform) -> Value {
    json!({
        "architecture": platform.architecture,
        "os": platform.os,
        "created": CREATED,
        "config": {},
        "rootfs": {"type": "layers", "diff_ids": []},
        "history": [],
    })
}

fn descriptor(media_type: &str, bytes: &Bytes) -> OciDescriptor {
    OciDescriptor {
        media_type: media_type.into(),
        digest: Digest::of(bytes).to_string(),
        size: bytes.len() as i64,
        ..OciDescriptor::default()
    }
}

/// Puts a layer on top; what it holds of a package is noted in the configuration too, from which
/// `crossplane xpkg push` takes it.
fn push(
    config: &mut Value,
    layers: &mut Vec<OciDescriptor>,
    blobs: &mut BTreeMap<Digest, Bytes>,
    layer: Layer,
    role: Option<&str>,
) -> Result<(), Error> {
    let list = |config: &mut Value, pointer: &str, entry: Value| match config.pointer_mut(pointer) {
        Some(Value::Array(all)) => {
            all.push(entry);
            Ok(())
        }
        _ => Err(Error::Manifest {
            what: "the configuration of the runtime image".into(),
            why: format!("{pointer}: expected a list"),
        }),
    };
    list(config, "/rootfs/diff_ids", layer.diff_id.into())?;
    if config.get("history").is_some_and(Value::is_array) {
        let history = json!({"created": CREATED, "created_by": "ecp xpkg build"});
        list(config, "/history", history)?;
    }
    if let Some(role) = role {
        if !config["config"].is_object() {
            config["config"] = json!({});
        }
        if !config["config"]["Labels"].is_object() {
            config["config"]["Labels"] = json!({});
        }
        config["config"]["Labels"][format!("{LAYER_ANNOTATION}:{}", layer.digest)] = role.into();
    }
    let bytes = Bytes::from(layer.bytes);
    layers.push(descriptor(IMAGE_LAYER_GZIP_MEDIA_TYPE, &bytes));
    blobs.insert(Digest::of(&bytes), bytes);
    Ok(())
}

/// Gives layers the annotations that the configuration has for them.
pub(crate) fn annotate_layers(manifest: &mut OciImageManifest, config: &Value) {
    for layer in &mut manifest.layers {
        let label = format!("{LAYER_ANNOTATION}:{}", layer.digest);
        if let Some(role) = config["config"]["Labels"][&label].as_str() {
            let annotations = layer.annotations.get_or_insert_default();
            annotations
                .entry(LAYER_ANNOTATION.into())
                .or_insert_with(|| role.into());
        }
    }
}
