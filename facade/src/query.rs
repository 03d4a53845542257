//! What query parameters and headers say (SECA section 1.4).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ecp_meta::names::hash8;
use http::HeaderMap;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};

use crate::error::{ApiError, ErrorKind};
use crate::limits;

/// Which resources a list shows, by deletion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Deleted {
    /// Only those that are not being deleted.
    #[default]
    Exclude,
    /// All.
    Include,
    /// Only those that are being deleted.
    Only,
}

impl Deleted {
    /// Whether a resource is shown.
    pub(crate) fn shows(self, deleting: bool) -> bool {
        match self {
            Self::Exclude => !deleting,
            Self::Include => true,
            Self::Only => deleting,
        }
    }
}

/// The query of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListQuery {
    pub(crate) labels: String,
    pub(crate) limit: usize,
    pub(crate) skip_token: Option<String>,
}

impl ListQuery {
    /// Reads a query string. Unknown parameters are ignored; a limit is clamped to its bounds.
    ///
    /// # Errors
    /// A limit that is no number, or a query or token that is too long.
    pub(crate) fn parse(query: &str) -> Result<Self, ApiError> {
        if query.len() > limits::QUERY_LEN_MAX {
            return Err(malformed("the query is too long"));
        }
        let mut parsed = Self {
            labels: String::new(),
            limit: limits::LIST_LIMIT_DEFAULT,
            skip_token: None,
        };
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "labels" => parsed.labels = value.into_owned(),
                "limit" if value.is_empty() => {}
                "limit" => {
                    let limit: i128 = value.parse().map_err(|_| {
                        malformed("limit must be a whole number").at_parameter("limit")
                    })?;
                    let clamped = limit.clamp(1, limits::LIST_LIMIT_MAX as i128);
                    parsed.limit = usize::try_from(clamped).unwrap_or(limits::LIST_LIMIT_MAX);
                }
                "skipToken" if value.is_empty() => {}
                "skipToken" if value.len() > limits::SKIP_TOKEN_LEN_MAX => {
                    return Err(malformed("skipToken is too long").at_parameter("skipToken"));
                }
                "skipToken" => parsed.skip_token = Some(value.into_owned()),
                _ => {}
            }
        }
        Ok(parsed)
    }
}

/// Makes and reads `skipToken`s of one list: collection, tenant, selector and deletion mode.
///
/// A token holds the key of the last resource shown, so it stays good when resources come and go,
/// and a hash of the list, so it is refused anywhere else.
#[derive(Debug)]
pub(crate) struct SkipTokens {
    scope: String,
}

impl SkipTokens {
    pub(crate) fn new(path: &str, labels: &str, deleted: Deleted) -> Self {
        Self {
            scope: hash8(&format!("{path}\n{labels}\n{deleted:?}")),
        }
    }

    pub(crate) fn make(&self, last_key: &str) -> String {
        URL_SAFE_NO_PAD.encode(format!("1{}{last_key}", self.scope))
    }

    /// The key of the last resource shown.
    ///
    /// # Errors
    /// The token was not made for this list.
    pub(crate) fn read(&self, token: &str) -> Result<String, ApiError> {
        let text = URL_SAFE_NO_PAD
            .decode(token)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok());
        let refuse = |why: &str| {
            Err(
                malformed(&format!("skipToken {why}; begin again without it"))
                    .at_parameter("skipToken"),
            )
        };
        let Some(place) = text.as_deref().and_then(|t| t.strip_prefix('1')) else {
            return refuse("is not one of this server");
        };
        match place.strip_prefix(self.scope.as_str()) {
            Some(key) => Ok(key.to_owned()),
            None => refuse("does not belong to this list"),
        }
    }
}

