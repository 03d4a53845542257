//! In which order the contents of a workspace are deleted.

use std::collections::BTreeMap;

use crate::contents::Item;
use crate::limits::REMAINING_SHOWN_MAX;

/// Ranks of kinds: those of a lower rank are gone before the next rank is touched. What holds on
/// to something else comes first (DESIGN D8). A kind that is not listed is in the middle.
const RANKS: [(&str, u8); 12] = [
    ("Instance", 0),
    ("KubernetesCluster", 0),
    ("Nic", 1),
    ("PublicIp", 2),
    ("Image", 2),
    ("BlockStorage", 3),
    ("SecurityGroup", 3),
    ("SecurityGroupRule", 2),
    ("Subnet", 3),
    ("RouteTable", 4),
    ("InternetGateway", 5),
    ("Network", 6),
];
const RANK_DEFAULT: u8 = 2;

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
    fn instances_go_first_then_images_then_disks_then_networks() {
        let mut items = vec![
            item("Network", "n"),
            item("BlockStorage", "d"),
            item("Instance", "i"),
            item("Image", "m"),
        ];
        let mut order = Vec::new();
        while !items.is_empty() {
            let gone: Vec<Item> = next(&items).into_iter().cloned().collect();
            order.extend(gone.iter().map(|i| i.kind.kind.clone()));
            items.retain(|i| !gone.contains(i));
        }
        assert_eq!(order, ["Instance", "Image", "BlockStorage", "Network"]);
        assert!(next(&items).is_empty());
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
