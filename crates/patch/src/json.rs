//! RFC 6902 JSON patch, bounded.

use json_patch::{AddOperation, PatchOperation};
use serde_json::Value;

use crate::error::PatchError;
use crate::limits::{
    DEPTH_MAX, JSON_PATCH_COPIED_BYTES_MAX, JSON_PATCH_MOVED_BYTES_MAX, JSON_PATCH_OPERATIONS_MAX,
};

/// Applies an RFC 6902 patch, at most 10,000 operations.
///
/// `copy` can double a document with every operation, and `move` can deepen it; so the bytes that
/// they touch and the depth of the result are bounded.
///
/// # Errors
/// See [`PatchError`]. The document is unchanged then.
pub fn json_patch(document: &Value, patch: &Value) -> Result<Value, PatchError> {
    let Value::Array(operations) = patch else {
        return Err(PatchError::Malformed("a JSON patch is an array".to_owned()));
    };
    if operations.len() > JSON_PATCH_OPERATIONS_MAX {
        return Err(PatchError::TooManyOperations {
            count: operations.len(),
            max: JSON_PATCH_OPERATIONS_MAX,
        });
    }
    let mut result = document.clone();
    let mut budget = Budget {
        depth: measure(document).depth,
        ..Budget::default()
    };
    for (index, operation) in operations.iter().enumerate() {
        let operation: PatchOperation = serde::Deserialize::deserialize(operation)
            .map_err(|err| PatchError::Malformed(format!("operation {index}: {err}")))?;
        let operation = lenient(&result, operation);
        budget.charge(&result, &operation)?;
        json_patch::patch(&mut result, std::slice::from_ref(&operation)).map_err(|err| {
            PatchError::DoesNotApply(format!(
                "operation {index} at {:?}: {}",
                err.path.as_str(),
                err.kind
            ))
        })?;
    }
    // The running depth is an upper bound; only the result counts.
    if budget.depth > DEPTH_MAX && measure(&result).depth > DEPTH_MAX {
        return Err(PatchError::TooDeep { max: DEPTH_MAX });
    }
    Ok(result)
}

/// `replace` of a member that an object lacks adds it, as Kubernetes' library (evanphx/json-patch)
/// has it: RFC 6902 demands that it exists, but clients have come to rely on this.
fn lenient(document: &Value, operation: PatchOperation) -> PatchOperation {
    let PatchOperation::Replace(replace) = operation else {
        return operation;
    };
    let path = replace.path.as_str();
    let parent = path.rsplit_once('/').and_then(|(p, _)| document.pointer(p));
    if parent.is_some_and(Value::is_object) && document.pointer(path).is_none() {
        return PatchOperation::Add(AddOperation {
            path: replace.path,
            value: replace.value,
        });
    }
    PatchOperation::Replace(replace)
}

/// What one patch has used up.
#[derive(Default)]
struct Budget {
    copied_bytes: usize,
    moved_bytes: usize,
    /// Upper bound of the depth of the document so far.
    depth: usize,
}

impl Budget {
    fn charge(&mut self, document: &Value, operation: &PatchOperation) -> Result<(), PatchError> {
        let size = match operation {
            PatchOperation::Add(add) => measure(&add.value),
            PatchOperation::Replace(replace) => measure(&replace.value),
            PatchOperation::Copy(copy) => {
                let size = measure_at(document, copy.from.as_str());
                self.copied_bytes = self.copied_bytes.saturating_add(size.bytes);
                size
            }
            PatchOperation::Move(move_) => {
                let size = measure_at(document, move_.from.as_str());
                self.moved_bytes = self.moved_bytes.saturating_add(size.bytes);
                size
            }
            PatchOperation::Remove(_) | PatchOperation::Test(_) => return Ok(()),
        };
        if self.copied_bytes > JSON_PATCH_COPIED_BYTES_MAX {
            return Err(PatchError::TooLarge {
                max: JSON_PATCH_COPIED_BYTES_MAX,
            });
        }
        if self.moved_bytes > JSON_PATCH_MOVED_BYTES_MAX {
            return Err(PatchError::TooLarge {
                max: JSON_PATCH_MOVED_BYTES_MAX,
            });
        }
        let depth = operation.path().as_str().matches('/').count() + size.depth;
        self.depth = self.depth.max(depth);
        // Twice the limit, so that a document may be deep in between, but never deep enough to
        // exhaust the stack.
        if depth > 2 * DEPTH_MAX {
            return Err(PatchError::TooDeep { max: DEPTH_MAX });
        }
        Ok(())
    }
}

/// Size of a value: bytes as JSON, roughly, and levels of nesting.
#[derive(Clone, Copy, Default)]
struct Size {
    bytes: usize,
    depth: usize,
}

