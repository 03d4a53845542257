//! The OpenAPI document, as served and as committed.

use std::fs;
use std::path::Path;

use axum::body::Body;
use ecp_facade::{Profile, Served, openapi};
use http::Request;
use serde_json::{Map, Value};

use crate::world::World;

/// Where `ecp up` answers by default.
const DEFAULT_URL: &str = "http://127.0.0.1:8080";

fn served(url: &str) -> Served {
    Served::new(vec!["region-1".into()], url)
}

/// The same value with the keys of every object in order, whatever map `serde_json` is built with.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.into_iter().map(|(k, v)| (k, sorted(v))).collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(entries.into_iter().collect::<Map<_, _>>())
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}

/// `UPDATE=1 cargo test -p ecp-facade` rewrites the file.
#[test]
fn the_committed_document_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/openapi.json");
    let document = sorted(openapi(Profile::default(), &served(DEFAULT_URL)));
    let want = serde_json::to_string_pretty(&document).expect("JSON") + "\n";
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &want).expect("written");
    }
    let have = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        have == want,
        "docs/reference/openapi.json is stale: run `make generate`"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_is_served_to_everybody_with_the_servers_own_address() {
    let world = World::with(|config| {
        config.served = served("https://seca.example:1234");
        config.profile = Profile::Spec;
    })
    .await;
    let request = Request::get("/openapi.json")
        .body(Body::empty())
        .expect("request");
    let got = world.request(request).await.ok(200);
    assert_eq!(got["servers"][0]["url"], "https://seca.example:1234");
    assert_eq!(
        got,
        openapi(Profile::Spec, &served("https://seca.example:1234"))
    );
}
