//! Schemas of built-in kinds, read from `kinds.txt`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use ecp_meta::gvk::GroupVersionKind;
use serde_json::{Map, Value, json};

use super::reference;

/// Format of times with a fraction: only their encoding differs, so schemas do not show it.
const MICRO_TIME: &str = "micro-time";

/// All types of the file, by full name.
pub(crate) static TYPES: LazyLock<BTreeMap<String, Type>> =
    LazyLock::new(|| parse(include_str!("kinds.txt")));

/// Full name of the metadata type.
pub(crate) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
/// Full name of the metadata type of lists.
pub(super) const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

pub(super) const API_VERSION_DESCRIPTION: &str = "Version of the schema this object has.";
pub(super) const KIND_DESCRIPTION: &str = "Kind of the object, in CamelCase. It cannot be changed.";
pub(super) const METADATA_DESCRIPTION: &str = "Standard metadata.";

/// A type: a kind, or a part of one.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Type {
    pub gvk: Option<GroupVersionKind>,
    pub description: String,
    pub fields: Vec<Field>,
}

/// A field of a type.
#[derive(Debug, PartialEq)]
pub(crate) struct Field {
    pub name: String,
    pub required: bool,
    pub form: Form,
    pub description: String,
    /// Number in protobuf messages; `None` if the type has no such message.
    pub number: Option<u32>,
    /// Whether absent and zero differ in protobuf messages.
    pub optional: bool,
    flags: Vec<(String, String)>,
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Form {
    /// OpenAPI type and format; the format may be empty.
    Scalar(&'static str, &'static str),
    /// An object with any fields.
    Object,
    /// Any JSON value.
    Json,
    List(Box<Form>),
    Map(Box<Form>),
    /// Another type, by full name.
    Type(String),
}

/// The full name of a kind's type.
pub(crate) fn name_of(gvk: &GroupVersionKind) -> Option<&'static str> {
    TYPES
        .iter()
        .find(|(_, ty)| ty.gvk.as_ref() == Some(gvk))
        .map(|(name, _)| name.as_str())
}

/// Reads the file. Lines it does not understand are left out; a test sees to it that there are none.
fn parse(text: &str) -> BTreeMap<String, Type> {
    let mut prefixes = BTreeMap::new();
    let mut types = BTreeMap::new();
    let mut current: Option<(String, Type)> = None;
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        if let Some((prefix, full)) = line.strip_prefix('@').and_then(|l| l.split_once(' ')) {
            prefixes.insert(prefix, full);
        } else if let Some(line) = line.strip_prefix("  ") {
            if let (Some((_, ty)), Some(field)) = (&mut current, field(line, &prefixes)) {
                ty.fields.push(field);
            }
        } else {
            types.extend(current.take());
            current = opening(line, &prefixes);
        }
    }
    types.extend(current);
    types
}

fn opening(line: &str, prefixes: &BTreeMap<&str, &str>) -> Option<(String, Type)> {
    let (head, description) = line.split_once(" | ")?;
    let mut words = head.split(' ');
    let short = words.next()?;
    let name = full_name(short, prefixes)?;
    let gvk = match (words.next(), words.next()) {
        (Some(group), Some(version)) => {
            let (_, kind) = short.split_once('.')?;
            let group = if group == "-" { "" } else { group };
            Some(GroupVersionKind::new(group, version, kind))
        }
        _ => None,
    };
    Some((
        name,
        Type {
            gvk,
            description: description.to_owned(),
            fields: Vec::new(),
        },
    ))
}

fn full_name(short: &str, prefixes: &BTreeMap<&str, &str>) -> Option<String> {
    let (prefix, name) = short.split_once('.')?;
    prefixes.get(prefix).map(|full| format!("{full}.{name}"))
}

