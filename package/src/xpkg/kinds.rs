//! What a package may hold (crossplane-runtime `pkg/xpkg/scheme.go`, `lint.go`; contract 6.3).

use super::PackageKind;

const CRD_GROUP: &str = "apiextensions.k8s.io";
const XP_GROUP: &str = "apiextensions.crossplane.io";
const OPS_GROUP: &str = "ops.crossplane.io";
const ADMISSION_GROUP: &str = "admissionregistration.k8s.io";

/// Objects that some package may hold: group, versions, kind.
const KNOWN: &[(&str, &[&str], &str)] = &[
    (CRD_GROUP, &["v1", "v1beta1"], "CustomResourceDefinition"),
    (XP_GROUP, &["v1", "v2"], "CompositeResourceDefinition"),
    (XP_GROUP, &["v1"], "Composition"),
    (XP_GROUP, &["v1alpha1"], "ManagedResourceDefinition"),
    (XP_GROUP, &["v1alpha1"], "ManagedResourceActivationPolicy"),
    (OPS_GROUP, &["v1alpha1"], "Operation"),
    (OPS_GROUP, &["v1alpha1"], "CronOperation"),
    (OPS_GROUP, &["v1alpha1"], "WatchOperation"),
    (ADMISSION_GROUP, &["v1"], "ValidatingWebhookConfiguration"),
    (ADMISSION_GROUP, &["v1"], "MutatingWebhookConfiguration"),
];

/// Known kinds, in words.
pub(super) const EXPECTED: &str = "one Provider, Configuration or Function of meta.pkg.crossplane.io, and \
     CustomResourceDefinitions, CompositeResourceDefinitions, Compositions, \
     ManagedResourceDefinitions, ManagedResourceActivationPolicies, Operations, CronOperations, \
     WatchOperations and webhook configurations";

/// Whether Crossplane 1.20 cannot read such an object; it does not install a package that has one.
pub fn needs_crossplane_2(api_version: &str, kind: &str) -> bool {
    match api_version.split_once('/') {
        Some((XP_GROUP, version)) => version == "v2" || version == "v1alpha1",
        Some((OPS_GROUP, _)) => is_known(api_version, kind),
        _ => false,
    }
}

/// Whether any package may hold an object of this kind.
pub(super) fn is_known(api_version: &str, kind: &str) -> bool {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    KNOWN
        .iter()
        .any(|(g, versions, k)| (*g, *k) == (group, kind) && versions.contains(&version))
}

impl PackageKind {
    /// Whether a package of this kind may hold objects of that kind, which is a known one.
    pub(super) fn may_hold(self, kind: &str) -> bool {
        match self {
            Self::Provider => matches!(
                kind,
                "CustomResourceDefinition"
                    | "ManagedResourceDefinition"
                    | "ValidatingWebhookConfiguration"
                    | "MutatingWebhookConfiguration"
            ),
            Self::Configuration => matches!(
                kind,
                "CompositeResourceDefinition"
                    | "Composition"
                    | "ManagedResourceActivationPolicy"
                    | "Operation"
                    | "CronOperation"
                    | "WatchOperation"
            ),
            Self::Function => kind == "CustomResourceDefinition",
        }
    }

    /// What it may hold, in words.
    pub(super) fn expected(self) -> &'static str {
        match self {
            Self::Provider => {
                "CustomResourceDefinitions, ManagedResourceDefinitions or webhook configurations"
            }
            Self::Configuration => {
                "CompositeResourceDefinitions, Compositions, ManagedResourceActivationPolicies or \
                 Operations"
            }
            Self::Function => "CustomResourceDefinitions, of its inputs",
        }
    }
}
