//! Managed resources: what is wanted of them, and what their observed state means.

use std::collections::BTreeMap;

use ecp_meta::{condition, keys, names, object};
use serde_json::{Map, Value, json};

use crate::clouds::Region;

/// One kind of managed resource that a cloud's module makes.
#[derive(Debug, PartialEq, Eq)]
pub struct ManagedKind {
    /// `apiVersion`, such as `dummy.m.secapi.cloud/v1alpha1`.
    pub api_version: &'static str,
    /// Kind, such as `Volume`.
    pub kind: &'static str,
    /// What a person calls it, as in "waiting for the volume".
    pub noun: &'static str,
    /// The fields of `forProvider` that the function sets. All else is the provider's.
    pub fields: &'static [&'static str],
}

/// A managed resource as it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Managed {
    /// Its name in the composition, the same for ever.
    pub key: String,
    /// Its kind.
    pub kind: &'static ManagedKind,
    /// `spec.forProvider`; members that are null are left out, at any depth.
    pub for_provider: Value,
    /// The region it is in; `None` for those that need no cloud.
    pub region: Option<Region>,
}

/// Where managed resources are and what they are labelled with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
}

/// Start of the annotations that note which other resources are used: SECA kind and hash of the
/// URN follow, and the value is `<collection>/<name>#<cloud id>`.
pub(crate) const USES_PREFIX: &str = "secapi.cloud/uses-";

/// What an observed managed resource says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is what is wanted of it, and ready.
    Settled,
    /// It is on its way, with what it waits for.
    Working(String),
    /// The cloud did not do it, but may: it is tried again.
    Failing(String),
    /// The cloud will not do it until somebody changes something.
    Refused(String),
}

/// The labels that the function sets.
const OWN_LABELS: [&str; 6] = [
    keys::TENANT,
    keys::WORKSPACE,
    keys::NETWORK,
    keys::KIND,
    keys::NAME,
    keys::REGION,
];

/// The `Synced` reason of our providers for what trying again does not help. `ReconcileError`, the
/// reason of everything else and of other providers, can mean anything.
const REFUSED_REASON: &str = "ReconcileRefused";
/// `atProvider.state` of what is broken in the cloud for good.
const BROKEN_STATES: [&str; 2] = ["error", "failed"];

impl ManagedKind {
    /// Group, version and kind.
    pub fn gvk(&self) -> ecp_meta::gvk::GroupVersionKind {
        ecp_meta::gvk::GroupVersionKind::from_api_version(self.api_version, self.kind)
    }

    /// Whether an object is of the kind.
    pub fn is(&self, object: &Value) -> bool {
        let field = |f| object.get(f).and_then(Value::as_str);
        field("apiVersion") == Some(self.api_version) && field("kind") == Some(self.kind)
    }
}

impl Managed {
    /// The desired object: what the function owns of it and nothing else.
    pub(crate) fn object(&self, place: &Place<'_>) -> Value {
        let spec = json!({"forProvider": without_nulls(&self.for_provider)});
        let mut object = desired(self.kind, place, spec);
        if let Some(region) = &self.region {
            object["spec"]["providerConfigRef"] = json!(region.config);
            object::set_label(&mut object, keys::REGION, &names::label_value(&region.name));
        }
        object
    }

    /// What the observed object, if there is one, says.
    pub(crate) fn verdict(&self, place: &Place<'_>, observed: Option<&Value>) -> Verdict {
        let noun = self.kind.noun;
        let Some(observed) = observed else {
            return Verdict::Working(format!("waiting for the {noun} to be created"));
        };
        if object::is_deleting(observed) {
            return Verdict::Working(format!("waiting for the old {noun} to be deleted"));
        }
        let current = is_current(observed) && contains(observed, &self.object(place));
        if !current {
            return Verdict::Working(format!("waiting for the cloud to take up the {noun}"));
        }
        let synced = condition::find(observed, "Synced");
        if condition::status(observed, "Synced") != Some("True") {
            let words = words(synced).unwrap_or_else(|| "no reason given".into());
            let refused = synced
                .and_then(|s| s.get("reason"))
                .and_then(Value::as_str)
                .is_some_and(|r| r == REFUSED_REASON);
            return if refused {
                Verdict::Refused(format!("the cloud refuses the {noun}: {words}"))
            } else {
                Verdict::Failing(format!("the {noun} is not in order: {words}"))
            };
        }
        let ready = condition::find(observed, "Ready");
        let because = words(ready).map(|w| format!(": {w}")).unwrap_or_default();
        if is_broken(observed) {
            Verdict::Refused(format!("the {noun} failed in the cloud{because}"))
        } else if condition::is_true(observed, "Ready") {
            Verdict::Settled
        } else {
            Verdict::Working(format!("waiting for the {noun} to be ready{because}"))
        }
    }
}

