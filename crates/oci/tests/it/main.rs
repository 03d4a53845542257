//! Packages through files, folders and a registry.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod registry;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use ecp_oci::{
    Base, BuildOptions, Client, Error, Fetched, Image, Options, Platform, Progress, Source, build,
    reference, write_archive, write_layout,
};
use ecp_package::xpkg::Package;
use registry::Registry;

const FUNCTION: &str = "
apiVersion: meta.pkg.crossplane.io/v1
kind: Function
metadata: {name: function-x}
";

fn package() -> Package {
    Package::parse(FUNCTION.as_bytes()).unwrap()
}

fn client() -> Client {
    Client::new(Options {
        docker_config: false,
        ..Options::default()
    })
}

/// A function that is a shell script: enough to be unpacked and run.
fn image(architecture: &str) -> Image {
    let base = Base::Binary {
        name: "function-x".into(),
        bytes: b"#!/bin/sh\necho ran\n".to_vec(),
        platform: Platform {
            os: "linux".into(),
            architecture: architecture.into(),
        },
    };
    let options = BuildOptions {
        examples: Some("---\nkind: X\n".into()),
        annotations: BTreeMap::from([("a".into(), "b".into())]),
    };
    build(&package(), base, &options).unwrap()
}

async fn fetch(source: &Source) -> Result<Fetched, Error> {
    client()
        .fetch(source, &Platform::package_manager(), &())
        .await
}

async fn push(registry: &Registry, images: &[Image]) -> Source {
    let to = reference(&format!("{}/org/function-x:v1.0.0", registry.host)).unwrap();
    let progress: Arc<dyn Progress> = Arc::new(());
    let digest = client()
        .push(&to, images, &BTreeMap::new(), &progress)
        .await
        .unwrap();
    let source = Source::Registry(to);
    assert_eq!(client().resolve(&source).await.unwrap(), digest);
    source
}

async fn file(image: &Image, path: &Path) -> Source {
    let mut file = std::fs::File::create(path).unwrap();
    write_archive(image, &mut file, &()).await.unwrap();
    Source::File(path.into())
}

#[tokio::test]
async fn a_package_is_the_same_wherever_it_is() {
    let image = image("amd64");
    assert_eq!(
        image.digest,
        self::image("amd64").digest,
        "two builds are the same"
    );
    let dir = tempfile::tempdir().unwrap();
    let registry = Registry::start().await;
    let layout = dir.path().join("layout");
    write_layout(&image, &layout, &()).await.unwrap();
    let sources = [
        file(&image, &dir.path().join("x.xpkg")).await,
        Source::Directory(layout),
        push(&registry, std::slice::from_ref(&image)).await,
    ];
    for source in sources {
        let fetched = fetch(&source).await.unwrap();
        assert_eq!(fetched.digest, image.digest, "{source}");
        assert_eq!(
            client().resolve(&source).await.unwrap(),
            image.digest,
            "{source}"
        );
        assert_eq!(fetched.package, package(), "{source}");
        assert_eq!(fetched.image.annotations()["a"], "b", "{source}");
    }
}

#[tokio::test]
async fn a_package_root_is_a_package_without_runtime() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("crossplane.yaml"), FUNCTION).unwrap();
    let source = Source::Directory(dir.path().into());
    let fetched = fetch(&source).await.unwrap();
    assert_eq!(fetched.package, package());
    let error = fetched
        .image
        .unpack_runtime(&dir.path().join("run"))
        .await
        .unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("no entrypoint") || error.contains("this machine is"),
        "{error}"
    );
}

#[tokio::test]
async fn the_runtime_is_that_of_this_machine() {
    let host = Platform::host();
    let other = if host.architecture == "amd64" {
        "arm64"
    } else {
        "amd64"
    };
    let registry = Registry::start().await;
    let images = [image(other), image(&host.architecture)];
    let fetched = fetch(&push(&registry, &images).await).await.unwrap();
    assert_eq!(fetched.image.platform(), Platform::package_manager());
    assert_eq!(fetched.image.platforms().len(), 2);
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("run");
    let runtime = fetched.image.unpack_runtime(&folder).await.unwrap();
    assert_eq!(runtime.entrypoint, folder.join("usr/local/bin/function-x"));
    assert_eq!(
        runtime.env,
        [("PATH".to_owned(), "/usr/local/bin".to_owned())]
    );
    let run = std::process::Command::new(&runtime.entrypoint)
        .current_dir(&runtime.workdir)
        .output()
        .unwrap();
    assert_eq!(run.stdout, b"ran\n");
    assert!(
        !folder.join("package.yaml").exists(),
        "the package is no part of the runtime"
    );

    let wanted = Platform {
        os: "linux".into(),
        architecture: "s390x".into(),
    };
    let error = fetched
        .image
        .for_platform(&wanted)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("no image for linux/s390x") && error.contains("linux/amd64"),
        "{error}"
    );
}

