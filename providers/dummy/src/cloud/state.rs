//! Everything the cloud knows, and the indexes over it.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::broadcast;
use tracing::error;

use super::error::CloudError;
use super::journal::{Entry, Journal};
use super::object::{Kind, Object, Relations, State};
use super::relations;
use super::rules;
use super::settings::{Operation, Quota, Settings};
use crate::limits::CHANGES_QUEUED_MAX;

pub(super) struct Inner {
    pub(super) objects: BTreeMap<String, Object>,
    /// Id by account, kind and tag.
    tags: BTreeMap<(String, Kind, String), String>,
    /// Ids of the objects that refer to an id (or another text).
    users: BTreeMap<String, BTreeSet<String>>,
    /// When what is under way ends, in milliseconds since 1970.
    due: BTreeSet<(i64, String)>,
    settings: BTreeMap<String, Settings>,
    /// Failures owed per account, so that a rate is kept without chance.
    owed: BTreeMap<String, f64>,
    pub(super) journal: Option<Journal>,
    /// Tells ids of objects that changed without being asked to.
    pub(super) changes: broadcast::Sender<String>,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            tags: BTreeMap::new(),
            users: BTreeMap::new(),
            due: BTreeSet::new(),
            settings: BTreeMap::new(),
            owed: BTreeMap::new(),
            journal: None,
            changes: broadcast::Sender::new(CHANGES_QUEUED_MAX),
        }
    }
}

impl Inner {
    pub(super) fn replay(&mut self, entry: Entry) {
        match entry {
            Entry::Put(object) => {
                self.take_out(&object.id);
                self.put_in(*object);
            }
            Entry::Gone(id) => self.take_out(&id),
            Entry::Set(account, settings) => {
                self.owed.remove(&account);
                self.settings.insert(account.clone(), settings);
                self.due = self.objects.values().filter_map(|o| self.due(o)).collect();
            }
        }
    }

    fn put_in(&mut self, mut object: Object) {
        object.relations = Relations::default();
        let id = object.id.clone();
        self.tags.insert(tag_of(&object), id.clone());
        for reference in object.references() {
            let users = self.users.entry(reference.to_owned()).or_default();
            users.insert(id.clone());
        }
        self.due.extend(self.due(&object));
        self.objects.insert(id, object);
    }

    fn take_out(&mut self, id: &str) {
        let Some(object) = self.objects.remove(id) else {
            return;
        };
        if let Some(due) = self.due(&object) {
            self.due.remove(&due);
        }
        for reference in object.references() {
            if let Some(users) = self.users.get_mut(reference) {
                users.remove(id);
                if users.is_empty() {
                    self.users.remove(reference);
                }
            }
        }
        let tag = tag_of(&object);
        if self.tags.get(&tag).is_some_and(|tagged| tagged == id) {
            self.tags.remove(&tag);
        }
    }

    /// When what is under way with an object ends.
    fn due(&self, object: &Object) -> Option<(i64, String)> {
        let settings = self.settings.get(&object.account);
        let delay = |of: fn(&Settings) -> i64| match object.spec.kind().is_catalogue() {
            true => 0,
            false => settings.map_or(0, of),
        };
        let delay = match object.state {
            State::Active => return None,
            State::Creating => delay(|s| s.create_ms),
            State::Updating => delay(|s| s.update_ms),
            State::Deleting => delay(|s| s.delete_ms),
        };
        Some((object.since_ms.saturating_add(delay), object.id.clone()))
    }

    /// When the next thing that is under way ends.
    pub(super) fn next_due(&self) -> Option<i64> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Ends what has ended by the clock. `asked` is told about itself by an answer.
    pub(super) fn advance(&mut self, now: i64, asked: Option<&str>) {
        while let Some((at, id)) = self.due.first()
            && *at <= now
        {
            let id = id.clone();
            let Some(object) = self.objects.get(&id) else {
                return;
            };
            let entry = match rules::settled(object, now) {
                Some(done) => Entry::Put(Box::new(done)),
                None => Entry::Gone(id.clone()),
            };
            self.write(entry);
            if asked != Some(id.as_str()) {
                self.tell(id);
            }
        }
    }

