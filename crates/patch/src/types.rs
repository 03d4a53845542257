//! How the parts of an object merge: types from a schema, or deduced from the value.

use std::borrow::Cow;
use std::sync::LazyLock;

use ecp_schema::{ListType, MapType, Node, NodeType};
use serde_json::{Map, Value};

use crate::apply::Typing;
use crate::path::PathElement;

/// How one value merges: structured-merge-diff's `schema.TypeRef`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Type<'a> {
    /// `None`: deduced from the value.
    node: Option<&'a Node>,
    /// Whether undeclared fields are kept (`x-kubernetes-preserve-unknown-fields` here or above).
    open: bool,
    /// Whether this is a Kubernetes object: the root, or an embedded resource.
    object: bool,
}

/// A field of a map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    pub(crate) ty: Type<'a>,
    pub(crate) declared: Declared,
}

/// How a schema knows a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Declared {
    /// By name. Such a field is owned only by what is in it.
    Named,
    /// As an element of a map. Such a field is owned as itself too.
    Element,
    /// Not at all.
    Unknown,
}

/// What a value is for merging.
#[derive(Debug)]
pub(crate) enum Class<'a> {
    /// Replaced as a whole: a scalar, an atomic list or map, or a value its type does not allow.
    Leaf,
    /// Null: takes the form of what it meets.
    Null,
    /// Merged field by field.
    Map(&'a Map<String, Value>),
    /// Merged item by item.
    List(List<'a>),
}

/// A list whose items have identities.
#[derive(Debug)]
pub(crate) struct List<'a> {
    pub(crate) items: &'a [Value],
    /// The identity of each item, in order.
    pub(crate) elements: Vec<PathElement<'a>>,
}

impl<'a> Type<'a> {
    /// The type of a whole object.
    pub(crate) fn of(typing: Typing<'a>) -> Self {
        let (node, open) = match typing {
            Typing::Schema(node) => (Some(node), node.preserve_unknown),
            Typing::Deduced => (None, true),
        };
        Self {
            node,
            open,
            object: true,
        }
    }

    fn deduced() -> Self {
        Self {
            node: None,
            open: true,
            object: false,
        }
    }

    fn node(node: &'a Node, open: bool) -> Self {
        Self {
            node: Some(node),
            open: open || node.preserve_unknown,
            object: node.embedded_resource,
        }
    }

