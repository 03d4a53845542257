//! A cloud that is slow, fails or drifts: the truth is told everywhere, and it heals by itself.

use serde_json::{Value, json};

use ecp_harness::{Answer, Ecp, states, volume, volume_spec, workspace};

const CONFIG: &str = "/apis/dummy.m.secapi.cloud/v1alpha1/clusterproviderconfigs/default";

async fn cloud(ecp: &Ecp, spec: Value) {
    ecp.merge(CONFIG, &json!({ "spec": spec })).await;
}

async fn prod(ecp: &Ecp) {
    ecp.put(&workspace("prod"), json!({})).await;
    ecp.until_active(&workspace("prod")).await;
}

async fn xr(ecp: &Ecp, name: &str) -> Value {
    let all = ecp
        .items("storage.v1.secapi.cloud/v1", "block-storages")
        .await;
    all.into_iter()
        .find(|x| x["metadata"]["name"] == name)
        .unwrap()
}

#[tokio::test]
async fn a_slow_cloud_shows_creating_until_it_is_done() {
    let ecp = Ecp::start(&["--ephemeral"]).await;
    prod(&ecp).await;
    cloud(&ecp, json!({ "createDelay": "3s" })).await;
    let disk = volume("prod", "disk-1");
    let request = ecp.request("PUT", &disk).bearer_auth(&ecp.token);
    let request = request.json(&json!({ "spec": volume_spec(10) }));
    let created = Ecp::send(request.header("prefer", "respond-async")).await;
    assert_eq!(created.status, 201);
    let state = created.body["status"]["state"].as_str().unwrap().to_owned();
    assert!(
        ["pending", "creating"].contains(&state.as_str()),
        "{created:#?}"
    );
    ecp.until(&disk, "creating", |a| {
        a.body["status"]["state"] == "creating"
    })
    .await;
    let object = xr(&ecp, "disk-1").await;
    assert_eq!(ecp_condition(&object, "Ready"), Some("False"));
    let document = ecp.until_active(&disk).await;
    assert_eq!(states(&document), ["active", "creating", "pending"]);
    assert_eq!(
        ecp_condition(&xr(&ecp, "disk-1").await, "Ready"),
        Some("True")
    );
}

fn ecp_condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|c| c["type"] == kind)?["status"].as_str()
}

#[tokio::test]
async fn a_failing_cloud_is_quoted_and_heals() {
    let ecp = Ecp::start(&["--ephemeral"]).await;
    prod(&ecp).await;
    let words = "the quota for volumes is used up";
    cloud(
        &ecp,
        json!({ "failure": { "operations": ["create"], "message": words } }),
    )
    .await;
    let disk = volume("prod", "disk-1");
    let request = ecp.request("PUT", &disk).bearer_auth(&ecp.token);
    let request = request.json(&json!({ "spec": volume_spec(10) }));
    assert_eq!(
        Ecp::send(request.header("prefer", "wait=0")).await.status,
        201
    );
    let told = |a: &Answer| a.body["status"].to_string().contains(words);
    let document = ecp.until(&disk, "quoting the cloud", told).await.body;
    assert_ne!(document["status"]["state"], "active");
    assert!(
        xr(&ecp, "disk-1").await["status"]
            .to_string()
            .contains(words)
    );
    // Events are gathered for a moment before they are written.
    ecp.until_event(words).await;

    cloud(&ecp, json!({ "failure": null })).await;
    let document = ecp.until_active(&disk).await;
    assert_eq!(states(&document), ["active", "creating", "pending"]);
    assert_eq!(
        ecp.items("dummy.m.secapi.cloud/v1alpha1", "volumes")
            .await
            .len(),
        1
    );
}

#[tokio::test]
async fn what_is_being_deleted_is_listed_when_asked_for() {
    let ecp = Ecp::start(&["--ephemeral"]).await;
    prod(&ecp).await;
    for name in ["dying", "live"] {
        ecp.put(&volume("prod", name), volume_spec(10)).await;
        ecp.until_active(&volume("prod", name)).await;
    }
    let failure = |value: Value| cloud(&ecp, json!({ "failure": value }));
    failure(json!({ "operations": ["delete"], "message": "not now" })).await;
    let asynchronous = |path: &str| {
        let request = ecp.request("DELETE", path).bearer_auth(&ecp.token);
        Ecp::send(request.header("prefer", "respond-async"))
    };
    let lists = async |path: &str| {
        let mut found = Vec::new();
        for accept in ["", "; deleted=true", "; deleted=only"] {
            let request = ecp.request("GET", path).bearer_auth(&ecp.token);
            let accept = format!("application/json{accept}");
            let list = Ecp::send(request.header("accept", accept)).await.body;
            let items = list["items"].as_array().unwrap().iter();
            let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
            found.push(items.map(name).collect::<Vec<_>>());
        }
        found
    };
    let disks = volume("prod", "");
    let disks = disks.trim_end_matches('/');
    let dying = volume("prod", "dying");
    assert_eq!(asynchronous(&dying).await.status, 202);
    assert_eq!(
        lists(disks).await,
        [vec!["live"], vec!["dying", "live"], vec!["dying"]]
    );
    let document = ecp.get(&dying).await.body;
    assert_eq!(document["status"]["state"], "deleting", "{document:#}");
    assert!(
        document["metadata"]["deletedAt"].is_string(),
        "{document:#}"
    );

    // What is in a workspace goes with it, and is shown so at once.
    assert_eq!(asynchronous(&workspace("prod")).await.status, 202);
    let all = || vec!["dying", "live"];
    assert_eq!(lists(disks).await, [vec![], all(), all()]);
    let prod = || vec!["prod"];
    assert_eq!(lists(ecp_harness::ACME).await, [vec![], prod(), prod()]);

    failure(Value::Null).await;
    ecp.until_gone(&workspace("prod")).await;
    let gone: [Vec<String>; 3] = Default::default();
    assert_eq!(lists(ecp_harness::ACME).await, gone);
}

