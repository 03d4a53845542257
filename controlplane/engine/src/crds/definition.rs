//! CompositeResourceDefinition, v1 (stored) and v2.

use ecp_schema::conditions;
use serde_json::{Value, json};

use super::{Names, choice, free_object, immutable, rule, string_map, text, version};

/// The two served versions of the same objects.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Served {
    V1,
    V2,
}

pub(super) fn composite_resource_definition() -> Value {
    let names = Names {
        group: "apiextensions.crossplane.io",
        kind: "CompositeResourceDefinition",
        plural: "compositeresourcedefinitions",
        short: &["xrd", "xrds"],
        categories: &["crossplane"],
    };
    let columns = [
        (
            "ESTABLISHED",
            ".status.conditions[?(@.type=='Established')].status",
            0,
        ),
        (
            "OFFERED",
            ".status.conditions[?(@.type=='Offered')].status",
            0,
        ),
    ];
    let served = |name: &str, served: Served| {
        let mut version = version(
            name,
            "A CompositeResourceDefinition defines the schema for a new custom Kubernetes API.",
            json!({"spec": spec(served), "status": status()}),
            &columns,
        );
        version["subresources"] = json!({"status": {}});
        version["storage"] = (served == Served::V1).into();
        version
    };
    let mut v1 = served("v1", Served::V1);
    v1["deprecated"] = true.into();
    v1["deprecationWarning"] =
        "CompositeResourceDefinition v1 is deprecated and will be removed in \
        a future release; consider migrating to v2"
            .into();
    names.crd(vec![v1, served("v2", Served::V2)])
}

fn spec(served: Served) -> Value {
    let reference = json!({
        "type": "object",
        "required": ["name"],
        "properties": {"name": text("Name of the Composition.")},
    });
    let mut delete_policy = choice(
        "How claims delete their composite resource.",
        &["Background", "Foreground"],
    );
    delete_policy["default"] = "Background".into();
    let mut update_policy = choice(
        "How composite resources follow new revisions.",
        &["Automatic", "Manual"],
    );
    update_policy["default"] = "Automatic".into();
    json!({
        "type": "object",
        "required": ["group", "names", "versions"],
        "x-kubernetes-validations": spec_rules(served),
        "properties": {
            "group": immutable(text("API group of the composite resource.")),
            "names": names("Names of the composite resource."),
            "scope": scope(served),
            "claimNames": names("Names of the claim. They can be added, but not changed."),
            "connectionSecretKeys": {
                "type": "array",
                "description": "Keys a composite resource may publish; all if empty.",
                "items": {"type": "string"},
            },
            "defaultCompositeDeletePolicy": delete_policy,
            "defaultCompositionRef": reference,
            "defaultCompositionRevisionSelector": {
                "type": "object",
                "properties": {"matchLabels": string_map("Labels of revisions.")},
            },
            "defaultCompositionUpdatePolicy": update_policy,
            "enforcedCompositionRef": immutable(reference.clone()),
            "conversion": conversion(served),
            "metadata": {
                "type": "object",
                "description": "Metadata of the generated CRDs.",
                "properties": {
                    "labels": string_map("Labels."),
                    "annotations": string_map("Annotations."),
                },
            },
            "versions": {
                "type": "array",
                "minItems": 1,
                "items": xrd_version(),
            },
        },
    })
}

fn spec_rules(served: Served) -> Value {
    match served {
        Served::V1 => json!([
            rule(
                "self.scope == 'LegacyCluster' || !has(self.claimNames)",
                "Only LegacyCluster composite resources can offer claims",
            ),
            rule(
                "self.scope == 'LegacyCluster' || !has(self.connectionSecretKeys)",
                "Only LegacyCluster composite resources support connection secrets",
            ),
        ]),
        Served::V2 => json!([
            rule(
                "!has(self.claimNames)",
                "Claims aren't supported in apiextensions.crossplane.io/v2",
            ),
            rule(
                "!has(self.connectionSecretKeys)",
                "XR connection secrets aren't supported in apiextensions.crossplane.io/v2",
            ),
        ]),
    }
}

fn scope(served: Served) -> Value {
    let (scopes, default): (&[&str], _) = match served {
        Served::V1 => (&["LegacyCluster", "Namespaced", "Cluster"], "LegacyCluster"),
        Served::V2 => (&["Namespaced", "Cluster"], "Namespaced"),
    };
    let mut scope = choice("Scope of the composite resource.", scopes);
    scope["default"] = default.into();
    immutable(scope)
}

fn names(description: &str) -> Value {
    immutable(json!({
        "type": "object",
        "description": description,
        "required": ["kind", "plural"],
        "x-kubernetes-validations": [
            rule("self.plural == self.plural.lowerAscii()", "Plural name must be lowercase"),
            rule(
                "!has(self.singular) || self.singular == self.singular.lowerAscii()",
                "Singular name must be lowercase",
            ),
        ],
        "properties": {
            "kind": {"type": "string", "maxLength": 63},
            "listKind": {"type": "string", "maxLength": 63},
            "plural": {"type": "string", "maxLength": 63},
            "singular": {"type": "string", "maxLength": 63},
            "shortNames": {"type": "array", "maxItems": 32, "items": {"type": "string", "maxLength": 63}},
            "categories": {"type": "array", "maxItems": 32, "items": {"type": "string", "maxLength": 63}},
        },
    }))
}

fn conversion(served: Served) -> Value {
    let mut conversion = json!({
        "type": "object",
        "required": ["strategy"],
        "properties": {
            "strategy": {"type": "string"},
            "webhook": free_object("How to call the webhook."),
        },
    });
    if served == Served::V1 {
        conversion["x-kubernetes-validations"] = json!([rule(
            "self.strategy == 'Webhook' && has(self.webhook)",
            "Webhook configuration is required when conversion strategy is Webhook",
        )]);
    }
    conversion
}

fn xrd_version() -> Value {
    json!({
        "type": "object",
        "required": ["name", "referenceable", "served"],
        "properties": {
            "name": text("Name of this version."),
            "referenceable": {
                "type": "boolean",
                "description": "Whether Compositions target it; exactly one version is.",
            },
            "served": {"type": "boolean", "description": "Whether the API serves it."},
            "deprecated": {"type": "boolean"},
            "deprecationWarning": {"type": "string", "maxLength": 256},
            "schema": {
                "type": "object",
                "properties": {
                    "openAPIV3Schema": free_object("Schema of the composite resource."),
                },
            },
            "additionalPrinterColumns": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["jsonPath", "name", "type"],
                    "properties": {
                        "description": {"type": "string"},
                        "format": {"type": "string"},
                        "jsonPath": {"type": "string"},
                        "name": {"type": "string"},
                        "priority": {"type": "integer", "format": "int32"},
                        "type": {"type": "string"},
                    },
                },
            },
            "subresources": {
                "type": "object",
                "properties": {
                    "scale": {
                        "type": "object",
                        "required": ["specReplicasPath", "statusReplicasPath"],
                        "properties": {
                            "labelSelectorPath": {"type": "string"},
                            "specReplicasPath": {"type": "string"},
                            "statusReplicasPath": {"type": "string"},
                        },
                    },
                },
            },
        },
    })
}

fn status() -> Value {
    let type_ref = json!({
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}},
    });
    json!({
        "type": "object",
        "properties": {
            "conditions": conditions(),
            "controllers": {
                "type": "object",
                "description": "What is being reconciled.",
                "properties": {
                    "compositeResourceType": type_ref,
                    "compositeResourceClaimType": type_ref,
                },
            },
        },
    })
}