fn field(line: &str, prefixes: &BTreeMap<&str, &str>) -> Option<Field> {
    let (head, description) = line.split_once(" | ")?;
    let mut words = head.split(' ');
    let name = words.next()?;
    let form = form(words.next()?, prefixes)?;
    let (mut number, mut optional, mut flags) = (None, false, Vec::new());
    for word in words {
        if let Some(digits) = word.strip_prefix('#') {
            optional = digits.ends_with('?');
            number = Some(digits.trim_end_matches('?').parse().ok()?);
        } else {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            flags.push((key.to_owned(), value.to_owned()));
        }
    }
    Some(Field {
        name: name.trim_end_matches('!').to_owned(),
        required: name.ends_with('!'),
        form,
        description: description.to_owned(),
        number,
        optional,
        flags,
    })
}

fn form(text: &str, prefixes: &BTreeMap<&str, &str>) -> Option<Form> {
    let inner = |open, close| text.strip_prefix(open).and_then(|t| t.strip_suffix(close));
    if let Some(item) = inner('[', ']') {
        return Some(Form::List(Box::new(form(item, prefixes)?)));
    }
    if let Some(value) = inner('{', '}') {
        return Some(Form::Map(Box::new(form(value, prefixes)?)));
    }
    Some(match text {
        "string" => Form::Scalar("string", ""),
        "bool" => Form::Scalar("boolean", ""),
        "int32" => Form::Scalar("integer", "int32"),
        "int64" => Form::Scalar("integer", "int64"),
        "double" => Form::Scalar("number", "double"),
        "time" => Form::Scalar("string", "date-time"),
        "microtime" => Form::Scalar("string", MICRO_TIME),
        "bytes" => Form::Scalar("string", "byte"),
        "json" => Form::Json,
        "object" => Form::Object,
        other => Form::Type(full_name(other, prefixes)?),
    })
}

impl Type {
    /// The schema, with references to other types.
    pub(crate) fn schema(&self) -> Value {
        let mut properties = Map::new();
        if self.gvk.is_some() {
            properties.extend(type_meta());
            if !self.is_without_metadata() {
                properties.insert("metadata".into(), metadata());
            }
        }
        for field in &self.fields {
            properties.insert(field.name.clone(), field.schema());
        }
        let required: Vec<&str> = self
            .fields
            .iter()
            .filter(|f| f.required)
            .map(|f| f.name.as_str())
            .collect();
        let mut schema = Map::new();
        schema.insert("description".into(), self.description.as_str().into());
        schema.insert("type".into(), "object".into());
        schema.insert("properties".into(), Value::Object(properties));
        if !required.is_empty() {
            schema.insert("required".into(), required.into());
        }
        if let Some(gvk) = &self.gvk {
            schema.insert(
                "x-kubernetes-group-version-kind".into(),
                json!([gvk_value(gvk)]),
            );
        }
        Value::Object(schema)
    }

    /// `Status` and `DeleteOptions` are kinds that are never stored.
    pub(crate) fn is_without_metadata(&self) -> bool {
        self.gvk
            .as_ref()
            .is_some_and(|gvk| gvk.kind == "Status" || gvk.kind == "DeleteOptions")
    }
}

/// `apiVersion` and `kind`.
pub(super) fn type_meta() -> Map<String, Value> {
    let text = |description| json!({"type": "string", "description": description});
    Map::from_iter([
        ("apiVersion".to_owned(), text(API_VERSION_DESCRIPTION)),
        ("kind".to_owned(), text(KIND_DESCRIPTION)),
    ])
}

/// `metadata`.
pub(super) fn metadata() -> Value {
    json!({
        "description": METADATA_DESCRIPTION,
        "default": {},
        "allOf": [{"$ref": reference(OBJECT_META)}],
    })
}

/// A kind as `x-kubernetes-group-version-kind` shows it.
pub(super) fn gvk_value(gvk: &GroupVersionKind) -> Value {
    json!({"group": gvk.group, "version": gvk.version, "kind": gvk.kind})
}

