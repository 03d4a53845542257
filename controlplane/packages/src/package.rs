//! Packages to revisions (upstream `internal/controller/pkg/manager`).
//!
//! Two differences, both so that what works is not stopped for what does not (crossplane#6289,
//! #3115): a revision stays active until its successor has been checked as a whole, and with the
//! policy `Manual` until somebody activates another one.

use std::sync::Arc;

use ecp_meta::{condition, object};
use ecp_package::xpkg::PackageKind;
use ecp_xr::event::Event;
use serde_json::{Value, json};

use crate::Shared;
use crate::api::Mode;
use crate::controller::{Failure, Next, Reconciler, Subject};
use crate::kinds::{self, GROUP, Kind, PARENT_LABEL};
use crate::limits::PULL_INTERVAL;
use crate::names::revision_name;
use crate::source::{Contents, PullPolicy};

/// Fields of a package that its revisions have, too.
const COPIED: [&str; 8] = [
    "packagePullPolicy",
    "packagePullSecrets",
    "ignoreCrossplaneConstraints",
    "skipDependencyResolution",
    "commonLabels",
    "commonAnnotations",
    "runtimeConfigRef",
    "image",
];

/// Makes the revisions of packages of one kind.
pub(crate) struct Manager {
    pub(crate) kind: PackageKind,
    pub(crate) shared: Arc<Shared>,
}

impl Reconciler for Manager {
    fn name(&self) -> String {
        format!("packages/{}.{GROUP}", self.kind.as_str().to_lowercase())
    }

    fn kind(&self) -> Kind {
        kinds::package(self.kind)
    }

    async fn reconcile(&self, name: &str) -> Result<Next, Failure> {
        let Some(mut subject) = Subject::load(self, &self.shared, "package", name).await? else {
            return Ok(Next::Wait);
        };
        // Garbage collection deletes the revisions of what is deleted.
        if !subject.go_on().await? || object::is_deleting(&subject.object) {
            return Ok(Next::Wait);
        }
        let source = text(&subject.object, "/spec/package").to_owned();
        let policy = policy(&subject.object);
        let contents = match self.contents(&source, policy).await {
            Ok(contents) => contents,
            Err(why) => {
                let why = format!("cannot unpack package: {why}");
                // What an older revision installed is still there.
                if text(&subject.object, "/status/currentRevision").is_empty() {
                    subject
                        .conditions
                        .set("Installed", false, "UnpackingPackage", &why);
                }
                let reason = "UnhealthyPackageRevision";
                subject.conditions.set("Healthy", false, reason, &why);
                subject
                    .tell(Event::warning("UnpackPackage", why.as_str()))
                    .await;
                subject.write_status(&[]).await?;
                return Err(Failure::Error(why));
            }
        };
        self.install(&mut subject, &source, &contents).await?;
        Ok(match policy {
            PullPolicy::Always => Next::After(PULL_INTERVAL),
            _ => Next::Wait,
        })
    }
}

impl Manager {
    async fn contents(&self, source: &str, policy: PullPolicy) -> Result<Arc<Contents>, String> {
        let contents = self.shared.packages.get(source, policy).await?;
        if contents.package.meta.kind == self.kind {
            return Ok(contents);
        }
        Err(format!(
            "{source} is a {} package, not a {}",
            contents.package.meta.kind.as_str(),
            self.kind.as_str()
        ))
    }

