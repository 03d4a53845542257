//! Which resource a URL addresses (SECA section 1.2). Table-driven: a kind's provider, scope and
//! collection give its paths, so a new kind needs no code here.

use ecp_xrds::reference::Resolved;
use ecp_xrds::{KindInfo, Scope, is_global};
use percent_encoding::percent_decode_str;

use crate::limits;
use crate::power::Action;
use crate::regions::Served;
use crate::view::Place;

/// What a URL addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// Resources of one kind.
    Seca(Target),
    /// `/.wellknown/secapi`, at the root or below any provider of a region.
    WellKnown {
        /// Region whose URLs are told.
        region: String,
    },
}

/// A collection, or a resource in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) info: &'static KindInfo,
    pub(crate) tenant: String,
    pub(crate) workspace: String,
    pub(crate) network: String,
    /// Region whose URL it is; empty for global kinds.
    pub(crate) region: String,
    /// Name of the resource; none for the collection.
    pub(crate) name: Option<String>,
    /// What is asked of the resource, below its own path.
    pub(crate) action: Option<Action>,
}

impl Target {
    /// What a reference of a resource at `near` means, at the same region's URL.
    pub(crate) fn of(resolved: &Resolved, near: &Self) -> Self {
        Self {
            info: resolved.kind,
            tenant: resolved.tenant.clone(),
            workspace: resolved.workspace.clone().unwrap_or_default(),
            network: resolved.network.clone().unwrap_or_default(),
            region: near.region.clone(),
            name: Some(resolved.name.clone()),
            action: None,
        }
    }

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
        if self.action.is_some() {
            "POST, OPTIONS"
        } else if self.name.is_some() && !self.info.catalogue {
            "GET, HEAD, PUT, DELETE, OPTIONS"
        } else {
            "GET, HEAD, OPTIONS"
        }
    }
}

const NOTHING_HERE: &str = "there is nothing at this path; /openapi.json lists the paths there are";

/// The route of a path.
///
/// # Errors
/// There is none, or another server has it; the text says so to the client.
pub(crate) fn parse(path: &str, served: &Served) -> Result<Route, String> {
    let nothing = || NOTHING_HERE.to_owned();
    if path.len() > limits::PATH_LEN_MAX {
        return Err(nothing());
    }
    let path = path.strip_suffix('/').unwrap_or(path);
    let segments = path
        .strip_prefix('/')
        .ok_or_else(nothing)?
        .split('/')
        .map(|segment| {
            percent_decode_str(segment)
                .decode_utf8()
                .map(|s| s.into_owned())
        })
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| "the path is not UTF-8".to_owned())?;
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (region, below) = match segments.as_slice() {
        ["regions", region, below @ ..] => (Some(*region), below),
        below => (None, below),
    };
    if let Some(region) = region.filter(|r| !served.region(r)) {
        return Err(format!(
            "region {region:?} is not served here; {}",
            served.summary()
        ));
    }
    let region_of = |provider: &str| {
        let known = ecp_xrds::by_provider(provider).next().is_some();
        if !known {
            return Err(nothing());
        }
        if !served.provider(provider) {
            return Err(format!(
                "{provider} is not served here; {}",
                served.summary()
            ));
        }
        match (is_global(provider), region) {
            (true, Some(_)) => Err(format!(
                "{provider} is global; it is at {}",
                served.url("", provider)
            )),
            (true, None) => Ok(String::new()),
            (false, _) => Ok(region.unwrap_or(served.first_region()).to_owned()),
        }
    };
    let well_known = || Route::WellKnown {
        region: region.unwrap_or(served.first_region()).to_owned(),
    };
    match below {
        [".wellknown", "secapi"] => Ok(well_known()),
        ["providers", provider, ".wellknown", "secapi"] => {
            region_of(provider).map(|_| well_known())
        }
        ["providers", provider, "v1", rest @ ..] => {
            let region = region_of(provider)?;
            ecp_xrds::by_provider(provider)
                .find_map(|info| target(info, &region, rest))
                .map(Route::Seca)
                .ok_or_else(nothing)
        }
        _ => Err(nothing()),
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

fn target(info: &'static KindInfo, region: &str, segments: &[&str]) -> Option<Target> {
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
    let (collection, below) = rest.split_first()?;
    if *collection != info.collection {
        return None;
    }
    let (name, action) = match below {
        [] => (None, None),
        [name] if !name.is_empty() => (Some((*name).to_owned()), None),
        [name, asked] if !name.is_empty() => {
            (Some((*name).to_owned()), Some(Action::of(info, asked)?))
        }
        _ => return None,
    };
    let [tenant, workspace, network] = names.map(str::to_owned);
    Some(Target {
        info,
        tenant,
        workspace,
        network,
        region: region.to_owned(),
        name,
        action,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regions::Apis;

    fn parts(path: &str) -> Option<(&'static str, String, String, Option<String>)> {
        match parse(path, &served(Apis::All)).ok()? {
            Route::Seca(t) => Some((t.info.kind, t.tenant, t.workspace, t.name)),
            Route::WellKnown { .. } => Some(("wellknown", String::new(), String::new(), None)),
        }
    }

    fn served(apis: Apis) -> Served {
        let mut served = Served::new(vec!["r1".into(), "r2".into()], "http://x");
        served.apis = apis;
        served
    }

    #[test]
    fn a_url_belongs_to_one_region() {
        let region = |path: &str| match parse(path, &served(Apis::All)) {
            Ok(Route::Seca(target)) => Ok(target.region),
            Ok(Route::WellKnown { region }) => Ok(region),
            Err(why) => Err(why),
        };
        let images = "/providers/seca.storage/v1/tenants/t/images";
        for (path, want) in [
            (images.to_owned(), "r1"),
            (format!("/regions/r1{images}"), "r1"),
            (format!("/regions/r2{images}"), "r2"),
            ("/.wellknown/secapi".into(), "r1"),
            ("/regions/r2/.wellknown/secapi".into(), "r2"),
            (
                "/regions/r2/providers/seca.storage/.wellknown/secapi".into(),
                "r2",
            ),
            ("/providers/seca.region/v1/regions/r2".into(), ""),
        ] {
            assert_eq!(region(&path).as_deref(), Ok(want), "{path}");
        }
        for (path, why) in [
            (
                format!("/regions/r3{images}"),
                "region \"r3\" is not served here; this server has all APIs, for the regions: r1, r2",
            ),
            (
                "/regions/r2/providers/seca.region/v1/regions".into(),
                "seca.region is global; it is at http://x/providers/seca.region",
            ),
            ("/regions".into(), NOTHING_HERE),
            ("/regions/r2".into(), NOTHING_HERE),
        ] {
            assert_eq!(region(&path), Err(why.into()), "{path}");
        }
    }

    #[test]
    fn apis_of_other_servers_are_named() {
        let why = |apis, path: &str| parse(path, &served(apis)).expect_err("refused");
        assert_eq!(
            why(Apis::Regional, "/providers/seca.region/v1/regions"),
            "seca.region is not served here; \
             this server has the regional APIs only, for the regions: r1, r2"
        );
        let global = why(Apis::Global, "/providers/seca.storage/v1/tenants/t/skus");
        assert!(
            global.starts_with("seca.storage is not served here; this server has the global APIs")
        );
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
