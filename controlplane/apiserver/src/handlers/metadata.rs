//! Rules of `metadata` (apimachinery `pkg/api/validation/objectmeta.go`, apiserver
//! `pkg/registry/rest`).

use ecp_meta::names::{is_dns1123_label, is_dns1123_subdomain, is_label_value, is_qualified_name};
use ecp_meta::object;
use ecp_schema::{FieldError, FieldErrorKind};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::limits;
use crate::registry::{ResourceInfo, Rules};

/// Fields that only the server sets.
const SERVER_FIELDS: &[&str] = &[
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
];

/// A time as Kubernetes writes it: RFC 3339, whole seconds.
pub(crate) fn time(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Fills in what the server sets on create. The name must be there.
pub(super) fn start(info: &ResourceInfo, object: &mut Value, now: Timestamp) {
    let metadata = object::metadata_mut(object);
    for field in SERVER_FIELDS {
        metadata.remove(*field);
    }
    metadata.remove("resourceVersion");
    metadata.insert("uid".into(), uuid::Uuid::new_v4().to_string().into());
    metadata.insert("creationTimestamp".into(), time(now).into());
    if has_generation(info) {
        metadata.insert("generation".into(), 1.into());
    }
    tidy(metadata);
}

/// Fields of `metadata` and of owner references.
const FIELDS: &[&str] = &[
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];
const OWNER_FIELDS: &[&str] = &[
    "apiVersion",
    "blockOwnerDeletion",
    "controller",
    "kind",
    "name",
    "uid",
];

/// Removes fields that metadata does not have; returns their paths.
pub(super) fn prune(object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return unknown;
    };
    metadata.retain(|key, _| {
        let known = FIELDS.contains(&key.as_str());
        if !known {
            unknown.push(format!("metadata.{key}"));
        }
        known
    });
    let owners = metadata
        .get_mut("ownerReferences")
        .and_then(Value::as_array_mut);
    for (i, owner) in owners.into_iter().flatten().enumerate() {
        let Some(owner) = owner.as_object_mut() else {
            continue;
        };
        owner.retain(|key, _| {
            let known = OWNER_FIELDS.contains(&key.as_str());
            if !known {
                unknown.push(format!("metadata.ownerReferences[{i}].{key}"));
            }
            known
        });
    }
    unknown
}

/// Carries over from the old object what a client cannot change.
pub(super) fn carry(old: &Value, new: &mut Value) {
    let metadata = object::metadata_mut(new);
    for field in SERVER_FIELDS.iter().chain(&["name", "namespace"]) {
        match old.get("metadata").and_then(|m| m.get(*field)) {
            Some(value) => metadata.insert((*field).into(), value.clone()),
            None => metadata.remove(*field),
        };
    }
    tidy(metadata);
}

/// In a map of strings, null reads as the empty string.
pub(super) fn empty_for_null(map: &mut Map<String, Value>) {
    for value in map.values_mut().filter(|v| v.is_null()) {
        *value = "".into();
    }
}

/// Drops nulls and empty collections, which read the same as absent ones.
fn tidy(metadata: &mut Map<String, Value>) {
    for field in ["labels", "annotations"] {
        if let Some(map) = metadata.get_mut(field).and_then(Value::as_object_mut) {
            empty_for_null(map);
        }
    }
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        let empty = match metadata.get(field) {
            Some(Value::Null) => true,
            Some(Value::Object(m)) => m.is_empty(),
            Some(Value::Array(a)) => a.is_empty(),
            _ => false,
        };
        if empty {
            metadata.remove(field);
        }
    }
    for field in ["generateName", "namespace"] {
        if metadata.get(field).is_some_and(|v| v.is_null() || v == "") {
            metadata.remove(field);
        }
    }
}

/// Whether objects have a `generation`.
pub(super) fn has_generation(info: &ResourceInfo) -> bool {
    matches!(info.rules, Rules::Custom | Rules::Crd)
}

