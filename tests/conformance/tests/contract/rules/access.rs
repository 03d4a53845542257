//! Who may do what: roles and role assignments (contract, section 3.10; features of the Go ECP,
//! section 4; public bug A60).

use serde_json::{Value, json};

use crate::bodies;
use crate::cases;
use crate::kinds::*;
use crate::site::Site;
use crate::world::{Answer, USERS};

cases!(
    One without_a_role_nothing_is_allowed,
    One a_role_allows_what_it_lists_and_no_more,
    One a_workspace_can_be_granted_by_name,
    One scopes_bound_where_a_role_counts,
    One everybody_is_everybody,
    One a_role_that_goes_takes_its_rights_along,
    One power_needs_post,
);

const ALICE: &str = USERS[0].0;
const BOB: &str = USERS[1].0;

async fn as_user(site: &Site, token: &str, method: &str, path: &str) -> Answer {
    let call = site.world.call(method, path).token(token);
    let call = call.header("prefer", "respond-async");
    match method {
        "PUT" => call.json(&json!({ "spec": {} })).send().await,
        _ => call.send().await,
    }
}

/// Whether the user may; what becomes of the request else is not asked.
async fn may(site: &Site, token: &str, method: &str, path: &str) -> bool {
    as_user(site, token, method, path).await.status != 403
}

/// A role of these permissions for these subjects, in these scopes.
async fn grant(site: &Site, name: &str, permissions: Value, subs: Value, scopes: Value) {
    site.make(&ROLE, name, &json!({ "permissions": permissions }))
        .await;
    let assignment = json!({ "subs": subs, "scopes": scopes, "roles": [name] });
    site.make(&ROLE_ASSIGNMENT, name, &assignment).await;
}

fn permission(provider: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!([{ "provider": provider, "resources": resources, "verb": verbs }])
}

fn alice() -> Value {
    json!([USERS[0].1])
}

async fn without_a_role_nothing_is_allowed(site: Site) {
    for kind in KINDS {
        for (method, path) in [
            ("GET", site.list(kind)),
            ("GET", site.path(kind, "x")),
            ("PUT", site.path(kind, "x")),
            ("DELETE", site.path(kind, "x")),
        ] {
            as_user(&site, ALICE, method, &path).await.ok(403);
        }
    }
    for api in ["storage", "compute", "network"] {
        let skus = format!("/providers/seca.{api}/v1/tenants/{}/skus", site.tenant);
        as_user(&site, ALICE, "GET", &skus).await.ok(403);
    }
    // Regions are for everybody who is known.
    as_user(&site, ALICE, "GET", "/providers/seca.region/v1/regions")
        .await
        .ok(200);
    as_user(&site, "unknown", "GET", "/providers/seca.region/v1/regions")
        .await
        .ok(401);
}

async fn a_role_allows_what_it_lists_and_no_more(site: Site) {
    site.sample(&WORKSPACE).await;
    let read = permission(
        "seca.storage/v1",
        &["block-storages", "block-storages/a*"],
        &["GET", "list"],
    );
    grant(&site, "reader", read, alice(), json!([{}])).await;
    let disks = site.list(&BLOCK_STORAGE);
    for (method, path, allowed) in [
        ("GET", disks.clone(), true),
        ("GET", format!("{disks}/a1"), true),
        ("GET", format!("{disks}/b1"), false),
        ("PUT", format!("{disks}/a1"), false),
        ("DELETE", format!("{disks}/a1"), false),
        ("GET", site.list(&IMAGE), false),
        ("GET", site.list(&INSTANCE), false),
        ("GET", site.list(&ROLE), false),
        ("GET", site.list(&WORKSPACE), false),
    ] {
        assert_eq!(
            may(&site, ALICE, method, &path).await,
            allowed,
            "{method} {path}"
        );
        assert!(!may(&site, BOB, method, &path).await, "{method} {path}");
    }
    let elsewhere = Site::new(site.world.clone());
    assert!(!may(&elsewhere, ALICE, "GET", &elsewhere.list(&BLOCK_STORAGE)).await);
}

