//! `<topic>.yaml` holds steps, `<topic>.want.json` what comes of them; `UPDATE=1` rewrites the
//! latter. The results were checked once against structured-merge-diff and apimachinery.

use std::collections::BTreeMap;

use ecp_patch::{ApplyError, Manager, Typing, apply, track_update};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::schema::{file, structural, yaml};

const TOPICS: [&str; 9] = [
    "atomic",
    "deduced",
    "duplicates",
    "keyed",
    "leaf",
    "managers",
    "metadata",
    "nested",
    "sets",
];

#[derive(Deserialize)]
struct Case {
    name: String,
    steps: Vec<Step>,
}

/// One write: an apply, an update, or a reset of ownership.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Step {
    /// Who applies.
    apply: Option<String>,
    /// Who updates: the object replaces all but the `managedFields`.
    update: Option<String>,
    /// Who updates with this `managedFields`.
    managed_fields: Option<Value>,
    #[serde(default)]
    force: bool,
    #[serde(default)]
    subresource: String,
    #[serde(default = "first_version")]
    version: String,
    #[serde(default)]
    object: Value,
}

fn first_version() -> String {
    "v1".to_owned()
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Want {
    name: String,
    /// The object without what every object has.
    object: Value,
    /// Paths by owner.
    owners: BTreeMap<String, Vec<String>>,
    /// What was refused, by step.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    refused: BTreeMap<usize, Vec<String>>,
}

fn run(case: Case, typing: Typing<'_>) -> Want {
    let mut live: Option<Value> = None;
    let mut refused = BTreeMap::new();
    for (index, step) in case.steps.into_iter().enumerate() {
        let now = format!("2026-01-01T00:00:{index:02}Z");
        let api_version = format!("test.io/{}", step.version);
        let mut object = step.object;
        if object.is_null() {
            object = json!({});
        }
        object["apiVersion"] = json!(api_version);
        object["kind"] = json!("Thing");
        let manager = |name| Manager {
            name,
            subresource: &step.subresource,
            api_version: &api_version,
            now: &now,
        };
        if let Some(name) = &step.apply {
            match apply(live.as_ref(), &object, &manager(name), step.force, typing) {
                Ok(merged) => live = Some(merged),
                Err(error) => {
                    refused.insert(index, reasons(error));
                }
            }
        } else if let Some(name) = &step.update {
            let stored = live
                .as_ref()
                .map(|live| live["metadata"]["managedFields"].clone());
            if let Some(fields) = step.managed_fields.or(stored) {
                object["metadata"]["managedFields"] = fields;
            }
            track_update(live.as_ref(), &mut object, &manager(name), typing);
            live = Some(object);
        }
    }
    let mut object = live.unwrap_or_default();
    let owners = owners(&object);
    strip(&mut object);
    Want {
        name: case.name,
        object,
        owners,
        refused,
    }
}

fn reasons(error: ApplyError) -> Vec<String> {
    match error {
        ApplyError::Conflicts(conflicts) => conflicts
            .into_iter()
            .map(|conflict| format!("{}: {}", conflict.message, conflict.field))
            .collect(),
        ApplyError::Invalid { field, reason } => vec![format!("invalid {field}: {reason}")],
    }
}

fn owners(object: &Value) -> BTreeMap<String, Vec<String>> {
    let entries = object["metadata"]["managedFields"].as_array();
    entries
        .into_iter()
        .flatten()
        .map(|entry| {
            let text = |field: &str| entry[field].as_str().unwrap_or_default();
            let owner = format!(
                "{} {} {} {}",
                text("manager"),
                text("operation"),
                text("apiVersion").trim_start_matches("test.io/"),
                text("subresource")
            );
            let mut paths = Vec::new();
            collect("", &entry["fieldsV1"], &mut paths);
            (owner.trim_end().to_owned(), paths)
        })
        .collect()
}

fn collect(prefix: &str, fields: &Value, paths: &mut Vec<String>) {
    for (name, below) in fields.as_object().into_iter().flatten() {
        if name == "." {
            paths.push(prefix.to_owned());
            continue;
        }
        let path = format!("{prefix}/{}", name.trim_start_matches("f:"));
        if below.as_object().is_some_and(serde_json::Map::is_empty) {
            paths.push(path);
        } else {
            collect(&path, below, paths);
        }
    }
}

fn strip(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    fields.remove("apiVersion");
    fields.remove("kind");
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        if metadata.is_empty() {
            fields.remove("metadata");
        }
    }
}

#[test]
fn writes_leave_the_objects_and_owners_that_the_files_say() {
    let schema = structural();
    let update = std::env::var_os("UPDATE").is_some();
    let mut count = 0;
    for topic in TOPICS {
        let typing = if topic == "deduced" {
            Typing::Deduced
        } else {
            Typing::Schema(schema.root())
        };
        let cases: Vec<Case> = serde_json::from_value(yaml(&format!("{topic}.yaml"))).expect(topic);
        let got: Vec<Want> = cases.into_iter().map(|case| run(case, typing)).collect();
        count += got.len();
        let path = file(&format!("{topic}.want.json"));
        if update {
            let text = serde_json::to_string_pretty(&got).expect("serializable") + "\n";
            std::fs::write(&path, text).expect("writable");
            continue;
        }
        let text = std::fs::read_to_string(&path).expect(topic);
        let want: Vec<Want> = serde_json::from_str(&text).expect(topic);
        assert_eq!(got.len(), want.len(), "{topic}");
        for (got, want) in got.iter().zip(&want) {
            assert_eq!(got, want, "{topic}");
        }
    }
    assert!(count >= 60, "only {count} cases");
}
