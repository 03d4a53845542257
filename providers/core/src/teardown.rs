//! In which order the contents of a workspace are deleted.

use std::collections::BTreeMap;

use ecp_xrds::Scope;

use crate::contents::Item;
use crate::limits::REMAINING_SHOWN_MAX;

/// Ranks of kinds: those of a lower rank are gone before the next rank is touched. What holds on
/// to something else comes first (DESIGN D8).
const RANKS: [(&str, u8); 12] = [
    ("Instance", 0),
    ("KubernetesCluster", 0),
    ("NIC", 1),
    ("Image", 1),
    ("PublicIP", 2),
    ("BlockStorage", 2),
    ("SecurityGroup", 2),
    ("SecurityGroupRule", 3),
    ("Subnet", 3),
    ("RouteTable", 4),
    ("InternetGateway", 5),
    ("Network", 6),
];
/// Rank of a kind that is not listed: after what can run on it, before what it can be built on.
const RANK_DEFAULT: u8 = 1;
/// Whether objects of a kind are below a network and go with it.
pub(crate) fn is_below_network(kind: &str) -> bool {
    ecp_xrds::by_kind(kind).is_some_and(|known| known.scope == Scope::Network)
}

fn rank(kind: &str) -> u8 {
    RANKS
        .iter()
        .find(|(known, _)| *known == kind)
        .map_or(RANK_DEFAULT, |(_, rank)| *rank)
}

/// What is deleted next: all items of the lowest rank that is still there.
pub(crate) fn next(items: &[Item]) -> Vec<&Item> {
    let lowest = items.iter().map(|item| rank(&item.kind.kind)).min();
    items
        .iter()
        .filter(|item| Some(rank(&item.kind.kind)) == lowest)
        .collect()
}

/// What is still there, as `Kind/name`, the first few of those that are deleted next.
pub(crate) fn remaining(items: &[Item]) -> Vec<String> {
    next(items)
        .into_iter()
        .take(REMAINING_SHOWN_MAX)
        .map(|item| format!("{}/{}", item.kind.kind, item.name))
        .collect()
}

/// What a teardown waits for; empty when nothing is left.
pub(crate) fn message(items: &[Item]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for item in next(items) {
        *counts.entry(&item.kind.kind).or_default() += 1;
    }
    if counts.is_empty() {
        return String::new();
    }
    let parts: Vec<String> = counts
        .iter()
        .map(|(kind, n)| format!("{n} {kind}"))
        .collect();
    let later = items.len() - counts.values().sum::<usize>();
    let then = if later > 0 {
        format!(", then {later} more")
    } else {
        String::new()
    };
    format!(
        "waiting for {} to be deleted ({}{then})",
        parts.join(", "),
        remaining(items).join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contents::tests::item;

    #[test]
    fn what_holds_on_to_something_goes_before_it() {
        let kinds = [
            "Network",
            "InternetGateway",
            "RouteTable",
            "Subnet",
            "SecurityGroupRule",
            "SecurityGroup",
            "BlockStorage",
            "PublicIP",
            "NIC",
            "Instance",
        ];
        let mut items: Vec<Item> = kinds.iter().map(|kind| item(kind, "x")).collect();
        let mut order = Vec::new();
        while !items.is_empty() {
            let gone: Vec<Item> = next(&items).into_iter().cloned().collect();
            let mut together: Vec<&str> = gone.iter().map(|i| i.kind.kind.as_str()).collect();
            together.sort_unstable();
            order.push(together.join(" "));
            items.retain(|i| !gone.contains(i));
        }
        assert_eq!(
            order,
            [
                "Instance",
                "NIC",
                "BlockStorage PublicIP SecurityGroup",
                "SecurityGroupRule Subnet",
                "RouteTable",
                "InternetGateway",
                "Network",
            ]
        );
        assert!(next(&items).is_empty());
    }

    #[test]
    fn every_kind_of_a_workspace_has_a_rank() {
        for info in ecp_xrds::kinds() {
            let in_workspace = matches!(info.scope, Scope::Workspace | Scope::Network);
            let listed = RANKS.iter().any(|(kind, _)| *kind == info.kind);
            assert!(listed || !in_workspace, "{}", info.kind);
        }
        assert!(is_below_network("Subnet") && is_below_network("RouteTable"));
        assert!(!is_below_network("Network") && !is_below_network("Thing"));
    }

    #[test]
    fn the_message_says_what_is_waited_for() {
        let items = vec![
            item("BlockStorage", "data"),
            item("BlockStorage", "logs"),
            item("Network", "net"),
        ];
        assert_eq!(
            message(&items),
            "waiting for 2 BlockStorage to be deleted (BlockStorage/data, BlockStorage/logs, then 1 more)"
        );
        assert_eq!(
            remaining(&items),
            ["BlockStorage/data", "BlockStorage/logs"]
        );
        assert_eq!(message(&[]), "");
    }

    #[test]
    fn only_a_few_names_are_shown() {
        let items: Vec<Item> = (0..100).map(|n| item("Image", &format!("i{n}"))).collect();
        assert_eq!(remaining(&items).len(), REMAINING_SHOWN_MAX);
    }
}
