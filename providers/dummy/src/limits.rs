//! Limits of the dummy cloud.

/// Outdated lines that the journal may have, beside twice the live ones, before it is rewritten.
pub const JOURNAL_DEAD_LINES_MAX: usize = 4096;
/// Largest volume.
pub const VOLUME_SIZE_GB_MAX: i64 = 1_000_000;
/// Longest delay of an operation: a day.
pub const DELAY_MS_MAX: i64 = 24 * 60 * 60 * 1000;
/// Address blocks that a network may have beside its first (as in SECA).
pub const ADDITIONAL_CIDRS_MAX: usize = 32;
/// Routes of a route table (as in SECA).
pub const ROUTES_MAX: usize = 1000;
/// Addresses of a network interface (as in SECA).
pub const INTERFACE_ADDRESSES_MAX: usize = 32;
/// Public addresses of a network interface (as in SECA).
pub const INTERFACE_PUBLIC_ADDRESSES_MAX: usize = 16;
/// Rules that a security group has of its own, and as many that it shares (as in SECA).
pub const GROUP_RULES_MAX: usize = 500;
/// Single ports of a rule (as in SECA).
pub const RULE_PORTS_MAX: usize = 100;
/// Sources of a rule (as in SECA).
pub const RULE_SOURCES_MAX: usize = 32;
/// Volumes of a machine beside the one it boots from (as in SECA).
pub const DATA_VOLUMES_MAX: usize = 64;
/// Network interfaces of a machine: SECA's primary one and 16 more.
pub const INTERFACES_MAX: usize = 17;
/// Hosts in each zone.
pub const HOSTS_PER_ZONE: usize = 8;
/// Changes that a listener may fall behind by before it is told that it missed some.
pub const CHANGES_QUEUED_MAX: usize = 4096;
