//! The crate as others call it.

mod change;
mod properties;
mod structure;
mod validate;

use ecp_schema::Structural;
use serde_json::{Value, json};

/// The schema of a kind whose `spec` is given.
fn root(spec: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": spec, "status": {"type": "object"}}})
}

#[track_caller]
fn compile(spec: &Value) -> Structural {
    match Structural::compile(&root(spec)) {
        Ok(schema) => schema,
        Err(errors) => panic!("{spec} does not compile: {errors:?}"),
    }
}

fn object(spec: &Value) -> Value {
    json!({"apiVersion": "g.io/v1", "kind": "K", "metadata": {"name": "n", "labels": {"a": "b"}}, "spec": spec})
}

/// The messages for `spec.x`, which has a schema and a value.
#[track_caller]
fn errors_of(schema: &Value, value: &Value) -> Vec<String> {
    let schema = compile(&json!({"type": "object", "properties": {"x": schema}}));
    texts(&schema.validate(&object(&json!({"x": value})), None))
}

fn texts(errors: &[ecp_schema::FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}
