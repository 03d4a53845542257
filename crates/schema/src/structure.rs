//! The rules that make a schema structural (apiextensions `pkg/apiserver/schema/validation.go`,
//! `complete.go` and `pkg/apis/apiextensions/validation/validation.go`).

use serde_json::{Value, json};

use crate::error::{FieldError, FieldErrorKind};
use crate::keywords::Keywords;
use crate::node::{ListType, Node, NodeType};
use crate::path::Path;

/// Where a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Root,
    Item,
    Field,
}

const TYPE: &str = "type";
const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
const LIST_TYPE: &str = "x-kubernetes-list-type";
const LIST_MAP_KEYS: &str = "x-kubernetes-list-map-keys";
const MAP_TYPE: &str = "x-kubernetes-map-type";
const VALIDATIONS: &str = "x-kubernetes-validations";

/// Fields of an object that are not the schema's to define.
pub(crate) const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Keywords of JSON Schema that CRDs do not have.
pub(crate) fn check_unsupported(keywords: &mut Keywords<'_, '_>) {
    for name in [
        "id",
        "additionalItems",
        "patternProperties",
        "definitions",
        "dependencies",
        "$ref",
    ] {
        if keywords.has(name) {
            keywords.forbidden(name, &format!("{name} is not supported"));
        }
    }
    if keywords.flag("uniqueItems") {
        keywords.forbidden(
            "uniqueItems",
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        );
    }
    if keywords.get("items").is_some_and(Value::is_array) {
        keywords.forbidden("items", "items must be a schema object and not an array");
    }
}

/// The rules of a node outside junctors.
pub(crate) fn check_node(keywords: &mut Keywords<'_, '_>, node: &Node, level: Level) {
    check_type(keywords, node, level);
    check_extensions(keywords, node);
    check_list(keywords, node);
    let additional = keywords.get("additionalProperties");
    if let Some(additional) = additional {
        if level == Level::Root {
            keywords.forbidden("additionalProperties", "must not be used at the root");
        }
        if !node.properties.is_empty() && *additional != Value::Bool(true) {
            keywords.forbidden(
                "additionalProperties",
                "additionalProperties and properties are mutual exclusive",
            );
        }
        if node.embedded_resource {
            keywords.forbidden(
                "additionalProperties",
                "must not be used if x-kubernetes-embedded-resource is set",
            );
        }
    }
    if node.embedded_resource && !node.preserve_unknown && node.properties.is_empty() {
        keywords.required(
            "properties",
            "must not be empty if x-kubernetes-embedded-resource is true without \
             x-kubernetes-preserve-unknown-fields",
        );
    }
    if level == Level::Root && node.nullable {
        keywords.forbidden("nullable", "nullable cannot be true at the root");
    }
    check_metadata(keywords, node, level);
}

fn check_type(keywords: &mut Keywords<'_, '_>, node: &Node, level: Level) {
    let kind = keywords
        .get(TYPE)
        .and_then(Value::as_str)
        .unwrap_or_default();
    if node.embedded_resource && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        if kind.is_empty() {
            keywords.required(TYPE, detail);
        } else {
            keywords.invalid(TYPE, &json!(kind), detail);
        }
    } else if kind.is_empty() && !node.int_or_string && !node.preserve_unknown {
        keywords.required(
            TYPE,
            match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            },
        );
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        keywords.invalid(TYPE, &json!(kind), "must be object at the root");
    }
    if kind == "array" && node.items.is_none() && !keywords.has("items") {
        keywords.required("items", "must be specified");
    }
}

