//! Address blocks: reading them, and finding free ones. Pure.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use crate::cloud::specs::IpVersion;

/// Blocks that networks get when they do not ask for any (RFC 1918, RFC 4193).
pub(super) fn private(version: IpVersion) -> Vec<IpNet> {
    let v4 = |a, b, prefix| IpNet::new_assert(IpAddr::V4(Ipv4Addr::new(a, b, 0, 0)), prefix);
    match version {
        IpVersion::V4 => vec![v4(10, 0, 8), v4(172, 16, 12), v4(192, 168, 16)],
        IpVersion::V6 => {
            let local = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0);
            vec![IpNet::new_assert(IpAddr::V6(local), 8)]
        }
    }
}

/// Blocks that public addresses come from: those for documentation (RFC 5737, RFC 3849), and for
/// benchmarks when they are used up (RFC 2544).
pub(super) fn public(version: IpVersion) -> Vec<IpNet> {
    let v4 = |a, b, c, prefix| IpNet::new_assert(IpAddr::V4(Ipv4Addr::new(a, b, c, 0)), prefix);
    match version {
        IpVersion::V4 => vec![
            v4(192, 0, 2, 24),
            v4(198, 51, 100, 24),
            v4(203, 0, 113, 24),
            v4(198, 18, 0, 15),
        ],
        IpVersion::V6 => {
            let documentation = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0);
            vec![IpNet::new_assert(IpAddr::V6(documentation), 32)]
        }
    }
}

/// The family of an address.
pub(super) fn version(address: IpAddr) -> IpVersion {
    match address {
        IpAddr::V4(_) => IpVersion::V4,
        IpAddr::V6(_) => IpVersion::V6,
    }
}

/// The first block of a size in one of `pools` that overlaps none of `taken`.
pub(super) fn free_block(pools: &[IpNet], prefix: u8, taken: &[IpNet]) -> Option<IpNet> {
    pools.iter().find_map(|pool| {
        let host_bits = pool.max_prefix_len().checked_sub(prefix)?;
        if prefix < pool.prefix_len() {
            return None;
        }
        let size = 1_u128.checked_shl(host_bits.into())?;
        let of_pool = |net: &&IpNet| net.max_prefix_len() == pool.max_prefix_len();
        let mut taken: Vec<(u128, u128)> = taken.iter().filter(of_pool).map(span).collect();
        taken.sort_unstable();
        let (mut first, last) = span(pool);
        for (taken_first, taken_last) in taken {
            if taken_first > first.checked_add(size - 1)? {
                break;
            }
            if taken_last >= first {
                first = taken_last.checked_add(1)?.checked_next_multiple_of(size)?;
            }
        }
        if first.checked_add(size - 1)? > last {
            return None;
        }
        IpNet::new(address(first, pool)?, prefix).ok()
    })
}

/// The first address of a block that is not reserved and not in `taken`.
pub(super) fn free_address(block: &IpNet, taken: &BTreeSet<IpAddr>) -> Option<IpAddr> {
    let (first, last) = span(block);
    // One more than are taken or reserved is enough to find a free one.
    let tries = u128::try_from(taken.len()).ok()?.saturating_add(3);
    let end = last.min(first.saturating_add(tries));
    (first..=end)
        .filter_map(|n| address(n, block))
        .find(|a| !is_reserved(block, *a) && !is_gateway(block, *a) && !taken.contains(a))
}

/// Whether an address names the block itself or everybody in it.
pub(super) fn is_reserved(block: &IpNet, address: IpAddr) -> bool {
    if block.max_prefix_len() - block.prefix_len() < 2 {
        return false;
    }
    match address {
        IpAddr::V4(_) => address == block.network() || address == block.broadcast(),
        IpAddr::V6(_) => address == block.network(),
    }
}

/// Whether an address is the one that the cloud's router has.
fn is_gateway(block: &IpNet, address: IpAddr) -> bool {
    let (first, last) = span(block);
    last - first >= 3 && number(address) == first + 1
}

fn span(block: &IpNet) -> (u128, u128) {
    (number(block.network()), number(block.broadcast()))
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(a) => u32::from(a).into(),
        IpAddr::V6(a) => a.into(),
    }
}

/// The address with a number, of a block's family.
fn address(number: u128, like: &IpNet) -> Option<IpAddr> {
    Some(match like {
        IpNet::V4(_) => IpAddr::V4(u32::try_from(number).ok()?.into()),
        IpNet::V6(_) => IpAddr::V6(number.into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nets<const N: usize>(texts: [&str; N]) -> Vec<IpNet> {
        let nets = texts.iter().map(|t| t.parse().expect("a block"));
        nets.collect()
    }

    fn free(pools: &[&str], prefix: u8, taken: &[&str]) -> Option<String> {
        let read = |texts: &[&str]| -> Vec<IpNet> {
            let nets = texts.iter().map(|t| t.parse().expect("a block"));
            nets.collect()
        };
        free_block(&read(pools), prefix, &read(taken)).map(|net| net.to_string())
    }

    #[test]
    fn the_first_free_block_is_found() {
        let ten = ["10.0.0.0/8"];
        assert_eq!(free(&ten, 16, &[]).as_deref(), Some("10.0.0.0/16"));
        let taken = ["10.0.0.0/16", "10.2.0.0/16"];
        assert_eq!(free(&ten, 16, &taken).as_deref(), Some("10.1.0.0/16"));
        assert_eq!(
            free(&ten, 16, &["10.0.5.0/24"]).as_deref(),
            Some("10.1.0.0/16"),
            "a smaller one inside is in the way"
        );
        assert_eq!(
            free(&ten, 24, &["10.0.0.0/16", "10.0.3.0/24"]).as_deref(),
            Some("10.1.0.0/24"),
            "nested ones count once"
        );
        assert_eq!(free(&ten, 8, &["10.255.255.255/32"]), None);
        assert_eq!(free(&ten, 7, &[]), None, "larger than the pool");
        let two = ["10.0.0.0/24", "10.9.0.0/24"];
        assert_eq!(
            free(&two, 24, &["10.0.0.0/24"]).as_deref(),
            Some("10.9.0.0/24"),
            "the next pool"
        );
        assert_eq!(
            free(&["fd00::/8"], 56, &["fd00::/48", "10.0.0.0/8"]).as_deref(),
            Some("fd00:0:1::/56")
        );
        assert_eq!(free(&["255.255.255.0/24"], 24, &["255.255.255.0/24"]), None);
        let end = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff0/124";
        assert_eq!(free(&[end], 124, &[end]), None);
    }

    #[test]
    fn automatic_addresses_skip_what_is_reserved() {
        let block = nets(["10.1.1.0/30"])[0];
        let mut taken = BTreeSet::new();
        let first = free_address(&block, &taken).expect("one");
        assert_eq!(first.to_string(), "10.1.1.2");
        taken.insert(first);
        assert_eq!(free_address(&block, &taken), None);
        let block = nets(["fd00:1::/64"])[0];
        let address = free_address(&block, &BTreeSet::new()).expect("one");
        assert_eq!(address.to_string(), "fd00:1::2");
    }

    #[test]
    fn automatic_addresses_are_found_behind_taken_ones() {
        let block = nets(["10.0.0.0/24"])[0];
        let mut taken = BTreeSet::new();
        for _ in 0..253 {
            let address = free_address(&block, &taken).expect("a free one");
            assert!(block.contains(&address) && taken.insert(address));
        }
        assert_eq!(free_address(&block, &taken), None);
    }
}
