//! Ranges of versions, as Crossplane's packages state them (Masterminds/semver v3).
//!
//! Differs from Cargo's ranges: `||` is an alternative, a bare version means exactly it, `v` may
//! precede versions, and `^`, `~`, hyphens and wildcards are known. A prerelease is only in a range
//! whose comparison names a prerelease.

use semver::{BuildMetadata, Version};

/// A range of versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint(Vec<Vec<Comparison>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Comparison {
    operator: Operator,
    version: Version,
    /// How many of major, minor and patch are stated.
    stated: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterEqual,
    LessEqual,
    Tilde,
    Caret,
}

const OPERATORS: [(&str, Operator); 11] = [
    (">=", Operator::GreaterEqual),
    ("=>", Operator::GreaterEqual),
    ("<=", Operator::LessEqual),
    ("=<", Operator::LessEqual),
    ("!=", Operator::NotEqual),
    ("~>", Operator::Tilde),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("=", Operator::Equal),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
];

impl Constraint {
    /// Reads a range; an empty one has all releases.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let all = text.split("||").map(|part| {
            let part = hyphens(part.trim())?;
            comparisons(&part).map_err(|why| format!("improper constraint {text:?}: {why}"))
        });
        Ok(Self(all.collect::<Result<_, String>>()?))
    }

    /// Whether a version is in the range.
    pub fn has(&self, version: &Version) -> bool {
        self.0
            .iter()
            .any(|all| all.iter().all(|comparison| comparison.holds(version)))
    }
}

/// `1.2 - 2.3` as two comparisons.
fn hyphens(text: &str) -> Result<String, String> {
    match text.split(" - ").collect::<Vec<_>>()[..] {
        [one] => Ok(one.to_owned()),
        [from, to] => Ok(format!(">={} <={}", from.trim(), to.trim())),
        _ => Err(format!(
            "improper constraint {text:?}: more than one hyphen"
        )),
    }
}

fn comparisons(text: &str) -> Result<Vec<Comparison>, String> {
    let mut all = Vec::new();
    let mut rest = text.trim_start();
    if rest.is_empty() {
        return Ok(vec![comparison(Operator::Equal, "*")?]);
    }
    while !rest.is_empty() {
        let mut operator = Operator::Equal;
        if let Some((sign, of)) = OPERATORS.iter().find(|(sign, _)| rest.starts_with(sign)) {
            operator = *of;
            rest = rest[sign.len()..].trim_start();
        }
        let end = rest
            .find(|c: char| c.is_whitespace() || c == ',')
            .unwrap_or(rest.len());
        all.push(comparison(operator, &rest[..end])?);
        rest = rest[end..].trim_start_matches(|c: char| c.is_whitespace() || c == ',');
    }
    Ok(all)
}

fn comparison(operator: Operator, text: &str) -> Result<Comparison, String> {
    let wrong = || format!("{text:?} is not a version");
    let bare = text.strip_prefix('v').unwrap_or(text);
    let (numbers, suffix) = match bare.find(['-', '+']) {
        Some(at) => bare.split_at(at),
        None => (bare, ""),
    };
    let parts: Vec<&str> = numbers.split('.').collect();
    if parts.len() > 3 {
        return Err(wrong());
    }
    let wild = |part: &&str| matches!(*part, "x" | "X" | "*");
    let stated = parts.iter().take_while(|part| !wild(part)).count();
    let mut full = [0_u64; 3];
    for (slot, part) in full.iter_mut().zip(&parts[..stated]) {
        *slot = part.parse().map_err(|_| wrong())?;
    }
    let text = format!("{}.{}.{}{suffix}", full[0], full[1], full[2]);
    Ok(Comparison {
        operator,
        version: Version::parse(&text).map_err(|_| wrong())?,
        stated,
    })
}

impl Comparison {
    fn holds(&self, version: &Version) -> bool {
        let own = &self.version;
        if !version.pre.is_empty() && own.pre.is_empty() {
            return false;
        }
        let order = version.cmp_precedence(own);
        // The same as far as it is stated.
        let within = |parts: usize| {
            let numbers = |v: &Version| [v.major, v.minor, v.patch];
            numbers(version)[..parts] == numbers(own)[..parts]
        };
        match self.operator {
            Operator::Equal if self.stated == 3 => order.is_eq(),
            Operator::NotEqual if self.stated == 3 => order.is_ne(),
            Operator::Equal => within(self.stated),
            Operator::NotEqual => !within(self.stated),
            Operator::Greater => order.is_gt() && (self.stated == 3 || !within(self.stated)),
            Operator::Less => order.is_lt(),
            Operator::GreaterEqual => order.is_ge(),
            Operator::LessEqual => order.is_le() || (self.stated < 3 && within(self.stated)),
            Operator::Tilde => order.is_ge() && within(self.stated.min(2)),
            Operator::Caret => {
                let first = match (own.major, own.minor, own.patch) {
                    (1.., ..) => 1,
                    (0, 1.., _) => 2,
                    (0, 0, _) => 3,
                };
                order.is_ge() && within(first.min(self.stated))
            }
        }
    }
}

