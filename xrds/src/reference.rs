//! SECA references (SECA section 2.5): every textual form, and what it means in its place.
//!
//! ```
//! use ecp_xrds::reference::{Parsed, Target};
//!
//! let urn = Parsed::parse("seca.storage/v1/tenants/acme/workspaces/prod/block-storages/disk-1");
//! assert_eq!(urn.provider.as_deref(), Some("seca.storage"));
//! assert_eq!(urn.workspace.as_deref(), Some("prod"));
//! assert_eq!(urn.target, Target::Named {
//!     collection: Some("block-storages".into()),
//!     name: "disk-1".into(),
//! });
//! ```

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kinds::{KindInfo, Scope};
use crate::limits::REFERENCE_LEN_MAX;

/// A reference to another resource.
///
/// `resource` may be a URN (`seca.storage/v1/tenants/t/skus/RD500`), a path from the referring
/// resource (`skus/RD500`) or a bare name. What it does not say comes from the other fields, then
/// from the place of the resource that refers.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Reference {
    /// URN, path or name of the resource, such as `skus/RD500`.
    #[schemars(length(min = 1, max = 256))]
    pub resource: String,
    /// Provider of the resource, such as `seca.storage`.
    #[schemars(length(max = 64))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Tenant of the resource.
    #[schemars(length(max = 64))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Workspace of the resource.
    #[schemars(length(max = 64))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Region of the resource.
    #[schemars(length(max = 64))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}

impl Reference {
    /// A reference that is a text and nothing else.
    pub fn to(resource: impl Into<String>) -> Self {
        Self {
            resource: resource.into(),
            ..Self::default()
        }
    }
}

/// Collections that a reference can name, whether or not their kind is in [`crate::kinds`] yet:
/// what is not here is free text, not a path.
const COLLECTIONS: [&str; 16] = [
    "block-storages",
    "images",
    "instances",
    "internet-gateways",
    "networks",
    "nics",
    "public-ips",
    "regions",
    "role-assignments",
    "roles",
    "route-tables",
    "security-group-rules",
    "security-groups",
    "skus",
    "subnets",
    "workspaces",
];

/// Other names of a collection, and the provider they imply.
const ALIASES: [(&str, &str, &str); 3] = [
    ("instance-skus", "skus", "seca.compute"),
    ("network-skus", "skus", "seca.network"),
    ("storage-skus", "skus", "seca.storage"),
];

/// The parts that a reference's text says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// Provider without version, such as `seca.storage`.
    pub provider: Option<String>,
    /// Tenant.
    pub tenant: Option<String>,
    /// Workspace.
    pub workspace: Option<String>,
    /// Network.
    pub network: Option<String>,
    /// What is referred to.
    pub target: Target,
}

/// What a reference's text names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// Nothing: the text is empty.
    #[default]
    Empty,
    /// A resource. Without a collection, the field says which.
    Named {
        /// Collection, such as `block-storages`; aliases are replaced.
        collection: Option<String>,
        /// Name.
        name: String,
    },
    /// No resource, but an address or other text.
    Text(String),
}

impl Parsed {
    /// Takes a text apart. Every text has a meaning, if only [`Target::Text`].
    pub fn parse(text: &str) -> Self {
        let free = || Self {
            target: Target::Text(text.into()),
            ..Self::default()
        };
        let text = text.trim();
        if text.is_empty() {
            return Self::default();
        }
        let segments: Vec<&str> = text.trim_matches('/').split('/').collect();
        if text.len() > REFERENCE_LEN_MAX || !segments.iter().all(|s| is_segment(s)) {
            return free();
        }
        let mut parsed = Self::default();
        let mut rest = segments.as_slice();
        if let [provider, version, tail @ ..] = rest
            && provider.starts_with("seca.")
            && is_version(version)
        {
            parsed.provider = Some((*provider).into());
            rest = tail;
        }
        // A parent needs something below it: `networks/n` alone names the network itself.
        while let [parent, name, tail @ ..] = rest
            && !tail.is_empty()
        {
            let part = match *parent {
                "tenants" => &mut parsed.tenant,
                "workspaces" => &mut parsed.workspace,
                "networks" => &mut parsed.network,
                _ => return free(),
            };
            if part.replace((*name).into()).is_some() {
                return free();
            }
            rest = tail;
        }
        match *rest {
            [collection, name] => {
                let Some((collection, implied)) = canonical(collection) else {
                    return free();
                };
                parsed.provider = parsed.provider.or_else(|| implied.map(Into::into));
                parsed.target = Target::Named {
                    collection: Some(collection.into()),
                    name: name.into(),
                };
            }
            [name] if name.parse::<std::net::IpAddr>().is_err() => {
                parsed.target = Target::Named {
                    collection: None,
                    name: name.into(),
                };
            }
            _ => return free(),
        }
        parsed
    }
}