    async fn install(
        &self,
        subject: &mut Subject<'_>,
        source: &str,
        contents: &Contents,
    ) -> Result<(), Failure> {
        let api = &self.shared.api;
        let name = object::name(&subject.object).to_owned();
        let kind = kinds::revision(self.kind);
        let revisions = api.list(&kind, &format!("{PARENT_LABEL}={name}")).await;
        let revisions =
            revisions.map_err(|e| Failure::from_api("cannot list revisions for package", &e))?;
        let current = revision_name(&name, &contents.digest);
        let existing = revisions.iter().find(|r| object::name(r) == current);
        let others = || revisions.iter().filter(|r| object::name(r) != current);

        let manual = text(&subject.object, "/spec/revisionActivationPolicy") == "Manual";
        let was_active = existing.is_some_and(is_active);
        let checked = existing.is_some_and(|r| condition::is_true(r, "RevisionHealthy"));
        let only = !others().any(is_active);
        let active = was_active || (!manual && (only || checked));

        let newest = others().map(number).max().unwrap_or(0);
        let mut revision = existing.cloned().unwrap_or_else(|| {
            json!({
                "apiVersion": kind.gvk.api_version(), "kind": kind.gvk.kind,
                "metadata": {"name": current}, "spec": {},
            })
        });
        object::set_label(&mut revision, PARENT_LABEL, &name);
        revision["metadata"]["ownerReferences"] =
            json!([object::controller_ref_to(&subject.object)]);
        for field in COPIED {
            let value = match field {
                "image" => Value::from(source),
                field => subject.object["spec"][field].clone(),
            };
            set_or_remove(&mut revision["spec"], field, value);
        }
        if kinds::has_runtime(self.kind) {
            for side in ["Server", "Client"] {
                let secret = format!("{name}-tls-{}", side.to_lowercase());
                revision["spec"][format!("tls{side}SecretName")] = secret.into();
            }
        }
        revision["spec"]["desiredState"] = if active { "Active" } else { "Inactive" }.into();
        if number(&revision) <= newest {
            revision["spec"]["revision"] = (newest + 1).into();
        }
        let doing = "cannot apply package revision";
        let written = match existing {
            None => api.create(&kind, &revision, Mode::Do).await,
            Some(old) if *old == revision => Ok(revision),
            Some(_) => api.replace(&kind, &revision, Mode::Do).await,
        };
        let written = match written {
            Ok(written) => written,
            Err(error) => {
                let failure = Failure::from_api(doing, &error);
                if let Failure::Error(why) = &failure {
                    subject
                        .tell(Event::warning("InstallPackageRevision", why.as_str()))
                        .await;
                }
                return Err(failure);
            }
        };
        if active {
            for other in others().filter(|r| is_active(r)) {
                let mut inactive = other.clone();
                inactive["spec"]["desiredState"] = "Inactive".into();
                let done = api.replace(&kind, &inactive, Mode::Do).await;
                done.map_err(|e| Failure::from_api("cannot update inactive package revision", &e))?;
            }
        }
        self.collect_garbage(subject, &kind, &revisions, &current)
            .await?;

        let (healthy, reason, message) = health(self.kind, &written);
        if healthy && !condition::is_true(&subject.object, "Healthy") {
            let event = "Successfully installed package revision";
            subject
                .tell(Event::normal("InstallPackageRevision", event))
                .await;
        }
        subject.conditions.set("Healthy", healthy, reason, &message);
        if active || others().any(is_active) {
            subject
                .conditions
                .set("Installed", true, "ActivePackageRevision", "");
        } else {
            let why = "Package is inactive";
            subject
                .conditions
                .set("Installed", false, "InactivePackageRevision", why);
        }
        subject
            .write_status(&[
                ("currentRevision", current.into()),
                ("currentIdentifier", source.into()),
                ("resolvedPackage", contents.resolved.as_str().into()),
            ])
            .await
    }

    /// Deletes the oldest revision when there are more than the package wants to keep.
    async fn collect_garbage(
        &self,
        subject: &Subject<'_>,
        kind: &Kind,
        revisions: &[Value],
        current: &str,
    ) -> Result<(), Failure> {
        let limit = subject.object.pointer("/spec/revisionHistoryLimit");
        let Some(limit @ 1..) = limit.and_then(Value::as_u64) else {
            return Ok(());
        };
        let is_old = |r: &&Value| object::name(r) != current && !is_active(r);
        let old: Vec<&Value> = revisions.iter().filter(is_old).collect();
        let (Some(oldest), true) = (
            old.iter().min_by_key(|r| number(r)),
            old.len() as u64 > limit,
        ) else {
            return Ok(());
        };
        let deleted = self.shared.api.delete(kind, oldest).await;
        if let Err(error) = deleted {
            let why = format!("cannot garbage collect old package revision: {error}");
            subject
                .tell(Event::warning("GarbageCollect", why.as_str()))
                .await;
            return Err(Failure::Error(why));
        }
        Ok(())
    }
}

/// The health of a package, from that of its newest revision (upstream `v1.PackageHealth`).
fn health(kind: PackageKind, revision: &Value) -> (bool, &'static str, String) {
    let part = |condition: &str, what: &str| {
        if condition::is_true(revision, condition) {
            return None;
        }
        let status = condition::status(revision, condition).unwrap_or("Unknown");
        let mut text = format!("{what} health is {status:?}");
        let found = condition::find(revision, condition);
        if let Some(why) = found
            .and_then(|c| c["message"].as_str())
            .filter(|m| !m.is_empty())
        {
            text.push_str(" with message: ");
            text.push_str(why);
        }
        Some(text)
    };
    let unhealthy = part("RevisionHealthy", "Package revision").or_else(|| {
        kinds::has_runtime(kind)
            .then(|| part("RuntimeHealthy", "Package runtime"))
            .flatten()
    });
    match unhealthy {
        Some(why) => (false, "UnhealthyPackageRevision", why),
        None => (true, "HealthyPackageRevision", String::new()),
    }
}

/// When a package is pulled.
pub(crate) fn policy(package: &Value) -> PullPolicy {
    match text(package, "/spec/packagePullPolicy") {
        "Always" => PullPolicy::Always,
        "Never" => PullPolicy::Never,
        _ => PullPolicy::IfNotPresent,
    }
}

/// Text at a path; empty where there is none.
pub(crate) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    let text = object.pointer(path).and_then(Value::as_str);
    text.unwrap_or_default()
}

/// Whether a revision shall be active.
pub(crate) fn is_active(revision: &Value) -> bool {
    text(revision, "/spec/desiredState") == "Active"
}

fn number(revision: &Value) -> i64 {
    let number = revision.pointer("/spec/revision").and_then(Value::as_i64);
    number.unwrap_or(0)
}

fn set_or_remove(of: &mut Value, field: &str, value: Value) {
    match of.as_object_mut() {
        Some(map) if value.is_null() => {
            map.remove(field);
        }
        Some(map) => {
            map.insert(field.to_owned(), value);
        }
        None => {}
    }
}
