//! Discovery, OpenAPI and tables.

use serde_json::{Value, json};

use crate::support::{Api, CRDS, disk_crd};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

async fn with_disks() -> Api {
    let api = Api::start().await;
    api.create(CRDS, disk_crd()).await;
    api
}

fn groups(list: &Value) -> Vec<&str> {
    list["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|g| g["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_new_kind_is_discovered_at_once_and_gone_with_its_definition() {
    let api = with_disks().await;
    assert!(groups(&api.get("/apis").await.body).contains(&"ex.test"));
    let list = api.get("/apis/ex.test/v1").await.body;
    assert_eq!(list["resources"][0]["shortNames"], json!(["dk"]));
    assert_eq!(list["resources"][1]["name"], "disks/status");
    api.delete(&format!("{CRDS}/disks.ex.test"), "Background")
        .await;
    api.until_gone("/apis/ex.test/v1").await;
    assert!(!groups(&api.get("/apis").await.body).contains(&"ex.test"));
}

#[tokio::test]
async fn aggregated_discovery_echoes_its_type_and_spares_the_second_transfer() {
    let api = with_disks().await;
    let first = api
        .get_as("/apis", &format!("{AGGREGATED},application/json"))
        .await;
    assert_eq!(first.headers["content-type"], AGGREGATED);
    let items = first.body["items"].as_array().unwrap();
    let disks = items
        .iter()
        .find(|item| item["metadata"]["name"] == "ex.test")
        .unwrap();
    assert_eq!(
        disks["versions"][0]["resources"][0]["subresources"][0]["subresource"],
        "status"
    );
    let tag = first.headers["etag"].to_str().unwrap().to_owned();
    let headers = [("accept", AGGREGATED), ("if-none-match", tag.as_str())];
    assert_eq!(
        api.call("GET", "/apis", &headers, Value::Null).await.code,
        304
    );
    let core = api.get_as("/api", AGGREGATED).await;
    assert_eq!(core.body["items"][0]["metadata"]["name"], "");
}

#[tokio::test]
async fn what_discovery_cannot_make_falls_back_or_is_not_acceptable() {
    let api = Api::start().await;
    let newer = AGGREGATED.replace("v=v2", "v=v3");
    let plain = api
        .get_as("/apis", &format!("{newer},application/json"))
        .await;
    assert_eq!(plain.body["kind"], "APIGroupList");
    assert_eq!(api.get_as("/apis", &newer).await.code, 406);
    assert_eq!(api.get("/apis/none.test").await.code, 404);
    assert_eq!(api.get("/apis/none.test/v1").await.code, 404);
}

#[tokio::test]
async fn kinds_of_one_cluster_are_not_discovered_in_another() {
    let api = Api::start().await;
    let team = api.cluster("root:team-a");
    team.create(CRDS, disk_crd()).await;
    assert!(groups(&team.get("/apis").await.body).contains(&"ex.test"));
    assert!(!groups(&api.get("/apis").await.body).contains(&"ex.test"));
    let index = team.get("/openapi/v3").await.body;
    let link = index["paths"]["apis/ex.test/v1"]["serverRelativeURL"]
        .as_str()
        .unwrap();
    assert!(
        link.starts_with("/clusters/root:team-a/openapi/v3/apis/ex.test/v1?hash="),
        "{link}"
    );
    assert_eq!(api.get(link).await.code, 200);
    assert!(
        api.get("/openapi/v3").await.body["paths"]
            .get("apis/ex.test/v1")
            .is_none()
    );
}

#[tokio::test]
async fn documents_are_immutable_under_their_hash() {
    let api = with_disks().await;
    let index = api.get("/openapi/v3").await.body;
    let link = index["paths"]["apis/ex.test/v1"]["serverRelativeURL"]
        .as_str()
        .unwrap();
    let document = api.get(link).await;
    assert!(
        document.headers["cache-control"]
            .to_str()
            .unwrap()
            .contains("immutable")
    );
    let schema = &document.body["components"]["schemas"]["test.ex.v1.Disk"];
    assert_eq!(
        schema["properties"]["spec"]["properties"]["sizeGB"]["description"],
        "Size in GB."
    );
    let stale = api.get("/openapi/v3/apis/ex.test/v1?hash=OLD").await;
    assert_eq!(
        (stale.code, stale.headers["location"].to_str().unwrap()),
        (301, link)
    );
    assert_eq!(api.get("/openapi/v3/apis/none.test/v1").await.code, 404);

    // A changed definition has another hash.
    let change = json!({"spec": {"versions": [disk_crd()["spec"]["versions"][0].clone()]}});
    let mut change = change;
    change["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "Changed.".into();
    let patched = api.merge(&format!("{CRDS}/disks.ex.test"), change).await;
    assert_eq!(patched.code, 200, "{:#}", patched.body);
    let index = api.get("/openapi/v3").await.body;
    assert_ne!(index["paths"]["apis/ex.test/v1"]["serverRelativeURL"], link);
}

#[tokio::test]
async fn equal_definitions_of_two_clusters_share_a_document() {
    let api = with_disks().await;
    let team = api.cluster("root:team-a");
    team.create(CRDS, disk_crd()).await;
    let hash = async |api: &Api| {
        let index = api.get("/openapi/v3").await.body;
        let link = index["paths"]["apis/ex.test/v1"]["serverRelativeURL"]
            .as_str()
            .unwrap();
        link.split_once("?hash=").unwrap().1.to_owned()
    };
    assert_eq!(hash(&api).await, hash(&team).await);
}

#[tokio::test]
async fn tables_have_the_columns_of_the_definition() {
    let api = with_disks().await;
    let disks = "/apis/ex.test/v1/namespaces/default/disks";
    let disk = json!({"apiVersion": "ex.test/v1", "kind": "Disk", "metadata": {"name": "d"},
        "spec": {"sizeGB": 5}});
    api.create(disks, disk).await;
    let status = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    assert_eq!(
        api.merge(&format!("{disks}/d/status"), status).await.code,
        200
    );
    for path in [disks.to_owned(), format!("{disks}/d")] {
        let table = api.get_as(&path, TABLE).await.body;
        assert_eq!(table["kind"], "Table", "{path}");
        let names = table["columnDefinitions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| &c["name"]);
        assert_eq!(names.collect::<Vec<_>>(), ["Name", "Size", "Ready", "Age"]);
        let cells = table["rows"][0]["cells"].as_array().unwrap();
        assert_eq!(cells[..3], [json!("d"), json!(5), json!("True")]);
        assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    }
    let whole = api
        .get_as(&format!("{disks}?includeObject=Object"), TABLE)
        .await
        .body;
    assert_eq!(whole["rows"][0]["object"]["kind"], "Disk");
    let partial = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let list = api.get_as(disks, partial).await.body;
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert!(list["items"][0].get("spec").is_none());
}

#[tokio::test]
async fn a_watched_table_begins_with_its_columns() {
    let api = with_disks().await;
    let disks = "/apis/ex.test/v1/namespaces/default/disks";
    for name in ["a", "b"] {
        let disk = json!({"apiVersion": "ex.test/v1", "kind": "Disk", "metadata": {"name": name}});
        api.create(disks, disk).await;
    }
    let watch = api
        .get_as(&format!("{disks}?watch=true&timeoutSeconds=1"), TABLE)
        .await;
    let text = watch.body.as_str().unwrap();
    let events: Vec<Value> = text
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(events.len(), 2);
    assert!(events[0]["object"]["columnDefinitions"].is_array());
    assert!(events[1]["object"]["columnDefinitions"].is_null());
    assert_eq!(events[1]["object"]["rows"][0]["cells"][0], "b");
}

#[tokio::test]
async fn kube_discovers_the_same_kinds_in_both_ways() {
    let api = with_disks().await;
    let client = kube::Client::new(
        api.server.service(ecp_apiserver::Identity::admin()),
        "default",
    );
    let plain = kube::Discovery::new(client.clone()).run().await.unwrap();
    let aggregated = kube::Discovery::new(client).run_aggregated().await.unwrap();
    let kinds = |found: &kube::Discovery| {
        let mut kinds: Vec<String> = found
            .groups()
            .flat_map(|group| group.recommended_resources())
            .map(|(resource, _)| format!("{}/{}", resource.api_version, resource.kind))
            .collect();
        kinds.sort();
        kinds
    };
    assert_eq!(kinds(&plain), kinds(&aggregated));
    assert!(kinds(&plain).contains(&"ex.test/v1/Disk".to_owned()));
}
