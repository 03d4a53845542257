//! The meta document of a package: `meta.pkg.crossplane.io` (crossplane `apis/pkg/meta`).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{Constraint, Error, is_digest};

/// API group of meta documents.
pub(super) const GROUP: &str = "meta.pkg.crossplane.io";
const PACKAGE_API_VERSION: &str = "pkg.crossplane.io/v1";

/// The kinds of package that Crossplane knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PackageKind {
    /// XRDs and Compositions.
    Configuration,
    /// A composition function.
    Function,
    /// CRDs of managed resources, and their controllers.
    Provider,
}

impl PackageKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Configuration, Self::Function, Self::Provider];

    /// The Kubernetes kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Configuration => "Configuration",
            Self::Function => "Function",
            Self::Provider => "Provider",
        }
    }

    /// Reads a Kubernetes kind.
    pub fn from_kind(kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|of| of.as_str() == kind)
    }

    /// Versions of the meta API that have this kind.
    fn versions(self) -> &'static [&'static str] {
        match self {
            Self::Function => &["v1", "v1beta1"],
            Self::Configuration | Self::Provider => &["v1", "v1alpha1"],
        }
    }
}

/// What a package says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Meta {
    /// What the package is.
    pub kind: PackageKind,
    /// Its name, which need not be that of its repository.
    pub name: String,
    /// Annotations, such as a description.
    pub annotations: BTreeMap<String, String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Versions of Crossplane that can take it, if it says so: see [`Constraint`].
    pub crossplane: Option<String>,
    /// Packages that it needs, in its order.
    pub depends_on: Vec<Dependency>,
    /// What it can do, such as `safe-start`.
    pub capabilities: Vec<String>,
    /// The document as it was written, from which the rest was read.
    pub document: Value,
}

/// A package that another needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// apiVersion of the object that installs it.
    pub api_version: String,
    /// Kind of the object that installs it.
    pub kind: String,
    /// Repository, without tag and digest.
    pub package: String,
    /// Versions that will do, or a digest.
    pub constraints: String,
}

#[derive(Deserialize)]
struct Document {
    metadata: Metadata,
    spec: Option<Spec>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
    annotations: Option<BTreeMap<String, String>>,
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    crossplane: Option<CrossplaneSpec>,
    depends_on: Option<Vec<DependencySpec>>,
    capabilities: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct CrossplaneSpec {
    #[serde(default)]
    version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DependencySpec {
    api_version: Option<String>,
    kind: Option<String>,
    package: Option<String>,
    provider: Option<String>,
    configuration: Option<String>,
    function: Option<String>,
    #[serde(default)]
    version: String,
}

impl DependencySpec {
    /// The keys `configuration`, `provider` and `function` are deprecated, and still in use.
    fn read(self) -> Result<Dependency, &'static str> {
        let deprecated = [
            (self.configuration, PackageKind::Configuration),
            (self.provider, PackageKind::Provider),
            (self.function, PackageKind::Function),
        ];
        let mut named = deprecated
            .into_iter()
            .filter_map(|(package, kind)| Some((package?, kind)));
        let (api_version, kind, package) = match (named.next(), named.next()) {
            (Some(_), Some(_)) => {
                return Err("has more than one of provider, configuration and function");
            }
            (Some((package, kind)), None) => {
                (PACKAGE_API_VERSION.into(), kind.as_str().into(), package)
            }
            (None, _) => match (self.api_version, self.kind, self.package) {
                (Some(api_version), Some(kind), Some(package)) => (api_version, kind, package),
                _ => return Err("expected apiVersion, kind and package"),
            },
        };
        Ok(Dependency {
            api_version,
            kind,
            package,
            constraints: self.version,
        })
    }
}

impl Meta {
    /// Reads a document of the meta group.
    pub(super) fn read(number: usize, document: Value) -> Result<Self, Error> {
        let text = |pointer| {
            let text = document.pointer(pointer).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let api_version = text("/apiVersion");
        let version = api_version.rsplit('/').next().unwrap_or_default();
        let known = PackageKind::from_kind(&text("/kind"));
        let Some(kind) = known.filter(|kind| kind.versions().contains(&version)) else {
            return Err(Error::UnknownKind {
                document: number,
                kind: text("/kind"),
                api_version,
                expected: super::kinds::EXPECTED,
            });
        };
        let name = text("/metadata/name");
        let read = Document::deserialize(&document).map_err(|error| Error::Document {
            document: number,
            why: format!("{} {name:?}: {error}", kind.as_str()),
        })?;
        let spec = read.spec.unwrap_or_default();
        let mut depends_on = Vec::new();
        for (i, dependency) in spec.depends_on.into_iter().flatten().enumerate() {
            depends_on.push(dependency.read().map_err(|why| Error::Meta {
                kind: kind.as_str(),
                name: name.clone(),
                field: format!("spec.dependsOn[{i}]"),
                why: why.into(),
            })?);
        }
        Ok(Self {
            kind,
            name: read.metadata.name,
            annotations: read.metadata.annotations.unwrap_or_default(),
            labels: read.metadata.labels.unwrap_or_default(),
            crossplane: spec.crossplane.map(|of| of.version),
            depends_on,
            capabilities: spec.capabilities.unwrap_or_default(),
            document,
        })
    }

    /// Whether it says that it can do something, however it is written: `safe-start`, `SafeStart`
    /// and `safe_start` are the same (contract 5.1).
    pub fn can(&self, capability: &str) -> bool {
        let bare = |text: &str| -> String {
            let letters = text.chars().filter(char::is_ascii_alphanumeric);
            letters.map(|c| c.to_ascii_lowercase()).collect()
        };
        self.capabilities
            .iter()
            .any(|own| bare(own) == bare(capability))
    }

    /// What is wrong with it, although it could be read.
    pub(super) fn lint(&self) -> Result<(), Error> {
        let wrong = |field: &str, why: String| Error::Meta {
            kind: self.kind.as_str(),
            name: self.name.clone(),
            field: field.into(),
            why,
        };
        if self.name.is_empty() {
            return Err(wrong("metadata.name", "expected a name".into()));
        }
        if let Some(range) = &self.crossplane {
            Constraint::parse(range).map_err(|why| wrong("spec.crossplane.version", why))?;
        }
        for (i, dependency) in self.depends_on.iter().enumerate() {
            let at = |field: &str| format!("spec.dependsOn[{i}].{field}");
            if dependency.package.is_empty() {
                return Err(wrong(&at("package"), "expected a repository".into()));
            }
            if PackageKind::from_kind(&dependency.kind).is_none() {
                let kind = &dependency.kind;
                let why = format!("{kind:?}: expected Configuration, Function or Provider");
                return Err(wrong(&at("kind"), why));
            }
            if !is_digest(&dependency.constraints) {
                Constraint::parse(&dependency.constraints)
                    .map_err(|why| wrong(&at("version"), why))?;
            }
        }
        Ok(())
    }
}
