//! DELETE (SECA section 3.8).

use std::pin::pin;
use std::sync::Arc;

use axum::body::Body;
use ecp_meta::object;
use http::{HeaderMap, Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cache::{Entry, KindCache};
use crate::control::CallError;
use crate::error::{ApiError, ErrorKind};
use crate::facade::{Facade, Slot};
use crate::limits;
use crate::path::Target;
use crate::query;
use crate::writes::check_condition;

/// Kinds that keep their parent from being deleted: kind of the parent, kind of the child.
const PROTECTED: [(&str, &str); 2] = [("Workspace", "Instance"), ("Network", "RouteTable")];

impl Facade {
    /// Starts the deletion of a resource.
    pub(crate) async fn delete(
        &self,
        slot: Slot<'_>,
        target: &Target,
        name: &str,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, ApiError> {
        query::accept(headers)?;
        let condition = query::if_unmodified_since(headers)?;
        let missing = || {
            ApiError::new(
                ErrorKind::NotFound,
                format!("{} {name:?} does not exist", target.info.noun),
            )
        };
        let deadline = Instant::now() + query::settle(headers, self.config().settle);
        let namespace = self.namespace_of(target).await?.ok_or_else(missing)?;
        let mut entry = self
            .find(target, &namespace, name)
            .await?
            .ok_or_else(missing)?;
        let kind = self.kind(target.info);
        for _ in 0..limits::WRITE_ATTEMPTS_MAX {
            if let Some(wanted) = condition {
                check_condition(&entry, wanted)?;
            }
            if !entry.deleting() {
                self.refuse_protected(target, name)?;
                match self.delete_once(kind, &entry, condition.is_some()).await {
                    Ok(()) => {}
                    Err(CallError::Conflict(_)) => {
                        entry = self
                            .read_through(target, &namespace, name)
                            .await?
                            .ok_or_else(missing)?;
                        continue;
                    }
                    Err(CallError::NotFound(_)) => {
                        kind.gone(entry.uid());
                        return Err(missing());
                    }
                    Err(error) => return Err(self.failed(error)),
                }
            }
            if let Some(_waiting) = self.wait_instead_of(slot) {
                wait_gone(kind, entry.uid(), self.wait_over(deadline)).await;
            }
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::ACCEPTED;
            return Ok(response);
        }
        Err(ApiError::new(
            ErrorKind::Conflict,
            "the resource is changed too often at the same time; try again",
        ))
    }

    async fn delete_once(
        &self,
        kind: &Arc<KindCache>,
        entry: &Entry,
        unchanged: bool,
    ) -> Result<(), CallError> {
        let mut preconditions = json!({"uid": entry.uid()});
        if unchanged {
            preconditions["resourceVersion"] = entry.resource_version().to_string().into();
        }
        let inside = Some(entry.namespace()).filter(|ns| !ns.is_empty());
        let left = self
            .control()
            .delete(
                kind.collection(),
                inside,
                entry.object_name(),
                preconditions,
            )
            .await?;
        let status = left.get("kind").and_then(Value::as_str) == Some("Status");
        if status || !object::is_deleting(&left) {
            kind.gone(entry.uid());
        } else {
            kind.written(left);
        }
        Ok(())
    }

    /// Refuses to delete what still holds protected resources. Those that are being deleted
    /// themselves do not count (section 3.8).
    fn refuse_protected(&self, target: &Target, name: &str) -> Result<(), ApiError> {
        for (_, child) in PROTECTED.iter().filter(|(p, _)| *p == target.info.kind) {
            let Some(children) = self.cache().by_kind(child) else {
                continue;
            };
            let (workspace, prefix) = match target.info.kind {
                "Workspace" => (name, String::new()),
                _ => (target.workspace.as_str(), format!("{name}/")),
            };
            let Some(namespace) = self.cache().namespaces().find(&target.tenant, workspace) else {
                continue;
            };
            let live = |e: &Entry| !e.deleting() && e.key().starts_with(&prefix);
            if children.any(&namespace.name, live) {
                return Err(ApiError::new(
                    ErrorKind::Conflict,
                    format!(
                        "{} {name:?} still holds a live {}",
                        target.info.noun,
                        children.info().noun
                    ),
                ));
            }
        }
        Ok(())
    }
}

/// Waits until an object is gone, or the wait is over.
async fn wait_gone(kind: &Arc<KindCache>, uid: &str, over: impl Future<Output = ()>) {
    let mut over = pin!(over);
    let mut changes = kind.subscribe(uid);
    while changes.current().is_some() {
        tokio::select! {
            biased;
            () = &mut over => return,
            () = changes.changed() => {}
        }
    }
}
