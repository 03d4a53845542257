//! Plays the control plane behind the API server: what the composition function and provider-ecp
//! do to objects, at once or when told.

use ecp_meta::{keys, names, object};
use ecp_xrds::{HistoryEntry, KindInfo, State, intent_digest};
use futures::StreamExt as _;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::watcher;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What the player does with an intent it sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Nothing, until the mood changes.
    Idle,
    /// Everything succeeds at once.
    Willing,
    /// Everything is refused.
    Refusing,
}

/// Plays until `shutdown`.
pub(crate) fn play(client: Client, mood: watch::Receiver<Mood>, shutdown: CancellationToken) {
    for info in ecp_xrds::kinds().iter().filter(|k| !k.catalogue) {
        let (client, mut mood, shutdown) = (client.clone(), mood.clone(), shutdown.clone());
        tokio::spawn(async move {
            loop {
                let now = *mood.borrow_and_update();
                tokio::select! {
                    () = shutdown.cancelled() => return,
                    () = follow(&client, info, now) => {}
                    changed = mood.changed() => {
                        if changed.is_err() {
                            return;
                        }
                    }
                }
            }
        });
    }
}

async fn follow(client: &Client, info: &'static KindInfo, mood: Mood) {
    let events = watcher(all(client, info), watcher::Config::default());
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) => {
                let object = serde_json::to_value(&object).expect("JSON");
                act(client, info, mood, &object).await;
            }
            Ok(_) => {}
            // At the end of a test the client is gone, and every try fails at once.
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

pub(crate) fn resource(info: &KindInfo) -> ApiResource {
    let gvk = info.gvk();
    let gvk = GroupVersionKind::gvk(&gvk.group, &gvk.version, &gvk.kind);
    ApiResource::from_gvk_with_plural(&gvk, info.plural)
}

fn all(client: &Client, info: &KindInfo) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &resource(info))
}

/// The objects of a kind in a namespace.
pub(crate) fn inside(client: &Client, info: &KindInfo, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &resource(info))
}

async fn act(client: &Client, info: &'static KindInfo, mood: Mood, xr: &Value) {
    if mood == Mood::Idle || object::is_deleting(xr) {
        return;
    }
    let namespace = object::namespace(xr).expect("namespaced");
    if info.kind == "Workspace" {
        make_namespace(client, namespace, ecp_xrds::seca_name(xr)).await;
    }
    let digest = intent_digest(xr);
    let intent = &xr["status"]["intent"];
    if intent["digest"] == json!(digest) {
        return;
    }
    let end = match mood {
        Mood::Refusing => State::Error,
        Mood::Idle | Mood::Willing => State::Active,
    };
    let mut history: Vec<HistoryEntry> =
        serde_json::from_value(xr["status"]["history"].clone()).unwrap_or_default();
    let begin = if history.is_empty() {
        vec![State::Pending, State::Creating]
    } else {
        vec![State::Updating]
    };
    for state in begin.into_iter().chain([end]) {
        history.insert(
            0,
            HistoryEntry {
                state,
                last_transition_at: format!("{:.3}", jiff::Timestamp::now()),
                reason: None,
                message: None,
            },
        );
    }
    let mut status = json!({
        "state": end,
        "history": history,
        "intent": {
            "digest": digest,
            "revision": intent["revision"].as_i64().unwrap_or(0) + 1,
            "lastModifiedAt": format!("{:.3}", jiff::Timestamp::now()),
        },
        "message": (end == State::Error).then_some("no quota left"),
    });
    match info.kind {
        "BlockStorage" => status["sizeGB"] = xr["spec"]["sizeGB"].clone(),
        "Instance" => {
            let power = xr["spec"]["power"]["state"].as_str().unwrap_or("off");
            let before = xr["status"]["powerState"].as_str().unwrap_or("off");
            status["powerState"] = json!(power);
            if power != before {
                status["powerStateSince"] = json!(format!("{:.3}", jiff::Timestamp::now()));
            }
        }
        _ => {}
    }
    let patch = Patch::Merge(json!({ "status": status }));
    // The object may be gone by now; then there is nothing to say about it.
    let _ = inside(client, info, namespace)
        .patch_status(object::name(xr), &PatchParams::default(), &patch)
        .await;
}

/// What provider-ecp does for a workspace.
async fn make_namespace(client: &Client, tenant_namespace: &str, workspace: &str) {
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
    let Ok(parent) = namespaces.get(tenant_namespace).await else {
        return;
    };
    let annotations = parent.metadata.annotations.unwrap_or_default();
    let tenant = annotations.get(keys::TENANT_NAME).expect("tenant").clone();
    let name = names::workspace_namespace(&tenant, workspace);
    let wanted = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": name,
            "labels": {
                keys::TENANT: names::label_value(&tenant),
                keys::WORKSPACE: names::label_value(workspace),
            },
            "annotations": {keys::TENANT_NAME: tenant, keys::WORKSPACE_NAME: workspace},
        },
    });
    let _ = namespaces
        .patch(
            &name,
            &PatchParams::apply("player").force(),
            &Patch::Apply(wanted),
        )
        .await;
}
