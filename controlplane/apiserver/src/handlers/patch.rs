//! PATCH: JSON patch, merge patch, strategic merge patch and server-side apply.

use ecp_meta::object;
use ecp_patch::{
    ApplyError, Manager, PatchError, PatchMeta, apply, conflict_message, json_patch, merge_patch,
    strategic_merge_patch,
};
use ecp_schema::{FieldError, FieldErrorKind};
use ecp_store::Entry;
use http::StatusCode;
use serde_json::{Map, Value};

use super::body::{self, Parsed};
use super::update::{Change, MODIFIED, check_uid, check_version, commit_update};
use super::write::{
    Form, Options, Written, admit_create, check_place, check_type, existing, find, nameless,
    try_create, typing, unknown_field,
};
use super::{Answer, Place, Request, metadata};
use crate::limits;
use crate::status::{Cause, Status};
use crate::storage;

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// A patch, parsed.
pub(super) enum Patch {
    Json(Parsed),
    Merge(Parsed),
    Strategic(Parsed),
    Apply(Parsed),
}

impl Patch {
    /// What is wrong with the fields of the patch.
    fn faults(&self) -> &[String] {
        match self {
            Self::Json(parsed)
            | Self::Merge(parsed)
            | Self::Strategic(parsed)
            | Self::Apply(parsed) => &parsed.faults,
        }
    }
}

/// Parses the patch of a request.
///
/// # Errors
/// 415: another content type; 400: malformed.
pub(super) fn parse(request: &Request<'_>) -> Result<Patch, Status> {
    let custom = request.place.resource.is_custom();
    match body::media_type(request.headers).as_str() {
        JSON_PATCH => Ok(Patch::Json(body::json(&request.body)?)),
        MERGE_PATCH => Ok(Patch::Merge(object_patch(request)?)),
        STRATEGIC_PATCH if !custom => Ok(Patch::Strategic(object_patch(request)?)),
        APPLY_PATCH => Ok(Patch::Apply(body::yaml(&request.body)?)),
        other => {
            let mut known = vec![JSON_PATCH, MERGE_PATCH, APPLY_PATCH];
            if !custom {
                known.push(STRATEGIC_PATCH);
            }
            Err(body::unsupported(other, &known.join(", ")))
        }
    }
}

fn object_patch(request: &Request<'_>) -> Result<Parsed, Status> {
    let parsed = body::json(&request.body)?;
    if parsed.value.is_object() {
        Ok(parsed)
    } else {
        Err(Status::bad_request("the patch is not an object"))
    }
}

/// Answers PATCH.
pub(super) async fn patch(request: &Request<'_>) -> Answer {
    let mut options = request.options()?;
    let patch = parse(request)?;
    options.form = match patch {
        Patch::Apply(_) => Form::Apply,
        Patch::Json(_) | Patch::Merge(_) | Patch::Strategic(_) => Form::Patch,
    };
    if options.form == Form::Patch && request.params.force.is_some() {
        let why = "may not be specified for non-apply patch";
        let error = FieldError::new(FieldErrorKind::Forbidden, "force", why);
        return Err(request.params.invalid(error));
    }
    let written = match patch {
        Patch::Apply(config) => apply_patch(request, config, &options).await?,
        patch => edit(request, &patch, &options).await?,
    };
    Ok(request.written(written))
}

/// Applies a patch document to an object.
///
/// # Errors
/// 400, 422 or 413: it does not apply.
pub(super) fn patched(
    place: &Place<'_>,
    name: &str,
    old: &Value,
    patch: &Patch,
) -> Result<Value, Status> {
    match patch {
        Patch::Json(patch) => {
            json_patch(old, &patch.value).map_err(|e| patch_error(place, name, &e))
        }
        Patch::Merge(patch) => {
            let mut new = old.clone();
            merge_patch(&mut new, &patch.value);
            Ok(new)
        }
        Patch::Strategic(patch) => {
            let gvk = &place.resource.gvk;
            strategic_merge_patch(old, &patch.value, &PatchMeta::of(&gvk.group, &gvk.kind))
                .map_err(|e| patch_error(place, name, &e))
        }

        Patch::Apply(_) => Err(Status::internal("apply is not an edit")),
    }
}

fn patch_error(place: &Place<'_>, name: &str, error: &PatchError) -> Status {
    match error {
        PatchError::Malformed(_) | PatchError::TooDeep { .. } => {
            Status::bad_request(error.to_string())
        }
        PatchError::TooManyOperations { .. } | PatchError::TooLarge { .. } => {
            Status::too_large(error.to_string())
        }
        PatchError::DoesNotApply(_) => Status::failure(
            StatusCode::UNPROCESSABLE_ENTITY,
            "Invalid",
            format!("the server rejected our request due to an error in our request: {error}"),
        )
        .about(&place.resource.group_resource(), name),
    }
}

/// Reads, patches and writes; again when somebody else wrote meanwhile, unless the patch itself
/// names a version.
async fn edit(
    request: &Request<'_>,
    patch: &Patch,
    options: &Options<'_>,
) -> Result<Written, Status> {
    let place = &request.place;
    let name = request.name.unwrap_or_default();
    for _ in 0..limits::PATCH_TRIES_MAX {
        let entry = existing(place, name).await?;
        let old = storage::decode(place.resource, &entry);
        let mut new = patched(place, name, &old, patch)?;
        let sent = object::resource_version(&new).to_owned();
        let pinned = sent != entry.modified.to_string();
        check_version(place, name, &sent, &entry)?;
        check_type(place, &mut new)?;
        check_place(place, &mut new, Some(name))?;
        let change = Change {
            old: &old,
            new,
            faults: patch.faults().to_vec(),
            applied: false,
        };
        match commit_update(place, name, &entry, change, options).await? {
            Some(written) => return Ok(written),
            None if pinned && !sent.is_empty() => break,
            None => {}
        }
    }
    Err(place.conflict(name, MODIFIED))
}

