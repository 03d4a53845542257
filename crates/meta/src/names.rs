//! Name rules, and the names this project derives.

use sha2::{Digest as _, Sha256};
use sha3::Sha3_224;

use crate::limits::{COMPOSITE_NAME_LEN_MAX, LABEL_VALUE_LEN_MAX, SUBDOMAIN_LEN_MAX};

/// Whether `s` is a DNS-1123 label: `[a-z0-9]([-a-z0-9]*[a-z0-9])?`, 63 characters at most.
pub fn is_dns1123_label(s: &str) -> bool {
    let b = s.as_bytes();
    let alnum = |c: &u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=LABEL_VALUE_LEN_MAX).contains(&b.len())
        && b.iter().all(|c| alnum(c) || *c == b'-')
        && b.first().is_some_and(alnum)
        && b.last().is_some_and(alnum)
}

/// Whether `s` is a DNS-1123 subdomain: labels joined by dots, 253 characters at most.
///
/// As in Kubernetes, a label inside a subdomain may be longer than 63 characters.
pub fn is_dns1123_subdomain(s: &str) -> bool {
    s.len() <= SUBDOMAIN_LEN_MAX && is_dotted_name(s)
}

/// Whether `s` has the shape of a SECA resource name, whatever its length (SECA section 2.1).
pub fn is_dotted_name(s: &str) -> bool {
    let alnum = |c: &u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    s.split('.').all(|part| {
        let b = part.as_bytes();
        b.iter().all(|c| alnum(c) || *c == b'-')
            && b.first().is_some_and(alnum)
            && b.last().is_some_and(alnum)
    })
}

/// Whether `s` is a label value: empty, or at most 63 of `[A-Za-z0-9_.-]` with alphanumeric ends.
pub fn is_label_value(s: &str) -> bool {
    s.is_empty() || (s.len() <= LABEL_VALUE_LEN_MAX && is_qualified_part(s))
}

/// Whether `s` is a qualified name: an optional DNS subdomain and `/`, then a name part of at most
/// 63 characters. Label and annotation keys and finalizers have this shape.
pub fn is_qualified_name(s: &str) -> bool {
    let (prefix, name) = match s.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, s),
    };
    prefix.is_none_or(is_dns1123_subdomain)
        && name.len() <= LABEL_VALUE_LEN_MAX
        && is_qualified_part(name)
}

fn is_qualified_part(s: &str) -> bool {
    let b = s.as_bytes();
    b.iter()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.'))
        && b.first().is_some_and(u8::is_ascii_alphanumeric)
        && b.last().is_some_and(u8::is_ascii_alphanumeric)
}

/// The first 8 hexadecimal digits of the SHA3-224 of `s`.
pub fn hash8(s: &str) -> String {
    let mut hash = hex::encode(Sha3_224::digest(s.as_bytes()));
    hash.truncate(8);
    hash
}

/// The namespace of a tenant: `<tenant>-<8 hex>`, cut to 63 characters (DESIGN D3).
pub fn tenant_namespace(tenant: &str) -> String {
    readable(tenant, &hash8(tenant))
}

/// The namespace of a workspace: `<tenant>-<workspace>-<8 hex>`, cut to 63 characters (DESIGN D3).
///
/// The hash is that of `tenant/workspace`, so `a-b`/`c` and `a`/`b-c` differ.
pub fn workspace_namespace(tenant: &str, workspace: &str) -> String {
    readable(
        &format!("{tenant}-{workspace}"),
        &hash8(&format!("{tenant}/{workspace}")),
    )
}

/// The object name of a SECA resource: the SECA name where it fits, else cut plus hash
/// (Crossplane caps names of XRs and claims at 63 characters, SECA allows 128).
pub fn object_name(seca_name: &str) -> String {
    if seca_name.len() <= COMPOSITE_NAME_LEN_MAX {
        seca_name.into()
    } else {
        readable(seca_name, &hash8(seca_name))
    }
}

