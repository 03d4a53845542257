//! The kinds of `pkg.crossplane.io`, as upstream serves them (`cluster/crds` of Crossplane 2.3):
//! packages, their revisions and the Lock.
//!
//! One difference: `spec.package` may also be a `file:///` URL, for what is installed without a
//! registry. Deprecated versions (`v1beta1` of functions) are not served.

use ecp_schema::conditions;
use serde_json::{Map, Value, json};

use super::{Names, rule, string_map, text, version};

const GROUP: &str = "pkg.crossplane.io";

/// Upstream's rule for images, and ours for files.
const IMAGE_RULE: &str = concat!(
    r"self.matches('^[^\\.\\/]+(\\.[^\\.\\/]+)+(\\/[^\\/:@]+)+(:[^:@]+(@sha256.+)?|@sha256.+)$')",
    r" || self.matches('^file:\\/\\/\\/.+$')",
);
const IMAGE_MESSAGE: &str = "must be a fully qualified image name, including the registry, \
    repository, and tag or digest. For example, 'registry.example.com/repo/package:tag' or \
    'registry.example.com/repo/package[:tag]@sha256:1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef'; \
    or the absolute path of a file or directory, as in 'file:///home/me/package.xpkg'";

/// One kind of package.
struct Kind {
    kind: &'static str,
    plural: &'static str,
    description: &'static str,
    /// Whether something runs.
    runtime: bool,
    /// Whether it is called over gRPC.
    endpoint: bool,
}

const KINDS: [Kind; 3] = [
    Kind {
        kind: "Configuration",
        plural: "configurations",
        description: "A Configuration installs an OCI compatible Crossplane package with \
            CompositeResourceDefinitions and Compositions.",
        runtime: false,
        endpoint: false,
    },
    Kind {
        kind: "Function",
        plural: "functions",
        description: "A Function installs an OCI compatible Crossplane package with a composition \
            function.",
        runtime: true,
        endpoint: true,
    },
    Kind {
        kind: "Provider",
        plural: "providers",
        description: "A Provider installs an OCI compatible Crossplane package with kinds of \
            managed resources and their controllers.",
        runtime: true,
        endpoint: false,
    },
];

/// Packages, revisions and the Lock.
pub(super) fn all() -> Vec<Value> {
    let mut crds: Vec<Value> = KINDS
        .iter()
        .flat_map(|k| [k.package(), k.revision()])
        .collect();
    crds.push(lock());
    crds
}

impl Kind {
    fn package(&self) -> Value {
        let mut spec = common_spec();
        let mut package = text("A fully qualified image name, or a file:/// URL.");
        package["x-kubernetes-validations"] = json!([rule(IMAGE_RULE, IMAGE_MESSAGE)]);
        spec.insert("package".into(), package);
        let mut activation = text("Automatic or Manual: whether a new revision is activated.");
        activation["default"] = "Automatic".into();
        spec.insert("revisionActivationPolicy".into(), activation);
        spec.insert(
            "revisionHistoryLimit".into(),
            json!({
                "type": "integer", "format": "int64", "default": 1,
                "description": "How many inactive revisions are kept; 0 keeps all.",
            }),
        );
        if self.runtime {
            spec.insert("runtimeConfigRef".into(), runtime_config_ref());
        }
        let status = json!({
            "type": "object",
            "properties": {
                "appliedImageConfigRefs": image_configs(),
                "conditions": conditions(),
                "currentIdentifier": text("The source of the last revision that was made."),
                "currentRevision": text("Name of the newest revision, active or not."),
                "resolvedPackage": text("The image that the source stands for."),
            },
        });
        let spec = json!({"type": "object", "required": ["package"], "properties": spec});
        let column = |name, condition| (name, condition_path(condition), 0);
        self.crd(
            self.kind,
            self.plural,
            "pkg",
            self.description,
            json!({"spec": spec, "status": status}),
            &[
                column("INSTALLED", "Installed"),
                column("HEALTHY", "Healthy"),
                ("PACKAGE", ".spec.package".into(), 0),
            ],
        )
    }

