//! Label, annotation and finalizer keys with a fixed meaning.

/// Tenant of a namespace or object: the name where it fits a label value, else its hash.
pub const TENANT: &str = "secapi.cloud/tenant";
/// Workspace of a namespace or object: the name where it fits a label value, else its hash.
pub const WORKSPACE: &str = "secapi.cloud/workspace";
/// Annotation with the whole tenant name.
pub const TENANT_NAME: &str = "secapi.cloud/tenant-name";
/// Annotation with the whole workspace name.
pub const WORKSPACE_NAME: &str = "secapi.cloud/workspace-name";
/// SECA kind of the resource that a managed resource was made for, such as `block-storage`.
pub const KIND: &str = "secapi.cloud/kind";
/// SECA name of that resource where it fits a label value, else its hash.
pub const NAME: &str = "secapi.cloud/name";
/// Network of a managed resource that was made for something in one.
pub const NETWORK: &str = "secapi.cloud/network";
/// Annotation with the paths of the references in `spec` that were accepted although what they
/// refer to did not exist, comma-separated: nothing waits for those.
pub const DEFERRED_REFERENCES: &str = "secapi.cloud/deferred-references";
/// Region that a managed resource is in.
pub const REGION: &str = "secapi.cloud/region";
/// Cloud of a per-cloud Composition.
pub const CSP: &str = "secapi.cloud/csp";

/// Name prefix of all resources composed by one XR.
pub const COMPOSITE: &str = "crossplane.io/composite";
/// Claim an XR or composed resource belongs to.
pub const CLAIM_NAME: &str = "crossplane.io/claim-name";
/// Namespace of that claim.
pub const CLAIM_NAMESPACE: &str = "crossplane.io/claim-namespace";
/// Key of a composed resource in the function's desired resources.
pub const COMPOSITION_RESOURCE_NAME: &str = "crossplane.io/composition-resource-name";
/// Composition that a revision belongs to.
pub const COMPOSITION_NAME: &str = "crossplane.io/composition-name";
/// Content hash of a revision.
pub const COMPOSITION_HASH: &str = "crossplane.io/composition-hash";
/// Identity of the external resource in its cloud.
pub const EXTERNAL_NAME: &str = "crossplane.io/external-name";
/// `"true"` stops reconciliation, deletion included.
pub const PAUSED: &str = "crossplane.io/paused";
/// Token: a new value asks for one reconcile.
pub const RECONCILE_REQUESTED_AT: &str = "crossplane.io/reconcile-requested-at";
/// Per-object poll interval, a Go duration.
pub const POLL_INTERVAL: &str = "crossplane.io/poll-interval";
/// Time at which a create call was about to be made.
pub const EXTERNAL_CREATE_PENDING: &str = "crossplane.io/external-create-pending";
/// Time at which a create call was known to have succeeded.
pub const EXTERNAL_CREATE_SUCCEEDED: &str = "crossplane.io/external-create-succeeded";
/// Time at which a create call was known to have failed.
pub const EXTERNAL_CREATE_FAILED: &str = "crossplane.io/external-create-failed";

/// Finalizer of XRs.
pub const COMPOSITE_FINALIZER: &str = "composite.apiextensions.crossplane.io";
/// Finalizer of claims.
pub const CLAIM_FINALIZER: &str = "finalizer.apiextensions.crossplane.io";
/// Finalizer of managed resources.
pub const MANAGED_FINALIZER: &str = "finalizer.managedresource.crossplane.io";
