//! Several regions, each at its own URLs, and parts of the APIs.

use ecp_facade::{Apis, Config};
use serde_json::{Value, json};

use crate::world::{Answer, DISKS, SKUS, WORKSPACE, World, disk};

const REGIONS: &str = "/providers/seca.region/v1/regions";

/// The same path at the URL of the second region.
fn second(path: &str) -> String {
    format!("/regions/region-2{path}")
}

fn two_regions(config: &mut Config) {
    config.served.regions.push("region-2".into());
}

async fn world() -> World {
    let world = World::with(two_regions).await;
    world.region("region-2").await;
    world.region("a-region").await;
    world
        .eventually(REGIONS, |a| names(&a.json()).len() == 3)
        .await;
    world
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("items");
    items
        .iter()
        .filter_map(|i| i["metadata"]["name"].as_str())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn regions_come_own_first_with_the_urls_they_are_served_at() {
    let world = world().await;
    let list = world.get(REGIONS).await.ok(200);
    assert_eq!(names(&list), ["region-1", "a-region", "region-2"]);
    let url = |i: usize| list["items"][i]["spec"]["providers"][1]["url"].clone();
    assert_eq!(url(0), "http://facade.test/providers/seca.storage");
    assert_eq!(url(1), "http://set.later", "it is served elsewhere");
    assert_eq!(
        url(2),
        "http://facade.test/regions/region-2/providers/seca.storage"
    );
    let mut seen = Vec::new();
    let mut query = String::from("?limit=1");
    loop {
        let page = world.get(&format!("{REGIONS}{query}")).await.ok(200);
        seen.extend(names(&page).into_iter().map(str::to_owned));
        match page["metadata"]["skipToken"].as_str() {
            Some(token) => query = format!("?limit=1&skipToken={token}"),
            None => break,
        }
    }
    assert_eq!(seen, ["region-1", "a-region", "region-2"]);
    let known = world.get("/regions/region-2/.wellknown/secapi").await;
    let storage = json!({
        "provider": "seca.storage/v1",
        "url": "http://facade.test/regions/region-2/providers/seca.storage",
    });
    let known = known.ok(200);
    let endpoints = known["endpoints"].as_array().expect("endpoints");
    assert!(endpoints.contains(&storage), "{known}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_is_seen_in_its_region_only() {
    let world = world().await;
    let made = world.put(&second(WORKSPACE), json!({})).await.ok(201);
    assert_eq!(made["metadata"]["region"], "region-2");
    let disk_path = format!("{DISKS}/d");
    let made = world.put(&second(&disk_path), disk(1)).await.ok(201);
    assert_eq!(made["metadata"]["region"], "region-2");
    let workspaces = WORKSPACE.rsplit_once('/').expect("path").0;
    for (path, status) in [
        (second(WORKSPACE), 200),
        (second(&disk_path), 200),
        (WORKSPACE.to_owned(), 404),
        (disk_path.clone(), 404),
        (DISKS.to_owned(), 404),
    ] {
        let fresh = [("cache-control", "no-cache")];
        for headers in [&[][..], &fresh] {
            let answer = world.call(http::Method::GET, &path, headers, "").await;
            assert_eq!(answer.status, status, "{path}");
        }
    }
    assert_eq!(names(&world.get(workspaces).await.ok(200)).len(), 0);
    assert_eq!(
        names(&world.get(&second(workspaces)).await.ok(200)),
        ["prod"]
    );
    world.delete(&disk_path).await.problem(404);
    world.delete(WORKSPACE).await.problem(404);
    world.delete(&second(&disk_path)).await.ok(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_would_leave_their_region_are_refused() {
    let world = world().await;
    world.put(&second(WORKSPACE), json!({})).await.ok(201);
    let taken = world.put(WORKSPACE, json!({})).await;
    taken.problem(412);
    assert_eq!(
        taken.json()["detail"],
        "workspace \"prod\" exists already, in region \"region-2\""
    );
    let outside = world.put(&format!("{DISKS}/d"), disk(1)).await;
    outside.problem(412);
    assert_eq!(
        outside.json()["detail"],
        "workspace \"prod\" is in region \"region-2\", and this is the URL of \"region-1\""
    );
    let mut body = disk(1);
    body["metadata"] = json!({"region": "region-1"});
    let other = world.put(&second(&format!("{DISKS}/d")), body).await;
    assert_eq!(other.problem(412), ["/metadata/region"]);
    let detail = other.json()["detail"].as_str().expect("text").to_owned();
    assert!(
        detail.contains("http://facade.test/providers/seca.storage"),
        "{detail}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_one_name_in_two_regions_at_once_one_is_made() {
    let world = world().await;
    for round in 0..8 {
        let first = WORKSPACE.replace("/prod", &format!("/w-{round}"));
        let second = second(&first);
        let made = futures::join!(world.put(&first, json!({})), world.put(&second, json!({})));
        let seen = (world.get(&first).await, world.get(&second).await);
        let codes = |(a, b): &(Answer, Answer)| (a.status.as_u16(), b.status.as_u16());
        let outcome = (codes(&made), codes(&seen));
        let one = [((201, 412), (200, 404)), ((412, 201), (404, 200))];
        assert!(one.contains(&outcome), "{outcome:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sku_is_offered_in_its_region_or_in_all() {
    let world = world().await;
    world.sku("rd500-in-2", "RD500", "region-2", 900).await;
    let only_there = "only-in-2";
    world.sku(only_there, "only", "region-2", 1).await;
    let there = world
        .eventually(&second(SKUS), |a| names(&a.json()).contains(&"only"))
        .await
        .json();
    assert_eq!(names(&there), ["RD100", "RD500", "only"]);
    let iops = |sku: &Value| sku["spec"]["iops"].clone();
    assert_eq!(iops(&there["items"][1]), 900);
    let here = world.get(SKUS).await.ok(200);
    assert_eq!(names(&here), ["RD100", "RD500"]);
    assert_eq!(here["items"][1]["metadata"]["region"], "region-1");
    let get = async |path: String| world.get(&path).await;
    assert_eq!(iops(&get(format!("{SKUS}/RD500")).await.ok(200)), 500);
    assert_eq!(
        iops(&get(second(&format!("{SKUS}/RD500"))).await.ok(200)),
        900
    );
    get(format!("{SKUS}/only")).await.problem(404);
    // A name is a name, whatever the cache's keys look like.
    let odd = format!("{SKUS}/only%0Aregion-2");
    get(second(&odd)).await.problem(404);
    world.put(WORKSPACE, json!({})).await.ok(201);
    let mut body = disk(1);
    body["spec"]["skuRef"] = json!({"resource": "skus/only"});
    let refused = world.put(&format!("{DISKS}/d"), body).await;
    assert_eq!(refused.problem(412), ["/spec/skuRef/resource"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_served_is_said() {
    let world = World::with(|config| config.served.apis = Apis::Regional).await;
    let answer = world.get(REGIONS).await;
    answer.problem(404);
    assert_eq!(
        answer.json()["detail"],
        "seca.region is not served here; \
         this server has the regional APIs only, for the regions: region-1"
    );
    world.get(SKUS).await.ok(200);
    let world = World::with(|config| config.served.apis = Apis::Global).await;
    world.get(SKUS).await.problem(404);
    let list = world.get(REGIONS).await.ok(200);
    assert_eq!(
        list["items"][0]["spec"]["providers"][1]["url"],
        "http://set.later"
    );
}
