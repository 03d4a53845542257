use http::{HeaderValue, header};

use super::*;
use crate::registry::{PrinterColumn, Registry};

fn accept(text: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(text))])
}

fn builtin(group: &str, plural: &str) -> std::sync::Arc<ResourceInfo> {
    let resources = Registry::new().resources(&ecp_meta::cluster::ClusterName::root());
    std::sync::Arc::clone(resources.find(group, "v1", plural).unwrap().info())
}

fn custom(columns: Vec<PrinterColumn>) -> ResourceInfo {
    ResourceInfo {
        printer_columns: columns,
        rules: crate::registry::Rules::Custom,
        ..ResourceInfo::clone(&builtin("", "configmaps"))
    }
}

fn column(name: &str, kind: &str, json_path: &str) -> PrinterColumn {
    PrinterColumn {
        name: name.into(),
        kind: kind.into(),
        format: String::new(),
        description: String::new(),
        priority: 0,
        json_path: json_path.into(),
    }
}

fn now() -> Timestamp {
    "2026-01-01T01:00:00Z".parse().unwrap()
}

fn cells(resource: &ResourceInfo, object: &Value) -> Value {
    Columns::of(resource).cells(object, now()).into()
}

fn headings(resource: &ResourceInfo) -> Vec<String> {
    let definitions = Columns::of(resource).definitions();
    definitions
        .iter()
        .map(|d| d["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn kubectl_gets_a_table_and_others_the_object() {
    let kubectl = accept(
        "application/json;as=Table;v=v1;g=meta.k8s.io,\
         application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
    );
    assert_eq!(
        negotiate(&kubectl, "includeObject=Object").unwrap(),
        Representation::Table {
            include: IncludeObject::Object
        }
    );
    for object in [
        "application/json",
        "*/*",
        "application/vnd.kubernetes.protobuf, */*",
        "application/json;stream=watch",
        "application/json;as=Unknown;v=v1;g=x, application/json",
    ] {
        assert_eq!(
            negotiate(&accept(object), "").unwrap(),
            Representation::Object,
            "{object}"
        );
    }
    assert_eq!(
        negotiate(&HeaderMap::new(), "").unwrap(),
        Representation::Object
    );
    let metadata = accept(
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
         application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
    );
    assert_eq!(negotiate(&metadata, "").unwrap(), Representation::Metadata);
}

#[test]
fn what_cannot_be_made_is_not_acceptable() {
    for bad in [
        "text/html",
        "application/json;as=Table;v=v9;g=meta.k8s.io",
        "application/vnd.kubernetes.protobuf",
    ] {
        let status = negotiate(&accept(bad), "").unwrap_err();
        assert_eq!(status.http_status(), 406, "{bad}");
    }
    let table = accept("application/json;as=Table;v=v1;g=meta.k8s.io");
    assert_eq!(
        negotiate(&table, "includeObject=All")
            .unwrap_err()
            .http_status(),
        400
    );
}

#[test]
fn a_definition_without_columns_has_name_and_age() {
    let object = json!({"metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"}});
    let resource = custom(Vec::new());
    assert_eq!(headings(&resource), ["Name", "Age"]);
    assert_eq!(cells(&resource, &object), json!(["a", "60m"]));
}

#[test]
fn cells_have_the_type_of_their_column() {
    let resource = custom(vec![
        column(
            "Ready",
            "string",
            r#".status.conditions[?(@.type=="Ready")].status"#,
        ),
        column("Size", "integer", ".spec.size"),
        column("Ratio", "number", ".spec.ratio"),
        column("On", "boolean", ".spec.on"),
        column("Since", "date", ".status.since"),
        column("Map", "string", ".spec.map"),
        column("Wrong", "integer", ".spec.on"),
        column("Missing", "string", ".spec.none"),
        column("Broken", "string", "no path"),
        column("Bad date", "date", ".metadata.name"),
    ]);
    let object = json!({
        "metadata": {"name": "a"},
        "spec": {"size": 3, "ratio": 1.5, "on": true, "map": {"k": 1}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}],
            "since": "2026-01-01T00:58:55Z"},
    });
    assert_eq!(
        cells(&resource, &object),
        json!([
            "a",
            "True",
            3,
            1.5,
            true,
            "65s",
            "{\"k\":1}",
            null,
            null,
            null,
            "<invalid>"
        ])
    );
    assert_eq!(headings(&resource).len(), 11);
}

