//! One line a request: what was asked, by whom, and what came of it. Never a token, a query or a
//! body.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use tracing::Span;

/// Where a request comes from, as its headers say: its own id, and that of a trace.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// The client's request id, or a new one.
    pub(crate) request_id: HeaderValue,
    trace: Option<Trace>,
}

/// What a `traceparent` header says (W3C Trace Context).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Trace {
    trace_id: String,
    parent_id: String,
}

/// Longest request id that is taken over from the client.
const REQUEST_ID_LEN_MAX: usize = 128;

impl Origin {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        Self {
            request_id: request_id(headers),
            trace: headers.get("traceparent").and_then(traceparent),
        }
    }

    pub(crate) fn request_id(&self) -> &str {
        self.request_id.to_str().unwrap_or_default()
    }

    /// The span that all work on the request is in.
    pub(crate) fn span(&self) -> Span {
        let id = |of: fn(&Trace) -> &str| self.trace.as_ref().map(of);
        tracing::info_span!(
            "request",
            request_id = self.request_id(),
            trace_id = id(|t| &t.trace_id),
            parent_id = id(|t| &t.parent_id),
        )
    }

    /// Writes the line.
    pub(crate) fn log(&self, access: &Access<'_>) {
        tracing::info!(
            target: "ecp_facade::access",
            method = access.method,
            route = access.route,
            status = access.status,
            took_us = u64::try_from(access.took.as_micros()).unwrap_or(u64::MAX),
            bytes = access.bytes,
            tenant = access.tenant,
            subject = access.subject,
            request_id = self.request_id(),
            trace_id = self.trace.as_ref().map(|t| t.trace_id.as_str()),
            "request"
        );
    }
}

/// What became of a request.
#[derive(Debug)]
pub(crate) struct Access<'a> {
    pub(crate) method: &'a str,
    pub(crate) route: &'a str,
    pub(crate) status: u16,
    pub(crate) took: Duration,
    pub(crate) bytes: u64,
    pub(crate) tenant: &'a str,
    pub(crate) subject: &'a str,
}

/// The client's request id where it is plain, else a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let plain = |v: &&HeaderValue| {
        (1..=REQUEST_ID_LEN_MAX).contains(&v.len())
            && v.as_bytes()
                .iter()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.:/+=@".contains(b))
    };
    match headers.get("x-request-id").filter(plain) {
        Some(id) => id.clone(),
        None => HeaderValue::from_str(&uuid::Uuid::new_v4().to_string())
            .unwrap_or(HeaderValue::from_static("none")),
    }
}

/// Reads a `traceparent`; one that is not well-formed is none.
fn traceparent(value: &HeaderValue) -> Option<Trace> {
    let mut parts = value.to_str().ok()?.trim().split('-');
    let (version, trace_id, parent_id, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let hex = |text: &str, len: usize| {
        text.len() == len
            && text
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let some = |text: &str| text.bytes().any(|b| b != b'0');
    // Later versions may have more parts; this one has none.
    let known = hex(version, 2) && version != "ff" && (version != "00" || parts.next().is_none());
    (known && hex(trace_id, 32) && hex(parent_id, 16) && hex(flags, 2))
        .then(|| Trace {
            trace_id: trace_id.into(),
            parent_id: parent_id.into(),
        })
        .filter(|t| some(&t.trace_id) && some(&t.parent_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(value: &str) -> HeaderValue {
        let mut headers = HeaderMap::new();
        headers.insert("x-request-id", HeaderValue::from_str(value).expect("value"));
        request_id(&headers)
    }

    #[test]
    fn plain_request_ids_are_kept() {
        for plain in ["abc-1", "a.b:c/d_e+f=@", &"x".repeat(128)] {
            assert_eq!(id(plain), plain);
        }
        for odd in ["", "a b", "a\"b", "a{b", "a\\b", "ä", &"x".repeat(129)] {
            assert_ne!(id(odd), odd);
            assert_eq!(id(odd).len(), 36);
        }
        assert_eq!(request_id(&HeaderMap::new()).len(), 36);
    }

    #[test]
    fn only_well_formed_traces_are_taken_over() {
        let read = |text: &str| traceparent(&HeaderValue::from_str(text).expect("value"));
        let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        let want = Some(Trace {
            trace_id: trace.into(),
            parent_id: parent.into(),
        });
        assert_eq!(read(&format!("00-{trace}-{parent}-01")), want);
        assert_eq!(read(&format!("cc-{trace}-{parent}-01-later")), want);
        let (no_trace, no_parent) = ("0".repeat(32), "0".repeat(16));
        for bad in [
            String::new(),
            "x".into(),
            format!("00-{trace}-{parent}"),
            format!("00-{trace}-{parent}-01-more"),
            format!("ff-{trace}-{parent}-01"),
            format!("00-{}-{parent}-01", trace.to_uppercase()),
            format!("00-{no_trace}-{parent}-01"),
            format!("00-{trace}-{no_parent}-01"),
            format!("00-{trace}x-{parent}-01"),
        ] {
            assert_eq!(read(&bad), None, "{bad}");
        }
    }
}
