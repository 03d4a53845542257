//! Ranges of addresses, for each IP version: a subnet's lies inside its network's, and the addresses
//! of a NIC lie inside its subnet's.

use std::net::IpAddr;

use ecp_xrds::reference::resolve;
use ipnet::IpNet;
use serde_json::Value;

use super::references::home;
use super::{Change, Faults};
use crate::cache::Entry;
use crate::error::{ApiError, ErrorKind};
use crate::facade::Facade;
use crate::fields;
use crate::path::Target;

/// The IP versions as a `cidr` names them.
const FAMILIES: [&str; 2] = ["ipv4", "ipv6"];

/// The ranges of a network or subnet for one IP version.
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

    /// Why an address cannot be one of a NIC in a subnet of these ranges, if so. One that is
    /// unspecified the cloud chooses.
    fn refuse_address(&self, address: &IpAddr) -> Option<String> {
        if self.known.is_empty() && self.open.is_empty() {
            return Some("the subnet has no range of this IP version".into());
        }
        let fits = address.is_unspecified()
            || !self.open.is_empty()
            || self.known.iter().any(|known| known.contains(address));
        let known = || self.known.iter().map(ToString::to_string);
        (!fits).then(|| {
            let known = known().collect::<Vec<_>>().join(", ");
            format!("{address} is not in the subnet, which has {known}")
        })
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
    range.addr().is_unspecified()
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
        let Some(info) = ecp_xrds::by_kind("Network") else {
            return Ok(());
        };
        let network = Target {
            info,
            network: String::new(),
            name: Some(change.target.network.clone()),
            ..change.target.clone()
        };
        let Some(network) = self.look_up(&network).await? else {
            return Ok(());
        };
        for family in FAMILIES {
            let text = cidr.get(family).and_then(Value::as_str);
            if let Some(range) = text.and_then(parse)
                && let Some(why) = ranges(&network, family).refuse(&range)
            {
                faults.push(ErrorKind::Invalid, format!("spec.cidr.{family}"), why);
            }
        }
        Ok(())
    }

    /// The addresses of a NIC must be some of its subnet's. That the subnet exists is checked with
    /// all references.
    pub(super) async fn check_addresses(
        &self,
        change: Change<'_>,
        faults: &mut Faults,
    ) -> Result<(), ApiError> {
        if change.same("addresses") && change.same("subnetRef") {
            return Ok(());
        }
        let reference = change.spec.get("subnetRef");
        let Some(subnet) = reference.and_then(|r| subnet(change.target, r)) else {
            return Ok(());
        };
        let Some(subnet) = self.look_up(&subnet).await? else {
            return Ok(());
        };
        let [v4, v6] = FAMILIES.map(|family| ranges(&subnet, family));
        for (path, value) in fields::find(change.spec, "addresses[]") {
            let Some(address) = value.as_str().and_then(|text| text.parse::<IpAddr>().ok()) else {
                continue;
            };
            let ranges = if address.is_ipv4() { &v4 } else { &v6 };
            if let Some(why) = ranges.refuse_address(&address) {
                faults.push(ErrorKind::Invalid, format!("spec.{path}"), why);
            }
        }
        Ok(())
    }
}

/// The subnet of the same tenant that a reference of a NIC means.
fn subnet(nic: &Target, reference: &Value) -> Option<Target> {
    let info = ecp_xrds::by_kind("Subnet")?;
    let reference = serde_json::from_value(reference.clone()).ok()?;
    let found = resolve(&reference, info, &home(nic)).ok()?;
    (found.tenant == nic.tenant).then(|| Target::of(&found, nic))
}

fn ranges(of: &Entry, family: &str) -> Ranges {
    let part = |name: &str| of.object().get(name).unwrap_or(&Value::Null);
    Ranges::of(part("spec"), part("status"), family)
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
    fn an_address_lies_inside_a_range_of_its_version() {
        let fits = |spec: &Value, status: &Value, address: &str| {
            let address: IpAddr = address.parse().expect("address");
            let family = if address.is_ipv4() { "ipv4" } else { "ipv6" };
            let why = Ranges::of(spec, status, family).refuse_address(&address);
            why.is_none()
        };
        let none = Value::Null;
        let spec = json!({"cidr": {"ipv4": "10.1.1.0/24", "ipv6": ""}});
        for (address, want) in [
            ("10.1.1.0", true),
            ("10.1.1.255", true),
            ("10.1.2.0", false),
            ("0.0.0.0", true),
            ("fd00::1", false),
            ("::", false),
        ] {
            assert_eq!(fits(&spec, &none, address), want, "{address}");
        }
        let open = json!({"cidr": {"ipv6": "::/64"}});
        assert!(fits(&open, &none, "fd00::1"));
        let chosen = json!({"cidr": {"ipv6": "fd00:1::/64"}});
        assert!(fits(&open, &chosen, "fd00:1::1"));
        assert!(!fits(&open, &chosen, "fd00:2::1"));
        assert!(fits(&open, &chosen, "::"));
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
