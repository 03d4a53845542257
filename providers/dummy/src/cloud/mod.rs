//! A simulated cloud: what a real one's API would be, without the network.
//!
//! It chooses ids, works asynchronously (by the clock, with delays that are set per account),
//! knows clients' tags, refuses what a cloud refuses, and can be told to fail and to change
//! things by itself. It survives a restart when it is given a directory.
//!
//! Invariant: knows nothing of Kubernetes or managed resources.

mod error;
mod journal;
mod object;
mod relations;
mod rules;
mod settings;
pub mod specs;
mod state;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast};

pub use error::{CloudError, OpenError};
use journal::{Entry, Journal};
pub use object::{Attached, Choices, Kind, Object, Part, Relations, Spec, SpecOf, State};
pub use settings::{Drift, Failure, Operation, Quota, Settings};
use state::Inner;

/// Tells the time in milliseconds since 1970.
pub type NowMs = Arc<dyn Fn() -> i64 + Send + Sync>;

/// The cloud. Clones are the same cloud.
#[derive(Clone)]
pub struct Cloud {
    now_ms: NowMs,
    state: Arc<Mutex<Inner>>,
    /// Something was begun, or takes another time.
    begun: Arc<Notify>,
}

impl fmt::Debug for Cloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.state.lock();
        f.debug_struct("Cloud")
            .field("objects", &inner.objects.len())
            .field("durable", &inner.journal.is_some())
            .finish_non_exhaustive()
    }
}

impl Cloud {
    /// A cloud that forgets everything when it is dropped.
    pub fn in_memory(now_ms: NowMs) -> Self {
        Self::new(now_ms, Inner::default())
    }

    /// A cloud that keeps what it knows in a directory.
    ///
    /// # Errors
    /// The directory cannot be used, is in use, or its contents are damaged.
    pub fn open(dir: &Path, now_ms: NowMs) -> Result<Self, OpenError> {
        let (journal, entries) = Journal::open(dir)?;
        let mut inner = Inner::default();
        for entry in entries {
            inner.replay(entry);
        }
        inner.journal = Some(journal);
        inner.compact();
        Ok(Self::new(now_ms, inner))
    }

    fn new(now_ms: NowMs, inner: Inner) -> Self {
        Self {
            now_ms,
            state: Arc::new(Mutex::new(inner)),
            begun: Arc::default(),
        }
    }

    /// The wall clock.
    pub fn wall_clock() -> NowMs {
        Arc::new(|| jiff::Timestamp::now().as_millisecond())
    }

    /// Makes the cloud behave like this towards an account, from now on. What is under way takes
    /// the new time; what has ended has ended.
    pub fn configure(&self, account: &str, settings: &Settings) {
        let now = (self.now_ms)();
        let mut inner = self.state.lock();
        if inner.has_settings(account, settings) {
            return;
        }
        inner.advance(now, None);
        inner.write(Entry::Set(account.into(), settings.clone()));
        self.begun.notify_one();
    }

    /// Ends what is under way when its time comes, also when nobody looks. Never returns; dropping
    /// the future loses nothing.
    pub async fn run(&self) {
        loop {
            let begun = self.begun.notified();
            let now = (self.now_ms)();
            let due = {
                let mut inner = self.state.lock();
                inner.advance(now, None);
                inner.next_due()
            };
            let Some(due) = due else {
                begun.await;
                continue;
            };
            let delay = u64::try_from(due.saturating_sub(now)).unwrap_or(0).max(1);
            tokio::select! {
                () = begun => {}
                () = tokio::time::sleep(Duration::from_millis(delay)) => {}
            }
        }
    }

    /// Ids of objects that change, from now on, without being asked to by a call about them: their
    /// time came, or another object changed.
    pub fn changes(&self) -> broadcast::Receiver<String> {
        self.state.lock().changes.subscribe()
    }

    /// Asks for a new object. A second call with the same kind and tag answers with the first
    /// one's object.
    ///
    /// # Errors
    /// The cloud refuses, or is out of order.
    pub fn create(&self, account: &str, tag: &str, spec: Spec) -> Result<Object, CloudError> {
        let now = (self.now_ms)();
        let mut inner = self.state.lock();
        let lost = inner.inject(account, Operation::Create)?;
        let kind = spec.kind();
        inner.advance(now, None);
        let object = match inner.find(account, kind, tag, now) {
            Some(object) if object.state != State::Deleting => object,
            Some(object) => {
                let text = format!("{} {} is still being deleted", kind.noun(), object.id);
                return Err(CloudError::Busy(text));
            }
            None => {
                let object = rules::made(&inner, account, tag, spec, now)?;
                self.put(&mut inner, object, now)
            }
        };
        lost.map_or(Ok(object), Err)
    }

