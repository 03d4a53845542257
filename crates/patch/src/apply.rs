//! Server-side apply and field ownership (`metadata.managedFields`).
//!
//! The rules are those of apimachinery's `managedfields` and structured-merge-diff's `merge`.

use std::borrow::Cow;

use ecp_schema::Node;
use serde_json::Value;

use crate::fieldset::{FieldSet, path_text};
use crate::last_applied;
use crate::managed::{
    EMPTY, Identity, Managed, Operation, Owned, UNOWNED, disown, managed_fields, reconcile_owners,
    set_managed_fields,
};
use crate::path::same;
use crate::typed::{Changes, Emptied, check, compare, fields, merge, remove, with_named_fields};
use crate::types::Type;

/// Owner of what an object held before it was first applied.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// How lists and maps of an object merge.
///
/// `metadata` of the object itself and of embedded resources always has its built-in type.
#[derive(Clone, Copy, Debug)]
pub enum Typing<'a> {
    /// By a structural schema.
    Schema(&'a Node),
    /// Deduced from the value: maps granular, lists atomic.
    Deduced,
}

/// Who writes.
#[derive(Clone, Copy, Debug)]
pub struct Manager<'a> {
    /// Field manager.
    pub name: &'a str,
    /// Subresource written through: `""`, `status`, ...
    pub subresource: &'a str,
    /// The `apiVersion` of the request.
    pub api_version: &'a str,
    /// RFC 3339 time for entries whose set of fields changes.
    pub now: &'a str,
}

impl<'a> Manager<'a> {
    pub(crate) fn identity(&self, operation: Operation) -> Identity<'a> {
        let name = if self.name.is_empty() {
            "unknown"
        } else {
            self.name
        };
        Identity::new(name, operation, self.api_version, self.subresource)
    }

    pub(crate) fn owns(&self, fields: FieldSet<'a>, time: Option<Cow<'a, str>>) -> Owned<'a> {
        Owned {
            api_version: Cow::Borrowed(self.api_version),
            time,
            fields,
        }
    }
}

/// A field that another manager owns with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Path in Kubernetes' notation, such as `.spec.replicas`.
    pub field: String,
    /// `conflict with "kubectl" using apps/v1`.
    pub message: String,
}

/// Why an apply was refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ApplyError {
    /// Other managers own fields that the apply would change.
    #[error("{}", conflict_message(.0))]
    Conflicts(Vec<Conflict>),
    /// The applied object is malformed, such as duplicate keys in a keyed list.
    #[error("{field}: {reason}")]
    Invalid {
        /// Path.
        field: String,
        /// What is wrong.
        reason: String,
    },
}

/// The message of the `Status` that reports conflicts, in kube-apiserver's words.
pub fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [conflict] = conflicts {
        return format!(
            "Apply failed with 1 conflict: {}: {}",
            conflict.message, conflict.field
        );
    }
    let mut lines = Vec::new();
    let mut last = None;
    for conflict in conflicts {
        if last != Some(&conflict.message) {
            let with = conflict
                .message
                .strip_prefix("conflict ")
                .unwrap_or(&conflict.message);
            lines.push(format!("conflicts {with}:"));
            last = Some(&conflict.message);
        }
        lines.push(format!("- {}", conflict.field));
    }
    format!(
        "Apply failed with {} conflicts: {}",
        conflicts.len(),
        lines.join("\n")
    )
}

