//! Removal of undeclared fields (apiextensions `pkg/apiserver/schema/pruning`).

use serde_json::Value;

use crate::limits;
use crate::node::Node;
use crate::path::Path;
use crate::structure::META_FIELDS;

/// Prunes a resource; returns the paths of what was removed, sorted.
pub(crate) fn prune_resource(object: &mut Value, root: &Node) -> Vec<String> {
    let mut removed = Vec::new();
    let mut pruner = Pruner {
        removed: &mut removed,
    };
    pruner.value(
        object,
        Some(root),
        &Path::Root,
        Mode {
            depth: 0,
            preserve: false,
            resource: true,
        },
    );
    removed.sort_unstable();
    removed
}

/// Prunes a value that is not a resource of itself.
pub(crate) fn prune_value(value: &mut Value, node: &Node) -> Vec<String> {
    let mut removed = Vec::new();
    let mut pruner = Pruner {
        removed: &mut removed,
    };
    pruner.value(value, Some(node), &Path::Root, Mode::of(node, 0));
    removed
}

struct Pruner<'a> {
    removed: &'a mut Vec<String>,
}

/// How one value is pruned.
#[derive(Clone, Copy, Default)]
struct Mode {
    depth: usize,
    /// Unknown fields stay.
    preserve: bool,
    /// `apiVersion`, `kind` and `metadata` stay.
    resource: bool,
}

impl Mode {
    fn of(node: &Node, depth: usize) -> Self {
        Self {
            depth,
            preserve: node.preserve_unknown,
            resource: node.embedded_resource,
        }
    }
}

impl Pruner<'_> {
    /// Without a node, everything below is unknown.
    fn value(&mut self, value: &mut Value, node: Option<&Node>, path: &Path<'_>, mode: Mode) {
        // The validator refuses deeper objects.
        if mode.depth > limits::OBJECT_DEPTH_MAX {
            return;
        }
        let preserve = mode.preserve || node.is_some_and(|node| node.preserve_unknown);
        let depth = mode.depth + 1;
        match value {
            Value::Object(map) => map.retain(|key, value| {
                if mode.resource && META_FIELDS.contains(&key.as_str()) {
                    return true;
                }
                let at = path.field(key);
                match node.and_then(|node| node.child(key)) {
                    Some(child) => {
                        self.value(value, Some(child), &at, Mode::of(child, depth));
                        true
                    }
                    None if preserve => true,
                    // What may not be there is refused, not pruned.
                    None if node.is_some_and(Node::is_closed) => {
                        self.value(
                            value,
                            None,
                            &at,
                            Mode {
                                depth,
                                ..Mode::default()
                            },
                        );
                        true
                    }
                    None => {
                        if self.removed.len() < limits::ERRORS_MAX {
                            self.removed.push(at.text());
                        }
                        false
                    }
                }
            }),
            Value::Array(items) => {
                let item = node.and_then(|node| node.items.as_deref());
                if item.is_none() && preserve {
                    return;
                }
                // Items of a list that preserves unknown fields preserve them, too.
                let mode = Mode {
                    depth,
                    preserve,
                    resource: item.is_some_and(|item| item.embedded_resource),
                };
                for (i, value) in items.iter_mut().enumerate() {
                    self.value(value, item, &path.index(i), mode);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}
