//! The status fields that only some kinds have (SECA section 2.6).
//!
//! Clients read those that are required without asking, so they are always there: what the cloud
//! has not said yet is what was asked for.

use std::borrow::Cow;

use ecp_xrds::KindInfo;
use ipnet::IpNet;
use serde_json::{Value, json};

use crate::cache::Entry;
use crate::power;
use crate::view::HIDDEN_STATUS_FIELDS;

/// Status fields that a kind always has, beside state and conditions.
pub(crate) fn required(info: &KindInfo) -> &'static [&'static str] {
    match info.kind {
        "BlockStorage" => &["sizeGB"],
        "Instance" => &["powerState"],
        "Network" => &["cidr"],
        "PublicIP" => &["ipAddress"],
        _ => &[],
    }
}

type Fields<'a> = Vec<(&'a str, Cow<'a, Value>)>;

/// The status fields of a kind, as they are shown.
pub(crate) fn fields<'a>(info: &KindInfo, entry: &'a Entry) -> Fields<'a> {
    let stored = entry.object().get("status").and_then(Value::as_object);
    let mut fields: Fields<'a> = stored
        .into_iter()
        .flatten()
        .filter(|(name, value)| !HIDDEN_STATUS_FIELDS.contains(&name.as_str()) && !value.is_null())
        .map(|(name, value)| (name.as_str(), Cow::Borrowed(value)))
        .collect();
    match info.kind {
        "BlockStorage" => default(&mut fields, "sizeGB", entry.spec("sizeGB")),
        "Instance" => show_power(&mut fields, entry),
        "Network" => {
            show_as_asked(&mut fields, "cidr", entry, same_ranges);
            let same = |has: &Value, asked: &Value| match (has.as_array(), asked.as_array()) {
                (Some(has), Some(asked)) => same_sets(has, asked),
                _ => false,
            };
            show_as_asked(&mut fields, "additionalCidrs", entry, same);
        }
        "PublicIP" => {
            default(&mut fields, "ipAddress", entry.spec("address"));
            if get(&fields, "ipAddress").is_none() {
                fields.push(("ipAddress", Cow::Owned(json!(""))));
            }
        }
        _ => {}
    }
    fields
}

fn get<'f>(fields: &'f Fields<'_>, name: &str) -> Option<&'f Value> {
    let found = fields.iter().find(|(n, _)| *n == name);
    found.map(|(_, value)| &**value)
}

fn set<'a>(fields: &mut Fields<'a>, name: &'static str, value: Cow<'a, Value>) {
    fields.retain(|(n, _)| *n != name);
    fields.push((name, value));
}

/// Shows what was asked for as long as the cloud says nothing.
fn default<'a>(fields: &mut Fields<'a>, name: &'static str, asked: Option<&'a Value>) {
    if let (None, Some(asked)) = (get(fields, name), asked) {
        fields.push((name, Cow::Borrowed(asked)));
    }
}

/// What the cloud has in other words or in another order is shown as it was asked for: clients
/// compare it with that.
fn show_as_asked<'a>(
    fields: &mut Fields<'a>,
    name: &'static str,
    entry: &'a Entry,
    same: impl Fn(&Value, &Value) -> bool,
) {
    if let Some(asked) = entry.spec(name)
        && get(fields, name).is_none_or(|has| same(has, asked))
    {
        set(fields, name, Cow::Borrowed(asked));
    }
}

/// Whether two `cidr` are the same ranges. An empty text is none.
fn same_ranges(a: &Value, b: &Value) -> bool {
    ["ipv4", "ipv6"].into_iter().all(|family| {
        let text = |cidr: &Value| {
            let text = cidr.get(family).and_then(Value::as_str).unwrap_or_default();
            match text.parse::<IpNet>() {
                Ok(range) => range.trunc().to_string(),
                Err(_) => text.to_owned(),
            }
        };
        text(a) == text(b)
    })
}

fn same_sets(a: &[Value], b: &[Value]) -> bool {
    let within = |a: &[Value], b: &[Value]| a.iter().all(|x| b.iter().any(|y| same_ranges(x, y)));
    a.len() == b.len() && within(a, b) && within(b, a)
}