#[test]
fn built_in_kinds_have_their_own_columns() {
    let meta = json!({"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"});
    let cases = [
        (
            "",
            "namespaces",
            json!({"status": {"phase": "Active"}}),
            json!(["a", "Active", "60m"]),
        ),
        (
            "",
            "secrets",
            json!({"type": "Opaque", "data": {"k": "dg=="}}),
            json!(["a", "Opaque", 1, "60m"]),
        ),
        (
            "",
            "configmaps",
            json!({"data": {"k": "v"}, "binaryData": {"b": ""}}),
            json!(["a", 2, "60m"]),
        ),
        ("", "serviceaccounts", json!({}), json!(["a", 0, "60m"])),
        (
            "coordination.k8s.io",
            "leases",
            json!({"spec": {"holderIdentity": "me"}}),
            json!(["a", "me", "60m"]),
        ),
        (
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            json!({}),
            json!(["a", "2026-01-01T00:00:00Z"]),
        ),
    ];
    for (group, plural, mut object, want) in cases {
        object["metadata"] = meta.clone();
        assert_eq!(cells(&builtin(group, plural), &object), want, "{plural}");
    }
    let event = json!({
        "metadata": meta, "type": "Warning", "reason": "Refused", "message": " no quota\n",
        "involvedObject": {"kind": "Volume", "name": "v"},
        "source": {"component": "provider"}, "count": 2,
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:59:00Z",
    });
    assert_eq!(
        cells(&builtin("", "events"), &event),
        json!([
            "a", "60s", "Warning", "Refused", "volume/v", "", "provider", "no quota", "60m", 2,
            "60m"
        ])
    );
}

#[test]
fn a_table_list_has_rows_with_metadata_and_the_page_token() {
    let items = vec![Bytes::from_static(
        b"{\"metadata\":{\"name\":\"a\"},\"data\":{}}",
    )];
    let meta = ListMeta {
        resource_version: "7".into(),
        next: "t".into(),
        remaining: Some(2),
    };
    let representation = Representation::Table {
        include: IncludeObject::Metadata,
    };
    let table = list(
        representation,
        &builtin("", "configmaps"),
        items,
        &meta,
        now(),
    );
    let table: Value = serde_json::from_slice(&table).unwrap();
    assert_eq!(
        table["metadata"],
        json!({"resourceVersion": "7", "continue": "t", "remainingItemCount": 2})
    );
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(table["rows"][0]["object"]["metadata"]["name"], "a");
    assert!(table["rows"][0]["object"].get("data").is_none());
    assert_eq!(table["columnDefinitions"][0]["format"], "name");
}

#[test]
fn only_the_first_table_of_a_watch_has_columns() {
    let representation = Representation::Table {
        include: IncludeObject::None,
    };
    let resource = builtin("", "configmaps");
    let frame = |first| {
        let bytes = object(
            representation,
            &resource,
            b"{\"metadata\":{\"name\":\"a\"}}",
            first,
            now(),
        );
        serde_json::from_slice::<Value>(&bytes).unwrap()
    };
    assert!(frame(true)["columnDefinitions"].is_array());
    assert!(frame(false)["columnDefinitions"].is_null());
    assert!(frame(false)["rows"][0]["object"].is_null());
}

#[test]
fn partial_metadata_keeps_only_metadata() {
    let object = object(
        Representation::Metadata,
        &builtin("", "secrets"),
        b"{\"kind\":\"Secret\",\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"c2VjcmV0\"}}",
        true,
        now(),
    );
    assert_eq!(
        serde_json::from_slice::<Value>(&object).unwrap(),
        json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": {"name": "a"}})
    );
}
