//! XRDs of every kind.

use serde_json::{Value, json};

use crate::flavour::Flavour;
use crate::kinds::{Column, KindInfo, Scope, VERSION, kinds};
use crate::schema::version_schema;

/// Name of the Composition that an XR of a kind gets when it asks for none.
pub(crate) fn default_composition(info: &KindInfo) -> String {
    format!("{}.{}", info.plural, info.group)
}

/// The XRDs of every kind in a flavour, in the order of [`kinds`].
pub fn xrds(flavour: Flavour) -> Vec<Value> {
    kinds().iter().map(|info| xrd(info, flavour)).collect()
}

fn xrd(info: &KindInfo, flavour: Flavour) -> Value {
    let api_version = match flavour {
        Flavour::V2 => "apiextensions.crossplane.io/v2",
        Flavour::Claims => "apiextensions.crossplane.io/v1",
    };
    let plural = info.xr_plural(flavour);
    let claimed = flavour == Flavour::Claims && info.has_claim();
    let mut spec = json!({
        "group": info.group,
        "scope": scope(info, flavour),
        "names": names(info, &plural, &info.xr_kind(flavour), !claimed),
        "defaultCompositionRef": {"name": default_composition(info)},
        "versions": [version(info)],
    });
    if claimed {
        spec["claimNames"] = names(info, info.plural, info.kind, true);
        // A claim that is gone must mean that nothing of it is left in the cloud.
        spec["defaultCompositeDeletePolicy"] = json!("Foreground");
    }
    json!({
        "apiVersion": api_version,
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": format!("{plural}.{}", info.group)},
        "spec": spec,
    })
}

/// The scope is always written: what a missing one means depends on the `apiVersion` posted
/// (and Crossplane 1.20, which has no scope, treats all as `LegacyCluster`).
fn scope(info: &KindInfo, flavour: Flavour) -> &'static str {
    match (flavour, info.scope) {
        (Flavour::Claims, _) => "LegacyCluster",
        (Flavour::V2, Scope::Cluster) => "Cluster",
        (Flavour::V2, Scope::Tenant | Scope::Workspace | Scope::Network) => "Namespaced",
    }
}

/// Only what users touch has short names and the category: the XR behind a claim has neither, so
/// that `kubectl get seca` shows each resource once.
fn names(info: &KindInfo, plural: &str, kind: &str, for_users: bool) -> Value {
    let mut names = json!({
        "kind": kind,
        "listKind": format!("{kind}List"),
        "plural": plural,
        "singular": kind.to_ascii_lowercase(),
    });
    if for_users {
        names["categories"] = json!(["seca"]);
        names["shortNames"] = json!(info.short_names);
    }
    names
}

fn version(info: &KindInfo) -> Value {
    json!({
        "name": VERSION,
        "served": true,
        "referenceable": true,
        "additionalPrinterColumns": columns(info),
        "schema": {"openAPIV3Schema": version_schema(info)},
    })
}

fn columns(info: &KindInfo) -> Vec<Value> {
    const STATE: Column = Column {
        name: "State",
        kind: "string",
        path: ".status.state",
        description: "SECA state.",
        priority: 0,
    };
    const MESSAGE: Column = Column {
        name: "Message",
        kind: "string",
        path: ".status.message",
        description: "What it waits for, or why the cloud refused.",
        priority: 1,
    };
    [&STATE]
        .into_iter()
        .chain(info.columns)
        .chain([&MESSAGE])
        .map(|c| {
            let mut column = json!({
                "name": c.name.to_ascii_uppercase(),
                "type": c.kind,
                "jsonPath": c.path,
                "description": c.description,
            });
            if c.priority > 0 {
                column["priority"] = c.priority.into();
            }
            column
        })
        .collect()
}
