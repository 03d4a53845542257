//! DELETE (SECA section 3.8).

use std::pin::pin;
use std::sync::Arc;

use axum::body::Body;
use ecp_meta::object;
use ecp_xrds::reference::Resolved;
use ecp_xrds::{KindInfo, RefField};
use http::{HeaderMap, Response};
use serde_json::{Value, json};

use crate::cache::{Entry, KindCache, item_key};
use crate::checks::uses;
use crate::control::CallError;
use crate::error::{ApiError, ErrorKind};
use crate::facade::{Facade, Slot, not_found};
use crate::limits;
use crate::path::Target;
use crate::writes::{Opened, accepted, changed_too_often, check_condition};

/// What keeps a resource from being deleted while it is live (section 3.8): the kind to delete, the
/// kind that needs it, and how.
const PROTECTED: [(&str, &str, Need); 4] = [
    ("Workspace", "Instance", Need::Within),
    ("Network", "RouteTable", Need::Within),
    ("BlockStorage", "Instance", Need::Reference),
    ("NIC", "Instance", Need::Reference),
];

/// How a live resource needs another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// It is in it, and would go with it.
    Within,
    /// It refers to it.
    Reference,
}

/// Paths of the references by which live resources of a kind keep others from being deleted.
pub(crate) fn protecting(user: &'static KindInfo) -> impl Iterator<Item = &'static str> {
    let protects = |field: &&RefField| {
        PROTECTED.iter().any(|(kind, by, need)| {
            *by == user.kind && *need == Need::Reference && field.to.contains(kind)
        })
    };
    user.references.iter().filter(protects).map(|f| f.path)
}

impl Facade {
    /// Starts the deletion of a resource.
    pub(crate) async fn delete(
        &self,
        slot: Slot<'_>,
        target: &Target,
        name: &str,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, ApiError> {
        let missing = || not_found(target, name);
        let Opened {
            condition,
            deadline,
            namespace,
            mut entry,
        } = self.open(target, name, headers).await?;
        let kind = self.kind(target.info);
        for _ in 0..limits::WRITE_ATTEMPTS_MAX {
            if let Some(wanted) = condition {
                check_condition(&entry, wanted)?;
            }
            if !entry.deleting() {
                self.refuse_protected(target, name).await?;
                match self.delete_once(kind, &entry, condition.is_some()).await {
                    Ok(()) => {}
                    Err(CallError::Conflict(_)) => {
                        entry = self
                            .find_now(target, &namespace, name)
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
            return Ok(accepted());
        }
        Err(changed_too_often())
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

    /// Refuses to delete what a live resource needs. Those that are being deleted themselves do not
    /// count (section 3.8).
    ///
    /// What goes with its parent is lost with it, so that is looked for in the control plane. For
    /// the rest the cache is asked: the cloud keeps what is in use.
    async fn refuse_protected(&self, target: &Target, name: &str) -> Result<(), ApiError> {
        for (_, user, need) in PROTECTED.iter().filter(|(k, ..)| *k == target.info.kind) {
            let Some(users) = self.cache().by_kind(user) else {
                continue;
            };
            let within = Target {
                info: users.info(),
                workspace: match target.info.kind {
                    "Workspace" => name.into(),
                    _ => target.workspace.clone(),
                },
                network: match target.info.kind {
                    "Network" => name.into(),
                    _ => String::new(),
                },
                name: None,
                ..target.clone()
            };
            let found = match need {
                Need::Within => self.live_within(users, &within).await?,
                Need::Reference => {
                    self.live_user(users, within, &Resolved::from(target))
                        .await?
                }
            };
            if let Some(found) = found {
                let what = match need {
                    Need::Within => "still holds",
                    Need::Reference => "is used by",
                };
                return Err(ApiError::new(
                    ErrorKind::Conflict,
                    format!(
                        "{} {name:?} {what} the live {} {found:?}",
                        target.info.noun,
                        users.info().noun,
                    ),
                ));
            }
        }
        Ok(())
    }

    /// The name of a live resource below a parent, as the control plane has it now.
    async fn live_within(
        &self,
        kind: &KindCache,
        within: &Target,
    ) -> Result<Option<String>, ApiError> {
        let Some(namespace) = self.namespace_of(within).await? else {
            return Ok(None);
        };
        let prefix = match within.network.as_str() {
            "" => String::new(),
            network => item_key(network, ""),
        };
        let mut token = None;
        loop {
            let page = self
                .control()
                .list(kind.collection(), Some(&namespace), token.as_deref())
                .await
                .map_err(|e| self.failed(e))?;
            let entries = page.items.into_iter().map(|o| Entry::new(kind.info(), o));
            let mut live = entries.filter(|e| !e.deleting() && e.key().starts_with(&prefix));
            if let Some(entry) = live.next() {
                return Ok(Some(entry.name().to_owned()));
            }
            token = page.continue_token;
            if token.is_none() {
                return Ok(None);
            }
        }
    }

    /// The name of a live resource that refers to another one of its tenant. One that the cache
    /// believes in is looked at again: it may be on its way out.
    async fn live_user(
        &self,
        kind: &KindCache,
        mut within: Target,
        used: &Resolved,
    ) -> Result<Option<String>, ApiError> {
        for (workspace, namespace) in self.cache().namespaces().workspaces(&used.tenant) {
            within.workspace = workspace;
            let is_user = |e: &Entry| !e.deleting() && uses(&within, e, used);
            let users = kind.mentioning(&namespace, &used.name);
            for user in users.iter().filter(|user| is_user(user)) {
                let now = self.read_through(&within, &namespace, user.name()).await?;
                if now.is_some_and(|entry| is_user(&entry)) {
                    return Ok(Some(user.name().to_owned()));
                }
            }
        }
        Ok(None)
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
