//! Function and FunctionRevision: as much as the engine reads. Other fields are kept, so that what
//! a package manager writes there survives.

use ecp_schema::conditions;
use serde_json::{Value, json};

use super::{Names, free_object, text, version};

pub(super) fn function() -> Value {
    let names = Names {
        group: "pkg.crossplane.io",
        kind: "Function",
        plural: "functions",
        short: &[],
        categories: &["crossplane", "pkg"],
    };
    let mut spec = free_object("The package.");
    spec["required"] = json!(["package"]);
    spec["properties"] = json!({"package": text("OCI image of the package.")});
    let mut status = free_object("What is installed.");
    status["properties"] = json!({
        "conditions": conditions(),
        "currentRevision": text("Name of the active revision."),
    });
    let mut version = version(
        "v1",
        "A Function is a composition function that is installed.",
        json!({"spec": spec, "status": status}),
        &[
            (
                "INSTALLED",
                ".status.conditions[?(@.type=='Installed')].status",
                0,
            ),
            (
                "HEALTHY",
                ".status.conditions[?(@.type=='Healthy')].status",
                0,
            ),
            ("PACKAGE", ".spec.package", 0),
        ],
    );
    version["subresources"] = json!({"status": {}});
    names.crd(vec![version])
}

pub(super) fn function_revision() -> Value {
    let names = Names {
        group: "pkg.crossplane.io",
        kind: "FunctionRevision",
        plural: "functionrevisions",
        short: &[],
        categories: &["crossplane", "pkgrev"],
    };
    let mut spec = free_object("The package at one digest.");
    spec["properties"] = json!({
        "image": text("OCI image of the revision."),
        "desiredState": text("Active or Inactive."),
        "revision": {"type": "integer", "format": "int64"},
    });
    let mut status = free_object("What runs.");
    status["properties"] = json!({
        "conditions": conditions(),
        "endpoint": text("Where the function answers."),
        "capabilities": {"type": "array", "items": {"type": "string"}},
    });
    let mut version = version(
        "v1",
        "A FunctionRevision is what a Function was at one time.",
        json!({"spec": spec, "status": status}),
        &[
            (
                "HEALTHY",
                ".status.conditions[?(@.type=='RevisionHealthy')].status",
                0,
            ),
            ("IMAGE", ".spec.image", 0),
            ("STATE", ".spec.desiredState", 0),
            ("REVISION", ".spec.revision", 1),
        ],
    );
    version["subresources"] = json!({"status": {}});
    names.crd(vec![version])
}