/// What `Accept` asks for.
///
/// # Errors
/// JSON is not among the accepted types, or the deletion mode is unknown.
pub(crate) fn accept(headers: &HeaderMap) -> Result<Deleted, ApiError> {
    let mut asked = false;
    for value in headers.get_all(ACCEPT) {
        let Ok(text) = value.to_str() else {
            return Err(malformed("the Accept header is not text").at_parameter("Accept"));
        };
        for range in text.split(',').map(str::trim).filter(|r| !r.is_empty()) {
            asked = true;
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default().to_ascii_lowercase();
            let json = matches!(
                media.as_str(),
                "*/*" | "application/*" | "application/json" | "application/problem+json"
            );
            if !json {
                continue;
            }
            let deleted = parts.find_map(|p| {
                let (name, value) = p.split_once('=')?;
                name.trim()
                    .eq_ignore_ascii_case("deleted")
                    .then(|| value.trim().trim_matches('"'))
            });
            return match deleted {
                None | Some("false") => Ok(Deleted::Exclude),
                Some("true") => Ok(Deleted::Include),
                Some("only") => Ok(Deleted::Only),
                Some(_) => Err(malformed("deleted must be true or only").at_parameter("Accept")),
            };
        }
    }
    if asked {
        return Err(ApiError::new(
            ErrorKind::NotAcceptable,
            "this server answers with application/json",
        )
        .at_parameter("Accept"));
    }
    Ok(Deleted::Exclude)
}

/// Refuses a body that says it is something other than JSON.
///
/// # Errors
/// `Content-Type` names another media type.
pub(crate) fn require_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return Ok(());
    };
    let media = value
        .to_str()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    if media == "application/json"
        || (media.starts_with("application/") && media.ends_with("+json"))
    {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorKind::UnsupportedMedia,
        "the body must be application/json",
    )
    .at_parameter("Content-Type"))
}

/// The SECA resource version a write is conditional on (section 1.4: an integer, not a date).
///
/// # Errors
/// The header is not an integer.
pub(crate) fn if_unmodified_since(headers: &HeaderMap) -> Result<Option<i64>, ApiError> {
    const NAME: &str = "if-unmodified-since";
    let Some(value) = headers.get(NAME) else {
        return Ok(None);
    };
    value
        .to_str()
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .map(Some)
        .ok_or_else(|| {
            malformed("if-unmodified-since must be a resource version, a whole number")
                .at_parameter(NAME)
        })
}

/// Whether a read must not be answered from the cache.
pub(crate) fn no_cache(headers: &HeaderMap) -> bool {
    headers
        .get_all(CACHE_CONTROL)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|text| text.split(','))
        .any(|directive| directive.trim().eq_ignore_ascii_case("no-cache"))
}

/// How long a mutating call waits for the control plane (RFC 7240: `wait=N`, `respond-async`).
///
/// With `wait`, `respond-async` only says that an unfinished answer is welcome after that time.
/// Preferences that are not understood are ignored, as the RFC asks.
pub(crate) fn settle(headers: &HeaderMap, default: Duration) -> Duration {
    let mut wait = None;
    let mut respond_async = false;
    let preferences = headers
        .get_all("prefer")
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|text| text.split([',', ';']).map(str::trim).collect::<Vec<_>>());
    for preference in preferences {
        if preference.eq_ignore_ascii_case("respond-async") {
            respond_async = true;
        } else if let Some((name, seconds)) = preference.split_once('=')
            && name.trim().eq_ignore_ascii_case("wait")
            && let Ok(seconds) = seconds.trim().trim_matches('"').parse::<u64>()
        {
            wait = Some(Duration::from_secs(seconds).min(limits::SETTLE_MAX));
        }
    }
    match (wait, respond_async) {
        (Some(wait), _) => wait,
        (None, true) => Duration::ZERO,
        (None, false) => default,
    }
}