async fn a_workspace_can_be_granted_by_name(site: Site) {
    let own = permission(
        "seca.workspace/v1",
        &["workspaces", "workspaces/*"],
        &["get", "put", "delete"],
    );
    grant(&site, "owner", own, alice(), json!([{}])).await;
    let path = site.path(&WORKSPACE, "ws-a");
    as_user(&site, ALICE, "PUT", &path).await.ok(201);
    as_user(&site, ALICE, "GET", &path).await.ok(200);
    let instances = site.in_workspace("ws-a").list(&INSTANCE);
    as_user(&site, ALICE, "GET", &instances).await.ok(403);
    as_user(&site, ALICE, "GET", &site.list(&WORKSPACE))
        .await
        .ok(403);
    as_user(&site, ALICE, "DELETE", &path).await.ok(202);
}

async fn scopes_bound_where_a_role_counts(site: Site) {
    for name in ["a", "b"] {
        site.make(&WORKSPACE, name, &json!({})).await;
    }
    let all = || permission("seca.storage/v1", &["*"], &["get", "list"]);
    let of = |workspace: &str| site.in_workspace(workspace).list(&BLOCK_STORAGE);
    let scope = json!([{ "tenants": [site.tenant], "workspaces": ["a"] }]);
    grant(&site, "in-a", all(), alice(), scope).await;
    assert!(may(&site, ALICE, "GET", &of("a")).await);
    assert!(!may(&site, ALICE, "GET", &of("b")).await);
    // The next scope adds to it.
    grant(
        &site,
        "here",
        all(),
        alice(),
        json!([{ "regions": ["region-1"] }]),
    )
    .await;
    assert!(may(&site, ALICE, "GET", &of("b")).await);
    let other = format!("/regions/region-2{}", of("b"));
    assert!(!may(&site, ALICE, "GET", &other).await);
    grant(
        &site,
        "there",
        all(),
        alice(),
        json!([{ "regions": ["region-2"] }]),
    )
    .await;
    assert!(may(&site, ALICE, "GET", &other).await);
}

async fn everybody_is_everybody(site: Site) {
    let all = permission("seca.workspace/v1", &["*"], &["list"]);
    grant(&site, "all", all, json!(["*"]), json!([{}])).await;
    for token in [ALICE, BOB] {
        assert!(may(&site, token, "GET", &site.list(&WORKSPACE)).await);
        assert!(!may(&site, token, "GET", &site.path(&WORKSPACE, "x")).await);
    }
    as_user(&site, "unknown", "GET", &site.list(&WORKSPACE))
        .await
        .ok(401);
}

async fn a_role_that_goes_takes_its_rights_along(site: Site) {
    let all = || permission("seca.workspace/v1", &["*"], &["list"]);
    let list = site.list(&WORKSPACE);
    grant(&site, "r", all(), alice(), json!([{}])).await;
    assert!(may(&site, ALICE, "GET", &list).await);
    site.remove(&ROLE, "r").await;
    assert!(!may(&site, ALICE, "GET", &list).await);
    site.make(&ROLE, "r", &json!({ "permissions": all() }))
        .await;
    assert!(may(&site, ALICE, "GET", &list).await);
    site.remove(&ROLE_ASSIGNMENT, "r").await;
    assert!(!may(&site, ALICE, "GET", &list).await);
}

async fn power_needs_post(site: Site) {
    site.prepare(&INSTANCE).await;
    let spec = bodies::minimal(&site, &INSTANCE);
    site.make(&INSTANCE, "vm", &spec).await;
    let start = format!("{}/start", site.path(&INSTANCE, "vm"));
    let not = permission("seca.compute/v1", &["*"], &["get", "put", "delete"]);
    grant(&site, "not", not, alice(), json!([{}])).await;
    as_user(&site, ALICE, "POST", &start).await.ok(403);
    let post = permission("seca.compute/v1", &["instances/*"], &["POST"]);
    grant(&site, "post", post, alice(), json!([{}])).await;
    as_user(&site, ALICE, "POST", &start).await.ok(202);
}