/// Whether `s` can be a name, collection or provider: SKU names have upper-case letters.
fn is_segment(s: &str) -> bool {
    let dots = s.bytes().all(|b| b == b'.');
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    !dots && s.bytes().all(plain)
}

/// Whether `s` is a version such as `v1` or `v1beta1`.
fn is_version(s: &str) -> bool {
    s.strip_prefix('v')
        .is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit()))
}

/// The collection that a text names, and the provider that an alias implies.
fn canonical(collection: &str) -> Option<(&'static str, Option<&'static str>)> {
    COLLECTIONS
        .iter()
        .find(|c| **c == collection)
        .map(|c| (*c, None))
        .or_else(|| {
            ALIASES
                .iter()
                .find(|(alias, ..)| *alias == collection)
                .map(|(_, canonical, provider)| (*canonical, Some(*provider)))
        })
}

/// Where the resource that refers is: what a reference does not say is taken from here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Tenant.
    pub tenant: String,
    /// Workspace, for what lives in one.
    pub workspace: Option<String>,
    /// Network, for what lives in one.
    pub network: Option<String>,
}

/// A resource that a reference means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// Its kind.
    pub kind: &'static KindInfo,
    /// Tenant.
    pub tenant: String,
    /// Workspace, exactly if the kind lives in one.
    pub workspace: Option<String>,
    /// Network, exactly if the kind lives in one.
    pub network: Option<String>,
    /// Region, if the reference says one.
    pub region: Option<String>,
    /// SECA name.
    pub name: String,
}

/// Why a reference means no resource of the expected kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// It is empty.
    #[error("the reference is empty")]
    Empty,
    /// It is no path.
    #[error("{0:?} is not a reference to a resource")]
    NotAResource(String),
    /// It names something else.
    #[error("{text:?} is not a reference to {} {expected}", article(.expected))]
    WrongKind {
        /// The text.
        text: String,
        /// What a resource of the expected kind is called.
        expected: &'static str,
    },
    /// It does not say which workspace, nor does its place.
    #[error("{0:?} does not say which workspace the resource is in")]
    NoWorkspace(String),
    /// It does not say which network, nor does its place.
    #[error("{0:?} does not say which network the resource is in")]
    NoNetwork(String),
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    }
}

/// The resource that a reference means, where one of `kind` is expected.
///
/// What the text says comes first, then the reference's other fields, then the place of the
/// resource that refers.
///
/// # Errors
/// See [`ReferenceError`].
pub fn resolve(
    reference: &Reference,
    kind: &'static KindInfo,
    place: &Place,
) -> Result<Resolved, ReferenceError> {
    let text = &reference.resource;
    let parsed = Parsed::parse(text);
    let (collection, name) = match parsed.target {
        Target::Empty => return Err(ReferenceError::Empty),
        Target::Text(text) => return Err(ReferenceError::NotAResource(text)),
        Target::Named { collection, name } => (collection, name),
    };
    let said = |field: &Option<String>| field.clone().filter(|s| !s.is_empty());
    let provider = parsed.provider.or_else(|| {
        said(&reference.provider).map(|p| p.split('/').next().unwrap_or_default().into())
    });
    if collection.is_some_and(|c| c != kind.collection)
        || provider.is_some_and(|p| p != kind.provider)
    {
        return Err(ReferenceError::WrongKind {
            text: text.clone(),
            expected: kind.noun,
        });
    }
    let tenant = parsed
        .tenant
        .or_else(|| said(&reference.tenant))
        .unwrap_or_else(|| place.tenant.clone());
    let workspace = match kind.scope {
        Scope::Cluster | Scope::Tenant => None,
        Scope::Workspace | Scope::Network => Some(
            parsed
                .workspace
                .or_else(|| said(&reference.workspace))
                .or_else(|| place.workspace.clone())
                .ok_or_else(|| ReferenceError::NoWorkspace(text.clone()))?,
        ),
    };
    let network = match kind.scope {
        Scope::Cluster | Scope::Tenant | Scope::Workspace => None,
        Scope::Network => Some(
            parsed
                .network
                .or_else(|| place.network.clone())
                .ok_or_else(|| ReferenceError::NoNetwork(text.clone()))?,
        ),
    };
    Ok(Resolved {
        kind,
        tenant,
        workspace,
        network,
        region: said(&reference.region),
        name,
    })
}

