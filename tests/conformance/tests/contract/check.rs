//! What every document must say of its resource.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::{Kind, Scope};
use crate::site::Site;
use crate::world::REGIONS;

/// Conditions after a creation, newest first (contract, section 3.3).
pub(crate) const CREATED: [&str; 3] = ["active", "creating", "pending"];

/// Conditions after a creation and some accepted changes.
pub(crate) fn changed(times: usize) -> Vec<&'static str> {
    let mut states = ["active", "updating"].repeat(times);
    states.extend(CREATED);
    states.truncate(32);
    states
}

/// The conditions are exactly these, newest first, and their times go one way.
pub(crate) fn conditions(document: &Value, states: &[&str]) {
    let conditions = document["status"]["conditions"].as_array().unwrap();
    let found: Vec<_> = conditions.iter().map(|c| c["state"].clone()).collect();
    assert_eq!(found, states, "{document:#}");
    assert_eq!(
        document["status"]["state"],
        states.first().copied().unwrap(),
        "{document:#}"
    );
    let times: Vec<Timestamp> = conditions
        .iter()
        .map(|c| time(&c["lastTransitionAt"]))
        .collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "{document:#}");
}

/// A time of this decade, thus not the zero value of some language.
pub(crate) fn time(value: &Value) -> Timestamp {
    let time: Timestamp = value.as_str().unwrap_or_default().parse().unwrap();
    assert!(time > "2020-01-01T00:00:00Z".parse().unwrap(), "{time}");
    time
}

/// What identifies the resource, and what the server keeps of it (contract, section 2.2).
pub(crate) fn metadata(site: &Site, kind: &Kind, name: &str, document: &Value, verb: &str) {
    let metadata = &document["metadata"];
    let place = match kind.scope {
        Scope::Network => format!("networks/{}/", site.network),
        Scope::Workspace | Scope::Tenant => String::new(),
    };
    let mut wanted = json!({
        "name": name,
        "apiVersion": "v1",
        "kind": kind.name,
        "provider": format!("{}/v1", kind.provider),
        "resource": format!("{place}{}/{name}", kind.collection),
        "ref": site.urn(kind, name),
        "verb": verb,
        "tenant": site.tenant,
    });
    if kind.scope >= Scope::Workspace {
        wanted["workspace"] = json!(site.workspace);
    }
    if kind.scope >= Scope::Network {
        wanted["network"] = json!(site.network);
    }
    if kind.regional() {
        wanted["region"] = json!(REGIONS[0]);
    }
    let mut found = metadata.clone();
    for own in [
        "createdAt",
        "lastModifiedAt",
        "resourceVersion",
        "deletedAt",
    ] {
        found.as_object_mut().unwrap().remove(own);
    }
    assert_eq!(found, wanted);
    assert!(time(&metadata["createdAt"]) <= time(&metadata["lastModifiedAt"]));
    assert!(metadata.get("deletedAt").is_none(), "{document:#}");
}

/// What was sent is in the answer as it was sent: nothing added, nothing changed (section 3.4).
pub(crate) fn echo(document: &Value, body: &Value) {
    for field in ["labels", "annotations", "extensions"] {
        let empty = |v: &Value| v.is_null() || *v == json!({});
        let (found, sent) = (&document[field], &body[field]);
        assert!(
            found == sent || empty(found) && empty(sent),
            "{field}: {document:#}"
        );
    }
    let mut spec = document["spec"].clone();
    let sent = &body["spec"];
    // Defaults may be filled in; nothing else.
    for (field, default) in [
        ("boot", json!("UEFI")),
        ("initializer", json!("none")),
        ("egressOnly", json!(false)),
    ] {
        if sent.get(field).is_none() && spec[field] == default {
            spec.as_object_mut().unwrap().remove(field);
        }
    }
    without_default_bus(&mut spec["bootVolume"], &sent["bootVolume"]);
    let volumes = spec["dataVolumes"].as_array_mut().into_iter().flatten();
    for (n, volume) in volumes.enumerate() {
        without_default_bus(volume, &sent["dataVolumes"][n]);
    }
    if let Some(spec) = spec.as_object_mut() {
        spec.retain(|_, value| !value.is_null());
    }
    assert_eq!(spec, *sent);
}

fn without_default_bus(volume: &mut Value, sent: &Value) {
    if sent.get("type").is_none()
        && let Some(volume) = volume.as_object_mut()
        && volume.get("type") == Some(&json!("virtio"))
    {
        volume.remove("type");
    }
}