fn measure_at(document: &Value, pointer: &str) -> Size {
    document.pointer(pointer).map(measure).unwrap_or_default()
}

fn measure(value: &Value) -> Size {
    match value {
        Value::Null | Value::Bool(_) => Size { bytes: 5, depth: 0 },
        Value::Number(_) => Size { bytes: 8, depth: 0 },
        Value::String(text) => Size {
            bytes: text.len() + 2,
            depth: 0,
        },
        Value::Array(items) => nest(items.iter().map(|item| (0, item))),
        Value::Object(map) => nest(map.iter().map(|(key, item)| (key.len() + 3, item))),
    }
}

fn nest<'a>(children: impl Iterator<Item = (usize, &'a Value)>) -> Size {
    children.fold(Size { bytes: 2, depth: 1 }, |sum, (key_bytes, child)| {
        let size = measure(child);
        Size {
            bytes: sum.bytes + key_bytes + size.bytes + 1,
            depth: sum.depth.max(size.depth + 1),
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations_apply_in_order() {
        let document =
            json!({"metadata": {"managedFields": [{"manager": "a"}]}, "spec": {"a": [1, 3]}});
        let patch = json!([
            {"op": "test", "path": "/spec/a/0", "value": 1},
            {"op": "add", "path": "/spec/a/1", "value": 2},
            {"op": "replace", "path": "/metadata/managedFields", "value": [{}]},
            {"op": "copy", "from": "/spec/a", "path": "/spec/b"},
            {"op": "move", "from": "/spec/b", "path": "/spec/c"},
            {"op": "remove", "path": "/spec/a/0"},
        ]);
        assert_eq!(
            json_patch(&document, &patch),
            Ok(json!({"metadata": {"managedFields": [{}]}, "spec": {"a": [2, 3], "c": [1, 2, 3]}}))
        );
    }

    #[test]
    fn a_failed_test_or_a_missing_path_does_not_apply() {
        for operation in [
            json!({"op": "test", "path": "/a", "value": 2}),
            json!({"op": "remove", "path": "/b"}),
            json!({"op": "replace", "path": "/b/c", "value": 1}),
            json!({"op": "add", "path": "/b/c", "value": 1}),
            json!({"op": "copy", "from": "/nope", "path": "/x"}),
        ] {
            let result = json_patch(&json!({"a": 1}), &json!([operation]));
            assert!(
                matches!(result, Err(PatchError::DoesNotApply(_))),
                "{operation}: {result:?}"
            );
        }
    }

    #[test]
    fn what_is_not_a_patch_is_malformed() {
        for patch in [
            json!({}),
            json!([1]),
            json!([{"op": "nope", "path": "/a"}]),
            json!([{"op": "add", "path": "a", "value": 1}]),
            json!([{"op": "add", "value": 1}]),
        ] {
            let result = json_patch(&json!({}), &patch);
            assert!(
                matches!(result, Err(PatchError::Malformed(_))),
                "{patch}: {result:?}"
            );
        }
    }

    #[test]
    fn more_than_ten_thousand_operations_are_refused() {
        let operation = json!({"op": "test", "path": "/a", "value": 1});
        let document = json!({"a": 1});
        let at_limit = Value::Array(vec![operation.clone(); JSON_PATCH_OPERATIONS_MAX]);
        assert_eq!(json_patch(&document, &at_limit), Ok(document.clone()));
        let over = Value::Array(vec![operation; JSON_PATCH_OPERATIONS_MAX + 1]);
        assert!(matches!(
            json_patch(&document, &over),
            Err(PatchError::TooManyOperations {
                count: 10_001,
                max: 10_000
            })
        ));
    }

    #[test]
    fn copies_cannot_blow_a_document_up() {
        let mut document = json!({"a": ["x".repeat(64)]});
        let patch: Vec<Value> = (0..64)
            .map(|_| json!({"op": "copy", "from": "/a", "path": "/a/-"}))
            .collect();
        assert!(matches!(
            json_patch(&document, &Value::Array(patch.clone())),
            Err(PatchError::TooLarge { .. })
        ));
        document = json_patch(&document, &json!(patch[..3])).expect("small copies are fine");
        assert_eq!(document["a"].as_array().map(Vec::len), Some(4));
    }

    #[test]
    fn moves_cannot_deepen_a_document_without_bound() {
        let mut patch = Vec::new();
        for _ in 0..1000 {
            patch.push(json!({"op": "add", "path": "/b", "value": {}}));
            patch.push(json!({"op": "move", "from": "/a", "path": "/b/a"}));
            patch.push(json!({"op": "move", "from": "/b", "path": "/a"}));
        }
        assert!(matches!(
            json_patch(&json!({"a": {}}), &Value::Array(patch)),
            Err(PatchError::TooDeep { .. })
        ));
    }
}
