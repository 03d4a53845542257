//! The main job over REST.

use serde_json::json;

use ecp_harness::{Ecp, states, volume, volume_spec, workspace};

#[tokio::test]
async fn a_volume_lives_from_put_to_delete_and_leaves_nothing_behind() {
    let ecp = Ecp::start(&[]).await;
    assert_eq!(ecp.put(&workspace("prod"), json!({})).await.status, 201);
    ecp.until_active(&workspace("prod")).await;

    let disk = volume("prod", "disk-1");
    let body = json!({
        "labels": { "env": "prod", "Any Text!": "ä" },
        "annotations": { "note": "x" },
        "extensions": { "any": { "thing": [1, 2.5, null] } },
        "spec": volume_spec(10),
    });
    let created = ecp.call("PUT", &disk, Some(&body)).await;
    assert_eq!(created.status, 201, "{created:#?}");
    let document = ecp.until_active(&disk).await;
    assert_eq!(states(&document), ["active", "creating", "pending"]);
    assert_eq!(document["status"]["sizeGB"], 10);
    for field in ["labels", "annotations", "extensions"] {
        assert_eq!(document[field], body[field]);
    }
    assert_eq!(document["spec"], body["spec"]);
    let metadata = &document["metadata"];
    assert_eq!(metadata["kind"], "block-storage");
    assert_eq!(metadata["provider"], "seca.storage/v1");
    assert_eq!(metadata["tenant"], "acme");
    assert_eq!(metadata["workspace"], "prod");
    assert_eq!(metadata["resource"], "block-storages/disk-1");
    assert_eq!(metadata["resourceVersion"], 1);

    let mut bigger = body.clone();
    bigger["spec"]["sizeGB"] = json!(20);
    let updated = ecp.call("PUT", &disk, Some(&bigger)).await;
    assert_eq!(updated.status, 200, "{updated:#?}");
    let document = ecp.until_active(&disk).await;
    assert_eq!(
        states(&document),
        ["active", "updating", "active", "creating", "pending"]
    );
    assert_eq!(document["status"]["sizeGB"], 20);
    assert_eq!(document["metadata"]["resourceVersion"], 2);

    for (spec, field) in [
        (volume_spec(5), "sizeGB"),
        (
            json!({ "sizeGB": 20, "skuRef": { "resource": "skus/NONE" } }),
            "skuRef",
        ),
    ] {
        let refused = ecp.put(&disk, spec).await;
        assert_eq!(refused.status, 412, "{refused:#?}");
        let named = refused.body.to_string();
        assert!(named.contains(field), "{named}");
    }
    let stale = ecp
        .request("PUT", &disk)
        .bearer_auth(&ecp.token)
        .json(&bigger);
    assert_eq!(
        Ecp::send(stale.header("if-unmodified-since", "1"))
            .await
            .status,
        412
    );
    assert_eq!(ecp.get(&disk).await.body["metadata"]["resourceVersion"], 2);

    assert_eq!(ecp.delete(&disk).await.status, 202);
    ecp.until_gone(&disk).await;
    assert_eq!(ecp.delete(&workspace("prod")).await.status, 202);
    ecp.until_gone(&workspace("prod")).await;
    assert_eq!(ecp.managed().await, Vec::<String>::new());
    let namespaces = ecp
        .raw("/api/v1/namespaces?labelSelector=secapi.cloud/workspace")
        .await;
    assert_eq!(namespaces["items"], json!([]));
}

#[tokio::test]
async fn two_workspaces_have_two_volumes_of_one_name() {
    let ecp = Ecp::start(&["--ephemeral"]).await;
    for ws in ["a", "b"] {
        assert_eq!(ecp.put(&workspace(ws), json!({})).await.status, 201);
        ecp.until_active(&workspace(ws)).await;
        assert_eq!(
            ecp.put(&volume(ws, "data"), volume_spec(10)).await.status,
            201
        );
        ecp.until_active(&volume(ws, "data")).await;
    }
    let volumes = ecp.items("dummy.m.secapi.cloud/v1alpha1", "volumes").await;
    let mut ids: Vec<_> = volumes
        .iter()
        .map(|v| v["status"]["atProvider"]["id"].clone())
        .collect();
    ids.dedup();
    assert_eq!(ids.len(), 2);
    assert_eq!(ecp.delete(&volume("a", "data")).await.status, 202);
    ecp.until_gone(&volume("a", "data")).await;
    ecp.until_active(&volume("b", "data")).await;
    let (group, plural) = ("dummy.m.secapi.cloud/v1alpha1", "volumes");
    if !ecp.is_embedded() {
        // Kubernetes's garbage collector looks for new kinds every 30 s; a foreground deletion does
        // not wait for dependents of kinds that it does not know yet.
        ecp.until_items(group, plural, 1).await;
    }
    assert_eq!(ecp.items(group, plural).await.len(), 1);
}

