//! Rules of the small built-in kinds: Lease, Event, the bindings of RBAC, and typed Secrets
//! (upstream's `pkg/apis/{coordination,core,rbac}/validation`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ecp_schema::{FieldError, FieldErrorKind};
use serde_json::{Map, Value};

use crate::registry::{ResourceInfo, Rules};

const RBAC: &str = "rbac.authorization.k8s.io";

/// Whether a PUT of an object that does not exist creates it.
pub(super) fn creates_on_update(info: &ResourceInfo) -> bool {
    match (info.gvk.group.as_str(), info.gvk.kind.as_str()) {
        ("" | "events.k8s.io", "Event") | ("coordination.k8s.io", "Lease") => true,
        (group, _) => group == RBAC,
    }
}

/// Whether a PUT must say which version it replaces.
pub(super) fn demands_version(info: &ResourceInfo) -> bool {
    match info.rules {
        Rules::Custom | Rules::Crd => true,
        Rules::Plain => info.gvk.kind == "Lease",
        Rules::Namespace | Rules::Secret | Rules::ConfigMap => false,
    }
}

/// Fills in defaults.
pub(super) fn prepare(info: &ResourceInfo, object: &mut Value) {
    if info.gvk.group != RBAC {
        return;
    }
    if let Some(role) = object.get_mut("roleRef").and_then(Value::as_object_mut) {
        default_group(role);
    }
    let subjects = object.get_mut("subjects").and_then(Value::as_array_mut);
    for subject in subjects.into_iter().flatten() {
        if let Some(subject) = subject.as_object_mut()
            && subject
                .get("kind")
                .is_some_and(|k| k == "User" || k == "Group")
        {
            default_group(subject);
        }
    }
}

fn default_group(reference: &mut Map<String, Value>) {
    if reference.get("apiGroup").is_none_or(|g| g == "") {
        reference.insert("apiGroup".into(), RBAC.into());
    }
}

/// Checks an object.
pub(super) fn validate(
    info: &ResourceInfo,
    object: &Value,
    old: Option<&Value>,
    errors: &mut Vec<FieldError>,
) {
    match info.gvk.kind.as_str() {
        "Lease" => lease(object, errors),
        "Event" => event(info, object, errors),
        "RoleBinding" | "ClusterRoleBinding" => binding(info, object, old, errors),
        _ => {}
    }
}

fn lease(object: &Value, errors: &mut Vec<FieldError>) {
    for (field, least, detail) in [
        ("leaseDurationSeconds", 1, "must be greater than 0"),
        ("leaseTransitions", 0, "must be greater than or equal to 0"),
    ] {
        let value = object.get("spec").and_then(|spec| spec.get(field));
        if let Some(value) = value
            && value.as_i64().is_some_and(|n| n < least)
        {
            let field = format!("spec.{field}");
            errors.push(
                FieldError::new(FieldErrorKind::Invalid, field, detail).with_value(value.clone()),
            );
        }
    }
}

/// An event lives in the namespace of what it is about.
fn event(info: &ResourceInfo, object: &Value, errors: &mut Vec<FieldError>) {
    let about = match info.gvk.group.as_str() {
        "" => "involvedObject",
        _ => "regarding",
    };
    let of = object.get(about).and_then(|o| o.get("namespace"));
    let is = object.get("metadata").and_then(|m| m.get("namespace"));
    if let Some(of) = of
        && of != ""
        && Some(of) != is
    {
        let field = format!("{about}.namespace");
        errors.push(
            FieldError::new(
                FieldErrorKind::Invalid,
                field,
                "does not match event.namespace",
            )
            .with_value(of.clone()),
        );
    }
}

fn binding(info: &ResourceInfo, object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let roles: &[&str] = match info.gvk.kind.as_str() {
        "RoleBinding" => &["Role", "ClusterRole"],
        _ => &["ClusterRole"],
    };
    let role = object.get("roleRef");
    one_of("roleRef.kind", role, roles, errors);
    if role
        .and_then(|r| r.get("name"))
        .is_some_and(|name| name == "")
    {
        errors.push(FieldError::new(
            FieldErrorKind::Required,
            "roleRef.name",
            "",
        ));
    }
    let subjects = object.get("subjects").and_then(Value::as_array);
    for (i, subject) in subjects.into_iter().flatten().enumerate() {
        let field = format!("subjects[{i}].kind");
        let kinds = ["ServiceAccount", "User", "Group"];
        one_of(&field, Some(subject), &kinds, errors);
    }
    if let Some(old) = old
        && old.get("roleRef") != role
    {
        errors.push(
            FieldError::new(FieldErrorKind::Invalid, "roleRef", "cannot change roleRef")
                .with_value(role.cloned().unwrap_or_default()),
        );
    }
}

/// Checks the kind of a reference; that it has one is for its schema to say.
fn one_of(field: &str, reference: Option<&Value>, kinds: &[&str], errors: &mut Vec<FieldError>) {
    let Some(kind) = reference
        .and_then(|r| r.get("kind"))
        .and_then(Value::as_str)
    else {
        return;
    };
    if !kinds.contains(&kind) {
        let kinds: Vec<String> = kinds.iter().map(|k| format!("{k:?}")).collect();
        let detail = format!("supported values: {}", kinds.join(", "));
        errors.push(
            FieldError::new(FieldErrorKind::NotSupported, field, detail).with_value(kind.into()),
        );
    }
}

/// What the type of a Secret demands of its data. Values are never repeated.
pub(super) fn secret_type(secret: &Value, errors: &mut Vec<FieldError>) {
    let data = |key: &str| secret.get("data").and_then(|d| d.get(key));
    let mut require = |keys: &[&str]| {
        for key in keys {
            let field = format!("data[{key}]");
            errors.push(FieldError::new(FieldErrorKind::Required, field, ""));
        }
    };
    match secret
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
    {
        "kubernetes.io/tls" => {
            for key in ["tls.crt", "tls.key"] {
                if data(key).is_none() {
                    require(&[key]);
                }
            }
        }
        "kubernetes.io/basic-auth" if data("username").is_none() && data("password").is_none() => {
            require(&["username", "password"]);
        }
        "kubernetes.io/ssh-auth" if data("ssh-privatekey").is_none_or(|v| v == "") => {
            require(&["ssh-privatekey"]);
        }
        "kubernetes.io/dockerconfigjson" => json_data(data, ".dockerconfigjson", errors),
        "kubernetes.io/dockercfg" => json_data(data, ".dockercfg", errors),
        "kubernetes.io/service-account-token" => {
            let account = secret
                .pointer("/metadata/annotations/kubernetes.io~1service-account.name")
                .and_then(Value::as_str)
                .unwrap_or_default();
            if account.is_empty() {
                errors.push(FieldError::new(
                    FieldErrorKind::Required,
                    "metadata.annotations[kubernetes.io/service-account.name]",
                    "",
                ));
            }
        }
        _ => {}
    }
}

fn json_data<'a>(
    data: impl Fn(&str) -> Option<&'a Value>,
    key: &str,
    errors: &mut Vec<FieldError>,
) {
    let field = format!("data[{key}]");
    let Some(value) = data(key).and_then(Value::as_str) else {
        errors.push(FieldError::new(FieldErrorKind::Required, field, ""));
        return;
    };
    // What is not base64 is refused already.
    let Ok(text) = STANDARD.decode(value) else {
        return;
    };
    if !serde_json::from_slice::<Value>(&text).is_ok_and(|v| v.is_object()) {
        errors.push(
            FieldError::new(FieldErrorKind::Invalid, field, "must be a JSON object")
                .with_value("<secret contents redacted>".into()),
        );
    }
}
