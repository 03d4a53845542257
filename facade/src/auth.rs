//! Who calls, and whether they may (SECA section 3.10, ECP features section 4).
//!
//! An [`Authenticator`] turns a bearer token into an [`Identity`]; the roles of the tenant decide on
//! its [`Claim`] (see `rbac`). Everything that is not granted is denied; an administrator's identity
//! bypasses the roles.

use std::collections::HashMap;
use std::fmt;

use async_trait::async_trait;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest as _, Sha256};

use crate::error::{ApiError, ErrorKind};

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Subject, as role assignments name it.
    pub subject: String,
    /// Whether the caller administers the whole installation and bypasses roles.
    pub admin: bool,
}

impl Identity {
    /// An administrator.
    pub fn admin(subject: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            admin: true,
        }
    }
}

/// What a caller wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim<'a> {
    /// Provider, such as `seca.storage`.
    pub(crate) provider: &'a str,
    /// Tenant of the path; empty on tenant-less paths.
    pub(crate) tenant: &'a str,
    /// Workspace of the path. A path that names a workspace itself has it too.
    pub(crate) workspace: &'a str,
    /// Region of the URL; empty for global APIs.
    pub(crate) region: &'a str,
    /// Collection below the tenant or workspace, such as `block-storages` or `networks/subnets`.
    pub(crate) collection: &'a str,
    /// Name of the resource; empty for the collection.
    pub(crate) name: &'a str,
    /// `get`, `list`, `put`, `delete` or `post.<action>`.
    pub(crate) verb: &'a str,
}

/// In the words of permissions and scopes, so that what is missing can be read off.
impl fmt::Display for Claim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = match self.name {
            "" => self.collection.to_owned(),
            name => format!("{}/{name}", self.collection),
        };
        write!(f, "{:?} of {resource:?} of {}", self.verb, self.provider)?;
        for (what, name) in [
            ("tenant", self.tenant),
            ("region", self.region),
            ("workspace", self.workspace),
        ] {
            if !name.is_empty() {
                write!(f, ", {what} {name:?}")?;
            }
        }
        Ok(())
    }
}

/// Turns a bearer token into an identity.
#[async_trait]
pub trait Authenticator: Send + Sync + fmt::Debug {
    /// The identity behind a token, or none when the token is not valid.
    ///
    /// # Errors
    /// The token could not be checked; the request is refused without a verdict.
    async fn authenticate(&self, token: &str) -> Result<Option<Identity>, ApiError>;

    /// Whether somebody is a user, where the users are a closed list: then role assignments can
    /// name no others.
    fn knows(&self, _subject: &str) -> Option<bool> {
        None
    }
}

/// A fixed set of tokens. Only their digests are kept, and looked up under a random key of this
/// process, so that timing tells nothing of them however many there are.
#[derive(Clone, Default)]
pub struct StaticTokens {
    by_digest: HashMap<[u8; 32], Identity>,
}

impl StaticTokens {
    /// One administrator's token.
    pub fn admin(token: &str) -> Self {
        Self::default().with(token, Identity::admin("admin"))
    }

    /// Whether a token is among them.
    pub(crate) fn has(&self, token: &str) -> bool {
        self.by_digest.contains_key(&digest(token))
    }

    /// Whether a subject has one of them.
    pub(crate) fn names(&self, subject: &str) -> bool {
        self.by_digest.values().any(|who| who.subject == subject)
    }

    /// The same set with one more token. An empty token is never valid and is left out.
    pub fn with(mut self, token: &str, identity: Identity) -> Self {
        if !token.is_empty() {
            self.by_digest.insert(digest(token), identity);
        }
        self
    }
}

impl fmt::Debug for StaticTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticTokens")
            .field("len", &self.by_digest.len())
            .finish()
    }
}

#[async_trait]
impl Authenticator for StaticTokens {
    async fn authenticate(&self, token: &str) -> Result<Option<Identity>, ApiError> {
        Ok(self.by_digest.get(&digest(token)).cloned())
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// The token of an `Authorization: Bearer` header (RFC 6750; the scheme ignores case).
///
/// # Errors
/// The header is missing, repeated, or of another form.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Result<&str, ApiError> {
    let refuse = |detail: &str| ApiError::new(ErrorKind::Unauthorized, detail);
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values
        .next()
        .ok_or_else(|| refuse("an Authorization header with a bearer token is required"))?;
    if values.next().is_some() {
        return Err(refuse("more than one Authorization header"));
    }
    let text = value
        .to_str()
        .map_err(|_| refuse("the Authorization header is not text"))?;
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
            let token = token.trim();
            if token.is_empty() {
                Err(refuse("the bearer token is empty"))
            } else {
                Ok(token)
            }
        }
        _ => Err(refuse("the Authorization header must be of scheme Bearer")),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for v in values {
            headers.append(AUTHORIZATION, HeaderValue::from_str(v).expect("header"));
        }
        headers
    }

    #[test]
    fn only_one_bearer_token_is_read() {
        assert_eq!(
            bearer_token(&headers(&["Bearer abc"])).expect("token"),
            "abc"
        );
        assert_eq!(
            bearer_token(&headers(&["bearer  abc"])).expect("token"),
            "abc"
        );
        for bad in [
            &[][..],
            &["abc"],
            &["Bearer"],
            &["Bearer "],
            &["Basic abc"],
            &["Bearer a", "Bearer b"],
        ] {
            let error = bearer_token(&headers(bad)).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::Unauthorized, "{bad:?}");
        }
    }

    #[tokio::test]
    async fn only_known_tokens_have_an_identity() {
        let tokens = StaticTokens::admin("s3cret").with("", Identity::admin("nobody"));
        let admin = tokens.authenticate("s3cret").await.expect("checked");
        assert_eq!(admin, Some(Identity::admin("admin")));
        for bad in ["", "s3cre", "s3crett", "S3cret"] {
            assert_eq!(tokens.authenticate(bad).await.expect("checked"), None);
        }
        assert!(!format!("{tokens:?}").contains("s3cret"));
    }
}
