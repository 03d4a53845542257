//! The `format`s that CRD schemas know (apiextensions `pkg/apiserver/validation/formats.go`; the
//! checks are those of kube-openapi's `strfmt`). Unknown formats are ignored, as upstream does.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;

use crate::node::NodeType;

/// A known format, with the name the schema gave it.
#[derive(Clone, Debug)]
pub(crate) struct Format {
    pub(crate) name: String,
    pub(crate) kind: FormatKind,
}

/// What a format checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormatKind {
    Int32,
    Int64,
    Float,
    Double,
    BsonObjectId,
    Byte,
    Cidr,
    CreditCard,
    Date,
    DateTime,
    Duration,
    Email,
    HexColor,
    Hostname,
    Ipv4,
    Ipv6,
    Isbn,
    Isbn10,
    Isbn13,
    LongName,
    Mac,
    Password,
    RgbColor,
    ShortName,
    Ssn,
    Uri,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
}

impl Format {
    /// The format of a node of this type, if it is known there.
    pub(crate) fn parse(name: &str, kind: Option<NodeType>) -> Option<Self> {
        let kind = match kind {
            None | Some(NodeType::String) => string_format(name)?,
            Some(NodeType::Integer) => match name {
                "int32" => FormatKind::Int32,
                "int64" => FormatKind::Int64,
                _ => return None,
            },
            Some(NodeType::Number) => match name {
                "float" => FormatKind::Float,
                "double" => FormatKind::Double,
                _ => return None,
            },
            Some(NodeType::Object | NodeType::Array | NodeType::Boolean) => return None,
        };
        Some(Self {
            name: name.to_owned(),
            kind,
        })
    }

    /// Whether a string has this format.
    pub(crate) fn matches(&self, value: &str) -> bool {
        match self.kind {
            FormatKind::Int32
            | FormatKind::Int64
            | FormatKind::Float
            | FormatKind::Double
            | FormatKind::Password => true,
            FormatKind::BsonObjectId => value.len() == 24 && is_hex(value),
            FormatKind::Byte => BASE64.is_match(value),
            FormatKind::Cidr => is_cidr(value),
            FormatKind::CreditCard => is_credit_card(value),
            FormatKind::Date => is_date(value),
            FormatKind::DateTime => is_date_time(value),
            FormatKind::Duration => is_duration(value),
            FormatKind::Email => is_email(value),
            FormatKind::HexColor => {
                let digits = value.strip_prefix('#').unwrap_or(value);
                matches!(digits.len(), 3 | 6) && is_hex(digits)
            }
            FormatKind::Hostname => is_hostname(value),
            FormatKind::Ipv4 => is_ipv4(value),
            FormatKind::Ipv6 => value.parse::<Ipv6Addr>().is_ok(),
            FormatKind::Isbn => is_isbn10(value) || is_isbn13(value),
            FormatKind::Isbn10 => is_isbn10(value),
            FormatKind::Isbn13 => is_isbn13(value),
            FormatKind::LongName => value.len() <= 253 && value.split('.').all(is_label),
            FormatKind::Mac => is_mac(value),
            FormatKind::RgbColor => RGB_COLOR.is_match(value),
            FormatKind::ShortName => value.len() <= 63 && is_label(value),
            FormatKind::Ssn => value.len() == 11 && SSN.is_match(value),
            FormatKind::Uri => is_request_uri(value),
            FormatKind::Uuid => is_uuid(value, None),
            FormatKind::Uuid3 => is_uuid(value, Some('3')),
            FormatKind::Uuid4 => is_uuid(value, Some('4')),
            FormatKind::Uuid5 => is_uuid(value, Some('5')),
        }
    }
}

