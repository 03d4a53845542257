//! The OpenAPI document of what this facade serves, made from what serves it: the table of kinds,
//! the schemas of their types, the routes, and the status codes of [`ErrorKind`] under a profile.
//! A new kind needs no code here.

mod operations;
mod responses;
mod schemas;

use serde_json::{Map, Value, json};

use crate::config::Profile;
use crate::regions::Served;

/// Where the document is served.
pub(crate) const PATH: &str = "/openapi.json";

const DESCRIPTION: &str = "\
The SECA API, served over composite resources. \
HEAD works wherever GET does. \
Of a body, `labels`, `annotations`, `extensions`, `metadata.region` and `spec` are read; the rest \
of `metadata`, and `status`, are ignored, so an answer can be sent back changed. \
`null` means absent. Members that are unknown are ignored, and a `Warning` says so. \
A method that a path does not have is answered with 405 and `Allow`.";

/// What the profile means for status codes.
fn profile_note(profile: Profile) -> &'static str {
    match profile {
        Profile::Conformance => {
            "Refusals follow the profile `conformance`: 412 stands where the specification has 404 \
             for a missing workspace, 409 for a conflict and 422 for invalid content."
        }
        Profile::Spec => {
            "Refusals follow the profile `spec`: status codes are the specification's."
        }
    }
}

/// The OpenAPI 3.1 document of a facade with a profile.
///
/// It is the one served at `/openapi.json`.
pub fn openapi(profile: Profile, served: &Served) -> Value {
    let mut components = Map::new();
    components.insert("schemas".into(), schemas::all().into());
    components.insert("parameters".into(), operations::parameters());
    components.insert("headers".into(), responses::headers());
    components.insert("responses".into(), responses::shared(profile));
    components.insert(
        "securitySchemes".into(),
        json!({"bearer": {"type": "http", "scheme": "bearer"}}),
    );
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "SECA",
            "version": env!("CARGO_PKG_VERSION"),
            "description": format!("{DESCRIPTION}\n\n{}", profile_note(profile)),
        },
        "servers": servers(served),
        "security": [{"bearer": []}],
        "tags": tags(served),
        "paths": operations::paths(profile, served),
        "components": components,
    })
}

/// The base URL, and that of regions other than the first.
fn servers(served: &Served) -> Vec<Value> {
    let base = served.public_url();
    let mut servers = vec![json!({"url": base})];
    if let [_, others @ ..] = served.regions.as_slice()
        && let Some(first) = others.first()
        && served.region(first)
    {
        servers.push(json!({
            "url": format!("{base}/regions/{{region}}"),
            "description": "Regional APIs of another region.",
            "variables": {"region": {"default": first, "enum": others}},
        }));
    }
    servers
}

/// One tag per provider, and one for what operators read.
fn tags(served: &Served) -> Vec<Value> {
    let tag = |(name, what): (&str, String)| json!({"name": name, "description": what});
    served
        .providers()
        .into_iter()
        .map(|provider| (provider, format!("Provider {provider}, version v1.")))
        .chain([(
            operations::SERVER_TAG,
            "The server itself; no token is needed.".to_owned(),
        )])
        .map(tag)
        .collect()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
