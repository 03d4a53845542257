//! PUT: create or replace (SECA section 3.2, DESIGN D9).

use std::pin::pin;
use std::sync::Arc;

use axum::body::Body;
use ecp_meta::{keys, object};
use ecp_xrds::Scope;
use http::header::{LOCATION, WARNING};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::body::{Checked, Document, check_name};
use crate::cache::{Entry, KindCache, is_replaced};
use crate::control::{CallError, FIELD_MANAGER};
use crate::error::{ApiError, ErrorKind};
use crate::facade::{Facade, Slot, not_found};
use crate::limits;
use crate::path::Target;
use crate::query;
use crate::reads::json_response;
use crate::view;

/// An accepted write.
struct Written {
    entry: Arc<Entry>,
    created: bool,
}

/// What a write is conditional on: SECA's resource version, if the client named one.
type Condition = Option<i64>;

/// A PUT as it came in.
pub(crate) struct Put<'a> {
    pub(crate) target: &'a Target,
    pub(crate) name: &'a str,
    pub(crate) path: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
}

impl Facade {
    /// Creates a resource or replaces its intent.
    pub(crate) async fn put(
        &self,
        slot: Slot<'_>,
        put: Put<'_>,
    ) -> Result<Response<Body>, ApiError> {
        let Put { target, name, .. } = put;
        query::accept(put.headers)?;
        let condition = query::if_unmodified_since(put.headers)?;
        let document = Document::parse(put.body)?;
        check_names(target, name)?;
        self.check_region(target, document.region.as_deref())?;
        self.check_parents(target).await?;
        let existing = self.existing(target, name, condition).await?;
        if let Some(entry) = &existing {
            refuse_deleting(entry, target)?;
        }
        let region = self.region_for(target, existing.as_deref())?;
        let mut checked = document.check(target, name, region.as_deref(), existing.as_deref())?;
        checked.deferred = self
            .check_content(target, &checked.spec, existing.as_deref())
            .await?;
        let deadline = Instant::now() + query::settle(put.headers, self.config().settle);
        let namespace = self.namespace_for_write(target).await?;
        let existing = match existing {
            Some(entry) => Some(self.until_seen(target, entry).await),
            None => None,
        };
        let written = self
            .write(target, name, &namespace, &checked, existing, condition)
            .await?;
        let entry = match self.wait_instead_of(slot) {
            Some(_waiting) => {
                let kind = self.kind(target.info);
                settle(kind, written.entry, self.wait_over(deadline)).await
            }
            None => written.entry,
        };
        let status = if written.created {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        };
        let body = view::document(self.lens(target), &entry, "PUT");
        let mut response = json_response(status, body);
        if written.created
            && let Ok(location) = HeaderValue::from_str(put.path)
        {
            response.headers_mut().insert(LOCATION, location);
        }
        warn_of(&checked.ignored, response.headers_mut());
        Ok(response)
    }

    /// The region the client asks for. It must be known, and that of the URL; an empty one is none
    /// (section 3.2).
    fn check_region(&self, target: &Target, requested: Option<&str>) -> Result<(), ApiError> {
        let Some(region) = requested else {
            return Ok(());
        };
        let refuse = |kind, detail| {
            Err(ApiError::new(kind, format!("metadata.region: {detail}"))
                .at_pointer("/metadata/region"))
        };
        let served = &self.config().served;
        if !self.region_exists(region) {
            refuse(
                ErrorKind::ReferenceMissing,
                format!("region {region:?} does not exist"),
            )
        } else if !target.region.is_empty() && region != target.region {
            let own = &target.region;
            let hint = if served.region(region) {
                let url = served.url(region, target.info.provider);
                format!("; that of {region:?} is {url}")
            } else {
                String::new()
            };
            refuse(
                ErrorKind::Invalid,
                format!("this is the URL of region {own:?}{hint}"),
            )
        } else {
            Ok(())
        }
    }

    /// The region to write: a resource stays where it is, and names are unique in all regions.
    fn region_for(
        &self,
        target: &Target,
        existing: Option<&Entry>,
    ) -> Result<Option<String>, ApiError> {
        let Some(entry) = existing else {
            return Ok(Some(target.region.clone()).filter(|r| !r.is_empty()));
        };
        if self.sees(target, entry) {
            return Ok(entry.spec("region").and_then(Value::as_str).map(Into::into));
        }
        let region = self.region_of(entry);
        Err(ApiError::new(
            ErrorKind::Conflict,
            format!(
                "{} {:?} exists already, in region {region:?}",
                target.info.noun,
                entry.name()
            ),
        ))
    }