/// Server-side apply.
async fn apply_patch(
    request: &Request<'_>,
    config: Parsed,
    options: &Options<'_>,
) -> Result<Written, Status> {
    let place = &request.place;
    let name = request.name.unwrap_or_default();
    if request.params.field_manager.is_none() {
        let why = "is required for apply patch";
        let error = FieldError::new(FieldErrorKind::Required, "fieldManager", why);
        return Err(request.params.invalid(error));
    }
    let Parsed {
        value: mut config,
        mut faults,
    } = config;
    for field in ["apiVersion", "kind"] {
        if config.get(field).is_none_or(|v| v.is_null() || v == "") {
            return Err(Status::bad_request(format!(
                "invalid object type: {field} must be given"
            )));
        }
    }
    check_type(place, &mut config)?;
    // What exists has its name; only a create must say it.
    let named = !object::name(&config).is_empty();
    if !named {
        object::metadata_mut(&mut config).insert("name".into(), name.into());
    }
    check_place(place, &mut config, Some(name))?;
    let has_managed = config
        .pointer("/metadata/managedFields")
        .is_some_and(|m| !m.is_null() && m.as_array().is_none_or(|a| !a.is_empty()));
    if has_managed {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    let sent = object::resource_version(&config).to_owned();
    // Nobody can own a field that does not exist.
    let mut unknown = metadata::prune(&mut config);
    if let Some(schema) = &place.resource.schema {
        unknown.extend(schema.prune(&mut config));
    }
    faults.extend(unknown.iter().map(|f| unknown_field(f)));
    let force = request.params.force.unwrap_or(false);
    let attempt = Attempt {
        place,
        name,
        config: &config,
        faults: &faults,
        options,
        force,
    };
    for _ in 0..limits::PATCH_TRIES_MAX {
        let written = match find(place, name).await? {
            Some(entry) => {
                check_version(place, name, &sent, &entry)?;
                attempt.update(&entry).await?
            }
            None if !options.subresource.is_empty() => return Err(place.not_found(name)),
            None if !named => return Err(nameless(name)),
            None => attempt.create(&sent).await?,
        };
        if let Some(written) = written {
            return Ok(written);
        }
    }
    Err(place.conflict(name, MODIFIED))
}

struct Attempt<'a> {
    place: &'a Place<'a>,
    name: &'a str,
    config: &'a Value,
    faults: &'a [String],
    options: &'a Options<'a>,
    force: bool,
}

impl Attempt<'_> {
    async fn create(&self, sent_version: &str) -> Result<Option<Written>, Status> {
        let (place, name) = (self.place, self.name);
        let uid = object::uid(self.config);
        if !uid.is_empty() {
            return Err(place.conflict(
                name,
                &format!(
                    "uid mismatch: the provided object specified uid {uid}, and no existing object \
                     was found"
                ),
            ));
        }
        if !matches!(sent_version, "" | "0") {
            return Err(place.conflict(name, MODIFIED));
        }
        admit_create(place, name).await?;
        let merged = self.merge(None)?;
        let parsed = Parsed {
            value: merged,
            faults: self.faults.to_vec(),
        };
        try_create(place, parsed, self.options, true).await
    }

    async fn update(&self, entry: &Entry) -> Result<Option<Written>, Status> {
        let old = storage::decode(self.place.resource, entry);
        check_uid(self.place, self.name, self.config, &old)?;
        let change = Change {
            old: &old,
            new: self.merge(Some(&old))?,
            faults: self.faults.to_vec(),
            applied: true,
        };
        commit_update(self.place, self.name, entry, change, self.options).await
    }

    fn merge(&self, live: Option<&Value>) -> Result<Value, Status> {
        let place = self.place;
        let mut config = self.config.clone();
        confine(place, &mut config, self.options.subresource);
        let now = metadata::time(place.server.now());
        let manager = Manager {
            name: &self.options.manager,
            subresource: self.options.subresource,
            api_version: &place.resource.api_version(),
            now: &now,
        };
        let typing = typing(place);
        apply(live, &config, &manager, self.force, typing).map_err(|e| self.refused(e))
    }

    fn refused(&self, error: ApplyError) -> Status {
        match error {
            ApplyError::Conflicts(conflicts) => {
                let message = conflict_message(&conflicts);
                Status::failure(StatusCode::CONFLICT, "Conflict", message).with(|d| {
                    d.causes = conflicts
                        .iter()
                        .map(|c| Cause::new("FieldManagerConflict", &c.message, &c.field))
                        .collect();
                })
            }
            ApplyError::Invalid { field, reason } => self.place.invalid(
                self.name,
                &[FieldError::new(FieldErrorKind::Invalid, field, reason)],
            ),
        }
    }
}

/// Drops from an applied configuration what its endpoint ignores, so that nobody comes to own it,
/// and what is no configuration.
fn confine(place: &Place<'_>, config: &mut Value, subresource: &str) {
    let Some(map) = config.as_object_mut() else {
        return;
    };
    if subresource.is_empty() {
        if place.resource.status_subresource {
            map.remove("status");
        }
    } else {
        map.retain(|k, _| matches!(k.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
        if let Some(Value::Object(metadata)) = map.get_mut("metadata") {
            metadata.retain(|k, _| matches!(k.as_str(), "name" | "namespace"));
        }
    }
    if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in [
            "resourceVersion",
            "uid",
            "creationTimestamp",
            "managedFields",
            "generation",
        ] {
            metadata.remove(field);
        }
        metadata.retain(|_, v| !v.is_null());
    } else {
        map.insert("metadata".into(), Value::Object(Map::new()));
    }
}
