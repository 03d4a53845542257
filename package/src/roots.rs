//! Package roots: the directory of each of our packages, as `crossplane xpkg build` takes it.

use ecp_meta::object;
use ecp_xrds::Flavour;
use semver::Version;
use serde_json::{Value, json};

use crate::compositions;
use crate::examples::FIRST_VOLUME;
use crate::xpkg::{PackageKind, to_dns_label};

/// Where our packages are published.
pub const REGISTRY: &str = "ghcr.io/eu-sovereign-cloud";

const SOURCE: &str = "https://github.com/eu-sovereign-cloud/ecp";
const MAINTAINER: &str = "ECP maintainers <https://github.com/eu-sovereign-cloud/ecp>";

/// What a package of a kind tells Crossplane it can do; releases that do not know capabilities
/// ignore them.
fn capabilities(kind: PackageKind) -> Option<Value> {
    match kind {
        PackageKind::Configuration => None,
        PackageKind::Function => Some(json!(["composition"])),
        // The provider starts before its CRDs exist: Crossplane makes those that are wanted.
        PackageKind::Provider => Some(json!(["safe-start"])),
    }
}

/// One of our packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootInfo {
    /// Name of the package and of its repository.
    pub name: &'static str,
    /// What it is.
    pub kind: PackageKind,
    title: &'static str,
    description: &'static str,
    readme: &'static str,
    crossplane: &'static str,
    depends_on: &'static [&'static str],
}

/// Crossplane releases that know XRDs of version 2. A prerelease satisfies a constraint only where
/// the constraint names one, hence `-0` (Masterminds semver, which Crossplane uses).
const WITH_XRD_V2: &str = ">=v2.0.0-0";
/// All that is supported.
const ANY: &str = ">=v1.20.0-0";

/// Every package, dependencies first.
pub const ROOTS: [RootInfo; 5] = [
    RootInfo {
        name: "function-ecp",
        kind: PackageKind::Function,
        title: "ECP composition function",
        description: "Turns SECA resources into the managed resources of a cloud.",
        readme: include_str!("../function-ecp/README.md"),
        crossplane: ANY,
        depends_on: &[],
    },
    RootInfo {
        name: "provider-ecp",
        kind: PackageKind::Provider,
        title: "ECP provider",
        description: "Namespaces of SECA workspaces, and contents of SECA networks.",
        readme: include_str!("../provider-ecp/README.md"),
        crossplane: ANY,
        depends_on: &[],
    },
    RootInfo {
        name: "provider-dummy",
        kind: PackageKind::Provider,
        title: "ECP dummy cloud",
        description: "A simulated cloud, for trying the European Control Plane and for tests.",
        readme: include_str!("../provider-dummy/README.md"),
        crossplane: ANY,
        depends_on: &[],
    },
    RootInfo {
        name: "configuration-ecp",
        kind: PackageKind::Configuration,
        title: "European Control Plane",
        description: "The SECA API as namespaced composite resources.",
        readme: include_str!("../configuration-ecp/README.md"),
        crossplane: WITH_XRD_V2,
        depends_on: &["function-ecp", "provider-ecp", "provider-dummy"],
    },
    RootInfo {
        name: "configuration-ecp-claims",
        kind: PackageKind::Configuration,
        title: "European Control Plane (claims)",
        description: "The SECA API as claims.",
        readme: include_str!("../configuration-ecp-claims/README.md"),
        crossplane: ANY,
        depends_on: &["function-ecp", "provider-ecp", "provider-dummy"],
    },
];

/// Where packages are published, and as what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    registry: String,
    version: Version,
}

/// Why a registry is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no place for packages: expected HOST[:PORT]/ORG in lower case, such as {REGISTRY}"
)]
pub struct RegistryError {
    text: String,
}

