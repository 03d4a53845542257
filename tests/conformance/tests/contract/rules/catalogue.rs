//! SKUs: what is on offer (contract, sections 1.2, 2.6, 4.3).

use serde_json::json;

use crate::cases;
use crate::site::Site;
use crate::world::REGIONS;

cases!(One skus_are_offered_to_every_tenant, One catalogues_are_read_only);

/// Provider, kind, fields of the spec, and a SKU that must be there.
const SKUS: [(&str, &str, &[&str], &str); 3] = [
    (
        "storage",
        "storage-sku",
        &["iops", "minVolumeSize", "type"],
        "RD500",
    ),
    ("compute", "instance-sku", &["ram", "vCPU"], "DXS"),
    ("network", "network-sku", &["bandwidth", "packets"], "N10K"),
];

async fn skus_are_offered_to_every_tenant(site: Site) {
    for (api, kind, fields, sample) in SKUS {
        let list = format!("/providers/seca.{api}/v1/tenants/{}/skus", site.tenant);
        let page = site.world.get(&list).await.ok(200);
        let metadata = json!({
            "provider": format!("seca.{api}/v1"), "resource": "skus", "verb": "GET",
        });
        assert_eq!(page["metadata"], metadata);
        let items = page["items"].as_array().unwrap();
        assert!(items.len() >= 3, "{page:#}");
        for item in items {
            let name = item["metadata"]["name"].as_str().unwrap();
            let metadata = json!({
                "name": name,
                "apiVersion": "v1",
                "kind": kind,
                "provider": format!("seca.{api}/v1"),
                "resource": format!("skus/{name}"),
                "ref": site.sku(api, name),
                "verb": "GET",
                "tenant": site.tenant,
                "region": REGIONS[0],
            });
            assert_eq!(item["metadata"], metadata);
            let spec: Vec<_> = item["spec"].as_object().unwrap().keys().collect();
            assert_eq!(spec, fields);
            assert!(item.get("status").is_none());
            let read = site.world.get(&format!("{list}/{name}")).await.ok(200);
            assert_eq!(read, *item);
            let query = format!("labels=Tier%3D{name}");
            let found = site.world.all(&list, &query).await;
            assert!(found.contains(item), "{query}");
            assert!(found.len() < items.len(), "{query}");
        }
        assert!(
            items.iter().any(|i| i["metadata"]["name"] == sample),
            "{page:#}"
        );
        assert_eq!(site.world.all(&list, "limit=1").await, *items);
        site.world.get(&format!("{list}/none")).await.ok(404);
    }
    let compute = format!("/providers/seca.compute/v1/tenants/{}/skus", site.tenant);
    let found = site.world.all(&compute, "labels=Tier%3DD2XS").await;
    assert_eq!(found.len(), 1);
}

async fn catalogues_are_read_only(site: Site) {
    let skus = SKUS.map(|(api, _, _, name)| {
        format!(
            "/providers/seca.{api}/v1/tenants/{}/skus/{name}",
            site.tenant
        )
    });
    let region = format!("/providers/seca.region/v1/regions/{}", REGIONS[0]);
    for path in skus.iter().chain([&region]) {
        for method in ["PUT", "DELETE", "POST", "PATCH"] {
            let call = site.world.call(method, path).json(&json!({ "spec": {} }));
            let answer = call.send().await;
            let allow = answer.header("allow").unwrap();
            assert!(allow.contains("GET") && !allow.contains(method), "{allow}");
            answer.ok(405);
        }
        site.world.get(path).await.ok(200);
    }
}