fn string_format(name: &str) -> Option<FormatKind> {
    Some(match name.replace('-', "").as_str() {
        "bsonobjectid" => FormatKind::BsonObjectId,
        "byte" => FormatKind::Byte,
        "cidr" => FormatKind::Cidr,
        "creditcard" => FormatKind::CreditCard,
        "date" => FormatKind::Date,
        "datetime" => FormatKind::DateTime,
        "duration" => FormatKind::Duration,
        "email" => FormatKind::Email,
        "hexcolor" => FormatKind::HexColor,
        "hostname" => FormatKind::Hostname,
        "ipv4" => FormatKind::Ipv4,
        "ipv6" => FormatKind::Ipv6,
        "isbn" => FormatKind::Isbn,
        "isbn10" => FormatKind::Isbn10,
        "isbn13" => FormatKind::Isbn13,
        "k8slongname" => FormatKind::LongName,
        "k8sshortname" => FormatKind::ShortName,
        "mac" => FormatKind::Mac,
        "password" => FormatKind::Password,
        "rgbcolor" => FormatKind::RgbColor,
        "ssn" => FormatKind::Ssn,
        "uri" => FormatKind::Uri,
        "uuid" => FormatKind::Uuid,
        "uuid3" => FormatKind::Uuid3,
        "uuid4" => FormatKind::Uuid4,
        "uuid5" => FormatKind::Uuid5,
        _ => return None,
    })
}

fn fixed(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a pattern of this file")
}

static BASE64: LazyLock<Regex> = LazyLock::new(|| {
    fixed("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$")
});
static CREDIT_CARD: LazyLock<Regex> = LazyLock::new(|| {
    fixed(concat!(
        "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}",
        "|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$",
    ))
});
static RGB_COLOR: LazyLock<Regex> = LazyLock::new(|| {
    let part = r"[\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*";
    fixed(&format!(r"^rgb\({part},{part},{part}\)$"))
});
static SSN: LazyLock<Regex> = LazyLock::new(|| fixed("^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    fixed("^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$")
});
static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
    fixed(concat!(
        r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)",
        r"|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}",
        r"([a-zA-Z\p{L}]){2,63})$",
    ))
});
static DURATION_PART: LazyLock<Regex> =
    LazyLock::new(|| fixed(r"([0-9]+)[\t\n\f\r ]*([A-Za-zµ]+)"));

