//! The two ways to install the kinds.

use std::fmt;
use std::str::FromStr;

/// Which generation of XRDs a cluster has. A cluster installs one.
///
/// A user's manifest is the same in both: the namespaced XR of one and the claim of the other have
/// the same `apiVersion`, kind and spec.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flavour {
    /// `apiextensions.crossplane.io/v2`: namespaced XRs, for Crossplane 2.
    #[default]
    V2,
    /// `apiextensions.crossplane.io/v1`: cluster-scoped XRs with claims, for Crossplane 1.20 and 2.
    Claims,
}

impl Flavour {
    /// Both.
    pub const ALL: [Self; 2] = [Self::V2, Self::Claims];

    /// Its name: `v2` or `claims`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2 => "v2",
            Self::Claims => "claims",
        }
    }
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text names no flavour.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("no flavour is called {0:?}, only v2 and claims")]
pub struct UnknownFlavour(String);

impl FromStr for Flavour {
    type Err = UnknownFlavour;

    fn from_str(s: &str) -> Result<Self, UnknownFlavour> {
        Self::ALL
            .into_iter()
            .find(|f| f.as_str() == s)
            .ok_or_else(|| UnknownFlavour(s.chars().take(64).collect()))
    }
}
