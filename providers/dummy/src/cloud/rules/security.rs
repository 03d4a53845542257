//! Security groups and their rules.

use std::net::IpAddr;

use ipnet::IpNet;

use super::{Ask, Rules, require};
use crate::cloud::error::CloudError;
use crate::cloud::object::Kind;
use crate::cloud::specs::{Protocol, Rule, SecurityGroupSpec, SecurityRuleSpec};
use crate::limits::{GROUP_RULES_MAX, RULE_PORTS_MAX, RULE_SOURCES_MAX};

/// What a source may be.
const SOURCES: [Kind; 7] = [
    Kind::Gateway,
    Kind::Machine,
    Kind::NetworkInterface,
    Kind::PublicAddress,
    Kind::SecurityGroup,
    Kind::Subnet,
    Kind::Network,
];

impl Rules for SecurityGroupSpec {
    fn references(&self) -> Vec<&str> {
        let own = self.rules.iter().flat_map(|rule| &rule.sources);
        let all = self.project.iter().chain(&self.security_rules).chain(own);
        all.map(String::as_str).collect()
    }

    fn check(&self, ask: &Ask<'_>, old: Option<&Self>) -> Result<(), CloudError> {
        ask.project(&self.project, old.map(|old| &old.project))?;
        let count = self.rules.len().max(self.security_rules.len());
        require(count <= GROUP_RULES_MAX, || {
            format!("at most {GROUP_RULES_MAX} rules are possible, not {count}")
        })?;
        for id in &self.security_rules {
            ask.tolerates(&[Kind::SecurityRule], id)?;
        }
        self.rules.iter().try_for_each(|rule| check_rule(ask, rule))
    }
}

impl Rules for SecurityRuleSpec {
    fn references(&self) -> Vec<&str> {
        let all = self.project.iter().chain(&self.rule.sources);
        all.map(String::as_str).collect()
    }

    fn check(&self, ask: &Ask<'_>, old: Option<&Self>) -> Result<(), CloudError> {
        ask.project(&self.project, old.map(|old| &old.project))?;
        check_rule(ask, &self.rule)
    }
}

impl Rule {
    /// Ids of the objects that are its sources.
    pub(in crate::cloud) fn source_ids(&self) -> impl Iterator<Item = &str> {
        let is_id = |text: &&str| text.parse::<IpAddr>().is_err() && text.parse::<IpNet>().is_err();
        self.sources.iter().map(String::as_str).filter(is_id)
    }
}

fn check_rule(ask: &Ask<'_>, rule: &Rule) -> Result<(), CloudError> {
    let is_icmp = rule.protocol == Some(Protocol::Icmp);
    if let Some(ports) = &rule.ports {
        require(!is_icmp, || "icmp has no ports".into())?;
        let all = || ports.from.iter().chain(&ports.to).chain(&ports.list);
        require(all().next().is_some(), || {
            "ports are named, but none is given".into()
        })?;
        require(ports.list.len() <= RULE_PORTS_MAX, || {
            format!("at most {RULE_PORTS_MAX} single ports are possible")
        })?;
        for port in all() {
            require((1..=65_535).contains(port), || {
                format!("ports are from 1 to 65535, not {port}")
            })?;
        }
        if let (Some(from), Some(to)) = (ports.from, ports.to) {
            require(from <= to, || format!("ports from {from} to {to} are none"))?;
        }
    }
    if let Some(icmp) = &rule.icmp {
        require(rule.protocol.is_none() || is_icmp, || {
            "a kind of icmp message needs the protocol icmp".into()
        })?;
        let fits = |n: i64| (0..=255).contains(&n);
        require(fits(icmp.kind) && fits(icmp.code), || {
            let (kind, code) = (icmp.kind, icmp.code);
            format!("there is no icmp message of type {kind} and code {code}")
        })?;
    }
    require(rule.sources.len() <= RULE_SOURCES_MAX, || {
        format!("at most {RULE_SOURCES_MAX} sources are possible")
    })?;
    rule.source_ids()
        .try_for_each(|id| ask.tolerates(&SOURCES, id))
}
