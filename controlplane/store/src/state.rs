//! The live set, recent history and watchers: everything a store keeps in memory.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};

use crate::api::{
    CommitError, Entry, Event, EventKind, Expect, ListRequest, ListResponse, Op, Revision,
    StoreError, Watch,
};
use crate::limits::{HISTORY_BYTES_MAX, HISTORY_EVENTS_MAX};
use crate::watch::Hub;

/// What a store keeps in memory. Everything visible here is durable.
#[derive(Debug, Default)]
pub(crate) struct State {
    live: RwLock<Live>,
    hub: Mutex<Hub>,
    closed: RwLock<Option<StoreError>>,
}

#[derive(Debug, Default)]
struct Live {
    entries: BTreeMap<Arc<str>, Stored>,
    revision: Revision,
    history: VecDeque<Arc<Event>>,
    history_bytes: usize,
    /// The oldest revision at which reads are possible, and after which watches can start.
    oldest: Revision,
}

#[derive(Clone, Debug)]
struct Stored {
    value: Bytes,
    created: Revision,
    modified: Revision,
}

impl Stored {
    fn entry(&self, key: &Arc<str>) -> Entry {
        Entry {
            key: key.clone(),
            value: self.value.clone(),
            created: self.created,
            modified: self.modified,
        }
    }
}

/// Commits that have been checked and given a revision, but are neither durable nor visible yet.
#[derive(Debug)]
pub(crate) struct Staged {
    next: Revision,
    overlay: HashMap<Arc<str>, Option<Entry>>,
    events: Vec<Arc<Event>>,
}

impl Staged {
    /// The events of all commits, in order.
    pub(crate) fn events(&self) -> &[Arc<Event>] {
        &self.events
    }

    /// The revision of the last commit.
    pub(crate) fn revision(&self) -> Revision {
        self.next
    }
}

impl State {
    /// A state with entries that were loaded from disk.
    pub(crate) fn loaded(entries: impl Iterator<Item = Entry>, revision: Revision) -> Self {
        let entries = entries
            .map(|e| {
                (
                    e.key,
                    Stored {
                        value: e.value,
                        created: e.created,
                        modified: e.modified,
                    },
                )
            })
            .collect();
        let live = Live {
            entries,
            revision,
            oldest: revision,
            ..Live::default()
        };
        Self {
            live: RwLock::new(live),
            ..Self::default()
        }
    }

    pub(crate) fn revision(&self) -> Revision {
        self.live.read().revision
    }

    pub(crate) fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.check_open()?;
        Ok(self.live.read().get(key))
    }

    pub(crate) fn list(&self, request: &ListRequest) -> Result<ListResponse, StoreError> {
        self.check_open()?;
        let live = self.live.read();
        let at = request.at.unwrap_or(live.revision);
        live.check_readable(at)?;
        let past = if at < live.revision {
            live.past(&request.prefix, at)
        } else {
            BTreeMap::new()
        };
        Ok(live.page(request, at, &past))
    }

    pub(crate) fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        self.check_open()?;
        let live = self.live.read();
        live.check_readable(after)?;
        let from = live.history.partition_point(|e| e.revision <= after);
        let replay = live
            .history
            .range(from..)
            .filter(|e| e.key.starts_with(prefix))
            .cloned()
            .collect();
        // Still under the read lock: no event can fall between the replay and the registration.
        let mut hub = self.hub.lock();
        // And under the hub's: a watch that comes after the others were ended would never end.
        self.check_open()?;
        Ok(hub.add(prefix, replay))
    }

    pub(crate) fn compact(&self, before: Revision) -> Result<(), StoreError> {
        let mut live = self.live.write();
        if before > live.revision {
            return Err(StoreError::Future {
                requested: before,
                current: live.revision,
            });
        }
        live.forget_before(before);
        Ok(())
    }

    /// Starts a batch of commits.
    pub(crate) fn stage(&self) -> Staged {
        Staged {
            next: self.revision(),
            overlay: HashMap::new(),
            events: Vec::new(),
        }
    }

    /// Checks one commit against what is visible and what is staged, and stages it.
    pub(crate) fn check(&self, staged: &mut Staged, ops: Vec<Op>) -> Result<Revision, CommitError> {
        self.check_open()?;
        let live = self.live.read();
        let revision = Revision(staged.next.0 + 1);
        let mut changes: Vec<(Arc<str>, Option<Entry>)> = Vec::with_capacity(ops.len());
        let mut events = Vec::with_capacity(ops.len());
        let mut seen = HashSet::with_capacity(ops.len());
        for op in ops {
            let (key, value, expect) = match op {
                Op::Put { key, value, expect } => (key, Some(value), expect),
                Op::Delete { key, expect } => (key, None, expect),
            };
            if !seen.insert(key.clone()) {
                return Err(CommitError::DuplicateKey(key));
            }
            let current = match staged.overlay.get(&key) {
                Some(overlaid) => overlaid.clone(),
                None => live.get(&key),
            };
            let holds = match expect {
                Expect::Any => true,
                Expect::Absent => current.is_none(),
                Expect::Modified(r) => current.as_ref().is_some_and(|e| e.modified == r),
            };
            if !holds {
                return Err(CommitError::Precondition { key, current });
            }
            if value.is_none() && current.is_none() {
                continue;
            }
            let entry = value.map(|value| Entry {
                key: key.clone(),
                value,
                created: current.as_ref().map_or(revision, |e| e.created),
                modified: revision,
            });
            events.push(Arc::new(Event {
                kind: if entry.is_some() {
                    EventKind::Put
                } else {
                    EventKind::Delete
                },
                key: key.clone(),
                revision,
                value: entry.as_ref().map(|e| e.value.clone()).unwrap_or_default(),
                previous: current,
            }));
            changes.push((key, entry));
        }
        if events.is_empty() {
            return Ok(staged.next);
        }
        staged.next = revision;
        staged.overlay.extend(changes);
        staged.events.extend(events);
        Ok(revision)
    }

    /// Makes staged commits visible and tells the watchers.
    pub(crate) fn publish(&self, staged: Staged) {
        let mut live = self.live.write();
        for (key, entry) in staged.overlay {
            match entry {
                Some(Entry {
                    value,
                    created,
                    modified,
                    ..
                }) => {
                    live.entries.insert(
                        key,
                        Stored {
                            value,
                            created,
                            modified,
                        },
                    );
                }
                None => {
                    live.entries.remove(&key);
                }
            }
        }
        live.revision = staged.next;
        let mut hub = self.hub.lock();
        for event in staged.events {
            hub.dispatch(&event);
            live.remember(event);
        }
    }

    /// Refuses everything from now on, and ends all watches.
    pub(crate) fn close(&self, reason: StoreError) {
        self.closed.write().get_or_insert(reason);
        self.hub.lock().clear();
    }

    pub(crate) fn check_open(&self) -> Result<(), StoreError> {
        self.closed.read().clone().map_or(Ok(()), Err)
    }
}