/// The part of an observed managed resource that the function owns: what it wanted before, when
/// it cannot tell what to want now. `None` for a kind that is not among `kinds`.
pub(crate) fn as_before<'k>(
    observed: &Value,
    mut kinds: impl Iterator<Item = &'k ManagedKind>,
    namespace: &str,
) -> Option<Value> {
    let kind = kinds.find(|k| k.is(observed))?;
    let spec = observed.get("spec").unwrap_or(&Value::Null);
    let for_provider: Map<String, Value> = spec
        .get("forProvider")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(k, _)| kind.fields.contains(&k.as_str()))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let mut wanted = json!({"forProvider": for_provider});
    if let Some(config) = spec.get("providerConfigRef") {
        wanted["providerConfigRef"] = config.clone();
    }
    let keep = |field, wanted: fn(&str) -> bool| {
        let all = observed.get("metadata").and_then(|m| m.get(field));
        object::string_map(all)
            .filter(|(k, _)| wanted(k))
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .collect()
    };
    let before = Place {
        namespace: object::namespace(observed).unwrap_or(namespace),
        labels: keep("labels", |k| OWN_LABELS.contains(&k)),
        annotations: keep("annotations", |k| k.starts_with(USES_PREFIX)),
    };
    Some(desired(kind, &before, wanted))
}

/// The cloud's id of an observed managed resource.
pub(crate) fn external_name(observed: &Value) -> Option<&str> {
    object::annotation(observed, keys::EXTERNAL_NAME).filter(|name| !name.is_empty())
}

/// A field of `status.atProvider`.
pub fn at_provider<'a>(observed: &'a Value, field: &str) -> Option<&'a Value> {
    observed
        .get("status")?
        .get("atProvider")?
        .get(field)
        .filter(|v| !v.is_null())
}

fn desired(kind: &ManagedKind, place: &Place<'_>, spec: Value) -> Value {
    let mut metadata = json!({"namespace": place.namespace, "labels": place.labels});
    if !place.annotations.is_empty() {
        metadata["annotations"] = json!(place.annotations);
    }
    json!({
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": metadata,
        "spec": spec,
    })
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(_, v)| !v.is_null())
            .map(|(k, v)| (k.clone(), without_nulls(v)))
            .collect(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// Whether the conditions speak of the generation the object has.
fn is_current(observed: &Value) -> bool {
    let of = |v: Option<&Value>| v?.get("observedGeneration")?.as_f64();
    let seen = of(condition::find(observed, "Synced")).or_else(|| of(observed.get("status")));
    seen.is_some_and(|seen| seen >= object::generation(observed) as f64)
}

fn is_broken(observed: &Value) -> bool {
    at_provider(observed, "state")
        .and_then(Value::as_str)
        .is_some_and(|s| BROKEN_STATES.contains(&s))
}

fn words(condition: Option<&Value>) -> Option<String> {
    condition?
        .get("message")?
        .as_str()
        .filter(|m| !m.is_empty())
        .map(Into::into)
}

/// Whether `value` has all of `part`. Numbers are equal if their values are: a trip through
/// protobuf turns `3` into `3.0`.
fn contains(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::Object(value), Value::Object(part)) => part
            .iter()
            .all(|(k, p)| value.get(k).is_some_and(|v| contains(v, p))),
        (Value::Array(value), Value::Array(part)) => {
            value.len() == part.len() && value.iter().zip(part).all(|(v, p)| contains(v, p))
        }
        (Value::Number(value), Value::Number(part)) => value.as_f64() == part.as_f64(),
        _ => value == part,
    }
}
