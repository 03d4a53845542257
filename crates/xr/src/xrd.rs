//! CompositeResourceDefinitions: what an XRD says, checked.
//!
//! `spec.scope` decides how an XRD behaves, never its `apiVersion`: the XRD's own CRD has no
//! conversion, so a v1 XRD may be read as v2 and the other way round.

use std::collections::{BTreeMap, BTreeSet};

use ecp_meta::gvk::GroupVersionKind;
use ecp_meta::{names, object};
use serde::Deserialize;
use serde_json::Value;

/// API group of XRDs, Compositions and revisions.
pub const GROUP: &str = "apiextensions.crossplane.io";
/// Kind of an XRD.
pub const KIND: &str = "CompositeResourceDefinition";

/// A checked XRD.
#[derive(Clone, Debug, PartialEq)]
pub struct Xrd {
    /// `metadata.name`: `<plural>.<group>`.
    pub name: String,
    /// `metadata.uid`; empty for an XRD from a file.
    pub uid: String,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// `metadata.generation`.
    pub generation: i64,
    /// `spec`.
    pub spec: XrdSpec,
    /// The scope, with the default of the version the XRD was written in.
    pub scope: Scope,
}

/// Where XRs live, and where their Crossplane fields are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Scope {
    /// Cluster-scoped, machinery directly under `spec`, claims possible.
    LegacyCluster,
    /// Namespaced, machinery under `spec.crossplane`.
    Namespaced,
    /// Cluster-scoped, machinery under `spec.crossplane`.
    Cluster,
}

impl Scope {
    /// Whether XRs are namespaced.
    pub fn is_namespaced(self) -> bool {
        self == Self::Namespaced
    }

    /// Whether the machinery is directly under `spec`.
    pub fn is_legacy(self) -> bool {
        self == Self::LegacyCluster
    }
}

/// `spec` of an XRD.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct XrdSpec {
    /// API group of the XR.
    pub group: String,
    /// Names of the XR.
    pub names: Names,
    /// Scope as written.
    #[serde(default)]
    pub scope: Option<Scope>,
    /// Names of the claim.
    #[serde(default)]
    pub claim_names: Option<Names>,
    /// Keys an XR may publish.
    #[serde(default)]
    pub connection_secret_keys: Vec<String>,
    /// How claims delete their XR.
    #[serde(default)]
    pub default_composite_delete_policy: Option<String>,
    /// Composition of XRs that choose none.
    #[serde(default)]
    pub default_composition_ref: Option<Named>,
    /// Composition of all XRs.
    #[serde(default)]
    pub enforced_composition_ref: Option<Named>,
    /// Update policy of XRs that choose none.
    #[serde(default)]
    pub default_composition_update_policy: Option<String>,
    /// Revision selector of XRs that choose neither selector nor revision.
    #[serde(default)]
    pub default_composition_revision_selector: Option<MatchLabels>,
    /// Versions.
    pub versions: Vec<Version>,
    /// CRD conversion, copied as it is.
    #[serde(default)]
    pub conversion: Option<Value>,
    /// Metadata of the generated CRDs.
    #[serde(default)]
    pub metadata: Option<CrdMetadata>,
}

/// A reference by name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Named {
    /// Name.
    pub name: String,
}

/// A selector by labels.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MatchLabels {
    /// Labels that must be there.
    #[serde(default)]
    pub match_labels: BTreeMap<String, String>,
}

/// Metadata of the generated CRDs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct CrdMetadata {
    /// Labels, over the XRD's own.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

/// Names of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Names {
    /// Kind.
    pub kind: String,
    /// Plural.
    pub plural: String,
    /// Singular.
    #[serde(default)]
    pub singular: Option<String>,
    /// List kind.
    #[serde(default)]
    pub list_kind: Option<String>,
    /// Short names.
    #[serde(default)]
    pub short_names: Vec<String>,
    /// Categories.
    #[serde(default)]
    pub categories: Vec<String>,
}

/// One version of an XRD.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// Name, such as `v1`.
    pub name: String,
    /// Whether the API serves it.
    #[serde(default)]
    pub served: bool,
    /// Whether Compositions target it. Exactly one version is referenceable; it is stored.
    #[serde(default)]
    pub referenceable: bool,
    /// Deprecated.
    #[serde(default)]
    pub deprecated: bool,
    /// What clients are told.
    #[serde(default)]
    pub deprecation_warning: Option<String>,
    /// The user's printer columns.
    #[serde(default)]
    pub additional_printer_columns: Vec<Value>,
    /// Schema.
    #[serde(default)]
    pub schema: Option<Schema>,
    /// Subresources; only `scale` counts.
    #[serde(default)]
    pub subresources: Option<Value>,
}

/// A version's schema.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Schema {
    /// The schema itself.
    #[serde(default, rename = "openAPIV3Schema")]
    pub open_api_v3_schema: Option<Value>,
}

