//! Which resource a URL addresses (SECA section 1.2). Table-driven: a kind's provider, scope and
//! collection give its paths, so a new kind needs no code here.

use ecp_xrds::{KindInfo, Scope};
use percent_encoding::percent_decode_str;

use crate::limits;
use crate::view::Place;

/// What a URL addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// Resources of one kind.
    Seca(Target),
    /// `/.wellknown/secapi`, at the root or below any provider.
    WellKnown,
}

/// A collection, or a resource in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) info: &'static KindInfo,
    pub(crate) tenant: String,
    pub(crate) workspace: String,
    pub(crate) network: String,
    /// Name of the resource; none for the collection.
    pub(crate) name: Option<String>,
}

impl Target {
    pub(crate) fn place(&self) -> Place<'_> {
        Place {
            tenant: &self.tenant,
            workspace: &self.workspace,
            network: &self.network,
        }
    }

    /// The name of the object that a resource of this name and kind is made as.
    pub(crate) fn object_name(&self, name: &str) -> String {
        match self.info.scope {
            Scope::Network => ecp_meta::names::network_object_name(&self.network, name),
            Scope::Cluster | Scope::Tenant | Scope::Workspace => {
                ecp_xrds::object_name(self.info, name)
            }
        }
    }

    /// The methods the path has, for `Allow`.
    pub(crate) fn methods(&self) -> &'static str {
        if self.name.is_some() && !self.info.catalogue {
            "GET, HEAD, PUT, DELETE"
        } else {
            "GET, HEAD"
        }
    }
}

/// The route of a path, if there is one.
pub(crate) fn parse(path: &str) -> Option<Route> {
    if path.len() > limits::PATH_LEN_MAX {
        return None;
    }
    let path = path.strip_suffix('/').unwrap_or(path);
    let segments = path
        .strip_prefix('/')?
        .split('/')
        .map(|segment| {
            percent_decode_str(segment)
                .decode_utf8()
                .map(|s| s.into_owned())
        })
        .collect::<Result<Vec<_>, _>>()
        .ok()?;
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    match segments.as_slice() {
        [".wellknown", "secapi"] => Some(Route::WellKnown),
        ["providers", provider, ".wellknown", "secapi"]
            if ecp_xrds::by_provider(provider).next().is_some() =>
        {
            Some(Route::WellKnown)
        }
        ["providers", provider, "v1", rest @ ..] => {
            ecp_xrds::by_provider(provider).find_map(|info| target(info, rest).map(Route::Seca))
        }
        _ => None,
    }
}

/// Parent collections of a kind's path. Catalogues other than regions are listed per tenant.
fn parents(info: &KindInfo) -> &'static [&'static str] {
    match info.scope {
        Scope::Cluster if info.provider == "seca.region" => &[],
        Scope::Cluster | Scope::Tenant => &["tenants"],
        Scope::Workspace => &["tenants", "workspaces"],
        Scope::Network => &["tenants", "workspaces", "networks"],
    }
}

/// What the names of the parents in a kind's path stand for, outermost first.
pub(crate) fn parent_names(info: &KindInfo) -> impl Iterator<Item = &'static str> {
    let singular = |parent: &'static str| parent.strip_suffix('s').unwrap_or(parent);
    parents(info).iter().copied().map(singular)
}

/// The path of a kind's collection, with the names of its parents in braces.
pub(crate) fn template(info: &KindInfo) -> String {
    let mut path = format!("/providers/{}", info.provider_version());
    for (parent, name) in parents(info).iter().zip(parent_names(info)) {
        path.push_str(&format!("/{parent}/{{{name}}}"));
    }
    path.push('/');
    path.push_str(info.collection);
    path
}

/// The providers that are served, in order.
pub(crate) fn providers() -> Vec<&'static str> {
    let mut providers: Vec<&str> = ecp_xrds::kinds().iter().map(|k| k.provider).collect();
    providers.sort_unstable();
    providers.dedup();
    providers
}

fn target(info: &'static KindInfo, segments: &[&str]) -> Option<Target> {
    let mut names = [""; 3];
    let mut rest = segments;
    for (slot, parent) in names.iter_mut().zip(parents(info)) {
        match rest {
            [collection, name, tail @ ..] if collection == parent && !name.is_empty() => {
                *slot = name;
                rest = tail;
            }
            _ => return None,
        }
    }
    let name = match rest {
        [collection] if *collection == info.collection => None,
        [collection, name] if *collection == info.collection && !name.is_empty() => {
            Some((*name).to_owned())
        }
        _ => return None,
    };
    let [tenant, workspace, network] = names.map(str::to_owned);
    Some(Target {
        info,
        tenant,
        workspace,
        network,
        name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(path: &str) -> Option<(&'static str, String, String, Option<String>)> {
        match parse(path)? {
            Route::Seca(t) => Some((t.info.kind, t.tenant, t.workspace, t.name)),
            Route::WellKnown => Some(("wellknown", String::new(), String::new(), None)),
        }
    }

    #[test]
    fn every_kind_has_its_collection_and_items() {
        let own = |kind, tenant: &str, workspace: &str, name: Option<&str>| {
            Some((kind, tenant.into(), workspace.into(), name.map(Into::into)))
        };
        for (path, want) in [
            (
                "/providers/seca.region/v1/regions",
                own("Region", "", "", None),
            ),
            (
                "/providers/seca.region/v1/regions/r",
                own("Region", "", "", Some("r")),
            ),
            (
                "/providers/seca.workspace/v1/tenants/t/workspaces/w",
                own("Workspace", "t", "", Some("w")),
            ),
            (
                "/providers/seca.storage/v1/tenants/t/skus/RD500",
                own("StorageSKU", "t", "", Some("RD500")),
            ),
            (
                "/providers/seca.storage/v1/tenants/t/workspaces/w/block-storages/",
                own("BlockStorage", "t", "w", None),
            ),
            (
                "/providers/seca.storage/v1/tenants/t/workspaces/w/block-storages/a%2Fb",
                own("BlockStorage", "t", "w", Some("a/b")),
            ),
            (
                "/providers/seca.storage/v1/tenants/t/images/..%2F..%2Fx",
                own("Image", "t", "", Some("../../x")),
            ),
            ("/.wellknown/secapi", own("wellknown", "", "", None)),
            (
                "/providers/seca.storage/.wellknown/secapi",
                own("wellknown", "", "", None),
            ),
        ] {
            assert_eq!(parts(path), want, "{path}");
        }
    }

    #[test]
    fn other_paths_are_nothing() {
        for path in [
            "",
            "/",
            "//",
            "/providers",
            "/providers/seca.storage/v1",
            "/providers/seca.storage/v2/tenants/t/images",
            "/providers/seca.nope/v1/tenants/t/images",
            "/providers/seca.nope/.wellknown/secapi",
            "/providers/seca.storage/v1/images",
            "/providers/seca.storage/v1/tenants//images",
            "/providers/seca.storage/v1/tenants/t/workspaces/w/images",
            "/providers/seca.storage/v1/tenants/t/images/a/b",
            "/providers/seca.storage/v1/tenants/t/images/%ff",
            "/providers/seca.workspace/v1/tenants/t/images",
        ] {
            assert_eq!(parts(path), None, "{path}");
        }
        assert_eq!(parts(&format!("/{}", "a".repeat(10_000))), None);
    }
}
