//! Rules of CustomResourceDefinitions (apiextensions `pkg/apis/apiextensions/validation`).

use std::collections::BTreeSet;

use ecp_meta::names::{is_dns1123_label, is_dns1123_subdomain};
use ecp_meta::object;
use ecp_schema::{FieldError, FieldErrorKind, Structural};
use serde_json::Value;

/// Checks a definition; with `old`, also what an update may not change.
pub(crate) fn validate(crd: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let Some(spec) = crd.get("spec").filter(|s| s.is_object()) else {
        errors.push(required("spec", ""));
        return;
    };
    validate_group(crd, spec, errors);
    validate_names(spec, errors);
    match text(spec, "scope") {
        "Cluster" | "Namespaced" => {}
        "" => errors.push(required("spec.scope", "")),
        other => errors.push(
            FieldError::new(
                FieldErrorKind::NotSupported,
                "spec.scope",
                "supported values: \"Cluster\", \"Namespaced\"",
            )
            .with_value(other.into()),
        ),
    }
    validate_conversion(spec, errors);
    validate_pruning(spec, old, errors);
    validate_versions(spec, old, errors);
    if let Some(old) = old {
        validate_update(crd, old, errors);
    }
}

const APPROVAL: &str = "api-approved.kubernetes.io";

fn validate_group(crd: &Value, spec: &Value, errors: &mut Vec<FieldError>) {
    let group = text(spec, "group");
    let plural = spec.get("names").map_or("", |n| text(n, "plural"));
    if group.is_empty() {
        errors.push(required("spec.group", ""));
    } else if !is_dns1123_subdomain(group) {
        errors.push(
            invalid("spec.group", "a lowercase RFC 1123 subdomain is required")
                .with_value(group.into()),
        );
    } else if !group.contains('.') {
        errors.push(
            invalid("spec.group", "should be a domain with at least one dot")
                .with_value(group.into()),
        );
    }
    // KEP-1111: groups of the Kubernetes project need its approval.
    let is_protected = ["k8s.io", "kubernetes.io"].iter().any(|suffix| {
        group
            .strip_suffix(suffix)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    if is_protected && object::annotation(crd, APPROVAL).is_none() {
        errors.push(required(
            &format!("metadata.annotations[{APPROVAL}]"),
            "protected groups must have approval annotation \"api-approved.kubernetes.io\", see \
             https://github.com/kubernetes/enhancements/pull/1111",
        ));
    }
    let name = object::name(crd);
    if name != format!("{plural}.{group}") {
        errors.push(
            invalid(
                "metadata.name",
                "must be spec.names.plural+\".\"+spec.group",
            )
            .with_value(name.into()),
        );
    }
}

fn validate_names(spec: &Value, errors: &mut Vec<FieldError>) {
    let Some(names) = spec.get("names").filter(|n| n.is_object()) else {
        errors.push(required("spec.names", ""));
        return;
    };
    for field in ["plural", "singular"] {
        let at = format!("spec.names.{field}");
        match text(names, field) {
            "" => errors.push(required(&at, "")),
            name if !is_dns1035_label(name) => {
                errors.push(invalid(&at, "a DNS-1035 label is required").with_value(name.into()));
            }
            _ => {}
        }
    }
    for field in ["kind", "listKind"] {
        let at = format!("spec.names.{field}");
        let name = text(names, field);
        if name.is_empty() {
            errors.push(required(&at, ""));
        } else if !is_dns1035_label(&name.to_lowercase()) {
            errors.push(
                invalid(
                    &at,
                    "may have mixed case, but should otherwise match a DNS-1035 label",
                )
                .with_value(name.into()),
            );
        }
    }
    if text(names, "kind") == text(names, "listKind") && !text(names, "kind").is_empty() {
        errors.push(
            invalid(
                "spec.names.listKind",
                "kind and listKind may not be the same",
            )
            .with_value(text(names, "listKind").into()),
        );
    }
    for field in ["shortNames", "categories"] {
        for (i, name) in array(names, field).iter().enumerate() {
            if !name.as_str().is_some_and(is_dns1035_label) {
                errors.push(
                    invalid(
                        &format!("spec.names.{field}[{i}]"),
                        "a DNS-1035 label is required",
                    )
                    .with_value(name.clone()),
                );
            }
        }
    }
}

/// Definitions of `v1` say in their schemas what they keep.
fn validate_pruning(spec: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let keeps = |spec: Option<&Value>| {
        spec.and_then(|s| s.get("preserveUnknownFields")) == Some(&Value::Bool(true))
    };
    if keeps(Some(spec)) && !keeps(old.and_then(|o| o.get("spec"))) {
        errors.push(
            invalid(
                "spec.preserveUnknownFields",
                "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                 spec.versions[*].schema instead",
            )
            .with_value(true.into()),
        );
    }
}

fn validate_conversion(spec: &Value, errors: &mut Vec<FieldError>) {
    let strategy = spec
        .pointer("/conversion/strategy")
        .and_then(Value::as_str)
        .unwrap_or("None");
    if strategy != "None" {
        errors.push(
            FieldError::new(
                FieldErrorKind::NotSupported,
                "spec.conversion.strategy",
                "supported values: \"None\"",
            )
            .with_value(strategy.into()),
        );
    }
}

fn validate_versions(spec: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let versions = array(spec, "versions");
    if versions.is_empty() {
        errors.push(required("spec.versions", "must have at least one version"));
        return;
    }
    let mut seen = BTreeSet::new();
    let mut stored = 0;
    for (i, version) in versions.iter().enumerate() {
        let at = format!("spec.versions[{i}]");
        let name = text(version, "name");
        if !is_dns1035_label(name) {
            errors.push(
                invalid(&format!("{at}.name"), "a DNS-1035 label is required")
                    .with_value(name.into()),
            );
        }
        if !seen.insert(name) {
            errors.push(
                FieldError::new(FieldErrorKind::Duplicate, format!("{at}.name"), "")
                    .with_value(name.into()),
            );
        }
        for field in ["served", "storage"] {
            if version.get(field).is_none_or(|v| !v.is_boolean()) {
                errors.push(required(&format!("{at}.{field}"), "must be true or false"));
            }
        }
        if version.get("storage").and_then(Value::as_bool) == Some(true) {
            stored += 1;
        }
        let before = old
            .map(|o| o.pointer("/spec/versions").and_then(Value::as_array))
            .and_then(|v| v?.iter().find(|v| text(v, "name") == name));
        validate_version(&at, version, before, errors);
    }
    if stored != 1 {
        errors.push(invalid(
            "spec.versions",
            "must have exactly one version marked as storage version",
        ));
    }
}

fn validate_version(
    at: &str,
    version: &Value,
    before: Option<&Value>,
    errors: &mut Vec<FieldError>,
) {
    match version.pointer("/schema/openAPIV3Schema") {
        None => errors.push(required(
            &format!("{at}.schema.openAPIV3Schema"),
            "schemas are required",
        )),
        // An unchanged schema was checked when it came.
        Some(schema)
            if before.and_then(|b| b.pointer("/schema/openAPIV3Schema")) == Some(schema) => {}
        Some(schema) => {
            if let Err(found) = Structural::compile(schema) {
                errors.extend(found.into_iter().map(|mut e| {
                    e.field = if e.field.is_empty() || e.field == "<nil>" {
                        format!("{at}.schema.openAPIV3Schema")
                    } else {
                        format!("{at}.schema.openAPIV3Schema.{}", e.field)
                    };
                    e
                }));
            }
        }
    }
    for (i, column) in array(version, "additionalPrinterColumns")
        .iter()
        .enumerate()
    {
        let at = format!("{at}.additionalPrinterColumns[{i}]");
        if text(column, "name").is_empty() {
            errors.push(required(&format!("{at}.name"), ""));
        }
        let kind = text(column, "type");
        if !matches!(kind, "integer" | "number" | "string" | "boolean" | "date") {
            errors.push(
                invalid(
                    &format!("{at}.type"),
                    "must be one of boolean,date,integer,number,string",
                )
                .with_value(kind.into()),
            );
        }
        match text(column, "jsonPath") {
            "" => errors.push(required(&format!("{at}.jsonPath"), "")),
            path if !path.starts_with('.') => errors.push(
                invalid(
                    &format!("{at}.jsonPath"),
                    "must be a simple json path starting with .",
                )
                .with_value(path.into()),
            ),
            _ => {}
        }
    }
    validate_scale(at, version, errors);
    validate_selectable(at, version, errors);
}

fn validate_scale(at: &str, version: &Value, errors: &mut Vec<FieldError>) {
    let Some(scale) = version.pointer("/subresources/scale") else {
        return;
    };
    for (field, root) in [
        ("specReplicasPath", ".spec."),
        ("statusReplicasPath", ".status."),
    ] {
        let path = text(scale, field);
        let at = format!("{at}.subresources.scale.{field}");
        if path.is_empty() {
            errors.push(required(&at, ""));
        } else if !path.starts_with(root) || path.contains(['[', ']']) {
            errors.push(
                invalid(
                    &at,
                    &format!("should be a json path under {}", root.trim_end_matches('.')),
                )
                .with_value(path.into()),
            );
        }
    }
}

/// At most so many selectable fields (KEP-4358).
const SELECTABLE_FIELDS_MAX: usize = 8;

fn validate_selectable(at: &str, version: &Value, errors: &mut Vec<FieldError>) {
    let fields = array(version, "selectableFields");
    let at = format!("{at}.selectableFields");
    if fields.len() > SELECTABLE_FIELDS_MAX {
        errors.push(FieldError::new(
            FieldErrorKind::TooMany,
            at.clone(),
            format!("must have at most {SELECTABLE_FIELDS_MAX} items"),
        ));
    }
    let schema = version
        .pointer("/schema/openAPIV3Schema")
        .unwrap_or(&Value::Null);
    for (i, field) in fields.iter().enumerate() {
        let path = text(field, "jsonPath");
        let at = format!("{at}[{i}].jsonPath");
        let node = path
            .strip_prefix('.')
            .into_iter()
            .flat_map(|p| p.split('.'))
            .try_fold(schema, |s, step| s.get("properties")?.get(step));
        let kind = node.map_or("", |n| text(n, "type"));
        if path.is_empty() {
            errors.push(required(&at, ""));
        } else if path.starts_with(".metadata") {
            errors
                .push(invalid(&at, "must not point to fields in metadata").with_value(path.into()));
        } else if !path.starts_with('.') || !matches!(kind, "string" | "boolean" | "integer") {
            errors.push(
                invalid(
                    &at,
                    "must point to a field of type string, boolean or integer",
                )
                .with_value(path.into()),
            );
        }
    }
}

fn validate_update(crd: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let get = |v: &Value, p: &str| v.pointer(p).cloned().unwrap_or_default();
    for (pointer, field) in [
        ("/spec/group", "spec.group"),
        ("/spec/scope", "spec.scope"),
        ("/spec/names/plural", "spec.names.plural"),
        ("/spec/names/kind", "spec.names.kind"),
    ] {
        let new = get(crd, pointer);
        if new != get(old, pointer) {
            errors.push(invalid(field, "field is immutable").with_value(new));
        }
    }
    let names: Vec<&str> = crd
        .get("spec")
        .map(|s| array(s, "versions"))
        .unwrap_or_default()
        .iter()
        .map(|v| text(v, "name"))
        .collect();
    let stored = crd
        .pointer("/status/storedVersions")
        .and_then(Value::as_array);
    for (i, version) in stored.into_iter().flatten().enumerate() {
        if !version.as_str().is_some_and(|v| names.contains(&v)) {
            errors.push(
                invalid(
                    &format!("status.storedVersions[{i}]"),
                    "missing from spec.versions; objects may still be stored at it, so it must \
                     remain in spec.versions until it is removed here",
                )
                .with_value(version.clone()),
            );
        }
    }
}

/// A label that begins with a letter.
fn is_dns1035_label(name: &str) -> bool {
    is_dns1123_label(name) && name.starts_with(|c: char| c.is_ascii_lowercase())
}

fn required(field: &str, detail: &str) -> FieldError {
    FieldError::new(FieldErrorKind::Required, field, detail)
}

fn invalid(field: &str, detail: &str) -> FieldError {
    FieldError::new(FieldErrorKind::Invalid, field, detail)
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn array<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value
        .get(field)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_broken_rule_names_its_field() {
        let crd = json!({
            "metadata": {"name": "x"},
            "spec": {
                "group": "nodot", "scope": "Both",
                "names": {"plural": "Foos", "singular": "foo", "kind": "Foo", "listKind": "Foo"},
                "conversion": {"strategy": "Webhook"},
                "versions": [
                    {"name": "v1", "served": true, "storage": true},
                    {"name": "v1", "served": true, "storage": true,
                     "additionalPrinterColumns": [{"name": "a", "type": "text", "jsonPath": ".x"}],
                     "subresources": {"scale": {"specReplicasPath": ".x", "statusReplicasPath": ".status.n"}}}
                ]
            }
        });
        let mut errors = Vec::new();
        validate(&crd, None, &mut errors);
        let fields: BTreeSet<String> = errors.into_iter().map(|e| e.field).collect();
        let wanted = [
            "metadata.name",
            "spec.conversion.strategy",
            "spec.group",
            "spec.names.listKind",
            "spec.names.plural",
            "spec.scope",
            "spec.versions",
            "spec.versions[0].schema.openAPIV3Schema",
            "spec.versions[1].additionalPrinterColumns[0].type",
            "spec.versions[1].name",
            "spec.versions[1].schema.openAPIV3Schema",
            "spec.versions[1].subresources.scale.specReplicasPath",
        ];
        assert_eq!(fields, wanted.into_iter().map(String::from).collect());
    }
}
