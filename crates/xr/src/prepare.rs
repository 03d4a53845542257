//! What happens to an XR before it is composed: finalizer, choice of Composition and revision,
//! label (upstream reconciler steps 6 to 11).
//!
//! Upstream writes the XR after each of these; here the changes are collected, to be written once.

use std::collections::BTreeMap;
use std::sync::Arc;

use ecp_meta::{keys, object};
use serde_json::{Map, Value, json};

use crate::composition::{self, Composition};
use crate::event::{Event, reason};
use crate::machinery::{self, Machinery, UpdatePolicy};
use crate::xrd::Xrd;

/// The Compositions and revisions there are, by name.
#[derive(Clone, Copy, Debug)]
pub struct Catalogue<'a> {
    /// Compositions.
    pub compositions: &'a BTreeMap<String, Arc<Value>>,
    /// Revisions.
    pub revisions: &'a BTreeMap<String, Arc<Value>>,
}

/// What became of preparing an XR.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// The XR with all that was decided, also when something failed.
    pub xr: Value,
    /// Events, in order.
    pub events: Vec<Event>,
    /// The revision to compose with, and what it says.
    pub outcome: Result<(Arc<Value>, Composition), Failure>,
}

/// Why an XR cannot be composed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Reason of the event.
    pub reason: &'static str,
    /// Message of the event and of the `Synced` condition.
    pub message: String,
}

/// Prepares an XR.
pub fn prepare(xrd: &Xrd, xr: &Value, catalogue: Catalogue<'_>) -> Prepared {
    let mut preparation = Preparation {
        xrd,
        xr: xr.clone(),
        catalogue,
        events: Vec::new(),
    };
    let outcome = preparation.run();
    Prepared {
        xr: preparation.xr,
        events: preparation.events,
        outcome,
    }
}

/// Adds a finalizer, unless the object has it.
pub fn add_finalizer(object: &mut Value, finalizer: &str) {
    if object::finalizers(object).any(|f| f == finalizer) {
        return;
    }
    let list = object::metadata_mut(object)
        .entry("finalizers")
        .or_insert_with(|| json!([]));
    match list {
        Value::Array(items) => items.push(finalizer.into()),
        other => *other = json!([finalizer]),
    }
}

/// Removes a finalizer.
pub fn remove_finalizer(object: &mut Value, finalizer: &str) {
    let left: Vec<Value> = object::finalizers(object)
        .filter(|f| *f != finalizer)
        .map(Value::from)
        .collect();
    let metadata = object::metadata_mut(object);
    if left.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".into(), left.into());
    }
}

struct Preparation<'a> {
    xrd: &'a Xrd,
    xr: Value,
    catalogue: Catalogue<'a>,
    events: Vec<Event>,
}

