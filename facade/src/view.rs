//! A control plane object as a SECA document (SECA sections 2.1 to 2.3).
//!
//! Documents are written straight from the cached object, without copying it. They never claim
//! more than the control plane has seen: while a change waits for the function, the state is
//! `updating` (or `creating`) with an entry on top of the history, not `active` with an old one
//! (DESIGN D5).

use std::borrow::Cow;

use bytes::Bytes;
use ecp_meta::{condition, object};
use ecp_xrds::{CROSSPLANE_SPEC_FIELDS, ENVELOPE_SPEC_FIELDS, KindInfo, Scope, is_global};
use jiff::Timestamp;
use serde::Serialize;
use serde::ser::{SerializeMap as _, SerializeSeq as _, Serializer};
use serde_json::{Value, json};

use crate::cache::Entry;
use crate::limits;
use crate::regions::Served;

/// Status fields that are Crossplane's or ours and not part of a SECA status.
pub(crate) const HIDDEN_STATUS_FIELDS: [&str; 9] = [
    "claimConditionTypes",
    "conditions",
    "connectionDetails",
    "crossplane",
    "history",
    "intent",
    "message",
    "observedGeneration",
    "state",
];

/// Where a resource is, as its URL says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) workspace: &'a str,
    pub(crate) network: &'a str,
}

/// What a document depends on beside the object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lens<'a> {
    pub(crate) info: &'static KindInfo,
    pub(crate) place: Place<'a>,
    /// Region whose URL is asked, and so that of resources that do not say one.
    pub(crate) region: &'a str,
    /// Where the facade itself answers.
    pub(crate) served: &'a Served,
    /// Since when the workspace or network that the resource is in is being deleted: it goes with
    /// that, though it may not have been told yet.
    pub(crate) doomed: Option<Timestamp>,
}

/// The document of an object; `verb` is that of the request (section 2.2).
pub(crate) fn document(lens: Lens<'_>, entry: &Entry, verb: &'static str) -> Bytes {
    let view = View {
        labels: entry.common("labels"),
        annotations: entry.common("annotations"),
        extensions: entry.common("extensions"),
        metadata: metadata(lens, entry, verb),
        spec: Spec { lens, entry },
        status: has_status(lens.info).then_some(Status { lens, entry }),
    };
    // Strings and maps with text keys always serialize.
    Bytes::from(serde_json::to_vec(&view).unwrap_or_default())
}

/// Catalogues have no status (section 2.6).
pub(crate) fn has_status(info: &KindInfo) -> bool {
    !info.catalogue
}

/// SKU metadata has no times (section 2.2); regions have.
pub(crate) fn has_times(info: &KindInfo) -> bool {
    info.provider == "seca.region" || !info.catalogue
}

#[derive(Serialize)]
struct View<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extensions: Option<&'a Value>,
    metadata: Metadata<'a>,
    spec: Spec<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    name: &'a str,
    api_version: &'static str,
    kind: &'static str,
    provider: String,
    resource: String,
    #[serde(rename = "ref")]
    reference: String,
    verb: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    tenant: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    workspace: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    network: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    region: &'a str,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    times: Option<Times<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Times<'a> {
    created_at: &'a str,
    last_modified_at: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted_at: Option<Cow<'a, str>>,
    resource_version: i64,
}

fn metadata<'a>(lens: Lens<'a>, entry: &'a Entry, verb: &'static str) -> Metadata<'a> {
    let Lens { info, place, .. } = lens;
    let name = entry.name();
    let resource = resource(info, place.network, name);
    let mut reference = info.provider_version();
    for (collection, parent) in [("tenants", place.tenant), ("workspaces", place.workspace)] {
        if !parent.is_empty() {
            reference.push_str(&format!("/{collection}/{parent}"));
        }
    }
    reference.push_str(&format!("/{resource}"));
    let times = has_times(info).then(|| times(lens, entry));
    Metadata {
        name,
        api_version: "v1",
        kind: info.seca_kind,
        provider: info.provider_version(),
        resource,
        reference,
        verb,
        tenant: place.tenant,
        workspace: place.workspace,
        network: place.network,
        region: if info.regional() {
            region(lens, entry)
        } else {
            ""
        },
        times,
    }
}

