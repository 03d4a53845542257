//! Ranges of addresses: a subnet's lies inside its network's, for each IP version.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;

use super::{Change, Faults};
use crate::cache::Entry;
use crate::error::{ApiError, ErrorKind};
use crate::facade::Facade;
use crate::path::Target;

/// The IP versions as a `cidr` names them.
const FAMILIES: [&str; 2] = ["ipv4", "ipv6"];

/// The ranges of a network for one IP version.
#[derive(Debug, Default, PartialEq)]
struct Ranges {
    /// Those it has.
    known: Vec<IpNet>,
    /// Lengths of the prefixes of those that the cloud chooses, as long as it has not.
    open: Vec<u8>,
}

impl Ranges {
    /// The ranges that an intent and a status speak of.
    fn of(spec: &Value, status: &Value, family: &str) -> Self {
        let mut ranges = Self::default();
        let asked = texts(spec, family).into_iter().flat_map(parse);
        let (open, known): (Vec<_>, Vec<_>) = asked.partition(is_open);
        ranges.known = known;
        let chosen: Vec<_> = (texts(status, family).into_iter())
            .flat_map(parse)
            .filter(|range| !is_open(range))
            .collect();
        ranges.open = open.iter().map(IpNet::prefix_len).collect();
        let own = ranges.known.clone();
        let is_new = |range: &&IpNet| !own.contains(range);
        // What the cloud chose answers what was open; when it has answered all, none is.
        let chosen: Vec<_> = chosen.iter().filter(is_new).copied().collect();
        if chosen.len() >= ranges.open.len() {
            ranges.open.clear();
        }
        ranges.known.extend(chosen);
        ranges
    }

    /// Why a range cannot be one of a subnet, if so.
    fn refuse(&self, range: &IpNet) -> Option<String> {
        let (len, open) = (range.prefix_len(), is_open(range));
        let all = || {
            let known = self.known.iter().map(ToString::to_string);
            let open = self.open.iter().map(|len| format!("one of /{len}"));
            known.chain(open).collect::<Vec<_>>().join(", ")
        };
        if self.known.is_empty() && self.open.is_empty() {
            return Some("the network has no range of this IP version".into());
        }
        let fits = if open {
            let mut lens = self
                .known
                .iter()
                .map(IpNet::prefix_len)
                .chain(self.open.clone());
            lens.any(|network| network <= len)
        } else {
            self.known.iter().any(|known| known.contains(range))
                || self.open.iter().any(|network| *network <= len)
        };
        (!fits).then(|| format!("{range} does not fit into the network, which has {}", all()))
    }
}

/// The ranges of one IP version in the `cidr` and `additionalCidrs` of a spec or status.
fn texts<'a>(of: &'a Value, family: &str) -> Vec<&'a str> {
    let more = of.get("additionalCidrs").and_then(Value::as_array);
    of.get("cidr")
        .into_iter()
        .chain(more.into_iter().flatten())
        .filter_map(|cidr| cidr.get(family)?.as_str())
        .collect()
}

/// The range of a text; an empty one is none. What is no range the schema refuses.
fn parse(text: &str) -> Option<IpNet> {
    text.parse::<IpNet>().ok().map(|range| range.trunc())
}

/// Whether the cloud is to choose the range (section 2.6).
fn is_open(range: &IpNet) -> bool {
    match range.addr() {
        IpAddr::V4(address) => address.is_unspecified(),
        IpAddr::V6(address) => address.is_unspecified(),
    }
}

impl Facade {
    /// The addresses of a subnet must be some of its network's.
    pub(super) async fn check_subnet(
        &self,
        change: Change<'_>,
        faults: &mut Faults,
    ) -> Result<(), ApiError> {
        let (Some(cidr), false) = (change.spec.get("cidr"), change.same("cidr")) else {
            return Ok(());
        };
        let Some(network) = self.network_of(change.target).await? else {
            return Ok(());
        };
        let part = |name: &str| network.object().get(name).cloned().unwrap_or_default();
        let (spec, status) = (part("spec"), part("status"));
        for family in FAMILIES {
            let text = cidr.get(family).and_then(Value::as_str);
            if let Some(range) = text.and_then(parse)
                && let Some(why) = Ranges::of(&spec, &status, family).refuse(&range)
            {
                faults.push(ErrorKind::Invalid, format!("spec.cidr.{family}"), why);
            }
        }
        Ok(())
    }

    /// The network that a target is in.
    async fn network_of(&self, target: &Target) -> Result<Option<std::sync::Arc<Entry>>, ApiError> {
        let Some(info) = ecp_xrds::by_kind("Network") else {
            return Ok(None);
        };
        let network = Target {
            info,
            network: String::new(),
            name: Some(target.network.clone()),
            ..target.clone()
        };
        match self.namespace_of(&network).await? {
            Some(namespace) => self.find(&network, &namespace, &target.network).await,
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(spec: &Value, status: &Value, family: &str, subnet: &str) -> Option<String> {
        let range = parse(subnet).expect("range");
        Ranges::of(spec, status, family).refuse(&range)
    }

    #[test]
    fn a_subnet_lies_inside_one_range_of_its_version() {
        let spec = json!({
            "cidr": {"ipv4": "10.1.0.0/16", "ipv6": ""},
            "additionalCidrs": [{"ipv4": "192.168.0.0/24"}, {"ipv6": "fd00:1::/56"}],
        });
        for (family, subnet, fits) in [
            ("ipv4", "10.1.7.0/24", true),
            ("ipv4", "10.1.0.0/16", true),
            ("ipv4", "192.168.0.128/25", true),
            ("ipv4", "192.168.99.0/24", false),
            ("ipv4", "10.0.0.0/8", false),
            ("ipv4", "0.0.0.0/24", true),
            ("ipv4", "0.0.0.0/8", false),
            ("ipv6", "fd00:1::/64", true),
            ("ipv6", "fd00:2::/64", false),
            ("ipv6", "::/64", true),
        ] {
            let why = refusal(&spec, &Value::Null, family, subnet);
            assert_eq!(why.is_none(), fits, "{subnet}: {why:?}");
        }
        let only = json!({"cidr": {"ipv4": "10.1.0.0/16"}});
        assert_eq!(
            refusal(&only, &Value::Null, "ipv6", "fd00::/64").as_deref(),
            Some("the network has no range of this IP version")
        );
        assert_eq!(
            refusal(&only, &Value::Null, "ipv4", "10.2.0.0/24").as_deref(),
            Some("10.2.0.0/24 does not fit into the network, which has 10.1.0.0/16")
        );
    }

    #[test]
    fn what_the_cloud_chose_counts_once_it_has() {
        let spec = json!({"cidr": {"ipv4": "0.0.0.0/16"}});
        let fits = |status: &Value, subnet| refusal(&spec, status, "ipv4", subnet).is_none();
        // Nothing is known yet but the size.
        assert!(fits(&Value::Null, "10.9.0.0/24"));
        assert!(!fits(&Value::Null, "10.0.0.0/8"));
        let chosen = json!({"cidr": {"ipv4": "10.7.0.0/16"}});
        assert!(fits(&chosen, "10.7.1.0/24"));
        assert!(!fits(&chosen, "10.9.0.0/24"));
        assert!(fits(&chosen, "0.0.0.0/24"));
        // A status that only repeats the question is no answer.
        assert!(fits(&spec, "10.9.0.0/24"));
    }
}
