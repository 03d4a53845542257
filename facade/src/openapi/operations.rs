//! Paths, operations and parameters.

use ecp_xrds::KindInfo;
use serde_json::{Map, Value, json};

use super::responses::{self, header_references, refusals, success};
use super::schemas::reference;
use crate::config::Profile;
use crate::error::ErrorKind;
use crate::limits;
use crate::path;
use crate::power::{Action, has_power};
use crate::regions::Served;

pub(super) const SERVER_TAG: &str = "server";

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// The shape of a SECA name (section 2.1), as `ecp_meta::names::is_dotted_name` has it.
pub(super) const NAME_PATTERN: &str =
    r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$";

/// Every path.
pub(super) fn paths(profile: Profile, served: &Served) -> Map<String, Value> {
    let mut paths = Map::new();
    for info in ecp_xrds::kinds() {
        if !served.provider(info.provider) {
            continue;
        }
        let collection = path::template(info);
        let item = format!("{collection}/{{name}}");
        paths.insert(collection, collection_item(profile, info));
        for action in Action::ALL.into_iter().filter(|_| has_power(info)) {
            let path = format!("{item}/{}", action.as_str());
            paths.insert(path, action_item(profile, info, action));
        }
        paths.insert(item, resource_item(profile, info));
    }
    let discovery = |id: &str| {
        let mut responses = refusals(profile, responses::DISCOVERY);
        let schema = reference("schemas", "Discovery");
        let ok = success("The APIs.", JSON, schema, &["x-request-id"]);
        responses.insert("200".into(), ok);
        json!({"get": open(id, "Which APIs are served, and where.", responses)})
    };
    paths.insert("/.wellknown/secapi".into(), discovery("discover"));
    for provider in served.providers() {
        let name = provider.rsplit('.').next().unwrap_or(provider);
        let path = format!("/providers/{provider}/.wellknown/secapi");
        paths.insert(path, discovery(&format!("discover_{name}")));
    }
    paths.extend(server_paths(profile));
    paths
}

/// What operators and tools read: health, metrics, this document.
fn server_paths(profile: Profile) -> impl Iterator<Item = (String, Value)> {
    let metrics = crate::metrics::MEDIA_TYPE;
    let get = move |(path, summary, media, kind): (&str, &str, &str, &str)| {
        let answer = |what| success(what, media, json!({"type": kind}), &["x-request-id"]);
        let mut responses = refusals(profile, &[]);
        responses.insert("200".into(), answer(summary));
        if path == "/readyz" {
            responses.insert("503".into(), answer("Not ready, and why."));
        }
        let id = path.trim_start_matches('/').replace('.', "_");
        (
            path.to_owned(),
            json!({"get": open(&id, summary, responses)}),
        )
    };
    let all = [
        ("/healthz", "The process lives.", TEXT, "string"),
        ("/livez", "The process lives.", TEXT, "string"),
        ("/readyz", "Requests can be answered.", TEXT, "string"),
        ("/metrics", "Metrics for Prometheus.", metrics, "string"),
        (super::PATH, "This document.", JSON, "object"),
    ];
    all.into_iter().map(get)
}

/// An operation that needs no token.
fn open(id: &str, summary: &str, responses: Map<String, Value>) -> Value {
    json!({
        "operationId": id,
        "summary": summary,
        "tags": [SERVER_TAG],
        "security": [],
        "responses": responses,
    })
}

/// A kind's collection: GET.
fn collection_item(profile: Profile, info: &KindInfo) -> Value {
    let schema = reference("schemas", &format!("{}List", info.kind));
    let ok = success("A page of the list.", JSON, schema, &["x-request-id"]);
    let list = operation(
        info,
        "list",
        &["accept", "cache-control", "labels", "limit", "skipToken"],
        refusals(profile, responses::ALWAYS),
        [("200", ok)],
    );
    json!({"parameters": path_parameters(info), "get": list})
}

/// A kind's resource: GET, and PUT and DELETE unless it is a catalogue's.
fn resource_item(profile: Profile, info: &KindInfo) -> Value {
    let schema = || reference("schemas", info.kind);
    let with = |more: &[ErrorKind]| refusals(profile, &[responses::ALWAYS, more].concat());
    let mut parameters = path_parameters(info);
    parameters.push(name_parameter("name", !info.catalogue));
    let found = success("The resource.", JSON, schema(), &["x-request-id"]);
    let get = operation(info, "get", &["cache-control"], with(&[]), [("200", found)]);
    let mut item = json!({"parameters": parameters, "get": get});
    if info.catalogue {
        return item;
    }
    let headers = ["x-request-id", "warning"];
    let replaced = success("It was replaced.", JSON, schema(), &headers);
    let headers = ["x-request-id", "warning", "location"];
    let created = success("It was created.", JSON, schema(), &headers);
    let mut put = operation(
        info,
        "put",
        &["if-unmodified-since", "prefer"],
        with(responses::PUT),
        [("200", replaced), ("201", created)],
    );
    let input = reference("schemas", &format!("{}Input", info.kind));
    put["requestBody"] = json!({"required": true, "content": {JSON: {"schema": input}}});
    let begun = json!({
        "description": "Deletion has begun.",
        "headers": header_references(&["x-request-id"]),
    });
    let delete = operation(
        info,
        "delete",
        &["if-unmodified-since", "prefer"],
        with(responses::DELETE),
        [("202", begun)],
    );
    item["put"] = put;
    item["delete"] = delete;
    item
}