#[tokio::test]
async fn what_a_registry_spoils_is_refused_with_the_cause() {
    let image = image("amd64");
    let package_layer = &image.manifest.layers[1];
    let digest = package_layer.digest.as_str();
    let cut: fn(Bytes) -> Bytes = |bytes| bytes.slice(..bytes.len() - 7);
    let long: fn(Bytes) -> Bytes = |bytes| [&bytes[..], b"more"].concat().into();
    let other: fn(Bytes) -> Bytes = |bytes| vec![b'x'; bytes.len()].into();
    for (end, spoil, expected) in [
        (digest, cut, "is cut off or too long: expected"),
        (digest, long, "is cut off or too long: expected"),
        (digest, other, "is not what it should be: expected digest"),
        (
            &image.manifest.config.digest,
            other,
            "is not what it should be: expected digest",
        ),
    ] {
        let registry = Registry::start().await;
        let source = push(&registry, std::slice::from_ref(&image)).await;
        registry.spoil(end, spoil).await;
        let error = fetch(&source).await.unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains(end), "{error}");
    }
    // A manifest that is asked for by digest.
    let registry = Registry::start().await;
    push(&registry, std::slice::from_ref(&image)).await;
    registry
        .spoil(&format!("manifests/{}", image.digest), other)
        .await;
    let pinned = format!("{}/org/function-x@{}", registry.host, image.digest);
    let error = fetch(&Source::parse(&pinned).unwrap())
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("expected digest") && error.contains(image.digest.as_str()),
        "{error}"
    );
    let none = format!("{}/org/none:v1", registry.host);
    let error = fetch(&Source::parse(&none).unwrap())
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("does not exist"), "{error}");
}

#[tokio::test]
async fn tags_are_listed() {
    let registry = Registry::start().await;
    push(&registry, &[image("amd64")]).await;
    let of = reference(&format!("{}/org/function-x", registry.host)).unwrap();
    assert_eq!(client().tags(&of).await.unwrap(), ["v1.0.0"]);
}

#[tokio::test]
async fn a_file_that_is_cut_off_or_no_image_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.xpkg");
    let source = file(&image("amd64"), &path).await;
    let whole = std::fs::read(&path).unwrap();
    for (bytes, expected) in [
        (&whole[..whole.len() / 2], "is no package"),
        (b"no archive".as_slice(), "is no package"),
        (&[], "neither manifest.json nor index.json"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let error = fetch(&source).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

/// Upstream bug A31: the annotated layer counts, and there is one of it.
#[tokio::test]
async fn the_package_is_found_by_the_annotation_of_its_layer() {
    let dir = tempfile::tempdir().unwrap();
    let layout = dir.path().join("layout");
    let image = image("amd64");
    for (annotated, expected) in [
        (vec![1], Ok(())),
        (vec![1, 2], Err("more than one layer")),
        (vec![], Ok(())),
    ] {
        let mut config = image.config.clone();
        config["config"]["Labels"] = serde_json::json!({});
        for layer in annotated {
            let label = format!("io.crossplane.xpkg:{}", image.manifest.layers[layer].digest);
            config["config"]["Labels"][label] = "base".into();
        }
        write_layout(&image, &layout, &()).await.unwrap();
        let blob = |digest: &str| {
            layout
                .join("blobs/sha256")
                .join(digest.replace("sha256:", ""))
        };
        let put = |value: serde_json::Value| {
            let bytes = value.to_string();
            let digest = ecp_oci::Digest::of(bytes.as_bytes());
            std::fs::write(blob(digest.as_str()), &bytes).unwrap();
            (digest.to_string(), bytes.len())
        };
        let (digest, size) = put(config);
        let mut manifest = serde_json::to_value(&image.manifest).unwrap();
        manifest["config"]["digest"] = digest.into();
        manifest["config"]["size"] = size.into();
        for layer in manifest["layers"].as_array_mut().unwrap() {
            layer.as_object_mut().unwrap().remove("annotations");
        }
        let (digest, size) = put(manifest);
        let index = serde_json::json!({"manifests": [{"digest": digest, "size": size}]});
        std::fs::write(layout.join("index.json"), index.to_string()).unwrap();
        let result = fetch(&Source::Directory(layout.clone())).await;
        match expected {
            Ok(()) => assert_eq!(result.unwrap().package, package()),
            Err(why) => assert!(result.unwrap_err().to_string().contains(why)),
        }
    }
}
