//! Composition, CompositionRevision and EnvironmentConfig.

use ecp_schema::conditions;
use serde_json::{Value, json};

use super::{Names, choice, free_object, immutable, rule, string_map, text, version};

const XR_COLUMNS: [(&str, &str, i64); 2] = [
    ("XR-KIND", ".spec.compositeTypeRef.kind", 0),
    ("XR-APIVERSION", ".spec.compositeTypeRef.apiVersion", 0),
];

pub(super) fn composition() -> Value {
    let names = Names {
        group: "apiextensions.crossplane.io",
        kind: "Composition",
        plural: "compositions",
        short: &["comp"],
        categories: &["crossplane"],
    };
    let mut spec = spec();
    spec["x-kubernetes-validations"] = json!([rule(
        "self.mode == 'Pipeline' && has(self.pipeline)",
        "an array of pipeline steps is required in Pipeline mode",
    )]);
    names.crd(vec![version(
        "v1",
        "A Composition defines a pipeline of functions that composes a composite resource.",
        json!({"spec": spec}),
        &XR_COLUMNS,
    )])
}

pub(super) fn composition_revision() -> Value {
    let names = Names {
        group: "apiextensions.crossplane.io",
        kind: "CompositionRevision",
        plural: "compositionrevisions",
        short: &["comprev"],
        categories: &["crossplane"],
    };
    let mut spec = spec();
    spec["required"] = json!(["compositeTypeRef", "revision"]);
    spec["properties"]["revision"] = json!({
        "type": "integer",
        "format": "int64",
        "description": "Number of the revision; a larger one is newer.",
    });
    let status = json!({"type": "object", "properties": {"conditions": conditions()}});
    let mut version = version(
        "v1",
        "A CompositionRevision is what a Composition was at one time.",
        json!({"spec": spec, "status": status}),
        &[
            ("REVISION", ".spec.revision", 0),
            XR_COLUMNS[0],
            XR_COLUMNS[1],
        ],
    );
    version["subresources"] = json!({"status": {}});
    names.crd(vec![version])
}

pub(super) fn environment_config() -> Value {
    let names = Names {
        group: "apiextensions.crossplane.io",
        kind: "EnvironmentConfig",
        plural: "environmentconfigs",
        short: &["envcfg"],
        categories: &["crossplane"],
    };
    names.crd(vec![version(
        "v1beta1",
        "An EnvironmentConfig contains user-defined unstructured values for functions.",
        json!({"data": free_object("The values.")}),
        &[],
    )])
}

fn spec() -> Value {
    let mut mode = choice("How resources are composed.", &["Pipeline"]);
    mode["default"] = "Pipeline".into();
    json!({
        "type": "object",
        "required": ["compositeTypeRef"],
        "properties": {
            "compositeTypeRef": immutable(json!({
                "type": "object",
                "description": "The composite resources this is for.",
                "required": ["apiVersion", "kind"],
                "properties": {
                    "apiVersion": {"type": "string", "maxLength": 320},
                    "kind": {"type": "string", "maxLength": 63},
                },
            })),
            "mode": mode,
            "pipeline": {
                "type": "array",
                "description": "Functions, called in this order.",
                "minItems": 1,
                "maxItems": 99,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["step"],
                "items": step(),
            },
            "writeConnectionSecretsToNamespace": text(
                "Where connection secrets of cluster-scoped composite resources are written."
            ),
        },
    })
}

fn step() -> Value {
    json!({
        "type": "object",
        "required": ["functionRef", "step"],
        "properties": {
            "step": text("Name of the step."),
            "functionRef": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": text("Name of the Function.")},
            },
            "input": {
                "type": "object",
                "description": "Input of the function.",
                "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true,
            },
            "credentials": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": credentials(),
            },
            "requirements": requirements(),
        },
    })
}

fn credentials() -> Value {
    json!({
        "type": "object",
        "required": ["name", "source"],
        "x-kubernetes-validations": [rule(
            "self.source == 'Secret' && has(self.secretRef)",
            "the Secret source requires a secretRef",
        )],
        "properties": {
            "name": text("Name the function knows them by."),
            "source": choice("Where they are.", &["None", "Secret"]),
            "secretRef": {
                "type": "object",
                "required": ["name", "namespace"],
                "properties": {"name": {"type": "string"}, "namespace": {"type": "string"}},
            },
        },
    })
}

fn requirements() -> Value {
    let kind = json!({
        "requirementName": text("Name the function knows it by."),
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
    });
    let mut resource = kind.clone();
    resource["name"] = text("Name of one resource.");
    resource["namespace"] = text("Namespace of the resources.");
    resource["matchLabels"] = string_map("Labels of the resources.");
    json!({
        "type": "object",
        "description": "What the function has from its first call on.",
        "properties": {
            "requiredResources": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["requirementName"],
                "items": {
                    "type": "object",
                    "required": ["apiVersion", "kind", "requirementName"],
                    "x-kubernetes-validations": [rule(
                        "!(has(self.name) && has(self.matchLabels))",
                        "name and matchLabels are mutually exclusive",
                    )],
                    "properties": resource,
                },
            },
            "requiredSchemas": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["requirementName"],
                "items": {
                    "type": "object",
                    "required": ["apiVersion", "kind", "requirementName"],
                    "properties": kind,
                },
            },
        },
    })
}
