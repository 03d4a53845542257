//! Schemas of what is sent: those of the kinds' types, as JSON Schema, in SECA's envelope.

use std::collections::BTreeSet;

use ecp_xrds::{CROSSPLANE_SPEC_FIELDS, ENVELOPE_SPEC_FIELDS, KindInfo, Reference};
use serde_json::{Map, Value, json};

use super::responses::PROFILES;
use crate::error::{self, ErrorKind};
use crate::limits;
use crate::{path, status, view};

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
/// What names of members of free objects look like: without control characters.
const NAME_OF_MEMBER_PATTERN: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";

/// A component of the document, by name.
pub(super) fn reference(section: &str, name: &str) -> Value {
    json!({"$ref": format!("#/components/{section}/{name}")})
}

/// Every schema of the document.
pub(super) fn all() -> Map<String, Value> {
    let mut all = Map::new();
    for info in ecp_xrds::kinds() {
        let object = ecp_xrds::version_schema(info);
        let part = |name: &str| object["properties"][name].clone();
        let envelope = part("spec")["properties"]["commonData"]["properties"].clone();
        let name = info.kind;
        all.insert(format!("{name}Spec"), spec(part("spec")));
        all.insert(name.into(), resource(info, &envelope));
        all.insert(format!("{name}List"), list(info));
        if !info.catalogue {
            all.insert(format!("{name}Input"), input(info, &envelope));
            all.insert(format!("{name}Status"), status(info, part("status")));
        }
    }
    all.insert(
        "Reference".into(),
        plain(ecp_schema::from_type::<Reference>()),
    );
    all.insert("Problem".into(), problem());
    all.insert("Discovery".into(), discovery());
    all
}

/// The schema of a kind's SECA spec: without what stands beside it in the object.
fn spec(mut schema: Value) -> Value {
    let hidden =
        |name: &str| ENVELOPE_SPEC_FIELDS.contains(&name) || CROSSPLANE_SPEC_FIELDS.contains(&name);
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.retain(|name, _| !hidden(name));
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !name.as_str().is_some_and(hidden));
    }
    shared_references(plain(schema))
}

