//! Evaluation of rules.

use serde_json::Value;

use crate::error::FieldError;
use crate::node::Node;
use crate::path::Path;

pub(crate) fn check(
    node: &Node,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let _ = (node, value, old, path, errors);
}