fn is_hex(value: &str) -> bool {
    value.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_label(value: &str) -> bool {
    let alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = value.as_bytes();
    bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
        && bytes.iter().all(|b| alphanumeric(b) || *b == b'-')
}

/// `2006-01-02`, a day that exists.
fn is_date(value: &str) -> bool {
    let bytes = value.as_bytes();
    let shaped = bytes.len() == 10
        && bytes.iter().enumerate().all(|(i, b)| match i {
            4 | 7 => *b == b'-',
            _ => b.is_ascii_digit(),
        });
    // Year 0 exists to Go and to jiff alike.
    shaped && value.parse::<jiff::civil::Date>().is_ok()
}

fn is_date_time(value: &str) -> bool {
    let lower = value.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    is_date(date)
        && TIME
            .captures(time)
            .is_some_and(|parts| &parts[1] <= "23" && &parts[2] <= "59" && &parts[3] <= "59")
}

/// A Go duration (`1h30m`), or words as Scala writes them (`3 days`).
fn is_duration(value: &str) -> bool {
    is_go_duration(value)
        || DURATION_PART
            .captures_iter(value)
            .any(|part| is_unit_word(&part[2]))
}

fn is_go_duration(value: &str) -> bool {
    go_duration_nanos(value).is_some()
}

/// The nanoseconds of a Go duration (`1h30m`, `-1.5s`).
pub(crate) fn go_duration_nanos(value: &str) -> Option<i64> {
    let (negative, mut rest) = match value.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, value.strip_prefix('+').unwrap_or(value)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let mut total = 0_f64;
    let mut whole = 0_i64;
    while !rest.is_empty() {
        let (digits, tail) = rest.split_at(rest.find(|c| !is_number(c))?);
        let (unit, tail) = tail.split_at(tail.find(is_number).unwrap_or(tail.len()));
        let nanos: i64 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        match digits.parse::<i64>() {
            Ok(count) => whole = whole.checked_add(count.checked_mul(nanos)?)?,
            Err(_) => total += digits.parse::<f64>().ok()? * nanos as f64,
        }
        rest = tail;
    }
    // Fractions are below a second or so, where doubles are exact enough.
    let sum = whole.checked_add(total as i64)?;
    Some(if negative { -sum } else { sum })
}

fn is_unit_word(word: &str) -> bool {
    const UNITS: [(&[&str], &str); 8] = [
        (&["ns"], "nano"),
        (&["us", "µs"], "micro"),
        (&["ms"], "milli"),
        (&["s"], "sec"),
        (&["m"], "min"),
        (&["h", "hr"], "hour"),
        (&["d"], "day"),
        (&["w", "wk"], "week"),
    ];
    let word = word.to_lowercase();
    UNITS
        .iter()
        .any(|(short, long)| short.contains(&word.as_str()) || word.starts_with(long))
}

/// Dotted decimals; leading zeros are tolerated as upstream does.
fn is_ipv4(value: &str) -> bool {
    parse_ipv4(value).is_some() || (value.contains('.') && value.parse::<Ipv6Addr>().is_ok())
}

fn parse_ipv4(value: &str) -> Option<Ipv4Addr> {
    let mut octets = [0_u8; 4];
    let mut count = 0;
    for part in value.split('.') {
        let number = Some(part)
            .filter(|part| part.bytes().all(|b| b.is_ascii_digit()))
            .and_then(|part| part.parse::<u32>().ok())?;
        *octets.get_mut(count)? = u8::try_from(number).ok()?;
        count += 1;
    }
    (count == 4).then(|| Ipv4Addr::from(octets))
}

fn is_cidr(value: &str) -> bool {
    let Some((address, bits)) = value.split_once('/') else {
        return false;
    };
    let bits_max = if parse_ipv4(address).is_some() {
        32
    } else if address.parse::<Ipv6Addr>().is_ok() {
        128
    } else {
        return false;
    };
    bits.bytes().all(|b| b.is_ascii_digit())
        && bits.parse::<u32>().is_ok_and(|bits| bits <= bits_max)
}

fn is_mac(value: &str) -> bool {
    let groups = |separator: char, width: usize, counts: &[usize]| {
        let parts: Vec<&str> = value.split(separator).collect();
        counts.contains(&parts.len())
            && parts.iter().all(|part| part.len() == width && is_hex(part))
    };
    groups(':', 2, &[6, 8, 20]) || groups('-', 2, &[6, 8, 20]) || groups('.', 4, &[3, 4, 10])
}

fn is_hostname(value: &str) -> bool {
    value.len() <= 255
        && value.split('.').all(|label| label.len() <= 63)
        && HOSTNAME.is_match(value)
}

/// The forms of RFC 5322 that `net/mail` takes and people use: `a@b`, `Name <a@b>`, `"q"@b`.
fn is_email(value: &str) -> bool {
    let value = value.trim();
    let address = match value.strip_suffix('>') {
        Some(rest) => match rest.rsplit_once('<') {
            Some((_, address)) => address,
            None => return false,
        },
        None => value,
    };
    let Some((local, domain)) = address.rsplit_once('@') else {
        return false;
    };
    let local_ok = match local.strip_prefix('"').and_then(|l| l.strip_suffix('"')) {
        Some(quoted) => !quoted.contains(['"', '\\', '\n', '\r']),
        None => is_dot_atom(local),
    };
    let domain_ok = match domain.strip_prefix('[').and_then(|d| d.strip_suffix(']')) {
        Some(literal) => parse_ipv4(literal).is_some() || literal.starts_with("IPv6:"),
        None => is_dot_atom(domain),
    };
    local_ok && domain_ok
}

fn is_dot_atom(value: &str) -> bool {
    value.split('.').all(|atom| {
        !atom.is_empty()
            && atom.chars().all(|c| {
                c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || !c.is_ascii()
            })
    })
}

/// What Go's `url.ParseRequestURI` takes: an absolute URI or an absolute path.
fn is_request_uri(value: &str) -> bool {
    if value.is_empty() || value.bytes().any(|b| b < b' ' || b == 0x7f) {
        return false;
    }
    let (scheme, rest) = match value.find(|c: char| !is_scheme_char(c)) {
        Some(0) => ("", value),
        Some(end) if value[end..].starts_with(':') => {
            if !value.starts_with(|c: char| c.is_ascii_alphabetic()) {
                return false;
            }
            (&value[..end], &value[end + 1..])
        }
        _ => ("", value),
    };
    if !rest.starts_with('/') {
        return !scheme.is_empty();
    }
    let path = rest.split('?').next().unwrap_or(rest);
    match rest.strip_prefix("//") {
        Some(after) if !scheme.is_empty() => {
            let end = after.find(['/', '?']).unwrap_or(after.len());
            let (authority, tail) = after.split_at(end);
            is_authority(authority) && has_valid_escapes(tail.split('?').next().unwrap_or(tail))
        }
        _ => has_valid_escapes(path),
    }
}

fn is_scheme_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')
}