/// Why an XRD is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum XrdError {
    /// It does not have the shape of an XRD.
    #[error("invalid CompositeResourceDefinition {name:?}: {reason}")]
    Malformed {
        /// The XRD.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// Rules it breaks.
    #[error("invalid CompositeResourceDefinition {name:?}: {}", .reasons.join("; "))]
    Invalid {
        /// The XRD.
        name: String,
        /// Each rule.
        reasons: Vec<String>,
    },
}

impl Xrd {
    /// Parses and checks an XRD of either version.
    ///
    /// # Errors
    /// What is malformed, or every rule it breaks.
    pub fn parse(xrd: &Value) -> Result<Self, XrdError> {
        let name = object::name(xrd).to_owned();
        let malformed = |reason: String| XrdError::Malformed {
            name: name.clone(),
            reason,
        };
        let gvk = object::gvk(xrd);
        if gvk.group != GROUP || gvk.kind != KIND {
            return Err(malformed(format!("not an XRD but {gvk}")));
        }
        let spec = xrd.get("spec").cloned().unwrap_or_default();
        let spec: XrdSpec =
            serde_json::from_value(spec).map_err(|e| malformed(format!("spec: {e}")))?;
        let scope = spec.scope.unwrap_or(if gvk.version == "v1" {
            Scope::LegacyCluster
        } else {
            Scope::Namespaced
        });
        let parsed = Self {
            uid: object::uid(xrd).to_owned(),
            labels: object::labels(xrd)
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .collect(),
            generation: object::generation(xrd),
            spec,
            scope,
            name,
        };
        let reasons = parsed.broken_rules();
        if reasons.is_empty() {
            Ok(parsed)
        } else {
            Err(XrdError::Invalid {
                name: parsed.name,
                reasons,
            })
        }
    }

    /// The rules a change from `old` to `self` breaks: group, names, scope, claim names and the
    /// enforced Composition never change (claim names may be added).
    pub fn immutability_violations(&self, old: &Self) -> Vec<String> {
        let (new_spec, old_spec) = (&self.spec, &old.spec);
        let mut reasons = Vec::new();
        let mut check = |same: bool, field: &str| {
            if !same {
                reasons.push(format!("spec.{field} is immutable"));
            }
        };
        check(new_spec.group == old_spec.group, "group");
        check(new_spec.names == old_spec.names, "names");
        check(self.scope == old.scope, "scope");
        check(
            old_spec.claim_names.is_none() || new_spec.claim_names == old_spec.claim_names,
            "claimNames",
        );
        check(
            new_spec.enforced_composition_ref == old_spec.enforced_composition_ref,
            "enforcedCompositionRef",
        );
        reasons
    }

    /// The version Compositions target: the last referenceable one.
    pub fn referenceable_version(&self) -> &str {
        self.spec
            .versions
            .iter()
            .rfind(|v| v.referenceable)
            .map_or("", |v| v.name.as_str())
    }

    /// The kind of the XR, at the version Compositions target.
    pub fn composite_gvk(&self) -> GroupVersionKind {
        GroupVersionKind::new(
            &self.spec.group,
            self.referenceable_version(),
            &self.spec.names.kind,
        )
    }

    /// The kind of the claim, if there is one.
    pub fn claim_gvk(&self) -> Option<GroupVersionKind> {
        let names = self.spec.claim_names.as_ref()?;
        Some(GroupVersionKind::new(
            &self.spec.group,
            self.referenceable_version(),
            &names.kind,
        ))
    }

    fn broken_rules(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        let spec = &self.spec;
        let want = format!("{}.{}", spec.names.plural, spec.group);
        if self.name != want {
            reasons.push(format!("metadata.name must be <plural>.<group>, {want:?}"));
        }
        if !names::is_dns1123_subdomain(&spec.group) || !spec.group.contains('.') {
            reasons.push(format!(
                "spec.group {:?} must be a domain name with a dot",
                spec.group
            ));
        }
        check_names("spec.names", &spec.names, &mut reasons);
        self.check_versions(&mut reasons);
        if let Some(policy) = &spec.default_composition_update_policy
            && !matches!(policy.as_str(), "Automatic" | "Manual")
        {
            reasons.push(format!(
                "spec.defaultCompositionUpdatePolicy {policy:?} must be Automatic or Manual"
            ));
        }
        if let Some(claim) = &spec.claim_names {
            check_names("spec.claimNames", claim, &mut reasons);
            if !self.scope.is_legacy() {
                reasons.push("spec.claimNames needs spec.scope LegacyCluster".into());
            }
            reasons.extend(
                claim_name_conflicts(&spec.names, claim)
                    .map(|n| format!("spec.claimNames: {n:?} conflicts with spec.names")),
            );
        }
        if !spec.connection_secret_keys.is_empty() && !self.scope.is_legacy() {
            reasons.push("spec.connectionSecretKeys needs spec.scope LegacyCluster".into());
        }
        reasons
    }

