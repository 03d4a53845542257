//! Events about packages, without repeating them.

use std::collections::HashMap;
use std::time::Instant;

use ecp_meta::object;
use ecp_xr::event::{Event, EventKind};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::api::{Api, Mode};
use crate::kinds;
use crate::limits::{EVENT_REPEAT, EVENT_TEXT_MAX, EVENTS_REMEMBERED_MAX};

/// Where Events of cluster-scoped objects are.
const NAMESPACE: &str = "default";

/// Writes Events. One that says the same about the same object is not repeated for a while.
#[derive(Debug)]
pub(crate) struct Recorder {
    api: Api,
    told: Mutex<HashMap<String, Instant>>,
}

impl Recorder {
    pub(crate) fn new(api: Api) -> Self {
        Self {
            api,
            told: Mutex::default(),
        }
    }

    /// Records an event about an object. `component` is the controller's name.
    pub(crate) async fn record(&self, component: &str, about: &Value, event: &Event) {
        let key = format!("{} {} {}", object::uid(about), event.reason, event.message);
        if !self.is_news(key) {
            return;
        }
        let gvk = object::gvk(about);
        let now = crate::now();
        let message: String = event.message.chars().take(EVENT_TEXT_MAX).collect();
        let written = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {
                "generateName": format!("{}.", object::name(about)),
                "namespace": NAMESPACE,
            },
            "involvedObject": {
                "apiVersion": gvk.api_version(), "kind": gvk.kind,
                "name": object::name(about), "uid": object::uid(about),
                "resourceVersion": object::resource_version(about),
            },
            "type": match event.kind {
                EventKind::Normal => "Normal",
                EventKind::Warning => "Warning",
            },
            "reason": event.reason, "message": message, "count": 1,
            "firstTimestamp": now, "lastTimestamp": now,
            "source": {"component": component},
            "reportingComponent": component, "reportingInstance": "",
        });
        if let Err(error) = self.api.create(&kinds::event(), &written, Mode::Do).await {
            tracing::debug!(%error, "event not written");
        }
    }

    fn is_news(&self, key: String) -> bool {
        let mut told = self.told.lock();
        if told.get(&key).is_some_and(|at| at.elapsed() < EVENT_REPEAT) {
            return false;
        }
        if told.len() >= EVENTS_REMEMBERED_MAX {
            told.retain(|_, at| at.elapsed() < EVENT_REPEAT);
        }
        if told.len() < EVENTS_REMEMBERED_MAX {
            told.insert(key, Instant::now());
        }
        true
    }
}
