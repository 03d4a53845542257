//! Lists: selection, paging, deletion modes.

use http::Method;
use serde_json::{Value, json};

use crate::world::{DISKS, IMAGES, SKUS, WORKSPACE, World, disk};

const WORKSPACES: &str = "/providers/seca.workspace/v1/tenants/acme/workspaces";

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("items");
    items
        .iter()
        .filter_map(|i| i["metadata"]["name"].as_str())
        .collect()
}

async fn disks(world: &World, all: &[(&str, Value)]) {
    for (name, labels) in all {
        let mut body = disk(1);
        body["labels"] = labels.clone();
        world.put(&format!("{DISKS}/{name}"), body).await.ok(201);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn catalogues_are_listed_for_every_tenant() {
    let world = World::new().await;
    let list = world.get(SKUS).await.ok(200);
    assert_eq!(names(&list), ["RD100", "RD500"]);
    assert_eq!(
        list["metadata"],
        json!({"provider": "seca.storage/v1", "resource": "skus", "verb": "GET"})
    );
    let other = "/providers/seca.storage/v1/tenants/other/skus/RD500";
    let sku = world.get(other).await.ok(200);
    assert_eq!(
        sku["metadata"]["ref"],
        "seca.storage/v1/tenants/other/skus/RD500"
    );
    assert_eq!(
        names(&world.get(&format!("{SKUS}?labels=Tier=D2XS")).await.ok(200)),
        ["RD100"]
    );
    let regions = world.get("/providers/seca.region/v1/regions").await.ok(200);
    assert_eq!(names(&regions), ["region-1"]);
    assert_eq!(
        regions["items"][0]["spec"]["providers"][1]["url"],
        "http://facade.test/providers/seca.storage"
    );
    for method in [Method::PUT, Method::DELETE, Method::POST] {
        let answer = world
            .call(method, &format!("{SKUS}/RD500"), &[], "{}")
            .await;
        answer.problem(405);
        assert_eq!(answer.headers["allow"], "GET, HEAD, OPTIONS");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_select_what_was_put() {
    let world = World::with_workspace().await;
    disks(
        &world,
        &[
            ("a", json!({"env": "prod", "size": "10"})),
            ("b", json!({"env": "dev", "tier": "front-end"})),
            ("c", json!({})),
        ],
    )
    .await;
    for (selector, want) in [
        ("", vec!["a", "b", "c"]),
        ("env=prod", vec!["a"]),
        ("env==prod", vec!["a"]),
        ("env!=prod", vec!["b", "c"]),
        ("en*=pro*", vec!["a"]),
        ("size>5", vec!["a"]),
        ("tier!=front-end,env=dev", vec![]),
        ("Env=prod", vec![]),
        ("env in (prod, staging),size", vec!["a"]),
        ("env notin (prod,test)", vec!["b", "c"]),
        ("env", vec!["a", "b"]),
        ("!env", vec!["c"]),
    ] {
        let query: String = url::form_urlencoded::byte_serialize(selector.as_bytes()).collect();
        let list = world.get(&format!("{DISKS}?labels={query}")).await.ok(200);
        assert_eq!(names(&list), want, "{selector}");
    }
    for bad in ["env%3D", "%3E%3D5", "a%20b%3Dc", ",", "a%20in%20(b"] {
        for collection in [DISKS, IMAGES] {
            let answer = world.get(&format!("{collection}?labels={bad}")).await;
            answer.problem(400);
            assert_eq!(answer.json()["sources"][0]["parameter"], "labels", "{bad}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_join_up_to_the_whole_list_even_when_resources_go() {
    let world = World::with_workspace().await;
    let odd = json!({"odd": "yes"});
    let all = ["a", "b", "c", "d", "e"];
    for (i, name) in all.iter().enumerate() {
        let labels = if i % 2 == 0 { odd.clone() } else { json!({}) };
        disks(&world, &[(name, labels)]).await;
    }
    for (query, want) in [
        ("limit=2", all.to_vec()),
        ("limit=5", all.to_vec()),
        ("limit=1&labels=odd=yes", vec!["a", "c", "e"]),
        ("limit=0", all.to_vec()),
        ("limit=-3&labels=odd=yes", vec!["a", "c", "e"]),
    ] {
        let mut seen: Vec<String> = Vec::new();
        let mut token = None;
        loop {
            let more = token.map(|t| format!("&skipToken={t}")).unwrap_or_default();
            let list = world.get(&format!("{DISKS}?{query}{more}")).await.ok(200);
            assert!(!names(&list).is_empty(), "an empty page");
            seen.extend(names(&list).into_iter().map(Into::into));
            match list["metadata"].get("skipToken") {
                Some(next) => token = Some(next.as_str().expect("text").to_owned()),
                None => break,
            }
        }
        assert_eq!(seen, want, "{query}");
    }
    let first = world.get(&format!("{DISKS}?limit=2")).await.ok(200);
    let token = first["metadata"]["skipToken"]
        .as_str()
        .expect("token")
        .to_owned();
    world.delete(&format!("{DISKS}/b")).await.ok(202);
    let rest = world
        .get(&format!("{DISKS}?skipToken={token}"))
        .await
        .ok(200);
    assert_eq!(names(&rest), ["c", "d", "e"]);
    for path in [
        format!("{DISKS}?skipToken=garbage"),
        format!("{IMAGES}?skipToken={token}"),
        format!("{DISKS}?labels=odd%3Dyes&skipToken={token}"),
        format!("{DISKS}?limit=x"),
    ] {
        world.get(&path).await.problem(400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_resources_are_listed_when_asked_for() {
    let world = World::with_workspace().await;
    disks(&world, &[("live", json!({})), ("dying", json!({}))]).await;
    world
        .patch(
            "BlockStorage",
            "dying",
            json!({"metadata": {"finalizers": ["test/hold"]}}),
        )
        .await;
    let path = format!("{DISKS}/dying");
    let asynchronous = [("prefer", "respond-async")];
    world
        .call(Method::DELETE, &path, &asynchronous, "")
        .await
        .ok(202);
    for (accept, want) in [
        ("application/json", vec!["live"]),
        ("application/json; deleted=true", vec!["dying", "live"]),
        ("application/json; deleted=only", vec!["dying"]),
    ] {
        let list = world
            .call(Method::GET, DISKS, &[("accept", accept)], "")
            .await
            .ok(200);
        assert_eq!(names(&list), want, "{accept}");
    }
    let odd = world
        .call(Method::GET, DISKS, &[("accept", "text/html")], "")
        .await;
    odd.problem(406);
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_and_workspaces_see_their_own_only() {
    let world = World::with_workspace().await;
    let at = |tenant: &str, workspace: &str| {
        (
            format!("/providers/seca.workspace/v1/tenants/{tenant}/workspaces/{workspace}"),
            format!(
                "/providers/seca.storage/v1/tenants/{tenant}/workspaces/{workspace}/block-storages"
            ),
        )
    };
    // `a-b`/`c` and `a`/`b-c` must not meet.
    let places = [("acme", "dev"), ("a-b", "c"), ("a", "b-c")];
    for (i, (tenant, workspace)) in places.into_iter().enumerate() {
        let (itself, inside) = at(tenant, workspace);
        world.put(&itself, json!({})).await.ok(201);
        let size = i64::try_from(i).expect("small") + 1;
        world
            .put(&format!("{inside}/data"), disk(size))
            .await
            .ok(201);
    }
    for (i, (tenant, workspace)) in places.into_iter().enumerate() {
        let list = world.get(&at(tenant, workspace).1).await.ok(200);
        assert_eq!(names(&list), ["data"]);
        assert_eq!(list["items"][0]["spec"]["sizeGB"], i + 1);
    }
    assert_eq!(names(&world.get(WORKSPACES).await.ok(200)), ["dev", "prod"]);
    world
        .delete(&format!("{}/data", at("a", "b-c").1))
        .await
        .ok(202);
    world
        .get(&format!("{}/data", at("a-b", "c").1))
        .await
        .ok(200);
    let nobody = "/providers/seca.workspace/v1/tenants/nobody/workspaces";
    assert_eq!(world.get(nobody).await.ok(200)["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_is_seen_by_every_read_that_follows_it() {
    let world = World::with_workspace().await;
    for round in 0..20_i64 {
        let path = format!("{DISKS}/d-{round}");
        let asynchronous = [("prefer", "respond-async")];
        world.put_with(&path, &asynchronous, disk(1)).await.ok(201);
        assert_eq!(world.get(&path).await.ok(200)["spec"]["sizeGB"], 1);
        world.put_with(&path, &asynchronous, disk(2)).await.ok(200);
        assert_eq!(world.get(&path).await.ok(200)["spec"]["sizeGB"], 2);
        let list = world.get(DISKS).await.ok(200);
        assert_eq!(names(&list), [format!("d-{round}")]);
        world
            .call(Method::DELETE, &path, &asynchronous, "")
            .await
            .ok(202);
        let list = world.get(DISKS).await.ok(200);
        assert_eq!(list["items"], json!([]));
    }
    let fresh = [("cache-control", "no-cache")];
    world
        .put(WORKSPACE, json!({"labels": {"a": "b"}}))
        .await
        .ok(200);
    let got = world.call(Method::GET, WORKSPACE, &fresh, "").await.ok(200);
    assert_eq!(got["labels"], json!({"a": "b"}));
    let list = world
        .call(Method::GET, WORKSPACES, &fresh, "")
        .await
        .ok(200);
    assert_eq!(names(&list), ["prod"]);
}
