//! Digests and platforms.

use sha2::{Digest as _, Sha256};

use crate::Error;

/// A SHA-256 digest, `sha256:<hex>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(String);

const ALGORITHM: &str = "sha256:";

impl Digest {
    /// The digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::new(Sha256::digest(bytes).as_slice())
    }

    /// The digest of all that a reader gives.
    pub(crate) fn of_reader(reader: &mut impl std::io::Read) -> std::io::Result<Self> {
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 64 << 10];
        loop {
            match reader.read(&mut buffer)? {
                0 => return Ok(Self::new(hash.finalize().as_slice())),
                read => hash.update(&buffer[..read]),
            }
        }
    }

    pub(crate) fn new(hash: &[u8]) -> Self {
        Self(format!("{ALGORITHM}{}", hex::encode(hash)))
    }

    /// Reads a digest.
    ///
    /// # Errors
    /// It is none, or not of SHA-256.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let hex = text.strip_prefix(ALGORITHM).unwrap_or_default();
        let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        match hex.len() == 64 && hex.bytes().all(is_hex) {
            true => Ok(Self(text.to_owned())),
            false => Err(Error::Manifest {
                what: format!("digest {text:?}"),
                why: "expected sha256: and 64 hexadecimal digits in lower case".into(),
            }),
        }
    }

    /// The digest with its algorithm.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The digest without its algorithm.
    pub fn hex(&self) -> &str {
        &self.0[ALGORITHM.len()..]
    }

    /// Refuses bytes that have another digest.
    pub(crate) fn verify(&self, what: &str, found: Self) -> Result<(), Error> {
        match found == *self {
            true => Ok(()),
            false => Err(Error::Digest {
                what: what.into(),
                expected: self.0.clone(),
                found: found.0,
            }),
        }
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// An operating system and an architecture, in Go's names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Platform {
    /// Operating system, such as `linux`.
    pub os: String,
    /// Architecture, such as `amd64`.
    pub architecture: String,
}

impl Platform {
    /// What Crossplane's package manager reads, whatever it runs on (contract 6.1).
    pub fn package_manager() -> Self {
        Self {
            os: "linux".into(),
            architecture: "amd64".into(),
        }
    }

    /// What this program runs on.
    pub fn host() -> Self {
        let os = match std::env::consts::OS {
            "macos" => "darwin",
            other => other,
        };
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        Self {
            os: os.into(),
            architecture: architecture.into(),
        }
    }
}

impl std::str::FromStr for Platform {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split('/').collect::<Vec<_>>()[..] {
            [os, architecture] if !os.is_empty() && !architecture.is_empty() => Ok(Self {
                os: os.into(),
                architecture: architecture.into(),
            }),
            _ => Err("expected OS/ARCHITECTURE, such as linux/amd64".into()),
        }
    }
}

impl std::fmt::Display for Platform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)
    }
}
