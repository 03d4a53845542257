//! Columns of built-in kinds, as `kubernetes/pkg/printers/internalversion` has them.

use ecp_meta::gvk::GroupVersionKind;
use jiff::Timestamp;
use serde_json::Value;

use super::columns::{since, text};

/// One column between Name and Age.
#[derive(Debug)]
pub(super) struct BuiltinColumn {
    pub name: &'static str,
    pub kind: &'static str,
    pub description: &'static str,
    /// 0 is shown always, more only in wide output.
    pub priority: i32,
    pub cell: fn(&Value, Timestamp) -> Value,
}

const fn column(
    name: &'static str,
    kind: &'static str,
    description: &'static str,
    cell: fn(&Value, Timestamp) -> Value,
) -> BuiltinColumn {
    BuiltinColumn {
        name,
        kind,
        description,
        priority: 0,
        cell,
    }
}

const fn wide(column: BuiltinColumn) -> BuiltinColumn {
    BuiltinColumn {
        priority: 1,
        ..column
    }
}

const CREATED_AT: BuiltinColumn = column("Created At", "date", "Time of creation.", |object, _| {
    string(object, "/metadata/creationTimestamp")
});

/// The columns of a kind; `None` if it has only the default ones.
pub(super) fn columns(gvk: &GroupVersionKind) -> Option<&'static [BuiltinColumn]> {
    Some(match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "Namespace") => NAMESPACE,
        ("", "Secret") => SECRET,
        ("", "ConfigMap") => CONFIG_MAP,
        ("", "ServiceAccount") => SERVICE_ACCOUNT,
        ("", "Event") => EVENT,
        ("events.k8s.io", "Event") => EVENT_V1,
        ("coordination.k8s.io", "Lease") => LEASE,
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => CREATED,
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => BINDING,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => CREATED,
        _ => return None,
    })
}

const CREATED: &[BuiltinColumn] = &[CREATED_AT];

const NAMESPACE: &[BuiltinColumn] = &[column(
    "Status",
    "string",
    "Phase of the namespace.",
    |o, _| string(o, "/status/phase"),
)];

const SECRET: &[BuiltinColumn] = &[
    column("Type", "string", "Kind of secret data.", |o, _| {
        string(o, "/type")
    }),
    column("Data", "integer", "Number of keys.", |o, _| {
        count(o, "/data").into()
    }),
];

const CONFIG_MAP: &[BuiltinColumn] = &[column("Data", "integer", "Number of keys.", |o, _| {
    (count(o, "/data") + count(o, "/binaryData")).into()
})];

const SERVICE_ACCOUNT: &[BuiltinColumn] = &[column(
    "Secrets",
    "integer",
    "Number of secrets.",
    |o, _| count(o, "/secrets").into(),
)];

const LEASE: &[BuiltinColumn] = &[column(
    "Holder",
    "string",
    "Who holds the lease.",
    |o, _| string(o, "/spec/holderIdentity"),
)];

const EVENT: &[BuiltinColumn] = &[
    column(
        "Last Seen",
        "string",
        "Time since it was last seen.",
        last_seen,
    ),
    column("Type", "string", "Normal or Warning.", |o, _| {
        string(o, "/type")
    }),
    column("Reason", "string", "Why, as one word.", |o, _| {
        string(o, "/reason")
    }),
    column("Object", "string", "What it is about.", |o, _| {
        reference(o, "/involvedObject")
    }),
    wide(column("Subobject", "string", "Which part.", |o, _| {
        string(o, "/involvedObject/fieldPath")
    })),
    wide(column("Source", "string", "Who reports it.", |o, _| {
        source(o, "/source").into()
    })),
    column("Message", "string", "What happened.", |o, _| {
        message(o, "/message")
    }),
    wide(column(
        "First Seen",
        "string",
        "Time since it was first seen.",
        first_seen,
    )),
    wide(column(
        "Count",
        "integer",
        "How often it was seen.",
        occurrences,
    )),
];

