//! DELETE of one object and of collections.

use bytes::Bytes;
use ecp_meta::object;
use ecp_schema::{FieldError, FieldErrorKind};
use ecp_store::Revision;
use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use super::update::MODIFIED;
use super::write::{existing, replace_or_remove};
use super::{Answer, Place, Request, body, json_response, kinds, metadata, object_response, read};
use crate::limits;
use crate::registry::Rules;
use crate::status::Status;
use crate::storage;
use crate::table::Representation;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
/// Holds a definition until all its objects are gone.
pub(crate) const CRD_CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
    /// They stay.
    Orphan,
}

/// How to delete.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Only if the object has this uid.
    pub uid: Option<String>,
    /// Only if the object has this resource version.
    pub resource_version: Option<String>,
    /// What happens to dependents; `None` leaves the object's own finalizers to say.
    pub propagation: Option<Propagation>,
    /// Only find out whether it would work.
    pub dry_run: bool,
}

/// What a delete did.
#[derive(Clone, Debug)]
pub enum Deleted {
    /// The object is gone; what it was.
    Gone {
        /// The object.
        object: Value,
        /// Revision of the removal.
        revision: Revision,
    },
    /// The object is marked, and held by finalizers.
    Held {
        /// The stored object.
        value: Bytes,
        /// Its revision.
        revision: Revision,
    },
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Body {
    kind: String,
    dry_run: Option<Vec<String>>,
    orphan_dependents: Option<bool>,
    propagation_policy: Option<String>,
    preconditions: Option<Preconditions>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

impl Request<'_> {
    /// Options from the body or, without one, from the query.
    fn delete_options(&self) -> Result<DeleteOptions, Status> {
        let body: Body = if self.body.trim_ascii().is_empty() {
            Body::default()
        } else {
            let value = body::parse(self.headers, &self.body)?.value;
            serde_json::from_value(value)
                .map_err(|e| Status::bad_request(format!("invalid DeleteOptions: {e}")))?
        };
        if !matches!(body.kind.as_str(), "" | "DeleteOptions") {
            return Err(Status::bad_request(format!(
                "{} cannot be handled as a DeleteOptions",
                body.kind
            )));
        }
        let dry_run = match body.dry_run.as_deref() {
            None | Some([]) => self.params.dry_run,
            Some([all]) if all == "All" => true,
            Some(other) => {
                return Err(self.params.unsupported("dryRun", other.into(), "\"All\""));
            }
        };
        let policy = body
            .propagation_policy
            .or_else(|| self.params.propagation_policy.clone());
        let orphan = body.orphan_dependents.or(self.params.orphan_dependents);
        let propagation = match (policy.as_deref(), orphan) {
            (Some(policy), Some(_)) => {
                let error = FieldError::new(
                    FieldErrorKind::Invalid,
                    "propagationPolicy",
                    "orphanDependents and deletionPropagation cannot be both set",
                );
                return Err(self.params.invalid(error.with_value(policy.into())));
            }
            (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
            (None, None) => None,
            (Some(other), _) => {
                let known = "\"Foreground\", \"Background\", \"Orphan\"";
                let field = "propagationPolicy";
                return Err(self.params.unsupported(field, other.into(), known));
            }
        };
        let preconditions = body.preconditions.unwrap_or_default();
        Ok(DeleteOptions {
            uid: preconditions.uid,
            resource_version: preconditions.resource_version,
            propagation,
            dry_run,
        })
    }
}

/// Answers DELETE of one object.
pub(super) async fn delete(request: &Request<'_>) -> Answer {
    let options = request.delete_options()?;
    let place = &request.place;
    let name = request.name.unwrap_or_default();
    match delete_object(place, name, &options).await? {
        Deleted::Gone { object, .. } => {
            let resource = place.resource.group_resource();
            let status = Status::deleted(&resource, name, object::uid(&object));
            Ok(json_response(
                StatusCode::OK,
                status.to_json(),
                Representation::Object,
            ))
        }
        Deleted::Held { value, revision } => {
            let json = storage::json(place.resource, &value, revision);
            Ok(object_response(request, StatusCode::OK, json))
        }
    }
}

/// Answers DELETE of a collection: deletes what the selectors select, one by one. The answer lists
/// what that was.
pub(super) async fn delete_collection(request: &Request<'_>) -> Answer {
    let options = request.delete_options()?;
    let found = read::find(request).await?;
    let place = &request.place;
    let mut first_error = None;
    for entry in &found.entries {
        let Some(parts) = storage::parse_key(&entry.key) else {
            continue;
        };
        match delete_object(place, parts.name, &options).await {
            Ok(_) => {}
            // Somebody else was faster.
            Err(status) if status.reason() == "NotFound" => {}
            Err(status) => {
                first_error.get_or_insert(status);
            }
        }
    }
    if let Some(status) = first_error {
        return Err(status);
    }
    Ok(read::listed(request, found))
}

/// Deletes an object, or marks it while finalizers hold it.
pub(crate) async fn delete_object(
    place: &Place<'_>,
    name: &str,
    options: &DeleteOptions,
) -> Result<Deleted, Status> {
    if place.resource.rules == Rules::Namespace && kinds::is_protected_namespace(name) {
        let resource = place.resource.group_resource();
        return Err(Status::forbidden(
            &resource,
            name,
            "this namespace may not be deleted",
        ));
    }
    for _ in 0..limits::PATCH_TRIES_MAX {
        if let Some(deleted) = try_delete(place, name, options).await? {
            return Ok(deleted);
        }
    }
    Err(place.conflict(name, MODIFIED))
}

/// `None`: the object changed meanwhile.
async fn try_delete(
    place: &Place<'_>,
    name: &str,
    options: &DeleteOptions,
) -> Result<Option<Deleted>, Status> {
    let resource = place.resource;
    let entry = existing(place, name).await?;
    let old = storage::decode(resource, &entry);
    check_preconditions(place, name, options, &old)?;
    let mut new = old.clone();
    mark(place, &mut new, options);
    let gone = metadata::is_finalized(resource, &new);
    let value = storage::encode(resource, &new);
    let done = |revision| {
        if gone {
            Deleted::Gone {
                object: new.clone(),
                revision,
            }
        } else {
            Deleted::Held {
                value: value.clone(),
                revision,
            }
        }
    };
    if options.dry_run || (!gone && value == entry.value) {
        return Ok(Some(done(entry.modified)));
    }
    let committed = replace_or_remove(place, &entry, &value, gone).await?;
    Ok(committed.map(done))
}

fn check_preconditions(
    place: &Place<'_>,
    name: &str,
    options: &DeleteOptions,
    object: &Value,
) -> Result<(), Status> {
    for (what, wanted, is) in [
        ("UID", &options.uid, object::uid(object)),
        (
            "ResourceVersion",
            &options.resource_version,
            object::resource_version(object),
        ),
    ] {
        if let Some(wanted) = wanted
            && wanted != is
        {
            return Err(place.conflict(
                name,
                &format!(
                    "Precondition failed: {what} in precondition: {wanted}, {what} in object \
                     meta: {is}"
                ),
            ));
        }
    }
    Ok(())
}

/// Marks an object as being deleted, with the finalizers that the options ask for.
fn mark(place: &Place<'_>, object: &mut Value, options: &DeleteOptions) {
    let resource = place.resource;
    let mut finalizers: Vec<String> = object::finalizers(object).map(Into::into).collect();
    if resource.rules != Rules::Namespace
        && let Some(propagation) = options.propagation
    {
        finalizers.retain(|f| f != ORPHAN && f != FOREGROUND);
        match propagation {
            Propagation::Background => {}
            Propagation::Foreground => finalizers.push(FOREGROUND.into()),
            Propagation::Orphan => finalizers.push(ORPHAN.into()),
        }
    }
    if resource.rules == Rules::Crd && !finalizers.iter().any(|f| f == CRD_CLEANUP) {
        finalizers.push(CRD_CLEANUP.into());
    }
    let generation = object::generation(object);
    let now = metadata::time(place.server.now());
    let deleting = object::is_deleting(object);
    let metadata = object::metadata_mut(object);
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".into(), finalizers.into());
    }
    if deleting {
        return;
    }
    metadata.insert("deletionTimestamp".into(), now.clone().into());
    // Namespaces and definitions are deleted by rules of their own, without grace.
    if !matches!(resource.rules, Rules::Namespace | Rules::Crd) {
        metadata.insert("deletionGracePeriodSeconds".into(), 0.into());
        if generation > 0 {
            metadata.insert("generation".into(), (generation + 1).into());
        }
    }
    match resource.rules {
        Rules::Namespace => {
            object::entry_map(object, "status").insert("phase".into(), "Terminating".into());
        }
        Rules::Crd => crate::crd::mark_terminating(object, &now),
        Rules::Custom | Rules::Plain | Rules::Secret | Rules::ConfigMap => {}
    }
}
