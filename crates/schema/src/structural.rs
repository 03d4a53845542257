//! A compiled structural schema.

use std::sync::Arc;

use serde_json::Value;

use crate::error::FieldError;
use crate::node::Node;

/// A compiled structural schema of one CRD version.
#[derive(Clone, Debug)]
pub struct Structural {
    root: Arc<Node>,
}

impl Structural {
    /// Compiles an `openAPIV3Schema` and checks the structural schema rules.
    ///
    /// # Errors
    /// Each rule that is broken, with paths below `openAPIV3Schema`.
    pub fn compile(schema: &Value) -> Result<Self, Vec<FieldError>> {
        let _ = schema;
        unimplemented!()
    }

    /// The root node.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Removes undeclared fields; returns their paths. `apiVersion`, `kind` and `metadata` of the
    /// object itself (and of embedded resources) are kept.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let _ = object;
        unimplemented!()
    }

    /// Prunes nulls that are not nullable and have a default, then fills in defaults.
    pub fn default(&self, object: &mut Value) {
        let _ = object;
        unimplemented!()
    }

    /// Validates an object: types, bounds, formats, list types, then rules (CEL).
    ///
    /// With `old`, transition rules see it and errors in unchanged parts are not reported
    /// (ratcheting).
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let _ = (object, old);
        unimplemented!()
    }
}