/// Adds 1 to the generation when the intent changed: anything outside metadata, and outside status
/// where that is a subresource.
pub(super) fn advance_generation(info: &ResourceInfo, old: &Value, new: &mut Value) {
    if !has_generation(info) {
        return;
    }
    let ignored = |key: &str| {
        matches!(key, "metadata" | "apiVersion" | "kind")
            || (key == "status" && info.status_subresource)
    };
    fn intent<'a>(
        object: &'a Value,
        ignored: &'a impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = (&'a String, &'a Value)> {
        let members = object.as_object().into_iter().flatten();
        members.filter(|(k, _)| !ignored(k))
    }
    if !intent(old, &ignored).eq(intent(new, &ignored)) {
        let generation = object::generation(old).saturating_add(1);
        object::metadata_mut(new).insert("generation".into(), generation.into());
    }
}

/// A name made of a base and five characters drawn by a random number (apiserver
/// `names.SimpleNameGenerator`).
pub(super) fn generate_name(base: &str, mut random: u64) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut name: String = base
        .chars()
        .take(limits::GENERATE_NAME_BASE_LEN_MAX)
        .collect();
    for _ in 0..limits::GENERATE_NAME_SUFFIX_LEN {
        let digit = random % ALPHABET.len() as u64;
        random /= ALPHABET.len() as u64;
        name.extend(ALPHABET.get(digit as usize).map(|c| char::from(*c)));
    }
    name
}

/// Whether nothing holds a deleting object any more.
pub(crate) fn is_finalized(info: &ResourceInfo, object: &Value) -> bool {
    let held_by_spec = info.rules == Rules::Namespace
        && object
            .pointer("/spec/finalizers")
            .and_then(Value::as_array)
            .is_some_and(|f| !f.is_empty());
    object::finalizers(object).next().is_none() && !held_by_spec
}