    /// Refuses a write below a workspace or network that does not exist or is being deleted.
    async fn check_parents(&self, target: &Target) -> Result<(), ApiError> {
        if self.has_parents(target).await? {
            return Ok(());
        }
        if let Some(elsewhere) = self.workspace_elsewhere(target) {
            return Err(ApiError::new(ErrorKind::ParentMissing, elsewhere));
        }
        let what = match target.info.scope {
            Scope::Network => format!(
                "network {:?} or workspace {:?}",
                target.network, target.workspace
            ),
            Scope::Cluster | Scope::Tenant | Scope::Workspace => {
                format!("workspace {:?}", target.workspace)
            }
        };
        Err(ApiError::new(
            ErrorKind::ParentMissing,
            format!("{what} does not exist or is being deleted"),
        ))
    }

    /// What is there already. A conditional write looks at the control plane itself when the cache
    /// has nothing: the condition means "update only" (section 1.4).
    async fn existing(
        &self,
        target: &Target,
        name: &str,
        condition: Condition,
    ) -> Result<Option<Arc<Entry>>, ApiError> {
        let kind = self.kind(target.info);
        let known = match self.cached_namespace(target) {
            Some(namespace) => {
                let key = crate::cache::item_key(&target.network, name);
                match kind.get(&namespace, &key) {
                    Some(entry) => Some(entry),
                    // The name of its object does not say that there is one already.
                    None if condition.is_some() || target.info.scope == Scope::Network => {
                        self.read_through(target, &namespace, name).await?
                    }
                    None => None,
                }
            }
            None => None,
        };
        if known.is_none() && condition.is_some() {
            return Err(not_found(target, name));
        }
        Ok(known)
    }

    fn cached_namespace(&self, target: &Target) -> Option<String> {
        let workspace = match target.info.scope {
            Scope::Cluster => return Some(String::new()),
            Scope::Tenant => "",
            Scope::Workspace | Scope::Network => target.workspace.as_str(),
        };
        let namespaces = self.cache().namespaces();
        namespaces.find(&target.tenant, workspace).map(|n| n.name)
    }