const EVENT_V1: &[BuiltinColumn] = &[
    column(
        "Last Seen",
        "string",
        "Time since it was last seen.",
        last_seen,
    ),
    column("Type", "string", "Normal or Warning.", |o, _| {
        string(o, "/type")
    }),
    column("Reason", "string", "Why, as one word.", |o, _| {
        string(o, "/reason")
    }),
    column("Object", "string", "What it is about.", |o, _| {
        reference(o, "/regarding")
    }),
    wide(column("Subobject", "string", "Which part.", |o, _| {
        string(o, "/regarding/fieldPath")
    })),
    wide(column("Source", "string", "Who reports it.", |o, _| {
        source(o, "/deprecatedSource").into()
    })),
    column("Message", "string", "What happened.", |o, _| {
        message(o, "/note")
    }),
    wide(column(
        "First Seen",
        "string",
        "Time since it was first seen.",
        first_seen,
    )),
    wide(column(
        "Count",
        "integer",
        "How often it was seen.",
        occurrences,
    )),
];

const BINDING: &[BuiltinColumn] = &[
    column("Role", "string", "Role that is given.", |o, _| {
        let part = |path| string(o, path).as_str().unwrap_or_default().to_owned();
        format!("{}/{}", part("/roleRef/kind"), part("/roleRef/name")).into()
    }),
    wide(column("Users", "string", "Users that get it.", |o, _| {
        subjects(o, "User")
    })),
    wide(column("Groups", "string", "Groups that get it.", |o, _| {
        subjects(o, "Group")
    })),
    wide(column(
        "ServiceAccounts",
        "string",
        "Service accounts that get it.",
        |o, _| subjects(o, "ServiceAccount"),
    )),
];

fn string(object: &Value, pointer: &str) -> Value {
    object.pointer(pointer).map(text).unwrap_or_default().into()
}

fn count(object: &Value, pointer: &str) -> usize {
    match object.pointer(pointer) {
        Some(Value::Object(fields)) => fields.len(),
        Some(Value::Array(items)) => items.len(),
        _ => 0,
    }
}

fn message(object: &Value, pointer: &str) -> Value {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .trim()
        .into()
}

/// `kind/name`, the kind in lower case.
fn reference(object: &Value, pointer: &str) -> Value {
    let part = |field: &str| {
        object
            .pointer(&format!("{pointer}/{field}"))
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    format!("{}/{}", part("kind").to_lowercase(), part("name")).into()
}

/// Component and host that report an event.
fn source(object: &Value, legacy: &str) -> String {
    let component = object
        .pointer(&format!("{legacy}/component"))
        .and_then(Value::as_str)
        .filter(|name| !name.is_empty());
    let name = component
        .or_else(|| object.get("reportingComponent").and_then(Value::as_str))
        .filter(|name| !name.is_empty())
        .or_else(|| object.get("reportingController").and_then(Value::as_str))
        .unwrap_or_default();
    match object
        .pointer(&format!("{legacy}/host"))
        .and_then(Value::as_str)
    {
        Some(host) if !host.is_empty() => format!("{name}, {host}"),
        _ => name.to_owned(),
    }
}

fn set_time<'a>(object: &'a Value, pointers: &[&str]) -> Option<&'a Value> {
    pointers
        .iter()
        .find_map(|pointer| object.pointer(pointer).filter(|time| !time.is_null()))
}

fn last_seen(object: &Value, now: Timestamp) -> Value {
    let time = set_time(
        object,
        &[
            "/series/lastObservedTime",
            "/lastTimestamp",
            "/deprecatedLastTimestamp",
            "/eventTime",
        ],
    );
    since(time, now).into()
}

fn first_seen(object: &Value, now: Timestamp) -> Value {
    let time = set_time(
        object,
        &["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"],
    );
    since(time, now).into()
}

fn occurrences(object: &Value, _: Timestamp) -> Value {
    set_time(object, &["/series/count", "/count", "/deprecatedCount"])
        .and_then(Value::as_i64)
        .filter(|count| *count > 0)
        .unwrap_or(1)
        .into()
}

fn subjects(object: &Value, kind: &str) -> Value {
    let subjects = object.get("subjects").and_then(Value::as_array);
    let names: Vec<String> = subjects
        .into_iter()
        .flatten()
        .filter(|subject| subject.get("kind").and_then(Value::as_str) == Some(kind))
        .map(|subject| {
            let name = subject.get("name").map(text).unwrap_or_default();
            match subject.get("namespace").and_then(Value::as_str) {
                Some(namespace) => format!("{namespace}/{name}"),
                None => name,
            }
        })
        .collect();
    names.join(", ").into()
}