impl fmt::Display for Resolved {
    /// The URN, as in SECA's `metadata.ref`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind.provider_version())?;
        if self.kind.provider != "seca.region" {
            write!(f, "/tenants/{}", self.tenant)?;
        }
        if let Some(workspace) = &self.workspace {
            write!(f, "/workspaces/{workspace}")?;
        }
        if let Some(network) = &self.network {
            write!(f, "/networks/{network}")?;
        }
        write!(f, "/{}/{}", self.kind.collection, self.name)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kinds::by_kind;

    fn named(collection: Option<&str>, name: &str) -> Target {
        Target::Named {
            collection: collection.map(Into::into),
            name: name.into(),
        }
    }

    fn parts(text: &str) -> (String, Target) {
        let p = Parsed::parse(text);
        let path: Vec<String> = [p.provider, p.tenant, p.workspace, p.network]
            .into_iter()
            .map(|part| part.unwrap_or_else(|| "-".into()))
            .collect();
        (path.join(" "), p.target)
    }

    #[test]
    fn every_form_in_the_wild_is_taken_apart() {
        let cases = [
            (
                "seca.storage/v1/tenants/t/workspaces/w/block-storages/d",
                "seca.storage t w -",
                named(Some("block-storages"), "d"),
            ),
            (
                "seca.storage/v1/tenants/t/skus/RD500",
                "seca.storage t - -",
                named(Some("skus"), "RD500"),
            ),
            (
                "seca.network/v1/tenants/t/workspaces/w/networks/n/subnets/s",
                "seca.network t w n",
                named(Some("subnets"), "s"),
            ),
            (
                "seca.network/v1/tenants/t/workspaces/w/networks/n",
                "seca.network t w -",
                named(Some("networks"), "n"),
            ),
            (
                "seca.region/v1/regions/r",
                "seca.region - - -",
                named(Some("regions"), "r"),
            ),
            (
                "block-storages/d",
                "- - - -",
                named(Some("block-storages"), "d"),
            ),
            (
                "/block-storages/d/",
                "- - - -",
                named(Some("block-storages"), "d"),
            ),
            (
                "networks/n/route-tables/r",
                "- - - n",
                named(Some("route-tables"), "r"),
            ),
            (
                "tenants/seca/skus/x",
                "- seca - -",
                named(Some("skus"), "x"),
            ),
            ("workspaces/w", "- - - -", named(Some("workspaces"), "w")),
            (
                "storage-skus/RD500",
                "seca.storage - - -",
                named(Some("skus"), "RD500"),
            ),
            (
                "instance-skus/D2XS",
                "seca.compute - - -",
                named(Some("skus"), "D2XS"),
            ),
            (
                "network-skus/N1K",
                "seca.network - - -",
                named(Some("skus"), "N1K"),
            ),
            ("N10K", "- - - -", named(None, "N10K")),
            ("route-table-1", "- - - -", named(None, "route-table-1")),
            ("", "- - - -", Target::Empty),
            ("  ", "- - - -", Target::Empty),
        ];
        for (text, path, target) in cases {
            assert_eq!(parts(text), (path.into(), target), "{text}");
        }
    }

