//! Kubernetes Events, without storms.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ecp_meta::gvk::GroupVersionKind;
use ecp_meta::object;
use ecp_xr::event::Event;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::api::{Api, Kind};
use crate::limits::{
    EVENT_PATIENCE, EVENT_REPEAT, EVENTS_GATHERED, EVENTS_PER_OBJECT, EVENTS_QUEUED_MAX,
    EVENTS_REMEMBERED_MAX,
};
use crate::metrics::Metrics;

/// Writes Events in the background.
///
/// # Guarantees
/// An event that says the same about the same object is not repeated for a while. One object gets
/// no more than a burst of events, then a few an hour. Recording never waits.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    component: Arc<str>,
    controller: Option<Arc<str>>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    hasher: RandomState,
    sender: mpsc::Sender<Value>,
    metrics: Metrics,
}

#[derive(Debug, Default)]
struct State {
    told: BTreeMap<u64, Instant>,
    told_order: VecDeque<u64>,
    budgets: BTreeMap<String, Budget>,
    /// How many budgets there may be before those that are full again are looked for.
    budgets_max: usize,
    /// Events that wait for the thing to happen after all, by object.
    held: BTreeMap<String, Vec<(Instant, u64, Value)>>,
}

#[derive(Debug)]
struct Budget {
    left: u32,
    since: Instant,
}

impl Recorder {
    /// A recorder and the task that writes; it ends with `stop`.
    pub(crate) fn new(
        api: Api,
        metrics: Metrics,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (sender, receiver) = mpsc::channel(EVENTS_QUEUED_MAX);
        let recorder = Self {
            component: "crossplane".into(),
            controller: None,
            shared: Arc::new(Shared {
                state: Mutex::default(),
                hasher: RandomState::new(),
                sender,
                metrics: metrics.clone(),
            }),
        };
        let writer = write(
            api,
            metrics,
            Arc::downgrade(&recorder.shared),
            receiver,
            stop,
        );
        (recorder, writer)
    }

    /// The same recorder, in the name of a controller of Crossplane's core: the component that
    /// its Events come from.
    pub(crate) fn of_component(&self, name: &str) -> Self {
        Self {
            component: name.into(),
            controller: None,
            shared: Arc::clone(&self.shared),
        }
    }

    /// The same recorder, for one of the controllers that a component starts: its name is an
    /// annotation of its Events (core's `event.Recorder.WithAnnotations`).
    pub(crate) fn for_controller(&self, name: &str) -> Self {
        Self {
            component: Arc::clone(&self.component),
            controller: Some(name.into()),
            shared: Arc::clone(&self.shared),
        }
    }

    /// Tells something about an object.
    pub(crate) fn record(&self, about: &Value, event: &Event) {
        let id = self.identity(about, event);
        let mut state = self.shared.state.lock();
        if state.is_news(id, object::uid(about)) {
            drop(state);
            self.shared.send(self.to_json(about, event));
        }
    }

    /// Tells that something has not happened yet, unless it happens in the next seconds.
    pub(crate) fn record_later(&self, about: &Value, event: &Event) {
        let id = self.identity(about, event);
        let mut state = self.shared.state.lock();
        let held = state.held.entry(object::uid(about).to_owned()).or_default();
        if held.iter().all(|(_, other, _)| *other != id) && held.len() < 64 {
            let due = Instant::now() + EVENT_PATIENCE;
            held.push((due, id, self.to_json(about, event)));
        }
    }

    /// What was told to have not happened yet has happened, or nobody needs to know.
    pub(crate) fn withdraw(&self, uid: &str) {
        self.shared.state.lock().held.remove(uid);
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&self, uid: &str) {
        let mut state = self.shared.state.lock();
        state.held.remove(uid);
        state.budgets.remove(uid);
    }

    fn identity(&self, about: &Value, event: &Event) -> u64 {
        self.shared.hasher.hash_one((
            object::uid(about),
            event.kind.as_str(),
            &event.reason,
            &event.message,
        ))
    }