    /// The namespace to write into. A tenant's is made; a workspace's is made by the control plane,
    /// so the first resource of a new workspace may have to wait for it a little.
    async fn namespace_for_write(&self, target: &Target) -> Result<String, ApiError> {
        if target.info.scope == Scope::Tenant {
            return self.ensure_tenant(&target.tenant).await;
        }
        let mut changes = self.cache().namespaces().subscribe();
        let found = async {
            loop {
                changes.borrow_and_update();
                if let Some(namespace) = self.cached_namespace(target) {
                    return namespace;
                }
                if changes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        match tokio::time::timeout(limits::NAMESPACE_WAIT_MAX, found).await {
            Ok(namespace) => Ok(namespace),
            Err(_) => match self.namespace_of(target).await? {
                Some(namespace) => Ok(namespace),
                None => Err(ApiError::new(
                    ErrorKind::Unavailable,
                    format!(
                        "workspace {:?} is not ready yet; try again",
                        target.workspace
                    ),
                )),
            },
        }
    }

    /// Waits until the control plane has seen the change before, so that this one counts as
    /// another one (section 2.2); not for long, since it may be out of order.
    pub(crate) async fn until_seen(&self, target: &Target, entry: Arc<Entry>) -> Arc<Entry> {
        let over = tokio::time::sleep(limits::SEEN_WAIT_MAX);
        until(self.kind(target.info), entry, over, Entry::seen).await
    }

    /// Writes, again and again while others write the same object.
    async fn write(
        &self,
        target: &Target,
        name: &str,
        namespace: &str,
        checked: &Checked,
        mut existing: Option<Arc<Entry>>,
        condition: Condition,
    ) -> Result<Written, ApiError> {
        let kind = self.kind(target.info);
        let mut made = false;
        let mut repeated;
        let mut checked = checked;
        for _ in 0..limits::WRITE_ATTEMPTS_MAX {
            if let (Some(entry), Some(wanted)) = (&existing, condition) {
                check_condition(entry, wanted)?;
            }
            match self
                .write_once(
                    target,
                    name,
                    namespace,
                    checked,
                    existing.as_deref(),
                    condition,
                )
                .await
            {
                Ok((created, object)) => {
                    made |= created;
                    let entry = kind.written(object);
                    refuse_deleting(&entry, target)?;
                    let applied = !existing.as_ref().is_some_and(|e| e.shared());
                    if condition.is_none() && applied && leftover(&entry, &checked.spec) {
                        existing = Some(entry);
                        continue;
                    }
                    if let Some(before) = &existing
                        && before.digest() == entry.digest()
                    {
                        repeated = checked.repeated(&entry).map_err(ApiError::internal)?;
                        checked = &repeated;
                        existing = Some(entry);
                        continue;
                    }
                    return Ok(Written {
                        entry,
                        created: made,
                    });
                }
                Err(CallError::Conflict(_)) => {}
                Err(CallError::NotFound(_)) if existing.is_some() => {}
                Err(CallError::NotFound(_)) => {
                    return Err(ApiError::new(
                        ErrorKind::ParentMissing,
                        "the workspace or tenant does not exist any more",
                    ));
                }
                Err(error) => return Err(self.failed(error)),
            }
            existing = self.read_through(target, namespace, name).await?;
            match &existing {
                Some(entry) => {
                    self.region_for(target, Some(entry))?;
                    refuse_deleting(entry, target)?;
                }
                None if condition.is_some() => {
                    return Err(not_found(target, name));
                }
                None => {}
            }
        }
        Err(changed_too_often())
    }

    /// One write: server-side apply, or a merge where others own a part of the intent and an apply
    /// would leave their fields in place (a PUT replaces everything, section 2.1).
    async fn write_once(
        &self,
        target: &Target,
        name: &str,
        namespace: &str,
        checked: &Checked,
        existing: Option<&Entry>,
        condition: Condition,
    ) -> Result<(bool, Value), CallError> {
        let kind = self.kind(target.info);
        let object_name = match existing {
            Some(entry) => entry.object_name().to_owned(),
            None => target.object_name(name),
        };
        let inside = Some(namespace).filter(|ns| !ns.is_empty());
        let mut metadata = Map::new();
        if let Some(entry) = existing
            && (condition.is_some() || entry.shared())
        {
            metadata.insert(
                "resourceVersion".into(),
                entry.resource_version().to_string().into(),
            );
        }
        let deferred = deferred_annotation(&checked.deferred);
        if let Some(entry) = existing
            && entry.shared()
        {
            if deferred.as_deref() != object::annotation(entry.object(), keys::DEFERRED_REFERENCES)
            {
                metadata.insert(
                    "annotations".into(),
                    json!({keys::DEFERRED_REFERENCES: deferred}),
                );
            }
            let mut patch = replacement(entry.object().get("spec"), &checked.spec);
            keep_what_is_not_replaced(&mut patch);
            let patch = json!({"metadata": metadata, "spec": patch});
            let object = self
                .control()
                .merge(kind.collection(), inside, &object_name, &patch)
                .await?;
            return Ok((false, object));
        }
        metadata.insert("name".into(), object_name.as_str().into());
        if let Some(namespace) = inside {
            metadata.insert("namespace".into(), namespace.into());
        }
        if let Some(deferred) = deferred {
            metadata.insert(
                "annotations".into(),
                json!({keys::DEFERRED_REFERENCES: deferred}),
            );
        }
        let object = json!({
            "apiVersion": target.info.api_version(),
            "kind": target.info.kind,
            "metadata": metadata,
            "spec": checked.spec,
        });
        self.control()
            .apply(
                FIELD_MANAGER,
                kind.collection(),
                inside,
                &object_name,
                &object,
            )
            .await
    }
}

/// A change of something that is there, as it begins.
pub(crate) struct Opened {
    /// What the client makes it conditional on.
    pub(crate) condition: Condition,
    /// Until when it waits for the control plane.
    pub(crate) deadline: Instant,
    pub(crate) namespace: String,
    pub(crate) entry: Arc<Entry>,
}

impl Facade {
    /// Begins to delete or switch a resource: it must exist.
    pub(crate) async fn open(
        &self,
        target: &Target,
        name: &str,
        headers: &HeaderMap,
    ) -> Result<Opened, ApiError> {
        query::accept(headers)?;
        let condition = query::if_unmodified_since(headers)?;
        let deadline = Instant::now() + query::settle(headers, self.config().settle);
        let missing = || not_found(target, name);
        let namespace = self.namespace_of(target).await?.ok_or_else(missing)?;
        let entry = self.find(target, &namespace, name).await?;
        Ok(Opened {
            condition,
            deadline,
            entry: entry.ok_or_else(missing)?,
            namespace,
        })
    }
}

/// 202: what was asked for is under way (section 1.3).
pub(crate) fn accepted() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// Tells the client which members were ignored (RFC 7234, code 299).
fn warn_of(ignored: &[String], headers: &mut HeaderMap) {
    for pointer in ignored.iter().take(limits::PROBLEM_SOURCES_MAX) {
        let text = format!("299 - \"{} is unknown and was ignored\"", plain(pointer));
        if let Ok(warning) = HeaderValue::from_str(&text) {
            headers.append(WARNING, warning);
        }
    }
}

/// Printable characters only, so that a client's text cannot break a header.
fn plain(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_ascii_graphic() && *c != '"' && *c != '\\')
        .collect()
}

/// Checks every name of the path (section 2.1).
fn check_names(target: &Target, name: &str) -> Result<(), ApiError> {
    let parents = [
        ("tenant", &target.tenant),
        ("workspace", &target.workspace),
        ("network", &target.network),
    ];
    for (what, parent) in parents.into_iter().filter(|(_, p)| !p.is_empty()) {
        check_name(what, parent)?;
    }
    check_name("name", name)
}

/// A resource that is being deleted takes no changes: they would be lost.
pub(crate) fn refuse_deleting(entry: &Entry, target: &Target) -> Result<(), ApiError> {
    if entry.deleting() {
        Err(ApiError::new(
            ErrorKind::Conflict,
            format!(
                "{} {:?} is being deleted; try again when it is gone",
                target.info.noun,
                entry.name()
            ),
        ))
    } else {
        Ok(())
    }
}

/// Says that a write lost against others again and again.
pub(crate) fn changed_too_often() -> ApiError {
    ApiError::new(
        ErrorKind::Conflict,
        "the resource is changed too often at the same time; try again",
    )
}

/// Compares `if-unmodified-since` with SECA's resource version (section 1.4).
pub(crate) fn check_condition(entry: &Entry, wanted: i64) -> Result<(), ApiError> {
    let revision = entry.revision();
    if revision == wanted {
        Ok(())
    } else {
        Err(ApiError::new(
            ErrorKind::Precondition,
            format!("the resource has version {revision}, not {wanted}"),
        )
        .at_parameter("if-unmodified-since"))
    }
}

/// The annotation that says which references nothing has to wait for.
fn deferred_annotation(paths: &[String]) -> Option<String> {
    (!paths.is_empty()).then(|| paths.join(","))
}

/// The merge patch that turns `old` into `new`: members of `old` that `new` lacks become null.
fn replacement(old: Option<&Value>, new: &Value) -> Value {
    let (Some(Value::Object(old)), Value::Object(new)) = (old, new) else {
        return new.clone();
    };
    let removed = old
        .keys()
        .filter(|k| !new.contains_key(*k))
        .map(|k| (k.clone(), Value::Null));
    let kept = new
        .iter()
        .map(|(k, v)| (k.clone(), replacement(old.get(k), v)));
    Value::Object(removed.chain(kept).collect())
}

/// Whether an apply left something of others in place: they wrote just before it, or the cache had
/// not heard of them yet.
fn leftover(entry: &Entry, spec: &Value) -> bool {
    let mut patch = replacement(entry.object().get("spec"), spec);
    keep_what_is_not_replaced(&mut patch);
    entry.shared() && patch != *spec
}

/// Leaves alone what is no part of what a client replaces.
fn keep_what_is_not_replaced(patch: &mut Value) {
    if let Value::Object(patch) = patch {
        patch.retain(|name, _| is_replaced(name));
    }
}

/// Waits until the control plane is done with a resource, or the wait is over.
pub(crate) async fn settle(
    kind: &Arc<KindCache>,
    written: Arc<Entry>,
    over: impl Future<Output = ()>,
) -> Arc<Entry> {
    until(kind, written, over, Entry::settled).await
}

/// Waits until something holds of a resource, or the wait is over.
async fn until(
    kind: &Arc<KindCache>,
    written: Arc<Entry>,
    over: impl Future<Output = ()>,
    holds: fn(&Entry) -> bool,
) -> Arc<Entry> {
    let mut over = pin!(over);
    let mut changes = kind.subscribe(written.uid());
    let mut latest = written;
    loop {
        match changes.current() {
            Some(entry) if entry.resource_version() >= latest.resource_version() => latest = entry,
            Some(_) => {}
            // Deleted by somebody in the meantime: what was written is the honest answer.
            None => return latest,
        }
        if holds(&latest) {
            return latest;
        }
        tokio::select! {
            biased;
            () = &mut over => return latest,
            () = changes.changed() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replacement_removes_what_is_not_in_the_new_spec() {
        let old = json!({"sizeGB": 1, "sourceImageRef": {"resource": "i"}, "commonData":
            {"labels": {"a": "1", "b": "2"}}, "crossplane": {"x": 1}, "list": [1, 2]});
        let new = json!({"sizeGB": 2, "commonData": {"labels": {"a": "1"}}, "list": [2]});
        let mut patch = replacement(Some(&old), &new);
        keep_what_is_not_replaced(&mut patch);
        assert_eq!(
            patch,
            json!({"sizeGB": 2, "sourceImageRef": null, "commonData":
                {"labels": {"a": "1", "b": null}}, "list": [2]})
        );
    }

    #[test]
    fn header_texts_are_plain() {
        assert_eq!(plain("/spec/a\"b\\c\r\nd ä"), "/spec/abcd");
    }
}
