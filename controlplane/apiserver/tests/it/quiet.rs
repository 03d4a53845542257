//! What the server logs when nothing is wrong.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::api::{FOOS, MAPS, config_map, foo, with_foos};

/// Keeps the text of warnings and errors.
#[derive(Clone, Default)]
struct Alarms(Arc<Mutex<Vec<String>>>);

impl Subscriber for Alarms {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(event.metadata().target().to_owned());
        event.record(&mut text);
        self.0.lock().push(text.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.push_str(&format!(" {field}={value:?}"));
    }
}

#[tokio::test]
async fn a_quiet_start_and_ordinary_use_raise_no_alarm() {
    let alarms = Alarms::default();
    let _guard = tracing::subscriber::set_default(alarms.clone());
    tracing::warn!("planted");
    let api = with_foos().await;
    api.post(FOOS, foo("a", json!({"n": 1}))).await.expect(201);
    api.post(MAPS, config_map("a")).await.expect(201);
    api.delete(&format!("{FOOS}/a")).await.expect(200);
    assert_eq!(api.get(&format!("{FOOS}/a")).await.code, 404);
    api.server.shutdown().await;
    let alarms = alarms.0.lock();
    assert_eq!(alarms.len(), 1, "{alarms:?}");
    assert!(alarms[0].contains("planted"));
}