impl Preparation<'_> {
    fn run(&mut self) -> Result<(Arc<Value>, Composition), Failure> {
        add_finalizer(&mut self.xr, keys::COMPOSITE_FINALIZER);
        let before = self.machinery().composition().map(str::to_owned);
        let name = self.select_composition().map_err(|e| Failure {
            reason: reason::SELECT_COMPOSITION,
            message: format!("cannot select Composition: {e}"),
        })?;
        if before.as_deref() != Some(&name) {
            self.event(
                reason::SELECT_COMPOSITION,
                format!("Successfully selected composition: {name}"),
            );
        }
        self.select_default_revisions();
        let before = self.machinery().revision().map(str::to_owned);
        let revision = self.fetch_revision(&name).map_err(|e| Failure {
            reason: reason::COMPOSE,
            message: format!("cannot fetch Composition: {e}"),
        })?;
        if before.as_deref() != Some(object::name(&revision)) {
            let name = object::name(&revision);
            self.event(
                reason::SELECT_COMPOSITION,
                format!("Selected composition revision: {name}"),
            );
        }
        let failure = |message| Failure {
            reason: reason::COMPOSE,
            message,
        };
        if let Some(why) = composition::invalid_pipeline(&revision) {
            return Err(failure(why));
        }
        let parsed = Composition::parse(&revision).map_err(|e| failure(e.to_string()))?;
        self.configure(&parsed)
            .map_err(|e| failure(format!("cannot configure composite resource: {e}")))?;
        Ok((revision, parsed))
    }

    fn machinery(&self) -> Machinery<'_> {
        Machinery::of(&self.xr, self.xrd.scope)
    }

    fn set(&mut self, field: &str, value: Value) {
        machinery::set(&mut self.xr, self.xrd.scope, field, value);
    }

    fn event(&mut self, reason: &str, message: impl Into<String>) {
        self.events.push(Event::normal(reason, message));
    }

    /// Enforced, then kept, then default, then the first by name whose labels match.
    fn select_composition(&mut self) -> Result<String, String> {
        let current = self.machinery().composition().map(str::to_owned);
        if let Some(enforced) = &self.xrd.spec.enforced_composition_ref {
            if current.as_deref() != Some(&enforced.name) {
                self.set("compositionRef", json!({"name": enforced.name}));
                self.event(
                    reason::COMPOSITION_SELECTION,
                    "Enforced composition has been selected",
                );
            }
            return Ok(enforced.name.clone());
        }
        if let Some(current) = current {
            return Ok(current);
        }
        let selector = self.machinery().composition_selector();
        if let (Some(default), None) = (&self.xrd.spec.default_composition_ref, &selector) {
            self.set("compositionRef", json!({"name": default.name}));
            self.event(
                reason::COMPOSITION_SELECTION,
                "Default composition has been selected",
            );
            return Ok(default.name.clone());
        }
        let labels = selector.unwrap_or_default();
        let gvk = self.xrd.composite_gvk();
        let (api_version, kind) = (gvk.api_version(), gvk.kind);
        let found = self.catalogue.compositions.values().find(|c| {
            let of = c.pointer("/spec/compositeTypeRef");
            let is = |field: &str, want: &str| {
                of.and_then(|t| t.get(field)).and_then(Value::as_str) == Some(want)
            };
            is("apiVersion", &api_version) && is("kind", &kind) && has_labels(c, &labels)
        });
        let name = found
            .map(|c| object::name(c).to_owned())
            .ok_or("no compatible Compositions found")?;
        self.set("compositionRef", json!({"name": name}));
        Ok(name)
    }

    fn select_default_revisions(&mut self) {
        let Some(selector) = &self.xrd.spec.default_composition_revision_selector else {
            return;
        };
        let machinery = self.machinery();
        if machinery.revision_selector().is_some() || machinery.revision().is_some() {
            return;
        }
        let labels = json!({"matchLabels": selector.match_labels});
        self.set("compositionRevisionSelector", labels);
        self.event(
            reason::COMPOSITION_SELECTION,
            "Default revision selector has been selected",
        );
    }

    fn fetch_revision(&mut self, composition: &str) -> Result<Arc<Value>, String> {
        let machinery = self.machinery();
        let policy = machinery.update_policy();
        let current = machinery.revision().map(str::to_owned);
        if let (Some(current), Some(UpdatePolicy::Manual)) = (&current, policy) {
            return self
                .catalogue
                .revisions
                .get(current)
                .cloned()
                .ok_or_else(|| {
                    let missing = not_found("CompositionRevision", current);
                    format!("cannot get CompositionRevision: {missing}")
                });
        }
        let Some(found) = self.catalogue.compositions.get(composition) else {
            let missing = not_found("Composition", composition);
            return Err(format!("cannot get Composition: {missing}"));
        };
        let labels = match policy {
            Some(UpdatePolicy::Automatic) => machinery.revision_selector().unwrap_or_default(),
            Some(UpdatePolicy::Manual) | None => vec![],
        };
        let candidates = self.catalogue.revisions.values().filter(|r| {
            object::label(r, keys::COMPOSITION_NAME) == Some(composition) && has_labels(r, &labels)
        });
        let latest = composition::latest_revision(found, candidates.map(Arc::as_ref))
            .and_then(|latest| self.catalogue.revisions.get(object::name(latest)).cloned())
            .ok_or("no compatible CompositionRevisions found")?;
        if current.as_deref() != Some(object::name(&latest)) {
            let name = object::name(&latest);
            self.set("compositionRevisionRef", json!({"name": name}));
        }
        Ok(latest)
    }

    fn configure(&mut self, revision: &Composition) -> Result<(), String> {
        if object::label(&self.xr, keys::COMPOSITE).is_none_or(str::is_empty) {
            let name = object::name(&self.xr).to_owned();
            object::set_label(&mut self.xr, keys::COMPOSITE, &name);
        }
        if !self.xrd.scope.is_legacy() {
            return Ok(());
        }
        let gvk = self.xrd.composite_gvk();
        if revision.composite_api_version != gvk.api_version()
            || revision.composite_kind != gvk.kind
        {
            return Err(
                "referenced composition is not compatible with this composite resource".into(),
            );
        }
        if let Some(namespace) = &revision.write_connection_secrets_to_namespace
            && self
                .machinery()
                .field("writeConnectionSecretToRef")
                .is_none()
        {
            let uid = object::uid(&self.xr).to_owned();
            let secret = json!({"name": uid, "namespace": namespace});
            self.set("writeConnectionSecretToRef", secret);
        }
        Ok(())
    }
}

fn has_labels(object: &Value, wanted: &[(&str, &str)]) -> bool {
    wanted
        .iter()
        .all(|(key, value)| object::label(object, key) == Some(value))
}

/// A missing object in the words of upstream's cached client.
fn not_found(kind: &str, name: &str) -> String {
    format!("{kind}.{} {name:?} not found", crate::xrd::GROUP)
}

/// Labels or annotations that are not Kubernetes' own (used for claims).
pub(crate) fn without_reserved(map: Option<&Value>) -> Map<String, Value> {
    object::string_map(map)
        .filter(|(key, _)| !is_reserved(key))
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect()
}

/// Whether a key belongs to Kubernetes, as upstream decides: what is before the slash ends with
/// `kubernetes.io` or `k8s.io`.
fn is_reserved(key: &str) -> bool {
    let prefix = key.split('/').next().unwrap_or_default();
    prefix.ends_with("kubernetes.io") || prefix.ends_with("k8s.io")
}

#[cfg(test)]
#[path = "prepare_tests.rs"]
mod tests;