/// The object name that a resource inside a network gets, unique among those of all networks of a
/// workspace: `<network>-<name>-<8 hex>`, cut to 63 characters.
pub fn network_object_name(network: &str, name: &str) -> String {
    readable(
        &format!("{network}-{name}"),
        &hash8(&format!("{network}/{name}")),
    )
}

/// A label value for `s`: `s` itself where it is one, else its hash.
pub fn label_value(s: &str) -> String {
    if is_label_value(s) {
        s.into()
    } else {
        hash8(s)
    }
}

/// `<text>-<suffix>` as a DNS label of at most 63 characters; dots become hyphens.
fn readable(text: &str, suffix: &str) -> String {
    let room = LABEL_VALUE_LEN_MAX - suffix.len() - 1;
    let cut: String = text
        .chars()
        .map(|c| if c == '.' { '-' } else { c })
        .take(room)
        .collect();
    format!("{}-{suffix}", cut.trim_end_matches('-'))
}

/// The deterministic name of a composed resource (upstream `internal/names.ChildName`, 2.x):
/// `prefix` with one hyphen, then 12 hex digits of SHA-256 over `uid` and `resource_name`.
pub fn child_name(prefix: &str, uid: &str, resource_name: &str) -> String {
    let mut digest = Sha256::new();
    digest.update(uid.as_bytes());
    digest.update(resource_name.as_bytes());
    let mut hash = hex::encode(digest.finalize());
    hash.truncate(12);
    let room = LABEL_VALUE_LEN_MAX - hash.len() - 1;
    let cut: String = prefix.chars().take(room).collect();
    format!("{}-{hash}", cut.trim_end_matches(['-', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dns_rules() {
        assert!(is_dns1123_label("a-1"));
        assert!(!is_dns1123_label(""));
        assert!(!is_dns1123_label("-a"));
        assert!(!is_dns1123_label("a."));
        assert!(!is_dns1123_label(&"a".repeat(64)));
        assert!(is_dns1123_subdomain(
            "block-storages.storage.v1.secapi.cloud"
        ));
        assert!(!is_dns1123_subdomain("a..b"));
        assert!(!is_dns1123_subdomain("../etc"));
        assert!(is_dotted_name(&"a".repeat(128)));
        assert!(is_label_value(""));
        assert!(is_label_value("D2XS"));
        assert!(!is_label_value("-x"));
        assert!(is_qualified_name("crossplane.io/external-name"));
        assert!(!is_qualified_name("/x"));
        assert!(!is_qualified_name("a/b/c"));
    }

    #[test]
    fn namespaces_are_readable_unique_and_bounded() {
        assert_eq!(tenant_namespace("test-tenant"), "test-tenant-f7ec6f66");
        assert_eq!(
            workspace_namespace("test-tenant", "ws-1"),
            "test-tenant-ws-1-3c47e1f0"
        );
        assert_ne!(
            workspace_namespace("a-b", "c"),
            workspace_namespace("a", "b-c")
        );
        let long = workspace_namespace(&"t".repeat(128), &"w".repeat(128));
        assert_eq!(long.len(), 63);
        assert!(is_dns1123_label(&long));
        assert!(is_dns1123_label(&workspace_namespace("a.b", "c.d")));
    }

    #[test]
    fn object_names_keep_what_fits() {
        assert_eq!(object_name("disk-1"), "disk-1");
        assert_eq!(object_name(&"d".repeat(63)), "d".repeat(63));
        let long = object_name(&"d".repeat(64));
        assert_eq!(long.len(), 63);
        assert_ne!(long, object_name(&"d".repeat(65)));
    }

    #[test]
    fn child_names_are_deterministic_valid_and_bounded() {
        let name = child_name("rds-x", "uid-1", "RDSInstance.Small!1");
        assert_eq!(name, child_name("rds-x-", "uid-1", "RDSInstance.Small!1"));
        assert_ne!(name, child_name("rds-x", "uid-2", "RDSInstance.Small!1"));
        assert!(is_dns1123_subdomain(&name));
        let long = child_name(&"x".repeat(63), "u", "r");
        assert_eq!(long.len(), 63);
        assert!(!long.contains("--"));
    }
}
