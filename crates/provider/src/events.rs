//! Events about managed resources: what a person sees with `kubectl describe`.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event as CoreEvent, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use tokio::sync::mpsc;
use tracing::debug;

use crate::limits::{EVENTS_GATHERED, EVENTS_QUEUED_MAX};
use crate::status::cut;

/// An event to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Whether it is a warning.
    pub(crate) warning: bool,
    /// PascalCase reason; crossplane-runtime's where it has one.
    pub(crate) reason: &'static str,
    /// What happened.
    pub(crate) message: String,
}

impl Event {
    pub(crate) fn normal(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            warning: false,
            reason,
            message: message.into(),
        }
    }

    pub(crate) fn warning(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            warning: true,
            reason,
            message: message.into(),
        }
    }
}

/// Hands events to the task that sends them. Never waits: events are dropped when there are too
/// many.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    sender: mpsc::Sender<CoreEvent>,
    component: String,
}

impl Recorder {
    /// A recorder, and what it hands over.
    pub(crate) fn new(component: String) -> (Self, mpsc::Receiver<CoreEvent>) {
        let (sender, receiver) = mpsc::channel(EVENTS_QUEUED_MAX);
        (Self { sender, component }, receiver)
    }

    /// Records an event about an object.
    pub(crate) fn record(&self, object: &DynamicObject, event: &Event, now: Timestamp) {
        if self
            .sender
            .try_send(core_event(object, event, &self.component, now))
            .is_err()
        {
            debug!(reason = event.reason, "event dropped");
        }
    }
}

/// Sends what recorders hand over, until all of them are gone.
pub(crate) async fn send(client: Client, mut events: mpsc::Receiver<CoreEvent>) {
    let (time, count) = EVENTS_GATHERED;
    let mut gathered = Vec::new();
    while events.recv_many(&mut gathered, count).await > 0 {
        tokio::time::sleep(time).await;
        while gathered.len() < count
            && let Ok(event) = events.try_recv()
        {
            gathered.push(event);
        }
        let sent = gathered.drain(..).map(async |event| {
            let namespace = event.metadata.namespace.clone().unwrap_or_default();
            let api: Api<CoreEvent> = Api::namespaced(client.clone(), &namespace);
            if let Err(error) = api.create(&PostParams::default(), &event).await {
                // A namespace that is being deleted takes no events.
                debug!(%error, "event not recorded");
            }
        });
        futures::future::join_all(sent).await;
    }
}

fn core_event(object: &DynamicObject, event: &Event, component: &str, now: Timestamp) -> CoreEvent {
    let meta = &object.metadata;
    let types = object.types.clone().unwrap_or_default();
    let namespace = meta.namespace.clone().unwrap_or_else(|| "default".into());
    let name = meta.name.clone().unwrap_or_default();
    CoreEvent {
        metadata: ObjectMeta {
            // As client-go names events: unique enough, and sorted by time.
            name: Some(format!("{name}.{:x}", now.as_nanosecond())),
            namespace: Some(namespace),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            api_version: Some(types.api_version),
            kind: Some(types.kind),
            namespace: meta.namespace.clone(),
            name: Some(name),
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
            field_path: None,
        },
        type_: Some(if event.warning { "Warning" } else { "Normal" }.into()),
        reason: Some(event.reason.into()),
        message: Some(cut(&event.message)),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        count: Some(1),
        source: Some(EventSource {
            component: Some(component.into()),
            host: None,
        }),
        reporting_component: Some(component.into()),
        ..CoreEvent::default()
    }
}