impl Release {
    /// Packages at `HOST[:PORT]/ORG[/...]/<name>:v<version>`.
    ///
    /// # Errors
    /// The registry is not such a place.
    pub fn new(registry: &str, version: Version) -> Result<Self, RegistryError> {
        let part = |part: &str| {
            !part.is_empty()
                && !part.starts_with(['.', '-', '_'])
                && !part.ends_with(['.', '-', '_'])
                && part
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b".-_".contains(&b))
        };
        let is_host = |host: &str| match host.split_once(':') {
            Some((host, port)) => part(host) && port.parse::<u16>().is_ok(),
            // Without a dot or a port it would be an organisation of the default registry.
            None => part(host) && (host.contains('.') || host == "localhost"),
        };
        let valid = registry
            .split_once('/')
            .is_some_and(|(host, org)| is_host(host) && org.split('/').all(part));
        match valid {
            true => Ok(Self {
                registry: registry.to_owned(),
                version,
            }),
            false => Err(RegistryError {
                text: registry.to_owned(),
            }),
        }
    }

    /// The repository of a package, without tag.
    pub fn repository(&self, package: &str) -> String {
        format!("{}/{package}", self.registry)
    }

    /// The tag of this release.
    pub fn tag(&self) -> String {
        format!("v{}", self.version)
    }

    /// What a package of this release needs of another: this release or a later one of the same
    /// major version, so that what is depended on can be upgraded first.
    fn constraint(&self) -> String {
        let Version { major, pre, .. } = &self.version;
        // Prereleases satisfy only what names a prerelease, so they are for prereleases alone.
        let next = if pre.is_empty() { "" } else { "-0" };
        format!(">=v{}, <v{}.0.0{next}", self.version, major + 1)
    }

    /// The name that Crossplane gives a package that it installs as a dependency: `ToDNSLabel` of
    /// the repository's path (crossplane-runtime `pkg/xpkg/name.go`).
    pub fn object_name(&self, package: &str) -> String {
        let repository = self.repository(package);
        let path = repository.split_once('/').map_or("", |(_, path)| path);
        to_dns_label(path)
    }
}

/// A file to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct RootFile {
    /// Where it is in its directory.
    pub path: String,
    /// What it holds.
    pub text: FileText,
}

/// What a file holds.
#[derive(Clone, Debug, PartialEq)]
pub enum FileText {
    /// Objects, to be written as YAML.
    Objects(Vec<Value>),
    /// YAML as it is.
    Yaml(&'static str),
}

impl FileText {
    /// As YAML, one document an object.
    ///
    /// # Errors
    /// An object cannot be written as YAML.
    pub fn to_yaml(&self) -> Result<String, serde_saphyr::ser_error::Error> {
        match self {
            Self::Yaml(text) => Ok((*text).to_owned()),
            Self::Objects(objects) => {
                let documents: Result<Vec<_>, _> =
                    objects.iter().map(serde_saphyr::to_string).collect();
                Ok(documents?.join("---\n"))
            }
        }
    }
}

impl RootInfo {
    /// The package of a name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        ROOTS.iter().find(|root| root.name == name)
    }

    /// Its `crossplane.yaml`.
    pub fn meta(&self, release: &Release) -> Value {
        let mut spec = json!({"crossplane": {"version": self.crossplane}});
        if let Some(capabilities) = capabilities(self.kind) {
            spec["capabilities"] = capabilities;
        }
        let depends_on: Vec<Value> = self
            .depends_on
            .iter()
            .filter_map(|name| Self::by_name(name))
            .map(|of| {
                json!({
                    "apiVersion": "pkg.crossplane.io/v1",
                    "kind": of.kind.as_str(),
                    "package": release.repository(of.name),
                    "version": release.constraint(),
                })
            })
            .collect();
        if !depends_on.is_empty() {
            spec["dependsOn"] = depends_on.into();
        }
        json!({
            "apiVersion": "meta.pkg.crossplane.io/v1",
            "kind": self.kind.as_str(),
            "metadata": {
                "name": self.name,
                "annotations": {
                    "friendly-name.meta.crossplane.io": self.title,
                    "meta.crossplane.io/description": self.description,
                    "meta.crossplane.io/license": "Apache-2.0",
                    "meta.crossplane.io/maintainer": MAINTAINER,
                    "meta.crossplane.io/readme": self.readme,
                    "meta.crossplane.io/source": SOURCE,
                },
            },
            "spec": spec,
        })
    }

