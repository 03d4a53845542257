//! Validation of a spec outside the API server.

use std::sync::LazyLock;

use ecp_schema::{FieldError, Structural};
use serde_json::{Value, json};

use crate::kinds::{KindInfo, kinds};
use crate::schema::version_schema;

/// How Kubernetes names the object itself.
const NO_FIELD: &str = "<nil>";

static SCHEMAS: LazyLock<Vec<(&'static str, Structural)>> = LazyLock::new(|| {
    kinds()
        .iter()
        .map(|info| {
            let schema = Structural::compile(&version_schema(info))
                .expect("the schemas of our own types are structural, which a test shows");
            (info.kind, schema)
        })
        .collect()
});

/// What is wrong with the `spec` of a new object of a kind; nothing if the API server would take
/// it. Defaults are filled in first, as the API server does. Fields are named as it names them
/// (`spec.sizeGB`).
///
/// This is the schema of the kind's XRD, so REST and kubectl refuse the same things.
pub fn validate(info: &KindInfo, spec: &Value) -> Vec<FieldError> {
    check(info, spec, None)
}

/// What is wrong with a change of an object's `spec` from `old` to `spec`: what [`validate`] finds,
/// and changes of what cannot be changed. Faults that were there before are not reported.
pub fn validate_update(info: &KindInfo, spec: &Value, old: &Value) -> Vec<FieldError> {
    check(info, spec, Some(old))
}

/// Removes what the schema of a kind does not know from a `spec`; returns the paths of what it
/// removed. Server-side apply refuses unknown fields, so who applies must prune first.
pub fn prune(info: &KindInfo, spec: &mut Value) -> Vec<String> {
    let Some((_, schema)) = SCHEMAS.iter().find(|(kind, _)| *kind == info.kind) else {
        return Vec::new();
    };
    let mut object = json!({"spec": spec.take()});
    let pruned = schema.prune(&mut object);
    *spec = object["spec"].take();
    pruned
}

fn check(info: &KindInfo, spec: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let Some((_, schema)) = SCHEMAS.iter().find(|(kind, _)| *kind == info.kind) else {
        return Vec::new();
    };
    let object = |spec: &Value| {
        let mut object = json!({"spec": spec});
        schema.default(&mut object);
        object
    };
    let old = old.map(object);
    let mut errors = schema.validate(&object(spec), old.as_ref());
    // Kubernetes adds an error without a field to say that rules were not checked because of the
    // others. Those say enough.
    if errors.iter().any(|e| e.field != NO_FIELD) {
        errors.retain(|e| e.field != NO_FIELD);
    }
    errors
}