impl Live {
    fn get(&self, key: &str) -> Option<Entry> {
        self.entries.get_key_value(key).map(|(k, s)| s.entry(k))
    }

    fn check_readable(&self, at: Revision) -> Result<(), StoreError> {
        if at > self.revision {
            return Err(StoreError::Future {
                requested: at,
                current: self.revision,
            });
        }
        if at < self.oldest {
            return Err(StoreError::Compacted {
                requested: at,
                oldest: self.oldest,
            });
        }
        Ok(())
    }

    /// What keys under a prefix held at an older revision, where that differs from now.
    fn past(&self, prefix: &str, at: Revision) -> BTreeMap<Arc<str>, Option<Entry>> {
        let from = self.history.partition_point(|e| e.revision <= at);
        let mut past = BTreeMap::new();
        for event in self
            .history
            .range(from..)
            .filter(|e| e.key.starts_with(prefix))
        {
            // The first event after `at` knows what was there before.
            past.entry(event.key.clone())
                .or_insert_with(|| event.previous.clone());
        }
        past
    }

    fn page(
        &self,
        request: &ListRequest,
        revision: Revision,
        past: &BTreeMap<Arc<str>, Option<Entry>>,
    ) -> ListResponse {
        let start = match &request.after {
            Some(after) if after.as_str() >= request.prefix.as_str() => {
                Bound::Excluded(after.as_str())
            }
            _ => Bound::Included(request.prefix.as_str()),
        };
        let range = (start, Bound::Unbounded);
        let now = self
            .entries
            .range::<str, _>(range)
            .take_while(|(k, _)| k.starts_with(request.prefix.as_str()))
            .filter(|(k, _)| past.is_empty() || !past.contains_key(*k))
            .map(|(k, s)| Either::Now(k, s));
        let then = past
            .range::<str, _>(range)
            .filter_map(|(_, e)| e.as_ref())
            .map(Either::Then);
        let limit = if request.limit == 0 {
            usize::MAX
        } else {
            request.limit
        };
        let (mut entries, mut remaining) = (Vec::new(), 0);
        for item in merge_by_key(now, then) {
            if entries.len() < limit {
                entries.push(item.into_entry());
            } else {
                remaining += 1;
            }
        }
        ListResponse {
            entries,
            revision,
            remaining,
        }
    }

    fn remember(&mut self, event: Arc<Event>) {
        self.history_bytes += event.size();
        self.history.push_back(event);
        while self.history.len() > HISTORY_EVENTS_MAX || self.history_bytes > HISTORY_BYTES_MAX {
            let Some(first) = self.history.front() else {
                break;
            };
            self.forget_before(first.revision);
        }
    }

    /// Drops the events that lead up to `before`, which itself stays readable.
    fn forget_before(&mut self, before: Revision) {
        self.oldest = self.oldest.max(before);
        while let Some(event) = self.history.pop_front_if(|e| e.revision <= self.oldest) {
            self.history_bytes -= event.size();
        }
    }
}

enum Either<'a> {
    Now(&'a Arc<str>, &'a Stored),
    Then(&'a Entry),
}

impl Either<'_> {
    fn key(&self) -> &str {
        match self {
            Self::Now(k, _) => k,
            Self::Then(e) => &e.key,
        }
    }

    fn into_entry(self) -> Entry {
        match self {
            Self::Now(k, s) => s.entry(k),
            Self::Then(e) => e.clone(),
        }
    }
}

/// Merges two key-ordered runs that have no key in common.
fn merge_by_key<'a>(
    a: impl Iterator<Item = Either<'a>>,
    b: impl Iterator<Item = Either<'a>>,
) -> impl Iterator<Item = Either<'a>> {
    let (mut a, mut b) = (a.peekable(), b.peekable());
    std::iter::from_fn(move || match (a.peek(), b.peek()) {
        (Some(x), Some(y)) if x.key() <= y.key() => a.next(),
        (Some(_), Some(_)) | (None, Some(_)) => b.next(),
        _ => a.next(),
    })
}