    fn check_versions(&self, reasons: &mut Vec<String>) {
        let versions = &self.spec.versions;
        let referenceable = versions.iter().filter(|v| v.referenceable).count();
        if referenceable != 1 {
            reasons.push(format!(
                "exactly one of spec.versions must be referenceable, not {referenceable}"
            ));
        }
        let mut seen = BTreeSet::new();
        for version in versions {
            if !names::is_dns1123_label(&version.name) {
                reasons.push(format!("invalid version name {:?}", version.name));
            }
            if !seen.insert(&version.name) {
                reasons.push(format!("version {:?} is given twice", version.name));
            }
        }
    }
}

fn check_names(field: &str, names: &Names, reasons: &mut Vec<String>) {
    if !names::is_dns1123_label(&names.plural) {
        reasons.push(format!(
            "{field}.plural {:?} must be a lower-case DNS label",
            names.plural
        ));
    }
    if let Some(singular) = &names.singular
        && !names::is_dns1123_label(singular)
    {
        reasons.push(format!(
            "{field}.singular {singular:?} must be a lower-case DNS label"
        ));
    }
    if !names.kind.starts_with(|c: char| c.is_ascii_alphabetic())
        || !names.kind.chars().all(|c| c.is_ascii_alphanumeric())
    {
        reasons.push(format!("{field}.kind {:?} must be CamelCase", names.kind));
    }
}

/// The claim's names that the XR has, too.
pub(crate) fn claim_name_conflicts<'a>(
    xr: &'a Names,
    claim: &'a Names,
) -> impl Iterator<Item = &'a str> {
    let same = |a: Option<&'a str>, b: Option<&str>| a.filter(|a| !a.is_empty() && Some(*a) == b);
    [
        same(Some(&claim.kind), Some(&xr.kind)),
        same(Some(&claim.plural), Some(&xr.plural)),
        same(claim.singular.as_deref(), xr.singular.as_deref()),
        same(claim.list_kind.as_deref(), xr.list_kind.as_deref()),
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn xrd() -> Value {
        json!({
            "apiVersion": "apiextensions.crossplane.io/v1",
            "kind": "CompositeResourceDefinition",
            "metadata": {"name": "xdisks.ex.test"},
            "spec": {
                "group": "ex.test",
                "names": {"kind": "XDisk", "plural": "xdisks"},
                "claimNames": {"kind": "Disk", "plural": "disks"},
                "versions": [{"name": "v1", "served": true, "referenceable": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}}],
            },
        })
    }

    #[test]
    fn the_scope_defaults_by_the_version_it_was_written_in() {
        let mut v2 = xrd();
        assert_eq!(Xrd::parse(&v2).map(|x| x.scope), Ok(Scope::LegacyCluster));
        v2["apiVersion"] = json!("apiextensions.crossplane.io/v2");
        v2["spec"]["scope"] = json!("LegacyCluster");
        assert_eq!(Xrd::parse(&v2).map(|x| x.scope), Ok(Scope::LegacyCluster));
        if let Some(spec) = v2["spec"].as_object_mut() {
            spec.remove("scope");
            spec.remove("claimNames");
        }
        assert_eq!(Xrd::parse(&v2).map(|x| x.scope), Ok(Scope::Namespaced));
    }

    #[test]
    fn every_broken_rule_is_named() {
        for (path, value, want) in [
            ("/metadata/name", json!("disks"), "<plural>.<group>"),
            (
                "/spec/versions/0/referenceable",
                json!(false),
                "exactly one",
            ),
            ("/spec/claimNames/kind", json!("XDisk"), "conflicts"),
            ("/spec/claimNames/plural", json!("Disks"), "lower-case"),
            ("/spec/group", json!("test"), "domain name"),
            ("/spec/versions/0/name", json!("V 1"), "version name"),
        ] {
            let mut bad = xrd();
            *bad.pointer_mut(path).expect("path") = value;
            let error = Xrd::parse(&bad).expect_err(path).to_string();
            assert!(error.contains(want), "{path}: {error}");
        }
    }

    #[test]
    fn claims_need_the_legacy_scope() {
        let mut bad = xrd();
        bad["spec"]["scope"] = json!("Namespaced");
        let error = Xrd::parse(&bad).expect_err("claims").to_string();
        assert!(error.contains("claimNames needs"), "{error}");
    }

    #[test]
    fn malformed_input_is_an_error_and_never_a_panic() {
        for bad in [json!(null), json!({"kind": "X"}), json!({"spec": []})] {
            assert!(Xrd::parse(&bad).is_err());
        }
        let mut bad = xrd();
        bad["spec"]["versions"] = json!("v1");
        assert!(Xrd::parse(&bad).is_err());
    }

    #[test]
    fn names_may_not_change_but_claims_may_be_added() {
        let old = Xrd::parse(&xrd()).expect("valid");
        let mut changed = xrd();
        changed["spec"]["names"]["shortNames"] = json!(["d"]);
        let changed = Xrd::parse(&changed).expect("valid");
        assert_eq!(
            changed.immutability_violations(&old),
            ["spec.names is immutable"]
        );
        let mut without = old.clone();
        without.spec.claim_names = None;
        assert!(old.immutability_violations(&without).is_empty());
        assert_eq!(without.immutability_violations(&old).len(), 1);
    }
}
