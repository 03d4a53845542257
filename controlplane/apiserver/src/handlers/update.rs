//! UPDATE, and the steps of every change of an object.

use ecp_meta::object;
use ecp_schema::{FieldError, FieldErrorKind};
use ecp_store::{CommitError, Entry, Expect, Op, Revision};
use serde_json::Value;

use super::body::Parsed;
use super::write::{
    Options, Written, admit_create, admit_definition, check_place, check_type, commit_error,
    existing, find, invalid, own, replace_or_remove, settle, shape, try_create,
};
use super::{Answer, Place, Request, body, kinds, metadata, plain};
use crate::limits;
use crate::status::Status;
use crate::storage;

/// Answers PUT.
pub(super) async fn update(request: &Request<'_>) -> Answer {
    let place = &request.place;
    let name = request.name.unwrap_or_default();
    let options = request.options()?;
    let mut parsed = body::parse(request.headers, &request.body)?;
    check_type(place, &mut parsed.value)?;
    check_place(place, &mut parsed.value, Some(name))?;
    let sent = object::resource_version(&parsed.value).to_owned();
    for _ in 0..limits::PATCH_TRIES_MAX {
        let Some(entry) = find(place, name).await? else {
            match create_instead(request, &sent, &parsed, &options).await? {
                Some(written) => return Ok(request.written(written)),
                None => continue,
            }
        };
        if sent.is_empty() && plain::demands_version(place.resource) {
            return Err(place.invalid(name, &[version_missing()]));
        }
        check_version(place, name, &sent, &entry)?;
        let old = storage::decode(place.resource, &entry);
        check_uid(place, name, &parsed.value, &old)?;
        let change = Change {
            old: &old,
            new: parsed.value.clone(),
            faults: parsed.faults.clone(),
            applied: false,
        };
        match commit_update(place, name, &entry, change, &options).await? {
            Some(written) => return Ok(request.written(written)),
            None if sent.is_empty() => {}
            None => return Err(place.conflict(name, MODIFIED)),
        }
    }
    Err(place.conflict(name, MODIFIED))
}

fn version_missing() -> FieldError {
    FieldError::new(
        FieldErrorKind::Invalid,
        "metadata.resourceVersion",
        "must be specified for an update",
    )
    .with_value(0.into())
}

/// Creates the object of a PUT, where its kind allows that; `None`: it exists meanwhile.
async fn create_instead(
    request: &Request<'_>,
    sent: &str,
    parsed: &Parsed,
    options: &Options<'_>,
) -> Result<Option<Written>, Status> {
    let place = &request.place;
    let name = request.name.unwrap_or_default();
    let main = options.subresource.is_empty();
    if !main || !matches!(sent, "" | "0") || !plain::creates_on_update(place.resource) {
        return Err(place.not_found(name));
    }
    admit_create(place, name).await?;
    let object = Parsed {
        value: parsed.value.clone(),
        faults: parsed.faults.clone(),
    };
    try_create(place, object, options, false).await
}

pub(super) const MODIFIED: &str = "the object has been modified; please apply your changes to the \
     latest version and try again";

/// 409, unless the version a client sent is the current one (or none).
pub(super) fn check_version(
    place: &Place<'_>,
    name: &str,
    sent: &str,
    entry: &Entry,
) -> Result<(), Status> {
    if sent.is_empty() || sent == "0" || sent == entry.modified.to_string() {
        return Ok(());
    }
    if sent.parse::<u64>().is_err() {
        let error = FieldError::new(
            FieldErrorKind::Invalid,
            "metadata.resourceVersion",
            "must be an unsigned integer",
        )
        .with_value(sent.into());
        return Err(place.invalid(name, &[error]));
    }
    Err(place.conflict(name, MODIFIED))
}

/// 409, unless the uid a client sent is that of the object (or none).
pub(super) fn check_uid(
    place: &Place<'_>,
    name: &str,
    sent: &Value,
    old: &Value,
) -> Result<(), Status> {
    let (sent, is) = (object::uid(sent), object::uid(old));
    if sent.is_empty() || sent == is {
        return Ok(());
    }
    Err(place.conflict(
        name,
        &format!("Precondition failed: UID in precondition: {sent}, UID in object meta: {is}"),
    ))
}