/// Applies `config` to `live` (`None` creates) and returns the merged object with its
/// `managedFields`.
///
/// `config` must hold `apiVersion`, `kind` and no `managedFields`. A merge that changes nothing
/// returns `live` as it is. `force` moves ownership instead of failing.
///
/// # Errors
/// See [`ApplyError`].
pub fn apply(
    live: Option<&Value>,
    config: &Value,
    manager: &Manager<'_>,
    force: bool,
    typing: Typing<'_>,
) -> Result<Value, ApplyError> {
    let ty = Type::of(typing);
    check_config(ty, config)?;
    let kubectl = manager.name == last_applied::KUBECTL;
    let mut result = apply_typed(live, config, manager, force, ty);
    if kubectl
        && let Err(Refusal::Conflicts(conflicts)) = &result
        && let Some(allowed) =
            live.and_then(|live| last_applied::owned(ty, live, manager.api_version))
    {
        let rest: Vec<_> = conflicts
            .iter()
            .map(|(id, fields)| (id.clone(), fields.difference(&allowed)))
            .filter(|(_, fields)| !fields.is_empty())
            .collect();
        result = if rest.is_empty() {
            apply_typed(live, config, manager, true, ty)
        } else {
            Err(Refusal::Conflicts(rest))
        };
    }
    let mut object = result.map_err(Refusal::into_error)?;
    if kubectl {
        last_applied::record(&mut object, config);
    }
    Ok(object)
}

fn check_config(ty: Type<'_>, config: &Value) -> Result<(), ApplyError> {
    let invalid = |field: &str, reason: &str| ApplyError::Invalid {
        field: field.to_owned(),
        reason: reason.to_owned(),
    };
    if !config.is_object() {
        return Err(invalid(".", "must be an object"));
    }
    match config.get("metadata") {
        None | Some(Value::Null | Value::Object(_)) => {}
        Some(_) => return Err(invalid(".metadata", "must be an object")),
    }
    if managed_fields(config).is_some_and(|fields| !fields.is_null()) {
        return Err(invalid(".metadata.managedFields", "must be nil"));
    }
    check(ty, config).map_err(|fault| ApplyError::Invalid {
        field: fault.field,
        reason: fault.reason,
    })
}

/// Why `apply_typed` refuses.
enum Refusal<'a> {
    Conflicts(Vec<(Identity<'a>, FieldSet<'a>)>),
    Undecodable(String),
}

impl Refusal<'_> {
    fn into_error(self) -> ApplyError {
        let conflicts = match self {
            Self::Undecodable(reason) => {
                return ApplyError::Invalid {
                    field: ".metadata.managedFields".to_owned(),
                    reason: format!("failed to decode managed fields: {reason}"),
                };
            }
            Self::Conflicts(conflicts) => conflicts,
        };
        let mut list = Vec::new();
        for (id, fields) in conflicts {
            let message = format!("conflict with {}", id.describe());
            fields.for_each(&mut |path| {
                list.push(Conflict {
                    field: path_text(path),
                    message: message.clone(),
                });
            });
        }
        ApplyError::Conflicts(list)
    }
}

fn apply_typed<'a>(
    live: Option<&'a Value>,
    config: &'a Value,
    manager: &Manager<'a>,
    force: bool,
    ty: Type<'a>,
) -> Result<Value, Refusal<'a>> {
    let id = manager.identity(Operation::Apply);
    let base = live.unwrap_or(&EMPTY);
    let mut managed = Managed::decode(managed_fields(base)).map_err(Refusal::Undecodable)?;
    let mut owners_changed = adopt(&mut managed, base, manager, ty);
    owners_changed |= reconcile_owners(&mut managed, ty);

    let last = managed.owners.remove(&id);
    let applied = fields(ty, config);
    let mut merged = merge(ty, base, config);
    if let Some(last) = &last {
        let target = merged.as_ref().unwrap_or(base);
        if let Some(pruned) = pruned_fields(ty, target, &last.fields, &applied, &managed) {
            let object = merged.get_or_insert_with(|| base.clone());
            remove(ty, object, &pruned.items, Emptied::KeepIf(&pruned.owned));
            // What is empty now was full when the configuration was merged: its null or empty
            // value counts only now, and would change the object on the next apply otherwise.
            if let Some(settled) = merge(ty, object, config) {
                *object = settled;
            }
        }
    }
    let merged = merged.filter(|merged| !same(base, merged));

    if let Some(new) = &merged {
        let changes = compare(ty, base, new);
        let conflicts = if force {
            Vec::new()
        } else {
            conflicts(&managed, &changes)
        };
        if !conflicts.is_empty() {
            return Err(Refusal::Conflicts(conflicts));
        }
        owners_changed |= disown(&mut managed, &changes);
    }

    let applied = applied.difference(&UNOWNED);
    let had = last.is_some();
    let kept = last.filter(|last| last.fields == applied);
    owners_changed |= match &kept {
        Some(kept) => kept.api_version != manager.api_version,
        None => had || !applied.is_empty(),
    };
    if live.is_some() && merged.is_none() && !owners_changed {
        return Ok(base.clone());
    }
    if !applied.is_empty() {
        let time = match kept {
            Some(kept) if merged.is_none() => kept.time,
            _ => Some(Cow::Borrowed(manager.now)),
        };
        managed.owners.insert(id, manager.owns(applied, time));
    }
    let encoded = managed.encode();
    let mut object = merged.unwrap_or_else(|| base.clone());
    set_managed_fields(&mut object, encoded);
    Ok(object)
}

