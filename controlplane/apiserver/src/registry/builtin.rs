//! Built-in resources, as data.

use std::sync::Arc;

use ecp_meta::gvk::{GroupResource, GroupVersionKind};

use super::{PrinterColumn, Resource, ResourceInfo, Rules, SpecDigest, builtin_schema, sort_key};
use crate::table::CompiledColumns;

/// Verbs of an ordinary resource.
pub const ALL_VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

struct Row {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    namespaced: bool,
    status: bool,
    rules: Rules,
    fields: &'static [&'static str],
    /// Heading, type and path of columns between Name and Age.
    columns: &'static [(&'static str, &'static str, &'static str)],
}

const PLAIN: Row = Row {
    group: "",
    version: "v1",
    kind: "",
    plural: "",
    short_names: &[],
    namespaced: true,
    status: false,
    rules: Rules::Plain,
    fields: &[],
    columns: &[],
};

const RBAC: Row = Row {
    group: "rbac.authorization.k8s.io",
    ..PLAIN
};

const EVENT_COLUMNS: &[(&str, &str, &str)] = &[
    ("Last Seen", "date", ".lastTimestamp"),
    ("Type", "string", ".type"),
    ("Reason", "string", ".reason"),
    ("Object", "string", ".involvedObject.name"),
    ("Message", "string", ".message"),
];

const ROWS: &[Row] = &[
    Row {
        kind: "Namespace",
        plural: "namespaces",
        short_names: &["ns"],
        namespaced: false,
        status: true,
        rules: Rules::Namespace,
        fields: &["status.phase"],
        columns: &[("Status", "string", ".status.phase")],
        ..PLAIN
    },
    Row {
        kind: "Secret",
        plural: "secrets",
        rules: Rules::Secret,
        fields: &["type"],
        columns: &[("Type", "string", ".type")],
        ..PLAIN
    },
    Row {
        kind: "ConfigMap",
        plural: "configmaps",
        short_names: &["cm"],
        rules: Rules::ConfigMap,
        ..PLAIN
    },
    Row {
        kind: "ServiceAccount",
        plural: "serviceaccounts",
        short_names: &["sa"],
        ..PLAIN
    },
    Row {
        kind: "Event",
        plural: "events",
        short_names: &["ev"],
        fields: &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        columns: EVENT_COLUMNS,
        ..PLAIN
    },
    Row {
        group: "events.k8s.io",
        kind: "Event",
        plural: "events",
        short_names: &["ev"],
        fields: &[
            "reason",
            "regarding.kind",
            "regarding.name",
            "regarding.namespace",
            "regarding.uid",
            "reportingController",
            "type",
        ],
        columns: &[
            ("Last Seen", "date", ".eventTime"),
            ("Type", "string", ".type"),
            ("Reason", "string", ".reason"),
            ("Object", "string", ".regarding.name"),
            ("Message", "string", ".note"),
        ],
        ..PLAIN
    },
    Row {
        group: "coordination.k8s.io",
        kind: "Lease",
        plural: "leases",
        columns: &[("Holder", "string", ".spec.holderIdentity")],
        ..PLAIN
    },
    Row {
        kind: "Role",
        plural: "roles",
        ..RBAC
    },
    Row {
        kind: "RoleBinding",
        plural: "rolebindings",
        columns: &[("Role", "string", ".roleRef.name")],
        ..RBAC
    },
    Row {
        kind: "ClusterRole",
        plural: "clusterroles",
        namespaced: false,
        ..RBAC
    },
    Row {
        kind: "ClusterRoleBinding",
        plural: "clusterrolebindings",
        namespaced: false,
        columns: &[("Role", "string", ".roleRef.name")],
        ..RBAC
    },
    Row {
        group: "apiextensions.k8s.io",
        kind: "CustomResourceDefinition",
        plural: "customresourcedefinitions",
        short_names: &["crd", "crds"],
        namespaced: false,
        status: true,
        rules: Rules::Crd,
        ..PLAIN
    },
];

/// The shared table, sorted by group, version and plural.
pub(super) fn table() -> Arc<[Resource]> {
    let mut all: Vec<Resource> = ROWS
        .iter()
        .map(|row| Resource {
            info: Arc::new(info(row)),
            crd: None,
        })
        .collect();
    all.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
    all.into()
}

fn info(row: &Row) -> ResourceInfo {
    // events.k8s.io and core Events are two views of one storage, as upstream.
    let storage_group = match (row.group, row.plural) {
        ("events.k8s.io", "events") => "",
        (group, _) => group,
    };
    let gvk = GroupVersionKind::new(row.group, row.version, row.kind);
    ResourceInfo {
        gvk: gvk.clone(),
        plural: row.plural.into(),
        singular: row.kind.to_lowercase(),
        short_names: row.short_names.iter().map(|s| (*s).into()).collect(),
        categories: match row.rules {
            Rules::Crd => vec!["api-extensions".into()],
            Rules::Custom | Rules::Plain | Rules::Namespace | Rules::Secret | Rules::ConfigMap => {
                Vec::new()
            }
        },
        list_kind: format!("{}List", row.kind),
        namespaced: row.namespaced,
        status_subresource: row.status,
        scale: None,
        verbs: ALL_VERBS,
        // A definition's schema is recursive, and has rules of its own.
        schema: (row.rules != Rules::Crd)
            .then(|| builtin_schema::structural(&gvk))
            .flatten()
            .map(Arc::new),
        open_api: None,
        printer_columns: columns(row.columns),
        selectable_fields: row.fields.iter().map(|s| (*s).into()).collect(),
        storage: GroupResource::new(storage_group, row.plural),
        storage_api_version: ResourceInfo::storage_version_of(storage_group, row.version),
        json_head: ResourceInfo::json_head_of(&gvk),
        storage_version: storage_group == row.group,
        digest: SpecDigest::default(),
        columns: CompiledColumns::default(),
        schema_id: 0,
        deprecation_warning: None,
        rules: row.rules,
    }
}

fn columns(rows: &[(&str, &str, &str)]) -> Vec<PrinterColumn> {
    rows.iter()
        .map(|(name, kind, path)| PrinterColumn {
            name: (*name).into(),
            kind: (*kind).into(),
            format: String::new(),
            description: String::new(),
            priority: 0,
            json_path: (*path).into(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_kind_has_a_structural_schema() {
        for resource in table().iter() {
            let recursive = resource.rules == Rules::Crd;
            assert_eq!(resource.schema.is_none(), recursive, "{}", resource.plural);
        }
    }
}
