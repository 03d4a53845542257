//! The table of kinds.

pub(crate) mod authorization;
pub(crate) mod compute;
pub(crate) mod network;
pub(crate) mod region;
pub(crate) mod storage;
pub(crate) mod workspace;

use ecp_meta::gvk::GroupVersionKind;
use serde_json::Value;

use crate::flavour::Flavour;

/// Where objects of a kind live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// In no namespace: catalogues that every tenant sees.
    Cluster,
    /// In the namespace of a tenant.
    Tenant,
    /// In the namespace of a workspace.
    Workspace,
    /// In the namespace of a workspace, below a network.
    Network,
}

/// Version of every kind.
pub(crate) const VERSION: &str = "v1";

/// Everything that names a kind. There is one static value for each.
#[derive(Debug)]
pub struct KindInfo {
    /// Kubernetes kind, such as `BlockStorage`.
    pub kind: &'static str,
    /// Kubernetes plural, such as `block-storages`.
    pub plural: &'static str,
    /// API group, such as `storage.v1.secapi.cloud`.
    pub group: &'static str,
    /// Short names for kubectl; none that Kubernetes itself uses.
    pub short_names: &'static [&'static str],
    /// Where its objects live.
    pub scope: Scope,
    /// SECA provider without version, such as `seca.storage`.
    pub provider: &'static str,
    /// SECA kind, such as `block-storage`.
    pub seca_kind: &'static str,
    /// SECA collection, such as `block-storages`.
    pub collection: &'static str,
    /// Whether it is offered rather than made by users: read-only over REST, names unrestricted.
    pub catalogue: bool,
    /// What a person calls one, as in "waiting for block storage data".
    pub noun: &'static str,
    /// Fields of its SECA spec that refer to other resources.
    pub references: &'static [RefField],
    /// Schema of the SECA spec.
    pub(crate) spec: fn() -> Value,
    /// Schema of the status fields that only this kind has.
    pub(crate) status: Option<fn() -> Value>,
    /// Printer columns after STATE.
    pub(crate) columns: &'static [Column],
}

/// A field of a SECA spec that refers to other resources. One static table of them serves all who
/// check, follow or count references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefField {
    /// Path below `spec`; `[]` stands for every element, as in `routes[].targetRef`. What is there
    /// is a [`crate::Reference`], or a name in the case of `RoleAssignment.roles`.
    pub path: &'static str,
    /// Kinds that it can refer to; the first one is meant by a bare name.
    pub to: &'static [&'static str],
    /// Whether it can also be an address, a range or other text.
    pub text: bool,
    /// Whether its `resource` can be empty, for none.
    pub empty: bool,
    /// Whether a resource works without what it refers to, and takes it up when it comes.
    pub soft: bool,
}

impl RefField {
    const fn to(path: &'static str, to: &'static [&'static str]) -> Self {
        Self {
            path,
            to,
            text: false,
            empty: false,
            soft: false,
        }
    }

    const fn or_text(self) -> Self {
        Self { text: true, ..self }
    }

    const fn or_empty(self) -> Self {
        Self {
            empty: true,
            ..self
        }
    }

    const fn soft(self) -> Self {
        Self { soft: true, ..self }
    }
}

/// A printer column.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) path: &'static str,
    pub(crate) description: &'static str,
    pub(crate) priority: u8,
}

impl Column {
    /// The same column, shown with `-o wide` only.
    const fn wide(self) -> Self {
        Self {
            priority: 1,
            ..self
        }
    }
}

const fn column(
    kind: &'static str,
    name: &'static str,
    path: &'static str,
    description: &'static str,
) -> Column {
    Column {
        name,
        kind,
        path,
        description,
        priority: 0,
    }
}

/// A column of text.
const fn text(name: &'static str, path: &'static str, description: &'static str) -> Column {
    column("string", name, path, description)
}

/// A column of whole numbers.
const fn integer(name: &'static str, path: &'static str, description: &'static str) -> Column {
    column("integer", name, path, description)
}

const REGION_COLUMN: Column = text(
    "Region",
    ".spec.region",
    "Region of the resource; empty where there is only one.",
)
.wide();

const SKU_NAME_COLUMN: Column = text(
    "Sku",
    ".spec.name",
    "SECA name, where it differs from the object's.",
);

static KINDS: [KindInfo; 18] = [
    region::REGION,
    authorization::ROLE,
    authorization::ROLE_ASSIGNMENT,
    workspace::WORKSPACE,
    storage::STORAGE_SKU,
    storage::BLOCK_STORAGE,
    storage::IMAGE,
    compute::INSTANCE_SKU,
    compute::INSTANCE,
    network::NETWORK_SKU,
    network::NETWORK,
    network::SUBNET,
    network::ROUTE_TABLE,
    network::INTERNET_GATEWAY,
    network::NIC,
    network::PUBLIC_IP,
    network::SECURITY_GROUP,
    network::SECURITY_GROUP_RULE,
];

/// Every kind, in a fixed order.
pub fn kinds() -> &'static [KindInfo] {
    &KINDS
}

/// The kind with this Kubernetes kind, such as `BlockStorage`.
pub fn by_kind(kind: &str) -> Option<&'static KindInfo> {
    KINDS.iter().find(|k| k.kind == kind)
}

