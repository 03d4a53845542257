//! Logical clusters.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::names::is_dns1123_label;

/// The path of a logical cluster: one or more DNS labels joined by `:`, such as `root:team-a`.
///
/// Every stored key, watch, cache and request belongs to exactly one logical cluster.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterName(Arc<str>);

/// Longest path, so that keys stay bounded.
const LEN_MAX: usize = 253;

impl ClusterName {
    /// The cluster that plain Kubernetes paths (without `/clusters/<path>`) address.
    pub fn root() -> Self {
        Self("root".into())
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A text is not a logical cluster path.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("logical cluster path {0:?} must be DNS-1123 labels joined by ':', 253 characters at most")]
pub struct InvalidClusterName(String);

impl FromStr for ClusterName {
    type Err = InvalidClusterName;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        if s.len() <= LEN_MAX && s.split(':').all(is_dns1123_label) {
            Ok(Self(s.into()))
        } else {
            Err(InvalidClusterName(s.chars().take(LEN_MAX + 1).collect()))
        }
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterName({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_labels_joined_by_colons() {
        for ok in ["root", "root:team-a", "a:b:c0"] {
            assert_eq!(ok.parse::<ClusterName>().unwrap().as_str(), ok);
        }
        for bad in [
            "",
            ":",
            "root:",
            "Root",
            "a/b",
            "..",
            "*",
            "a b",
            &"x".repeat(254),
        ] {
            assert!(bad.parse::<ClusterName>().is_err(), "{bad:?}");
        }
    }
}