    /// Every file of its root. `crds` are those of the provider, if it is one.
    pub fn files(&self, release: &Release, crds: Vec<Value>) -> Vec<RootFile> {
        let mut files = vec![RootFile {
            path: "crossplane.yaml".into(),
            text: FileText::Objects(vec![self.meta(release)]),
        }];
        files.extend(crds.into_iter().map(|crd| object_file("crds", crd)));
        match self.name {
            "configuration-ecp" => files.extend(definitions(release, Flavour::V2)),
            "configuration-ecp-claims" => files.extend(definitions(release, Flavour::Claims)),
            "function-ecp" => files.push(RootFile {
                path: "crds/inputs.fn.secapi.cloud.yaml".into(),
                text: FileText::Yaml(include_str!("../function-ecp/input.yaml")),
            }),
            _ => {}
        }
        files
    }

    /// Its examples. They belong beside the root, not into it: upstream's `xpkg build` takes every
    /// file of a root for a part of the package.
    pub fn examples(&self) -> Vec<RootFile> {
        let files: &[(&str, &str)] = match self.name {
            "configuration-ecp" | "configuration-ecp-claims" => &FIRST_VOLUME,
            "provider-ecp" => &[(
                "workspace-namespace.yaml",
                include_str!("../provider-ecp/examples/workspace-namespace.yaml"),
            )],
            "provider-dummy" => &[(
                "volume.yaml",
                include_str!("../provider-dummy/examples/volume.yaml"),
            )],
            _ => &[],
        };
        let file = |(name, text): &(&str, &'static str)| RootFile {
            path: (*name).into(),
            text: FileText::Yaml(text),
        };
        files.iter().map(file).collect()
    }
}

fn object_file(folder: &str, object: Value) -> RootFile {
    RootFile {
        path: format!("{folder}/{}.yaml", object::name(&object)),
        text: FileText::Objects(vec![object]),
    }
}

