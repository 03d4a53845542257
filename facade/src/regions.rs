//! Which APIs a facade serves, for which regions, and at which URLs.
//!
//! A URL belongs to one region: `<public URL>/providers/seca.X` to the first region served, and
//! `<public URL>/regions/<region>/providers/seca.X` to each other one. Global APIs are at the
//! first kind of URL only.

use ecp_xrds::is_global;

/// Which APIs a facade serves (SECA section 1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Apis {
    /// Global and regional ones.
    #[default]
    All,
    /// Regions, roles and role assignments.
    Global,
    /// All others, for the regions that are served.
    Regional,
}

/// What a facade serves, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Which APIs.
    pub apis: Apis,
    /// The regions, the default one first. Only a facade of global APIs may have none.
    pub regions: Vec<String>,
    /// Base of the URLs that clients are told, without a trailing slash, such as
    /// `http://127.0.0.1:8080`.
    public_url: String,
}

impl Served {
    /// All APIs for some regions, at a base URL.
    pub fn new(regions: Vec<String>, public_url: impl Into<String>) -> Self {
        let mut public_url: String = public_url.into();
        public_url.truncate(public_url.trim_end_matches('/').len());
        Self {
            apis: Apis::All,
            regions,
            public_url,
        }
    }

    /// Base of all URLs, without a trailing slash.
    pub fn public_url(&self) -> &str {
        &self.public_url
    }

    /// The default region; empty where no region is served.
    pub fn first_region(&self) -> &str {
        self.regions.first().map_or("", String::as_str)
    }

    /// Whether a region's APIs are served here.
    pub fn region(&self, name: &str) -> bool {
        self.apis != Apis::Global && self.regions.iter().any(|r| r == name)
    }

    /// Whether an API is served here.
    pub fn provider(&self, name: &str) -> bool {
        let known = ecp_xrds::by_provider(name).next().is_some();
        let served = match self.apis {
            Apis::All => true,
            Apis::Global => is_global(name),
            Apis::Regional => !is_global(name),
        };
        known && served
    }

    /// The APIs that are served, in order of their names.
    pub fn providers(&self) -> Vec<&'static str> {
        let mut all: Vec<_> = ecp_xrds::kinds().iter().map(|k| k.provider).collect();
        all.retain(|name| self.provider(name));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Base URL of an API in a region, without the version (SECA section 1.1).
    pub fn url(&self, region: &str, provider: &str) -> String {
        let base = &self.public_url;
        if is_global(provider) || region == self.first_region() {
            format!("{base}/providers/{provider}")
        } else {
            format!("{base}/regions/{region}/providers/{provider}")
        }
    }

    /// What is served, for those who ask for something else.
    pub(crate) fn summary(&self) -> String {
        let regions = self.regions.join(", ");
        match self.apis {
            Apis::All => format!("this server has all APIs, for the regions: {regions}"),
            Apis::Global => {
                let providers = self.providers().join(", ");
                format!("this server has the global APIs only: {providers}")
            }
            Apis::Regional => {
                format!("this server has the regional APIs only, for the regions: {regions}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(apis: Apis) -> Served {
        Served {
            apis,
            ..Served::new(vec!["a".into(), "b".into()], "http://x/")
        }
    }

    #[test]
    fn the_first_region_has_the_short_urls() {
        let all = served(Apis::All);
        for (region, provider, want) in [
            ("a", "seca.storage", "http://x/providers/seca.storage"),
            (
                "b",
                "seca.storage",
                "http://x/regions/b/providers/seca.storage",
            ),
            ("b", "seca.region", "http://x/providers/seca.region"),
        ] {
            assert_eq!(all.url(region, provider), want);
        }
    }

    #[test]
    fn a_part_of_the_apis_can_be_served() {
        assert!(served(Apis::All).provider("seca.region"));
        assert!(served(Apis::Global).provider("seca.region"));
        assert!(!served(Apis::Global).provider("seca.storage"));
        assert!(!served(Apis::Global).region("a"));
        assert!(!served(Apis::Regional).provider("seca.region"));
        assert!(served(Apis::Regional).provider("seca.storage"));
        assert!(!served(Apis::All).provider("seca.none"));
        assert!(served(Apis::Regional).region("b"));
        assert!(!served(Apis::Regional).region("c"));
        assert!(!served(Apis::Global).providers().contains(&"seca.storage"));
    }
}
