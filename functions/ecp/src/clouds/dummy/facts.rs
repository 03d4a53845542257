//! What the managed resources of the dummy cloud say.

use ecp_xrds::KindInfo;
use serde_json::{Map, Value};

use crate::clouds::{Facts, Observed, Part};
use crate::managed::at_provider;

pub(super) fn facts(kind: &KindInfo, observed: &Observed<'_>) -> Facts {
    let get = |key: &str| observed.get(key).copied();
    match kind.kind {
        "BlockStorage" => Facts {
            attached_to: get("volume").and_then(attached_to),
            ..same(get("volume"), &["sizeGB"])
        },
        "Image" => same(get("image"), &["sizeMB"]),
        "Network" => same(get("network"), &["cidr", "additionalCidrs"]),
        "Subnet" => Facts {
            uses: ids(get("subnet"), "routeTable"),
            ..same(get("subnet"), &["cidr"])
        },
        "RouteTable" => Facts {
            parts: get("route-table").map(routes).unwrap_or_default(),
            ..Facts::default()
        },
        "NIC" => Facts {
            uses: ids(get("interface"), "publicAddresses"),
            ..same(get("interface"), &["addresses", "macAddress"])
        },
        "PublicIP" => Facts {
            attached_to: get("address").and_then(attached_to),
            fields: get("address")
                .and_then(|o| at_provider(o, "address"))
                .map(|address| Map::from_iter([("ipAddress".to_owned(), address.clone())]))
                .unwrap_or_default(),
            ..Facts::default()
        },
        "SecurityGroup" => Facts {
            parts: get("group")
                .map(|o| list(o, "rules").iter().map(part).collect())
                .unwrap_or_default(),
            ..Facts::default()
        },
        "Instance" => same(get("machine"), &["powerState", "powerStateSince"]),
        _ => Facts::default(),
    }
}

/// Fields that are called the same here and there. Empty lists are left out.
fn same(observed: Option<&Value>, fields: &[&str]) -> Facts {
    let empty = |v: &&Value| v.as_array().is_some_and(Vec::is_empty);
    let fields = fields.iter().filter_map(|field| {
        let value = at_provider(observed?, field).filter(|v| !empty(v))?;
        Some(((*field).to_owned(), value.clone()))
    });
    Facts {
        fields: fields.collect(),
        ..Facts::default()
    }
}

/// The name for people is the SECA name, since that is what it was made with.
fn attached_to(observed: &Value) -> Option<String> {
    at_provider(observed, "attachedTo")?
        .get("displayName")?
        .as_str()
        .map(Into::into)
}

/// A field that is an id or a list of them.
fn ids(observed: Option<&Value>, field: &str) -> Vec<String> {
    let text = |v: &Value| v.as_str().map(str::to_owned);
    match observed.and_then(|o| at_provider(o, field)) {
        Some(Value::Array(items)) => items.iter().filter_map(text).collect(),
        Some(one) => text(one).into_iter().collect(),
        None => Vec::new(),
    }
}

fn list<'a>(observed: &'a Value, field: &str) -> &'a [Value] {
    at_provider(observed, field)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// The routes that are wanted now: what the cloud says of others is old.
fn routes(observed: &Value) -> Vec<Part> {
    let wanted = observed
        .pointer("/spec/forProvider/routes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let seen = list(observed, "routes");
    wanted
        .enumerate()
        .map(|(n, wanted)| match seen.get(n) {
            Some(seen) if seen.get("destination") == wanted.get("destination") => part(seen),
            Some(_) | None => Part {
                active: false,
                reason: None,
            },
        })
        .collect()
}

fn part(seen: &Value) -> Part {
    let text = |field| seen.get(field).and_then(Value::as_str);
    Part {
        active: text("state") == Some("active"),
        reason: text("reason").map(Into::into),
    }
}
