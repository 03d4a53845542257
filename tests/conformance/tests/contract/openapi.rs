//! Answers against the OpenAPI document that the server itself serves.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use jsonschema::{Draft, Validator};
use serde_json::{Value, json};

/// The document of a server, and the schemas of it that were needed so far.
#[derive(Debug)]
pub(crate) struct OpenApi {
    document: Value,
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

/// What the server answered.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) method: &'a str,
    /// Path without query.
    pub(crate) path: &'a str,
    pub(crate) status: u16,
    pub(crate) media: &'a str,
    pub(crate) text: &'a str,
}

impl OpenApi {
    pub(crate) fn new(document: Value) -> Self {
        assert_eq!(document["openapi"], "3.1.0");
        Self {
            document,
            validators: Mutex::default(),
        }
    }

    /// Fails the test unless the answer is one that the document declares.
    pub(crate) fn check(&self, seen: &Seen<'_>) {
        if let Err(why) = self.declared(seen) {
            panic!("not as in the OpenAPI document: {why}\n{seen:#?}");
        }
    }

    fn declared(&self, seen: &Seen<'_>) -> Result<(), String> {
        // HEAD is GET without the body.
        let (method, head) = match seen.method {
            "HEAD" => ("get", true),
            other => (&*other.to_ascii_lowercase(), false),
        };
        let operation = self.template(seen.path).map(|item| &item[method]);
        let Some(operation) = operation.filter(|o| o.is_object()) else {
            if (200..300).contains(&seen.status) {
                return Err("an operation that is not declared succeeds".into());
            }
            return self.valid(&json!({"$ref": "#/components/schemas/Problem"}), seen);
        };
        let response = &operation["responses"][seen.status.to_string()];
        if response.is_null() {
            return Err("the status code is not declared".into());
        }
        let response = self.resolved(response)?;
        let content = response["content"].as_object();
        if head || content.is_none() {
            return match seen.text {
                "" => Ok(()),
                _ => Err("a body where none is declared".into()),
            };
        }
        let media = seen.media.split(';').next().unwrap_or_default();
        let declared = content
            .into_iter()
            .flatten()
            .find(|(name, _)| name.split(';').next() == Some(media));
        match declared {
            None => Err("the media type is not declared".into()),
            Some((_, body)) if body["schema"]["type"] == "string" => Ok(()),
            Some((_, body)) => self.valid(&body["schema"], seen),
        }
    }

    /// The item of the path that matches best: literal segments before parameters.
    fn template(&self, path: &str) -> Option<&Value> {
        let path = match path.strip_prefix("/regions/") {
            Some(rest) => &rest[rest.find('/')?..],
            None => path,
        };
        let segments: Vec<&str> = path.trim_end_matches('/').split('/').collect();
        let matches = |template: &str| {
            let wanted: Vec<&str> = template.split('/').collect();
            let same = |(want, have): (&&str, &&str)| {
                want == have || (want.starts_with('{') && !have.is_empty())
            };
            wanted.len() == segments.len() && wanted.iter().zip(&segments).all(same)
        };
        let paths = self.document["paths"].as_object()?;
        let mut found: Vec<_> = paths.iter().filter(|(t, _)| matches(t)).collect();
        found.sort_by_key(|(template, _)| template.matches('{').count());
        found.first().map(|(_, item)| *item)
    }

    fn resolved<'a>(&'a self, value: &'a Value) -> Result<&'a Value, String> {
        let Some(reference) = value["$ref"].as_str() else {
            return Ok(value);
        };
        let pointer = reference.trim_start_matches('#');
        let found = self.document.pointer(pointer);
        found.ok_or_else(|| format!("{reference} leads nowhere"))
    }

    fn valid(&self, schema: &Value, seen: &Seen<'_>) -> Result<(), String> {
        let body: Value = serde_json::from_str(seen.text)
            .map_err(|error| format!("the body is not JSON: {error}"))?;
        let validator = self.validator(schema)?;
        let faults: Vec<String> = validator
            .iter_errors(&body)
            .map(|fault| format!("{}: {fault}", fault.instance_path()))
            .collect();
        if faults.is_empty() {
            return Ok(());
        }
        Err(faults.join("\n"))
    }

    fn validator(&self, schema: &Value) -> Result<Arc<Validator>, String> {
        let key = schema.to_string();
        let mut validators = self.validators.lock().unwrap();
        if let Some(validator) = validators.get(&key) {
            return Ok(validator.clone());
        }
        // References in the schema lead from the root of the document.
        let mut root = schema.clone();
        root["components"] = json!({"schemas": self.document["components"]["schemas"]});
        let validator = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .should_validate_formats(true)
            .build(&root)
            .map_err(|error| format!("{key} is no schema: {error}"))?;
        let validator = Arc::new(validator);
        validators.insert(key, validator.clone());
        Ok(validator)
    }
}
