//! What the function asks to see beside the XR.

use std::collections::BTreeMap;

use ecp_meta::gvk::GroupVersionKind;
use ecp_meta::object;
use ecp_xr::function::{Match, Requirements, Resource, ResourceSelector};
use serde_json::Value;

/// The resources asked for so far in this call, and those that were there.
#[derive(Debug)]
pub(crate) struct Needs<'a> {
    have: &'a BTreeMap<String, Vec<Resource>>,
    want: BTreeMap<String, ResourceSelector>,
}

/// What came of asking for one resource.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Found<'a> {
    /// It has not been looked for yet: the caller will, and call again.
    Unknown,
    /// There is none.
    Missing,
    /// Here it is.
    Object(&'a Value),
}

impl<'a> Found<'a> {
    /// The resource, if it was there.
    pub(crate) fn object(self) -> Option<&'a Value> {
        match self {
            Self::Object(object) => Some(object),
            Self::Unknown | Self::Missing => None,
        }
    }
}

impl<'a> Needs<'a> {
    pub(crate) fn new(have: &'a BTreeMap<String, Vec<Resource>>) -> Self {
        Self {
            have,
            want: BTreeMap::new(),
        }
    }

    /// Asks for the resource of a name. `namespace` is `None` for cluster-scoped kinds.
    pub(crate) fn by_name(
        &mut self,
        key: &str,
        gvk: &GroupVersionKind,
        namespace: Option<&str>,
        name: &str,
    ) -> Found<'a> {
        self.ask(key, gvk, namespace, Match::Name(name.into()));
        match self.have.get(key).map(Vec::as_slice) {
            None => Found::Unknown,
            // A caller that cannot look by namespace might answer with another's.
            Some(found) => found
                .iter()
                .map(|r| &*r.object)
                .find(|o| {
                    object::name(o) == name
                        && namespace.is_none_or(|n| object::namespace(o) == Some(n))
                })
                .map_or(Found::Missing, Found::Object),
        }
    }

    /// Asks for all resources with some labels in a namespace, which is `None` for cluster-scoped
    /// kinds. `None` until they were looked for.
    pub(crate) fn by_labels(
        &mut self,
        key: &str,
        gvk: &GroupVersionKind,
        namespace: Option<&str>,
        labels: BTreeMap<String, String>,
    ) -> Option<Vec<&'a Value>> {
        // As above; and the answer may be to what was asked before a reference was changed.
        let matches = |o: &Value| {
            namespace.is_none_or(|n| object::namespace(o) == Some(n))
                && labels.iter().all(|(k, v)| object::label(o, k) == Some(v))
        };
        let found = self.have.get(key).map(|found| {
            found
                .iter()
                .map(|r| &*r.object)
                .filter(|o| matches(o))
                .collect()
        });
        self.ask(key, gvk, namespace, Match::Labels(labels));
        found
    }

    fn ask(&mut self, key: &str, gvk: &GroupVersionKind, namespace: Option<&str>, matching: Match) {
        let selector = ResourceSelector {
            api_version: gvk.api_version(),
            kind: gvk.kind.clone(),
            namespace: namespace.map(Into::into),
            matching,
        };
        self.want.insert(key.into(), selector);
    }

    /// Everything that was asked for.
    pub(crate) fn requirements(self) -> Requirements {
        Requirements {
            resources: self.want,
            ..Requirements::default()
        }
    }
}
