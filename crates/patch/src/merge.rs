//! RFC 7386 JSON merge patch.

use serde_json::{Map, Value};

use crate::limits::DEPTH_MAX;

/// Applies an RFC 7386 merge patch.
///
/// Nulls remove, objects merge, anything else replaces. Below [`DEPTH_MAX`] levels, which no
/// request body can reach, the patch replaces without merging.
pub fn merge_patch(document: &mut Value, patch: &Value) {
    merge(document, patch, 0);
}

fn merge(document: &mut Value, patch: &Value, depth: usize) {
    let Value::Object(changes) = patch else {
        *document = patch.clone();
        return;
    };
    if depth >= DEPTH_MAX {
        *document = patch.clone();
        return;
    }
    if !document.is_object() {
        *document = Value::Object(Map::new());
    }
    let Value::Object(fields) = document else {
        return;
    };
    for (key, change) in changes {
        match change {
            Value::Null => {
                fields.remove(key);
            }
            _ => match fields.get_mut(key) {
                Some(field) => merge(field, change, depth + 1),
                None => {
                    // Even a new object is merged: its nulls must not be stored.
                    let mut field = Value::Null;
                    merge(&mut field, change, depth + 1);
                    fields.insert(key.clone(), field);
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_examples_of_rfc_7386_hold() {
        for (document, patch, want) in [
            (json!({"a":"b"}), json!({"a":"c"}), json!({"a":"c"})),
            (json!({"a":"b"}), json!({"b":"c"}), json!({"a":"b","b":"c"})),
            (json!({"a":"b"}), json!({"a":null}), json!({})),
            (
                json!({"a":"b","b":"c"}),
                json!({"a":null}),
                json!({"b":"c"}),
            ),
            (json!({"a":["b"]}), json!({"a":"c"}), json!({"a":"c"})),
            (json!({"a":"c"}), json!({"a":["b"]}), json!({"a":["b"]})),
            (
                json!({"a":{"b":"c"}}),
                json!({"a":{"b":"d","c":null}}),
                json!({"a":{"b":"d"}}),
            ),
            (json!({"a":[{"b":"c"}]}), json!({"a":[1]}), json!({"a":[1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a":"b"}), json!(["c"]), json!(["c"])),
            (json!({"a":"foo"}), json!(null), json!(null)),
            (json!({"a":"foo"}), json!("bar"), json!("bar")),
            (json!({"e":null}), json!({"a":1}), json!({"e":null,"a":1})),
            (json!([1, 2]), json!({"a":"b","c":null}), json!({"a":"b"})),
            (
                json!({}),
                json!({"a":{"bb":{"ccc":null}}}),
                json!({"a":{"bb":{}}}),
            ),
        ] {
            let mut result = document.clone();
            merge_patch(&mut result, &patch);
            assert_eq!(result, want, "{document} patched with {patch}");
        }
    }

    #[test]
    fn a_patch_deeper_than_the_limit_replaces() {
        let nested = |leaf: Value| (0..DEPTH_MAX + 5).fold(leaf, |inner, _| json!({"a": inner}));
        let mut document = nested(json!({"x": 1}));
        merge_patch(&mut document, &nested(json!({"y": 1})));
        assert_eq!(document, nested(json!({"y": 1})));
    }
}
