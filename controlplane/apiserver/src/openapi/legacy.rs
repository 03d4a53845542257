//! `/openapi/v2`: a valid document without content.
//!
//! kubectl reads it to check `List`s before it sends them, and checks nothing that is not in it; the
//! server checks every item anyway. All that v2 could say is in v3.

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};

use crate::body::ApiBody;
use crate::server::Scope;
use crate::status::Status;
use crate::table::accept::accepted;

const JSON: &str = "application/json";
/// What clients call the protobuf form, in its two spellings.
const PROTOBUF: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
];

const DOCUMENT: &str = r#"{"swagger":"2.0","info":{"title":"Kubernetes","version":"v1.36.0"},"paths":{},"definitions":{}}"#;

/// The same as an `openapi.v2.Document` of gnostic: swagger (1), info (2) with title (1) and
/// version (2), paths (8), definitions (9).
const MESSAGE: &[u8] = b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.36.0\x42\x00\x4a\x00";

/// Answers `/openapi/v2`.
pub(super) fn handle(scope: &Scope<'_>) -> Result<Response<ApiBody>, Status> {
    for range in accepted(scope.headers) {
        if range.covers(JSON) {
            return Ok(document(JSON, DOCUMENT.into()));
        }
        if PROTOBUF.into_iter().any(|known| range.covers(known)) {
            // Go cannot parse a type with '@' in it: the other spelling is the answer to both.
            return Ok(document(
                PROTOBUF[0],
                bytes::Bytes::from_static(MESSAGE).into(),
            ));
        }
    }
    Err(Status::not_acceptable(
        "only the following media types are accepted: application/json, \
         application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    ))
}

fn document(content_type: &'static str, body: ApiBody) -> Response<ApiBody> {
    let mut response = Response::new(body);
    let content_type = HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_has_the_lengths_it_says() {
        let info = &MESSAGE[7..7 + 0x15];
        assert_eq!(info.len(), usize::from(MESSAGE[6]));
        assert!(info.ends_with(b"v1.36.0"));
        assert_eq!(&MESSAGE[7 + 0x15..], b"\x42\x00\x4a\x00");
        let json: serde_json::Value = serde_json::from_str(DOCUMENT).unwrap();
        assert_eq!(json["info"]["version"], "v1.36.0");
    }
}
