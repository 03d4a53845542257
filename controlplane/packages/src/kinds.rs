//! The kinds that the package manager works with.

use ecp_meta::gvk::GroupVersionKind;
use ecp_package::xpkg::PackageKind;
use kube::core::ApiResource;

/// Label of a revision: its package.
pub(crate) const PARENT_LABEL: &str = "pkg.crossplane.io/package";
/// Group of packages.
pub(crate) const GROUP: &str = "pkg.crossplane.io";

/// A kind with what its URLs need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) gvk: GroupVersionKind,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
}

impl Kind {
    pub(crate) fn new(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        Self {
            gvk: GroupVersionKind::new(group, version, kind),
            plural: plural.to_owned(),
            namespaced: false,
        }
    }

    /// As kube's runtime names it.
    pub(crate) fn resource(&self) -> ApiResource {
        let gvk = &self.gvk;
        let gvk = kube::core::GroupVersionKind::gvk(&gvk.group, &gvk.version, &gvk.kind);
        ApiResource::from_gvk_with_plural(&gvk, &self.plural)
    }
}

/// Whether something of such packages runs.
pub(crate) fn has_runtime(kind: PackageKind) -> bool {
    kind != PackageKind::Configuration
}

/// The kind of packages.
pub(crate) fn package(kind: PackageKind) -> Kind {
    let plural = format!("{}s", kind.as_str().to_lowercase());
    Kind::new(GROUP, "v1", kind.as_str(), &plural)
}

/// The kind of their revisions.
pub(crate) fn revision(kind: PackageKind) -> Kind {
    let plural = format!("{}revisions", kind.as_str().to_lowercase());
    Kind::new(GROUP, "v1", &format!("{}Revision", kind.as_str()), &plural)
}

/// The Lock.
pub(crate) fn lock() -> Kind {
    Kind::new(GROUP, "v1beta1", "Lock", "locks")
}

/// Events.
pub(crate) fn event() -> Kind {
    Kind {
        namespaced: true,
        ..Kind::new("", "v1", "Event", "events")
    }
}

/// CustomResourceDefinitions.
pub(crate) fn crd() -> Kind {
    Kind::new(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    )
}

/// A kind of object that packages may hold, and what the package manager does with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// It is installed as it is.
    Install(Kind),
    /// It defines managed resources: its CRD is installed.
    Definition,
    /// It has no meaning here.
    Skip(&'static str),
}

/// What is done with an object of a package; `None` when such a package may not hold it.
pub(crate) fn content(package: PackageKind, of: &GroupVersionKind) -> Option<Content> {
    const WEBHOOKS: &str = "admission webhooks are not called by this control plane";
    const POLICIES: &str = "all managed resource definitions are active";
    const OPERATIONS: &str = "operations are not run by this control plane";
    let install = |plural: &str| {
        let GroupVersionKind {
            group,
            version,
            kind,
        } = of;
        Content::Install(Kind::new(group, version, kind, plural))
    };
    let name = (of.group.as_str(), of.version.as_str(), of.kind.as_str());
    Some(match (package, name) {
        (PackageKind::Provider, ("apiextensions.k8s.io", "v1", "CustomResourceDefinition")) => {
            Content::Install(crd())
        }
        (
            PackageKind::Provider,
            ("apiextensions.crossplane.io", "v1alpha1", "ManagedResourceDefinition"),
        ) => Content::Definition,
        (
            PackageKind::Provider,
            (
                "admissionregistration.k8s.io",
                "v1",
                "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
            ),
        ) => Content::Skip(WEBHOOKS),
        (
            PackageKind::Configuration,
            ("apiextensions.crossplane.io", "v1" | "v2", "CompositeResourceDefinition"),
        ) => install("compositeresourcedefinitions"),
        (PackageKind::Configuration, ("apiextensions.crossplane.io", "v1", "Composition")) => {
            install("compositions")
        }
        (
            PackageKind::Configuration,
            ("apiextensions.crossplane.io", "v1alpha1", "ManagedResourceActivationPolicy"),
        ) => Content::Skip(POLICIES),
        (PackageKind::Configuration, ("ops.crossplane.io", ..)) => Content::Skip(OPERATIONS),
        // CRDs describe the inputs of functions; they are for editors, not for the cluster.
        (PackageKind::Function, ("apiextensions.k8s.io", "v1", "CustomResourceDefinition")) => {
            Content::Skip("")
        }
        _ => return None,
    })
}