/// A version as tags state it: perhaps with a `v`, perhaps without minor and patch.
///
/// # Errors
/// It is no version.
pub fn version(text: &str) -> Result<Version, String> {
    let read = comparison(Operator::Equal, text)
        .ok()
        .filter(|read| read.stated > 0 && !text.contains(['x', 'X', '*']));
    read.map(|read| read.version)
        .ok_or_else(|| format!("{text:?} is not a semantic version"))
}

/// A tag that states all three numbers: `v1` need not be what `v1.0.0` is.
pub fn release(tag: &str) -> Option<Version> {
    let mut version = Version::parse(tag.strip_prefix('v').unwrap_or(tag)).ok()?;
    version.build = BuildMetadata::EMPTY;
    Some(version)
}

/// Whether a constraint is a digest instead.
pub fn is_digest(text: &str) -> bool {
    let text = text.trim();
    text.strip_prefix("sha256:")
        .is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_what_they_hold_upstream() {
        // Results of Masterminds/semver v3.4.
        for (range, version_text, want) in [
            ("", "1.2.3", true),
            ("", "1.2.3-rc.1", false),
            ("*", "1.2.3", true),
            (">=v1.20.0-0", "2.3.4", true),
            (">=v1.20.0-0", "v2.0.0-rc.1", true),
            (">=v1.20", "2.0.0-rc.1", false),
            ("1.2.3", "1.2.3", true),
            ("1.2.3", "1.2.4", false),
            ("1.2", "1.2.9", true),
            ("1.2", "1.3.0", false),
            ("v1.x", "1.9.0", true),
            ("!=1.2", "1.2.9", false),
            ("!=1.2.3", "1.2.4", true),
            (">1.2", "1.2.9", false),
            (">1.2", "1.3.0", true),
            (">1", "2.0.0", true),
            (">1", "1.9.0", false),
            ("<1.2", "1.1.9", true),
            ("<1.2", "1.2.0", false),
            ("<=1.2", "1.2.9", true),
            ("<=1.2", "1.3.0", false),
            ("~1.2.3", "1.2.9", true),
            ("~1.2.3", "1.3.0", false),
            ("~1", "1.9.0", true),
            ("^1.2.3", "1.9.0", true),
            ("^1.2.3", "2.0.0", false),
            ("^0.2.3", "0.2.9", true),
            ("^0.2.3", "0.3.0", false),
            ("^0.0.3", "0.0.4", false),
            ("^0", "0.9.0", true),
            (">=1.0.0 <2.0.0", "1.5.0", true),
            (">=1.0.0, <2.0.0", "2.0.0", false),
            (">= 1.0.0", "1.0.0", true),
            ("1.1 - 1.4", "1.4.9", true),
            ("1.1 - 1.4", "1.5.0", false),
            ("<1.0.0 || >=2.0.0", "2.1.0", true),
            ("<1.0.0 || >=2.0.0", "1.1.0", false),
            (">1.0.0-alpha", "1.0.0-beta", true),
        ] {
            let constraint = Constraint::parse(range).expect(range);
            let version = version(version_text).expect(version_text);
            assert_eq!(constraint.has(&version), want, "{range} {version_text}");
        }
    }

    #[test]
    fn what_is_no_range_is_told() {
        for wrong in ["latest", ">=", "1.2.3.4", "1.2.3 - 2 - 3", ">=one", "=> =1"] {
            let why = Constraint::parse(wrong).expect_err(wrong);
            assert!(why.contains("improper constraint"), "{why}");
        }
        assert!(is_digest(&format!("sha256:{}", "a".repeat(64))));
        assert!(!is_digest("sha256:abc"));
        assert!(release("v1").is_none());
        assert_eq!(release("v1.2.3"), Some(Version::new(1, 2, 3)));
        assert!(version("latest").is_err());
        assert_eq!(version("v1"), Ok(Version::new(1, 0, 0)));
    }
}