    fn revision(&self) -> Value {
        let mut spec = common_spec();
        spec.insert("image".into(), text("The package, as its parent names it."));
        spec.insert("desiredState".into(), text("Active or Inactive."));
        spec.insert(
            "revision".into(),
            json!({
                "type": "integer", "format": "int64",
                "description": "Number of the revision; a larger one is newer.",
            }),
        );
        let mut status: Map<String, Value> = ["found", "installed", "invalid"]
            .into_iter()
            .map(|which| {
                let count = json!({"type": "integer", "format": "int64",
                    "description": "Number of dependencies."});
                (format!("{which}Dependencies"), count)
            })
            .collect();
        status.insert("appliedImageConfigRefs".into(), image_configs());
        status.insert("conditions".into(), conditions());
        status.insert("resolvedImage".into(), text("The image that is installed."));
        status.insert(
            "objectRefs".into(),
            json!({
                "type": "array",
                "description": "What the revision has installed.",
                "items": {
                    "type": "object",
                    "required": ["apiVersion", "kind", "name"],
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "kind": {"type": "string"},
                        "name": {"type": "string"},
                        "uid": {"type": "string"},
                    },
                },
            }),
        );
        status.insert(
            "capabilities".into(),
            json!({
                "type": "array", "items": {"type": "string"},
                "description": "What the package says that it can do.",
            }),
        );
        if self.runtime {
            spec.insert("runtimeConfigRef".into(), runtime_config_ref());
            for which in ["Client", "Server"] {
                let name = text(&format!(
                    "Secret of its TLS {} certificate.",
                    which.to_lowercase()
                ));
                spec.insert(format!("tls{which}SecretName"), name.clone());
                status.insert(format!("tls{which}SecretName"), name);
            }
        }
        if self.endpoint {
            let endpoint = text("Where the function answers over gRPC.");
            status.insert("endpoint".into(), endpoint);
        }
        let mut columns = vec![("HEALTHY", condition_path("RevisionHealthy"), 0)];
        if self.runtime {
            columns.push(("RUNTIME-HEALTHY", condition_path("RuntimeHealthy"), 0));
            columns.push(("RUNTIME-ACTIVE", condition_path("RuntimeActive"), 0));
        }
        columns.extend([
            ("IMAGE", ".spec.image".into(), 0),
            ("STATE", ".spec.desiredState".into(), 0),
            ("REVISION", ".spec.revision".into(), 1),
            ("DEP-FOUND", ".status.foundDependencies".into(), 1),
            ("DEP-INSTALLED", ".status.installedDependencies".into(), 1),
        ]);
        let spec = json!({
            "type": "object",
            "required": ["desiredState", "image", "revision"],
            "properties": spec,
        });
        self.crd(
            &format!("{}Revision", self.kind),
            &format!("{}revisions", self.kind.to_lowercase()),
            "pkgrev",
            &format!("A {0}Revision is what a {0} was at one time.", self.kind),
            json!({"spec": spec, "status": {"type": "object", "properties": status}}),
            &columns,
        )
    }

    fn crd(
        &self,
        kind: &str,
        plural: &str,
        category: &'static str,
        description: &str,
        properties: Value,
        columns: &[(&str, String, i64)],
    ) -> Value {
        let names = Names {
            group: GROUP,
            kind,
            plural,
            short: &[],
            categories: &["crossplane", category],
        };
        let columns: Vec<(&str, &str, i64)> = columns
            .iter()
            .map(|(n, p, i)| (*n, p.as_str(), *i))
            .collect();
        let mut version = version("v1", description, properties, &columns);
        version["subresources"] = json!({"status": {}});
        names.crd(vec![version])
    }
}

/// Fields that packages have in common with their revisions.
fn common_spec() -> Map<String, Value> {
    let flag = |description: &str| json!({"type": "boolean", "default": false, "description": description});
    let mut policy = text("When the package is pulled: IfNotPresent, Always or Never.");
    policy["default"] = "IfNotPresent".into();
    [
        (
            "commonAnnotations",
            string_map("Annotations of all that is installed."),
        ),
        (
            "commonLabels",
            string_map("Labels of all that is installed."),
        ),
        (
            "ignoreCrossplaneConstraints",
            flag("Whether the package's constraint on the version of Crossplane is ignored."),
        ),
        ("packagePullPolicy", policy),
        (
            "packagePullSecrets",
            json!({
                "type": "array",
                "description": "Secrets with credentials of registries.",
                "items": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "properties": {"name": {"type": "string", "default": ""}},
                },
            }),
        ),
        (
            "skipDependencyResolution",
            flag("Whether dependencies of the package are ignored."),
        ),
    ]
    .into_iter()
    .map(|(name, schema)| (name.to_owned(), schema))
    .collect()
}

fn runtime_config_ref() -> Value {
    json!({
        "type": "object",
        "description": "How the package runs in pods.",
        "default": {"name": "default"},
        "required": ["name"],
        "properties": {
            "apiVersion": {"type": "string", "default": "pkg.crossplane.io/v1beta1"},
            "kind": {"type": "string", "default": "DeploymentRuntimeConfig"},
            "name": {"type": "string"},
        },
    })
}

fn image_configs() -> Value {
    json!({
        "type": "array",
        "description": "ImageConfigs that were used.",
        "items": {
            "type": "object",
            "required": ["name", "reason"],
            "properties": {"name": {"type": "string"}, "reason": {"type": "string"}},
        },
    })
}

fn condition_path(condition: &str) -> String {
    format!(".status.conditions[?(@.type=='{condition}')].status")
}

fn lock() -> Value {
    let names = Names {
        group: GROUP,
        kind: "Lock",
        plural: "locks",
        short: &[],
        categories: &[],
    };
    let kind = json!({"type": "string", "enum": ["Configuration", "Provider", "Function"]});
    let packages = json!({
        "type": "array",
        "description": "The active revisions.",
        "items": {
            "type": "object",
            "required": ["dependencies", "name", "source", "version"],
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "name": text("Name of the revision."),
                "source": text("The image, without tag and digest."),
                "version": text("Its tag or digest."),
                "type": kind,
                "dependencies": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["constraints", "package"],
                        "properties": {
                            "apiVersion": {"type": "string"},
                            "kind": {"type": "string"},
                            "package": text("The image, without tag and digest."),
                            "constraints": text("A range of versions, or a digest."),
                            "type": kind,
                        },
                    },
                },
            },
        },
    });
    let status = json!({"type": "object", "properties": {"conditions": conditions()}});
    let mut version = version(
        "v1beta1",
        "The Lock tells which packages are installed, and what they depend on.",
        json!({"packages": packages, "status": status}),
        &[],
    );
    version["subresources"] = json!({"status": {}});
    names.crd(vec![version])
}
