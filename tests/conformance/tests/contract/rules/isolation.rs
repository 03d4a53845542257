//! Tenants and workspaces see nothing of each other.

use serde_json::{Value, json};

use crate::bodies;
use crate::cases;
use crate::kinds::*;
use crate::site::Site;

cases!(
    One workspaces_have_the_same_names_for_themselves,
    One tenants_have_the_same_names_for_themselves,
    One networks_have_the_same_names_for_themselves,
);

/// Makes one of each kind with labels that tell whose it is.
async fn fill(site: &Site, kinds: &[&&Kind], owner: &str) {
    for kind in kinds {
        let body = json!({ "labels": { "of": owner }, "spec": bodies::minimal(site, kind) });
        site.put_body(kind, kind.sample, &body).await.ok(201);
    }
}

/// Each sees its own alone; what one deletes the other keeps.
async fn apart(sites: [(&Site, &str); 2], kinds: &[&&Kind]) {
    for (site, owner) in sites {
        fill(site, kinds, owner).await;
    }
    for (site, owner) in sites {
        for kind in kinds {
            let read = site.get(kind, kind.sample).await.ok(200);
            assert_eq!(read["labels"]["of"], owner);
            let items = site.world.all(&site.list(kind), "").await;
            let owners: Vec<&Value> = items.iter().map(|i| &i["labels"]["of"]).collect();
            assert_eq!(owners, [owner], "{}", kind.name);
        }
    }
    let [(first, _), (second, _)] = sites;
    for kind in kinds.iter().rev() {
        first.remove(kind, kind.sample).await;
    }
    for kind in kinds {
        second.until_active(kind, kind.sample).await;
    }
}

async fn workspaces_have_the_same_names_for_themselves(site: Site) {
    let sites = ["one", "two"].map(|w| (site.in_workspace(w), w));
    for (site, name) in &sites {
        site.make(&WORKSPACE, name, &json!({})).await;
    }
    let inside: Vec<_> = KINDS.iter().filter(|k| k.scope != Scope::Tenant).collect();
    apart([(&sites[0].0, "one"), (&sites[1].0, "two")], &inside).await;
    assert_eq!(site.names(&WORKSPACE, "").await, ["one", "two"]);
}

async fn tenants_have_the_same_names_for_themselves(site: Site) {
    let other = Site::new(site.world.clone());
    let all: Vec<_> = KINDS.iter().collect();
    apart([(&site, "one"), (&other, "two")], &all).await;
}

async fn networks_have_the_same_names_for_themselves(site: Site) {
    site.sample(&WORKSPACE).await;
    site.sample(&INTERNET_GATEWAY).await;
    let second = Site {
        network: "net-2".into(),
        ..site.clone()
    };
    for site in [&site, &second] {
        site.make(&NETWORK, &site.network, &bodies::minimal(site, &NETWORK))
            .await;
    }
    apart(
        [(&site, "one"), (&second, "two")],
        &[&&ROUTE_TABLE, &&SUBNET],
    )
    .await;
}