/// A change of an object.
pub(super) struct Change<'a> {
    pub(super) old: &'a Value,
    pub(super) new: Value,
    pub(super) faults: Vec<String>,
    /// Whether field ownership is already recorded.
    pub(super) applied: bool,
}

/// Commits a change of an object that is still as `entry` says; `None`: it is not.
pub(super) async fn commit_update(
    place: &Place<'_>,
    name: &str,
    entry: &Entry,
    change: Change<'_>,
    options: &Options<'_>,
) -> Result<Option<Written>, Status> {
    let resource = place.resource;
    let Change {
        old,
        new,
        faults,
        applied,
    } = change;
    let mut errors = Vec::new();
    metadata::validate_update(old, &new, &mut errors);
    let mut new = confine(place, old, new, options.subresource);
    metadata::carry(old, &mut new);
    kinds::prepare_update(resource, &mut new, old, options.subresource);
    metadata::validate(resource, &new, &mut errors);
    let warnings = shape(place, &mut new, Some(old), faults, options, &mut errors)?;
    if !errors.is_empty() {
        return Err(invalid(place, name, &errors, options));
    }
    metadata::advance_generation(resource, old, &mut new);
    if !applied {
        own(place, Some(old), &mut new, options);
    }
    let _naming = admit_definition(place, &mut new).await?;
    let value = storage::encode(resource, &new);
    let written = |revision| Written {
        value: value.clone(),
        revision,
        warnings,
        created: false,
    };
    let gone = object::is_deleting(&new) && metadata::is_finalized(resource, &new);
    if (value == entry.value && !gone) || options.dry_run {
        return Ok(Some(written(entry.modified)));
    }
    let committed = replace_or_remove(place, entry, &value, gone).await?;
    Ok(committed.map(written))
}

/// Keeps of the new object what the endpoint may change: the main one everything but `status`, a
/// subresource only its part.
fn confine(place: &Place<'_>, old: &Value, new: Value, subresource: &str) -> Value {
    let part = |from: &Value, into: &mut Value, field: &str| {
        let Some(map) = into.as_object_mut() else {
            return;
        };
        match from.get(field) {
            Some(value) => map.insert(field.into(), value.clone()),
            None => map.remove(field),
        };
    };
    let mut kept;
    match subresource {
        "" => {
            kept = new;
            if place.resource.status_subresource {
                part(old, &mut kept, "status");
            }
        }
        "finalize" => {
            kept = old.clone();
            part(&new, &mut kept, "spec");
        }
        _ => {
            kept = old.clone();
            part(&new, &mut kept, "status");
            let managed = new.pointer("/metadata/managedFields").cloned();
            if let Some(managed) = managed {
                object::metadata_mut(&mut kept).insert("managedFields".into(), managed);
            }
        }
    }
    kept
}

/// Writes an object as it is given, if it is still at `revision`. See
/// [`crate::Internal::update`].
pub(crate) async fn write_raw(
    place: &Place<'_>,
    value: &Value,
    revision: Revision,
) -> Result<Revision, Status> {
    let name = object::name(value);
    let entry = existing(place, name).await?;
    if entry.modified != revision {
        return Err(place.conflict(name, MODIFIED));
    }
    let encoded = storage::encode(place.resource, value);
    let gone = object::is_deleting(value) && metadata::is_finalized(place.resource, value);
    if !gone && encoded == entry.value {
        return Ok(revision);
    }
    let expect = Expect::Modified(revision);
    let key = entry.key;
    let op = if gone {
        Op::Delete { key, expect }
    } else {
        Op::Put {
            key,
            value: encoded,
            expect,
        }
    };
    match place.server.store.commit(vec![op]).await {
        Ok(committed) => {
            settle(place, committed.revision).await;
            Ok(committed.revision)
        }
        Err(CommitError::Precondition { current: None, .. }) => Err(place.not_found(name)),
        Err(CommitError::Precondition { .. }) => Err(place.conflict(name, MODIFIED)),
        Err(error) => Err(commit_error(error)),
    }
}