/// A power operation of a kind: POST.
fn action_item(profile: Profile, info: &KindInfo, action: Action) -> Value {
    let mut parameters = path_parameters(info);
    parameters.push(name_parameter("name", true));
    let begun = json!({
        "description": "It has begun.",
        "headers": header_references(&["x-request-id"]),
    });
    let post = operation(
        info,
        action.as_str(),
        &["if-unmodified-since", "prefer"],
        refusals(profile, &[responses::ALWAYS, responses::DELETE].concat()),
        [("202", begun)],
    );
    json!({"parameters": parameters, "post": post})
}

fn operation<const N: usize>(
    info: &KindInfo,
    verb: &str,
    parameters: &[&str],
    mut responses: Map<String, Value>,
    successes: [(&str, Value); N],
) -> Value {
    responses.extend(successes.map(|(status, response)| (status.to_owned(), response)));
    let what = match verb {
        "list" => format!("Lists resources of kind {}.", info.seca_kind),
        "get" => format!("Reads the {}.", info.noun),
        "put" => format!("Creates the {} or replaces its intent.", info.noun),
        "delete" => format!("Starts the deletion of the {}.", info.noun),
        action => format!("Asks for a {action} of the {}.", info.noun),
    };
    let parameters: Vec<Value> = parameters
        .iter()
        .chain(&["x-request-id"])
        .map(|name| reference("parameters", name))
        .collect();
    json!({
        "operationId": format!("{verb}{}", info.kind),
        "summary": what,
        "tags": [info.provider],
        "parameters": parameters,
        "responses": responses,
    })
}

fn path_parameters(info: &KindInfo) -> Vec<Value> {
    path::parent_names(info)
        .map(|name| name_parameter(name, true))
        .collect()
}

/// A name in the path. Those of catalogue entries are free.
fn name_parameter(name: &str, seca: bool) -> Value {
    let mut schema = json!({"type": "string", "minLength": 1});
    if seca {
        schema["maxLength"] = limits::NAME_LEN_MAX.into();
        schema["pattern"] = NAME_PATTERN.into();
    }
    json!({"name": name, "in": "path", "required": true, "schema": schema})
}

/// Parameters that operations share.
pub(super) fn parameters() -> Value {
    let (wait_max, limit_max) = (limits::SETTLE_MAX.as_secs(), limits::LIST_LIMIT_MAX);
    let accept = [
        JSON,
        "application/json; deleted=true",
        "application/json; deleted=only",
    ];
    json!({
        "accept": {"in": "header", "name": "Accept", "description":
            "Which resources are listed: with `deleted=true` also those that are being deleted, with `deleted=only` nothing else.",
            "schema": {"type": "string", "default": JSON, "enum": accept}},
        "cache-control": {"in": "header", "name": "Cache-Control", "description":
            "`no-cache` reads from the control plane instead of memory.",
            "schema": {"type": "string"}},
        "if-unmodified-since": {"in": "header", "name": "if-unmodified-since", "description":
            "Only if `metadata.resourceVersion` is this number. Nothing is created then.",
            "schema": {"type": "integer", "format": "int64"}},
        "prefer": {"in": "header", "name": "Prefer", "description": format!(
            "`wait=N`: wait at most N seconds, up to {wait_max}, until the resource has settled; `respond-async`: do not wait. The status code is the same."),
            "schema": {"type": "string", "examples": ["wait=10", "respond-async"]}},
        "x-request-id": {"in": "header", "name": "x-request-id", "description":
            "Names the request in the answer and in the server's log.",
            "schema": {"type": "string"}},
        "labels": {"in": "query", "name": "labels", "description":
            "A selector: terms joined by commas, such as `env=prod,tier!=*gold,cpus>=4`, `env in (a,b)` or `!key`.",
            "schema": {"type": "string", "maxLength": ecp_xrds::limits::SELECTOR_LEN_MAX}},
        "limit": {"in": "query", "name": "limit", "description":
            "Items on a page. What is out of bounds is moved into them.",
            "schema": {"type": "integer", "minimum": 1, "maximum": limit_max, "default": limits::LIST_LIMIT_DEFAULT}},
        "skipToken": {"in": "query", "name": "skipToken", "description":
            "From the page before. It belongs to one list with one selector.",
            "schema": {"type": "string", "maxLength": limits::SKIP_TOKEN_LEN_MAX}},
    })
}
