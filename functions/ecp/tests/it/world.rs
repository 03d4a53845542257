//! A caller of the function: answers its requirements from a set of objects, as Crossplane does.

use std::collections::BTreeMap;

use ecp_xr::function::{Match, Ready, Request, Resource, ResourceSelector, Response, State};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// Crossplane's bound on rounds of requirements.
pub(crate) const CALLS_MAX: usize = 6;

/// The time in all tests that do not care for it.
pub(crate) fn now() -> Timestamp {
    "2026-01-02T03:04:05.678Z".parse().unwrap()
}

/// Everything the function might ask for.
#[derive(Clone, Debug, Default)]
pub(crate) struct World(pub(crate) Vec<Value>);

impl World {
    /// Objects from a stream of YAML documents.
    pub(crate) fn of(yaml: &str) -> Self {
        Self(serde_saphyr::from_multiple(yaml).unwrap())
    }

    /// What a requirement selects.
    pub(crate) fn select(&self, selector: &ResourceSelector) -> Vec<Resource> {
        let fits = |o: &&Value| {
            o["apiVersion"] == selector.api_version.as_str()
                && o["kind"] == selector.kind.as_str()
                && selector
                    .namespace
                    .as_ref()
                    .is_none_or(|n| o["metadata"]["namespace"] == n.as_str())
                && match &selector.matching {
                    Match::Name(name) => o["metadata"]["name"] == name.as_str(),
                    Match::Labels(labels) => labels
                        .iter()
                        .all(|(k, v)| o["metadata"]["labels"][k] == v.as_str()),
                }
        };
        self.0
            .iter()
            .filter(fits)
            .cloned()
            .map(Resource::of)
            .collect()
    }
}

/// A request about an XR and its observed resources.
pub(crate) fn request(composite: &Value, observed: &BTreeMap<String, Value>) -> Request {
    Request {
        tag: "t1".into(),
        observed: State {
            composite: Some(Resource::of(composite.clone())),
            resources: observed
                .iter()
                .map(|(k, o)| (k.clone(), Resource::of(o.clone())))
                .collect(),
        },
        ..Request::default()
    }
}

/// Calls the function until its requirements are settled; also says how many calls it took.
pub(crate) fn run(mut request: Request, world: &World, now: Timestamp) -> (Response, usize) {
    let mut asked = None;
    for call in 1..=CALLS_MAX {
        let response = function_ecp::compose(request.clone(), now);
        if asked.as_ref() == Some(&response.requirements) || response.requirements.is_empty() {
            return (response, call);
        }
        request.required = response
            .requirements
            .resources
            .iter()
            .map(|(key, selector)| (key.clone(), world.select(selector)))
            .collect();
        request.context = response.context.clone().unwrap_or_default();
        asked = Some(response.requirements);
    }
    panic!("requirements did not settle: {asked:?}");
}

/// A response in a form that is pleasant to read in a file.
pub(crate) fn show(response: &Response) -> Value {
    let resource = |r: &Resource| {
        let ready = match r.ready {
            Ready::True => "true",
            Ready::False => "false",
            Ready::Unspecified => "unspecified",
        };
        json!({"ready": ready, "object": r.object})
    };
    let mut shown = Map::new();
    if let Some(composite) = &response.desired.composite {
        shown.insert("composite".into(), resource(composite));
    }
    let resources: Map<_, _> = response
        .desired
        .resources
        .iter()
        .map(|(k, r)| (k.clone(), resource(r)))
        .collect();
    if !resources.is_empty() {
        shown.insert("resources".into(), resources.into());
    }
    let results: Vec<_> = response
        .results
        .iter()
        .map(|r| {
            let reason = r.reason.as_deref().unwrap_or_default();
            format!("{:?} {reason}: {}", r.severity, r.message)
        })
        .collect();
    if !results.is_empty() {
        shown.insert("results".into(), json!(results));
    }
    let requirements: Map<_, _> = response
        .requirements
        .resources
        .iter()
        .map(|(key, s)| {
            let place = s
                .namespace
                .as_deref()
                .map(|n| format!("{n}/"))
                .unwrap_or_default();
            let what = match &s.matching {
                Match::Name(name) => name.clone(),
                Match::Labels(labels) => json!(labels).to_string(),
            };
            (
                key.clone(),
                format!("{} {} {place}{what}", s.api_version, s.kind).into(),
            )
        })
        .collect();
    if !requirements.is_empty() {
        shown.insert("requirements".into(), requirements.into());
    }
    shown.insert(
        "ttlSeconds".into(),
        response.ttl.map_or(0, |t| t.as_secs()).into(),
    );
    sorted(shown.into())
}

/// The same value with the keys of every object in order, whatever map `serde_json` is built with.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.into_iter().map(|(k, v)| (k, sorted(v))).collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}
