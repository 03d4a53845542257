//! Ownership of what is written otherwise than by server-side apply.

use std::borrow::Cow;

use serde_json::Value;

use crate::apply::{Manager, Typing};
use crate::managed::{
    EMPTY, Managed, Operation, UNOWNED, disown, managed_fields, reconcile_owners,
    set_managed_fields, take_managed_fields,
};
use crate::typed::compare;
use crate::types::Type;

/// Records in `new` what a create (`live` absent), update or patch changed: the manager owns what
/// it added or modified, and other managers lose it.
///
/// `metadata.managedFields` of `new` is taken as the client sent it: `[{}]` resets, an undecodable
/// value keeps the old.
pub fn track_update(
    live: Option<&Value>,
    new: &mut Value,
    manager: &Manager<'_>,
    typing: Typing<'_>,
) {
    let sent = take_managed_fields(new);
    let base = live.unwrap_or(&EMPTY);
    let stored = managed_fields(base);
    // A subresource has no say in who owns the object.
    let source = match &sent {
        Some(sent) if manager.subresource.is_empty() => Source::of(sent, stored),
        _ => Source::stored(stored),
    };
    // Who stopped tracking an object, by a reset, does not start again until somebody applies.
    if source.managed.owners.is_empty() && live.is_some() {
        return;
    }
    let encoded = updated(base, new, manager, Type::of(typing), source);
    set_managed_fields(new, encoded);
}

/// The owners an update starts from.
struct Source<'a> {
    managed: Managed<'a>,
    /// The JSON they were read from.
    encoded: Option<&'a Value>,
}

impl<'a> Source<'a> {
    fn of(sent: &'a Value, stored: Option<&'a Value>) -> Self {
        if is_reset(sent) {
            return Self {
                managed: Managed::default(),
                encoded: None,
            };
        }
        match Managed::decode(Some(sent)) {
            Ok(managed) if !managed.owners.is_empty() => Self {
                managed,
                encoded: Some(sent),
            },
            // Clients that do not know the field must not delete it by accident.
            _ => Self::stored(stored),
        }
    }

    fn stored(stored: Option<&'a Value>) -> Self {
        Self {
            managed: Managed::decode(stored).unwrap_or_default(),
            encoded: stored,
        }
    }
}

/// Whether a client asks for all ownership to be dropped: `[]` or `[{}]`.
fn is_reset(sent: &Value) -> bool {
    let Value::Array(entries) = sent else {
        return false;
    };
    match entries.as_slice() {
        [] => true,
        [Value::Object(entry)] => entry
            .values()
            .all(|value| value.is_null() || value.as_str() == Some("")),
        _ => false,
    }
}

fn updated<'a>(
    base: &'a Value,
    new: &'a Value,
    manager: &Manager<'a>,
    ty: Type<'a>,
    source: Source<'a>,
) -> Option<Value> {
    let Source {
        mut managed,
        encoded,
    } = source;
    let mut owners_changed = reconcile_owners(&mut managed, ty);
    let changes = compare(ty, base, new);
    owners_changed |= disown(&mut managed, &changes);
    let taken = changes.changed.difference(&UNOWNED);
    if !taken.is_empty() {
        let id = manager.identity(Operation::Update);
        let fields = match managed.owners.remove(&id) {
            Some(before) => taken.union(&before.fields),
            None => taken,
        };
        let owned = manager.owns(fields, Some(Cow::Borrowed(manager.now)));
        managed.owners.insert(id, owned);
        owners_changed = true;
    }
    let stored = managed_fields(base);
    if !owners_changed && encoded == stored {
        return stored.cloned();
    }
    managed.cap_updates();
    managed.encode()
}
