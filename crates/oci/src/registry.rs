//! Registries: manifests, layers and tags of a repository.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::{OciDistributionError, OciErrorCode};
use oci_client::manifest::OciDescriptor;
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use crate::blobs::Wanted;
use crate::limits::{
    CONNECT_TIMEOUT, MANIFEST_BYTES_MAX, PUSH_PIECE_BYTES, READ_TIMEOUT, TAGS_MAX, TAGS_PAGE,
};
use crate::{Digest, Error, Options, Progress, credentials, media};

/// All registries, each with a client of its own that keeps its tokens.
#[derive(Clone)]
pub(crate) struct Registries {
    options: Arc<Options>,
    clients: Arc<Mutex<BTreeMap<String, (Client, RegistryAuth)>>>,
}

/// A repository of a registry, and perhaps a tag or digest in it.
#[derive(Clone)]
pub(crate) struct Repository {
    client: Client,
    auth: RegistryAuth,
    reference: Reference,
}

impl std::fmt::Debug for Repository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Repository").field(&self.reference).finish()
    }
}

impl Registries {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            options: Arc::new(options),
            clients: Arc::default(),
        }
    }

    pub(crate) async fn repository(&self, reference: &Reference) -> Result<Repository, Error> {
        let host = reference.resolve_registry().to_owned();
        let known = self.clients.lock().get(&host).cloned();
        let (client, auth) = match known {
            Some(known) => known,
            None => {
                let auth = credentials::find(&self.options, reference.registry()).await?;
                let client = self.client(&host)?;
                client.store_auth_if_needed(&host, &auth).await;
                let new = (client, auth);
                self.clients.lock().insert(host, new.clone());
                new
            }
        };
        Ok(Repository {
            client,
            auth,
            reference: reference.clone(),
        })
    }

    fn client(&self, host: &str) -> Result<Client, Error> {
        let plain = self.options.insecure || is_loopback(host);
        let config = ClientConfig {
            protocol: match plain {
                true => ClientProtocol::Http,
                false => ClientProtocol::Https,
            },
            accept_invalid_certificates: self.options.skip_tls_verify,
            // One request a layer: not every registry takes pieces.
            use_monolithic_push: true,
            connect_timeout: Some(CONNECT_TIMEOUT),
            read_timeout: Some(READ_TIMEOUT),
            user_agent: concat!("ecp/", env!("CARGO_PKG_VERSION")),
            ..ClientConfig::default()
        };
        Client::try_from(config).map_err(|source| Error::Registry {
            registry: host.into(),
            what: "making a client".into(),
            source: Box::new(source),
        })
    }
}

/// Whether a registry is on this machine, where plain HTTP will do (go-containerregistry `pkg/name`).
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || address.parse::<IpAddr>().is_ok_and(|a| a.is_loopback())
}

impl Repository {
    fn failed(&self, what: &str) -> impl FnOnce(OciDistributionError) -> Error {
        let registry = self.reference.registry().to_owned();
        let name = self.reference.to_string();
        let what = format!("{what} {name}");
        move |source| match is_not_found(&source) {
            true => Error::NotFound(name),
            false => Error::Registry {
                registry,
                what,
                source: Box::new(source),
            },
        }
    }

    /// The same repository, another image.
    fn at(&self, digest: &Digest) -> Self {
        Self {
            reference: self.reference.clone_with_digest(digest.as_str().into()),
            ..self.clone()
        }
    }

    /// The digest of what the tag stands for.
    pub(crate) async fn digest(&self) -> Result<Digest, Error> {
        let digest = self
            .client
            .fetch_manifest_digest(&self.reference, &self.auth);
        Digest::parse(&digest.await.map_err(self.failed("looking for"))?)
    }

    /// The manifest or index that the tag or digest stands for.
    pub(crate) async fn manifest(&self) -> Result<(Bytes, Digest), Error> {
        let pull = self
            .client
            .pull_manifest_raw(&self.reference, &self.auth, media::MANIFESTS);
        let (bytes, _) = match pull.await {
            Err(OciDistributionError::DigestError(error)) => return Err(self.wrong(error)),
            other => other.map_err(self.failed("reading"))?,
        };
        let what = self.reference.to_string();
        let size = bytes.len() as u64;
        if size > MANIFEST_BYTES_MAX {
            return Err(Error::TooLarge {
                what,
                size,
                max: MANIFEST_BYTES_MAX,
            });
        }
        let found = Digest::of(&bytes);
        if let Some(digest) = self.reference.digest() {
            Digest::parse(digest)?.verify(&what, found.clone())?;
        }
        Ok((bytes, found))
    }

    fn wrong(&self, error: oci_client::errors::DigestError) -> Error {
        use oci_client::errors::DigestError;
        match error {
            DigestError::VerificationError { expected, actual } => Error::Digest {
                what: self.reference.to_string(),
                expected,
                found: actual,
            },
            other => self.failed("reading")(other.into()),
        }
    }

    /// The manifest of a digest in this repository.
    pub(crate) async fn manifest_at(&self, digest: &Digest) -> Result<Bytes, Error> {
        Ok(self.at(digest).manifest().await?.0)
    }

