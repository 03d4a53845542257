//! CREATE and UPDATE, and the steps that every write goes through.

use bytes::Bytes;
use ecp_meta::object;
use ecp_patch::{Manager, Typing, track_update};
use ecp_schema::{FieldError, FieldErrorKind};
use ecp_store::{CommitError, Entry, Expect, Op, Revision};
use http::{Response, StatusCode, header};
use serde_json::Value;

use super::body::{self, Parsed};
use super::{Answer, Place, Request, kinds, metadata, object_response, store_error, warn};
use crate::body::ApiBody;
use crate::limits;
use crate::registry::Rules;
use crate::status::{Cause, Status};
use crate::storage;

/// What to do about unknown and duplicate fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// What a request body is, which decides how its faults are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A whole object.
    Object,
    /// A patch document.
    Patch,
    /// An applied configuration.
    Apply,
}

/// How a write is made.
#[derive(Debug)]
pub(super) struct Options<'a> {
    pub(super) form: Form,
    pub(super) dry_run: bool,
    pub(super) manager: String,
    /// The part that may change.
    pub(super) subresource: &'a str,
    /// The subresource that ownership is recorded for.
    pub(super) owned_as: &'a str,
    pub(super) validation: FieldValidation,
}

/// A write that happened, or would have.
#[derive(Debug)]
pub(super) struct Written {
    /// Encoded object.
    pub(super) value: Bytes,
    pub(super) revision: Revision,
    pub(super) warnings: Vec<String>,
    pub(super) created: bool,
}

impl<'a> Request<'a> {
    /// How this request writes.
    pub(super) fn options(&self) -> Result<Options<'a>, Status> {
        let validation = match self.params.field_validation.as_deref() {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                let known = "\"\", \"Ignore\", \"Strict\", \"Warn\"";
                return Err(self
                    .params
                    .unsupported("fieldValidation", other.into(), known));
            }
        };
        Ok(Options {
            form: Form::Object,
            dry_run: self.params.dry_run,
            manager: self.manager()?,
            subresource: self.subresource.unwrap_or_default(),
            owned_as: self.subresource.unwrap_or_default(),
            validation,
        })
    }

    /// The field manager: as given, or from the user agent up to its first slash.
    fn manager(&self) -> Result<String, Status> {
        if let Some(manager) = &self.params.field_manager {
            if manager.len() > limits::FIELD_MANAGER_LEN_MAX {
                let most = format!(
                    "may not be more than {} bytes",
                    limits::FIELD_MANAGER_LEN_MAX
                );
                let error = FieldError::new(FieldErrorKind::TooLong, "fieldManager", most);
                return Err(self.params.invalid(error));
            }
            if manager.chars().any(char::is_control) {
                let error = FieldError::new(
                    FieldErrorKind::Invalid,
                    "fieldManager",
                    "should only contain printable characters",
                );
                let error = error.with_value(manager.as_str().into());
                return Err(self.params.invalid(error));
            }
            return Ok(manager.clone());
        }
        let agent = self
            .headers
            .get(header::USER_AGENT)
            .and_then(|v| v.to_str().ok())
            .and_then(|v| v.split('/').next())
            .unwrap_or_default();
        let name: String = agent
            .chars()
            .filter(|c| !c.is_control())
            .take(limits::FIELD_MANAGER_LEN_MAX)
            .collect();
        Ok(if name.is_empty() {
            "unknown".into()
        } else {
            name
        })
    }

    /// The answer that shows what was written.
    pub(super) fn written(&self, written: Written) -> Response<ApiBody> {
        let code = if written.created {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        };
        let json = storage::json(self.place.resource, &written.value, written.revision);
        let mut response = object_response(self, code, json);
        for text in &written.warnings {
            warn(response.headers_mut(), text);
        }
        response
    }
}

/// Answers POST.
pub(super) async fn create(request: &Request<'_>) -> Answer {
    let options = request.options()?;
    let parsed = body::parse(request.headers, &request.body)?;
    let written = create_object(&request.place, parsed, &options).await?;
    Ok(request.written(written))
}

/// The stored entry of an object.
pub(super) async fn existing(place: &Place<'_>, name: &str) -> Result<Entry, Status> {
    find(place, name)
        .await?
        .ok_or_else(|| place.not_found(name))
}

/// The stored entry of an object, if there is one.
pub(super) async fn find(place: &Place<'_>, name: &str) -> Result<Option<Entry>, Status> {
    place
        .server
        .store
        .get(&place.key(name))
        .await
        .map_err(store_error)
}

