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
mod rules;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::error;

pub use error::{CloudError, OpenError};
use journal::{Entry, Journal};
pub use object::{ImageSpec, Kind, Object, Spec, State, VolumeSpec};
pub use settings::{Drift, Failure, Operation, Quota, Settings};

/// Tells the time in milliseconds since 1970.
pub type NowMs = Arc<dyn Fn() -> i64 + Send + Sync>;

/// The cloud. Clones are the same cloud.
#[derive(Clone)]
pub struct Cloud {
    now_ms: NowMs,
    state: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    objects: BTreeMap<String, Object>,
    /// Id by kind and tag.
    tags: BTreeMap<(Kind, String), String>,
    settings: BTreeMap<String, Settings>,
    /// Failures owed per account, so that a rate is kept without chance.
    owed: BTreeMap<String, f64>,
    journal: Option<Journal>,
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
        Self {
            now_ms,
            state: Arc::default(),
        }
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
        Ok(Self {
            now_ms,
            state: Arc::new(Mutex::new(inner)),
        })
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
        if inner.settings.get(account) == Some(settings) {
            return;
        }
        let mine = |o: &&Object| o.account == account;
        let ids: Vec<String> = inner
            .objects
            .values()
            .filter(mine)
            .map(|o| o.id.clone())
            .collect();
        for id in ids {
            inner.settle(&id, now);
        }
        inner.write(Entry::Set(account.into(), settings.clone()));
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
        let existing = inner.find(kind, tag, now);
        let object = match existing {
            Some(object) if object.state != State::Deleting => object,
            Some(object) => {
                let text = format!("{} {} is still being deleted", kind.noun(), object.id);
                return Err(CloudError::Busy(text));
            }
            None => {
                rules::may_create(&mut inner, account, &spec, now)?;
                let spec = rules::completed(&inner, spec);
                let object = rules::new_object(&inner, account, tag, spec, now);
                inner.write(Entry::Put(Box::new(object.clone())));
                // Without a delay it is there at once.
                inner.settle(&object.id, now).unwrap_or(object)
            }
        };
        lost.map_or(Ok(object), Err)
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
        Ok(inner.settle(id, now))
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
        Ok(inner.find(kind, tag, now))
    }

    /// Asks for a change: `spec` is what the object should be.
    ///
    /// # Errors
    /// There is no such object, or the cloud refuses or is out of order.
    pub fn update(&self, account: &str, id: &str, spec: Spec) -> Result<Object, CloudError> {
        let now = (self.now_ms)();
        let mut inner = self.state.lock();
        let lost = inner.inject(account, Operation::Update)?;
        let Some(old) = inner.settle(id, now) else {
            return Err(CloudError::NotFound(format!("{id} does not exist")));
        };
        rules::may_update(&inner, account, &old, &spec)?;
        let mut new = old;
        new.spec = spec;
        new.state = State::Updating;
        new.since_ms = now;
        inner.write(Entry::Put(Box::new(new.clone())));
        let object = inner.settle(id, now).unwrap_or(new);
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
        if let Some(mut object) = inner.settle(id, now)
            && object.state != State::Deleting
        {
            rules::may_delete(&mut inner, &object, now)?;
            object.state = State::Deleting;
            object.since_ms = now;
            inner.write(Entry::Put(Box::new(object)));
            inner.settle(id, now);
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
        let ids: Vec<String> = inner.objects.keys().cloned().collect();
        ids.iter().filter_map(|id| inner.settle(id, now)).collect()
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

impl Inner {
    fn replay(&mut self, entry: Entry) {
        match entry {
            Entry::Put(object) => {
                let tag = (object.spec.kind(), object.tag.clone());
                self.tags.insert(tag, object.id.clone());
                self.objects.insert(object.id.clone(), *object);
            }
            Entry::Gone(id) => {
                if let Some(object) = self.objects.remove(&id) {
                    let tag = (object.spec.kind(), object.tag);
                    if self.tags.get(&tag) == Some(&id) {
                        self.tags.remove(&tag);
                    }
                }
            }
            Entry::Set(account, settings) => {
                self.owed.remove(&account);
                self.settings.insert(account, settings);
            }
        }
    }

    fn write(&mut self, entry: Entry) {
        if let Some(journal) = &mut self.journal
            && let Err(e) = journal.append(&entry)
        {
            error!(error = %e, "the dummy cloud's journal cannot be written");
        }
        self.replay(entry);
        let live = self.objects.len() + self.settings.len();
        if self.journal.as_ref().is_some_and(|j| j.is_stale(live)) {
            self.compact();
        }
    }

    fn compact(&mut self) {
        let Some(journal) = &mut self.journal else {
            return;
        };
        let settings = self
            .settings
            .iter()
            .map(|(a, s)| Entry::Set(a.clone(), s.clone()));
        let objects = self
            .objects
            .values()
            .map(|o| Entry::Put(Box::new(o.clone())));
        let entries: Vec<Entry> = settings.chain(objects).collect();
        if let Err(e) = journal.rewrite(&entries) {
            error!(error = %e, "the dummy cloud's journal cannot be rewritten");
        }
    }

    fn settings(&self, account: &str) -> Settings {
        self.settings.get(account).cloned().unwrap_or_default()
    }

    fn offers(&self, account: &str, location: &str) -> bool {
        self.settings
            .get(account)
            .and_then(|s| s.locations.as_ref())
            .is_none_or(|offered| offered.iter().any(|l| l == location))
    }

    fn find(&mut self, kind: Kind, tag: &str, now: i64) -> Option<Object> {
        let id = self.tags.get(&(kind, tag.to_owned()))?.clone();
        self.settle(&id, now)
    }

    /// The failure that is due. `Err` fails before anything is done, `Ok(Some(_))` after.
    fn inject(
        &mut self,
        account: &str,
        operation: Operation,
    ) -> Result<Option<CloudError>, CloudError> {
        let Some(failure) = self.settings.get(account).and_then(|s| s.failure.clone()) else {
            return Ok(None);
        };
        if !failure.operations.contains(&operation) {
            return Ok(None);
        }
        let owed = self.owed.entry(account.into()).or_default();
        *owed += failure.rate.clamp(0.0, 1.0);
        if *owed < 1.0 {
            return Ok(None);
        }
        *owed -= 1.0;
        let error = if failure.permanent {
            CloudError::Refused(failure.message)
        } else {
            CloudError::Unavailable(failure.message)
        };
        if failure.reply_lost {
            Ok(Some(error))
        } else {
            Err(error)
        }
    }

    /// Brings an object to where it is now by the clock, and returns it if it is still there.
    fn settle(&mut self, id: &str, now: i64) -> Option<Object> {
        let object = self.objects.get(id)?;
        let settings = self.settings(&object.account);
        match rules::settled(object, &settings, now) {
            rules::Settled::Same => Some(object.clone()),
            rules::Settled::Changed(changed) => {
                self.write(Entry::Put(changed.clone()));
                Some(*changed)
            }
            rules::Settled::Gone => {
                self.write(Entry::Gone(id.into()));
                None
            }
        }
    }

    /// The objects of a kind, as last settled.
    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        let prefix = kind.prefix();
        self.objects
            .range(prefix.to_owned()..)
            .take_while(move |(id, _)| id.starts_with(prefix))
            .map(|(_, object)| object)
    }
}
