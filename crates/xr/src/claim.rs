//! Claims: how a claim makes its XR, and what it learns from it (upstream
//! `ServerSideCompositeSyncer`).

use std::collections::BTreeSet;

use ecp_meta::condition::{self, Condition};
use ecp_meta::gvk::GroupVersionKind;
use ecp_meta::{keys, object};
use serde_json::{Map, Value, json};

use crate::crd::{claim_spec_fields, legacy_spec_fields, legacy_status_fields};
use crate::machinery::{Machinery, UpdatePolicy};
use crate::prepare::without_reserved;
use crate::status::Conditions;
use crate::xrd::Scope;

/// Field manager of what a claim applies to its XR.
pub const CLAIM_MANAGER: &str = "apiextensions.crossplane.io/claim";

/// Letters and digits of generated name suffixes, as Kubernetes': no vowels, no look-alikes.
pub const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// Length of generated name suffixes.
pub const SUFFIX_LEN: usize = 5;

/// Fields of a claim's spec that reach the XR although Crossplane owns them.
const PROPAGATED: [&str; 4] = [
    "compositionRef",
    "compositionSelector",
    "compositionUpdatePolicy",
    "compositionRevisionSelector",
];

/// A claim that cannot make an XR.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ClaimError {
    /// It has no spec.
    #[error("claim spec was not an object")]
    NoSpec,
}

/// Name of the XR a claim refers to.
pub fn composite_name(claim: &Value) -> Option<&str> {
    let name = claim.pointer("/spec/resourceRef/name")?.as_str()?;
    Some(name).filter(|n| !n.is_empty())
}

/// The name of a new XR: the claim's, cut so that the suffix fits.
pub fn new_composite_name(claim: &Value, suffix: &str) -> String {
    let base = format!("{}-", object::name(claim));
    let room = ecp_meta::limits::COMPOSITE_NAME_LEN_MAX.saturating_sub(suffix.len());
    let cut: String = base.chars().take(room).collect();
    format!("{cut}{suffix}")
}

/// How an XR refers to its claim.
pub fn reference(claim: &Value) -> Value {
    let gvk = object::gvk(claim);
    json!({
        "apiVersion": gvk.api_version(),
        "kind": gvk.kind,
        "namespace": object::namespace(claim).unwrap_or_default(),
        "name": object::name(claim),
    })
}

/// Why the XR must be left alone, if it belongs to another claim.
pub fn bound_elsewhere(claim: &Value, xr: &Value) -> Option<String> {
    let bound_to = xr.pointer("/spec/claimRef")?;
    if *bound_to == reference(claim) {
        return None;
    }
    let other = bound_to.get("name").and_then(Value::as_str);
    Some(format!(
        "refusing to operate on composite resource {:?} that is not bound to this claim: bound to \
         claim {:?}",
        object::name(xr),
        other.unwrap_or_default()
    ))
}

/// What to write to bind a claim to its XR: first the claim, so that no XR is ever lost, then
/// the XR.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The claim; equal to what it was when nothing has to be written.
    pub claim: Value,
    /// What to apply to the XR.
    pub composite: Value,
}

/// How to bind.
#[derive(Clone, Copy, Debug)]
pub struct Binding<'a> {
    /// Kind of the XR.
    pub composite: &'a GroupVersionKind,
    /// Name of the XR if the claim has none yet.
    pub new_name: &'a str,
    /// Whether the XRD enforces a Composition.
    pub enforced: bool,
}

/// Binds a claim to its XR (`None`: it does not exist yet).
///
/// # Errors
/// The claim has no spec.
pub fn bind(claim: &Value, xr: Option<&Value>, binding: Binding<'_>) -> Result<Bound, ClaimError> {
    let Binding {
        composite,
        new_name,
        enforced,
    } = binding;
    let nothing = Value::Null;
    let xr = xr.unwrap_or(&nothing);
    let machinery = Machinery::of(xr, Scope::LegacyCluster);
    let name = composite_name(claim).unwrap_or(new_name).to_owned();
    let applied = json!({
        "apiVersion": composite.api_version(),
        "kind": composite.kind,
        "metadata": composite_metadata(claim, xr, &name),
        "spec": composite_spec(claim, &machinery, enforced)?,
    });
    let mut changed = claim.clone();
    let spec = object::entry_map(&mut changed, "spec");
    let mut set = |field: &str, value: Value| {
        spec.insert(field.to_owned(), value);
    };
    set(
        "resourceRef",
        json!({"apiVersion": composite.api_version(), "kind": composite.kind, "name": name}),
    );
    let has = |field: &str| claim.get("spec").and_then(|s| s.get(field)).is_some();
    if let Some(chosen) = machinery.composition()
        && (enforced || !has("compositionRef"))
    {
        set("compositionRef", json!({"name": chosen}));
    }
    if let Some(selector) = machinery.field("compositionRevisionSelector")
        && !has("compositionRevisionSelector")
    {
        set("compositionRevisionSelector", selector.clone());
    }
    if let (Some(UpdatePolicy::Automatic), Some(revision)) =
        (machinery.update_policy(), machinery.revision())
    {
        set("compositionRevisionRef", json!({"name": revision}));
    }
    if let Some(external) = external_name(xr) {
        object::set_annotation(&mut changed, keys::EXTERNAL_NAME, external);
    }
    Ok(Bound {
        claim: changed,
        composite: applied,
    })
}

