//! Security groups and their rules.

use ecp_xrds::{Reference, SecurityGroupRuleSpec, SecurityGroupSpec};

use super::refer::Link;
use super::{Draft, Obstacle, Site};
use crate::clouds::{self, Rule};

pub(super) fn security_group(draft: &mut Draft<'_, '_>) -> Result<(), Obstacle> {
    let spec: SecurityGroupSpec = draft.spec()?;
    let rules = spec.rules.unwrap_or_default();
    let site = draft.site();
    let workspace = draft.workspace_id(&site)?;
    let shared = spec.rule_refs.unwrap_or_default();
    let shared = draft.links("ruleRefs[]", &shared, &site);
    let sources = sources(draft, "rules[].sourceRef[]", &rules, &site);
    let (region, cloud) = site.placed()?;
    draft.plan.cloud = Some(cloud);
    let (workspace, shared, sources) = (workspace?, shared?, sources?);
    let (mut wanted, mut parts) = (Vec::new(), Vec::new());
    for (spec, (sources, lacking)) in rules.iter().zip(sources) {
        wanted.push(rule(spec, sources));
        parts.push(lacking);
    }
    draft.plan.managed = cloud.security_group(&clouds::SecurityGroup {
        region: &region,
        name: draft.xr.name,
        workspace,
        rules: wanted,
        shared_rules: shared.into_iter().filter_map(Link::id).collect(),
    });
    draft.plan.parts = Some(parts);
    Ok(())
}

pub(super) fn security_group_rule(draft: &mut Draft<'_, '_>) -> Result<(), Obstacle> {
    let spec: SecurityGroupRuleSpec = draft.spec()?;
    let site = draft.site();
    let workspace = draft.workspace_id(&site)?;
    let all = std::slice::from_ref(&spec);
    let sources = sources(draft, "sourceRef[]", all, &site);
    let (region, cloud) = site.placed()?;
    draft.plan.cloud = Some(cloud);
    let workspace = workspace?;
    let sources = sources?.into_iter().next().and_then(|(sources, _)| sources);
    draft.plan.managed = cloud.security_group_rule(&clouds::SecurityGroupRule {
        region: &region,
        name: draft.xr.name,
        workspace,
        rule: rule(&spec, sources),
    });
    Ok(())
}

/// The sources of a rule that are there (`None` for any), and why some are not.
type Sources = (Option<Vec<String>>, Option<String>);

/// The sources of some rules. Those that are not there are left out, but a rule that says sources
/// never becomes one for any source.
fn sources(
    draft: &mut Draft<'_, '_>,
    path: &'static str,
    rules: &[SecurityGroupRuleSpec],
    site: &Site,
) -> Result<Vec<Sources>, Obstacle> {
    let references = |rule: &SecurityGroupRuleSpec| rule.source_ref.clone().unwrap_or_default();
    let all: Vec<Reference> = rules.iter().flat_map(references).collect();
    let mut links = draft.links(path, &all, site)?.into_iter();
    let mut found = Vec::new();
    for rule in rules {
        let (mut ids, mut lacking) = (Vec::new(), None);
        let count = references(rule).len();
        for link in links.by_ref().take(count) {
            match link {
                Link::Id(_, id) => ids.push(id),
                Link::Text(text) if is_address(&text) => ids.push(text),
                Link::Text(text) => {
                    let why = format!("{text:?} is neither an address nor a resource");
                    draft
                        .plan
                        .lacking
                        .push(format!("spec.{path}: {why}, so it has no effect"));
                    lacking.get_or_insert(why);
                }
                Link::Lacking(why) => {
                    lacking.get_or_insert(why);
                }
                Link::Nothing => {}
            }
        }
        // With one source that is there the rule has an effect.
        let lacking = lacking.filter(|_| ids.is_empty());
        found.push(((count > 0).then_some(ids), lacking));
    }
    Ok(found)
}

/// Whether a text is an IP address or a range of them.
fn is_address(text: &str) -> bool {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let Ok(address) = address.parse::<std::net::IpAddr>() else {
        return false;
    };
    let bits = if address.is_ipv4() { 32 } else { 128 };
    prefix.is_none_or(|p| p.parse::<u8>().is_ok_and(|p| p <= bits))
}

fn rule(spec: &SecurityGroupRuleSpec, sources: Option<Vec<String>>) -> Rule<'_> {
    Rule {
        direction: spec.direction,
        protocol: spec.protocol,
        version: spec.version,
        ports: spec.ports.as_ref(),
        icmp: spec.icmp.as_ref(),
        sources,
    }
}

#[cfg(test)]
mod tests {
    use super::is_address;

    #[test]
    fn addresses_and_ranges_are_told_from_other_text() {
        for good in [
            "10.0.0.1",
            "10.0.0.0/8",
            "0.0.0.0/0",
            "fd00::/8",
            "::1",
            "::/128",
        ] {
            assert!(is_address(good), "{good}");
        }
        for bad in [
            "",
            "10.0.0.0/33",
            "10.0.0.0/",
            "fd00::/129",
            "10.0.0",
            "any text",
            "/8",
        ] {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
