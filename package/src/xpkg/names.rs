//! Names that Crossplane makes (crossplane-runtime `pkg/xpkg/name.go`).

const LABEL_LEN_MAX: usize = 63;
const NAME_LEN_MAX: usize = 50;
const HASH_LEN_MAX: usize = 12;

/// The name of a package's revision, and of its file: the name of the package and the beginning of
/// its digest, `hash` being that digest without algorithm.
pub fn friendly_id(name: &str, hash: &str) -> String {
    let cut = |text: &str, len| text.chars().take(len).collect::<String>();
    to_dns_label(&format!(
        "{}-{}",
        cut(name, NAME_LEN_MAX),
        cut(hash, HASH_LEN_MAX)
    ))
}

/// A DNS label: what is no letter, digit or dash is dropped or becomes a dash.
pub fn to_dns_label(text: &str) -> String {
    let label: String = text
        .bytes()
        .enumerate()
        .take(LABEL_LEN_MAX)
        .filter_map(|(i, b)| match b {
            b'a'..=b'z' | b'0'..=b'9' => Some(char::from(b)),
            b'.' | b'/' | b':' | b'-'
                if i != 0 && i != LABEL_LEN_MAX - 1 && i != text.len() - 1 =>
            {
                Some('-')
            }
            _ => None,
        })
        .collect();
    label.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_upstream() {
        let hash = "0123456789abcdef";
        assert_eq!(friendly_id("provider-x", hash), "provider-x-0123456789ab");
        let long = "a".repeat(60);
        assert_eq!(
            friendly_id(&long, hash),
            format!("{}-0123456789ab", "a".repeat(50))
        );
        assert_eq!(to_dns_label("org/A_sub.name"), "org-sub-name");
        assert_eq!(to_dns_label("-x-"), "x");
    }
}