    /// A layer or configuration, in a file that nobody else sees.
    pub(crate) async fn blob(
        &self,
        wanted: &Wanted,
        progress: &dyn Progress,
    ) -> Result<File, Error> {
        let descriptor = OciDescriptor {
            digest: wanted.digest.to_string(),
            ..OciDescriptor::default()
        };
        let mut stream = self
            .client
            .pull_blob_stream(&self.reference, &descriptor)
            .await
            .map_err(self.failed(&format!("reading {} of", wanted.what)))?;
        let mut file = tempfile::tempfile().map_err(Error::file(std::env::temp_dir()))?;
        let mut hash = Sha256::new();
        let mut size = 0;
        progress.begin(&wanted.digest, wanted.size);
        while let Some(piece) = stream.stream.next().await {
            let piece = match piece {
                Ok(piece) => piece,
                Err(error) => {
                    wanted.verify(size, Digest::new(hash.finalize().as_slice()))?;
                    return Err(self.failed("reading")(error.into()));
                }
            };
            size += piece.len() as u64;
            if size > wanted.size {
                break;
            }
            hash.update(&piece);
            file.write_all(&piece)
                .map_err(Error::file(std::env::temp_dir()))?;
            progress.advance(&wanted.digest, piece.len() as u64);
        }
        wanted.verify(size, Digest::new(hash.finalize().as_slice()))?;
        progress.end(&wanted.digest);
        file.rewind().map_err(Error::file(std::env::temp_dir()))?;
        Ok(file)
    }

    /// Every tag.
    pub(crate) async fn tags(&self) -> Result<Vec<String>, Error> {
        let mut tags: Vec<String> = Vec::new();
        loop {
            let last = tags.last().cloned();
            let page = self
                .client
                .list_tags(
                    &self.reference,
                    &self.auth,
                    Some(TAGS_PAGE),
                    last.as_deref(),
                )
                .await
                .map_err(self.failed("listing tags of"))?;
            let full = page.tags.len() >= TAGS_PAGE;
            // A registry without pages gives all of them, each time.
            let new: Vec<_> = page
                .tags
                .into_iter()
                .filter(|tag| !tags.contains(tag))
                .collect();
            let done = new.is_empty() || !full || tags.len() >= TAGS_MAX;
            tags.extend(new);
            if done {
                return Ok(tags);
            }
        }
    }

    /// Pushes a layer or configuration that is not there yet.
    pub(crate) async fn push_blob(
        &self,
        digest: &Digest,
        bytes: Bytes,
        progress: &Arc<dyn Progress>,
    ) -> Result<(), Error> {
        let size = bytes.len() as u64;
        progress.begin(digest, size);
        let exists = self.client.blob_exists(&self.reference, digest.as_str());
        // Not every registry answers; it is only to save work.
        if exists.await.unwrap_or(false) {
            progress.advance(digest, size);
        } else {
            let (progress, of) = (progress.clone(), digest.clone());
            let pieces = (0..bytes.len()).step_by(PUSH_PIECE_BYTES).map(move |from| {
                let to = bytes.len().min(from + PUSH_PIECE_BYTES);
                progress.advance(&of, (to - from) as u64);
                Ok(bytes.slice(from..to))
            });
            let pushed = self.client.push_blob_stream(
                &self.reference,
                futures::stream::iter(pieces),
                digest.as_str(),
                Some(size),
            );
            match pushed.await {
                // Some registries do not say where it is now, which nobody needs to know.
                Err(OciDistributionError::RegistryNoLocationError)
                    if self
                        .client
                        .blob_exists(&self.reference, digest.as_str())
                        .await
                        .unwrap_or(false) => {}
                pushed => drop(pushed.map_err(self.failed(&format!("pushing {digest} to")))?),
            }
        }
        progress.end(digest);
        Ok(())
    }

    /// Pushes a manifest or index by its digest, or by the tag.
    pub(crate) async fn push_manifest(
        &self,
        digest: Option<&Digest>,
        bytes: Bytes,
        media_type: &str,
    ) -> Result<(), Error> {
        let mut to = self.clone();
        if let Some(digest) = digest {
            // As if it were a tag: oci-client 0.18 panics when a registry says nothing of where a
            // manifest that was pushed by its digest is.
            let (registry, repository) = (self.reference.registry(), self.reference.repository());
            let tag = digest.to_string();
            to.reference = Reference::with_tag(registry.into(), repository.into(), tag);
        }
        let content_type = media_type.parse().map_err(|_| Error::Manifest {
            what: self.reference.to_string(),
            why: format!("media type {media_type:?}"),
        })?;
        self.client
            .push_manifest_raw(&to.reference, bytes, content_type)
            .await
            .map_err(to.failed("pushing"))?;
        Ok(())
    }
}

fn is_not_found(error: &OciDistributionError) -> bool {
    match error {
        OciDistributionError::ImageManifestNotFoundError(_) => true,
        OciDistributionError::ServerError { code, .. } => *code == 404,
        OciDistributionError::RegistryError { envelope, .. } => envelope.errors.iter().any(|e| {
            matches!(
                e.code,
                OciErrorCode::ManifestUnknown | OciErrorCode::NameUnknown
            )
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_asked_without_tls() {
        for plain in [
            "localhost",
            "localhost:5000",
            "127.0.0.1:80",
            "127.1.2.3",
            "[::1]:5000",
        ] {
            assert!(is_loopback(plain), "{plain}");
        }
        for tls in [
            "ghcr.io",
            "localhost.example.org",
            "10.0.0.1:5000",
            "xlocalhost:1",
            "127.x.io",
        ] {
            assert!(!is_loopback(tls), "{tls}");
        }
    }
}