    fn to_json(&self, about: &Value, event: &Event) -> Value {
        let now = jiff::Timestamp::now();
        let seconds = crate::now();
        let name: String = object::name(about).chars().take(200).collect();
        let namespace = object::namespace(about).unwrap_or("default");
        let mut metadata = json!({
            "name": format!("{name}.{:x}{:04x}", now.as_nanosecond(), rand::random::<u16>()),
            "namespace": namespace,
        });
        if let Some(controller) = &self.controller {
            metadata["annotations"] = json!({"controller": &**controller});
        }
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": metadata,
            "involvedObject": {
                "apiVersion": about.get("apiVersion").cloned().unwrap_or_default(),
                "kind": about.get("kind").cloned().unwrap_or_default(),
                "name": object::name(about),
                "namespace": object::namespace(about).unwrap_or_default(),
                "uid": object::uid(about),
                "resourceVersion": object::resource_version(about),
            },
            "type": event.kind.as_str(),
            "reason": event.reason,
            "message": event.message.chars().take(1024).collect::<String>(),
            "source": {"component": &*self.component},
            "reportingComponent": &*self.component,
            "reportingInstance": "",
            "count": 1,
            "firstTimestamp": seconds,
            "lastTimestamp": seconds,
        })
    }
}

impl Shared {
    fn send(&self, event: Value) {
        if self.sender.try_send(event).is_err() {
            self.metrics.event_dropped();
        }
    }

    /// Sends the held events that are due.
    fn flush(&self) {
        let due: Vec<Value> = {
            let mut state = self.state.lock();
            let now = Instant::now();
            let mut due = Vec::new();
            for (uid, events) in std::mem::take(&mut state.held) {
                let mut rest = Vec::new();
                for (at, id, event) in events {
                    if at > now {
                        rest.push((at, id, event));
                    } else if state.is_news(id, &uid) {
                        due.push(event);
                    }
                }
                if !rest.is_empty() {
                    state.held.insert(uid, rest);
                }
            }
            due
        };
        for event in due {
            self.send(event);
        }
    }
}

impl State {
    fn is_news(&mut self, id: u64, uid: &str) -> bool {
        let now = Instant::now();
        if let Some(at) = self.told.get(&id)
            && now.duration_since(*at) < EVENT_REPEAT
        {
            return false;
        }
        if !self.has_budget(uid, now) {
            return false;
        }
        if self.told.insert(id, now).is_none() {
            self.told_order.push_back(id);
        }
        while self.told_order.len() > EVENTS_REMEMBERED_MAX {
            if let Some(oldest) = self.told_order.pop_front() {
                self.told.remove(&oldest);
            }
        }
        true
    }

    fn has_budget(&mut self, uid: &str, now: Instant) -> bool {
        let (burst, refill) = EVENTS_PER_OBJECT;
        if self.budgets.len() > self.budgets_max.max(EVENTS_REMEMBERED_MAX) {
            self.budgets
                .retain(|_, b| now.duration_since(b.since) < refill * burst);
            // Each look costs as much as there are: many objects must not mean a look per event.
            self.budgets_max = self.budgets.len() * 2;
        }
        let budget = self.budgets.entry(uid.to_owned()).or_insert(Budget {
            left: burst,
            since: now,
        });
        let earned = now.duration_since(budget.since).as_secs() / refill.as_secs();
        if earned > 0 {
            let earned = u32::try_from(earned).unwrap_or(u32::MAX);
            budget.left = budget.left.saturating_add(earned).min(burst);
            budget.since = now;
        }
        if budget.left == 0 {
            return false;
        }
        budget.left -= 1;
        true
    }
}