/// `metadata.resource` of a resource, or the prefix of a list's (sections 1.7 and 2.2).
pub(crate) fn resource(info: &KindInfo, network: &str, name: &str) -> String {
    let parent = match info.scope {
        Scope::Network => format!("networks/{network}/"),
        Scope::Cluster | Scope::Tenant | Scope::Workspace => String::new(),
    };
    let mut resource = format!("{parent}{}", info.collection);
    if !name.is_empty() {
        resource.push('/');
        resource.push_str(name);
    }
    resource
}

fn region<'a>(lens: Lens<'a>, entry: &'a Entry) -> &'a str {
    entry
        .object()
        .get("spec")
        .and_then(|s| s.get("region"))
        .and_then(Value::as_str)
        .filter(|r| !r.is_empty())
        .unwrap_or(lens.region)
}

fn times<'a>(lens: Lens<'_>, entry: &'a Entry) -> Times<'a> {
    let created_at = object::meta_str(entry.object(), "creationTimestamp").unwrap_or_default();
    let seen_at = entry
        .status("intent")
        .and_then(|i| i.get("lastModifiedAt"))
        .and_then(Value::as_str);
    let last_modified_at = match seen_at {
        Some(at) if entry.seen() => Cow::Borrowed(at),
        _ => changed_at(entry),
    };
    Times {
        created_at,
        last_modified_at,
        deleted_at: deleted_at(lens, entry),
        resource_version: entry.revision(),
    }
}

/// Since when a resource is being deleted, by itself or with what it is in.
fn deleted_at<'a>(lens: Lens<'_>, entry: &'a Entry) -> Option<Cow<'a, str>> {
    let own = object::meta_str(entry.object(), "deletionTimestamp").map(Cow::Borrowed);
    own.or_else(|| lens.doomed.map(|since| Cow::Owned(since.to_string())))
}

/// When a change that the function has not seen was made: never before the newest condition, so
/// that times only grow (section 3.3).
fn changed_at(entry: &Entry) -> Cow<'_, str> {
    let written = entry
        .written_at()
        .or_else(|| object::meta_str(entry.object(), "creationTimestamp"))
        .unwrap_or_default();
    not_before(Cow::Borrowed(written), newest_at(entry))
}

fn newest_at(entry: &Entry) -> Option<&str> {
    history(entry)
        .next()
        .and_then(|h| h.get("lastTransitionAt"))
        .and_then(Value::as_str)
}

fn not_before<'a>(time: Cow<'a, str>, floor: Option<&'a str>) -> Cow<'a, str> {
    let parse = |text: &str| text.parse::<Timestamp>().ok();
    match floor {
        Some(floor) if parse(floor) > parse(&time) => Cow::Borrowed(floor),
        _ => time,
    }
}

fn history(entry: &Entry) -> impl Iterator<Item = &Value> {
    entry
        .status("history")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// The SECA fields of `spec`.
struct Spec<'a> {
    lens: Lens<'a>,
    entry: &'a Entry,
}

impl Serialize for Spec<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let fields = self.entry.object().get("spec").and_then(Value::as_object);
        for (name, value) in fields.into_iter().flatten() {
            let name = name.as_str();
            let hidden =
                ENVELOPE_SPEC_FIELDS.contains(&name) || CROSSPLANE_SPEC_FIELDS.contains(&name);
            if hidden {
                continue;
            }
            if self.lens.info.kind == "Region" && name == "providers" {
                map.serialize_entry(name, &region_providers(&self.lens, self.entry, value))?;
            } else {
                map.serialize_entry(name, value)?;
            }
        }
        map.end()
    }
}

