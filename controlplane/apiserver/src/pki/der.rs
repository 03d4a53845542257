//! The few facts of an X.509 certificate that this crate needs (RFC 5280, DER).
//!
//! It verifies nothing: certificates come from our own files, or from clients after the TLS library
//! has verified them.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

const SEQUENCE: u8 = 0x30;
const OID: u8 = 0x06;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const OCTET_STRING: u8 = 0x04;
const SAN_DNS: u8 = 0x82;
const SAN_IP: u8 = 0x87;

/// `id-at-commonName`.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
/// `id-at-organizationName`.
const ORGANIZATION: [u8; 3] = [0x55, 0x04, 0x0a];
/// `id-ce-subjectAltName`.
const SUBJECT_ALT_NAME: [u8; 3] = [0x55, 0x1d, 0x11];

/// What a certificate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFacts {
    /// Common name of the subject: a user's name. The last one, if there are several.
    pub common_name: Option<String>,
    /// Organizations of the subject: a user's groups.
    pub organizations: Vec<String>,
    /// End of validity.
    pub not_after: SystemTime,
    /// DNS names it is valid for.
    pub dns_names: Vec<String>,
    /// IP addresses it is valid for.
    pub ip_addresses: Vec<IpAddr>,
}

/// A text is not the DER encoding of a certificate.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error("not a DER certificate: {0}")]
pub struct DerError(&'static str);

/// Reads the facts of a DER encoded certificate.
///
/// # Errors
/// It is not a certificate, or has a subject that is not text.
pub fn certificate_facts(der: &[u8]) -> Result<CertificateFacts, DerError> {
    let mut outer = Reader(der).expect(SEQUENCE)?;
    let mut tbs = outer.expect(SEQUENCE)?;
    if tbs.peek() == Some(VERSION) {
        tbs.next()?;
    }
    // serialNumber, signature, issuer
    for _ in 0..3 {
        tbs.next()?;
    }
    let mut validity = tbs.expect(SEQUENCE)?;
    validity.next()?;
    let (tag, time) = validity.next()?;
    let not_after = parse_time(tag, time)?;
    let (common_name, organizations) = subject(tbs.expect(SEQUENCE)?)?;
    let mut facts = CertificateFacts {
        common_name,
        organizations,
        not_after,
        dns_names: Vec::new(),
        ip_addresses: Vec::new(),
    };
    while !tbs.0.is_empty() {
        let (tag, value) = tbs.next()?;
        if tag == EXTENSIONS {
            extensions(Reader(value).expect(SEQUENCE)?, &mut facts)?;
        }
    }
    Ok(facts)
}

fn subject(mut name: Reader<'_>) -> Result<(Option<String>, Vec<String>), DerError> {
    let (mut common_name, mut organizations) = (None, Vec::new());
    while !name.0.is_empty() {
        let (_, set) = name.next()?;
        let mut set = Reader(set);
        while !set.0.is_empty() {
            let mut attribute = set.expect(SEQUENCE)?;
            let oid = attribute.expect(OID)?.0;
            let (_, value) = attribute.next()?;
            let text = || {
                let text = std::str::from_utf8(value).map_err(|_| DerError("subject text"))?;
                Ok(text.to_owned())
            };
            if oid == COMMON_NAME {
                common_name = Some(text()?);
            } else if oid == ORGANIZATION {
                organizations.push(text()?);
            }
        }
    }
    Ok((common_name, organizations))
}

fn extensions(mut list: Reader<'_>, facts: &mut CertificateFacts) -> Result<(), DerError> {
    while !list.0.is_empty() {
        let mut extension = list.expect(SEQUENCE)?;
        if extension.expect(OID)?.0 != SUBJECT_ALT_NAME {
            continue;
        }
        let (mut tag, mut value) = extension.next()?;
        if tag != OCTET_STRING {
            // The optional `critical` flag.
            (tag, value) = extension.next()?;
        }
        if tag != OCTET_STRING {
            return Err(DerError("extension value"));
        }
        let mut names = Reader(value).expect(SEQUENCE)?;
        while !names.0.is_empty() {
            match names.next()? {
                (SAN_DNS, name) => {
                    facts
                        .dns_names
                        .push(String::from_utf8_lossy(name).into_owned());
                }
                (SAN_IP, ip) => {
                    let v4 = <[u8; 4]>::try_from(ip).map(IpAddr::from);
                    let v6 = <[u8; 16]>::try_from(ip).map(IpAddr::from);
                    facts
                        .ip_addresses
                        .push(v4.or(v6).map_err(|_| DerError("IP address"))?);
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// `YYMMDDHHMMSSZ` (years before 50 are in this century) or `YYYYMMDDHHMMSSZ`, RFC 5280 4.1.2.5.
fn parse_time(tag: u8, text: &[u8]) -> Result<SystemTime, DerError> {
    let bad = DerError("time");
    let text = std::str::from_utf8(text).map_err(|_| bad)?;
    let year = match (tag, text.len()) {
        (UTC_TIME, 13) => {
            let short: i16 = text.get(..2).and_then(|y| y.parse().ok()).ok_or(bad)?;
            if short < 50 {
                2000 + short
            } else {
                1900 + short
            }
        }
        (GENERALIZED_TIME, 15) => text.get(..4).and_then(|y| y.parse().ok()).ok_or(bad)?,
        _ => return Err(bad),
    };
    let rest = text.strip_suffix('Z').ok_or(bad)?;
    let rest = rest.get(rest.len() - 10..).ok_or(bad)?;
    let pair = |at: usize| {
        rest.get(at..at + 2)
            .and_then(|n| n.parse::<i8>().ok())
            .ok_or(bad)
    };
    let civil =
        jiff::civil::DateTime::new(year, pair(0)?, pair(2)?, pair(4)?, pair(6)?, pair(8)?, 0)
            .map_err(|_| bad)?;
    let seconds = civil
        .to_zoned(jiff::tz::TimeZone::UTC)
        .map_err(|_| bad)?
        .timestamp()
        .as_second();
    let since = Duration::from_secs(u64::try_from(seconds).map_err(|_| bad)?);
    Ok(SystemTime::UNIX_EPOCH + since)
}

/// Rest of a run of DER elements.
#[derive(Clone, Copy)]
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// Tag and content of the next element.
    fn next(&mut self) -> Result<(u8, &'a [u8]), DerError> {
        let cut = DerError("it ends too early");
        let (&tag, rest) = self.0.split_first().ok_or(cut)?;
        let (&first, mut rest) = rest.split_first().ok_or(cut)?;
        let mut length = usize::from(first);
        if first & 0x80 != 0 {
            let count = usize::from(first & 0x7f);
            if count == 0 || count > 4 {
                return Err(DerError("length"));
            }
            let digits = rest.get(..count).ok_or(cut)?;
            length = digits
                .iter()
                .fold(0, |length, &digit| (length << 8) | usize::from(digit));
            rest = rest.get(count..).ok_or(cut)?;
        }
        let content = rest.get(..length).ok_or(cut)?;
        self.0 = rest.get(length..).ok_or(cut)?;
        Ok((tag, content))
    }

    /// Content of the next element, which must have a tag.
    fn expect(&mut self, want: u8) -> Result<Reader<'a>, DerError> {
        match self.next()? {
            (tag, content) if tag == want => Ok(Reader(content)),
            _ => Err(DerError("unexpected element")),
        }
    }
}