/// The kind that an XR of this group and kind belongs to, in either flavour: `BlockStorage` or
/// `XBlockStorage`.
pub fn by_xr_kind(group: &str, kind: &str) -> Option<&'static KindInfo> {
    let find = |kind: &str| KINDS.iter().find(|k| k.group == group && k.kind == kind);
    find(kind).or_else(|| find(kind.strip_prefix('X')?).filter(|k| k.has_claim()))
}

/// The kind of a SECA collection of a provider, such as `seca.storage` and `block-storages`.
pub fn by_collection(provider: &str, collection: &str) -> Option<&'static KindInfo> {
    by_provider(provider).find(|k| k.collection == collection)
}

/// The kinds of a SECA provider, such as `seca.storage`.
pub fn by_provider(provider: &str) -> impl Iterator<Item = &'static KindInfo> {
    KINDS.iter().filter(move |k| k.provider == provider)
}

/// Whether a SECA provider is one for all regions (SECA section 1.1).
pub fn is_global(provider: &str) -> bool {
    matches!(provider, "seca.region" | "seca.authorization")
}

impl KindInfo {
    /// Group, version and kind as users write them, the same in both flavours.
    pub fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::new(self.group, VERSION, self.kind)
    }

    /// The `apiVersion` as users write it.
    pub fn api_version(&self) -> String {
        self.gvk().api_version()
    }

    /// Whether its objects live in a namespace.
    pub fn namespaced(&self) -> bool {
        self.scope != Scope::Cluster
    }

    /// Whether its objects are in a region. Regions, roles and role assignments are everywhere.
    pub fn regional(&self) -> bool {
        !is_global(self.provider)
    }

    /// Whether users make claims of it in [`Flavour::Claims`].
    pub fn has_claim(&self) -> bool {
        self.namespaced()
    }

    /// The kind of its XRs in a flavour: `X<Kind>` where there is a claim.
    pub fn xr_kind(&self, flavour: Flavour) -> String {
        match flavour {
            Flavour::Claims if self.has_claim() => format!("X{}", self.kind),
            Flavour::Claims | Flavour::V2 => self.kind.into(),
        }
    }

    /// The plural of its XRs in a flavour: `x<plural>` where there is a claim.
    pub fn xr_plural(&self, flavour: Flavour) -> String {
        match flavour {
            Flavour::Claims if self.has_claim() => format!("x{}", self.plural),
            Flavour::Claims | Flavour::V2 => self.plural.into(),
        }
    }

    /// The SECA provider with version, as in `metadata.provider`: `seca.storage/v1`.
    pub fn provider_version(&self) -> String {
        format!("{}/{VERSION}", self.provider)
    }
}

impl PartialEq for KindInfo {
    fn eq(&self, other: &Self) -> bool {
        self.group == other.group && self.kind == other.kind
    }
}

impl Eq for KindInfo {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_kinds_share_a_name() {
        let unique = |name: &dyn Fn(&KindInfo) -> String| {
            let all: BTreeSet<_> = kinds().iter().map(name).collect();
            assert_eq!(all.len(), kinds().len(), "{all:?}");
        };
        unique(&|k| k.kind.into());
        unique(&|k| format!("{}.{}", k.plural, k.group));
        unique(&|k| format!("{}/{}", k.provider, k.collection));
        unique(&|k| k.seca_kind.into());
        let short: Vec<_> = kinds().iter().flat_map(|k| k.short_names).collect();
        assert_eq!(short.iter().collect::<BTreeSet<_>>().len(), short.len());
    }

    /// The value at a path of a schema; `[]` goes to the items.
    fn at<'a>(schema: &'a Value, path: &str) -> &'a Value {
        path.split('.').fold(schema, |schema, step| {
            let field = step.trim_end_matches("[]");
            let schema = &schema["properties"][field];
            if step.ends_with("[]") {
                &schema["items"]
            } else {
                schema
            }
        })
    }

    #[test]
    fn reference_fields_are_references_to_kinds() {
        for info in kinds() {
            let schema = (info.spec)();
            for field in info.references {
                let what = format!("{}.{}", info.kind, field.path);
                let found = at(&schema, field.path);
                assert!(
                    found["properties"]["resource"].is_object() || found["type"] == "string",
                    "{what}: {found}"
                );
                assert!(!field.to.is_empty(), "{what}");
                for kind in field.to {
                    assert!(by_kind(kind).is_some(), "{what}: {kind}");
                }
            }
        }
    }

    #[test]
    fn an_xr_is_found_in_both_flavours() {
        for info in kinds() {
            for flavour in Flavour::ALL {
                let found = by_xr_kind(info.group, &info.xr_kind(flavour));
                assert_eq!(found.map(|k| k.kind), Some(info.kind));
            }
        }
        assert!(by_xr_kind("v1.secapi.cloud", "XRegion").is_none());
        assert!(by_xr_kind("example.org", "BlockStorage").is_none());
        assert!(by_xr_kind("", "").is_none());
    }

    #[test]
    fn collections_are_found_by_provider() {
        let find = |p, c| by_collection(p, c).map(|k| k.kind);
        assert_eq!(find("seca.storage", "skus"), Some("StorageSKU"));
        assert_eq!(find("seca.compute", "skus"), Some("InstanceSKU"));
        assert_eq!(find("seca.compute", "networks"), None);
        assert_eq!(find("seca.workspace", "workspaces"), Some("Workspace"));
    }
}
