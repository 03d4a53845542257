//! The few facts of stored objects that controllers look at, read without parsing the rest.

use serde::Deserialize;

use crate::storage;

/// Metadata of a stored object.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Meta {
    pub uid: String,
    pub deletion_timestamp: Option<String>,
    pub finalizers: Vec<String>,
    pub owner_references: Vec<OwnerRef>,
}

/// An owner of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct OwnerRef {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    pub block_owner_deletion: bool,
}

impl Meta {
    /// Reads a stored value; `None` if it is no object.
    pub(super) fn of(value: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Object {
            metadata: Meta,
        }
        serde_json::from_slice::<Object>(storage::raw_json(value))
            .ok()
            .map(|o| o.metadata)
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    pub(super) fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == name)
    }
}