/// The providers of a region. For its own regions a facade knows better than any manifest where
/// it can be reached, so it fills in the URLs of the APIs that it serves itself.
fn region_providers<'a>(lens: &Lens<'_>, entry: &Entry, providers: &'a Value) -> Cow<'a, Value> {
    let (region, served) = (entry.name(), lens.served);
    let Some(all) = providers.as_array() else {
        return Cow::Borrowed(providers);
    };
    let here = |name: &str| served.provider(name) && (is_global(name) || served.region(region));
    let with_url = |provider: &Value| {
        let mut provider = provider.clone();
        let name = provider.get("name").and_then(Value::as_str).unwrap_or("");
        let version = provider.get("version").and_then(Value::as_str);
        if here(name) && version == Some("v1") {
            provider["url"] = json!(served.url(region, name));
        }
        provider
    };
    Cow::Owned(all.iter().map(with_url).collect())
}

/// One condition as it is shown.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Condition<'a> {
    state: &'a str,
    last_transition_at: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

/// A SECA status: state, conditions and the fields of the kind.
struct Status<'a> {
    lens: Lens<'a>,
    entry: &'a Entry,
}

impl Serialize for Status<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let top = on_top(self.lens, self.entry);
        let state = match &top {
            Some(condition) => condition.state,
            None => stored_state(self.entry),
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("state", state)?;
        map.serialize_entry(
            "conditions",
            &Conditions {
                entry: self.entry,
                top,
            },
        )?;
        for (name, value) in crate::status::fields(self.lens.info, self.entry) {
            map.serialize_entry(name, &value)?;
        }
        map.end()
    }
}

fn stored_state(entry: &Entry) -> &str {
    entry
        .status("state")
        .and_then(Value::as_str)
        .unwrap_or("pending")
}

/// The condition to show above the stored history: what the control plane has not written yet.
fn on_top<'a>(lens: Lens<'_>, entry: &'a Entry) -> Option<Condition<'a>> {
    let newest = history(entry).next().and_then(|h| h.get("state"));
    let newest = newest.and_then(Value::as_str);
    let at = |state, at| {
        Some(Condition {
            state,
            last_transition_at: at,
            reason: None,
            message: None,
        })
    };
    if let Some(deleted) = deleted_at(lens, entry) {
        return match newest {
            Some("deleting") => None,
            _ => at("deleting", not_before(deleted, newest_at(entry))).map(|top| Condition {
                message: held_up_by(entry),
                ..top
            }),
        };
    }
    if entry.seen() && newest.is_some() {
        return None;
    }
    // The entry that the function will add, so that what is shown only ever grows.
    let was_active = history(entry)
        .filter_map(|h| h.get("state")?.as_str())
        .any(|state| matches!(state, "active" | "updating"));
    match newest {
        None => at("pending", changed_at(entry)),
        // Nothing of the intent has been acted on, or a change is under way already.
        Some("pending" | "updating" | "deleting") => None,
        Some("error") if !was_active => at("creating", changed_at(entry)),
        Some(_) => at("updating", changed_at(entry)),
    }
}

/// Why a deletion does not get on: functions do not run any more, so the engine says it.
fn held_up_by(entry: &Entry) -> Option<&str> {
    let ready = condition::find(entry.object(), "Ready")?;
    let text = |field: &str| ready.get(field).and_then(Value::as_str);
    (text("reason") == Some("Deleting"))
        .then(|| text("message"))?
        .filter(|message| !message.is_empty())
}

struct Conditions<'a> {
    entry: &'a Entry,
    top: Option<Condition<'a>>,
}

impl Serialize for Conditions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        let mut room = limits::CONDITIONS_MAX;
        if let Some(top) = &self.top {
            seq.serialize_element(top)?;
            room -= 1;
        }
        // What the resource waits for, or why the cloud refused, belongs to the present state.
        let mut message = match self.top {
            None => self.entry.status("message").and_then(Value::as_str),
            Some(_) => None,
        };
        for stored in history(self.entry).take(room) {
            let text = |field: &str| stored.get(field).and_then(Value::as_str);
            let current = message.take();
            seq.serialize_element(&Condition {
                state: text("state").unwrap_or("pending"),
                last_transition_at: Cow::Borrowed(text("lastTransitionAt").unwrap_or_default()),
                reason: text("reason"),
                message: text("message").or(current),
            })?;
        }
        seq.end()
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
