//! The control plane's own certificate authority and the credentials it makes.
//!
//! A data directory holds `ca.crt` (to give to clients), `ca.pem`, `server.pem` and `admin.pem` (key
//! and certificate in one file, so that no crash can leave a pair that does not match), and `token`.
//! All are made on the first start, reused on the next, and renewed when close to expiry.

mod der;
mod files;
mod renew;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;

use renew::Renewing;

pub use der::{CertificateFacts, DerError, certificate_facts};

/// Group whose members may do everything.
pub const MASTERS_GROUP: &str = "system:masters";
/// User name of the administrator's token and certificate.
pub const ADMIN_USER: &str = "kubernetes-admin";

const DAY: Duration = Duration::from_secs(24 * 3600);
const CA_LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
const CA_RENEW_BEFORE: Duration = Duration::from_secs(365 * 24 * 3600);
const LEAF_LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);
const LEAF_RENEW_BEFORE: Duration = Duration::from_secs(90 * 24 * 3600);
const TOKEN_BYTES: usize = 32;

/// Names every server certificate is valid for.
const DEFAULT_SANS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Why credentials could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// A file of the data directory could not be read or written.
    #[error("credential file {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// What failed.
        #[source]
        source: std::io::Error,
    },
    /// A file of the data directory does not hold what it should.
    #[error("credential file {path} is damaged: {reason}; remove it to have a new one made")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A name for the server certificate is neither an IP address nor a DNS name.
    #[error("{0:?} is not a name for a server certificate")]
    InvalidName(String),
    /// A key or certificate could not be made.
    #[error("certificate generation")]
    Generate(#[from] rcgen::Error),
    /// The system's random source failed.
    #[error("random source: {0}")]
    Random(String),
    /// The TLS library refuses the credentials.
    #[error("TLS configuration")]
    Tls(#[from] rustls::Error),
    /// The TLS library refuses the certificate authority.
    #[error("client certificate verification: {0}")]
    Verifier(String),
}

/// A private key and its certificate, PEM encoded. The key never shows in logs.
#[derive(Clone)]
pub struct KeyCertificate {
    /// Certificate, PEM.
    pub certificate_pem: String,
    key_pem: String,
}

impl KeyCertificate {
    /// The private key, PEM (PKCS #8).
    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }

    fn der(&self) -> Result<CertificateDer<'static>, String> {
        CertificateDer::from_pem_slice(self.certificate_pem.as_bytes()).map_err(|e| e.to_string())
    }

    fn key_der(&self) -> Result<PrivateKeyDer<'static>, String> {
        PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes()).map_err(|e| e.to_string())
    }
}

impl std::fmt::Debug for KeyCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyCertificate").finish_non_exhaustive()
    }
}

/// The control plane's credentials.
#[derive(Clone)]
pub struct Pki {
    ca: KeyCertificate,
    /// Names of the server certificate.
    sans: Vec<SanType>,
    server: KeyCertificate,
    admin: KeyCertificate,
    token: String,
}

impl std::fmt::Debug for Pki {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pki").finish_non_exhaustive()
    }
}

impl Pki {
    /// Opens the credentials in a directory, making what is missing or close to expiry.
    ///
    /// `names` are further DNS names and IP addresses that the server is reached by. `now` is the
    /// time certificates are judged by and start at.
    ///
    /// # Errors
    /// The directory cannot be read or written, holds something else, or a name is invalid.
    pub fn open(dir: &Path, names: &[String], now: SystemTime) -> Result<Self, PkiError> {
        files::create_private_dir(dir)?;
        let ca = match stored(dir, "ca.pem")? {
            Some(ca) if expires_after(&ca, now + CA_RENEW_BEFORE) => ca,
            _ => {
                // Leaves go first: a crash in between must not leave leaves of another authority.
                files::remove(&dir.join("server.pem"))?;
                files::remove(&dir.join("admin.pem"))?;
                let ca = new_ca(now)?;
                store(dir, "ca.pem", &ca)?;
                ca
            }
        };
        files::write_private(&dir.join("ca.crt"), ca.certificate_pem.as_bytes())?;
        let sans = server_names(names)?;
        let server = match stored(dir, "server.pem")? {
            Some(leaf) if is_fresh_leaf(&leaf, now) && covers(&leaf, &sans) => leaf,
            _ => kept(dir, "server.pem", new_server(&ca, &sans, now)?)?,
        };
        let admin = match stored(dir, "admin.pem")? {
            Some(leaf) if is_fresh_leaf(&leaf, now) => leaf,
            _ => kept(
                dir,
                "admin.pem",
                new_client(&ca, ADMIN_USER, MASTERS_GROUP, now)?,
            )?,
        };
        let token = open_token(&dir.join("token"))?;
        Ok(Self {
            ca,
            sans,
            server,
            admin,
            token,
        })
    }