async fn write(
    api: Api,
    metrics: Metrics,
    shared: std::sync::Weak<Shared>,
    mut receiver: mpsc::Receiver<Value>,
    stop: CancellationToken,
) {
    let kind = Kind::new(GroupVersionKind::new("", "v1", "Event"), "events", true);
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (time, count) = EVENTS_GATHERED;
    let mut events = Vec::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = tick.tick() => {
                if let Some(shared) = shared.upgrade() {
                    shared.flush();
                }
                continue;
            }
            received = receiver.recv_many(&mut events, count) => {
                if received == 0 {
                    return;
                }
            }
        }
        tokio::time::sleep(time).await;
        while events.len() < count
            && let Ok(event) = receiver.try_recv()
        {
            events.push(event);
        }
        let written = events.drain(..).map(async |event| {
            metrics.wrote("event");
            if let Err(error) = api.create(&kind, &event).await {
                tracing::debug!(%error, reason = %event["reason"], "event not written");
            }
        });
        futures::future::join_all(written).await;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn recorder() -> (Recorder, mpsc::Receiver<Value>) {
        let (sender, receiver) = mpsc::channel(EVENTS_QUEUED_MAX);
        let recorder = Recorder {
            component: "test".into(),
            controller: None,
            shared: Arc::new(Shared {
                state: Mutex::default(),
                hasher: RandomState::new(),
                sender,
                metrics: Metrics::default(),
            }),
        };
        (recorder, receiver)
    }

    fn xr(uid: &str) -> Value {
        json!({"kind": "Disk", "metadata": {"name": "d", "namespace": "ns", "uid": uid}})
    }

    #[test]
    fn the_same_event_is_told_once() {
        let (recorder, mut receiver) = recorder();
        for _ in 0..3 {
            recorder.record(&xr("1"), &Event::normal("R", "m"));
        }
        recorder.record(&xr("1"), &Event::warning("R", "m"));
        recorder.record(&xr("2"), &Event::normal("R", "m"));
        let mut told = Vec::new();
        while let Ok(event) = receiver.try_recv() {
            told.push((
                event["type"].clone(),
                event["involvedObject"]["uid"].clone(),
            ));
        }
        assert_eq!(
            told,
            [("Normal", "1"), ("Warning", "1"), ("Normal", "2")].map(|(a, b)| (json!(a), json!(b)))
        );
    }

    #[test]
    fn an_object_has_a_budget() {
        let (recorder, mut receiver) = recorder();
        for n in 0..100 {
            recorder.record(&xr("1"), &Event::normal("R", format!("m{n}")));
        }
        let mut told = 0;
        while receiver.try_recv().is_ok() {
            told += 1;
        }
        assert_eq!(told, EVENTS_PER_OBJECT.0);
    }

    #[test]
    fn budgets_of_many_objects_are_looked_through_seldom() {
        let mut state = State::default();
        let now = Instant::now();
        let mut looks = BTreeSet::new();
        for n in 0..5 * EVENTS_REMEMBERED_MAX {
            assert!(state.has_budget(&n.to_string(), now));
            looks.insert(state.budgets_max);
        }
        assert_eq!(looks.len(), 4, "none, then at each doubling: {looks:?}");
    }

    #[test]
    fn what_happens_in_time_is_not_told_to_be_missing() {
        let (recorder, mut receiver) = recorder();
        recorder.record_later(&xr("1"), &Event::normal("R", "not yet"));
        recorder.shared.flush();
        recorder.withdraw("1");
        if let Some(held) = recorder.shared.state.lock().held.values_mut().next() {
            held.clear();
        }
        assert!(receiver.try_recv().is_err());
        recorder.record_later(&xr("1"), &Event::normal("R", "not yet"));
        recorder.record_later(&xr("1"), &Event::normal("R", "not yet"));
        for held in recorder.shared.state.lock().held.values_mut() {
            for entry in held {
                entry.0 = Instant::now();
            }
        }
        recorder.shared.flush();
        assert!(receiver.try_recv().is_ok());
        assert!(receiver.try_recv().is_err());
    }
}