fn malformed(detail: &str) -> ApiError {
    ApiError::new(ErrorKind::Malformed, detail)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                let name = http::HeaderName::from_static(name);
                (name, HeaderValue::from_str(value).expect("value"))
            })
            .collect()
    }

    #[test]
    fn limits_are_clamped_and_defaults_apply() {
        let limit = |q| ListQuery::parse(q).expect("parsed").limit;
        assert_eq!(limit(""), 1000);
        assert_eq!(limit("limit="), 1000);
        assert_eq!(limit("limit=0"), 1);
        assert_eq!(limit("limit=-1"), 1);
        assert_eq!(limit("limit=7"), 7);
        assert_eq!(limit("limit=99999999"), 10_000);
        for bad in [
            "limit=x",
            "limit=1.5",
            "limit=99999999999999999999999999999999999999999",
        ] {
            let error = ListQuery::parse(bad).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::Malformed);
            assert_eq!(error.sources()[0].parameter, "limit");
        }
    }

    #[test]
    fn an_empty_token_is_no_token_and_labels_are_decoded() {
        let query = ListQuery::parse("skipToken=&labels=env%3Dprod%2Ctier%21%3Dfront").expect("ok");
        assert_eq!(query.skip_token, None);
        assert_eq!(query.labels, "env=prod,tier!=front");
    }

    #[test]
    fn a_token_is_good_for_its_own_list_only() {
        let here = SkipTokens::new("/v1/tenants/a/images", "", Deleted::Exclude);
        let token = here.make("disk-7");
        assert_eq!(here.read(&token).expect("token"), "disk-7");
        for other in [
            SkipTokens::new("/v1/tenants/b/images", "", Deleted::Exclude),
            SkipTokens::new("/v1/tenants/a/images", "a=b", Deleted::Exclude),
            SkipTokens::new("/v1/tenants/a/images", "", Deleted::Only),
        ] {
            assert_eq!(
                other.read(&token).expect_err("refused").kind(),
                ErrorKind::Malformed
            );
        }
        let why = |token| here.read(token).expect_err("refused").detail().to_owned();
        for garbage in ["garbage", "", "%%%"] {
            assert!(why(garbage).contains("not one of this server"), "{garbage}");
        }
        for other in ["MQ", "MTAwMDAwMDAwYQ"] {
            assert!(why(other).contains("does not belong"), "{other}");
        }
    }

    #[test]
    fn accept_chooses_json_and_the_deletion_mode() {
        let ask = |text| accept(&headers(&[("accept", text)]));
        assert_eq!(accept(&HeaderMap::new()), Ok(Deleted::Exclude));
        for (text, want) in [
            ("*/*", Deleted::Exclude),
            ("application/json", Deleted::Exclude),
            ("application/json; deleted=true", Deleted::Include),
            ("application/json;deleted=only", Deleted::Only),
            (
                "text/html, application/json;deleted=\"only\"",
                Deleted::Only,
            ),
        ] {
            assert_eq!(ask(text), Ok(want), "{text}");
        }
        assert_eq!(
            ask("text/html").expect_err("no").kind(),
            ErrorKind::NotAcceptable
        );
        assert_eq!(
            ask("application/json; deleted=maybe")
                .expect_err("no")
                .kind(),
            ErrorKind::Malformed
        );
    }

    #[test]
    fn only_json_bodies_are_read() {
        let check = |text| require_json(&headers(&[("content-type", text)]));
        assert!(require_json(&HeaderMap::new()).is_ok());
        assert!(check("application/json; charset=utf-8").is_ok());
        assert!(check("application/merge-patch+json").is_ok());
        for bad in ["text/plain", "application/xml", ""] {
            assert_eq!(
                check(bad).expect_err("no").kind(),
                ErrorKind::UnsupportedMedia
            );
        }
    }

    #[test]
    fn preferences_bound_the_wait() {
        let default = Duration::from_secs(2);
        let wait = |text| settle(&headers(&[("prefer", text)]), default);
        assert_eq!(settle(&HeaderMap::new(), default), default);
        assert_eq!(wait("wait=5"), Duration::from_secs(5));
        assert_eq!(wait("respond-async"), Duration::ZERO);
        assert_eq!(wait("respond-async, wait=10"), Duration::from_secs(10));
        assert_eq!(wait("wait=999999"), limits::SETTLE_MAX);
        assert_eq!(wait("wait=soon, handling=lenient"), default);
    }

    #[test]
    fn a_condition_must_be_a_whole_number() {
        let read = |text| if_unmodified_since(&headers(&[("if-unmodified-since", text)]));
        assert_eq!(if_unmodified_since(&HeaderMap::new()), Ok(None));
        assert_eq!(read("3"), Ok(Some(3)));
        for bad in ["", "Mon, 30 Nov 2026 10:00:00 GMT", "1.5"] {
            assert_eq!(read(bad).expect_err("no").kind(), ErrorKind::Malformed);
        }
    }

    #[test]
    fn no_cache_is_found_among_directives() {
        assert!(no_cache(&headers(&[(
            "cache-control",
            "max-age=0, No-Cache"
        )])));
        assert!(!no_cache(&headers(&[("cache-control", "max-age=0")])));
    }
}