/// A SECA status: the history is shown as conditions, without what is the control plane's own.
fn status(info: &KindInfo, schema: Value) -> Value {
    let fields = schema["properties"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    let shown = fields
        .into_iter()
        .filter_map(|(name, field)| match name.as_str() {
            "state" => Some((name, field)),
            "history" => Some(("conditions".into(), field)),
            other => (!view::HIDDEN_STATUS_FIELDS.contains(&other)).then_some((name, field)),
        });
    let required = [&["state", "conditions"], status::required(info)].concat();
    shared_references(plain(json!({
        "type": "object", "description": schema["description"],
        "required": required, "properties": Value::Object(shown.collect()),
    })))
}

/// The document of a resource, as it is answered.
fn resource(info: &KindInfo, envelope: &Value) -> Value {
    let mut required = vec![("metadata", metadata(info)), ("spec", part(info, "Spec"))];
    if view::has_status(info) {
        required.push(("status", part(info, "Status")));
    }
    object(&format!("One {}.", info.noun), required, common(envelope))
}

/// What is read of a body. Free objects have rules for names that what is stored need not keep.
fn input(info: &KindInfo, envelope: &Value) -> Value {
    let name = || json!({"pattern": NAME_OF_MEMBER_PATTERN});
    let mut optional = common(envelope);
    for (_, field) in &mut optional {
        field["propertyNames"] = name();
    }
    let region = text("Region to make it in; by default that of the server.");
    let metadata = json!({"type": "object", "properties": {"region": region}});
    optional.push(("metadata", metadata));
    let described = &ecp_xrds::version_schema(info)["properties"]["spec"];
    let mut spec = part(info, "Spec");
    if described[PRESERVE] == true {
        let reserved = [&ENVELOPE_SPEC_FIELDS[..], &CROSSPLANE_SPEC_FIELDS[..]].concat();
        spec["propertyNames"] = name();
        spec["propertyNames"]["not"] = json!({"enum": reserved});
    }
    let what = format!(
        "The intent for one {}. It replaces what was there.",
        info.noun
    );
    let mut required = vec![("spec", spec)];
    if !described["required"].is_array() {
        optional.append(&mut required);
    }
    object(&what, required, optional)
}

/// A schema of a kind.
fn part(info: &KindInfo, what: &str) -> Value {
    reference("schemas", &format!("{}{what}", info.kind))
}

/// Labels, annotations and extensions.
fn common(envelope: &Value) -> Vec<(&'static str, Value)> {
    ["labels", "annotations", "extensions"]
        .map(|name| (name, plain(envelope[name].clone())))
        .into()
}

/// SECA metadata of a kind (section 2.2).
fn metadata(info: &KindInfo) -> Value {
    let verbs = if info.catalogue {
        &["GET"][..]
    } else {
        &["GET", "PUT"]
    };
    let mut required = vec![
        ("name", text("Name of the resource.")),
        ("apiVersion", constant("v1")),
        ("kind", constant(info.seca_kind)),
        ("provider", constant(&info.provider_version())),
        ("resource", text("Collection and name.")),
        ("ref", text("URN of the resource, for references.")),
        ("verb", json!({"type": "string", "enum": verbs})),
    ];
    required
        .extend(path::parent_names(info).map(|parent| (parent, text(&format!("Its {parent}.")))));
    if info.regional() {
        required.push(("region", text("Region it is in.")));
    }
    let mut optional = vec![];
    if view::has_times(info) {
        let version = json!({
            "type": "integer", "format": "int64", "minimum": 1,
            "description": "Counts the accepted changes of the intent; for if-unmodified-since.",
        });
        required.extend([
            ("createdAt", time("When it was made.")),
            ("lastModifiedAt", time("When its intent last changed.")),
            ("resourceVersion", version),
        ]);
        let deleted = time("When its deletion began; absent while it is wanted.");
        optional.push(("deletedAt", deleted));
    }
    object("What identifies the resource.", required, optional)
}

fn list(info: &KindInfo) -> Value {
    json!({
        "type": "object", "required": ["items", "metadata"],
        "description": format!("A list, in the order of names; each item is one {}.", info.noun),
        "properties": {
            "items": {"type": "array", "maxItems": limits::LIST_LIMIT_MAX, "items": part(info, "")},
            "metadata": {"type": "object", "required": ["provider", "resource", "verb"], "properties": {
                "provider": constant(&info.provider_version()),
                "resource": text("The collection."),
                "verb": constant("GET"),
                "skipToken": text("Asks for the next page; absent on the last one."),
            }},
        },
    })
}

/// The problem document of every refusal (section 1.5).
fn problem() -> Value {
    let types: BTreeSet<&str> = ErrorKind::ALL
        .iter()
        .flat_map(|kind| PROFILES.map(|p| error::problem_type(kind.status(p))))
        .collect();
    let bounded =
        |max: usize, what: &str| json!({"type": "string", "maxLength": max, "description": what});
    let (detail_max, pointer_max) = (
        limits::PROBLEM_DETAIL_LEN_MAX,
        limits::PROBLEM_POINTER_LEN_MAX,
    );
    let source = json!({"type": "object", "required": ["pointer", "parameter"], "properties": {
        "pointer": bounded(pointer_max, "JSON pointer into the body, or empty."),
        "parameter": text("Name of a parameter or header, or empty."),
    }});
    json!({
        "type": "object", "description": "Why a request was refused.",
        "required": ["type", "title", "status", "detail", "instance", "sources", "meta"],
        "properties": {
            "type": {"type": "string", "format": "uri", "enum": types},
            "title": text("The status code in words."),
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "detail": bounded(detail_max, "What is wrong."),
            "instance": bounded(pointer_max, "Path of the request."),
            "sources": {"type": "array", "maxItems": limits::PROBLEM_SOURCES_MAX, "items": source,
                "description": "The parts of the request that are at fault."},
            "meta": {"type": "object", "required": ["requestId"], "properties": {
                "requestId": text("Names the request in the server's log."),
            }},
        },
    })
}

fn discovery() -> Value {
    let endpoint = json!({"type": "object", "required": ["provider", "url"], "properties": {
        "provider": text("Name and version of the API."),
        "url": {"type": "string", "format": "uri", "description": "Base URL, without the version."},
    }});
    json!({
        "type": "object", "description": "The APIs that are served and where.",
        "required": ["version", "endpoints"],
        "properties": {"version": constant("v1"), "endpoints": {"type": "array", "items": endpoint}},
    })
}

type Members = Vec<(&'static str, Value)>;

fn object(description: &str, required: Members, optional: Members) -> Value {
    let names: Vec<&str> = required.iter().map(|(name, _)| *name).collect();
    let members = required.into_iter().chain(optional);
    let properties: Map<String, Value> = members.map(|(k, v)| (k.to_owned(), v)).collect();
    json!({
        "type": "object",
        "description": description,
        "properties": properties,
        "required": names,
    })
}

fn constant(value: &str) -> Value {
    json!({"type": "string", "const": value})
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn time(description: &str) -> Value {
    json!({"type": "string", "format": "date-time", "description": description})
}

/// A structural schema as plain JSON Schema: without Kubernetes' keywords, whose meaning JSON
/// Schema has words for where it bears on what may be sent.
fn plain(schema: Value) -> Value {
    match schema {
        Value::Object(map) => {
            let mut out: Map<String, Value> = map.into_iter().filter_map(keyword).collect();
            if out.get("properties") == Some(&json!({})) {
                out.remove("properties");
            }
            Value::Object(out)
        }
        Value::Array(all) => all.into_iter().map(plain).collect(),
        scalar => scalar,
    }
}

/// A keyword of a structural schema, as JSON Schema has it.
fn keyword((keyword, value): (String, Value)) -> Option<(String, Value)> {
    match (keyword.as_str(), value) {
        ("properties", Value::Object(fields)) => {
            let fields = fields.into_iter().map(|(k, v)| (k, plain(v)));
            Some((keyword, Value::Object(fields.collect())))
        }
        ("additionalProperties" | "items" | "not" | "oneOf" | "anyOf" | "allOf", value) => {
            Some((keyword, plain(value)))
        }
        (PRESERVE, _) => Some(("additionalProperties".into(), true.into())),
        ("x-kubernetes-int-or-string", _) => Some(("type".into(), json!(["integer", "string"]))),
        (other, _) if other.starts_with("x-kubernetes-") || other == "nullable" => None,
        (_, value) => Some((keyword, value)),
    }
}

/// Names the schema of references instead of repeating it.
fn shared_references(schema: Value) -> Value {
    let same = plain(ecp_schema::from_type::<Reference>());
    replace(schema, &same)
}

fn replace(schema: Value, shared: &Value) -> Value {
    match schema {
        Value::Object(map) if map.get("properties") == shared.get("properties") => {
            let mut named = reference("schemas", "Reference");
            if let Some(description) = map.get("description") {
                named["description"] = description.clone();
            }
            named
        }
        Value::Object(map) => map
            .into_iter()
            .map(|(k, v)| (k, replace(v, shared)))
            .collect(),
        Value::Array(all) => all.into_iter().map(|v| replace(v, shared)).collect(),
        scalar => scalar,
    }
}