/// Checks `apiVersion` and `kind` against the URL.
pub(super) fn check_type(place: &Place<'_>, value: &mut Value) -> Result<(), Status> {
    let gvk = &place.resource.gvk;
    let Some(map) = value.as_object_mut() else {
        return Err(Status::bad_request("the request body is not an object"));
    };
    for (field, wanted) in [
        ("apiVersion", gvk.api_version()),
        ("kind", gvk.kind.clone()),
    ] {
        match map.get(field).and_then(Value::as_str) {
            Some(sent) if sent == wanted => {}
            // Typed decoders fill in the kind of the URL; for custom resources it must be sent.
            None | Some("") if !place.resource.is_custom() => {
                map.insert(field.into(), wanted.into());
            }
            None | Some("") => {
                return Err(Status::bad_request(format!(
                    "Object '{field}' is missing in the request body"
                )));
            }
            Some(sent) if field == "kind" && place.resource.is_custom() => {
                let must = format!("must be {wanted}");
                let error =
                    FieldError::new(FieldErrorKind::Invalid, "kind", must).with_value(sent.into());
                return Err(place.invalid(object::name(value), &[error]));
            }
            Some(sent) => {
                return Err(Status::bad_request(format!(
                    "the {field} in the data ({sent}) does not match the expected {field} \
                     ({wanted})"
                )));
            }
        }
    }
    match map.get("metadata") {
        None | Some(Value::Null) => {
            map.insert("metadata".into(), Value::Object(Default::default()));
            Ok(())
        }
        Some(Value::Object(_)) => Ok(()),
        Some(_) => Err(Status::bad_request("metadata is not an object")),
    }
}

