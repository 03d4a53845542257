//! What is below a network goes before the network.

use ecp_meta::{condition, object};
use serde_json::{Value, json};

use crate::cluster::{Cluster, ECP, NETWORK, until};

async fn cluster() -> Cluster {
    let cluster = Cluster::new().await;
    for (kind, plural) in [("Subnet", "subnets"), ("RouteTable", "route-tables")] {
        cluster
            .install_any("network.v1.secapi.cloud", kind, plural)
            .await;
    }
    cluster
}

/// Something of a network, held by a finalizer of somebody else.
async fn below(cluster: &Cluster, plural: &str, name: &str, network: &str) {
    let object = json!({
        "metadata": {
            "name": name, "namespace": "tenant", "finalizers": ["example.org/x"],
        },
        "spec": {"network": network},
    });
    cluster.create(NETWORK, plural, "tenant", object).await;
}

async fn contents(cluster: &Cluster, network: &str) {
    let object = json!({
        "metadata": {"name": network, "namespace": "tenant"},
        "spec": {"forProvider": {"network": network}},
    });
    cluster
        .create(ECP, "networkcontents", "tenant", object)
        .await;
}

async fn contents_are(cluster: &Cluster, network: &str, what: &str, is: impl Fn(&Value) -> bool) {
    until(what, async || {
        let found = cluster.get(ECP, "networkcontents", "tenant", network);
        found.await.filter(|c| is(c))
    })
    .await;
}

fn remaining(count: i64) -> impl Fn(&Value) -> bool {
    move |contents| contents["status"]["atProvider"]["remaining"] == count
}

fn waits_for(message: &str) -> impl Fn(&Value) -> bool {
    move |contents| {
        let ready = condition::find(contents, "Ready");
        ready.is_some_and(|ready| ready["message"] == message && ready["reason"] == "Deleting")
    }
}

async fn free(cluster: &Cluster, plural: &str, name: &str) {
    let patch = json!({"metadata": {"finalizers": null}});
    cluster.patch(NETWORK, plural, "tenant", name, patch).await;
}

async fn is_deleting(cluster: &Cluster, plural: &str, name: &str) -> bool {
    let found = cluster.get(NETWORK, plural, "tenant", name).await;
    object::is_deleting(&found.expect("it is there"))
}

#[tokio::test(flavor = "multi_thread")]
async fn contents_are_ready_at_once_and_counted() {
    let cluster = cluster().await;
    contents(&cluster, "net").await;
    let ready = |c: &Value| condition::is_true(c, "Ready") && condition::is_true(c, "Synced");
    contents_are(&cluster, "net", "they are ready", ready).await;
    contents_are(&cluster, "net", "there are none", remaining(0)).await;
    below(&cluster, "subnets", "a", "net").await;
    below(&cluster, "subnets", "b", "other").await;
    below(&cluster, "route-tables", "a", "net").await;
    contents_are(&cluster, "net", "one of each", remaining(2)).await;
    let quiet = cluster.get(ECP, "networkcontents", "tenant", "net").await;
    // What does not concern the network is not written about it.
    below(&cluster, "route-tables", "b", "other").await;
    contents(&cluster, "other").await;
    contents_are(&cluster, "other", "the other's are counted", remaining(2)).await;
    assert_eq!(
        cluster.get(ECP, "networkcontents", "tenant", "net").await,
        quiet
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn contents_go_in_order_and_those_of_others_stay() {
    let cluster = cluster().await;
    contents(&cluster, "net").await;
    for (plural, name, network) in [
        ("subnets", "a", "net"),
        ("subnets", "b", "net"),
        ("route-tables", "r", "net"),
        ("subnets", "c", "other"),
    ] {
        below(&cluster, plural, name, network).await;
    }
    contents_are(&cluster, "net", "three are counted", remaining(3)).await;
    cluster
        .delete(ECP, "networkcontents", "tenant", "net")
        .await;
    let message = "waiting for 2 Subnet to be deleted (Subnet/a, Subnet/b, then 1 more)";
    contents_are(&cluster, "net", "subnets first", waits_for(message)).await;
    assert!(is_deleting(&cluster, "subnets", "a").await);
    assert!(!is_deleting(&cluster, "route-tables", "r").await);
    free(&cluster, "subnets", "a").await;
    free(&cluster, "subnets", "b").await;
    let message = "waiting for 1 RouteTable to be deleted (RouteTable/r)";
    contents_are(&cluster, "net", "then the table", waits_for(message)).await;
    contents_are(&cluster, "net", "one is left", remaining(1)).await;
    free(&cluster, "route-tables", "r").await;
    until("they are gone", async || {
        let found = cluster.get(ECP, "networkcontents", "tenant", "net").await;
        found.is_none().then_some(())
    })
    .await;
    assert!(!is_deleting(&cluster, "subnets", "c").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_without_contents_waits_for_nothing() {
    let cluster = cluster().await;
    contents(&cluster, "net").await;
    contents_are(&cluster, "net", "there are none", remaining(0)).await;
    cluster
        .delete(ECP, "networkcontents", "tenant", "net")
        .await;
    until("they are gone", async || {
        let found = cluster.get(ECP, "networkcontents", "tenant", "net").await;
        found.is_none().then_some(())
    })
    .await;
}
