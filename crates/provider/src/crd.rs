//! CRDs of managed resources and provider configurations.

use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use crate::kind::{Configs, KindInfo, Managed, Provider};

/// The CRD of a managed kind: namespaced, with status subresource.
pub fn managed_crd<M: Managed>() -> Value {
    let info = KindInfo::of::<M>();
    let mut for_provider = ecp_schema::from_type::<M::ForProvider>();
    let required = take_required(&mut for_provider);
    let init_provider = for_provider.clone();
    let at_provider = ecp_schema::from_type::<M::AtProvider>();
    describe(&mut for_provider, "What the external resource should be.");
    let schema = json!({
        "type": "object",
        "description": format!("A {} of the {} cloud.", info.kind, info.provider.name),
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec_schema(for_provider, init_provider, &required),
            "status": status_schema(at_provider),
        },
    });
    let columns = json!([
        {"name": "SYNCED", "type": "string",
         "jsonPath": ".status.conditions[?(@.type=='Synced')].status"},
        {"name": "READY", "type": "string",
         "jsonPath": ".status.conditions[?(@.type=='Ready')].status"},
        {"name": "EXTERNAL-NAME", "type": "string",
         "jsonPath": ".metadata.annotations.crossplane\\.io/external-name"},
        {"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]);
    let names = Names {
        kind: info.kind,
        plural: info.plural,
        categories: &["crossplane", "managed", info.provider.name],
    };
    crd(&info.provider, &names, Scope::Namespaced, schema, columns)
}

/// The CRDs of a provider's configurations: `ProviderConfig`, `ClusterProviderConfig` with this
/// spec, and `ProviderConfigUsage`; none for a provider without configurations.
pub fn config_crds<S: JsonSchema>(provider: &Provider) -> Vec<Value> {
    match provider.configs {
        Configs::None => Vec::new(),
        Configs::Tracked => vec![
            config_crd::<S>(
                provider,
                "ProviderConfig",
                "providerconfigs",
                Scope::Namespaced,
            ),
            config_crd::<S>(
                provider,
                "ClusterProviderConfig",
                "clusterproviderconfigs",
                Scope::Cluster,
            ),
            usage_crd(provider),
        ],
    }
}

#[derive(Clone, Copy)]
enum Scope {
    Namespaced,
    Cluster,
}

struct Names<'a> {
    kind: &'a str,
    plural: &'a str,
    categories: &'a [&'a str],
}

