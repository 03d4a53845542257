//! Regions: discovery, and resources that are in one (contract, sections 1.1, 3.2, 4.3).

use serde_json::{Value, json};

use crate::kinds::*;
use crate::site::Site;
use crate::world::{REGIONS, Refusal};
use crate::{bodies, cases};

cases!(
    One every_region_says_where_its_apis_are,
    One regions_are_listed_in_pages_and_filtered,
    Two unknown_regions_are_refused,
    One a_resource_is_seen_in_its_region_only,
);

const APIS: [&str; 4] = [
    "seca.workspace",
    "seca.storage",
    "seca.compute",
    "seca.network",
];

/// The base URL of an API, as a region tells it.
async fn base(site: &Site, region: &str, api: &str) -> String {
    let path = format!("/providers/seca.region/v1/regions/{region}");
    let region = site.world.get(&path).await.ok(200);
    let providers = region["spec"]["providers"].as_array().unwrap();
    let provider = providers.iter().find(|p| p["name"] == api).unwrap();
    assert_eq!(provider["version"], "v1");
    let url = provider["url"].as_str().unwrap();
    // Clients append `v1/...`, whether it ends in a slash or not.
    assert!(!url.trim_end_matches('/').ends_with("/v1"), "{url}");
    let path = url.strip_prefix(&site.world.ecp.rest).unwrap();
    path.trim_end_matches('/').to_owned()
}

async fn every_region_says_where_its_apis_are(site: Site) {
    let list = site
        .world
        .get("/providers/seca.region/v1/regions")
        .await
        .ok(200);
    let metadata = json!({ "provider": "seca.region/v1", "resource": "regions", "verb": "GET" });
    assert_eq!(list["metadata"], metadata);
    let items = list["items"].as_array().unwrap();
    let names: Vec<_> = items
        .iter()
        .map(|i| i["metadata"]["name"].clone())
        .collect();
    // Clients take the first one for the region they were given.
    assert_eq!(names, REGIONS);
    for (item, name) in items.iter().zip(REGIONS) {
        let metadata = &item["metadata"];
        for (field, value) in [
            ("apiVersion", "v1".to_owned()),
            ("kind", "region".into()),
            ("provider", "seca.region/v1".into()),
            ("resource", format!("regions/{name}")),
            ("ref", format!("seca.region/v1/regions/{name}")),
            ("verb", "GET".into()),
        ] {
            assert_eq!(metadata[field], value);
        }
        let zones = item["spec"]["availableZones"].as_array().unwrap();
        assert!(
            zones.contains(&json!("zone-a")) && zones.contains(&json!("zone-b")),
            "{item:#}"
        );
        let own = format!("/providers/seca.region/v1/regions/{name}");
        assert_eq!(site.world.get(&own).await.ok(200)["spec"], item["spec"]);
        for api in APIS {
            let path = match api {
                "seca.workspace" => format!("v1/tenants/{}/workspaces", site.tenant),
                _ => format!("v1/tenants/{}/skus", site.tenant),
            };
            let url = format!("{}/{path}", base(&site, name, api).await);
            site.world.get(&url).await.ok(200);
        }
    }
    site.world
        .get("/providers/seca.region/v1/regions/none")
        .await
        .ok(404);
}

async fn regions_are_listed_in_pages_and_filtered(site: Site) {
    let list = "/providers/seca.region/v1/regions";
    assert_eq!(site.world.all(list, "limit=1").await.len(), REGIONS.len());
    let found = site.world.all(list, "labels=non-existent%3Dlabel").await;
    assert_eq!(found, [json!(null); 0]);
}

async fn unknown_regions_are_refused(site: Site) {
    for kind in KINDS.iter().filter(|k| k.regional()) {
        site.prepare(kind).await;
        let spec = bodies::minimal(&site, kind);
        let body = json!({ "metadata": { "region": "region-x" }, "spec": spec });
        let answer = site.put_body(kind, "x", &body).await;
        let code = site.world.code(Refusal::Reference);
        assert_eq!(answer.status, code, "{answer:#?}");
        assert_eq!(answer.sources(), ["/metadata/region"]);
        site.get(kind, "x").await.ok(404);
    }
    // What is everywhere has no region.
    for kind in KINDS.iter().filter(|k| !k.regional()) {
        site.prepare(kind).await;
        let spec = bodies::minimal(&site, kind);
        let body = json!({ "metadata": { "region": REGIONS[1] }, "spec": spec });
        let made = site.put_body(kind, "x", &body).await.ok(201);
        assert!(made["metadata"].get("region").is_none(), "{made:#}");
    }
}

async fn a_resource_is_seen_in_its_region_only(site: Site) {
    let bases = [
        base(&site, REGIONS[0], "seca.storage").await,
        base(&site, REGIONS[1], "seca.storage").await,
    ];
    let workspaces = [
        base(&site, REGIONS[0], "seca.workspace").await,
        base(&site, REGIONS[1], "seca.workspace").await,
    ];
    for (n, region) in REGIONS.into_iter().enumerate() {
        let workspace = format!(
            "{}/v1/tenants/{}/workspaces/ws-{n}",
            workspaces[n], site.tenant
        );
        let made = site
            .world
            .put(&workspace, &json!({ "spec": {} }))
            .await
            .ok(201);
        assert_eq!(made["metadata"]["region"], region);
        assert_eq!(made["status"]["state"], "active", "{made:#}");
        let disk = format!(
            "v1/tenants/{}/workspaces/ws-{n}/block-storages/disk",
            site.tenant
        );
        let spec = json!({ "sizeGB": 1, "skuRef": { "resource": "RD500" } });
        let path = format!("{}/{disk}", bases[n]);
        let made = site
            .world
            .put(&path, &json!({ "spec": spec }))
            .await
            .ok(201);
        assert_eq!(made["metadata"]["region"], region);
        site.world
            .get(&format!("{}/{disk}", bases[1 - n]))
            .await
            .ok(404);
        let list = format!("{}/v1/tenants/{}/workspaces", workspaces[n], site.tenant);
        let items = site.world.all(&list, "").await;
        let names: Vec<&Value> = items.iter().map(|i| &i["metadata"]["name"]).collect();
        assert_eq!(names, [&json!(format!("ws-{n}"))]);
    }
}
