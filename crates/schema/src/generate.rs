//! Structural schemas from Rust types.

use serde_json::Value;

/// The structural `openAPIV3Schema` of a type: references inlined, no `$defs`, no `anyOf` with
/// null (`nullable` instead), enums flattened, integer formats kept, docs as descriptions.
///
/// Extensions set with `#[schemars(extend("x-kubernetes-..." = ...))]` are kept.
///
/// # Panics
/// The type has no structural schema (it is recursive, or an untagged union of objects). That is a
/// fault of the type, found by any test that calls this.
pub fn from_type<T: schemars::JsonSchema>() -> Value {
    unimplemented!()
}