fn crd(
    provider: &Provider,
    names: &Names<'_>,
    scope: Scope,
    schema: Value,
    columns: Value,
) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", names.plural, provider.group)},
        "spec": {
            "group": provider.group,
            "scope": match scope {
                Scope::Namespaced => "Namespaced",
                Scope::Cluster => "Cluster",
            },
            "names": {
                "kind": names.kind,
                "listKind": format!("{}List", names.kind),
                "plural": names.plural,
                "singular": names.kind.to_lowercase(),
                "categories": names.categories,
            },
            "versions": [{
                "name": provider.version,
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": columns,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

/// Takes the required fields out of an object schema: `initProvider` may have them instead, and a
/// resource that is only observed needs none (as upjet does).
fn take_required(schema: &mut Value) -> Vec<String> {
    let required = schema.as_object_mut().and_then(|s| s.remove("required"));
    let names = required.as_ref().and_then(Value::as_array);
    let text = |name: &Value| name.as_str().map(str::to_owned);
    names.into_iter().flatten().filter_map(text).collect()
}

fn describe(schema: &mut Value, text: &str) {
    if let Some(map) = schema.as_object_mut() {
        map.entry("description").or_insert_with(|| text.into());
    }
}

fn required_rules(required: &[String]) -> Vec<Value> {
    let managed = "!('*' in self.managementPolicies || 'Create' in self.managementPolicies || \
                   'Update' in self.managementPolicies)";
    let rule = |field: &String| {
        json!({
            "message": format!("spec.forProvider.{field} is a required parameter"),
            "rule": format!(
                "{managed} || has(self.forProvider.{field}) || \
                 (has(self.initProvider) && has(self.initProvider.{field}))"
            ),
        })
    };
    required.iter().map(rule).collect()
}

fn spec_schema(for_provider: Value, mut init_provider: Value, required: &[String]) -> Value {
    if let Some(map) = init_provider.as_object_mut() {
        map.insert(
            "description".into(),
            "Values for creation only: later changes of them, here or in the cloud, are no \
             difference."
                .into(),
        );
        strip_defaults(map);
    }
    let mut spec = json!({
        "type": "object",
        "description": "What is wanted of the external resource, and how to reach it.",
        "required": ["forProvider"],
        "properties": {
            "forProvider": for_provider,
            "initProvider": init_provider,
            "managementPolicies": {
                "type": "array",
                "description": "What may be done with the external resource.",
                "default": ["*"],
                "items": {
                    "type": "string",
                    "enum": ["Observe", "Create", "Update", "Delete", "LateInitialize", "*"],
                },
            },
            "providerConfigRef": {
                "type": "object",
                "description": "The configuration to connect with.",
                "default": {"kind": "ClusterProviderConfig", "name": "default"},
                "required": ["kind", "name"],
                "properties": {
                    "kind": {
                        "type": "string",
                        "description": "ProviderConfig (of this namespace) or ClusterProviderConfig.",
                    },
                    "name": {"type": "string", "description": "Name of the configuration."},
                },
            },
            "writeConnectionSecretToRef": {
                "type": "object",
                "description": "The Secret, in the same namespace, for connection details.",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "description": "Name of the Secret."},
                },
            },
        },
    });
    let rules = required_rules(required);
    if !rules.is_empty() {
        spec["x-kubernetes-validations"] = rules.into();
    }
    spec
}

/// A default in `initProvider` would look like a wish of the user.
fn strip_defaults(schema: &mut Map<String, Value>) {
    schema.remove("default");
    for value in schema.values_mut() {
        if let Some(inner) = value.as_object_mut() {
            strip_defaults(inner);
        }
    }
}

fn status_schema(at_provider: Value) -> Value {
    json!({
        "type": "object",
        "description": "What was last seen of the external resource.",
        "properties": {
            "atProvider": at_provider,
            "conditions": ecp_schema::conditions(),
            "observedGeneration": {
                "type": "integer",
                "format": "int64",
                "description": "Generation of the object that the status speaks of.",
            },
            "lastHandledReconcileAt": {
                "type": "string",
                "description": "Token of the last reconcile request that was answered.",
            },
        },
    })
}

fn config_crd<S: JsonSchema>(provider: &Provider, kind: &str, plural: &str, scope: Scope) -> Value {
    let schema = json!({
        "type": "object",
        "description": format!("How to connect to the {} cloud.", provider.name),
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": ecp_schema::from_type::<S>(),
            "status": {
                "type": "object",
                "description": "Who uses the configuration.",
                "properties": {
                    "conditions": ecp_schema::conditions(),
                    "users": {
                        "type": "integer",
                        "format": "int64",
                        "description": "Managed resources that use the configuration.",
                    },
                },
            },
        },
    });
    let columns = json!([
        {"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        {"name": "USERS", "type": "integer", "jsonPath": ".status.users"},
    ]);
    let names = Names {
        kind,
        plural,
        categories: &["crossplane", "provider", provider.name],
    };
    crd(provider, &names, scope, schema, columns)
}

fn usage_crd(provider: &Provider) -> Value {
    let text = json!({"type": "string"});
    let schema = json!({
        "type": "object",
        "description": "Records that a resource uses a configuration.",
        "required": ["providerConfigRef", "resourceRef"],
        "properties": {
            "apiVersion": text,
            "kind": text,
            "metadata": {"type": "object"},
            "providerConfigRef": {
                "type": "object",
                "required": ["kind", "name"],
                "properties": {"kind": text, "name": text},
            },
            "resourceRef": {
                "type": "object",
                "required": ["apiVersion", "kind", "name"],
                "properties": {"apiVersion": text, "kind": text, "name": text, "uid": text},
            },
        },
    });
    let columns = json!([
        {"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        {"name": "CONFIG-NAME", "type": "string", "jsonPath": ".providerConfigRef.name"},
        {"name": "RESOURCE-KIND", "type": "string", "jsonPath": ".resourceRef.kind"},
        {"name": "RESOURCE-NAME", "type": "string", "jsonPath": ".resourceRef.name"},
    ]);
    let names = Names {
        kind: "ProviderConfigUsage",
        plural: "providerconfigusages",
        categories: &["crossplane", "provider", provider.name],
    };
    let mut crd = crd(provider, &names, Scope::Namespaced, schema, columns);
    // A usage has no status.
    if let Some(version) = crd
        .pointer_mut("/spec/versions/0")
        .and_then(Value::as_object_mut)
    {
        version.remove("subresources");
    }
    crd
}
