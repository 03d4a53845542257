//! What the runtime promises for every kind.

use std::collections::BTreeMap;
use std::time::Duration;

use ecp_provider::{ExternalChange, Options, SECRET_TYPE};
use futures::FutureExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::fake::{Cluster, until};

fn hourly() -> Options {
    Options {
        poll: Duration::from_secs(3600),
        ..Options::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_cloud_tells_of_is_observed_at_once() {
    let cluster = Cluster::new(hourly()).await;
    for name in ["a", "b"] {
        cluster.thing(name, json!({}), json!({})).await;
        cluster.reason(name, "Ready", "Available").await;
    }
    let tell = |change| {
        let state = cluster.fake.0.lock();
        let tells = state.tells.as_ref().expect("the runtime listens");
        tells.unbounded_send(change).expect("it still does");
        state.observes
    };
    let before = tell(ExternalChange::Of("thing-1".into()));
    until("it is observed", async || {
        (cluster.fake.0.lock().observes > before).then_some(())
    })
    .await;
    let before = tell(ExternalChange::Unknown);
    until("both are observed", async || {
        (cluster.fake.0.lock().observes >= before + 2).then_some(())
    })
    .await;
}

/// public-bugs A32, for a cloud that cannot be asked by tag.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_creation_is_refused_until_a_person_says_it_is_safe() {
    let cluster = Cluster::new(hourly()).await;
    let pending = json!({"crossplane.io/external-create-pending": "2026-01-01T00:00:00Z"});
    cluster.thing("a", pending, json!({})).await;
    let message = cluster.reason("a", "Synced", "ReconcileError").await;
    assert_eq!(
        message,
        "cannot determine creation result - remove the crossplane.io/external-create-pending \
         annotation if it is safe to proceed"
    );
    cluster.reason("a", "Ready", "Creating").await;
    assert_eq!(cluster.fake.0.lock().creates, 0);
    assert_eq!(cluster.fake.0.lock().observes, 0);
    cluster
        .annotate("a", json!({"crossplane.io/external-create-pending": null}))
        .await;
    cluster.reason("a", "Ready", "Available").await;
    assert_eq!(cluster.fake.0.lock().creates, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_changed_since_it_was_read_is_not_acted_upon() {
    let cluster = Cluster::new(hourly()).await;
    let things = cluster.things();
    let fake = cluster.fake.clone();
    // The decision to create rests on a state that is old by now.
    cluster.fake.0.lock().on_observe = Some(Box::new(move || {
        async move {
            let patch = json!({"metadata": {"labels": {"changed": "meanwhile"}}});
            things
                .patch("a", &PatchParams::default(), &Patch::Merge(patch))
                .await
                .expect("patched");
            assert_eq!(fake.0.lock().creates, 0);
        }
        .boxed()
    }));
    cluster.thing("a", json!({}), json!({})).await;
    cluster.reason("a", "Ready", "Available").await;
    let state = cluster.fake.0.lock();
    assert_eq!(state.creates, 1);
    assert!(
        state.observes >= 3,
        "it was observed again before it was created"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_visible_yet_is_not_created_again() {
    let cluster = Cluster::new(hourly()).await;
    cluster.fake.0.lock().hidden = true;
    cluster.thing("a", json!({}), json!({})).await;
    cluster.event("a", "PendingExternalResource").await;
    let observes = cluster.fake.0.lock().observes;
    until("it is observed some more", async || {
        (cluster.fake.0.lock().observes > observes + 3).then_some(())
    })
    .await;
    assert_eq!(cluster.fake.0.lock().creates, 1);
    cluster.reason("a", "Ready", "Creating").await;
    cluster.fake.0.lock().hidden = false;
    cluster.reason("a", "Ready", "Available").await;
    assert_eq!(cluster.fake.0.lock().creates, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_details_go_into_the_resources_own_secret() {
    let cluster = Cluster::new(hourly()).await;
    let secret = |name: &str| json!({"writeConnectionSecretToRef": {"name": name}});
    cluster.fake.0.lock().connection = BTreeMap::from([("key".to_owned(), b"planted".to_vec())]);
    cluster.thing("a", json!({}), secret("a-keys")).await;
    cluster.reason("a", "Ready", "Available").await;
    let secrets = cluster.api("v1", "secrets", "ns");
    let written = secrets.get("a-keys").await.expect("a secret");
    assert_eq!(written.data["type"], SECRET_TYPE);
    assert_eq!(written.data["data"], json!({"key": "cGxhbnRlZA=="}));
    let thing = cluster.things().get("a").await.expect("a thing");
    let owners = written.metadata.owner_references.expect("an owner");
    assert_eq!(Some(&owners[0].uid), thing.metadata.uid.as_ref());
    assert_eq!(owners[0].controller, Some(true));
    let text = serde_json::to_string(&thing).expect("JSON");
    assert!(
        !text.contains("planted") && !text.contains("cGxhbnRlZA"),
        "{text}"
    );

    cluster
        .create(
            "v1",
            "secrets",
            "ns",
            json!({
                "apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": "foreign", "namespace": "ns"},
            }),
        )
        .await;
    cluster.thing("b", json!({}), secret("foreign")).await;
    let message = cluster.reason("b", "Synced", "ReconcileError").await;
    assert!(
        message.contains("not controlled by this resource"),
        "{message}"
    );
    cluster.event("b", "CannotPublishConnectionDetails").await;
    let foreign = secrets.get("foreign").await.expect("a secret");
    assert_eq!(foreign.data.get("data"), None, "left alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_in_a_provider_costs_one_object_and_not_the_others() {
    let cluster = Cluster::new(hourly()).await;
    cluster.fake.0.lock().cursed = Some("bad".into());
    cluster.thing("bad", json!({}), json!({})).await;
    until("it panicked", async || {
        (cluster.fake.0.lock().observes > 0).then_some(())
    })
    .await;
    cluster.thing("good", json!({}), json!({})).await;
    cluster.reason("good", "Ready", "Available").await;
    cluster.fake.0.lock().cursed = None;
    cluster
        .annotate(
            "bad",
            json!({"crossplane.io/reconcile-requested-at": "now"}),
        )
        .await;
    cluster.reason("bad", "Ready", "Available").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_poll_interval_of_an_object_is_kept_to() {
    let cluster = Cluster::new(hourly()).await;
    let often = json!({"crossplane.io/poll-interval": "10ms"});
    cluster.thing("often", often, json!({})).await;
    cluster.reason("often", "Ready", "Available").await;
    let observes = cluster.fake.0.lock().observes;
    let start = std::time::Instant::now();
    until("it is observed again", async || {
        (cluster.fake.0.lock().observes > observes).then_some(())
    })
    .await;
    // A second is the least that is granted.
    assert!(
        start.elapsed() > Duration::from_millis(500),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_objects_are_refused_with_words_and_do_not_stop_anything() {
    let cluster = Cluster::new(hourly()).await;
    let odd = json!({"managementPolicies": ["Create", "Delete"]});
    cluster.thing("policies", json!({}), odd).await;
    let message = cluster.reason("policies", "Synced", "ReconcileError").await;
    assert!(message.contains("non-supported combination"), "{message}");
    cluster
        .event("policies", "CannotUseInvalidManagementPolicy")
        .await;
    let nonsense: Value = json!({
        "crossplane.io/external-create-pending": "when?",
        "crossplane.io/poll-interval": "-3 fortnights",
        "crossplane.io/paused": "perhaps",
        "crossplane.io/external-name": "",
    });
    cluster.thing("annotations", nonsense, json!({})).await;
    cluster.reason("annotations", "Ready", "Available").await;
    let never = json!({"crossplane.io/poll-interval": "18446744073709549568s"});
    cluster.thing("seldom", never, json!({})).await;
    cluster.reason("seldom", "Ready", "Available").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_waits_for_others_goes_on_when_they_are_gone() {
    let cluster = Cluster::new(hourly()).await;
    let things = cluster.things();
    cluster.thing("used", json!({}), json!({})).await;
    cluster.reason("used", "Ready", "Available").await;
    let uses = json!({"forProvider": {"color": "thing-1"}});
    cluster.thing("user", json!({}), uses).await;
    cluster.reason("user", "Ready", "Available").await;
    cluster.fake.0.lock().in_use.insert("thing-1".into(), 0);
    let params = kube::api::DeleteParams::default();
    things.delete("used", &params).await.expect("deleted");
    until(
        "it has been refused so often that it waits long",
        async || (cluster.fake.0.lock().in_use["thing-1"] >= 6).then_some(()),
    )
    .await;
    // It is no error: nobody has to do anything about it.
    assert_eq!(cluster.reason("used", "Ready", "Deleting").await, "in use");
    cluster.reason("used", "Synced", "ReconcileSuccess").await;
    let start = std::time::Instant::now();
    things.delete("user", &params).await.expect("deleted");
    until("both are gone", async || {
        let left = things.list(&Default::default()).await.ok()?;
        left.items.is_empty().then_some(())
    })
    .await;
    // The next try was due after 0.8 seconds at least.
    let took = start.elapsed();
    assert!(took < Duration::from_millis(700), "{took:?}");
    cluster.event("user", "DeletedExternalResource").await;
    assert_eq!(cluster.warnings("ns").await, Vec::<String>::new());
}
