//! Every answer that the tests get, against the OpenAPI document: the status is documented for the
//! operation, headers and media type are there, and the body fits its schema, without a member more.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use ecp_facade::{Profile, Served, openapi};
use http::{HeaderMap, Method, StatusCode};
use jsonschema::Validator;
use serde_json::{Map, Value, json};

/// Checks an answer of a facade with a profile.
///
/// # Panics
/// The document does not allow it.
pub(crate) fn check(
    profile: Profile,
    request: (&Method, &str),
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) {
    let (method, path) = request;
    let contract = match profile {
        Profile::Conformance => &*CONFORMANCE,
        Profile::Spec => &*SPEC,
    };
    if let Err(why) = contract.check(method, path, status.as_u16(), headers, body) {
        let body = String::from_utf8_lossy(body);
        panic!("{method} {path}: {status} breaks the OpenAPI document: {why}\n{headers:?}\n{body}");
    }
}

static CONFORMANCE: LazyLock<Contract> = LazyLock::new(|| Contract::new(Profile::Conformance));
static SPEC: LazyLock<Contract> = LazyLock::new(|| Contract::new(Profile::Spec));

struct Contract {
    document: Value,
    /// By the schema's text: compiling takes longer than checking.
    validators: Mutex<BTreeMap<String, std::sync::Arc<Validator>>>,
}

impl Contract {
    fn new(profile: Profile) -> Self {
        let mut document = openapi(
            profile,
            &Served::new(vec!["region-1".into()], "http://facade.test"),
        );
        close(&mut document["components"]["schemas"]);
        Self {
            document,
            validators: Mutex::default(),
        }
    }

    fn check(
        &self,
        method: &Method,
        path: &str,
        status: u16,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<(), String> {
        let head = method == Method::HEAD;
        let key = if head {
            "get"
        } else {
            &method.as_str().to_ascii_lowercase()
        };
        // The document says it once, for the server of another region.
        let path = match path.strip_prefix("/regions/").and_then(|p| p.find('/')) {
            Some(at) => &path["/regions/".len() + at..],
            None => path,
        };
        if method == Method::OPTIONS && status == 204 {
            return match (body.is_empty(), headers.contains_key("allow")) {
                (true, true) => Ok(()),
                _ => Err("OPTIONS has no body and says what is allowed".into()),
            };
        }
        let Some(operation) = self.item(path).and_then(|item| item.get(key)) else {
            if !(400..=599).contains(&status) {
                return Err("there is no such operation".into());
            }
            let problem = json!({"application/problem+json":
                {"schema": {"$ref": "#/components/schemas/Problem"}}});
            return self.content(&problem, headers, body, head);
        };
        let response = operation["responses"]
            .get(status.to_string())
            .ok_or("the status is not documented for the operation")?;
        let response = self.resolve(response);
        for (name, header) in response["headers"].as_object().into_iter().flatten() {
            let required = self.resolve(header)["required"] == true;
            if required && !headers.contains_key(name) {
                return Err(format!("the header {name} is missing"));
            }
        }
        for name in [
            "location",
            "warning",
            "retry-after",
            "www-authenticate",
            "x-request-id",
        ] {
            if headers.contains_key(name) && response["headers"].get(name).is_none() {
                return Err(format!("the header {name} is not documented"));
            }
        }
        match response.get("content") {
            Some(content) => self.content(content, headers, body, head),
            None if body.is_empty() && !headers.contains_key("content-type") => Ok(()),
            None => Err("there should be no body".into()),
        }
    }

    fn content(
        &self,
        content: &Value,
        headers: &HeaderMap,
        body: &[u8],
        head: bool,
    ) -> Result<(), String> {
        let media = headers.get("content-type").and_then(|v| v.to_str().ok());
        let schema = media
            .and_then(|media| content.get(media)?.get("schema"))
            .ok_or_else(|| format!("the media type {media:?} is not documented"))?;
        if head {
            return match body {
                [] => Ok(()),
                _ => Err("HEAD has a body".into()),
            };
        }
        let value = if media.is_some_and(|m| m.ends_with("json")) {
            serde_json::from_slice(body).map_err(|e| e.to_string())?
        } else {
            Value::String(String::from_utf8(body.to_vec()).map_err(|e| e.to_string())?)
        };
        let found: Vec<String> = self
            .validator(schema)
            .iter_errors(&value)
            .map(|e| format!("{}: {e}", e.instance_path()))
            .collect();
        match found.is_empty() {
            true => Ok(()),
            false => Err(found.join("; ")),
        }
    }

    fn validator(&self, schema: &Value) -> std::sync::Arc<Validator> {
        let mut validators = self
            .validators
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let make = || {
            let mut whole = schema.as_object().expect("schema").clone();
            whole.insert("components".into(), self.document["components"].clone());
            jsonschema::options()
                .with_draft(jsonschema::Draft::Draft202012)
                .should_validate_formats(true)
                .build(&Value::Object(whole))
                .expect("a schema")
                .into()
        };
        validators
            .entry(schema.to_string())
            .or_insert_with(make)
            .clone()
    }

    /// The item of the path's template; one without parameters goes first.
    fn item(&self, path: &str) -> Option<&Value> {
        let paths = self.document["paths"].as_object()?;
        let path = path.split('?').next().unwrap_or_default();
        let path = path.strip_suffix('/').unwrap_or(path);
        let fits = |template: &str| {
            let (mut wanted, mut given) = (template.split('/'), path.split('/'));
            loop {
                match (wanted.next(), given.next()) {
                    (None, None) => return true,
                    (Some(w), Some(g)) if w == g || (w.starts_with('{') && !g.is_empty()) => {}
                    _ => return false,
                }
            }
        };
        paths.get(path).or_else(|| {
            let found = paths.iter().find(|(template, _)| fits(template));
            found.map(|(_, item)| item)
        })
    }

    fn resolve<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value.get("$ref").and_then(Value::as_str) {
            Some(reference) => self
                .document
                .pointer(reference.trim_start_matches('#'))
                .expect("a reference that leads somewhere"),
            None => value,
        }
    }
}

