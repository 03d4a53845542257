//! Paths of a group version and the operations on them.

use ecp_meta::gvk::GroupVersionKind;
use serde_json::{Map, Value, json};

use super::kinds::gvk_value;
use super::reference;
use crate::auth::review::Review;
use crate::registry::ResourceInfo;

/// Content types of patches of custom resources.
const PATCH_TYPES: &[&str] = &[
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
];
/// Content type that only built-in kinds understand.
const STRATEGIC: &str = "application/strategic-merge-patch+json";

const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// What an operation speaks of.
struct Subject<'a> {
    gvk: &'a GroupVersionKind,
    /// Name of the schema of one object.
    schema: &'a str,
    /// Name of the schema of lists.
    list: String,
    custom: bool,
    /// Distinguishes operation ids.
    id: String,
}

/// Adds the paths of a resource.
pub(super) fn resource(paths: &mut Map<String, Value>, info: &ResourceInfo, schema: &str) {
    let base = group_version_path(&info.gvk);
    let (collection, scope) = match info.namespaced {
        true => (
            format!("{base}/namespaces/{{namespace}}/{}", info.plural),
            "Namespaced",
        ),
        false => (format!("{base}/{}", info.plural), ""),
    };
    let id = format!("{}{scope}{}", id_prefix(&info.gvk), info.gvk.kind);
    let main = Subject::of(info, &info.gvk, schema, id.clone());
    paths.insert(
        collection.clone(),
        item(
            info.namespaced,
            false,
            [
                ("get", main.list_operation()),
                ("post", main.create()),
                ("delete", main.delete_collection()),
            ],
        ),
    );
    paths.insert(
        format!("{collection}/{{name}}"),
        item(
            info.namespaced,
            true,
            [
                ("get", main.get()),
                ("put", main.put()),
                ("patch", main.patch()),
                ("delete", main.delete()),
            ],
        ),
    );
    if info.namespaced {
        let id = format!("{}{}ForAllNamespaces", id_prefix(&info.gvk), info.gvk.kind);
        let everywhere = Subject::of(info, &info.gvk, schema, id);
        let operations = [("get", everywhere.list_operation())];
        paths.insert(
            format!("{base}/{}", info.plural),
            item(false, false, operations),
        );
    }
    for sub in info.subresources() {
        let scale = super::kinds::name_of(&sub.gvk).filter(|_| sub.gvk != info.gvk);
        let id = format!("{id}{}", capital(sub.name));
        let part = Subject::of(info, &sub.gvk, scale.unwrap_or(schema), id);
        let all = [
            ("get", part.get()),
            ("put", part.put()),
            ("patch", part.patch()),
        ];
        let operations = all.into_iter().filter(|(method, _)| {
            let verb = if *method == "put" { "update" } else { method };
            sub.verbs.contains(&verb)
        });
        let path = format!("{collection}/{{name}}/{}", sub.name);
        paths.insert(path, item(info.namespaced, true, operations));
    }
}

/// Adds the path of a review.
pub(super) fn review(paths: &mut Map<String, Value>, review: &Review, schema: &str) {
    let gvk = review.gvk();
    let base = group_version_path(&gvk);
    let path = match review.namespaced {
        true => format!("{base}/namespaces/{{namespace}}/{}", review.plural),
        false => format!("{base}/{}", review.plural),
    };
    let subject = Subject {
        gvk: &gvk,
        schema,
        list: String::new(),
        custom: false,
        id: format!("{}{}", id_prefix(&gvk), gvk.kind),
    };
    paths.insert(
        path,
        item(review.namespaced, false, [("post", subject.create())]),
    );
}

fn group_version_path(gvk: &GroupVersionKind) -> String {
    match gvk.group.as_str() {
        "" => format!("/api/{}", gvk.version),
        group => format!("/apis/{group}/{}", gvk.version),
    }
}

/// `AppsV1` for `apps/v1`.
fn id_prefix(gvk: &GroupVersionKind) -> String {
    let group = if gvk.group.is_empty() {
        "core"
    } else {
        gvk.group.as_str()
    };
    let parts = group.split(['.', '-']).chain([gvk.version.as_str()]);
    parts.map(capital).collect()
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map(|first| first.to_uppercase().chain(chars).collect())
        .unwrap_or_default()
}

