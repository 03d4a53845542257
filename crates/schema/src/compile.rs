//! From the JSON of an `openAPIV3Schema` to nodes.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::cel::Rule;
use crate::checks::{Allowed, Bound, Checks, Pattern};
use crate::error::{FieldError, FieldErrorKind};
use crate::format::Format;
use crate::keywords::Keywords;
use crate::limits;
use crate::node::{ListType, MapType, Node, NodeType};
use crate::path::Path;
use crate::structure::{self, Level, META_FIELDS};
use crate::{cel, defaults, prune};

/// Compiles a schema and checks every rule.
pub(crate) fn compile(schema: &Value) -> Result<Node, Vec<FieldError>> {
    let mut compiler = Compiler::default();
    let root = compiler.node(schema, &Path::Root, Place::default());
    let mut errors = compiler.errors;
    if errors.is_empty() {
        structure::check_complete(&root, &mut errors);
    }
    if errors.is_empty() {
        defaults::check(&root, &mut errors);
    }
    if errors.is_empty() {
        cel::check_rules(&root, &mut errors);
    }
    if errors.is_empty() {
        return Ok(root);
    }
    errors.sort_by_cached_key(FieldError::to_string);
    Err(errors)
}

#[derive(Default)]
struct Compiler {
    errors: Vec<FieldError>,
    nodes: usize,
    rules: usize,
}

/// What the surroundings of a node say about it.
#[derive(Clone, Copy)]
struct Place {
    level: Level,
    depth: usize,
    /// Junctors around the node.
    junctors: usize,
    /// Within a junctor: whether a type is allowed (int-or-string).
    type_allowed: bool,
    /// Within `apiVersion`, `kind` or `metadata` of a resource.
    in_meta: bool,
    /// Why the node may have no default.
    defaults_forbidden: Option<&'static str>,
    /// Below `additionalProperties`, where defaults are pruned instead of checked.
    in_additional: bool,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            level: Level::Root,
            depth: 0,
            junctors: 0,
            type_allowed: true,
            in_meta: false,
            defaults_forbidden: None,
            in_additional: false,
        }
    }
}

impl Place {
    fn below(self, level: Level) -> Self {
        Self {
            level,
            depth: self.depth + 1,
            type_allowed: self.junctors == 0,
            ..self
        }
    }

    fn nested(self) -> Self {
        Self {
            depth: self.depth + 1,
            junctors: self.junctors + 1,
            type_allowed: false,
            ..self
        }
    }
}

impl Compiler {
    fn node(&mut self, schema: &Value, path: &Path<'_>, place: Place) -> Node {
        let Some(map) = schema.as_object() else {
            self.fail(path, "must be a schema object", Some(schema));
            return Node::default();
        };
        self.nodes += 1;
        if self.nodes > limits::SCHEMA_NODES_MAX {
            if self.nodes == limits::SCHEMA_NODES_MAX + 1 {
                self.fail(
                    path,
                    &format!("more than {} nodes", limits::SCHEMA_NODES_MAX),
                    None,
                );
            }
            return Node::default();
        }
        if place.depth > limits::SCHEMA_DEPTH_MAX {
            let detail = format!("nested deeper than {}", limits::SCHEMA_DEPTH_MAX);
            self.fail(path, &detail, None);
            return Node::default();
        }
        if place.junctors > limits::JUNCTOR_DEPTH_MAX {
            let detail = format!("more than {} nested junctors", limits::JUNCTOR_DEPTH_MAX);
            self.fail(path, &detail, None);
            return Node::default();
        }
        let mut keywords = Keywords {
            map,
            path,
            errors: &mut self.errors,
        };
        structure::check_unsupported(&mut keywords);
        let mut node = generics(&mut keywords);
        check_default(&mut keywords, place);
        let mut checks = checks(&mut keywords, node.kind);
        self.children(&mut node, map, path, place);
        self.junctors(&mut checks, map, path, place);
        self.rules(&mut checks, map, path);
        let mut keywords = Keywords {
            map,
            path,
            errors: &mut self.errors,
        };
        if place.junctors == 0 {
            structure::check_node(&mut keywords, &node, place.level);
            if place.in_meta && node.embedded_resource {
                let detail = "must not be used inside of resource meta";
                keywords.forbidden("x-kubernetes-embedded-resource", detail);
            }
        } else {
            structure::check_nested(&mut keywords, place.type_allowed);
        }
        attach(&mut node, checks);
        if let Some(mut default) = node.default.take_if(|_| place.in_additional) {
            prune::prune_value(&mut default, &node);
            node.default = Some(default);
        }
        node
    }