#[tokio::test]
async fn lists_filter_and_page() {
    let ecp = Ecp::start(&["--ephemeral"]).await;
    ecp.put(&workspace("prod"), json!({})).await;
    ecp.until_active(&workspace("prod")).await;
    for i in 0..5 {
        let env = if i % 2 == 0 { "even" } else { "odd" };
        let body = json!({ "labels": { "env": env, "n": i.to_string() }, "spec": volume_spec(10) });
        let path = volume("prod", &format!("disk-{i}"));
        assert_eq!(ecp.call("PUT", &path, Some(&body)).await.status, 201);
    }
    let list = "seca.storage/v1/tenants/acme/workspaces/prod/block-storages";
    for (query, count) in [
        ("", 5),
        ("?labels=env%3Deven", 3),
        ("?labels=env!%3Deven", 2),
        ("?labels=n%3E2", 2),
        ("?labels=e*%3Do*", 2),
        ("?labels=env%3Dnone", 0),
    ] {
        let found = ecp.get(&format!("{list}{query}")).await;
        assert_eq!(
            found.body["items"].as_array().unwrap().len(),
            count,
            "{query} {found:#?}"
        );
    }
    let (mut names, mut token) = (Vec::new(), String::new());
    loop {
        let page = ecp
            .get(&format!("{list}?limit=2&labels=env%3Deven{token}"))
            .await
            .body;
        let items = page["items"].as_array().unwrap();
        assert!(!items.is_empty());
        names.extend(
            items
                .iter()
                .map(|i| i["metadata"]["name"].as_str().unwrap().to_owned()),
        );
        match page["metadata"]["skipToken"].as_str() {
            Some(skip) => token = format!("&skipToken={skip}"),
            None => break,
        }
    }
    assert_eq!(names, ["disk-0", "disk-2", "disk-4"]);
    let skus = ecp.get("seca.storage/v1/tenants/acme/skus").await.body;
    assert!(skus["items"].as_array().unwrap().len() >= 3, "{skus:#}");
    let region = ecp.get("seca.region/v1/regions/region-1").await.body;
    assert_eq!(region["metadata"]["kind"], "region");
    assert_eq!(region["metadata"]["verb"], "GET");
}

#[tokio::test]
async fn an_image_is_made_from_a_volume() {
    let ecp = Ecp::start(&["--ephemeral"]).await;
    ecp.put(&workspace("prod"), json!({})).await;
    ecp.until_active(&workspace("prod")).await;
    ecp.put(&volume("prod", "disk-1"), volume_spec(10)).await;
    let image = "seca.storage/v1/tenants/acme/images/golden";
    let spec = json!({
        "blockStorageRef": {
            "resource": "seca.storage/v1/tenants/acme/workspaces/prod/block-storages/disk-1",
        },
        "cpuArchitecture": "amd64",
    });
    let created = ecp.put(image, spec.clone()).await;
    assert_eq!(created.status, 201, "{created:#?}");
    let document = ecp.until_active(image).await;
    assert_eq!(document["spec"]["blockStorageRef"], spec["blockStorageRef"]);
    assert!(document["status"]["sizeMB"].as_i64().unwrap() >= 1);
    let clone = json!({
        "sizeGB": 10,
        "skuRef": { "resource": "skus/RD500" },
        "sourceImageRef": { "resource": "images/golden" },
    });
    assert_eq!(ecp.put(&volume("prod", "disk-2"), clone).await.status, 201);
    ecp.until_active(&volume("prod", "disk-2")).await;
}