    /// Writes an object on which something is begun. Without a delay it is done at once.
    fn put(&self, inner: &mut Inner, object: Object, now: i64) -> Object {
        inner.write(Entry::Put(Box::new(object.clone())));
        inner.advance(now, Some(&object.id));
        self.begun.notify_one();
        inner.answer(&object.id).unwrap_or(object)
    }

    /// One object, or `None` when there is none.
    ///
    /// # Errors
    /// The cloud is out of order.
    pub fn get(&self, account: &str, id: &str) -> Result<Option<Object>, CloudError> {
        let now = (self.now_ms)();
        let mut inner = self.state.lock();
        if let Some(lost) = inner.inject(account, Operation::Observe)? {
            return Err(lost);
        }
        Ok(inner.look(account, id, now))
    }

    /// The object that a client made with a tag, if it is there.
    ///
    /// # Errors
    /// The cloud is out of order.
    pub fn find(&self, account: &str, kind: Kind, tag: &str) -> Result<Option<Object>, CloudError> {
        let now = (self.now_ms)();
        let mut inner = self.state.lock();
        if let Some(lost) = inner.inject(account, Operation::Observe)? {
            return Err(lost);
        }
        Ok(inner.find(account, kind, tag, now))
    }

    /// Asks for a change: `spec` is what the object should be.
    ///
    /// # Errors
    /// There is no such object, or the cloud refuses or is out of order.
    pub fn update(&self, account: &str, id: &str, spec: Spec) -> Result<Object, CloudError> {
        let now = (self.now_ms)();
        let mut inner = self.state.lock();
        let lost = inner.inject(account, Operation::Update)?;
        let Some(old) = inner.look(account, id, now) else {
            return Err(CloudError::NotFound(format!("{id} does not exist")));
        };
        let new = rules::changed(&inner, &old, spec, now)?;
        let object = self.put(&mut inner, new, now);
        lost.map_or(Ok(object), Err)
    }

    /// Asks for a removal. What is gone, or going, is no error.
    ///
    /// # Errors
    /// The object is in use, or the cloud is out of order.
    pub fn delete(&self, account: &str, id: &str) -> Result<(), CloudError> {
        let now = (self.now_ms)();
        let mut inner = self.state.lock();
        let lost = inner.inject(account, Operation::Delete)?;
        if let Some(mut object) = inner.look(account, id, now)
            && object.state != State::Deleting
        {
            rules::may_delete(&inner, &object)?;
            object.state = State::Deleting;
            object.since_ms = now;
            self.put(&mut inner, object, now);
        }
        lost.map_or(Ok(()), Err)
    }

    /// Whether a location is on offer to an account.
    pub fn offers(&self, account: &str, location: &str) -> bool {
        self.state.lock().offers(account, location)
    }

    /// Everything there is, for inspection: no failure is injected.
    pub fn list_all(&self) -> Vec<Object> {
        let now = (self.now_ms)();
        let mut inner = self.state.lock();
        let keys = |o: &Object| (o.account.clone(), o.id.clone());
        let all: Vec<(String, String)> = inner.objects.values().map(keys).collect();
        let mut look = |(account, id): &(String, String)| inner.look(account, id, now);
        all.iter().filter_map(&mut look).collect()
    }

    /// How many objects of each kind there are, for inspection.
    pub fn counts(&self) -> BTreeMap<Kind, usize> {
        let mut counts = BTreeMap::new();
        for object in self.list_all() {
            *counts.entry(object.spec.kind()).or_default() += 1;
        }
        counts
    }

    /// Changes or removes an object behind everybody's back, as a person in the cloud's console
    /// would: for tests of repair.
    pub fn meddle(&self, id: &str, change: impl FnOnce(Object) -> Option<Object>) {
        let mut inner = self.state.lock();
        let Some(object) = inner.objects.get(id).cloned() else {
            return;
        };
        match change(object) {
            Some(object) => inner.write(Entry::Put(Box::new(object))),
            None => inner.write(Entry::Gone(id.into())),
        }
    }
}