fn external_name(xr: &Value) -> Option<&str> {
    object::annotation(xr, keys::EXTERNAL_NAME).filter(|n| !n.is_empty())
}

fn composite_metadata(claim: &Value, xr: &Value, name: &str) -> Value {
    let meta = |field: &str| claim.get("metadata").and_then(|m| m.get(field));
    let mut labels = without_reserved(meta("labels"));
    labels.insert(keys::CLAIM_NAME.into(), object::name(claim).into());
    let namespace = object::namespace(claim).unwrap_or_default();
    labels.insert(keys::CLAIM_NAMESPACE.into(), namespace.into());
    let mut annotations = without_reserved(meta("annotations"));
    if let Some(external) = external_name(xr) {
        annotations.insert(keys::EXTERNAL_NAME.into(), external.into());
    }
    let mut metadata = json!({"name": name, "labels": labels});
    if composite_name(claim).is_none() {
        metadata["generateName"] = format!("{}-", object::name(claim)).into();
    }
    if !annotations.is_empty() {
        metadata["annotations"] = annotations.into();
    }
    metadata
}

/// The claim's spec without what only claims have, and without the XR's machinery: a claim must
/// not smuggle resource references into its XR.
fn composite_spec(
    claim: &Value,
    xr: &Machinery<'_>,
    enforced: bool,
) -> Result<Map<String, Value>, ClaimError> {
    let mut strip: BTreeSet<String> = claim_spec_fields()
        .into_iter()
        .chain(legacy_spec_fields())
        .collect();
    for field in PROPAGATED {
        if !(enforced && field == "compositionRef") {
            strip.remove(field);
        }
    }
    if xr.update_policy() == Some(UpdatePolicy::Manual) {
        strip.remove("compositionRevisionRef");
    }
    let spec = claim
        .get("spec")
        .and_then(Value::as_object)
        .ok_or(ClaimError::NoSpec)?;
    let mut kept: Map<String, Value> = spec
        .iter()
        .filter(|(field, _)| !strip.contains(*field))
        .map(|(field, value)| (field.clone(), value.clone()))
        .collect();
    kept.insert("claimRef".into(), reference(claim));
    Ok(kept)
}

/// Whether the XR of a claim is ready.
pub fn is_ready(xr: &Value) -> bool {
    condition::is_true(xr, "Ready")
}

/// The claim's status from its XR's: everything but the machinery, the claim's own conditions and
/// those that functions meant for it.
///
/// `published` is the time of a connection secret that was just copied.
pub fn status(claim: &Value, xr: &Value, published: Option<&str>, now: &str) -> Value {
    let own = legacy_status_fields();
    let from_xr = xr.get("status").and_then(Value::as_object);
    let source = from_xr.or_else(|| claim.get("status").and_then(Value::as_object));
    let mut status: Map<String, Value> = source
        .into_iter()
        .flatten()
        .filter(|(field, _)| !own.contains(field))
        .map(|(field, value)| (field.clone(), value.clone()))
        .collect();
    let mut conditions = Conditions::of(claim, now);
    conditions.synced();
    for kind in claim_condition_types(xr) {
        conditions.copy(&condition_or_unknown(xr, kind));
    }
    if is_ready(xr) {
        conditions.set("Ready", true, "Available", "");
    } else {
        conditions.set(
            "Ready",
            false,
            "Waiting",
            "Claim is waiting for composite resource to become Ready",
        );
    }
    status.insert("conditions".into(), conditions.to_json());
    let details = match published {
        Some(time) => Some(json!({"lastPublishedTime": time})),
        None => claim.pointer("/status/connectionDetails").cloned(),
    };
    if let Some(details) = details {
        status.insert("connectionDetails".into(), details);
    }
    Value::Object(status)
}

fn claim_condition_types(xr: &Value) -> impl Iterator<Item = &str> {
    xr.pointer("/status/claimConditionTypes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

fn condition_or_unknown(xr: &Value, kind: &str) -> Condition {
    condition::of(xr)
        .into_iter()
        .find(|c| c.kind == kind)
        .unwrap_or_else(|| Condition {
            status: "Unknown".into(),
            ..Condition::new(kind, false, "", "", "")
        })
}

#[cfg(test)]
#[path = "claim_tests.rs"]
mod tests;