    /// Makes credentials that live in memory only.
    ///
    /// # Errors
    /// A name is invalid, or generation failed.
    pub fn ephemeral(names: &[String], now: SystemTime) -> Result<Self, PkiError> {
        let ca = new_ca(now)?;
        let sans = server_names(names)?;
        let server = new_server(&ca, &sans, now)?;
        let admin = new_client(&ca, ADMIN_USER, MASTERS_GROUP, now)?;
        Ok(Self {
            ca,
            sans,
            server,
            admin,
            token: new_token()?,
        })
    }

    /// The authority's certificate, PEM: what clients verify the server with.
    pub fn ca_pem(&self) -> &str {
        &self.ca.certificate_pem
    }

    /// The administrator's client certificate and key.
    pub fn admin(&self) -> &KeyCertificate {
        &self.admin
    }

    /// The administrator's bearer token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// A client certificate of this authority for another user.
    ///
    /// # Errors
    /// Generation failed.
    pub fn issue_client(
        &self,
        user: &str,
        group: &str,
        now: SystemTime,
    ) -> Result<KeyCertificate, PkiError> {
        new_client(&self.ca, user, group, now)
    }

    /// TLS settings of the server: its certificate, renewed while it runs; HTTP/2 and HTTP/1.1; and
    /// client certificates of this authority asked for but not required (a bearer token will do).
    ///
    /// # Errors
    /// The TLS library refuses the credentials.
    pub fn server_config(&self) -> Result<rustls::ServerConfig, PkiError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.ca.der().map_err(PkiError::Verifier)?)?;
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .allow_unauthenticated()
                .build()
                .map_err(|e| PkiError::Verifier(e.to_string()))?;
        let certificates = Renewing::new(self, Arc::clone(&provider), SystemTime::now)?;
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(certificates));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// Text of a kubeconfig that reaches a server with a bearer token.
///
/// `ca_pem` is `None` for a server without TLS.
pub fn kubeconfig(server_url: &str, ca_pem: Option<&str>, token: Option<&str>) -> String {
    // JSON strings are YAML strings: no value can break out of its place.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut text =
        String::from("apiVersion: v1\nkind: Config\nclusters:\n- name: ecp\n  cluster:\n");
    text.push_str(&format!("    server: {}\n", quoted(server_url)));
    if let Some(pem) = ca_pem {
        let data = base64::engine::general_purpose::STANDARD.encode(pem);
        text.push_str(&format!("    certificate-authority-data: {data}\n"));
    }
    text.push_str("users:\n- name: admin\n");
    match token {
        Some(token) => text.push_str(&format!("  user:\n    token: {}\n", quoted(token))),
        None => text.push_str("  user: {}\n"),
    }
    text.push_str("contexts:\n- name: ecp\n  context:\n    cluster: ecp\n    user: admin\n");
    text.push_str("    namespace: default\ncurrent-context: ecp\n");
    text
}

/// Writes a file that only its owner can read, replacing an older one in one step.
///
/// # Errors
/// The file cannot be written.
pub fn write_private(path: &Path, content: &[u8]) -> Result<(), PkiError> {
    files::write_private(path, content)
}

fn stored(dir: &Path, name: &str) -> Result<Option<KeyCertificate>, PkiError> {
    let path = dir.join(name);
    let Some(text) = files::read(&path)? else {
        return Ok(None);
    };
    let damaged = |reason: String| PkiError::Damaged {
        path: path.clone(),
        reason,
    };
    let split = text
        .find("-----BEGIN CERTIFICATE-----")
        .ok_or_else(|| damaged("no certificate".to_owned()))?;
    let (key, certificate) = text.split_at(split);
    let pair = KeyCertificate {
        certificate_pem: certificate.to_owned(),
        key_pem: key.to_owned(),
    };
    let facts = pair
        .der()
        .and_then(|der| certificate_facts(&der).map_err(|e| e.to_string()));
    facts.map_err(damaged)?;
    pair.key_der().map_err(damaged)?;
    Ok(Some(pair))
}

fn store(dir: &Path, name: &str, pair: &KeyCertificate) -> Result<(), PkiError> {
    let text = format!("{}{}", pair.key_pem, pair.certificate_pem);
    files::write_private(&dir.join(name), text.as_bytes())
}

fn kept(dir: &Path, name: &str, pair: KeyCertificate) -> Result<KeyCertificate, PkiError> {
    store(dir, name, &pair)?;
    Ok(pair)
}

fn facts(pair: &KeyCertificate) -> Option<CertificateFacts> {
    certificate_facts(&pair.der().ok()?).ok()
}

