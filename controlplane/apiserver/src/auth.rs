//! Who a client is, and what it may do.
//!
//! Authentication happens at the socket ([`Authenticator`], called by [`crate::serve`]);
//! authorization happens for every request, also for those made in process ([`Authorizer`]).
//! Identity headers sent by clients (`X-Remote-User` and the like) are never looked at.

mod authorize;
pub(crate) mod review;

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::body::ApiBody;
use crate::pki::certificate_facts;
use crate::server::Identity;
use crate::status::Status;

pub use authorize::{Attributes, Authorizer, Decision, MastersOnly, Scoped};
pub(crate) use authorize::{admit, attributes, check};

/// Group of every client that showed credentials.
pub const AUTHENTICATED_GROUP: &str = "system:authenticated";
/// Group of every client that did not.
pub const UNAUTHENTICATED_GROUP: &str = "system:unauthenticated";
/// Name of a client that did not show credentials.
pub const ANONYMOUS_USER: &str = "system:anonymous";

/// Finds out who a client is.
#[derive(Debug, Default)]
pub struct Authenticator {
    tokens: Vec<Token>,
    without_credentials: WithoutCredentials,
}

/// What a client without credentials is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WithoutCredentials {
    /// Nobody: it sees health and version, and 401 elsewhere.
    #[default]
    Anonymous,
    /// The administrator.
    Admin,
}

/// Only the digest of a token is kept.
struct Token {
    digest: [u8; 32],
    identity: Identity,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token")
            .field("user", &self.identity.user)
            .finish_non_exhaustive()
    }
}

/// A client shows credentials that are not valid, or shows none where they are needed.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error("unauthorized")]
pub struct Unauthorized;

impl Unauthorized {
    /// 401, saying how to authenticate.
    pub fn into_response(self) -> Response<ApiBody> {
        let status = Status::failure(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized");
        let mut response = status.into_response();
        let how = HeaderValue::from_static("Bearer realm=\"ecp\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, how);
        response
    }
}

impl Authenticator {
    /// Nobody is known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Knows a bearer token.
    #[must_use]
    pub fn with_token(mut self, token: &str, identity: Identity) -> Self {
        self.tokens.push(Token {
            digest: Sha256::digest(token).into(),
            identity,
        });
        self
    }

    /// Takes clients without credentials for the administrator. Only ever for a loopback listener
    /// on a developer's machine; [`crate::serve`] refuses other listeners.
    #[must_use]
    pub fn insecure_dev(mut self) -> Self {
        self.without_credentials = WithoutCredentials::Admin;
        self
    }

    /// Whether clients without credentials are taken for the administrator.
    pub fn is_insecure(&self) -> bool {
        self.without_credentials == WithoutCredentials::Admin
    }

    /// Who sends a request. `certificate` is the identity of a verified client certificate.
    ///
    /// A bearer token goes before the certificate of the connection, which may carry requests of
    /// several users. An impersonating administrator is who it wants to be.
    ///
    /// # Errors
    /// The credentials are not valid.
    pub fn authenticate(
        &self,
        headers: &HeaderMap,
        certificate: Option<&Identity>,
    ) -> Result<Identity, Unauthorized> {
        if let Some(token) = bearer_token(headers)? {
            return self.known(token).cloned().ok_or(Unauthorized);
        }
        match (certificate, self.without_credentials) {
            (Some(identity), _) => Ok(identity.clone()),
            (None, WithoutCredentials::Admin) => Ok(Identity::admin()),
            (None, WithoutCredentials::Anonymous) => Ok(anonymous()),
        }
    }

    fn known(&self, token: &str) -> Option<&Identity> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        // Every token is compared in full, so that time tells nothing.
        let mut found = None;
        for known in &self.tokens {
            if bool::from(known.digest.ct_eq(&digest)) {
                found = Some(&known.identity);
            }
        }
        found
    }
}

/// A client that showed no credentials.
pub fn anonymous() -> Identity {
    Identity {
        user: ANONYMOUS_USER.into(),
        groups: vec![UNAUTHENTICATED_GROUP.into()],
    }
}

/// Whether a client showed no credentials.
pub fn is_anonymous(identity: &Identity) -> bool {
    identity
        .groups
        .iter()
        .any(|group| group == UNAUTHENTICATED_GROUP)
}

/// The user a verified client certificate stands for: its common name, with its organizations as
/// groups. `None` if it has no common name.
pub fn certificate_identity(der: &[u8]) -> Option<Identity> {
    let facts = certificate_facts(der).ok()?;
    let user = facts.common_name.filter(|name| !name.is_empty())?;
    let mut groups = facts.organizations;
    groups.push(AUTHENTICATED_GROUP.into());
    Some(Identity { user, groups })
}

/// The token of `Authorization: Bearer`. Other schemes are not ours to judge.
fn bearer_token(headers: &HeaderMap) -> Result<Option<&str>, Unauthorized> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Unauthorized);
    }
    let text = value.to_str().map_err(|_| Unauthorized)?.trim();
    let Some((scheme, token)) = text.split_once(' ') else {
        return Err(Unauthorized);
    };
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Unauthorized);
    }
    Ok(Some(token.trim()).filter(|token| !token.is_empty()))
}

/// The identity a request runs as: `Impersonate-User` and `Impersonate-Group` of those who may.
///
/// # Errors
/// 403: the client may not impersonate; 400: the headers make no sense.
pub fn impersonated(
    authorizer: &dyn Authorizer,
    headers: &HeaderMap,
    identity: Arc<Identity>,
) -> Result<Arc<Identity>, Status> {
    const USER: &str = "impersonate-user";
    const GROUP: &str = "impersonate-group";
    let wanted = headers
        .keys()
        .any(|name| name.as_str().starts_with("impersonate-"));
    if !wanted {
        return Ok(identity);
    }
    let text = |value: &HeaderValue| {
        let text = value.to_str().map(str::to_owned);
        text.map_err(|_| Status::bad_request("impersonation headers must be text"))
    };
    let user = match headers.get(USER).map(text).transpose()? {
        Some(user) if !user.is_empty() => user,
        _ => {
            return Err(Status::bad_request(
                "requested impersonation without impersonating a user",
            ));
        }
    };
    let mut groups = headers
        .get_all(GROUP)
        .iter()
        .map(text)
        .collect::<Result<Vec<_>, _>>()?;
    let ask = |resource: &str, name: &str| {
        check(
            authorizer,
            &Attributes {
                identity: &identity,
                cluster: None,
                verb: "impersonate",
                scope: Scoped::Resource {
                    group: "",
                    resource,
                    subresource: "",
                    namespace: None,
                    name: Some(name),
                },
            },
        )
    };
    ask("users", &user)?;
    for group in &groups {
        ask("groups", group)?;
    }
    let extra = if user == ANONYMOUS_USER {
        UNAUTHENTICATED_GROUP
    } else {
        AUTHENTICATED_GROUP
    };
    if !groups.iter().any(|group| group == extra) {
        groups.push(extra.to_owned());
    }
    Ok(Arc::new(Identity { user, groups }))
}

#[cfg(test)]
mod tests;
