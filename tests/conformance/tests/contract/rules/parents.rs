//! The workspace and the network of a path (contract, sections 3.1, 3.2).

use crate::bodies;
use crate::cases;
use crate::kinds::*;
use crate::site::Site;
use crate::world::Refusal;

cases!(Two nothing_is_made_below_what_is_missing, One what_is_missing_has_no_content);

async fn nothing_is_made_below_what_is_missing(site: Site) {
    for kind in KINDS.iter().filter(|k| k.scope != Scope::Tenant) {
        let spec = bodies::minimal(&site, kind);
        let answer = site.put(kind, "x", &spec).await;
        assert_eq!(
            answer.status,
            site.world.code(Refusal::Parent),
            "{answer:#?}"
        );
    }
    site.sample(&WORKSPACE).await;
    site.sample(&INTERNET_GATEWAY).await;
    for kind in [&ROUTE_TABLE, &SUBNET] {
        let spec = bodies::minimal(&site, kind);
        let answer = site.put(kind, "x", &spec).await;
        assert_eq!(
            answer.status,
            site.world.code(Refusal::Parent),
            "{answer:#?}"
        );
    }
}

async fn what_is_missing_has_no_content(site: Site) {
    for kind in KINDS.iter().filter(|k| k.scope != Scope::Tenant) {
        site.get(kind, "x").await.ok(404);
        site.delete(kind, "x").await.ok(404);
        let list = site.world.get(&site.list(kind)).await;
        assert!(
            list.status == 404 || list.body["items"] == serde_json::json!([]),
            "{list:#?}"
        );
    }
}