    fn fail(&mut self, path: &Path<'_>, detail: &str, value: Option<&Value>) {
        let error = FieldError::new(FieldErrorKind::Invalid, path.text(), detail);
        self.errors.push(match value {
            Some(value) => error.with_value(value.clone()),
            None => error,
        });
    }

    fn children(
        &mut self,
        node: &mut Node,
        map: &Map<String, Value>,
        path: &Path<'_>,
        place: Place,
    ) {
        if let Some(items) = map
            .get("items")
            .filter(|items| !items.is_null() && !items.is_array())
        {
            let item = self.node(items, &path.field("items"), place.below(Level::Item));
            node.items = Some(Box::new(item));
        }
        match map.get("properties") {
            None | Some(Value::Null) => {}
            Some(Value::Object(properties)) => {
                self.properties(node, properties, &path.field("properties"), place);
            }
            Some(other) => {
                self.fail(
                    &path.field("properties"),
                    "must be an object of schemas",
                    Some(other),
                );
            }
        }
        match map.get("additionalProperties") {
            None | Some(Value::Null | Value::Bool(false)) => {}
            Some(Value::Bool(true)) => node.additional = Some(Box::default()),
            Some(schema) => {
                let mut below = place.below(Level::Field);
                below.in_additional = true;
                if below.in_meta && below.defaults_forbidden.is_none() {
                    below.defaults_forbidden =
                        Some("inside additionalProperties applying to object metadata");
                }
                let schema = self.node(schema, &path.field("additionalProperties"), below);
                node.additional = Some(Box::new(schema));
            }
        }
    }

    fn properties(
        &mut self,
        node: &mut Node,
        properties: &Map<String, Value>,
        path: &Path<'_>,
        place: Place,
    ) {
        let is_root = place.level == Level::Root && place.junctors == 0;
        for (name, schema) in properties {
            let mut below = place.below(Level::Field);
            if is_root || node.embedded_resource {
                below.in_meta |= META_FIELDS.contains(&name.as_str());
                if is_root {
                    below.defaults_forbidden = match name.as_str() {
                        "apiVersion" => Some("in top-level apiVersion"),
                        "kind" => Some("in top-level kind"),
                        "metadata" => Some("in top-level metadata"),
                        _ => None,
                    };
                }
            }
            let child = self.node(schema, &path.key(name), below);
            node.properties.insert(name.clone(), child);
        }
    }

    fn junctors(
        &mut self,
        checks: &mut Checks,
        map: &Map<String, Value>,
        path: &Path<'_>,
        place: Place,
    ) {
        // The pair is allowed below nodes, and in the first `allOf` of nodes, but no deeper.
        let pair = structure::is_int_or_string(map.get("anyOf"))
            && (place.junctors == 0 || place.type_allowed);
        let any = Place {
            type_allowed: pair,
            ..place.nested()
        };
        checks.any_of = self.branches("anyOf", map, path, |_| any);
        checks.one_of = self.branches("oneOf", map, path, |_| place.nested());
        checks.all_of = self.branches("allOf", map, path, |i| Place {
            type_allowed: i == 0 && place.junctors == 0,
            ..place.nested()
        });
        if let Some(body) = map.get("not").filter(|body| !body.is_null()) {
            let body = self.node(body, &path.field("not"), place.nested());
            checks.not = Some(Box::new(body));
        }
    }

    fn branches(
        &mut self,
        name: &str,
        map: &Map<String, Value>,
        path: &Path<'_>,
        place: impl Fn(usize) -> Place,
    ) -> Vec<Node> {
        let mut keywords = Keywords {
            map,
            path,
            errors: &mut self.errors,
        };
        let bodies = keywords.array(name);
        if bodies.len() > limits::JUNCTOR_BRANCHES_MAX {
            let detail = format!(
                "must have at most {} branches",
                limits::JUNCTOR_BRANCHES_MAX
            );
            keywords.error(FieldErrorKind::TooMany, name, &detail);
            return Vec::new();
        }
        let path = path.field(name);
        let bodies = bodies.iter().enumerate();
        bodies
            .map(|(i, body)| self.node(body, &path.index(i), place(i)))
            .collect()
    }

    fn rules(&mut self, checks: &mut Checks, map: &Map<String, Value>, path: &Path<'_>) {
        let mut keywords = Keywords {
            map,
            path,
            errors: &mut self.errors,
        };
        let rules = keywords.array("x-kubernetes-validations");
        self.rules += rules.len();
        if self.rules > limits::RULES_MAX {
            let detail = format!(
                "must have at most {} rules in one schema",
                limits::RULES_MAX
            );
            keywords.error(FieldErrorKind::TooMany, "x-kubernetes-validations", &detail);
            return;
        }
        let path = path.field("x-kubernetes-validations");
        for (i, rule) in rules.iter().enumerate() {
            if let Some(rule) = Rule::compile(rule, &path.index(i), &mut self.errors) {
                checks.rules.push(rule);
            }
        }
    }
}

