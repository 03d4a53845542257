//! What the cloud allows, and what it chooses.
//!
//! Each kind implements [`Rules`]; what they have in common is here. A reference is checked when
//! it is made: what is gone later does not stand in the way of other changes.

mod catalogue;
mod machine;
mod network;
mod ranges;
mod security;
mod storage;

use super::error::CloudError;
use super::object::{Choices, Kind, Object, Spec, SpecOf, State, on_spec};
use super::state::Inner;
pub(super) use storage::drifted;

/// What one kind allows and chooses.
pub(super) trait Rules: Sized {
    /// Ids and other texts by which it refers to others.
    fn references(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Whether an object may be made like this, or changed from `old`.
    fn check(&self, ask: &Ask<'_>, old: Option<&Self>) -> Result<(), CloudError>;

    /// Chooses what the cloud has to. `choices` are those for `old`.
    fn choose(
        &mut self,
        ask: &Ask<'_>,
        old: Option<&Self>,
        choices: &mut Choices,
    ) -> Result<(), CloudError> {
        let _ = (ask, old, choices);
        Ok(())
    }
}

/// A new object with an id of its own, if the cloud allows it.
pub(super) fn made(
    inner: &Inner,
    account: &str,
    tag: &str,
    mut spec: Spec,
    now: i64,
) -> Result<Object, CloudError> {
    let location = spec.location().to_owned();
    if !inner.offers(account, &location) {
        return refuse(format!("location {location:?} is not offered"));
    }
    let ask = Ask {
        inner,
        account,
        location,
        me: None,
    };
    let mut choices = Choices::default();
    on_spec!(&mut spec, spec => {
        spec.check(&ask, None)?;
        spec.choose(&ask, None, &mut choices)?;
    });
    let unique = uuid::Uuid::new_v4().simple().to_string();
    let size_gb = match &spec {
        Spec::Volume(volume) => Some(volume.size_gb),
        _ => None,
    };
    Ok(Object {
        id: format!("{}{}", spec.kind().prefix(), &unique[..16]),
        tag: tag.into(),
        account: account.into(),
        size_gb,
        size_mb: storage::image_size_mb(inner, &spec),
        spec,
        was: None,
        state: State::Creating,
        since_ms: now,
        made_ms: now,
        choices,
        drifted_ms: now,
        relations: Default::default(),
    })
}

/// An object on its way to what `spec` says, if the cloud allows it.
pub(super) fn changed(
    inner: &Inner,
    old: &Object,
    mut spec: Spec,
    now: i64,
) -> Result<Object, CloudError> {
    not_on_its_way(old)?;
    let ask = Ask {
        inner,
        account: &old.account,
        location: old.spec.location().to_owned(),
        me: Some(old),
    };
    ask.fixed("kind", &old.spec.kind(), &spec.kind())?;
    ask.fixed("location", old.spec.location(), spec.location())?;
    let mut choices = old.choices.clone();
    on_spec!(&mut spec, spec => {
        let before = SpecOf::of(&old.spec);
        spec.check(&ask, before)?;
        spec.choose(&ask, before, &mut choices)?;
    });
    let mut new = old.clone();
    new.was = old.in_force().cloned();
    new.size_mb = old.size_mb.or_else(|| storage::image_size_mb(inner, &spec));
    new.spec = spec;
    new.choices = choices;
    new.state = State::Updating;
    new.since_ms = now;
    Ok(new)
}

/// An object whose time has come: `None` when it is gone.
pub(super) fn settled(object: &Object, now: i64) -> Option<Object> {
    if object.state == State::Deleting {
        return None;
    }
    let mut done = object.clone();
    done.state = State::Active;
    done.since_ms = now;
    done.drifted_ms = now;
    match &object.spec {
        Spec::Volume(volume) => done.size_gb = Some(volume.size_gb),
        Spec::Machine(machine) => machine::switch(machine, object, &mut done.choices, now),
        _ => {}
    }
    done.was = None;
    Some(done)
}

/// Whether an object may be removed.
pub(super) fn may_delete(inner: &Inner, object: &Object) -> Result<(), CloudError> {
    let (noun, id) = (object.spec.kind().noun(), &object.id);
    let users: Vec<&Object> = inner.users_of(object).collect();
    let first = |kinds: &[Kind]| {
        let mut users = users.iter();
        users.find(|user| kinds.contains(&user.spec.kind()))
    };
    let blocking = match object.spec.kind() {
        Kind::Project => {
            return match users.first() {
                None => Ok(()),
                Some(first) => Err(CloudError::Busy(format!(
                    "project {id} is not empty: {} objects, {} among them",
                    users.len(),
                    first.id
                ))),
            };
        }
        Kind::Volume | Kind::Image => {
            // A copy needs its source only while it is made.
            let copied = |user: &&&Object| {
                matches!(user.spec.kind(), Kind::Volume | Kind::Image)
                    && !user
                        .in_force()
                        .is_some_and(|s| s.references().contains(&id.as_str()))
            };
            if let Some(copy) = users.iter().find(copied) {
                let text = format!("{noun} {id} is being copied to {}", copy.id);
                return Err(CloudError::Busy(text));
            }
            first(&[Kind::Machine])
        }
        Kind::NetworkInterface => first(&[Kind::Machine]),
        Kind::Subnet => first(&[Kind::NetworkInterface]),
        Kind::Network => first(&[Kind::Subnet, Kind::RouteTable]),
        Kind::Location
        | Kind::VolumeType
        | Kind::MachineType
        | Kind::NetworkType
        | Kind::RouteTable
        | Kind::Gateway
        | Kind::PublicAddress
        | Kind::SecurityGroup
        | Kind::SecurityRule
        | Kind::Machine => None,
    };
    match blocking {
        None => Ok(()),
        Some(user) => Err(CloudError::Busy(format!(
            "{noun} {id} is in use by {} {}",
            user.spec.kind().noun(),
            user.id
        ))),
    }
}

/// What is being decided.
pub(super) struct Ask<'a> {
    inner: &'a Inner,
    account: &'a str,
    location: String,
    /// The object to be changed.
    me: Option<&'a Object>,
}

impl<'a> Ask<'a> {
    /// An object that is needed: there, of the right kind, in the right place, and not on its way.
    fn usable(&self, kind: Kind, id: &str) -> Result<&'a Object, CloudError> {
        let noun = kind.noun();
        let Some(object) = self.inner.owned(self.account, id) else {
            return Err(CloudError::NotFound(format!("{noun} {id} does not exist")));
        };
        self.right(object, &[kind])?;
        not_on_its_way(object)?;
        Ok(object)
    }