fn check_extensions(keywords: &mut Keywords<'_, '_>, node: &Node) {
    if keywords.get(PRESERVE) == Some(&Value::Bool(false)) {
        keywords.invalid(PRESERVE, &json!(false), "must be true or undefined");
    }
    for (name, set) in [
        (PRESERVE, node.preserve_unknown),
        (EMBEDDED, node.embedded_resource),
    ] {
        if node.int_or_string && set {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            keywords.invalid(name, &json!(true), detail);
        }
    }
    if let Some(map_type) = keywords.text(MAP_TYPE) {
        must_be(keywords, node, NodeType::Object, MAP_TYPE);
        if !matches!(map_type, "atomic" | "granular") {
            keywords.unsupported(MAP_TYPE, map_type, r#""atomic", "granular""#);
        }
    }
}

fn must_be(keywords: &mut Keywords<'_, '_>, node: &Node, kind: NodeType, extension: &str) {
    if node.kind == Some(kind) {
        return;
    }
    let detail = format!("must be {} if {extension} is specified", kind.name());
    match node.kind {
        None => keywords.required(TYPE, &detail),
        Some(other) => keywords.invalid(TYPE, &json!(other.name()), &detail),
    }
}

fn check_list(keywords: &mut Keywords<'_, '_>, node: &Node) {
    let list_type = keywords.text(LIST_TYPE);
    if let Some(name) = list_type {
        must_be(keywords, node, NodeType::Array, LIST_TYPE);
        if !matches!(name, "atomic" | "set" | "map") {
            keywords.unsupported(LIST_TYPE, name, r#""atomic", "set", "map""#);
        }
    }
    if !node.list_map_keys.is_empty() && node.list_type != ListType::Map {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        match list_type {
            None => keywords.required(LIST_TYPE, detail),
            Some(name) => keywords.invalid(LIST_TYPE, &json!(name), detail),
        }
    }
    let Some(items) = keywords.get("items") else {
        return;
    };
    let (nullable, list_type) = (items["nullable"] == json!(true), node.list_type);
    match list_type {
        ListType::Atomic => return,
        ListType::Set => check_set_items(keywords, items),
        ListType::Map => check_map_items(keywords, node, items),
    }
    if nullable {
        let name = if list_type == ListType::Set {
            "set"
        } else {
            "map"
        };
        let path = keywords.path.field("items");
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {name}");
        keywords.errors.push(FieldError::new(
            FieldErrorKind::Forbidden,
            path.field("nullable").text(),
            detail,
        ));
    }
}

fn check_set_items(keywords: &mut Keywords<'_, '_>, items: &Value) {
    let (extension, atomic) = match items[TYPE].as_str() {
        Some("array") => {
            let list_type = items[LIST_TYPE].as_str();
            (
                LIST_TYPE,
                list_type.is_none() || list_type == Some("atomic"),
            )
        }
        Some("object") => (MAP_TYPE, items[MAP_TYPE].as_str() == Some("atomic")),
        _ => return,
    };
    if !atomic {
        let path = keywords.path.field("items");
        keywords.errors.push(
            FieldError::new(
                FieldErrorKind::Invalid,
                path.field(extension).text(),
                "must be atomic as item of a list with x-kubernetes-list-type=set",
            )
            .with_value(items[extension].clone()),
        );
    }
}

fn check_map_items(keywords: &mut Keywords<'_, '_>, node: &Node, items: &Value) {
    if node.list_map_keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        keywords.required(LIST_MAP_KEYS, detail);
    }
    let items_path = keywords.path.field("items");
    if items[TYPE] != "object" {
        keywords.errors.push(
            FieldError::new(
                FieldErrorKind::Invalid,
                items_path.field(TYPE).text(),
                "must be object if parent array's x-kubernetes-list-type is map",
            )
            .with_value(items[TYPE].clone()),
        );
        return;
    }
    let keys = &node.list_map_keys;
    for (i, key) in keys.iter().enumerate() {
        let property = &items["properties"][key.as_str()];
        if property.is_null() {
            let detail = "entries must all be names of item properties";
            keywords.invalid(LIST_MAP_KEYS, &json!(keys), detail);
        } else {
            check_map_key(keywords, items, key, property);
        }
        if keys[..i].contains(key) {
            let detail = "must not contain duplicate entries";
            keywords.invalid(LIST_MAP_KEYS, &json!(keys), detail);
        }
    }
}

fn check_map_key(keywords: &mut Keywords<'_, '_>, items: &Value, key: &str, property: &Value) {
    let (items_path, properties) = (keywords.path.field("items"), "properties");
    let properties_path = items_path.field(properties);
    let path = properties_path.key(key);
    let mut error = |kind, name: &str, detail: &str| {
        let error = FieldError::new(kind, path.field(name).text(), detail);
        keywords.errors.push(match kind {
            FieldErrorKind::Invalid => error.with_value(property[name].clone()),
            _ => error,
        });
    };
    if matches!(property[TYPE].as_str(), Some("array" | "object")) {
        error(
            FieldErrorKind::Invalid,
            TYPE,
            "must be a scalar type if parent array's x-kubernetes-list-type is map",
        );
    }
    let required = items["required"]
        .as_array()
        .is_some_and(|names| names.iter().any(|name| name == key));
    if !required && property["default"].is_null() {
        error(
            FieldErrorKind::Required,
            "default",
            "this property is in x-kubernetes-list-map-keys, so it must have a default or be a \
             required property",
        );
    }
    if property["nullable"] == json!(true) {
        error(
            FieldErrorKind::Forbidden,
            "nullable",
            "this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
        );
    }
}

/// `apiVersion`, `kind` and `metadata` of the root and of embedded resources.
fn check_metadata(keywords: &mut Keywords<'_, '_>, node: &Node, level: Level) {
    if level != Level::Root && !node.embedded_resource {
        return;
    }
    let Some(properties) = keywords.get("properties") else {
        return;
    };
    let base = keywords.path.field("properties");
    for (name, kind) in [
        ("kind", "string"),
        ("apiVersion", "string"),
        ("metadata", "object"),
    ] {
        let property = &properties[name];
        if !property.is_null() && property[TYPE] != kind {
            let path = base.key(name);
            keywords.errors.push(
                FieldError::new(
                    FieldErrorKind::Invalid,
                    path.field(TYPE).text(),
                    format!("must be {kind}"),
                )
                .with_value(json!(property[TYPE].as_str().unwrap_or_default())),
            );
        }
    }
    let restricts_more = |metadata: &Value| {
        metadata.as_object().is_some_and(|metadata| {
            metadata.iter().any(|(name, value)| match name.as_str() {
                "type" | "default" => false,
                "properties" => !value.as_object().is_some_and(|properties| {
                    properties
                        .keys()
                        .all(|key| key == "name" || key == "generateName")
                }),
                // Keywords at their zero value say nothing.
                _ => !matches!(value, Value::Null | Value::Bool(false)),
            })
        })
    };
    if level == Level::Root && restricts_more(&properties["metadata"]) {
        keywords.errors.push(FieldError::new(
            FieldErrorKind::Forbidden,
            base.key("metadata").text(),
            "must not specify anything other than name and generateName, but metadata is \
             implicitly specified",
        ));
    }
}

/// What bodies of `allOf`, `anyOf`, `oneOf` and `not` may not say.
pub(crate) fn check_nested(keywords: &mut Keywords<'_, '_>, type_allowed: bool) {
    if !type_allowed && keywords.text(TYPE).is_some() {
        keywords.forbidden(TYPE, "must be empty to be structural");
    }
    for name in ["additionalProperties", "default", LIST_TYPE, MAP_TYPE] {
        if keywords.has(name) {
            keywords.forbidden(name, "must be undefined to be structural");
        }
    }
    for name in ["title", "description"] {
        if keywords.text(name).is_some() {
            keywords.forbidden(name, "must be empty to be structural");
        }
    }
    for name in ["nullable", PRESERVE, EMBEDDED, INT_OR_STRING] {
        if keywords.flag(name) {
            keywords.forbidden(name, "must be false to be structural");
        }
    }
    for name in [LIST_MAP_KEYS, VALIDATIONS] {
        if !keywords.array(name).is_empty() {
            keywords.forbidden(name, "must be empty to be structural");
        }
    }
    if keywords
        .get("properties")
        .is_some_and(|properties| properties.get("metadata").is_some())
    {
        let path = keywords.path.field("properties");
        keywords.errors.push(FieldError::new(
            FieldErrorKind::Forbidden,
            path.key("metadata").text(),
            "must not be specified in a nested context",
        ));
    }
}

/// Whether `anyOf` is the pair that may declare types: integer, string.
pub(crate) fn is_int_or_string(any_of: Option<&Value>) -> bool {
    any_of.is_some_and(|pair| *pair == json!([{"type": "integer"}, {"type": "string"}]))
}

/// Every field that a junctor of the root speaks of must also be declared outside of it.
pub(crate) fn check_complete(root: &Node, errors: &mut Vec<FieldError>) {
    let Some(checks) = &root.checks else {
        return;
    };
    let at = Path::Root;
    for (name, bodies) in [
        ("allOf", &checks.all_of),
        ("anyOf", &checks.any_of),
        ("oneOf", &checks.one_of),
    ] {
        let junctor = at.field(name);
        for (i, body) in bodies.iter().enumerate() {
            complete(body, root, &at, &junctor.index(i), errors);
        }
    }
    if let Some(body) = &checks.not {
        complete(body, root, &at, &at.field("not"), errors);
    }
}

fn complete(
    body: &Node,
    node: &Node,
    path: &Path<'_>,
    body_path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let missing = |path: &Path<'_>, from: &Path<'_>| {
        let detail = format!("because it is defined in {}", from.text());
        FieldError::new(FieldErrorKind::Required, path.text(), detail)
    };
    if let Some(items) = &body.items {
        let (path, from) = (path.field("items"), body_path.field("items"));
        match &node.items {
            Some(declared) => complete(items, declared, &path, &from, errors),
            None => errors.push(missing(&path, &from)),
        }
    }
    let (path_properties, from_properties) =
        (path.field("properties"), body_path.field("properties"));
    for (name, property) in &body.properties {
        let (path, from) = (path_properties.key(name), from_properties.key(name));
        match node.properties.get(name) {
            Some(declared) => complete(property, declared, &path, &from, errors),
            None => errors.push(missing(&path, &from)),
        }
    }
    if let Some(checks) = &body.checks {
        for inner in checks
            .all_of
            .iter()
            .chain(&checks.any_of)
            .chain(&checks.one_of)
            .chain(checks.not.as_deref())
        {
            complete(inner, node, path, body_path, errors);
        }
    }
}