fn item(
    namespaced: bool,
    named: bool,
    operations: impl IntoIterator<Item = (&'static str, Value)>,
) -> Value {
    let mut item: Map<String, Value> = operations
        .into_iter()
        .map(|(method, value)| (method.to_owned(), value))
        .collect();
    let mut parameters = Vec::new();
    for (name, wanted) in [("name", named), ("namespace", namespaced)] {
        if wanted {
            parameters.push(json!({"name": name, "in": "path", "required": true,
                "schema": {"type": "string", "uniqueItems": true}}));
        }
    }
    parameters.push(query("pretty", "string", "Whether the answer is indented."));
    item.insert("parameters".to_owned(), parameters.into());
    Value::Object(item)
}

fn query(name: &str, kind: &str, description: &str) -> Value {
    json!({"name": name, "in": "query", "description": description,
        "schema": {"type": kind, "uniqueItems": true}})
}

fn write_parameters() -> Vec<Value> {
    vec![
        query("dryRun", "string", "All: do everything but the write."),
        query("fieldManager", "string", "Name of who writes."),
        query(
            "fieldValidation",
            "string",
            "Ignore, Warn or Strict: unknown and repeated fields.",
        ),
    ]
}

fn content(types: &[&str], schema: &Value) -> Value {
    let by_type = types
        .iter()
        .map(|ty| ((*ty).to_owned(), json!({"schema": schema})));
    Value::Object(by_type.collect())
}

impl<'a> Subject<'a> {
    fn of(info: &ResourceInfo, gvk: &'a GroupVersionKind, schema: &'a str, id: String) -> Self {
        Self {
            gvk,
            schema,
            list: format!("{schema}List"),
            custom: info.is_custom(),
            id,
        }
    }

    fn operation(
        &self,
        action: &str,
        prefix: &str,
        parameters: Vec<Value>,
        answer: &str,
        codes: &[&str],
    ) -> Map<String, Value> {
        let schema = json!({"$ref": reference(answer)});
        let responses: Map<String, Value> = codes
            .iter()
            .map(|code| {
                let content = content(&["application/json", "application/yaml"], &schema);
                (
                    (*code).to_owned(),
                    json!({"description": "OK", "content": content}),
                )
            })
            .chain([("401".to_owned(), json!({"description": "Unauthorized"}))])
            .collect();
        let mut operation = Map::new();
        operation.insert("operationId".into(), format!("{prefix}{}", self.id).into());
        operation.insert("parameters".into(), parameters.into());
        operation.insert("responses".into(), Value::Object(responses));
        operation.insert("x-kubernetes-action".into(), action.into());
        operation.insert(
            "x-kubernetes-group-version-kind".into(),
            gvk_value(self.gvk),
        );
        operation
    }

    fn with_body(&self, mut operation: Map<String, Value>, body: Value) -> Value {
        operation.insert("requestBody".into(), body);
        Value::Object(operation)
    }

    fn object_body(&self) -> Value {
        let schema = json!({"$ref": reference(self.schema)});
        json!({"required": true, "content": content(&["*/*"], &schema)})
    }

    fn list_operation(&self) -> Value {
        let parameters = vec![
            query(
                "allowWatchBookmarks",
                "boolean",
                "Whether a watch may have BOOKMARK events.",
            ),
            query("continue", "string", "Token of the page before."),
            query(
                "fieldSelector",
                "string",
                "Only objects whose fields match.",
            ),
            query(
                "labelSelector",
                "string",
                "Only objects whose labels match.",
            ),
            query("limit", "integer", "Most objects on a page."),
            query(
                "resourceVersion",
                "string",
                "State to read at, or to watch from.",
            ),
            query(
                "resourceVersionMatch",
                "string",
                "How resourceVersion is meant.",
            ),
            query(
                "sendInitialEvents",
                "boolean",
                "Whether a watch begins with all objects.",
            ),
            query("timeoutSeconds", "integer", "When a watch ends."),
            query(
                "watch",
                "boolean",
                "Whether changes are sent as they happen.",
            ),
        ];
        Value::Object(self.operation("list", "list", parameters, &self.list, &["200"]))
    }

    fn get(&self) -> Value {
        Value::Object(self.operation("get", "read", Vec::new(), self.schema, &["200"]))
    }

    fn create(&self) -> Value {
        let codes = &["200", "201", "202"];
        let operation = self.operation("post", "create", write_parameters(), self.schema, codes);
        self.with_body(operation, self.object_body())
    }

    fn put(&self) -> Value {
        let codes = &["200", "201"];
        let operation = self.operation("put", "replace", write_parameters(), self.schema, codes);
        self.with_body(operation, self.object_body())
    }

    fn patch(&self) -> Value {
        let mut parameters = write_parameters();
        parameters.push(query(
            "force",
            "boolean",
            "Whether an apply takes fields from others.",
        ));
        let codes = &["200", "201"];
        let operation = self.operation("patch", "patch", parameters, self.schema, codes);
        let mut types = PATCH_TYPES.to_vec();
        if !self.custom {
            types.push(STRATEGIC);
        }
        let schema = json!({"type": "object", "description": "The patch, by its content type."});
        self.with_body(
            operation,
            json!({"required": true, "content": content(&types, &schema)}),
        )
    }

    fn delete(&self) -> Value {
        self.removal("delete", "delete", &["200", "202"])
    }

    fn delete_collection(&self) -> Value {
        self.removal("deletecollection", "deleteCollection", &["200"])
    }

    fn removal(&self, action: &str, prefix: &str, codes: &[&str]) -> Value {
        let parameters = vec![
            query("dryRun", "string", "All: do everything but the deletion."),
            query(
                "gracePeriodSeconds",
                "integer",
                "Seconds the object may take to end.",
            ),
            query(
                "orphanDependents",
                "boolean",
                "Old form of propagationPolicy.",
            ),
            query("propagationPolicy", "string", "What happens to dependents."),
        ];
        let operation = self.operation(action, prefix, parameters, STATUS, codes);
        let schema = json!({"$ref": reference(DELETE_OPTIONS)});
        self.with_body(operation, json!({"content": content(&["*/*"], &schema)}))
    }
}
