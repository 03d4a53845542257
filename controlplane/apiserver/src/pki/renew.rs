//! The server's certificate, renewed while it runs.

use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::RwLock;
use rcgen::SanType;
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::{KeyCertificate, LEAF_RENEW_BEFORE, Pki, PkiError, facts, new_server};

/// Shows clients a certificate that is never close to expiry.
pub(super) struct Renewing {
    ca: KeyCertificate,
    sans: Vec<SanType>,
    provider: Arc<CryptoProvider>,
    clock: fn() -> SystemTime,
    current: RwLock<Current>,
}

struct Current {
    key: Arc<CertifiedKey>,
    renew_at: SystemTime,
}

impl std::fmt::Debug for Renewing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Renewing").finish_non_exhaustive()
    }
}

impl Renewing {
    pub(super) fn new(
        pki: &Pki,
        provider: Arc<CryptoProvider>,
        clock: fn() -> SystemTime,
    ) -> Result<Self, PkiError> {
        let current = Current::of(&pki.server, &provider)?;
        Ok(Self {
            ca: pki.ca.clone(),
            sans: pki.sans.clone(),
            provider,
            clock,
            current: RwLock::new(current),
        })
    }

    fn key(&self) -> Arc<CertifiedKey> {
        let now = (self.clock)();
        {
            let current = self.current.read();
            if now < current.renew_at {
                return Arc::clone(&current.key);
            }
        }
        let mut current = self.current.write();
        if now >= current.renew_at {
            // The file of the data directory is renewed by the next start.
            let renewed = new_server(&self.ca, &self.sans, now)
                .and_then(|pair| Current::of(&pair, &self.provider));
            match renewed {
                Ok(renewed) => *current = renewed,
                Err(error) => tracing::error!(%error, "server certificate cannot be renewed"),
            }
        }
        Arc::clone(&current.key)
    }
}

impl Current {
    fn of(pair: &KeyCertificate, provider: &CryptoProvider) -> Result<Self, PkiError> {
        let chain = vec![pair.der().map_err(PkiError::Verifier)?];
        let key = pair.key_der().map_err(PkiError::Verifier)?;
        let key = CertifiedKey::from_der(chain, key, provider)?;
        let not_after = facts(pair).map_or(SystemTime::UNIX_EPOCH, |facts| facts.not_after);
        let renew_at = not_after
            .checked_sub(LEAF_RENEW_BEFORE)
            .unwrap_or(not_after);
        Ok(Self {
            key: Arc::new(key),
            renew_at,
        })
    }
}

impl ResolvesServerCert for Renewing {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.key())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::pki::LEAF_LIFETIME;

    #[test]
    fn a_server_that_runs_for_years_shows_a_valid_certificate() {
        let now = || SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
        let years_later = || SystemTime::UNIX_EPOCH + Duration::from_secs(1_890_000_000);
        let pki = Pki::ephemeral(&[], now()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let fresh = Renewing::new(&pki, Arc::clone(&provider), now).unwrap();
        assert!(Arc::ptr_eq(&fresh.key(), &fresh.key()));
        let mut stale = Renewing::new(&pki, provider, years_later).unwrap();
        let first = stale.key();
        let facts = crate::pki::certificate_facts(&first.cert[0]).unwrap();
        assert_eq!(facts.not_after, years_later() + LEAF_LIFETIME);
        assert_eq!(facts.dns_names, ["localhost"]);
        assert!(Arc::ptr_eq(&first, &stale.key()), "renewed once");
        stale.clock = now;
        assert!(Arc::ptr_eq(&first, &stale.key()));
    }
}
