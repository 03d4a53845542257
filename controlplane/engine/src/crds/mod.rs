//! The CRDs of the engine's own kinds, as upstream Crossplane serves them.

mod composition;
mod definition;
mod package;

use serde_json::{Value, json};

/// The CRDs the engine and the package manager need: definitions, Compositions and their revisions,
/// environment configs, packages and their revisions, and the Lock.
///
/// They are structural, with printer columns and the rules that make fields immutable.
pub fn crds() -> Vec<Value> {
    let mut crds = vec![
        definition::composite_resource_definition(),
        composition::composition(),
        composition::composition_revision(),
        composition::environment_config(),
    ];
    crds.extend(package::all());
    crds
}

/// Names and scope of one of the engine's kinds; all are cluster-scoped.
struct Names<'a> {
    group: &'a str,
    kind: &'a str,
    plural: &'a str,
    short: &'a [&'a str],
    categories: &'a [&'a str],
}

impl Names<'_> {
    fn crd(&self, versions: Vec<Value>) -> Value {
        let mut names = json!({
            "kind": self.kind,
            "listKind": format!("{}List", self.kind),
            "plural": self.plural,
            "singular": self.kind.to_lowercase(),
        });
        if !self.categories.is_empty() {
            names["categories"] = json!(self.categories);
        }
        if !self.short.is_empty() {
            names["shortNames"] = json!(self.short);
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{}.{}", self.plural, self.group)},
            "spec": {
                "group": self.group,
                "names": names,
                "scope": "Cluster",
                "versions": versions,
            },
        })
    }
}

/// A served version with a schema and printer columns (name, path, priority).
fn version(
    name: &str,
    description: &str,
    properties: Value,
    columns: &[(&str, &str, i64)],
) -> Value {
    let mut columns: Vec<Value> = columns
        .iter()
        .map(|(name, path, priority)| {
            json!({"name": name, "type": "string", "jsonPath": path, "priority": priority})
        })
        .collect();
    columns.push(json!({
        "name": "AGE",
        "type": "date",
        "jsonPath": ".metadata.creationTimestamp",
        "priority": 0,
    }));
    for column in &mut columns {
        if column["priority"] == 0
            && let Some(column) = column.as_object_mut()
        {
            column.remove("priority");
        }
    }
    let mut all = json!({
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
    });
    if let (Some(all), Some(own)) = (all.as_object_mut(), properties.as_object()) {
        all.extend(own.iter().map(|(k, v)| (k.clone(), v.clone())));
    }
    json!({
        "name": name,
        "served": true,
        "storage": true,
        "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": {
            "type": "object",
            "description": description,
            "properties": all,
        }},
    })
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn choice(description: &str, of: &[&str]) -> Value {
    json!({"type": "string", "enum": of, "description": description})
}

fn immutable(mut schema: Value) -> Value {
    let rules = schema["x-kubernetes-validations"].take();
    let mut rules: Vec<Value> = rules.as_array().cloned().unwrap_or_default();
    rules.insert(0, rule("self == oldSelf", "Value is immutable"));
    schema["x-kubernetes-validations"] = rules.into();
    schema
}

fn rule(rule: &str, message: &str) -> Value {
    json!({"rule": rule, "message": message})
}

fn string_map(description: &str) -> Value {
    json!({
        "type": "object",
        "description": description,
        "additionalProperties": {"type": "string"},
    })
}

fn free_object(description: &str) -> Value {
    json!({
        "type": "object",
        "description": description,
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

#[cfg(test)]
mod tests {
    use ecp_schema::Structural;

    use super::*;

    #[test]
    fn every_schema_is_structural_and_one_version_is_stored() {
        for crd in crds() {
            let name = crd["metadata"]["name"].clone();
            let versions = crd["spec"]["versions"].as_array().expect("versions");
            let stored = versions.iter().filter(|v| v["storage"] == true).count();
            assert_eq!(stored, 1, "{name}");
            for version in versions {
                let schema = &version["schema"]["openAPIV3Schema"];
                if let Err(errors) = Structural::compile(schema) {
                    panic!("{name}: {errors:?}");
                }
            }
        }
    }

    #[test]
    fn definitions_are_checked_when_they_are_written() {
        let crd = definition::composite_resource_definition();
        let schema = |version: usize| {
            let schema = &crd["spec"]["versions"][version]["schema"]["openAPIV3Schema"];
            Structural::compile(schema).expect("structural")
        };
        let xrd = |scope: Option<&str>, claims: bool| {
            let mut xrd = json!({
                "apiVersion": "apiextensions.crossplane.io/v1",
                "kind": "CompositeResourceDefinition",
                "metadata": {"name": "xdisks.ex.test"},
                "spec": {
                    "group": "ex.test",
                    "names": {"kind": "XDisk", "plural": "xdisks"},
                    "versions": [{"name": "v1", "served": true, "referenceable": true}],
                },
            });
            if let Some(scope) = scope {
                xrd["spec"]["scope"] = scope.into();
            }
            if claims {
                xrd["spec"]["claimNames"] = json!({"kind": "Disk", "plural": "disks"});
            }
            xrd
        };
        for (version, scope, claims, valid) in [
            (0, None, true, true),
            (0, Some("Namespaced"), true, false),
            (0, Some("Namespaced"), false, true),
            (0, Some("Other"), false, false),
            (1, None, false, true),
            (1, None, true, false),
            (1, Some("LegacyCluster"), false, false),
        ] {
            let structural = schema(version);
            let mut xrd = xrd(scope, claims);
            structural.default(&mut xrd);
            let errors = structural.validate(&xrd, None);
            assert_eq!(errors.is_empty(), valid, "{version} {scope:?}: {errors:?}");
        }
        let structural = schema(0);
        let mut old = xrd(None, true);
        structural.default(&mut old);
        assert_eq!(old["spec"]["scope"], "LegacyCluster");
        let mut new = old.clone();
        new["spec"]["names"]["plural"] = json!("ydisks");
        assert!(!structural.validate(&new, Some(&old)).is_empty());
    }

    #[test]
    fn a_package_is_a_qualified_image_or_an_absolute_file() {
        let crds = package::all();
        let schema = |kind: &str| {
            let crd = crds.iter().find(|c| c["spec"]["names"]["kind"] == kind);
            let crd = crd.expect("a CRD");
            Structural::compile(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
                .expect("structural")
        };
        let function = schema("Function");
        for (source, valid) in [
            ("xpkg.crossplane.io/org/name:v1.2.3", true),
            ("127.0.0.1:5000/org/name:v1", true),
            ("xpkg.crossplane.io/org/name@sha256:ab", true),
            ("xpkg.crossplane.io/org/name:v1@sha256:ab", true),
            ("file:///home/me/package.xpkg", true),
            ("xpkg.crossplane.io/org/name", false),
            ("org/name:v1", false),
            ("name:v1", false),
            ("file://package.xpkg", false),
            ("package.xpkg", false),
        ] {
            let mut object = json!({
                "apiVersion": "pkg.crossplane.io/v1", "kind": "Function",
                "metadata": {"name": "f"}, "spec": {"package": source},
            });
            function.default(&mut object);
            assert_eq!(object["spec"]["runtimeConfigRef"]["name"], "default");
            assert_eq!(object["spec"]["revisionHistoryLimit"], 1);
            let errors = function.validate(&object, None);
            assert_eq!(errors.is_empty(), valid, "{source}: {errors:?}");
        }
    }
}
