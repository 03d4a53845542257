use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::path::{self, Route, parse};
use crate::power::has_power;

fn served(url: &str) -> Served {
    Served::new(vec!["region-1".into()], url)
}

fn document() -> Value {
    openapi(Profile::Conformance, &served("http://127.0.0.1:8080"))
}

/// Every value below a value, itself included.
fn walk<'a>(value: &'a Value, visit: &mut impl FnMut(&'a Value)) {
    visit(value);
    match value {
        Value::Object(map) => map.values().for_each(|v| walk(v, visit)),
        Value::Array(all) => all.iter().for_each(|v| walk(v, visit)),
        _ => {}
    }
}

fn references(document: &Value) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    walk(document, &mut |value| {
        found.extend(value.get("$ref").and_then(Value::as_str));
    });
    found
}

#[test]
fn every_reference_leads_somewhere_and_every_component_is_used() {
    for profile in responses::PROFILES {
        let document = openapi(profile, &served("http://h"));
        let used = references(&document);
        for reference in &used {
            let pointer = reference.strip_prefix('#').expect("a local reference");
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
        for (section, components) in document["components"].as_object().expect("components") {
            for name in components.as_object().expect("components").keys() {
                let own = format!("#/components/{section}/{name}");
                assert!(
                    section == "securitySchemes" || used.contains(&*own),
                    "{own}"
                );
            }
        }
    }
}

#[test]
fn every_schema_is_json_schema() {
    let document = document();
    for (name, schema) in document["components"]["schemas"]
        .as_object()
        .expect("schemas")
    {
        let checked = jsonschema::meta::validate(schema);
        assert!(checked.is_ok(), "{name}: {checked:?}");
        walk(schema, &mut |value| {
            let keywords = value.as_object().into_iter().flat_map(Map::keys);
            for keyword in keywords {
                assert!(!keyword.starts_with("x-kubernetes"), "{name}: {keyword}");
            }
        });
    }
}

#[test]
fn every_kind_has_its_paths_and_they_lead_to_it() {
    let document = document();
    let paths = document["paths"].as_object().expect("paths");
    let filled = |template: &str| {
        let segments = template
            .split('/')
            .map(|s| if s.starts_with('{') { "x" } else { s });
        segments.collect::<Vec<_>>().join("/")
    };
    let mut met: BTreeMap<&str, Vec<Vec<&str>>> = BTreeMap::new();
    for (template, item) in paths {
        let methods: Vec<&str> = ["get", "put", "delete", "post"]
            .into_iter()
            .filter(|m| item.get(*m).is_some())
            .collect();
        match parse(&filled(template), &served("http://h")) {
            Ok(Route::Seca(target)) => {
                let allowed = target.methods().to_ascii_lowercase();
                let allowed: Vec<&str> = allowed
                    .split(", ")
                    .filter(|m| !matches!(*m, "head" | "options"))
                    .collect();
                assert_eq!(methods, allowed);
                met.entry(target.info.kind).or_default().push(methods);
            }
            Ok(Route::WellKnown { .. }) => {}
            Err(_) => assert_eq!(template.matches('/').count(), 1, "{template}"),
        }
    }
    for info in ecp_xrds::kinds() {
        let actions = if has_power(info) { 3 } else { 0 };
        assert_eq!(met[info.kind].len(), 2 + actions, "{}", info.kind);
    }
}

#[test]
fn operations_have_their_own_ids_and_the_parameters_of_their_path() {
    let document = document();
    let mut ids = BTreeSet::new();
    for (template, item) in document["paths"].as_object().expect("paths") {
        let named: Vec<&str> = template
            .split('/')
            .filter_map(|s| s.strip_prefix('{')?.strip_suffix('}'))
            .collect();
        let declared: Vec<&str> = item["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|p| p["name"].as_str())
            .collect();
        assert_eq!(named, declared, "{template}");
        for method in ["get", "put", "delete"] {
            if let Some(operation) = item.get(method) {
                let id = operation["operationId"].as_str().expect("id");
                assert!(ids.insert(id), "{id} twice");
            }
        }
    }
}

#[test]
fn a_document_tells_nothing_of_the_control_planes_side() {
    let document = document();
    let schemas = &document["components"]["schemas"];
    for (schema, hidden) in [
        ("RegionSpec", "cloud"),
        ("BlockStorageSpec", "commonData"),
        ("BlockStorageSpec", "region"),
        ("BlockStorageStatus", "intent"),
        ("BlockStorageStatus", "history"),
    ] {
        let schema = &schemas[schema];
        assert!(schema["properties"].get(hidden).is_none(), "{hidden}");
        let required = schema["required"].as_array().expect("required");
        assert!(!required.contains(&json!(hidden)), "{hidden}");
    }
    assert_eq!(
        schemas["BlockStorageSpec"]["properties"]["skuRef"]["$ref"],
        "#/components/schemas/Reference"
    );
    assert_eq!(schemas["WorkspaceSpec"]["additionalProperties"], true);
}

#[test]
fn the_profile_gives_the_status_codes() {
    let codes = |profile| {
        let document = openapi(profile, &served("http://h"));
        let template = path::template(ecp_xrds::by_kind("Image").expect("kind"));
        let put = &document["paths"][format!("{template}/{{name}}")]["put"];
        let responses = put["responses"].as_object().expect("responses");
        responses
            .keys()
            .map(|s| s.parse().expect("code"))
            .collect::<BTreeSet<u16>>()
    };
    let conformance = codes(Profile::Conformance);
    let spec = codes(Profile::Spec);
    assert!(conformance.contains(&412) && !conformance.contains(&409));
    assert_eq!(
        spec.difference(&conformance).copied().collect::<Vec<_>>(),
        [409, 422]
    );
}

proptest! {
    #[test]
    fn the_pattern_of_names_is_the_rule(name in "[a-zA0-9.\\-]{0,8}") {
        let pattern = json!({"pattern": operations::NAME_PATTERN});
        let matches = jsonschema::is_valid(&pattern, &name.as_str().into());
        prop_assert_eq!(matches, ecp_meta::names::is_dotted_name(&name));
    }
}
