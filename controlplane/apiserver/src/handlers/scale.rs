//! The scale subresource of custom resources.

use bytes::Bytes;
use ecp_meta::object;
use ecp_schema::{FieldError, FieldErrorKind};
use http::StatusCode;
use serde_json::{Value, json};

use super::body::{self, Parsed};
use super::patch::{self, Patch};
use super::update::{Change, MODIFIED, check_version, commit_update};
use super::write::existing;
use super::{Answer, Place, Request, json_response};
use crate::limits;
use crate::registry::ScalePaths;
use crate::status::Status;
use crate::storage;
use crate::table::Representation;

/// Answers GET, PUT and PATCH of `/scale`.
pub(super) async fn handle(is_get: bool, is_patch: bool, request: Request<'_>) -> Answer {
    let place = &request.place;
    let Some(paths) = place.resource.scale.clone() else {
        return Err(Status::no_such_resource());
    };
    let name = request.name.unwrap_or_default();
    if is_get {
        let entry = existing(place, name).await?;
        let object = storage::decode(place.resource, &entry);
        return Ok(answer(&scale_of(&object, &paths)));
    }
    let edit = if is_patch {
        Edit::Patch(patch::parse(&request)?)
    } else {
        Edit::Replace(body::parse(request.headers, &request.body)?)
    };
    // Replicas belong to the main endpoint's part of the object.
    let mut options = request.options()?;
    options.subresource = "";
    for _ in 0..limits::PATCH_TRIES_MAX {
        let entry = existing(place, name).await?;
        let old = storage::decode(place.resource, &entry);
        let scale = edited(place, name, &scale_of(&old, &paths), &edit)?;
        check_version(place, name, object::resource_version(&scale), &entry)?;
        let mut new = old.clone();
        set_replicas(place, name, &mut new, &scale, &paths)?;
        let change = Change {
            old: &old,
            new,
            faults: Vec::new(),
            applied: false,
        };
        if let Some(written) = commit_update(place, name, &entry, change, &options).await? {
            let object = storage::decode_at(place.resource, &written.value, written.revision);
            return Ok(answer(&scale_of(&object, &paths)));
        }
    }
    Err(place.conflict(name, MODIFIED))
}

enum Edit {
    Replace(Parsed),
    Patch(Patch),
}

fn edited(place: &Place<'_>, name: &str, old: &Value, edit: &Edit) -> Result<Value, Status> {
    let scale = match edit {
        Edit::Replace(parsed) => parsed.value.clone(),
        Edit::Patch(Patch::Apply(parsed)) => {
            let mut merged = old.clone();
            ecp_patch::merge_patch(&mut merged, &parsed.value);
            merged
        }
        Edit::Patch(patch) => patch::patched(place, name, old, patch)?,
    };
    if scale.get("kind").is_some_and(|k| k != "Scale") {
        return Err(Status::bad_request("the request body is not a Scale"));
    }
    Ok(scale)
}

fn set_replicas(
    place: &Place<'_>,
    name: &str,
    object: &mut Value,
    scale: &Value,
    paths: &ScalePaths,
) -> Result<(), Status> {
    let invalid = |detail: &str, value: &Value| {
        let error = FieldError::new(FieldErrorKind::Invalid, "spec.replicas", detail)
            .with_value(value.clone());
        Err(place.invalid(name, &[error]))
    };
    let replicas = scale.pointer("/spec/replicas").cloned().unwrap_or(0.into());
    match replicas.as_i64() {
        None => return invalid("must be an integer", &replicas),
        Some(n) if n < 0 => return invalid("should be a non-negative integer", &replicas),
        Some(_) => {}
    }
    let mut at = object;
    for step in steps(&paths.spec_replicas) {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[step];
    }
    *at = replicas;
    Ok(())
}

fn scale_of(object: &Value, paths: &ScalePaths) -> Value {
    let at = |path: &str| steps(path).try_fold(object, |v, step| v.get(step)).cloned();
    let meta = |field: &str| object.pointer(&format!("/metadata/{field}")).cloned();
    let mut metadata = json!({});
    for field in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        if let Some(value) = meta(field) {
            metadata[field] = value;
        }
    }
    let mut scale = json!({
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": metadata,
        "spec": {},
        "status": {"replicas": at(&paths.status_replicas).and_then(|v| v.as_i64()).unwrap_or(0)},
    });
    if let Some(n) = at(&paths.spec_replicas).and_then(|v| v.as_i64()) {
        scale["spec"]["replicas"] = n.into();
    }
    if let Some(selector) = paths.label_selector.as_deref().and_then(at) {
        scale["status"]["selector"] = selector;
    }
    scale
}

fn steps(path: &str) -> impl Iterator<Item = &str> {
    path.split('.').filter(|s| !s.is_empty())
}

fn answer(scale: &Value) -> http::Response<crate::body::ApiBody> {
    let body = Bytes::from(scale.to_string());
    json_response(StatusCode::OK, body, Representation::Object)
}
