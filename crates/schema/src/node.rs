//! The compiled form of one schema node.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::checks::Checks;

/// One node of a structural schema.
///
/// Everything that pruning, defaulting, merging and publishing need; validations that only the
/// validator reads may be added beside these fields.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// JSON type; `None` for int-or-string and for nodes that preserve unknown fields untyped.
    pub kind: Option<NodeType>,
    /// Declared properties.
    pub properties: BTreeMap<String, Node>,
    /// Schema of undeclared properties (`additionalProperties`), where given as a schema or `true`.
    pub additional: Option<Box<Node>>,
    /// Schema of array items.
    pub items: Option<Box<Node>>,
    /// Default value.
    pub default: Option<Value>,
    /// Whether null is a value.
    pub nullable: bool,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// `x-kubernetes-list-type`; CRD lists default to atomic.
    pub list_type: ListType,
    /// `x-kubernetes-list-map-keys`.
    pub list_map_keys: Vec<String>,
    /// `x-kubernetes-map-type`.
    pub map_type: MapType,
    /// Value validations, where the node or anything below it has some.
    pub checks: Option<Arc<Checks>>,
}

impl Node {
    /// The schema of a property: declared, or that of additional properties.
    pub fn child(&self, name: &str) -> Option<&Node> {
        self.properties.get(name).or(self.additional.as_deref())
    }

    /// Whether undeclared properties are errors (`additionalProperties: false`).
    pub(crate) fn is_closed(&self) -> bool {
        self.checks.as_ref().is_some_and(|checks| checks.closed)
    }
}

/// JSON type of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeType {
    /// Object.
    Object,
    /// Array.
    Array,
    /// String.
    String,
    /// Integer.
    Integer,
    /// Any number.
    Number,
    /// Boolean.
    Boolean,
}

impl NodeType {
    /// The name in schemas.
    pub fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }
}

/// How an array merges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    /// Replaced as a whole.
    #[default]
    Atomic,
    /// A set of scalars.
    Set,
    /// Objects keyed by some of their fields.
    Map,
}

/// How an object merges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MapType {
    /// Field by field.
    #[default]
    Granular,
    /// Replaced as a whole.
    Atomic,
}