/// The power is the one asked for from the moment it is asked for, until the control plane is done
/// with that; then it is what the machine has.
fn show_power(fields: &mut Fields<'_>, entry: &Entry) {
    let asked = if power::is_on(entry.spec("power")) {
        "on"
    } else {
        "off"
    };
    let has = get(fields, "powerState").and_then(Value::as_str);
    let shown = match has {
        Some(has @ ("on" | "off")) if entry.settled() => has.to_owned(),
        _ => asked.to_owned(),
    };
    if has != Some(shown.as_str()) {
        // Since when it has another power says nothing of this one.
        fields.retain(|(name, _)| *name != "powerStateSince");
    }
    set(fields, "powerState", Cow::Owned(json!(shown)));
}

#[cfg(test)]
mod tests {
    use ecp_xrds::{by_kind, intent_digest};
    use serde_json::Map;

    use super::*;

    /// The fields shown of an object; its status speaks of its intent if that is `seen`.
    fn shown(kind: &str, spec: Value, mut status: Value, seen: bool) -> Value {
        let info = by_kind(kind).expect("kind");
        let digest = match seen {
            true => intent_digest(&json!({"spec": spec})),
            false => "other".into(),
        };
        status["intent"] = json!({"digest": digest});
        let entry = Entry::new(
            info,
            json!({"metadata": {}, "spec": spec, "status": status}),
        );
        let fields = fields(info, &entry);
        for name in required(info) {
            assert!(get(&fields, name).is_some(), "{kind}.{name}");
        }
        let map: Map<String, Value> = fields
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.into_owned()))
            .collect();
        Value::Object(map)
    }

    #[test]
    fn what_the_cloud_has_not_said_is_what_was_asked_for() {
        let cidr = json!({"ipv4": "10.0.0.0/16", "ipv6": ""});
        let more = json!([{"ipv4": "10.9.0.0/24"}, {"ipv4": "10.8.0.0/24"}]);
        let more = &more;
        let spec = json!({"cidr": cidr, "additionalCidrs": more});
        let nothing = || json!({"state": "pending", "message": "waiting"});
        assert_eq!(shown("Network", spec.clone(), nothing(), false), spec);
        let said = json!({
            "cidr": {"ipv4": "10.7.0.0/16"},
            "additionalCidrs": [{"ipv4": "10.8.0.0/24"}, {"ipv4": "10.9.0.0/24"}],
        });
        let fields = shown("Network", spec.clone(), said.clone(), true);
        assert_eq!(fields["cidr"], said["cidr"]);
        assert_eq!(&fields["additionalCidrs"], more);
        let same = json!({"cidr": {"ipv4": "10.0.0.0/16"}});
        assert_eq!(shown("Network", spec.clone(), same, true), spec);
        let less = json!({"additionalCidrs": [{"ipv4": "10.8.0.0/24"}]});
        let fields = shown("Network", spec, less.clone(), false);
        assert_eq!(fields["additionalCidrs"], less["additionalCidrs"]);

        let disk = json!({"sizeGB": 20});
        assert_eq!(shown("BlockStorage", disk.clone(), nothing(), false), disk);
        assert_eq!(
            shown("BlockStorage", disk, json!({"sizeGB": 10}), false),
            json!({"sizeGB": 10})
        );

        let ip = |spec, status| shown("PublicIP", spec, status, true)["ipAddress"].clone();
        assert_eq!(ip(json!({}), nothing()), "");
        assert_eq!(ip(json!({"address": "1.2.3.4"}), nothing()), "1.2.3.4");
        assert_eq!(ip(json!({}), json!({"ipAddress": "5.6.7.8"})), "5.6.7.8");
    }

    #[test]
    fn power_is_the_intents_until_the_control_plane_is_done() {
        let on = json!({"power": {"state": "on"}});
        let status = |state: &str, power: &str| {
            json!({"state": state, "powerState": power,
                "powerStateSince": "2026-11-30T10:00:00Z"})
        };
        let since = json!("2026-11-30T10:00:00Z");
        for (spec, status, seen, power, has_since) in [
            (json!({}), json!({}), false, "off", false),
            (on.clone(), json!({}), false, "on", false),
            (on.clone(), status("active", "off"), false, "on", false),
            (on.clone(), status("updating", "off"), true, "on", false),
            (on.clone(), status("active", "on"), true, "on", true),
            (on.clone(), status("error", "off"), true, "off", true),
            (json!({}), status("active", "on"), false, "off", false),
            (json!({}), status("active", "off"), true, "off", true),
        ] {
            let fields = shown("Instance", spec, status.clone(), seen);
            assert_eq!(fields["powerState"], power, "{status} {seen}");
            let want = has_since.then_some(&since);
            assert_eq!(fields.get("powerStateSince"), want, "{status} {seen}");
        }
    }
}