#[tokio::test]
async fn a_refused_deletion_is_quoted_and_ends_when_the_cloud_lets_it() {
    let ecp = Ecp::start(&["--ephemeral"]).await;
    prod(&ecp).await;
    let disk = volume("prod", "disk-1");
    ecp.put(&disk, volume_spec(10)).await;
    ecp.until_active(&disk).await;
    let words = "the volume is locked";
    cloud(
        &ecp,
        json!({ "failure": { "operations": ["delete"], "message": words } }),
    )
    .await;
    assert_eq!(ecp.delete(&disk).await.status, 202);
    let told = |a: &Answer| {
        let newest = &a.body["status"]["conditions"][0];
        newest["state"] == "deleting" && newest["message"].to_string().contains(words)
    };
    ecp.until(&disk, "quoting the cloud", told).await;
    let xr = xr(&ecp, "disk-1").await;
    let conditions = xr["status"]["conditions"].to_string();
    assert!(conditions.contains(words), "{conditions}");
    ecp.until_event("DeleteCompositeResource").await;

    cloud(&ecp, json!({ "failure": null })).await;
    ecp.until_gone(&disk).await;
    assert!(
        ecp.items("dummy.m.secapi.cloud/v1alpha1", "volumes")
            .await
            .is_empty()
    );
}

#[tokio::test]
async fn drift_is_repaired_and_never_counts_as_a_change_of_the_user() {
    let ecp = Ecp::start(&["--ephemeral"]).await;
    prod(&ecp).await;
    let disk = volume("prod", "disk-1");
    ecp.put(&disk, volume_spec(10)).await;
    ecp.until_active(&disk).await;
    let volumes = ecp.items("dummy.m.secapi.cloud/v1alpha1", "volumes").await;
    let metadata = &volumes[0]["metadata"];
    let managed = format!(
        "/apis/dummy.m.secapi.cloud/v1alpha1/namespaces/{}/volumes/{}",
        metadata["namespace"].as_str().unwrap(),
        metadata["name"].as_str().unwrap()
    );
    cloud(
        &ecp,
        json!({ "drift": { "interval": "200ms", "deltaGB": -1 } }),
    )
    .await;
    // The provider looks once a minute by itself, and sooner where it is told to.
    let often = json!({ "metadata": { "annotations": { "crossplane.io/poll-interval": "1s" } } });
    ecp.merge(&managed, &often).await;
    ecp.until_event("UpdatedExternalResource").await;
    cloud(&ecp, json!({ "drift": null })).await;
    let whole =
        |a: &Answer| a.body["status"]["state"] == "active" && a.body["status"]["sizeGB"] == 10;
    let document = ecp.until(&disk, "10 GB again", whole).await.body;
    assert_eq!(states(&document), ["active", "creating", "pending"]);
    assert_eq!(document["metadata"]["resourceVersion"], 1);
}

#[tokio::test]
async fn a_slow_update_shows_updating_and_the_old_size_until_it_is_done() {
    let ecp = Ecp::start(&["--ephemeral"]).await;
    prod(&ecp).await;
    let disk = volume("prod", "disk-1");
    ecp.put(&disk, volume_spec(10)).await;
    ecp.until_active(&disk).await;
    cloud(&ecp, json!({ "updateDelay": "2s" })).await;
    let request = ecp.request("PUT", &disk).bearer_auth(&ecp.token);
    let request = request
        .json(&json!({ "spec": volume_spec(30) }))
        .header("prefer", "wait=0");
    assert_eq!(Ecp::send(request).await.status, 200);
    let document = ecp.get(&disk).await.body;
    assert_eq!(document["status"]["state"], "updating", "{document:#}");
    assert_eq!(document["status"]["sizeGB"], 10);
    assert_eq!(document["spec"]["sizeGB"], 30);
    assert_eq!(states(&document)[..2], ["updating", "active"]);
    let document = ecp.until_active(&disk).await;
    assert_eq!(document["status"]["sizeGB"], 30);
    assert_eq!(
        states(&document),
        ["active", "updating", "active", "creating", "pending"]
    );
}