impl Field {
    fn schema(&self) -> Value {
        let mut schema = self.form.schema();
        let Some(fields) = schema.as_object_mut() else {
            return schema;
        };
        fields.insert("description".into(), self.description.as_str().into());
        for (flag, value) in &self.flags {
            let list = || value.split(',').collect::<Vec<_>>().into();
            match flag.as_str() {
                "set" | "atomic" => {
                    fields.insert("x-kubernetes-list-type".into(), flag.as_str().into());
                }
                "map" => {
                    fields.insert("x-kubernetes-list-type".into(), "map".into());
                    fields.insert("x-kubernetes-list-map-keys".into(), list());
                }
                "merge" => {
                    fields.insert("x-kubernetes-patch-strategy".into(), "merge".into());
                    if !value.is_empty() {
                        fields.insert("x-kubernetes-patch-merge-key".into(), value.as_str().into());
                    }
                }
                "enum" => {
                    fields.insert("enum".into(), list());
                }
                _ => {}
            }
        }
        schema
    }
}

impl Form {
    fn schema(&self) -> Value {
        match self {
            Self::Scalar(kind, "") => json!({"type": kind}),
            Self::Scalar(kind, MICRO_TIME) => json!({"type": kind, "format": "date-time"}),
            Self::Scalar(kind, format) => json!({"type": kind, "format": format}),
            Self::Object => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            Self::Json => json!({"x-kubernetes-preserve-unknown-fields": true}),
            Self::List(item) => json!({"type": "array", "items": item.schema()}),
            Self::Map(value) => json!({"type": "object", "additionalProperties": value.schema()}),
            Self::Type(name) => json!({"allOf": [{"$ref": reference(name)}], "default": {}}),
        }
    }

    /// The type that is named in it, if any.
    pub(super) fn named(&self) -> Option<&str> {
        match self {
            Self::List(inner) | Self::Map(inner) => inner.named(),
            Self::Type(name) => Some(name),
            Self::Scalar(..) | Self::Object | Self::Json => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_file_is_understood_and_every_reference_leads_somewhere() {
        let text = include_str!("kinds.txt");
        let is = |line: &&str| !line.is_empty() && !line.starts_with(['#', '@']);
        let fields = text
            .lines()
            .filter(is)
            .filter(|line| line.starts_with("  "))
            .count();
        let types = text.lines().filter(is).count() - fields;
        assert_eq!(TYPES.len(), types);
        assert_eq!(
            TYPES.values().map(|ty| ty.fields.len()).sum::<usize>(),
            fields
        );
        for (name, ty) in TYPES.iter() {
            for field in &ty.fields {
                let named = field.form.named();
                assert!(
                    named.is_none_or(|n| TYPES.contains_key(n)),
                    "{name}.{}",
                    field.name
                );
                for (flag, _) in &field.flags {
                    let known = ["set", "atomic", "map", "merge", "enum"];
                    assert!(
                        known.contains(&flag.as_str()),
                        "{name}.{}: {flag}",
                        field.name
                    );
                }
            }
        }
    }

    #[test]
    fn every_built_in_resource_has_a_schema() {
        let resources =
            crate::registry::Registry::new().resources(&ecp_meta::cluster::ClusterName::root());
        for resource in resources.iter() {
            assert!(name_of(&resource.gvk).is_some(), "{}", resource.gvk.kind);
        }
        for review in crate::auth::review::REVIEWS {
            assert!(name_of(&review.gvk()).is_some(), "{}", review.kind);
        }
    }

    #[test]
    fn fields_carry_their_merge_rules() {
        let meta = TYPES[OBJECT_META].schema();
        let owners = &meta["properties"]["ownerReferences"];
        assert_eq!(owners["x-kubernetes-patch-merge-key"], "uid");
        assert_eq!(owners["x-kubernetes-list-map-keys"], json!(["uid"]));
        let data = &TYPES["io.k8s.api.core.v1.Secret"].schema()["properties"]["data"];
        assert_eq!(
            data["additionalProperties"],
            json!({"type": "string", "format": "byte"})
        );
    }
}
