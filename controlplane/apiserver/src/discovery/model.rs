//! What discovery shows, before it takes a form.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use base64::Engine as _;
use ecp_meta::gvk::GroupVersionKind;
use sha2::{Digest as _, Sha256};

use crate::auth::review::{REVIEWS, Review, VERSION};
use crate::registry::{ResourceInfo, Resources, Subresource};

/// A group.
#[derive(Debug)]
pub(crate) struct Group {
    /// Name; empty for core.
    pub name: String,
    /// Versions, the preferred one first.
    pub versions: Vec<Version>,
}

/// A version of a group.
#[derive(Debug)]
pub(crate) struct Version {
    pub name: String,
    pub resources: Vec<Entry>,
}

/// A resource.
#[derive(Debug)]
pub(crate) struct Entry {
    pub plural: String,
    pub singular: String,
    pub gvk: GroupVersionKind,
    pub namespaced: bool,
    pub verbs: &'static [&'static str],
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub subresources: Vec<Subresource>,
    /// Tells clients whether two resources are stored as the same thing.
    pub storage_hash: Option<String>,
}

/// The groups of a logical cluster: core first, then by name; versions by preference.
pub(crate) fn groups(resources: &Resources) -> Vec<Group> {
    let mut groups: BTreeMap<&str, BTreeMap<&str, Vec<Entry>>> = BTreeMap::new();
    for resource in resources.iter() {
        let GroupVersionKind { group, version, .. } = &resource.gvk;
        let entries = groups.entry(group).or_default().entry(version).or_default();
        entries.push(Entry::from(&**resource.info()));
    }
    for review in REVIEWS {
        let entries = groups
            .entry(review.group)
            .or_default()
            .entry(VERSION)
            .or_default();
        entries.push(Entry::from(review));
    }
    groups
        .into_iter()
        .map(|(name, versions)| {
            let mut versions: Vec<Version> = versions
                .into_iter()
                .map(|(name, resources)| Version {
                    name: name.to_owned(),
                    resources,
                })
                .collect();
            versions.sort_by_cached_key(|version| Reverse(priority(&version.name)));
            Group {
                name: name.to_owned(),
                versions,
            }
        })
        .collect()
}

impl From<&ResourceInfo> for Entry {
    fn from(info: &ResourceInfo) -> Self {
        Self {
            plural: info.plural.clone(),
            singular: info.singular.clone(),
            gvk: info.gvk.clone(),
            namespaced: info.namespaced,
            verbs: info.verbs,
            short_names: info.short_names.clone(),
            categories: info.categories.clone(),
            subresources: info.subresources(),
            storage_hash: Some(storage_hash(&info.storage_api_version, &info.gvk.kind)),
        }
    }
}

impl From<&Review> for Entry {
    fn from(review: &Review) -> Self {
        Self {
            plural: review.plural.to_owned(),
            singular: review.kind.to_lowercase(),
            gvk: review.gvk(),
            namespaced: review.namespaced,
            verbs: &["create"],
            short_names: Vec::new(),
            categories: Vec::new(),
            subresources: Vec::new(),
            storage_hash: None,
        }
    }
}

/// As `k8s.io/apiserver/pkg/endpoints/discovery/storageversionhash.go`.
fn storage_hash(api_version: &str, kind: &str) -> String {
    let (group, version) = ecp_meta::gvk::split_api_version(api_version);
    let digest = Sha256::digest(format!("{group}/{version}/{kind}"));
    base64::engine::general_purpose::STANDARD.encode(digest.get(..8).unwrap_or_default())
}

/// Order of versions (`k8s.io/apimachinery/pkg/version.CompareKubeAwareVersionStrings`): stable
/// before beta before alpha, then newer first; other names last, in alphabetical order.
pub(crate) fn priority(version: &str) -> (u8, u64, u64, Reverse<String>) {
    let none = (0, 0, 0, Reverse(version.to_owned()));
    let Some(rest) = version.strip_prefix('v') else {
        return none;
    };
    let (digits, rest) = rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count());
    let Ok(major) = digits.parse() else {
        return none;
    };
    let stage = |rank: u8, minor: &str| match minor.parse() {
        Ok(minor) => (rank, major, minor, Reverse(String::new())),
        Err(_) => none.clone(),
    };
    match rest {
        "" => (3, major, 0, Reverse(String::new())),
        rest => match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
            (Some(minor), _) => stage(2, minor),
            (_, Some(minor)) => stage(1, minor),
            _ => none,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_kubernetes_prefers_them() {
        let mut versions = [
            "v1alpha1",
            "foo1",
            "v2",
            "v1",
            "v1beta2",
            "v1beta10",
            "v10",
            "v11alpha2",
            "bar",
        ];
        versions.sort_by_cached_key(|version| Reverse(priority(version)));
        assert_eq!(
            versions,
            [
                "v10",
                "v2",
                "v1",
                "v1beta10",
                "v1beta2",
                "v11alpha2",
                "v1alpha1",
                "bar",
                "foo1"
            ]
        );
    }

    #[test]
    fn storage_hashes_are_those_of_upstream() {
        // From the discovery document of a kube-apiserver.
        assert_eq!(storage_hash("v1", "ConfigMap"), "qFsyl6wFWjQ=");
    }
}