fn expires_after(pair: &KeyCertificate, time: SystemTime) -> bool {
    facts(pair).is_some_and(|facts| facts.not_after > time)
}

fn is_fresh_leaf(pair: &KeyCertificate, now: SystemTime) -> bool {
    expires_after(pair, now + LEAF_RENEW_BEFORE)
}

fn covers(pair: &KeyCertificate, sans: &[SanType]) -> bool {
    let Some(facts) = facts(pair) else {
        return false;
    };
    sans.iter().all(|san| match san {
        SanType::DnsName(name) => facts.dns_names.iter().any(|have| have == name.as_str()),
        SanType::IpAddress(ip) => facts.ip_addresses.contains(ip),
        _ => false,
    })
}

fn server_names(extra: &[String]) -> Result<Vec<SanType>, PkiError> {
    let names = DEFAULT_SANS
        .iter()
        .copied()
        .chain(extra.iter().map(String::as_str));
    let mut sans = Vec::new();
    for name in names {
        let san = match name.parse::<IpAddr>() {
            Ok(ip) => SanType::IpAddress(ip),
            Err(_) => {
                let invalid = || PkiError::InvalidName(name.to_owned());
                if !ecp_meta::names::is_dns1123_subdomain(name) {
                    return Err(invalid());
                }
                SanType::DnsName(name.try_into().map_err(|_| invalid())?)
            }
        };
        if !sans.contains(&san) {
            sans.push(san);
        }
    }
    Ok(sans)
}

fn params(now: SystemTime, lifetime: Duration) -> CertificateParams {
    let mut params = CertificateParams::default();
    // A day of slack for clients whose clock is behind.
    params.not_before = (now - DAY).into();
    params.not_after = (now + lifetime).into();
    params.distinguished_name = DistinguishedName::new();
    params
}

fn ca_params(now: SystemTime) -> CertificateParams {
    let mut params = params(now, CA_LIFETIME);
    params.distinguished_name.push(DnType::CommonName, "ecp-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    params
}

fn new_ca(now: SystemTime) -> Result<KeyCertificate, PkiError> {
    let key = KeyPair::generate()?;
    let certificate = ca_params(now).self_signed(&key)?;
    Ok(KeyCertificate {
        certificate_pem: certificate.pem(),
        key_pem: key.serialize_pem(),
    })
}

fn new_leaf(
    ca: &KeyCertificate,
    mut params: CertificateParams,
) -> Result<KeyCertificate, PkiError> {
    // The issuer's name and key identifier are functions of the fixed name and the key, so the
    // authority's parameters need not be read back from its certificate.
    let issuer = Issuer::new(
        ca_params(SystemTime::UNIX_EPOCH + DAY),
        KeyPair::from_pem(&ca.key_pem)?,
    );
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(KeyCertificate {
        certificate_pem: certificate.pem(),
        key_pem: key.serialize_pem(),
    })
}

fn new_server(
    ca: &KeyCertificate,
    sans: &[SanType],
    now: SystemTime,
) -> Result<KeyCertificate, PkiError> {
    let mut params = params(now, LEAF_LIFETIME);
    params
        .distinguished_name
        .push(DnType::CommonName, "ecp-apiserver");
    params.subject_alt_names = sans.to_vec();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    new_leaf(ca, params)
}

fn new_client(
    ca: &KeyCertificate,
    user: &str,
    group: &str,
    now: SystemTime,
) -> Result<KeyCertificate, PkiError> {
    let mut params = params(now, LEAF_LIFETIME);
    params.distinguished_name.push(DnType::CommonName, user);
    params
        .distinguished_name
        .push(DnType::OrganizationName, group);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    new_leaf(ca, params)
}

fn new_token() -> Result<String, PkiError> {
    use rand::TryRngCore as _;
    let mut bytes = [0u8; TOKEN_BYTES];
    rand::rngs::OsRng
        .try_fill_bytes(&mut bytes)
        .map_err(|e| PkiError::Random(e.to_string()))?;
    Ok(hex::encode(bytes))
}

fn open_token(path: &Path) -> Result<String, PkiError> {
    if let Some(text) = files::read(path)? {
        let token = text.trim();
        if token.len() < TOKEN_BYTES || !token.bytes().all(|b| b.is_ascii_graphic()) {
            let reason = "too short, or not printable".to_owned();
            return Err(PkiError::Damaged {
                path: path.to_owned(),
                reason,
            });
        }
        return Ok(token.to_owned());
    }
    let token = new_token()?;
    files::write_private(path, format!("{token}\n").as_bytes())?;
    Ok(token)
}

#[cfg(test)]
mod tests;
