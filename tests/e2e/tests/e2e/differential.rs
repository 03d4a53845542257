//! The embedded engine against Crossplane's core: the same manifests give the same objects and tell
//! the same events. What differs is listed in docs/decisions/0005-engine.md with its reason, and
//! left out below.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use ecp_harness::Ecp;

use crate::examples::{kubectl, objects, until_nothing_is_left};

const EXAMPLES: [&str; 4] = [
    "first-volume",
    "private-network",
    "public-web-server",
    "two-roles",
];
/// What each object has of its own, and what counts its writes.
const OWN_METADATA: [&str; 5] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
];
/// Pointers to what follows from chance, time or the URL that is served.
const OWN_FIELDS: [&str; 9] = [
    "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration",
    "/spec/providers",
    "/status/history",
    "/status/intent",
    "/status/macAddress",
    "/status/atProvider/macAddress",
    "/status/observedGeneration",
    "/status/routes/0/conditions",
    "/status/rules/0/conditions",
];
/// Reasons of Events about what is not yet so. Whether it lasted long enough to be told is chance.
const PASSING: [&str; 7] = [
    "ComposeResources",
    "Creating",
    "Deleting",
    "Pending",
    "UpdatedExternalResource",
    "Updating",
    "Waiting",
];
/// Kinds of Crossplane whose Events are compared beside those of our own kinds.
const TELLING: [&str; 3] = [
    "CompositeResourceDefinition",
    "Composition",
    "CompositionRevision",
];

/// What there is after the examples were applied, with what is random replaced.
struct Snapshot {
    objects: BTreeMap<String, Value>,
    events: BTreeSet<String>,
}

impl Snapshot {
    async fn take(ecp: &Ecp, flavour: &str) -> Self {
        let mut applied = Vec::new();
        for example in EXAMPLES {
            let objects = objects(example);
            kubectl(ecp, &["apply"], &objects).unwrap().done();
            applied.extend(objects);
        }
        let is_resource = |o: &&Value| o["kind"] != "Namespace";
        let resources: Vec<Value> = applied.iter().filter(is_resource).cloned().collect();
        let wait = ["wait", "--for=condition=Ready", "--timeout=60s"];
        kubectl(ecp, &wait, &resources).unwrap().done();
        let categories = match flavour {
            "claims" => "composite,managed,claim",
            _ => "composite,managed",
        };
        let found = settled(ecp, categories).await;
        let names = names(&found);

        let delete = ["delete", "--wait=false", "--ignore-not-found"];
        kubectl(ecp, &delete, &applied).unwrap().done();
        until_nothing_is_left(ecp, &applied).await;
        Self {
            objects: found.iter().map(|o| plain(o, &names)).collect(),
            events: events(ecp, &names),
        }
    }
}

fn items(ecp: &Ecp, what: &str) -> Vec<Value> {
    let list = ecp.kubectl(&["get", what, "-A", "-o", "json"]).unwrap();
    let mut list: Value = serde_json::from_str(&list.done()).unwrap();
    match list["items"].take() {
        Value::Array(items) => items,
        other => panic!("no list of {what}: {other}"),
    }
}

/// All objects of some categories, once two looks in a row found the same.
async fn settled(ecp: &Ecp, categories: &str) -> Vec<Value> {
    let versions = |items: &[Value]| -> BTreeSet<String> {
        items
            .iter()
            .map(|i| i["metadata"]["resourceVersion"].to_string())
            .collect()
    };
    let started = std::time::Instant::now();
    let mut before = items(ecp, categories);
    loop {
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        let now = items(ecp, categories);
        if versions(&now) == versions(&before) {
            return now;
        }
        let late = started.elapsed() > ecp_harness::DEADLINE;
        assert!(!late, "the objects do not come to rest");
        before = now;
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer)?.as_str()
}