fn generics(keywords: &mut Keywords<'_, '_>) -> Node {
    let kind = keywords.text("type").and_then(|name| {
        let kind = NodeType::parse(name);
        if name == "null" {
            let detail = "type cannot be set to null, use nullable as an alternative";
            keywords.forbidden("type", detail);
        } else if kind.is_none() {
            let supported = r#""array", "boolean", "integer", "number", "object", "string""#;
            keywords.unsupported("type", name, supported);
        }
        kind
    });
    Node {
        kind,
        default: keywords.get("default").cloned(),
        nullable: keywords.flag("nullable"),
        preserve_unknown: keywords.flag("x-kubernetes-preserve-unknown-fields"),
        embedded_resource: keywords.flag("x-kubernetes-embedded-resource"),
        int_or_string: keywords.flag("x-kubernetes-int-or-string"),
        list_type: match keywords.text("x-kubernetes-list-type") {
            Some("set") => ListType::Set,
            Some("map") => ListType::Map,
            _ => ListType::Atomic,
        },
        list_map_keys: keywords.strings("x-kubernetes-list-map-keys"),
        map_type: match keywords.text("x-kubernetes-map-type") {
            Some("atomic") => MapType::Atomic,
            _ => MapType::Granular,
        },
        ..Node::default()
    }
}

fn check_default(keywords: &mut Keywords<'_, '_>, place: Place) {
    if let Some(reason) = place.defaults_forbidden.filter(|_| keywords.has("default")) {
        keywords.forbidden("default", &format!("must not be set {reason}"));
    }
}

fn checks(keywords: &mut Keywords<'_, '_>, kind: Option<NodeType>) -> Checks {
    let format = keywords
        .text("format")
        .and_then(|name| Format::parse(name, kind));
    let pattern = keywords
        .text("pattern")
        .and_then(|text| match Pattern::new(text) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                let detail = format!("must be a valid regular expression, but isn't: {error}");
                keywords.invalid("pattern", &Value::from(text), &detail);
                None
            }
        });
    let allowed = keywords.array("enum");
    let bound = |keywords: &mut Keywords<'_, '_>, name, exclusive| {
        let exclusive = keywords.flag(exclusive);
        keywords
            .number(name)
            .map(|value| Bound { value, exclusive })
    };
    let minimum = bound(keywords, "minimum", "exclusiveMinimum");
    let maximum = bound(keywords, "maximum", "exclusiveMaximum");
    let multiple_of = keywords.number("multipleOf");
    if multiple_of
        .as_ref()
        .and_then(serde_json::Number::as_f64)
        .is_some_and(|n| n <= 0.0)
    {
        let value = keywords.get("multipleOf").cloned().unwrap_or_default();
        keywords.invalid("multipleOf", &value, "must be positive");
    }
    Checks {
        minimum,
        maximum,
        multiple_of,
        length_min: keywords.count("minLength"),
        length_max: keywords.count("maxLength"),
        pattern,
        format,
        allowed: (!allowed.is_empty()).then(|| Allowed::new(allowed.to_vec())),
        items_min: keywords.count("minItems"),
        items_max: keywords.count("maxItems"),
        properties_min: keywords.count("minProperties"),
        properties_max: keywords.count("maxProperties"),
        required: keywords.strings("required"),
        closed: keywords.get("additionalProperties") == Some(&Value::Bool(false)),
        ..Checks::default()
    }
}

/// Sums up what is below, and attaches the checks where there are any.
fn attach(node: &mut Node, mut checks: Checks) {
    let mut has_rules = !checks.rules.is_empty();
    let mut has_unique_lists = node.list_type != ListType::Atomic;
    let mut has_resources = node.embedded_resource;
    let below = node.properties.values().chain(node.items.as_deref());
    for child in below
        .chain(node.additional.as_deref())
        .filter_map(|n| n.checks.as_deref())
    {
        has_rules |= child.has_rules;
        has_unique_lists |= child.has_unique_lists;
        has_resources |= child.has_resources;
    }
    checks.has_rules = has_rules;
    checks.has_unique_lists = has_unique_lists;
    checks.has_resources = has_resources;
    if !checks.is_empty() {
        node.checks = Some(Arc::new(checks));
    }
}
