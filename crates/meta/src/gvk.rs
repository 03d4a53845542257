//! Kinds and resources of the Kubernetes API.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A kind at one version, such as `storage.v1.secapi.cloud/v1, Kind=BlockStorage`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupVersionKind {
    /// API group; empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
}

/// A resource of one group, at any version, such as `block-storages.storage.v1.secapi.cloud`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupResource {
    /// API group; empty for the core group.
    pub group: String,
    /// Plural.
    pub resource: String,
}

impl GroupVersionKind {
    /// A kind from its parts.
    pub fn new(group: &str, version: &str, kind: &str) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
        }
    }

    /// A kind from `apiVersion` and `kind` fields.
    pub fn from_api_version(api_version: &str, kind: &str) -> Self {
        let (group, version) = split_api_version(api_version);
        Self::new(group, version, kind)
    }

    /// The `apiVersion` field: `group/version`, or `version` alone in the core group.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// `Kind.group`, as Crossplane writes a group-kind (`Kind` alone in the core group).
    pub fn group_kind(&self) -> String {
        if self.group.is_empty() {
            self.kind.clone()
        } else {
            format!("{}.{}", self.kind, self.group)
        }
    }
}

impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, Kind={}", self.api_version(), self.kind)
    }
}

impl GroupResource {
    /// A resource from its parts.
    pub fn new(group: &str, resource: &str) -> Self {
        Self {
            group: group.into(),
            resource: resource.into(),
        }
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource)?;
        if self.group.is_empty() {
            Ok(())
        } else {
            write!(f, ".{}", self.group)
        }
    }
}

/// Splits an `apiVersion` into group and version; the core group is empty.
pub fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// Joins group and version into an `apiVersion`.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.into()
    } else {
        format!("{group}/{version}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_versions_split_and_join() {
        let core = GroupVersionKind::from_api_version("v1", "Secret");
        assert_eq!(core, GroupVersionKind::new("", "v1", "Secret"));
        assert_eq!(core.api_version(), "v1");
        assert_eq!(core.group_kind(), "Secret");
        let xr = GroupVersionKind::from_api_version("storage.v1.secapi.cloud/v1", "BlockStorage");
        assert_eq!(xr.api_version(), "storage.v1.secapi.cloud/v1");
        assert_eq!(xr.group_kind(), "BlockStorage.storage.v1.secapi.cloud");
        assert_eq!(GroupResource::new("", "secrets").to_string(), "secrets");
        assert_eq!(GroupResource::new("g", "r").to_string(), "r.g");
    }
}