/// Random names, uids and ids in the cloud, and what stands for them: longest first.
fn names(items: &[Value]) -> Vec<(String, String)> {
    const RESOURCE: &str = "/metadata/annotations/crossplane.io~1composition-resource-name";
    const EXTERNAL: &str = "/metadata/annotations/crossplane.io~1external-name";
    const CLAIM: &str = "/metadata/labels/crossplane.io~1claim-name";
    let mut names = BTreeMap::new();
    let mut of_uid = BTreeMap::new();
    // Whatever has a claim is called after it.
    for item in items {
        let (kind, name) = (
            item["kind"].as_str().unwrap(),
            text(item, "/metadata/name").unwrap(),
        );
        let claim = text(item, CLAIM).filter(|_| text(item, RESOURCE).is_none());
        let namespace = text(item, "/metadata/namespace").or(text(
            item,
            "/metadata/labels/crossplane.io~1claim-namespace",
        ));
        let called = format!(
            "{kind} {}/{}",
            namespace.unwrap_or(""),
            claim.unwrap_or(name)
        );
        if claim.is_some() {
            names.insert(name.to_owned(), format!("<{called}>"));
        }
        let uid = text(item, "/metadata/uid").unwrap();
        names.insert(uid.to_owned(), format!("<uid of {called}>"));
        of_uid.insert(uid, called);
    }
    for item in items {
        let owners = item["metadata"]["ownerReferences"].as_array();
        let owner = owners
            .into_iter()
            .flatten()
            .find(|o| o["controller"] == true);
        let owner = owner.and_then(|o| of_uid.get(o["uid"].as_str()?));
        if let (Some(resource), Some(owner)) = (text(item, RESOURCE), owner) {
            let name = text(item, "/metadata/name").unwrap();
            names.insert(name.to_owned(), format!("<{resource} of {owner}>"));
            // A name of the user's own is no id.
            if let Some(id) = text(item, EXTERNAL).filter(|id| id.contains('-') && id.len() > 8) {
                let called = format!("<id of {resource} of {owner}>");
                names.entry(id.to_owned()).or_insert(called);
            }
        }
    }
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    names
}

fn replaced(text: &str, names: &[(String, String)]) -> String {
    let mut text = text.to_owned();
    for (name, stands) in names {
        text = text.replace(name, stands);
    }
    text
}

/// An object without what is its own, under a key that both sides have.
fn plain(object: &Value, names: &[(String, String)]) -> (String, Value) {
    let key = [
        object["kind"].as_str().unwrap(),
        text(object, "/metadata/namespace").unwrap_or(""),
        text(object, "/metadata/name").unwrap(),
    ];
    let mut object = object.clone();
    // Who wrote by which kind of call is compared; what and when follows.
    let managers: BTreeSet<String> = object["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|m| format!("{} {} {}", m["manager"], m["operation"], m["subresource"]))
        .map(|m| hashes(&m))
        .collect();
    for field in OWN_METADATA {
        object["metadata"].as_object_mut().unwrap().remove(field);
    }
    for pointer in OWN_FIELDS {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        let field = field.replace("~1", "/");
        if let Some(parent) = object.pointer_mut(parent).and_then(Value::as_object_mut) {
            parent.remove(&field);
        }
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|_, v| v.as_object().is_none_or(|m| !m.is_empty()));
    }
    if let Some(conditions) = object["status"]["conditions"].as_array_mut() {
        for condition in conditions.iter_mut() {
            condition
                .as_object_mut()
                .unwrap()
                .remove("observedGeneration");
        }
        conditions.sort_by_key(|c| c["type"].to_string());
    }
    object["managers"] = managers.into_iter().collect();
    let object = timeless(&object);
    let object = replaced(&object.to_string(), names);
    let object = serde_json::from_str(&object).unwrap();
    (replaced(&key.join(" "), names), object)
}

/// Hashes of 40 and more digits are of uids.
fn hashes(text: &str) -> String {
    let part = |p: &str| match p.len() >= 40 && p.bytes().all(|b| b.is_ascii_hexdigit()) {
        true => "<hash>".to_owned(),
        false => p.to_owned(),
    };
    let part = |p: &str| {
        let (body, end) = p.split_at(p.len() - usize::from(p.ends_with(['/', '"', ' '])));
        part(body) + end
    };
    text.split_inclusive(['/', '"', ' ']).map(part).collect()
}

