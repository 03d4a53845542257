//! Schemas of what is sent: those of the kinds' types, as JSON Schema, in SECA's envelope.

use ecp_xrds::{CROSSPLANE_SPEC_FIELDS, ENVELOPE_SPEC_FIELDS, KindInfo, Reference};
use serde_json::{Map, Value, json};

use crate::error::{self, ErrorKind};
use crate::limits;
use crate::{path, view};

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
            all.insert(format!("{name}Status"), status(part("status")));
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
fn status(schema: Value) -> Value {
    let fields = schema["properties"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    let mut properties = Map::new();
    for (name, field) in fields {
        match name.as_str() {
            "state" => properties.insert(name, field),
            "history" => properties.insert("conditions".into(), field),
            hidden if view::HIDDEN_STATUS_FIELDS.contains(&hidden) => None,
            _ => properties.insert(name, field),
        };
    }
    let mut status = json!({
        "type": "object",
        "description": schema["description"],
        "required": ["state", "conditions"],
    });
    status["properties"] = properties.into();
    shared_references(plain(status))
}

/// The document of a resource, as it is answered.
fn resource(info: &KindInfo, envelope: &Value) -> Value {
    let mut properties = common(envelope);
    let mut required = vec!["metadata", "spec"];
    properties.insert("metadata".into(), metadata(info));
    properties.insert(
        "spec".into(),
        reference("schemas", &format!("{}Spec", info.kind)),
    );
    if view::has_status(info) {
        required.push("status");
        properties.insert(
            "status".into(),
            reference("schemas", &format!("{}Status", info.kind)),
        );
    }
    json!({
        "type": "object",
        "description": format!("A {}.", info.noun),
        "properties": properties,
        "required": required,
    })
}

/// What is read of a body.
fn input(info: &KindInfo, envelope: &Value) -> Value {
    let spec = format!("{}Spec", info.kind);
    let spec_required = ecp_xrds::version_schema(info)["properties"]["spec"]["required"].is_array();
    let mut properties = common(envelope);
    properties.insert("spec".into(), reference("schemas", &spec));
    properties.insert(
        "metadata".into(),
        json!({
            "type": "object",
            "properties": {
                "region": text("Region to make it in; by default that of the server."),
            },
        }),
    );
    let mut input = json!({
        "type": "object",
        "description": format!("The intent for a {}. It replaces what was there.", info.noun),
        "properties": properties,
    });
    if spec_required {
        input["required"] = json!(["spec"]);
    }
    input
}

/// Labels, annotations and extensions.
fn common(envelope: &Value) -> Map<String, Value> {
    let fields = envelope.as_object().cloned().unwrap_or_default();
    fields.into_iter().map(|(k, v)| (k, plain(v))).collect()
}

/// SECA metadata of a kind (section 2.2).
fn metadata(info: &KindInfo) -> Value {
    let constant = |value: &str| json!({"type": "string", "const": value});
    let mut properties = json!({
        "name": text("Name of the resource."),
        "apiVersion": constant("v1"),
        "kind": constant(info.seca_kind),
        "provider": constant(&info.provider_version()),
        "resource": text("Collection and name."),
        "ref": text("URN of the resource, for references."),
        "verb": {"type": "string", "enum": verbs(info)},
    });
    let mut required: Vec<&str> = vec![
        "name",
        "apiVersion",
        "kind",
        "provider",
        "resource",
        "ref",
        "verb",
    ];
    for parent in path::parent_names(info) {
        properties[parent] = text(&format!("The {parent} it is in."));
        required.push(parent);
    }
    if view::has_region(info) {
        properties["region"] = text("Region it is in.");
        required.push("region");
    }
    if view::has_times(info) {
        properties["createdAt"] = time("When it was made.");
        properties["lastModifiedAt"] = time("When its intent last changed.");
        properties["deletedAt"] = time("When its deletion began; absent while it is wanted.");
        properties["resourceVersion"] = json!({
            "type": "integer", "format": "int64", "minimum": 1,
            "description": "Counts the accepted changes of the intent; for if-unmodified-since.",
        });
        required.extend(["createdAt", "lastModifiedAt", "resourceVersion"]);
    }
    json!({"type": "object", "properties": properties, "required": required})
}

/// The verbs that answers with a document of the kind can name.
fn verbs(info: &KindInfo) -> &'static [&'static str] {
    if info.catalogue {
        &["GET"]
    } else {
        &["GET", "PUT"]
    }
}