    /// The field of this name, were the value a map.
    pub(crate) fn field(&self, name: &str) -> Field<'a> {
        // apiextensions gives the root and embedded resources the built-in types of these
        // (pkg/controller/openapi/builder, addEmbeddedProperties).
        if self.object {
            let builtin = match name {
                "metadata" => Some(&*OBJECT_META),
                "apiVersion" | "kind" => Some(&*TEXT),
                _ => None,
            };
            if let Some(node) = builtin {
                return Field {
                    ty: Type::node(node, false),
                    declared: Declared::Named,
                };
            }
        }
        let Some(node) = self.node else {
            return Field {
                ty: Type::deduced(),
                declared: Declared::Element,
            };
        };
        if let Some(field) = node.properties.get(name) {
            return Field {
                ty: Type::node(field, self.open),
                declared: Declared::Named,
            };
        }
        if let Some(element) = &node.additional {
            return Field {
                ty: Type::node(element, self.open),
                declared: Declared::Element,
            };
        }
        // An object without any declaration is free-form (kube-openapi, schemaconv.parseObject).
        let known = self.open || node.properties.is_empty();
        Field {
            ty: Type::deduced(),
            declared: if known {
                Declared::Element
            } else {
                Declared::Unknown
            },
        }
    }

    /// The type of items, were the value a list.
    pub(crate) fn item(&self) -> Type<'a> {
        match self.node.and_then(|node| node.items.as_deref()) {
            Some(items) => Type::node(items, self.open),
            None => Type::deduced(),
        }
    }

    /// Whether maps of this type are replaced as a whole; `None` where it allows no map.
    pub(crate) fn map_is_atomic(&self) -> Option<bool> {
        match self.node {
            None => Some(false),
            Some(node) => matches!(node.kind, None | Some(NodeType::Object))
                .then_some(node.map_type == MapType::Atomic),
        }
    }

    /// Whether lists of this type are replaced as a whole; `None` where it allows no list.
    pub(crate) fn list_is_atomic(&self) -> Option<bool> {
        match self.node {
            None => Some(true),
            Some(node) => matches!(node.kind, None | Some(NodeType::Array))
                .then_some(node.list_type == ListType::Atomic),
        }
    }

    /// Whether neither the type nor anything below it is in a schema.
    pub(crate) fn is_free(&self) -> bool {
        self.node.is_none() && !self.object
    }

    /// Whether the type says nothing: the value alone decides.
    pub(crate) fn is_deduced(&self) -> bool {
        self.node.is_none_or(|node| {
            node.kind.is_none() && node.properties.is_empty() && node.additional.is_none()
        })
    }

    /// What a value of this type is.
    ///
    /// A keyed list with an item that has no identity is a leaf: stored objects may be older than
    /// their schema, and must not make a request fail.
    pub(crate) fn class(&self, value: &'a Value) -> Class<'a> {
        match value {
            Value::Null => Class::Null,
            Value::Object(map) if self.map_is_atomic() == Some(false) => Class::Map(map),
            Value::Array(items) if self.list_is_atomic() == Some(false) => {
                match items.iter().map(|item| self.element(item)).collect() {
                    Ok(elements) => Class::List(List { items, elements }),
                    Err(_) => Class::Leaf,
                }
            }
            _ => Class::Leaf,
        }
    }

    /// The identity of an item of a set or keyed list.
    ///
    /// # Errors
    /// Why it has none.
    pub(crate) fn element(&self, item: &'a Value) -> Result<PathElement<'a>, String> {
        let keys = match self.node {
            Some(node) if node.list_type == ListType::Map => &node.list_map_keys,
            _ => return set_element(item),
        };
        let Value::Object(map) = item else {
            return Err("associative list with keys may not have non-map elements".to_owned());
        };
        let items = self.node.and_then(|node| node.items.as_deref());
        let default =
            |key: &String| items.and_then(|items| items.properties.get(key)?.default.as_ref());
        let fields: Vec<_> = keys
            .iter()
            .filter_map(|key| {
                let value = map.get(key).or_else(|| default(key))?;
                Some((Cow::Borrowed(key.as_str()), Cow::Borrowed(value)))
            })
            .collect();
        if fields.is_empty() {
            return Err(format!(
                "associative list with keys has an element that omits all key fields {keys:?} \
                 (and doesn't have default values for any key fields)"
            ));
        }
        Ok(PathElement::key(fields))
    }
}

fn set_element(item: &Value) -> Result<PathElement<'_>, String> {
    match item {
        Value::Object(_) => {
            Err("associative list without keys has an element that's a map type".to_owned())
        }
        Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
        Value::Null => {
            Err("associative list without keys has an element that's an explicit null".to_owned())
        }
        _ => Ok(PathElement::Item(Cow::Borrowed(item))),
    }
}

/// `apiVersion` and `kind`.
static TEXT: LazyLock<Node> = LazyLock::new(|| typed(NodeType::String));

/// `io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta`.
static OBJECT_META: LazyLock<Node> = LazyLock::new(|| {
    let text = || typed(NodeType::String);
    let map_of_text = || {
        with(NodeType::Object, |node| {
            node.additional = Some(Box::new(text()))
        })
    };
    let owner = with(NodeType::Object, |node| node.map_type = MapType::Atomic);
    let fields = [
        ("annotations", map_of_text()),
        ("creationTimestamp", text()),
        ("deletionGracePeriodSeconds", typed(NodeType::Integer)),
        ("deletionTimestamp", text()),
        (
            "finalizers",
            with(NodeType::Array, |node| {
                node.items = Some(Box::new(text()));
                node.list_type = ListType::Set;
            }),
        ),
        ("generateName", text()),
        ("generation", typed(NodeType::Integer)),
        ("labels", map_of_text()),
        ("managedFields", typed(NodeType::Array)),
        ("name", text()),
        ("namespace", text()),
        (
            "ownerReferences",
            with(NodeType::Array, |node| {
                node.items = Some(Box::new(owner));
                node.list_type = ListType::Map;
                node.list_map_keys = vec!["uid".to_owned()];
            }),
        ),
        ("resourceVersion", text()),
        ("selfLink", text()),
        ("uid", text()),
    ];
    with(NodeType::Object, |node| {
        node.properties = fields
            .into_iter()
            .map(|(name, field)| (name.to_owned(), field))
            .collect();
    })
});

fn typed(kind: NodeType) -> Node {
    with(kind, |_| ())
}

fn with(kind: NodeType, fill: impl FnOnce(&mut Node)) -> Node {
    let mut node = Node::default();
    fill(&mut node);
    node.kind = Some(kind);
    node
}