/// The value with times replaced, and names of composition revisions, which end in a digest.
fn timeless(value: &Value) -> Value {
    match value {
        Value::String(text) if text.parse::<jiff::Timestamp>().is_ok() => "<time>".into(),
        Value::Array(items) => items.iter().map(timeless).collect(),
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| match key.as_str() {
                "compositionRevisionRef" => (key.clone(), "<revision>".into()),
                _ => (key.clone(), timeless(value)),
            };
            Value::Object(fields.iter().map(field).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

/// What was told about our kinds and by the engine's controllers.
fn events(ecp: &Ecp, names: &[(String, String)]) -> BTreeSet<String> {
    let told = items(ecp, "events");
    let mut events = BTreeSet::new();
    for event in told {
        let get = |pointer: &str| text(&event, pointer).unwrap_or("");
        let (kind, reason) = (get("/involvedObject/kind"), get("/reason"));
        let ours = get("/involvedObject/apiVersion").contains("secapi.cloud/");
        // Core reads from a cache that is behind, loses the race with itself, and says so.
        let raced = get("/message").ends_with("already exists");
        let waits = get("/message").starts_with("waiting for composite resource");
        if !(ours || TELLING.contains(&kind)) || PASSING.contains(&reason) || raced || waits {
            continue;
        }
        // Told by the RBAC manager, which the embedded control plane has not.
        if reason == "ApplyClusterRoles" {
            continue;
        }
        let message = get("/message");
        // The digest at the end of a revision's name.
        let message = match message.strip_prefix("Selected composition revision: ") {
            Some(name) => name.rsplit_once('-').map_or(name, |(name, _)| name),
            None => message,
        };
        let about = match kind {
            "CompositionRevision" => "a revision".to_owned(),
            _ => replaced(get("/involvedObject/name"), names),
        };
        let component = get("/source/component");
        let message = replaced(message, names);
        let event_type = get("/type");
        events.insert(format!(
            "{kind} {about}: {event_type} {reason} {message:?} from {component}"
        ));
    }
    events
}

/// Where two values differ, each with both sides.
fn differences(path: &str, core: &Value, ours: &Value, found: &mut Vec<String>) {
    match (core, ours) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let [a, b] = [a, b].map(|m| m.get(key).unwrap_or(&Value::Null));
                differences(&format!("{path}.{key}"), a, b, found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}[{index}]"), a, b, found);
            }
        }
        _ if core == ours => {}
        _ => found.push(format!("{path}: core {core}, ours {ours}")),
    }
}

async fn are_alike(flavour: &str) {
    let args = ["--flavour", flavour];
    let Some(core) = Ecp::start_on_crossplane(&args).await else {
        return;
    };
    let core = Snapshot::take(&core, flavour).await;
    let ours = Ecp::start_embedded(&args).await;
    let ours = Snapshot::take(&ours, flavour).await;

    let mut found = Vec::new();
    let keys: BTreeSet<&String> = core.objects.keys().chain(ours.objects.keys()).collect();
    for key in keys {
        let [a, b] = [&core, &ours].map(|s| s.objects.get(key).unwrap_or(&Value::Null));
        differences(key, a, b, &mut found);
    }
    let told = |one: &Snapshot, other: &Snapshot, who: &str| -> Vec<String> {
        let only = one.events.difference(&other.events);
        only.map(|e| format!("only {who} tells: {e}")).collect()
    };
    found.extend(told(&core, &ours, "core"));
    found.extend(told(&ours, &core, "ours"));
    assert!(core.objects.len() > 70, "{}", core.objects.len());
    assert!(core.events.len() > 100, "{}", core.events.len());
    assert!(
        found.is_empty(),
        "{} differences:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[tokio::test]
async fn namespaced_resources_are_reconciled_as_core_does() {
    are_alike("v2").await;
}

#[tokio::test]
async fn claims_are_reconciled_as_core_does() {
    are_alike("claims").await;
}

#[test]
fn differences_are_found_where_they_are() {
    let core = serde_json::json!({"a": {"b": [1, 2]}, "c": 1});
    let ours = serde_json::json!({"a": {"b": [1, 3]}, "d": 1});
    let mut found = Vec::new();
    differences("x", &core, &ours, &mut found);
    let expected = [
        "x.a.b[1]: core 2, ours 3",
        "x.c: core 1, ours null",
        "x.d: core null, ours 1",
    ];
    assert_eq!(found, expected);
}