/// Lets objects have no members but those that their schema names.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("properties").is_some_and(Value::is_object)
                && map.get("type") == Some(&json!("object"))
            {
                map.entry("additionalProperties").or_insert(false.into());
            }
            map.values_mut().for_each(close);
        }
        Value::Array(all) => all.iter_mut().for_each(close),
        _ => {}
    }
}

#[test]
fn what_the_document_does_not_say_is_found() {
    let ok = |status: u16, headers: &[(&'static str, &str)], body: Value| {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().expect("value"));
        }
        let path = "/providers/seca.storage/v1/tenants/acme/images/i";
        let body = body.to_string();
        CONFORMANCE.check(&Method::GET, path, status, &map, body.as_bytes())
    };
    let json_type = ("content-type", "application/json");
    let id = ("x-request-id", "1");
    let image = |change: &dyn Fn(&mut Map<String, Value>)| {
        let mut image = json!({
            "metadata": {
                "name": "i", "apiVersion": "v1", "kind": "image", "provider": "seca.storage/v1",
                "resource": "images/i", "ref": "seca.storage/v1/tenants/acme/images/i",
                "verb": "GET", "tenant": "acme", "region": "r", "resourceVersion": 1,
                "createdAt": "2026-01-02T03:04:05Z", "lastModifiedAt": "2026-01-02T03:04:05Z",
            },
            "spec": {"blockStorageRef": {"resource": "b"}, "cpuArchitecture": "amd64"},
            "status": {"state": "active", "conditions": []},
        });
        change(image.as_object_mut().expect("object"));
        image
    };
    ok(200, &[json_type, id], image(&|_| {})).expect("fits");
    for (status, headers, body, why) in [
        (201, vec![json_type, id], image(&|_| {}), "status"),
        (200, vec![json_type], image(&|_| {}), "x-request-id"),
        (200, vec![id], image(&|_| {}), "media type"),
        (
            200,
            vec![json_type, id, ("location", "/")],
            image(&|_| {}),
            "location",
        ),
        (
            200,
            vec![json_type, id],
            image(&|i| drop(i.remove("status"))),
            "status",
        ),
        (
            200,
            vec![json_type, id],
            image(&|i| drop(i.insert("more".into(), json!(1)))),
            "more",
        ),
        (
            200,
            vec![json_type, id],
            image(&|i| i["metadata"]["createdAt"] = json!("now")),
            "date-time",
        ),
        (
            200,
            vec![json_type, id],
            image(&|i| i["spec"]["cloud"] = json!({})),
            "cloud",
        ),
        (404, vec![json_type, id], json!({}), "media type"),
    ] {
        let found = ok(status, &headers, body).expect_err(why);
        assert!(found.contains(why), "{why}: {found}");
    }
}
