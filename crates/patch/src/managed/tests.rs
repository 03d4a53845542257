use serde_json::json;

use super::*;

fn entry(manager: &str, operation: &str, version: &str, time: &str, field: &str) -> Value {
    let name = format!("f:{field}");
    json!({
        "manager": manager, "operation": operation, "apiVersion": version, "time": time,
        "fieldsType": "FieldsV1", "fieldsV1": {name: {}},
    })
}

fn managers(managed: &Managed<'_>) -> Vec<String> {
    managed
        .encode()
        .and_then(|entries| entries.as_array().cloned())
        .unwrap_or_default()
        .iter()
        .map(|entry| entry["manager"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn entries_are_sorted_by_operation_time_and_manager() {
    let entries = json!([
        entry("d", "Update", "v1", "2026-01-01T00:00:00Z", "a"),
        entry("c", "Apply", "v1", "2026-01-01T00:00:02Z", "a"),
        entry("b", "Apply", "v1", "2026-01-01T00:00:01Z", "a"),
        entry("a", "Apply", "v1", "2026-01-01T00:00:02Z", "a"),
    ]);
    let managed = Managed::decode(Some(&entries)).expect("valid");
    assert_eq!(managers(&managed), ["b", "a", "c", "d"]);
}

#[test]
fn times_become_utc_in_whole_seconds() {
    for (sent, stored) in [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T02:00:00+02:00", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00.75Z", "2026-01-01T00:00:00Z"),
    ] {
        let entries = json!([entry("a", "Update", "v1", sent, "x")]);
        let encoded = Managed::decode(Some(&entries)).expect("valid").encode();
        assert_eq!(
            encoded,
            Some(json!([entry("a", "Update", "v1", stored, "x")]))
        );
    }
}

#[test]
fn what_is_not_managed_fields_is_refused() {
    let good = entry("a", "Update", "v1", "2026-01-01T00:00:00Z", "x");
    let with = |field: &str, value: Value| {
        let mut entry = good.clone();
        entry[field] = value;
        json!([entry])
    };
    assert!(Managed::decode(Some(&json!([good]))).is_ok());
    for entries in [
        json!({}),
        json!([1]),
        with("operation", json!("Patch")),
        with("apiVersion", json!("")),
        with("fieldsType", json!("FieldsV2")),
        with("fieldsType", Value::Null),
        with("fieldsV1", json!({"x": {}})),
        with("fieldsV1", json!([])),
        with("time", json!("yesterday")),
        with("manager", json!(1)),
    ] {
        assert!(Managed::decode(Some(&entries)).is_err(), "{entries}");
    }
}

#[test]
fn the_oldest_updates_are_folded_once_there_are_too_many() {
    let mut entries: Vec<Value> = (0..12)
        .map(|n| {
            let time = format!("2026-01-01T00:00:{n:02}Z");
            entry(&format!("m{n:02}"), "Update", "v1", &time, &format!("x{n}"))
        })
        .collect();
    entries.push(entry("z", "Apply", "v1", "2026-01-01T00:00:00Z", "y"));
    let entries = Value::Array(entries);
    let mut managed = Managed::decode(Some(&entries)).expect("valid");
    managed.cap_updates();
    let names = managers(&managed);
    assert_eq!(names.len(), UPDATE_MANAGERS_MAX + 1);
    assert_eq!(names[..3], ["z", "ancient-changes", "m03"]);
    let encoded = managed.encode().expect("owners");
    assert_eq!(
        encoded[1]["fieldsV1"],
        json!({"f:x0": {}, "f:x1": {}, "f:x2": {}})
    );
    assert_eq!(encoded[1]["time"], "2026-01-01T00:00:02Z");
    // And once more, into the same entry.
    let mut entries = encoded.as_array().cloned().expect("a list");
    entries.push(entry("new", "Update", "v1", "2026-01-01T00:01:00Z", "n"));
    let entries = Value::Array(entries);
    let mut managed = Managed::decode(Some(&entries)).expect("valid");
    managed.cap_updates();
    let encoded = managed.encode().expect("owners");
    assert_eq!(encoded[1]["manager"], "ancient-changes");
    assert_eq!(encoded[1]["fieldsV1"].as_object().map(Map::len), Some(4));
}

#[test]
fn updates_of_versions_of_their_own_are_not_folded() {
    let entries: Vec<Value> = (0..12)
        .map(|n| entry("m", "Update", &format!("v{n}"), "2026-01-01T00:00:00Z", "x"))
        .collect();
    let entries = Value::Array(entries);
    let mut managed = Managed::decode(Some(&entries)).expect("valid");
    managed.cap_updates();
    assert_eq!(managed.owners.len(), 12);
}