/// Checks name and namespace against the URL, and fills them in where the object has none; a whole
/// object must have its name.
pub(super) fn check_place(
    place: &Place<'_>,
    value: &mut Value,
    name: Option<&str>,
) -> Result<(), Status> {
    let metadata = object::metadata_mut(value);
    for (field, wanted) in [("namespace", place.namespace), ("name", name)] {
        let sent = metadata
            .get(field)
            .and_then(Value::as_str)
            .filter(|s| !s.is_empty());
        match (sent, wanted) {
            (Some(sent), Some(wanted)) if sent != wanted => {
                return Err(Status::bad_request(format!(
                    "the {field} of the object ({sent}) does not match the {field} on the URL \
                     ({wanted})"
                )));
            }
            (None, Some(wanted)) if field == "name" => return Err(nameless(wanted)),
            (None, Some(wanted)) => {
                metadata.insert(field.into(), wanted.into());
            }
            (Some(_), None) if field == "namespace" && !place.resource.namespaced => {
                return Err(Status::bad_request(
                    "namespace is not allowed on cluster-scoped objects",
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// 400: an object does not say its name.
pub(super) fn nameless(name: &str) -> Status {
    Status::bad_request(format!(
        "the name of the object ({name} based on URL) was undeterminable: name must be provided"
    ))
}

/// Creates an object.
pub(super) async fn create_object(
    place: &Place<'_>,
    mut parsed: Parsed,
    options: &Options<'_>,
) -> Result<Written, Status> {
    check_type(place, &mut parsed.value)?;
    check_place(place, &mut parsed.value, None)?;
    if !matches!(object::resource_version(&parsed.value), "" | "0") {
        return Err(Status::bad_request(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    admit_create(place, object::name(&parsed.value)).await?;
    let resource = place.resource.group_resource();
    let Some(base) = generated_base(&parsed.value) else {
        let name = object::name(&parsed.value).to_owned();
        return try_create(place, parsed, options, false)
            .await?
            .ok_or_else(|| Status::already_exists(&resource, &name));
    };
    let mut name = String::new();
    for _ in 0..limits::GENERATE_NAME_TRIES_MAX {
        name = metadata::generate_name(&base, (place.server.config.random)());
        let mut attempt = Parsed {
            value: parsed.value.clone(),
            faults: parsed.faults.clone(),
        };
        object::metadata_mut(&mut attempt.value).insert("name".into(), name.as_str().into());
        if let Some(written) = try_create(place, attempt, options, false).await? {
            return Ok(written);
        }
    }
    // The client did nothing wrong: another try may find a free name.
    Err(Status::already_exists(&resource, &name).with(|d| d.retry_after_seconds = 1))
}

/// The base of a name to generate, if the object has no name of its own.
fn generated_base(value: &Value) -> Option<String> {
    object::meta_str(value, "generateName")
        .filter(|base| object::name(value).is_empty() && !base.is_empty())
        .map(Into::into)
}

/// Creates an object whose name is known; `None`: it exists.
pub(super) async fn try_create(
    place: &Place<'_>,
    parsed: Parsed,
    options: &Options<'_>,
    applied: bool,
) -> Result<Option<Written>, Status> {
    let resource = place.resource;
    let Parsed { mut value, faults } = parsed;
    metadata::start(resource, &mut value, place.server.now());
    if resource.status_subresource
        && let Some(map) = value.as_object_mut()
    {
        map.remove("status");
    }
    kinds::prepare(resource, &mut value, None);
    let name = object::name(&value).to_owned();
    let mut errors = Vec::new();
    // Before defaulting: the kinds of values decide what can be defaulted.
    metadata::validate(resource, &value, &mut errors);
    let warnings = shape(place, &mut value, None, faults, options, &mut errors)?;
    if !errors.is_empty() {
        return Err(invalid(place, &name, &errors, options));
    }
    if !applied {
        own(place, None, &mut value, options);
    }
    // What the server decides belongs to nobody.
    let _naming = admit_definition(place, &mut value).await?;
    kinds::complete(resource, &mut value);
    let encoded = storage::encode(resource, &value);
    let key = place.key(&name);
    if options.dry_run {
        return match find(place, &name).await? {
            Some(_) => Ok(None),
            None => Ok(Some(Written {
                value: encoded,
                revision: Revision(0),
                warnings,
                created: true,
            })),
        };
    }
    place.server.ensure_cluster(place.cluster).await?;
    if resource.rules == Rules::Crd && find(place, &name).await?.is_none() {
        crate::crd::sweep(place, &value).await?;
    }
    let op = Op::Put {
        key,
        value: encoded.clone(),
        expect: Expect::Absent,
    };
    match place.server.store.commit(vec![op]).await {
        Ok(committed) => {
            confirm_create(place, &name, committed.revision).await?;
            settle(place, committed.revision).await;
            Ok(Some(Written {
                value: encoded,
                revision: committed.revision,
                warnings,
                created: true,
            }))
        }
        Err(CommitError::Precondition { .. }) => Ok(None),
        Err(error) => Err(commit_error(error)),
    }
}

/// Decides on the names of a definition. No other definition's are decided until the returned guard
/// is dropped, after the write.
pub(super) async fn admit_definition<'a>(
    place: &Place<'a>,
    value: &mut Value,
) -> Result<Option<tokio::sync::MutexGuard<'a, ()>>, Status> {
    if place.resource.rules != Rules::Crd {
        return Ok(None);
    }
    let guard = place.server.naming.lock().await;
    crate::crd::admit(place, value).await?;
    Ok(Some(guard))
}

/// Replaces an entry by a new value, or removes it where `gone`. `None`: it changed meanwhile.
pub(super) async fn replace_or_remove(
    place: &Place<'_>,
    entry: &Entry,
    value: &Bytes,
    gone: bool,
) -> Result<Option<Revision>, Status> {
    let expect = Expect::Modified(entry.modified);
    let key = entry.key.clone();
    let op = if gone {
        Op::Delete { key, expect }
    } else {
        Op::Put {
            key,
            value: value.clone(),
            expect,
        }
    };
    match place.server.store.commit(vec![op]).await {
        Ok(committed) => {
            settle(place, committed.revision).await;
            Ok(Some(committed.revision))
        }
        Err(CommitError::Precondition { .. }) => Ok(None),
        Err(error) => Err(commit_error(error)),
    }
}

/// After a write of a definition: waits until it is served, so that the client that wrote it finds
/// it.
pub(super) async fn settle(place: &Place<'_>, revision: Revision) {
    if place.resource.rules == Rules::Crd {
        place.server.registry.wait_for(revision).await;
    }
}

/// The status of a commit that failed otherwise than by a precondition.
pub(crate) fn commit_error(error: CommitError) -> Status {
    match error {
        CommitError::Store(error) => store_error(error),
        error => {
            tracing::error!(%error, "commit refused");
            Status::internal("the write was refused")
        }
    }
}

/// Prunes, defaults and validates; returns warnings.
pub(super) fn shape(
    place: &Place<'_>,
    value: &mut Value,
    old: Option<&Value>,
    found: Vec<String>,
    options: &Options<'_>,
    errors: &mut Vec<FieldError>,
) -> Result<Vec<String>, Status> {
    let resource = place.resource;
    let mut unknown = metadata::prune(value);
    if let Some(schema) = &resource.schema {
        unknown.extend(schema.prune(value));
        schema.default(value);
    }
    let warnings = field_report(place, unknown, found, options)?;
    if let Some(schema) = &resource.schema {
        errors.extend(schema.validate(value, old));
    }
    kinds::validate(resource, value, old, errors);
    Ok(warnings)
}

/// How an unknown field is reported.
pub(super) fn unknown_field(path: &str) -> String {
    format!("unknown field {path:?}")
}

/// Unknown fields, and what was found before, as the client wants them reported.
fn field_report(
    place: &Place<'_>,
    unknown: Vec<String>,
    found: Vec<String>,
    options: &Options<'_>,
) -> Result<Vec<String>, Status> {
    let unknown = unknown.iter().map(|f| unknown_field(f));
    let report: Vec<String> = found.into_iter().chain(unknown).collect();
    match options.validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(report),
        FieldValidation::Strict if report.is_empty() => Ok(report),
        FieldValidation::Strict => {
            let text = format!("strict decoding error: {}", report.join(", "));
            Err(match options.form {
                Form::Patch => {
                    let error = FieldError::new(FieldErrorKind::Invalid, "patch", text);
                    place.invalid("", &[error])
                }
                Form::Object => undecodable(place, &text),
                Form::Apply => Status::bad_request(text),
            })
        }
    }
}

/// 400: a body is no object of its kind.
fn undecodable(place: &Place<'_>, why: &str) -> Status {
    let gvk = &place.resource.gvk;
    Status::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {kind}: {why}",
        kind = gvk.kind,
        version = gvk.version
    ))
}

/// The refusal of an object. Upstream decodes metadata and built-in kinds into typed objects, so
/// that a wrong JSON type makes a body undecodable: 400. Everything else is 422.
pub(super) fn invalid(
    place: &Place<'_>,
    name: &str,
    errors: &[FieldError],
    options: &Options<'_>,
) -> Status {
    let typed = |field: &str| match place.resource.rules {
        Rules::Custom | Rules::Crd => field.starts_with("metadata."),
        Rules::Plain | Rules::Namespace | Rules::Secret | Rules::ConfigMap => true,
    };
    let wrong: Vec<String> = errors
        .iter()
        .filter(|_| options.form == Form::Object)
        .filter(|e| e.kind == FieldErrorKind::TypeInvalid && typed(&e.field))
        .map(ToString::to_string)
        .collect();
    if wrong.is_empty() {
        place.invalid(name, errors)
    } else {
        undecodable(place, &wrong.join(", "))
    }
}

/// How lists and maps of a resource merge.
pub(super) fn typing<'a>(place: &Place<'a>) -> Typing<'a> {
    match &place.resource.schema {
        Some(schema) => Typing::Schema(schema.root()),
        None => Typing::Deduced,
    }
}

/// Records field ownership of a write that is not an apply.
pub(super) fn own(place: &Place<'_>, old: Option<&Value>, new: &mut Value, options: &Options<'_>) {
    let now = metadata::time(place.server.now());
    let manager = Manager {
        name: &options.manager,
        subresource: options.owned_as,
        api_version: &place.resource.api_version(),
        now: &now,
    };
    track_update(old, new, &manager, typing(place));
}

/// Checks once more, after a create, that it was allowed, and takes it back if not.
///
/// The namespace (or definition) may have begun to go between the check and the commit, and its
/// contents may have been listed before the commit. If it has not begun by now, that list is yet to
/// come and will show the object; so nothing is ever left behind.
async fn confirm_create(place: &Place<'_>, name: &str, revision: Revision) -> Result<(), Status> {
    let gvk = &place.resource.gvk;
    let resources = place.server.registry.resources(place.cluster);
    let confirmed = match (
        place.resource.crd(),
        resources.find(&gvk.group, &gvk.version, &place.resource.plural),
    ) {
        (None, _) => admit_create(place, name).await,
        (Some(was), Some(is)) if is.crd().is_some_and(|c| c.uid == was.uid) => {
            let resource = is.clone();
            let place = Place {
                resource: &resource,
                ..*place
            };
            admit_create(&place, name).await
        }
        (Some(_), _) => Err(Status::no_such_resource()),
    };
    let Err(status) = confirmed else {
        return Ok(());
    };
    let op = Op::Delete {
        key: place.key(name),
        expect: Expect::Modified(revision),
    };
    match place.server.store.commit(vec![op]).await {
        // Whoever changed it since sees to it.
        Ok(_) | Err(CommitError::Precondition { .. }) => Err(status),
        Err(error) => Err(commit_error(error)),
    }
}

/// Refuses creates where nothing may be created: in a namespace that is missing or going, and of a
/// definition that is going.
pub(super) async fn admit_create(place: &Place<'_>, name: &str) -> Result<(), Status> {
    let resource = place.resource.group_resource();
    if let Some(crd) = place.resource.crd()
        && crd.terminating
    {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(Status::forbidden(&resource, name, why));
    }
    let Some(namespace) = place.namespace else {
        return Ok(());
    };
    place.server.ensure_cluster(place.cluster).await?;
    let key = format!("/core/namespaces/{}/-/{namespace}", place.cluster);
    let entry = place.server.store.get(&key).await.map_err(store_error)?;
    let Some(entry) = entry else {
        let namespaces = ecp_meta::gvk::GroupResource::new("", "namespaces");
        return Err(Status::not_found(&namespaces, namespace));
    };
    if storage::is_deleting(&entry.value) {
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let cause = Cause::new(
            "NamespaceTerminating",
            &format!("namespace {namespace} is being terminated"),
            "metadata.namespace",
        );
        return Err(Status::forbidden(&resource, name, &why).cause(cause));
    }
    Ok(())
}
