//! A compiled structural schema.

use std::sync::Arc;

use serde_json::Value;

use crate::error::FieldError;
use crate::node::Node;
use crate::{compile, defaults, prune, validate};

/// A compiled structural schema of one CRD version.
#[derive(Clone, Debug)]
pub struct Structural {
    root: Arc<Node>,
}

impl Structural {
    /// Compiles an `openAPIV3Schema` and checks the structural schema rules.
    ///
    /// # Errors
    /// Each rule that is broken, with paths below `openAPIV3Schema` such as
    /// `properties[spec].type`; the path of the schema itself is empty.
    pub fn compile(schema: &Value) -> Result<Self, Vec<FieldError>> {
        compile::compile(schema).map(|root| Self {
            root: Arc::new(root),
        })
    }

    /// The root node.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Removes undeclared fields; returns their paths, sorted. `apiVersion`, `kind` and `metadata`
    /// of the object itself (and of embedded resources) are kept.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune_resource(object, &self.root)
    }

    /// Drops nulls that are not nullable and have no default, then fills in defaults, also in place
    /// of nulls. Defaults only enter objects that exist or that a default has made.
    pub fn default(&self, object: &mut Value) {
        defaults::apply(object, &self.root);
    }

    /// Validates an object: types, bounds, formats, list types, then rules (CEL).
    ///
    /// With `old`, transition rules see it and errors in unchanged parts are not reported
    /// (ratcheting). Rules are not evaluated on objects whose types are wrong.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        validate::validate(object, old, &self.root)
    }
}
