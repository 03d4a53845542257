//! From kinds to resources, by discovery.

use std::collections::BTreeMap;
use std::time::Instant;

use ecp_meta::gvk::GroupVersionKind;
use parking_lot::Mutex;
use serde_json::Value;

use crate::api::{Api, Kind};
use crate::limits::UNKNOWN_KIND_TTL;

/// Knows the resource of each kind. What is found stays; what is not is looked up again soon.
#[derive(Debug)]
pub(crate) struct Mapper {
    api: Api,
    known: Mutex<BTreeMap<GroupVersionKind, Kind>>,
    missing: Mutex<BTreeMap<GroupVersionKind, Instant>>,
}

impl Mapper {
    pub(crate) fn new(api: Api) -> Self {
        Self {
            api,
            known: Mutex::default(),
            missing: Mutex::default(),
        }
    }

    /// The resource of a kind.
    ///
    /// # Errors
    /// Why it is not known, in client-go's words.
    pub(crate) async fn kind(&self, gvk: &GroupVersionKind) -> Result<Kind, String> {
        if let Some(kind) = self.known.lock().get(gvk) {
            return Ok(kind.clone());
        }
        let no_match = || {
            format!(
                "no matches for kind {:?} in version {:?}",
                gvk.kind,
                gvk.api_version()
            )
        };
        let recently = self.missing.lock().get(gvk).copied();
        if recently.is_some_and(|at| at.elapsed() < UNKNOWN_KIND_TTL) {
            return Err(no_match());
        }
        let document = self
            .api
            .resources(&gvk.api_version())
            .await
            .map_err(|e| e.to_string())?;
        for kind in document.iter().flat_map(|d| kinds_of(d, gvk)) {
            self.known.lock().insert(kind.gvk.clone(), kind);
        }
        if let Some(kind) = self.known.lock().get(gvk) {
            self.missing.lock().remove(gvk);
            return Ok(kind.clone());
        }
        self.missing.lock().insert(gvk.clone(), Instant::now());
        Err(no_match())
    }

    /// Takes a kind for known.
    pub(crate) fn learn(&self, kind: Kind) {
        self.known.lock().insert(kind.gvk.clone(), kind);
    }

    /// Forgets a group, when one of its CRDs changes or goes.
    pub(crate) fn forget(&self, group: &str) {
        self.known.lock().retain(|gvk, _| gvk.group != group);
        self.missing.lock().retain(|gvk, _| gvk.group != group);
    }
}

fn kinds_of(document: &Value, of: &GroupVersionKind) -> Vec<Kind> {
    document
        .get("resources")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|resource| {
            let text = |field: &str| resource.get(field).and_then(Value::as_str);
            let plural = text("name").filter(|name| !name.contains('/'))?;
            let gvk = GroupVersionKind::new(&of.group, &of.version, text("kind")?);
            let namespaced = resource.get("namespaced").and_then(Value::as_bool)?;
            Some(Kind::new(gvk, plural, namespaced))
        })
        .collect()
}