    /// Checks references that `old` does not have to objects that are needed.
    fn needs<'s>(
        &self,
        kind: Kind,
        new: impl IntoIterator<Item = &'s String>,
        old: impl IntoIterator<Item = &'s String>,
    ) -> Result<(), CloudError> {
        let old: Vec<&String> = old.into_iter().collect();
        for id in new {
            if !old.contains(&id) {
                self.usable(kind, id)?;
            }
        }
        Ok(())
    }

    /// Checks a reference to something that may be missing.
    fn tolerates(&self, kinds: &[Kind], id: &str) -> Result<(), CloudError> {
        match self.inner.owned(self.account, id) {
            Some(object) => self.right(object, kinds),
            None => Ok(()),
        }
    }

    fn right(&self, object: &Object, kinds: &[Kind]) -> Result<(), CloudError> {
        let (kind, id) = (object.spec.kind(), &object.id);
        if !kinds.contains(&kind) {
            let nouns: Vec<&str> = kinds.iter().map(|k| k.noun()).collect();
            return refuse(format!(
                "{id} is a {}, not a {}",
                kind.noun(),
                nouns.join(" or ")
            ));
        }
        if object.spec.location() != self.location {
            return refuse(format!(
                "{} {id} is not in location {:?}",
                kind.noun(),
                self.location
            ));
        }
        Ok(())
    }

    /// Checks that something stays as it is.
    fn fixed<T: PartialEq + ?Sized>(&self, what: &str, old: &T, new: &T) -> Result<(), CloudError> {
        match self.me {
            Some(me) if old != new => refuse(format!(
                "the {what} of {} {} cannot be changed",
                me.spec.kind().noun(),
                me.id
            )),
            _ => Ok(()),
        }
    }

    /// Checks the project, which cannot be changed.
    fn project(
        &self,
        new: &Option<String>,
        old: Option<&Option<String>>,
    ) -> Result<(), CloudError> {
        match old {
            Some(old) => self.fixed("project", old, new),
            None => self.needs(Kind::Project, new, []),
        }
    }

    /// Other objects that refer to this one.
    fn users_of(&self, object: &'a Object) -> impl Iterator<Item = &'a Object> {
        let me = self.me.map(|me| me.id.as_str());
        let users = self.inner.users_of(object);
        users.filter(move |user| Some(user.id.as_str()) != me)
    }
}

fn not_on_its_way(object: &Object) -> Result<(), CloudError> {
    if object.is_usable() {
        return Ok(());
    }
    let (noun, state) = (object.spec.kind().noun(), object.state.as_str());
    Err(CloudError::Busy(format!("{noun} {} is {state}", object.id)))
}

fn refuse<T>(text: impl Into<String>) -> Result<T, CloudError> {
    Err(CloudError::Refused(text.into()))
}

/// Refuses unless something holds.
fn require(holds: bool, text: impl FnOnce() -> String) -> Result<(), CloudError> {
    if holds { Ok(()) } else { refuse(text()) }
}