/// Checks the metadata of an object.
pub(super) fn validate(info: &ResourceInfo, object: &Value, errors: &mut Vec<FieldError>) {
    let Some(metadata) = object.get("metadata").and_then(Value::as_object) else {
        return;
    };
    validate_name(info, object::name(object), errors);
    types(metadata, errors);
    let empty = Map::new();
    let map = |field: &str| {
        metadata
            .get(field)
            .and_then(Value::as_object)
            .unwrap_or(&empty)
    };
    for (key, value) in map("labels") {
        label_key("metadata.labels", key, errors);
        if value.as_str().is_some_and(|v| !is_label_value(v)) {
            errors.push(
                FieldError::new(FieldErrorKind::Invalid, "metadata.labels", LABEL_VALUE)
                    .with_value(value.clone()),
            );
        }
    }
    let mut size = 0;
    for (key, value) in map("annotations") {
        // Upper case is allowed in the prefix too.
        if !is_qualified_name(&key.to_ascii_lowercase()) {
            errors.push(unqualified("metadata.annotations", key));
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > limits::ANNOTATIONS_BYTES_MAX {
        errors.push(FieldError::new(
            FieldErrorKind::TooLong,
            "metadata.annotations",
            format!(
                "may not be more than {} bytes",
                limits::ANNOTATIONS_BYTES_MAX
            ),
        ));
    }
    for finalizer in object::finalizers(object) {
        validate_finalizer(info, finalizer, errors);
    }
    owner_references(object, errors);
}

const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric \
     characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
     'MyValue',  or 'my_value',  or '12345', regex used for validation is \
     '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and \
     must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
     '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
     characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
     'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
     or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', \
     regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

fn validate_name(info: &ResourceInfo, name: &str, errors: &mut Vec<FieldError>) {
    let invalid = |detail: &str| {
        FieldError::new(FieldErrorKind::Invalid, "metadata.name", detail).with_value(name.into())
    };
    if name.is_empty() {
        errors.push(FieldError::new(
            FieldErrorKind::Required,
            "metadata.name",
            "name or generateName is required",
        ));
    } else if info.gvk.group == "rbac.authorization.k8s.io" {
        // RBAC names only need to be path segments, such as `system:admin`.
        if matches!(name, "." | "..") || name.contains(['/', '%']) {
            errors.push(invalid("may not be '.' or '..' or contain '/' or '%'"));
        }
    } else if info.rules == Rules::Namespace {
        if !is_dns1123_label(name) {
            errors.push(invalid(LABEL));
        }
    } else if name.len() > ecp_meta::limits::SUBDOMAIN_LEN_MAX {
        errors.push(invalid("must be no more than 253 characters"));
    } else if !is_dns1123_subdomain(name) {
        errors.push(invalid(SUBDOMAIN));
    }
}

/// Wrong JSON types, which a typed decoder would refuse.
fn types(metadata: &Map<String, Value>, errors: &mut Vec<FieldError>) {
    let mut wrong = |field: String, expected: &str, value: &Value| {
        errors.push(
            FieldError::new(
                FieldErrorKind::TypeInvalid,
                field,
                format!("must be {expected}"),
            )
            .with_value(value.clone()),
        );
    };
    for field in ["labels", "annotations"] {
        match metadata.get(field) {
            None | Some(Value::Null) => {}
            Some(Value::Object(map)) => {
                for (key, value) in map.iter().filter(|(_, v)| !v.is_string()) {
                    wrong(format!("metadata.{field}[{key}]"), "a string", value);
                }
            }
            Some(other) => wrong(format!("metadata.{field}"), "an object", other),
        }
    }
    for (field, item) in [("finalizers", "strings"), ("ownerReferences", "objects")] {
        let fits = |v: &Value| match item {
            "strings" => v.is_string(),
            _ => v.is_object(),
        };
        match metadata.get(field) {
            None | Some(Value::Null) => {}
            Some(Value::Array(items)) if items.iter().all(fits) => {}
            Some(other) => wrong(
                format!("metadata.{field}"),
                &format!("a list of {item}"),
                other,
            ),
        }
    }
    for field in ["name", "namespace", "generateName", "uid"] {
        if let Some(value) = metadata.get(field)
            && !value.is_string()
            && !value.is_null()
        {
            wrong(format!("metadata.{field}"), "a string", value);
        }
    }
}

fn label_key(field: &str, key: &str, errors: &mut Vec<FieldError>) {
    if !is_qualified_name(key) {
        errors.push(unqualified(field, key));
    }
}

fn unqualified(field: &str, key: &str) -> FieldError {
    FieldError::new(FieldErrorKind::Invalid, field, QUALIFIED).with_value(key.into())
}

fn validate_finalizer(info: &ResourceInfo, finalizer: &str, errors: &mut Vec<FieldError>) {
    let invalid = |detail: &str| {
        FieldError::new(FieldErrorKind::Invalid, "metadata.finalizers", detail)
            .with_value(finalizer.into())
    };
    if !is_qualified_name(finalizer) {
        errors.push(invalid(QUALIFIED));
    } else if !info.is_custom()
        // Only core validation asks for more; Crossplane's own finalizers have no slash.
        && !finalizer.contains('/')
        && !matches!(finalizer, "orphan" | "foregroundDeletion" | "kubernetes")
    {
        errors.push(invalid(
            "name is neither a standard finalizer name nor is it fully qualified",
        ));
    }
}

fn owner_references(object: &Value, errors: &mut Vec<FieldError>) {
    let mut controller: Option<String> = None;
    for (i, reference) in object::owner_refs(object).enumerate() {
        let field = |name: &str| format!("metadata.ownerReferences[{i}].{name}");
        let text = |name: &str| {
            reference
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (group, version) = ecp_meta::gvk::split_api_version(text("apiVersion"));
        if version.is_empty() || group.contains('/') {
            errors.push(
                FieldError::new(
                    FieldErrorKind::Invalid,
                    field("apiVersion"),
                    "version must not be empty",
                )
                .with_value(text("apiVersion").into()),
            );
        }
        for name in ["kind", "name", "uid"] {
            if text(name).is_empty() {
                errors.push(
                    FieldError::new(FieldErrorKind::Invalid, field(name), "must not be empty")
                        .with_value("".into()),
                );
            }
        }
        if reference.get("controller").and_then(Value::as_bool) == Some(true) {
            let name = format!("{}/{}", text("kind"), text("name"));
            if let Some(first) = &controller {
                errors.push(FieldError::new(
                    FieldErrorKind::Invalid,
                    "metadata.ownerReferences",
                    format!(
                        "Only one reference can have Controller set to true. Found \"true\" in \
                         references for {first} and {name}"
                    ),
                ));
            }
            controller.get_or_insert(name);
        }
    }
    for key in ["blockOwnerDeletion", "controller"] {
        for (i, reference) in object::owner_refs(object).enumerate() {
            if reference
                .get(key)
                .is_some_and(|v| !v.is_boolean() && !v.is_null())
            {
                errors.push(FieldError::new(
                    FieldErrorKind::TypeInvalid,
                    format!("metadata.ownerReferences[{i}].{key}"),
                    "must be a boolean",
                ));
            }
        }
    }
}

/// Checks what an update may not change. `new` is as the client sent it.
pub(super) fn validate_update(old: &Value, new: &Value, errors: &mut Vec<FieldError>) {
    // A changed creation time is ignored, and so is a deletion time once there is one: clients send
    // times back in forms of their own.
    let deleting = object::is_deleting(old);
    let fields = ["name", "namespace", "uid", "deletionTimestamp"];
    for field in fields
        .iter()
        .filter(|f| !(deleting && **f == "deletionTimestamp"))
    {
        let value = |v: &Value| object::meta_str(v, field).unwrap_or_default().to_owned();
        let sent = value(new);
        if !sent.is_empty() && sent != value(old) {
            errors.push(
                FieldError::new(
                    FieldErrorKind::Invalid,
                    format!("metadata.{field}"),
                    "field is immutable",
                )
                .with_value(sent.into()),
            );
        }
    }
    if deleting {
        let had: Vec<&str> = object::finalizers(old).collect();
        let added: Vec<String> = object::finalizers(new)
            .filter(|f| !had.contains(f))
            .map(|f| format!("{f:?}"))
            .collect();
        if !added.is_empty() {
            errors.push(FieldError::new(
                FieldErrorKind::Forbidden,
                "metadata.finalizers",
                format!(
                    "no new finalizers can be added if the object is being deleted, found new \
                     finalizers []string{{{}}}",
                    added.join(", ")
                ),
            ));
        }
    }
}

/// The metadata of a list.
pub(super) fn list_meta(revision: &str, next: &str, remaining: Option<u64>) -> Value {
    let mut meta = json!({"resourceVersion": revision});
    if !next.is_empty() {
        meta["continue"] = next.into();
    }
    if let Some(n) = remaining {
        meta["remainingItemCount"] = n.into();
    }
    meta
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;
    use ecp_meta::cluster::ClusterName;

    fn errors(plural: &str, object: &Value) -> Vec<String> {
        let resources = Registry::new().resources(&ClusterName::root());
        let mut errors = Vec::new();
        validate(
            resources.find("", "v1", plural).unwrap(),
            object,
            &mut errors,
        );
        errors.into_iter().map(|e| e.field).collect()
    }

    #[test]
    fn metadata_rules_name_the_field() {
        let ok =
            json!({"metadata": {"name": "a.b", "labels": {"x/y": "z"}, "finalizers": ["a.b/c"]}});
        assert!(errors("secrets", &ok).is_empty());
        let bad = json!({"metadata": {
            "name": "../x", "labels": {"-": "v", "k": "-"}, "annotations": {"a b": "", "n": 3},
            "finalizers": ["plain"],
            "ownerReferences": [
                {"apiVersion": "", "kind": "K", "name": "n", "uid": "u", "controller": true},
                {"apiVersion": "v1", "kind": "", "name": "m", "uid": "u", "controller": true}]
        }});
        assert_eq!(
            errors("secrets", &bad),
            [
                "metadata.name",
                "metadata.annotations[n]",
                "metadata.labels",
                "metadata.labels",
                "metadata.annotations",
                "metadata.finalizers",
                "metadata.ownerReferences[0].apiVersion",
                "metadata.ownerReferences[1].kind",
                "metadata.ownerReferences"
            ]
        );
        assert_eq!(errors("namespaces", &ok), ["metadata.name"]);
    }

    #[test]
    fn generated_names_fit_a_label() {
        let name = generate_name(&"x".repeat(253), u64::MAX);
        assert_eq!(name.len(), 63);
        assert_eq!(generate_name("a-", 0), "a-bbbbb");
        assert_ne!(generate_name("a-", 1), generate_name("a-", 2));
    }

    #[test]
    fn no_finalizer_can_join_a_deletion() {
        let old =
            json!({"metadata": {"name": "a", "deletionTimestamp": "t", "finalizers": ["x/y"]}});
        let new = json!({"metadata": {"name": "a", "finalizers": ["x/y", "x/z"]}});
        let mut errors = Vec::new();
        validate_update(&old, &new, &mut errors);
        assert_eq!(errors[0].field, "metadata.finalizers");
    }
}