    /// An object as it is now, if the account has it.
    pub(super) fn look(&mut self, account: &str, id: &str, now: i64) -> Option<Object> {
        self.advance(now, Some(id));
        let object = self.owned(account, id)?;
        if let Some(settings) = self.settings.get(account)
            && let Some(changed) = rules::drifted(object, settings, now)
        {
            self.write(Entry::Put(Box::new(changed)));
        }
        self.answer(id)
    }

    /// An object with what others make of it.
    pub(super) fn answer(&self, id: &str) -> Option<Object> {
        let mut object = self.objects.get(id)?.clone();
        object.relations = relations::of(self, &object);
        Some(object)
    }

    pub(super) fn find(
        &mut self,
        account: &str,
        kind: Kind,
        tag: &str,
        now: i64,
    ) -> Option<Object> {
        let tag = (account.to_owned(), kind, tag.to_owned());
        let id = self.tags.get(&tag)?.clone();
        self.look(account, &id, now)
    }

    pub(super) fn write(&mut self, entry: Entry) {
        if let Some(journal) = &mut self.journal
            && let Err(e) = journal.append(&entry)
        {
            error!(error = %e, "the dummy cloud's journal cannot be written");
        }
        let before: Vec<(String, Relations)> = match self.changes.receiver_count() {
            0 => Vec::new(),
            _ => relations::affected(self, &entry)
                .into_iter()
                .filter_map(|id| {
                    let relations = relations::of(self, self.objects.get(&id)?);
                    Some((id, relations))
                })
                .collect(),
        };
        self.replay(entry);
        for (id, before) in before {
            let now = self.objects.get(&id).map(|o| relations::of(self, o));
            if now.is_some_and(|now| now != before) {
                self.tell(id);
            }
        }
        let live = self.objects.len() + self.settings.len();
        if self.journal.as_ref().is_some_and(|j| j.is_stale(live)) {
            self.compact();
        }
    }

    fn tell(&self, id: String) {
        // Fails only when nobody listens.
        let _ = self.changes.send(id);
    }

    pub(super) fn compact(&mut self) {
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

    pub(super) fn has_settings(&self, account: &str, settings: &Settings) -> bool {
        self.settings.get(account) == Some(settings)
    }

    pub(super) fn quota(&self, account: &str) -> Quota {
        self.settings
            .get(account)
            .map(|s| s.quota)
            .unwrap_or_default()
    }

    pub(super) fn offers(&self, account: &str, location: &str) -> bool {
        self.settings
            .get(account)
            .and_then(|s| s.locations.as_ref())
            .is_none_or(|offered| offered.iter().any(|l| l == location))
    }

    /// The failure that is due. `Err` fails before anything is done, `Ok(Some(_))` after.
    pub(super) fn inject(
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

    /// An object, if the account has it.
    pub(super) fn owned(&self, account: &str, id: &str) -> Option<&Object> {
        self.objects.get(id).filter(|o| o.account == account)
    }

    /// The objects of the same account that refer to an object.
    pub(super) fn users_of<'a>(&'a self, object: &'a Object) -> impl Iterator<Item = &'a Object> {
        let ids = self.users.get(&object.id).into_iter().flatten();
        ids.filter_map(|id| self.owned(&object.account, id))
    }

    /// The objects of a kind.
    pub(super) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        let prefix = kind.prefix();
        self.objects
            .range(prefix.to_owned()..)
            .take_while(move |(id, _)| id.starts_with(prefix))
            .map(|(_, object)| object)
    }
}

fn tag_of(object: &Object) -> (String, Kind, String) {
    let kind = object.spec.kind();
    (object.account.clone(), kind, object.tag.clone())
}
