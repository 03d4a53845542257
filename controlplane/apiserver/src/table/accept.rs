//! `Accept` headers.

use http::{HeaderMap, header};

/// Most media ranges of a header that are looked at.
const RANGES_MAX: usize = 32;

/// One range of an `Accept` header, such as `application/json;as=Table;g=meta.k8s.io;v=v1`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MediaRange<'a> {
    /// Type and subtype as sent, without parameters.
    pub essence: &'a str,
    params: Vec<(&'a str, &'a str)>,
    quality: f32,
}

impl<'a> MediaRange<'a> {
    /// The value of a parameter, if it is there.
    pub(crate) fn param(&self, name: &str) -> Option<&'a str> {
        self.params
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| *value)
    }

    /// Whether a type without wildcards is in this range.
    pub(crate) fn covers(&self, essence: &str) -> bool {
        match self.essence.strip_suffix('*') {
            Some("*/") => true,
            Some(prefix) => essence.starts_with(prefix),
            None => self.essence.eq_ignore_ascii_case(essence),
        }
    }

    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let essence = parts.next().filter(|e| !e.is_empty())?;
        let params: Vec<_> = parts
            .filter_map(|part| part.split_once('='))
            .map(|(key, value)| (key.trim(), value.trim().trim_matches('"')))
            .collect();
        let quality = params
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case("q"))
            .and_then(|(_, q)| q.parse().ok())
            .unwrap_or(1.0);
        Some(Self {
            essence,
            params,
            quality,
        })
    }
}

/// The ranges that a request accepts, best first. A request without the header accepts anything.
pub(crate) fn accepted(headers: &HeaderMap) -> Vec<MediaRange<'_>> {
    let mut ranges: Vec<MediaRange<'_>> = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .take(RANGES_MAX)
        .filter_map(MediaRange::parse)
        .filter(|range| range.quality > 0.0)
        .collect();
    if ranges.is_empty() && !headers.contains_key(header::ACCEPT) {
        ranges.extend(MediaRange::parse("*/*"));
    }
    // Stable: equal ranges stay in the client's order.
    ranges.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(accept: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT, http::HeaderValue::from_static(accept))])
    }

    #[test]
    fn ranges_come_best_first_with_their_parameters() {
        let headers = headers("text/plain;q=0.5, application/json; as=\"Table\" ;v=v1, a/b;q=0");
        let ranges = accepted(&headers);
        let names: Vec<_> = ranges.iter().map(|r| r.essence).collect();
        assert_eq!(names, ["application/json", "text/plain"]);
        assert_eq!(ranges[0].param("as"), Some("Table"));
        assert_eq!(ranges[0].param("g"), None);
    }

    #[test]
    fn wildcards_cover_and_no_header_accepts_anything() {
        let any = HeaderMap::new();
        assert!(accepted(&any)[0].covers("application/json"));
        let headers = headers("application/*");
        assert!(accepted(&headers)[0].covers("application/json"));
        assert!(!accepted(&headers)[0].covers("text/plain"));
    }
}