/// Gives what an object without owners holds to a manager of its own.
fn adopt<'a>(
    managed: &mut Managed<'a>,
    live: &'a Value,
    manager: &Manager<'a>,
    ty: Type<'a>,
) -> bool {
    if !managed.owners.is_empty() {
        return false;
    }
    let held = compare(ty, &EMPTY, live).changed.difference(&UNOWNED);
    if held.is_empty() {
        return false;
    }
    let id = Identity::new(
        BEFORE_FIRST_APPLY,
        Operation::Update,
        manager.api_version,
        manager.subresource,
    );
    let owned = manager.owns(held, Some(Cow::Borrowed(manager.now)));
    managed.owners.insert(id, owned);
    true
}

/// What an apply takes out of an object.
struct Pruned<'a> {
    items: FieldSet<'a>,
    /// What anybody owns after the apply.
    owned: FieldSet<'a>,
}

/// The fields to take out of a merged object: those that the manager applied the last time, does
/// not apply now, and that nobody else owns (structured-merge-diff, `Updater.prune`).
fn pruned_fields<'a>(
    ty: Type<'a>,
    merged: &Value,
    last: &FieldSet<'a>,
    applied: &FieldSet<'a>,
    others: &Managed<'a>,
) -> Option<Pruned<'a>> {
    if last.is_subset(applied) {
        return None;
    }
    let owned = others
        .owners
        .values()
        .fold(applied.clone(), |all, owned| all.union(&owned.fields));
    let kept = with_named_fields(Some(ty), &owned);
    let last = with_named_fields(Some(ty), last);
    if last.is_subset(&kept) {
        return None;
    }
    let without = |items: &FieldSet<'_>| {
        let mut value = merged.clone();
        remove(ty, &mut value, items, Emptied::Null);
        with_named_fields(Some(ty), &fields(ty, &value)).into_owned()
    };
    let all = with_named_fields(Some(ty), &fields(ty, merged));
    // What goes with the last set, then what of that is owned and comes back, then what was never
    // this manager's and stays.
    let first = without(&last);
    let second = without(&all.difference(&first.union(&kept)));
    let items = last.intersection(&all.difference(&second));
    (!items.is_empty()).then_some(Pruned { items, owned })
}

/// What other managers own of the changed fields.
fn conflicts<'a>(
    managed: &Managed<'a>,
    changes: &Changes<'_>,
) -> Vec<(Identity<'a>, FieldSet<'a>)> {
    managed
        .owners
        .iter()
        .map(|(id, owned)| (id.clone(), owned.fields.intersection(&changes.changed)))
        .filter(|(_, fields)| !fields.is_empty())
        .collect()
}

#[cfg(test)]
mod tests;