fn list(info: &KindInfo) -> Value {
    json!({
        "type": "object",
        "description": format!("A page of a list, in the order of names; each item is a {}.", info.noun),
        "properties": {
            "items": {
                "type": "array",
                "maxItems": limits::LIST_LIMIT_MAX,
                "items": reference("schemas", info.kind),
            },
            "metadata": {
                "type": "object",
                "properties": {
                    "provider": {"type": "string", "const": info.provider_version()},
                    "resource": text("The collection."),
                    "verb": {"type": "string", "const": "GET"},
                    "skipToken": text("Asks for the next page; absent on the last one."),
                },
                "required": ["provider", "resource", "verb"],
            },
        },
        "required": ["items", "metadata"],
    })
}

/// The problem document of every refusal (section 1.5).
fn problem() -> Value {
    let mut types: Vec<&str> = ErrorKind::ALL
        .iter()
        .flat_map(|kind| super::responses::PROFILES.map(|p| error::problem_type(kind.status(p))))
        .collect();
    types.sort_unstable();
    types.dedup();
    let bounded =
        |max: usize, what: &str| json!({"type": "string", "maxLength": max, "description": what});
    json!({
        "type": "object",
        "description": "Why a request was refused.",
        "properties": {
            "type": {"type": "string", "format": "uri", "enum": types},
            "title": text("The status code in words."),
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "detail": bounded(limits::PROBLEM_DETAIL_LEN_MAX, "What is wrong."),
            "instance": bounded(limits::PROBLEM_POINTER_LEN_MAX, "Path of the request."),
            "sources": {
                "type": "array",
                "description": "The parts of the request that are at fault.",
                "maxItems": limits::PROBLEM_SOURCES_MAX,
                "items": {
                    "type": "object",
                    "properties": {
                        "pointer": bounded(
                            limits::PROBLEM_POINTER_LEN_MAX,
                            "JSON pointer into the body, or empty.",
                        ),
                        "parameter": text("Name of a parameter or header, or empty."),
                    },
                    "required": ["pointer", "parameter"],
                },
            },
        },
        "required": ["type", "title", "status", "detail", "instance", "sources"],
    })
}

fn discovery() -> Value {
    json!({
        "type": "object",
        "description": "The APIs that are served and where.",
        "properties": {
            "version": {"type": "string", "const": "v1"},
            "endpoints": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "provider": text("Name and version of the API."),
                        "url": {
                            "type": "string", "format": "uri",
                            "description": "Base URL, without the version.",
                        },
                    },
                    "required": ["provider", "url"],
                },
            },
        },
        "required": ["version", "endpoints"],
    })
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
    let Value::Object(map) = schema else {
        return schema;
    };
    let mut out = Map::new();
    for (keyword, value) in map {
        let value = match keyword.as_str() {
            "properties" | "additionalProperties" | "items" | "not" => below(&keyword, value),
            "oneOf" | "anyOf" | "allOf" => match value {
                Value::Array(all) => all.into_iter().map(plain).collect(),
                other => other,
            },
            "x-kubernetes-preserve-unknown-fields" => {
                out.insert("additionalProperties".into(), true.into());
                continue;
            }
            "x-kubernetes-int-or-string" => {
                out.insert("type".into(), json!(["integer", "string"]));
                continue;
            }
            other if other.starts_with("x-kubernetes-") || other == "nullable" => continue,
            _ => value,
        };
        out.insert(keyword, value);
    }
    if out.get("properties") == Some(&json!({})) {
        out.remove("properties");
    }
    Value::Object(out)
}

/// The schemas below a keyword, plain.
fn below(keyword: &str, value: Value) -> Value {
    match value {
        Value::Object(fields) if keyword == "properties" => {
            Value::Object(fields.into_iter().map(|(k, v)| (k, plain(v))).collect())
        }
        other => plain(other),
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
