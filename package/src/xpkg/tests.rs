use std::io::Read;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::*;
use crate::Flavour;

const PROVIDER: &str = "
# A comment of its own is no document.
---
apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata:
  name: provider-x
  annotations: {meta.crossplane.io/license: Apache-2.0}
spec:
  crossplane: {version: '>=v1.20.0'}
  controller: {image: x.io/kept}
  dependsOn:
  - {provider: x.io/a/b, version: '>=v1.0.0'}
  - {function: x.io/a/f, version: 'v1.x'}
  - {apiVersion: pkg.crossplane.io/v1, kind: Configuration, package: x.io/a/c, version: '>=v1 || ^v2.1'}
  capabilities: [SafeStart]
---
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: bs.x.io, annotations: {yes: 'no', octal: '0o17', sexagesimal: '1:20', text: \"a\\n---\\nb\"}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: as.x.io}
...
";

fn meta(kind: &str, rest: &str) -> String {
    format!(
        "---\napiVersion: meta.pkg.crossplane.io/v1\nkind: {kind}\nmetadata: {{name: p}}\n{rest}\n"
    )
}

fn object(api_version: &str, kind: &str) -> String {
    format!("---\napiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: o}}\n")
}

fn why(yaml: &str) -> String {
    Package::parse(yaml.as_bytes())
        .and_then(|package| package.lint())
        .expect_err(yaml)
        .to_string()
}

#[test]
fn a_package_is_read_and_written_without_loss() {
    let package = Package::parse(PROVIDER.as_bytes()).unwrap();
    package.lint().unwrap();
    let Meta {
        kind,
        name,
        crossplane,
        depends_on,
        ..
    } = &package.meta;
    assert_eq!(*kind, PackageKind::Provider);
    assert_eq!(name, "provider-x");
    assert_eq!(crossplane.as_deref(), Some(">=v1.20.0"));
    let needs: Vec<_> = depends_on
        .iter()
        .map(|d| (d.kind.as_str(), d.package.as_str(), d.constraints.as_str()))
        .collect();
    let expected = [
        ("Provider", "x.io/a/b", ">=v1.0.0"),
        ("Function", "x.io/a/f", "v1.x"),
        ("Configuration", "x.io/a/c", ">=v1 || ^v2.1"),
    ];
    assert_eq!(needs, expected);
    assert!(package.meta.can("safe-start"));
    assert!(!package.meta.can("start"));
    let names: Vec<_> = package.objects.iter().map(ecp_meta::object::name).collect();
    assert_eq!(names, ["bs.x.io", "as.x.io"], "the order is kept");
    let text = package.to_yaml().unwrap();
    assert!(
        text.starts_with("---\napiVersion: meta.pkg.crossplane.io/v1\n"),
        "{text}"
    );
    assert!(
        text.contains("image: x.io/kept"),
        "unknown fields stay: {text}"
    );
    // What YAML 1.1, which Kubernetes reads, takes for something else than text is quoted.
    for quoted in ["\"yes\": \"no\"", "\"1:20\""] {
        assert!(
            text.replace('\'', "\"").contains(quoted),
            "{quoted} in {text}"
        );
    }
    assert_eq!(Package::parse(text.as_bytes()).unwrap(), package);
}

#[test]
fn there_is_exactly_one_meta_document() {
    let none = why(&object(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
    ));
    assert!(
        none.contains("0 meta documents") && none.contains("exactly one"),
        "{none}"
    );
    let configuration = meta("Configuration", "");
    let two = why(&configuration.repeat(2));
    assert!(
        two.contains("2 meta documents (Configuration \"p\" and"),
        "{two}"
    );
    assert!(two.contains("exactly one"), "{two}");
    let unexpected = why(&(configuration + &object("v1", "ConfigMap")));
    assert!(
        unexpected.contains("document 2 of package.yaml: unexpected kind ConfigMap of v1"),
        "{unexpected}"
    );
}

#[test]
fn each_kind_of_package_holds_what_upstream_lets_it_hold() {
    let crd = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    let mrd = (
        "apiextensions.crossplane.io/v1alpha1",
        "ManagedResourceDefinition",
    );
    let hook = (
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
    );
    let xrd1 = (
        "apiextensions.crossplane.io/v1",
        "CompositeResourceDefinition",
    );
    let xrd2 = (
        "apiextensions.crossplane.io/v2",
        "CompositeResourceDefinition",
    );
    let composition = ("apiextensions.crossplane.io/v1", "Composition");
    let mrap = (
        "apiextensions.crossplane.io/v1alpha1",
        "ManagedResourceActivationPolicy",
    );
    let operation = ("ops.crossplane.io/v1alpha1", "CronOperation");
    let all = [crd, mrd, hook, xrd1, xrd2, composition, mrap, operation];
    for (kind, holds) in [
        ("Provider", vec![crd, mrd, hook]),
        (
            "Configuration",
            vec![xrd1, xrd2, composition, mrap, operation],
        ),
        ("Function", vec![crd]),
    ] {
        for of in all {
            let yaml = meta(kind, "") + &object(of.0, of.1);
            let result = Package::parse(yaml.as_bytes()).unwrap().lint();
            assert_eq!(
                result.is_ok(),
                holds.contains(&of),
                "{kind} {of:?}: {result:?}"
            );
        }
    }
    for (version, kind) in [("v2", "Provider"), ("v1beta1", "Provider"), ("v1", "Thing")] {
        let yaml = meta(kind, "").replace("io/v1", &format!("io/{version}"));
        assert!(
            why(&yaml).contains(&format!("unexpected kind {kind}")),
            "{version} {kind}"
        );
    }
    let old = meta("Function", "").replace("io/v1", "io/v1beta1");
    assert!(Package::parse(old.as_bytes()).is_ok());
}

#[test]
fn what_is_wrong_is_named() {
    let dependency = |of: &str| meta("Configuration", &format!("spec: {{dependsOn: [{of}]}}"));
    for (yaml, expected) in [
        (
            meta("Provider", "spec: {crossplane: {version: latest}}"),
            "spec.crossplane.version",
        ),
        (
            dependency("{provider: x.io/a, version: newest}"),
            "spec.dependsOn[0].version",
        ),
        (
            dependency("{provider: a, function: b}"),
            "more than one of provider",
        ),
        (
            dependency("{kind: Provider, package: a}"),
            "expected apiVersion, kind and package",
        ),
        (
            dependency("{apiVersion: a/v1, kind: Thing, package: a}"),
            "spec.dependsOn[0].kind",
        ),
        (meta("Provider", "spec: {dependsOn: 1}"), "document 1"),
        (
            meta("Provider", "").replace("name: p", ""),
            "metadata.name: expected a name",
        ),
        (
            meta("Provider", "") + "---\nkind: x\n",
            "document 2 of package.yaml: apiVersion",
        ),
        (
            meta("Provider", "") + "---\n- 1\n",
            "document 2 of package.yaml: apiVersion",
        ),
        (
            meta("Provider", "") + "---\n{\n",
            "document 2 of package.yaml",
        ),
        (
            meta("Provider", "")
                + &object("apiextensions.k8s.io/v1", "CustomResourceDefinition").repeat(2),
            "CustomResourceDefinition \"o\" is in the package twice",
        ),
    ] {
        assert!(why(&yaml).contains(expected), "{expected}: {}", why(&yaml));
    }
    let digest = format!("sha256:{}", "0".repeat(64));
    let pinned = dependency(&format!("{{provider: x.io/a, version: '{digest}'}}"));
    Package::parse(pinned.as_bytes()).unwrap().lint().unwrap();
    let error = Package::parse(b"a: \xff").unwrap_err().to_string();
    assert!(error.contains("byte 3"), "{error}");
}

#[test]
fn our_own_packages_are_packages() {
    let release =
        crate::roots::Release::new(crate::roots::REGISTRY, "1.0.0".parse().unwrap()).unwrap();
    for root in crate::roots::ROOTS {
        let files = root.files(&release, Vec::new());
        let yaml: Vec<_> = files
            .iter()
            .map(|file| file.text.to_yaml().unwrap())
            .collect();
        let package = Package::parse(yaml.join("---\n").as_bytes()).unwrap();
        package.lint().unwrap();
        let of_2 = package.objects.iter().any(|object| {
            needs_crossplane_2(
                object["apiVersion"].as_str().unwrap(),
                object["kind"].as_str().unwrap(),
            )
        });
        let v2 = ecp_xrds::xrds(Flavour::V2).len() + crate::compositions(Flavour::V2).len();
        assert_eq!(of_2, root.name == "configuration-ecp", "{}", root.name);
        assert!(!of_2 || package.objects.len() == v2);
    }
}

#[test]
fn a_layer_is_the_same_for_the_same_files() {
    let entries = [
        Entry::file(PACKAGE_FILE, "a: b"),
        Entry::program("usr/bin/x", "elf"),
    ];
    let layer = Layer::new(&entries).unwrap();
    assert_eq!(layer, Layer::new(&entries).unwrap());
    assert_eq!(layer.bytes[4..8], [0; 4], "no time in the gzip header");
    assert_eq!(
        layer.bytes[9], 255,
        "no operating system in the gzip header"
    );
    let mut archive = Vec::new();
    decompress(layer.bytes.as_slice())
        .unwrap()
        .read_to_end(&mut archive)
        .unwrap();
    let mut tar = tar::Archive::new(archive.as_slice());
    let headers: Vec<_> = tar
        .entries()
        .unwrap()
        .map(|e| e.unwrap().header().clone())
        .collect();
    let of = |h: &Header| {
        (
            h.mode().unwrap(),
            h.mtime().unwrap(),
            h.uid().unwrap(),
            h.gid().unwrap(),
        )
    };
    assert_eq!(
        headers.iter().map(of).collect::<Vec<_>>(),
        [(0o644, 0, 0, 0), (0o755, 0, 0, 0)]
    );
    assert_eq!(read_package_yaml(layer.bytes.as_slice()).unwrap(), b"a: b");
}

/// A layer of entries as they are, wrong ones too.
fn raw(entries: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
    let mut tar = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, kind, data) in entries {
        let mut header = Header::new_ustar();
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(data.len() as u64);
        header.set_cksum();
        tar.append(&header, *data).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

#[test]
fn a_bad_layer_is_refused_with_the_cause() {
    let file = EntryType::Regular;
    let good = raw(&[("./package.yaml", file, b"x")]);
    assert_eq!(read_package_yaml(good.as_slice()).unwrap(), b"x");
    let cause = |layer: &[u8]| read_package_yaml(layer).unwrap_err().to_string();
    for (layer, expected) in [
        (
            raw(&[("other.yaml", file, b"x")]),
            "there is no package.yaml",
        ),
        (
            raw(&[
                ("package.yaml", file, b"x"),
                ("../../etc/passwd", file, b"x"),
            ]),
            "leaves the layer",
        ),
        (raw(&[("/package.yaml", file, b"x")]), "is an absolute path"),
        (
            raw(&[("package.yaml", EntryType::Symlink, b"")]),
            "is not a plain file",
        ),
        (
            raw(&[("package.yaml", EntryType::Link, b"")]),
            "is not a plain file",
        ),
        (
            raw(&[("package.yaml", file, b"x"), ("package.yaml", file, b"y")]),
            "is there twice",
        ),
        (
            b"no archive at all, but long enough to be taken for one".repeat(20),
            "cannot be read",
        ),
        (b"\x28\xb5\x2f\xfd...".to_vec(), "zstd"),
        (Vec::new(), "there is no package.yaml"),
    ] {
        assert!(
            cause(&layer).contains(expected),
            "{expected}: {}",
            cause(&layer)
        );
    }
    for cut in [good.len() - 1, good.len() - 9, good.len() / 2, 5] {
        assert!(
            cause(&good[..cut]).contains("cannot be read"),
            "{cut}: {}",
            cause(&good[..cut])
        );
    }
}

#[test]
fn without_annotation_the_uppermost_layer_counts() {
    let file = EntryType::Regular;
    let find = |entries: &[_]| find_package_yaml(raw(entries).as_slice()).unwrap();
    assert_eq!(
        find(&[("etc/x", file, b""), ("package.yaml", file, b"x")]),
        Found::File(b"x".to_vec())
    );
    assert_eq!(find(&[("opt/package.yaml", file, b"x")]), Found::Nothing);
    assert_eq!(find(&[(".wh.package.yaml", file, b"")]), Found::Deleted);
    assert_eq!(find(&[(".wh..wh..opq", file, b"")]), Found::Deleted);
}

/// A gzip stream of an archive with 1 GiB of zeros: many members of the same.
fn bomb(path: &str) -> Vec<u8> {
    const PIECE: usize = 1 << 20;
    const PIECES: usize = 1 << 10;
    let mut header = Header::new_ustar();
    header.set_path(path).unwrap();
    header.set_size((PIECE * PIECES) as u64);
    header.set_cksum();
    let member = |data: &[u8]| {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        std::io::Write::write_all(&mut gzip, data).unwrap();
        gzip.finish().unwrap()
    };
    [
        member(header.as_bytes()),
        member(&vec![0; PIECE]).repeat(PIECES),
    ]
    .concat()
}

#[test]
fn a_bomb_is_refused_before_it_is_unpacked() {
    for (path, expected) in [
        ("package.yaml", "package.yaml has more than 209715200 bytes"),
        (
            "zeros",
            "the layer of the package has more than 210763776 bytes when unpacked",
        ),
    ] {
        let bomb = bomb(path);
        assert!(bomb.len() < 8 << 20, "{}", bomb.len());
        let error = read_package_yaml(bomb.as_slice()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