/// XRDs and Compositions, which call the function by the name it gets from the registry.
fn definitions(release: &Release, flavour: Flavour) -> Vec<RootFile> {
    let xrds = ecp_xrds::xrds(flavour).into_iter();
    let mut files: Vec<_> = xrds.map(|xrd| object_file("xrds", xrd)).collect();
    let function = release.object_name("function-ecp");
    for mut composition in compositions(flavour) {
        let steps = composition.pointer_mut("/spec/pipeline");
        for step in steps.and_then(Value::as_array_mut).into_iter().flatten() {
            step["functionRef"]["name"] = function.as_str().into();
        }
        files.push(object_file("compositions", composition));
    }
    files
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn objects(file: &RootFile) -> Vec<Value> {
        serde_saphyr::from_multiple(&file.text.to_yaml().unwrap()).unwrap()
    }

    fn release(registry: &str, version: &str) -> Release {
        Release::new(registry, version.parse().unwrap()).unwrap()
    }

    #[test]
    fn each_meta_file_is_as_committed() {
        let release = release(REGISTRY, "1.2.3");
        for root in ROOTS {
            let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/roots");
            let file = dir.join(format!("{}.yaml", root.name));
            let text = serde_saphyr::to_string(&root.meta(&release)).unwrap();
            if std::env::var_os("UPDATE").is_some() {
                std::fs::create_dir_all(&dir).unwrap();
                std::fs::write(&file, &text).unwrap();
            }
            let committed = std::fs::read_to_string(&file).unwrap();
            assert_eq!(text, committed, "{}: UPDATE=1 refreshes it", root.name);
        }
    }

    #[test]
    fn a_release_can_be_elsewhere_and_a_prerelease() {
        let there = release("localhost:5000/some.org/sub", "0.2.0-rc.1");
        assert_eq!(there.tag(), "v0.2.0-rc.1");
        assert_eq!(there.constraint(), ">=v0.2.0-rc.1, <v1.0.0-0");
        let name = "some-org-sub-function-ecp";
        assert_eq!(there.object_name("function-ecp"), name);
        let root = RootInfo::by_name("configuration-ecp").unwrap();
        let depends_on = &root.meta(&there)["spec"]["dependsOn"];
        let function = "localhost:5000/some.org/sub/function-ecp";
        assert_eq!(depends_on[0]["package"], function);
        let called: BTreeSet<String> = root
            .files(&there, Vec::new())
            .into_iter()
            .filter(|file| file.path.starts_with("compositions/"))
            .flat_map(|file| match file.text {
                FileText::Objects(objects) => objects,
                FileText::Yaml(_) => Vec::new(),
            })
            .map(|c| c["spec"]["pipeline"][0]["functionRef"]["name"].to_string())
            .collect();
        assert_eq!(called, BTreeSet::from([format!("{name:?}")]));
    }

    #[test]
    fn dependencies_have_the_name_that_crossplane_makes_of_the_repository() {
        let ours = release(REGISTRY, "0.1.0");
        let name = "eu-sovereign-cloud-function-ecp";
        assert_eq!(ours.object_name("function-ecp"), name);
        // Cut to 63 bytes, the last of which is no dash; underscores go.
        let long = release(&format!("x.io/{}/a_b", "o".repeat(58)), "0.1.0");
        assert_eq!(long.object_name("p"), format!("{}-ab", "o".repeat(58)));
    }

    #[test]
    fn a_registry_is_a_host_and_a_path() {
        let version: Version = "1.0.0".parse().unwrap();
        let fits = |text| Release::new(text, version.clone()).is_ok();
        for good in [
            REGISTRY,
            "localhost:5000/a",
            "localhost/a",
            "127.0.0.1:80/a/b",
            "a.b/c-d",
        ] {
            assert!(fits(good), "{good}");
        }
        let bad = [
            "",
            "ghcr.io",
            "ghcr.io/",
            "/a",
            "a/b",
            "https://ghcr.io/a",
            "ghcr.io/A",
            "ghcr.io/a/",
            "ghcr.io/a:v1",
            "ghcr.io/a@sha256:0",
            "localhost:x/a",
            "ghcr.io/a b",
            "ghcr.io/a//b",
        ];
        for bad in bad {
            assert!(!fits(bad), "{bad}");
        }
    }

    /// Crossplane 1.20 cannot read a package with a kind that it does not know.
    #[test]
    fn what_also_works_with_1_20_has_nothing_that_only_2_knows() {
        for root in ROOTS.iter().filter(|root| root.crossplane == ANY) {
            for file in root.files(&release(REGISTRY, "1.0.0"), Vec::new()) {
                for object in objects(&file) {
                    let known = [
                        ("meta.pkg.crossplane.io/v1", root.kind.as_str()),
                        (
                            "apiextensions.crossplane.io/v1",
                            "CompositeResourceDefinition",
                        ),
                        ("apiextensions.crossplane.io/v1", "Composition"),
                        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
                    ];
                    let version = object["apiVersion"].as_str().unwrap();
                    let kind = object["kind"].as_str().unwrap();
                    assert!(known.contains(&(version, kind)), "{}", file.path);
                    // 1.20 ignores the field; any other value would mean something else to it than to 2.
                    let scope = object["spec"]
                        .get("scope")
                        .filter(|_| kind != "CustomResourceDefinition");
                    assert!(scope.is_none_or(|s| s == "LegacyCluster"), "{}", file.path);
                }
            }
        }
    }

    #[test]
    fn every_file_is_yaml_and_has_a_name_of_its_own() {
        for root in ROOTS {
            let files = root.files(&release(REGISTRY, "1.0.0"), Vec::new());
            let paths: BTreeSet<_> = files.iter().map(|f| f.path.as_str()).collect();
            assert_eq!(paths.len(), files.len(), "{}", root.name);
            for file in files.iter().chain(&root.examples()) {
                let all = objects(file);
                assert!(all.iter().all(|o| o["kind"].is_string()), "{}", file.path);
            }
        }
    }
}
