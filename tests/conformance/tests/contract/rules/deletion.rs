//! What deletion is refused for, what it takes along, and what it leaves (contract, section 3.8).

use serde_json::json;

use crate::bodies;
use crate::cases;
use crate::kinds::*;
use crate::site::Site;
use crate::world::{Answer, Refusal};

cases!(
    Two what_is_in_use_stays,
    One other_uses_do_not_matter,
    One a_network_takes_its_subnets_along,
    One a_workspace_takes_everything_along,
    One a_workspace_full_of_everything_goes_in_any_order,
    Two deletion_can_be_conditional,
);

async fn refused(site: &Site, kind: &Kind, name: &str) {
    let answer = site.delete(kind, name).await;
    assert_eq!(
        answer.status,
        site.world.code(Refusal::Conflict),
        "{answer:#?}"
    );
    let document = site.get(kind, name).await.ok(200);
    assert_eq!(document["status"]["state"], "active", "{document:#}");
    assert!(document["metadata"].get("deletedAt").is_none());
}

/// By live instances: their workspace, volumes and NICs. By live route tables: their network.
async fn what_is_in_use_stays(site: Site) {
    site.prepare_full(&INSTANCE).await;
    let spec = bodies::full(&site, &INSTANCE);
    site.make(&INSTANCE, "vm", &spec).await;
    let used = [
        (&BLOCK_STORAGE, "disk"),
        (&BLOCK_STORAGE, "disk-2"),
        (&NIC, "nic"),
        (&NIC, "nic-2"),
    ];
    for (kind, name) in used {
        refused(&site, kind, name).await;
    }
    refused(&site, &WORKSPACE, WORKSPACE.sample).await;
    refused(&site, &NETWORK, NETWORK.sample).await;
    site.remove(&INSTANCE, "vm").await;
    for (kind, name) in used {
        site.remove(kind, name).await;
    }
    refused(&site, &NETWORK, NETWORK.sample).await;
    site.remove(&ROUTE_TABLE, ROUTE_TABLE.sample).await;
    site.remove(&NETWORK, NETWORK.sample).await;
    site.remove(&WORKSPACE, WORKSPACE.sample).await;
}

/// A gateway of a route, a route table of a subnet, a rule of a group, a volume of an image, an
/// address and a group of a NIC.
async fn other_uses_do_not_matter(site: Site) {
    site.prepare_full(&NIC).await;
    site.make(&NIC, NIC.sample, &bodies::full(&site, &NIC))
        .await;
    let group = bodies::full(&site, &SECURITY_GROUP);
    site.make(&SECURITY_GROUP, SECURITY_GROUP.sample, &group)
        .await;
    site.prepare_full(&BLOCK_STORAGE).await;
    for kind in [
        &INTERNET_GATEWAY,
        &ROUTE_TABLE,
        &SECURITY_GROUP_RULE,
        &BLOCK_STORAGE,
        &PUBLIC_IP,
        &SECURITY_GROUP,
    ] {
        site.remove(kind, kind.sample).await;
    }
    for kind in [&SUBNET, &NIC, &IMAGE] {
        let document = site.get(kind, kind.sample).await.ok(200);
        assert_ne!(document["status"]["state"], "error", "{document:#}");
    }
}

async fn a_network_takes_its_subnets_along(site: Site) {
    site.prepare(&NIC).await;
    site.remove(&ROUTE_TABLE, ROUTE_TABLE.sample).await;
    site.remove(&NETWORK, NETWORK.sample).await;
    site.get(&SUBNET, SUBNET.sample).await.ok(404);
    // A network of the same name is empty.
    site.sample(&NETWORK).await;
    assert_eq!(site.names(&SUBNET, "").await, [""; 0]);
    site.sample(&ROUTE_TABLE).await;
    let subnet = site.sample(&SUBNET).await;
    assert_eq!(subnet["metadata"]["resourceVersion"], 1);
}

async fn a_workspace_takes_everything_along(site: Site) {
    site.prepare_full(&INSTANCE).await;
    site.sample(&PUBLIC_IP).await;
    let neighbour = site.in_workspace("other");
    neighbour.make(&WORKSPACE, "other", &json!({})).await;
    neighbour.sample(&BLOCK_STORAGE).await;
    site.sample(&IMAGE).await;
    site.remove(&WORKSPACE, WORKSPACE.sample).await;
    let inside: Vec<_> = KINDS.iter().filter(|k| k.scope != Scope::Tenant).collect();
    for kind in &inside {
        site.get(kind, kind.sample).await.ok(404);
    }
    neighbour
        .until_active(&BLOCK_STORAGE, BLOCK_STORAGE.sample)
        .await;
    site.get(&IMAGE, IMAGE.sample).await.ok(200);

    // A workspace of the same name is empty, and its names are free.
    let again = site.sample(&WORKSPACE).await;
    assert_eq!(again["metadata"]["resourceVersion"], 1);
    for kind in &inside {
        if kind.scope == Scope::Workspace {
            assert_eq!(site.names(kind, "").await, [""; 0], "{}", kind.name);
        }
        let made = site.sample(kind).await;
        assert_eq!(made["metadata"]["resourceVersion"], 1);
    }
}

/// Instances first, since they hold the workspace; all else at once.
async fn a_workspace_full_of_everything_goes_in_any_order(site: Site) {
    site.prepare_full(&INSTANCE).await;
    site.sample(&PUBLIC_IP).await;
    site.make(&INSTANCE, "vm", &bodies::full(&site, &INSTANCE))
        .await;
    let asked = async |kind: &Kind, name: &str| -> Answer {
        let call = site.world.call("DELETE", &site.path(kind, name));
        call.header("prefer", "respond-async").send().await
    };
    asked(&INSTANCE, "vm").await.ok(202);
    // What is being deleted counts no more.
    asked(&BLOCK_STORAGE, BLOCK_STORAGE.sample).await.ok(202);
    asked(&ROUTE_TABLE, ROUTE_TABLE.sample).await.ok(202);
    asked(&NETWORK, NETWORK.sample).await.ok(202);
    asked(&WORKSPACE, WORKSPACE.sample).await.ok(202);
    site.world
        .until_gone(&site.path(&WORKSPACE, WORKSPACE.sample))
        .await;
    for kind in [&INSTANCE, &NETWORK, &NIC, &BLOCK_STORAGE] {
        site.get(kind, kind.sample).await.ok(404);
    }
}

async fn deletion_can_be_conditional(site: Site) {
    site.sample(&WORKSPACE).await;
    let delete = |version: &'static str| {
        let call = site
            .world
            .call("DELETE", &site.path(&WORKSPACE, WORKSPACE.sample));
        call.header("if-unmodified-since", version).send()
    };
    let stale = delete("2").await;
    assert_eq!(stale.sources(), ["if-unmodified-since"]);
    stale.ok(412);
    delete("1.0").await.ok(400);
    site.until_active(&WORKSPACE, WORKSPACE.sample).await;
    delete("1").await.ok(202);
    site.world
        .until_gone(&site.path(&WORKSPACE, WORKSPACE.sample))
        .await;
    delete("1").await.ok(404);
}
