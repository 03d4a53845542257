//! CustomResourceDefinitions: validation, acceptance of names, serving, deletion.
//!
//! A definition is established in the write that creates it: whether its names are free is a
//! function of the cluster's other definitions. It is served once the registry has taken it, which
//! the write waits for.

mod finalize;
mod follow;
mod names;
mod validate;

use ecp_meta::condition::{self, Condition};
use ecp_meta::object;
use ecp_store::{Expect, ListRequest, Op};
use serde_json::{Map, Value, json};

pub(crate) use finalize::UnderWay;
pub(crate) use follow::start;
pub(crate) use validate::validate;

use crate::handlers::{Place, commit_error, store_error, time};
use crate::limits::SWEEP_BATCH;
use crate::registry::compile_storage;
use crate::status::Status;
use crate::storage;

/// Fills in the defaults of a definition (apiextensions `v1/defaults.go`) and keeps what only the
/// server writes.
pub(crate) fn prepare(crd: &mut Value, old: Option<&Value>) {
    let Some(map) = crd.as_object_mut() else {
        return;
    };
    if let Some(status) = old.and_then(|o| o.get("status")) {
        map.insert("status".into(), status.clone());
    }
    let Some(spec) = map.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    spec.entry("conversion")
        .or_insert_with(|| json!({"strategy": "None"}));
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let kind = names
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        fill(names, "singular", || kind.to_lowercase());
        fill(names, "listKind", || format!("{kind}List"));
    }
}

fn fill(map: &mut Map<String, Value>, field: &str, value: impl FnOnce() -> String) {
    let empty = map
        .get(field)
        .is_none_or(|v| v.is_null() || v.as_str() == Some(""));
    if empty {
        map.insert(field.into(), value().into());
    }
}

/// Decides on the names of a definition and writes its status.
///
/// # Errors
/// The store failed.
pub(crate) async fn admit(place: &Place<'_>, crd: &mut Value) -> Result<(), Status> {
    let request = ListRequest {
        prefix: storage::prefix(place.resource, Some(place.cluster), None),
        ..ListRequest::default()
    };
    let found = place
        .server
        .store
        .list(request)
        .await
        .map_err(store_error)?;
    let others: Vec<Value> = found
        .entries
        .iter()
        .filter(|e| {
            storage::parse_key(&e.key).is_some_and(|k| {
                k.name != object::name(crd) && same_group(k.name, object::name(crd))
            })
        })
        .map(|e| storage::decode(place.resource, e))
        .collect();
    establish(crd, &others, &time(place.server.now()));
    Ok(())
}

/// Removes what an earlier definition of the same name left behind: an object created at the very
/// moment its definition went must not come back with the next one.
///
/// # Errors
/// The store failed.
pub(crate) async fn sweep(place: &Place<'_>, crd: &Value) -> Result<(), Status> {
    let Some(resource) = compile_storage(crd) else {
        return Ok(());
    };
    loop {
        let request = ListRequest {
            prefix: storage::prefix(&resource, Some(place.cluster), None),
            limit: SWEEP_BATCH,
            ..ListRequest::default()
        };
        let found = place
            .server
            .store
            .list(request)
            .await
            .map_err(store_error)?;
        if found.entries.is_empty() {
            return Ok(());
        }
        let ops = found
            .entries
            .into_iter()
            .map(|e| Op::Delete {
                key: e.key,
                expect: Expect::Any,
            })
            .collect();
        place.server.store.commit(ops).await.map_err(commit_error)?;
    }
}

/// Whether two definitions, named `<plural>.<group>`, are of one group.
fn same_group(a: &str, b: &str) -> bool {
    let group = |name: &str| name.split_once('.').map(|(_, group)| group.to_owned());
    group(a) == group(b)
}

/// Writes the status of a definition, given the other ones of its group.
fn establish(crd: &mut Value, others: &[Value], now: &str) {
    let decision = names::decide(crd, others);
    let mut conditions = condition::of(crd);
    let accepted = decision.conflict.is_none();
    let names_accepted = match &decision.conflict {
        None => Condition::new(
            "NamesAccepted",
            true,
            "NoConflicts",
            "no conflicts found",
            now,
        ),
        Some(conflict) => Condition::new(
            "NamesAccepted",
            false,
            conflict.reason,
            &conflict.message,
            now,
        ),
    };
    let was_established = condition::is_true(crd, "Established");
    let established = if accepted {
        Condition::new(
            "Established",
            true,
            "InitialNamesAccepted",
            "the initial names have been accepted",
            now,
        )
    } else {
        Condition::new(
            "Established",
            false,
            "NotAccepted",
            "not all names are accepted",
            now,
        )
    };
    condition::set(&mut conditions, names_accepted);
    // Once established, a definition stays so: its objects must not vanish with a name conflict.
    if !was_established {
        condition::set(&mut conditions, established);
    }
    let stored = stored_versions(crd);
    let status = object::entry_map(crd, "status");
    status.insert(
        "conditions".into(),
        serde_json::to_value(conditions).unwrap_or_default(),
    );
    status.insert("acceptedNames".into(), decision.accepted);
    status.insert("storedVersions".into(), stored.into());
}

/// The versions that objects may be stored with: it only ever grows here.
fn stored_versions(crd: &Value) -> Vec<String> {
    let mut stored: Vec<String> = crd
        .pointer("/status/storedVersions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|v| v.as_str().map(Into::into))
        .collect();
    let storage = crd
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .find(|v| v.get("storage").and_then(Value::as_bool) == Some(true))
        .and_then(|v| v.get("name")?.as_str());
    if let Some(storage) = storage
        && !stored.iter().any(|v| v == storage)
    {
        stored.push(storage.into());
    }
    stored
}

/// Marks a definition as going: its objects are deleted first.
pub(crate) fn mark_terminating(crd: &mut Value, now: &str) {
    let mut conditions = condition::of(crd);
    condition::set(
        &mut conditions,
        Condition::new(
            "Terminating",
            true,
            "InstanceDeletionInProgress",
            "CustomResource deletion is in progress",
            now,
        ),
    );
    object::entry_map(crd, "status").insert(
        "conditions".into(),
        serde_json::to_value(conditions).unwrap_or_default(),
    );
}