    #[test]
    fn what_is_no_path_is_text() {
        for text in [
            "55.44.33.11",
            "2001:db8::1",
            "10.0.0.0/8",
            "any text",
            "a//b",
            "volumes/x",
            "block-storages/../d",
            "tenants/a/tenants/b/skus/x",
            "a/b/c",
            "seca.storage/v1",
            &"a".repeat(257),
        ] {
            let parsed = Parsed::parse(text);
            assert_eq!(parsed.target, Target::Text(text.into()));
            assert_eq!(parsed.provider, None, "{text}");
        }
    }

    fn place() -> Place {
        Place {
            tenant: "acme".into(),
            workspace: Some("prod".into()),
            network: None,
        }
    }

    fn resolved(reference: &Reference, kind: &str) -> Result<String, String> {
        resolve(reference, by_kind(kind).unwrap(), &place())
            .map(|r| r.to_string())
            .map_err(|e| e.to_string())
    }

    #[test]
    fn missing_parts_come_from_the_fields_then_from_the_place() {
        let sku = |text| resolved(&Reference::to(text), "StorageSKU");
        for text in [
            "RD500",
            "skus/RD500",
            "storage-skus/RD500",
            "tenants/acme/skus/RD500",
            "seca.storage/v1/tenants/acme/skus/RD500",
        ] {
            assert_eq!(
                sku(text),
                Ok("seca.storage/v1/tenants/acme/skus/RD500".into())
            );
        }
        let mut reference = Reference::to("block-storages/d");
        reference.workspace = Some("dev".into());
        reference.tenant = Some("other".into());
        reference.provider = Some("seca.storage/v1".into());
        assert_eq!(
            resolved(&reference, "BlockStorage"),
            Ok("seca.storage/v1/tenants/other/workspaces/dev/block-storages/d".into())
        );
        reference.resource = "tenants/t/workspaces/w/block-storages/d".into();
        assert_eq!(
            resolved(&reference, "BlockStorage"),
            Ok("seca.storage/v1/tenants/t/workspaces/w/block-storages/d".into())
        );
        // An empty field says nothing, as Terraform sends it.
        reference = Reference::to("d");
        reference.workspace = Some(String::new());
        assert_eq!(
            resolved(&reference, "BlockStorage"),
            Ok("seca.storage/v1/tenants/acme/workspaces/prod/block-storages/d".into())
        );
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let error = |text, kind| resolved(&Reference::to(text), kind).unwrap_err();
        assert_eq!(error("", "Image"), "the reference is empty");
        assert_eq!(
            error("images/x", "BlockStorage"),
            "\"images/x\" is not a reference to a block storage"
        );
        assert_eq!(
            error("instance-skus/x", "StorageSKU"),
            "\"instance-skus/x\" is not a reference to a storage SKU"
        );
        assert_eq!(
            error("skus/x", "Image"),
            "\"skus/x\" is not a reference to an image"
        );
        assert_eq!(
            error("1.2.3.4", "Image"),
            "\"1.2.3.4\" is not a reference to a resource"
        );
        let nowhere = Place::default();
        let disk = by_kind("BlockStorage").unwrap();
        assert_eq!(
            resolve(&Reference::to("d"), disk, &nowhere),
            Err(ReferenceError::NoWorkspace("d".into()))
        );
    }

    proptest! {
        #[test]
        fn any_text_is_taken_apart(text in ".{0,300}") {
            let parsed = Parsed::parse(&text);
            if let Target::Named { name, .. } = parsed.target {
                prop_assert!(!name.is_empty() && !name.contains('/'));
            }
        }

        #[test]
        fn a_resolved_reference_resolves_to_itself(
            text in "(seca\\.storage/v1/)?(tenants/[a-z]{1,4}/)?(workspaces/[a-z]{1,4}/)?(block-storages/)?[a-z][a-z0-9-]{0,5}",
            workspace in proptest::option::of("[a-z]{1,4}"),
        ) {
            let kind = by_kind("BlockStorage").unwrap();
            let mut reference = Reference::to(text);
            reference.workspace = workspace;
            if let Ok(first) = resolve(&reference, kind, &place()) {
                let again = resolve(&Reference::to(first.to_string()), kind, &Place::default());
                prop_assert_eq!(again, Ok(first));
            }
        }
    }
}