fn is_authority(authority: &str) -> bool {
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let port = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, "")) if address.parse::<Ipv6Addr>().is_ok() => return true,
            Some((_, tail)) => match tail.strip_prefix(':') {
                Some(port) => port,
                None => return false,
            },
            None => return false,
        },
        None => host.split_once(':').map_or("", |(_, port)| port),
    };
    port.bytes().all(|b| b.is_ascii_digit())
        && !host.contains([' ', '<', '>', '"', '\\', '^', '`', '{', '|', '}'])
        && has_valid_escapes(authority)
}

fn has_valid_escapes(value: &str) -> bool {
    value.split('%').skip(1).all(|rest| {
        let bytes = rest.as_bytes();
        bytes.len() >= 2 && bytes[..2].iter().all(u8::is_ascii_hexdigit)
    })
}

/// Hyphens are optional between the groups.
fn is_uuid(value: &str, version: Option<char>) -> bool {
    let mut rest = value;
    let mut groups = [""; 5];
    for (i, width) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if i > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((group, tail)) = rest.split_at_checked(width) else {
            return false;
        };
        groups[i] = group;
        rest = tail;
    }
    if !rest.is_empty() || !groups.iter().all(|group| is_hex(group)) {
        return false;
    }
    let variant_ok = || groups[3].starts_with(['8', '9', 'a', 'b', 'A', 'B']);
    match version {
        None => true,
        Some('3') => groups[2].starts_with('3'),
        Some(version) => groups[2].starts_with(version) && variant_ok(),
    }
}

fn is_credit_card(value: &str) -> bool {
    let digits: String = value.chars().filter(char::is_ascii_digit).collect();
    if !CREDIT_CARD.is_match(&digits) {
        return false;
    }
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(i, b)| {
            let digit = u32::from(b - b'0');
            match (i % 2, digit * 2) {
                (0, _) => digit,
                (_, doubled) if doubled > 9 => doubled - 9,
                (_, doubled) => doubled,
            }
        })
        .sum();
    sum.is_multiple_of(10)
}

fn without_separators(value: &str) -> String {
    value
        .chars()
        .filter(|c| !c.is_ascii_whitespace() && *c != '-')
        .collect()
}

fn is_isbn10(value: &str) -> bool {
    let value = without_separators(value);
    let bytes = value.as_bytes();
    let shaped = bytes.len() == 10
        && bytes
            .iter()
            .enumerate()
            .all(|(i, b)| b.is_ascii_digit() || (i == 9 && *b == b'X'));
    shaped
        && (1_u32..)
            .zip(bytes)
            .map(|(weight, b)| weight * if *b == b'X' { 10 } else { u32::from(b - b'0') })
            .sum::<u32>()
            .is_multiple_of(11)
}

fn is_isbn13(value: &str) -> bool {
    let value = without_separators(value);
    let bytes = value.as_bytes();
    bytes.len() == 13
        && bytes.iter().all(u8::is_ascii_digit)
        && bytes
            .iter()
            .enumerate()
            .map(|(i, b)| u32::from(b - b'0') * if i % 2 == 0 { 1 } else { 3 })
            .sum::<u32>()
            .is_multiple_of(10)
}

#[cfg(test)]
mod tests;
