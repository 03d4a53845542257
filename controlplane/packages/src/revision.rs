//! Revisions: what a package holds is checked and installed (upstream
//! `internal/controller/pkg/revision`).
//!
//! A difference: an inactive revision that was never active is checked as if it were, by dry run and
//! without writing anything, so that the manager knows whether it can take over.

use std::sync::Arc;

use ecp_meta::{condition, object};
use ecp_package::xpkg::{Constraint, PackageKind, version};
use ecp_xr::event::Event;
use serde_json::{Value, json};

use crate::api::{Api, Mode};
use crate::controller::{Failure, Next, Reconciler, Subject};
use crate::establish::{self, Parent};
use crate::kinds::{self, GROUP, Kind, PARENT_LABEL};
use crate::lock::{self, LockPackage};
use crate::names::{Source, parent};
use crate::package::{is_active, policy, text};
use crate::source::Contents;
use crate::{CROSSPLANE_VERSION, Shared};

const FINALIZER: &str = "revision.pkg.crossplane.io";
const LOCK: &str = "lock";

/// Installs the revisions of packages of one kind.
pub(crate) struct Revisions {
    pub(crate) kind: PackageKind,
    pub(crate) shared: Arc<Shared>,
}

/// What is wrong with a revision: reason of the event, and words.
struct Unhealthy(&'static str, String);

impl Reconciler for Revisions {
    fn name(&self) -> String {
        format!(
            "packages/{}revision.{GROUP}",
            self.kind.as_str().to_lowercase()
        )
    }

    fn kind(&self) -> Kind {
        kinds::revision(self.kind)
    }

    async fn reconcile(&self, name: &str) -> Result<Next, Failure> {
        let api = &self.shared.api;
        let loaded = Subject::load(self, &self.shared, "package revision", name).await?;
        let Some(mut subject) = loaded else {
            return Ok(Next::Wait);
        };
        if object::annotation(&subject.object, "crossplane.io/paused") != Some("true")
            && object::is_deleting(&subject.object)
        {
            leave_lock(api, name).await?;
            let object = subject.object.take();
            let done = api
                .set_finalizer(&self.kind(), object, FINALIZER, false)
                .await;
            let doing = "cannot remove package revision finalizer";
            return done
                .map(|_| Next::Wait)
                .map_err(|e| Failure::from_api(doing, &e));
        }
        if !subject.go_on().await? {
            return Ok(Next::Wait);
        }
        let object = subject.object.clone();
        let with = api
            .set_finalizer(&self.kind(), object, FINALIZER, true)
            .await;
        subject.object =
            with.map_err(|e| Failure::from_api("cannot add package revision finalizer", &e))?;
        if !is_active(&subject.object) {
            leave_lock(api, name).await?;
            establish::release(api, &subject.object).await?;
            let refs = subject
                .object
                .pointer("/status/objectRefs")
                .and_then(Value::as_array);
            if refs.is_some_and(|refs| !refs.is_empty()) {
                return self.healthy(&mut subject, &[]).await;
            }
        }
        match self.install(&mut subject).await {
            Ok(Ok(fields)) => self.healthy(&mut subject, &fields).await,
            Ok(Err(Unhealthy(reason, why))) => {
                subject
                    .conditions
                    .set("RevisionHealthy", false, "UnhealthyPackageRevision", &why);
                subject.tell(Event::warning(reason, why.as_str())).await;
                subject.write_status(&[]).await?;
                Err(Failure::Error(why))
            }
            Err(failure) => Err(failure),
        }
    }
}

impl Revisions {
    async fn healthy(
        &self,
        subject: &mut Subject<'_>,
        fields: &[(&str, Value)],
    ) -> Result<Next, Failure> {
        if !condition::is_true(&subject.object, "RevisionHealthy") {
            let event = "Successfully reconciled package revision";
            subject.tell(Event::normal("SyncPackage", event)).await;
        }
        subject
            .conditions
            .set("RevisionHealthy", true, "HealthyPackageRevision", "");
        subject.write_status(fields).await?;
        Ok(Next::Wait)
    }

    /// Checks and installs; returns fields of the status.
    async fn install(
        &self,
        subject: &mut Subject<'_>,
    ) -> Result<Result<Vec<(&'static str, Value)>, Unhealthy>, Failure> {
        let source = text(&subject.object, "/spec/image").to_owned();
        let policy = policy(&subject.object);
        let contents = match self.shared.packages.get(&source, policy).await {
            Ok(contents) => contents,
            Err(why) => {
                return Ok(Err(Unhealthy(
                    "ParsePackage",
                    format!("cannot get package: {why}"),
                )));
            }
        };
        if let Err(unhealthy) = self.validate(&subject.object, &contents) {
            return Ok(Err(unhealthy));
        }
        let mut labelled = subject.object.clone();
        let meta = &contents.package.meta;
        for (key, value) in meta.labels.iter().filter(|(key, _)| *key != PARENT_LABEL) {
            object::set_label(&mut labelled, key, value);
        }
        for (key, value) in &meta.annotations {
            object::set_annotation(&mut labelled, key, value);
        }
        let doing = "cannot update package revision object metadata";
        subject
            .write(labelled)
            .await
            .map_err(|e| Failure::from_api(doing, &e))?;
        let mut fields = vec![
            ("resolvedImage", contents.resolved.as_str().into()),
            (
                "capabilities",
                contents.package.meta.capabilities.clone().into(),
            ),
        ];
        let active = is_active(&subject.object);
        let skip = subject.object.pointer("/spec/skipDependencyResolution");
        if active && skip != Some(&Value::Bool(true)) {
            let resolution = self.resolve(&subject.object, &source, &contents).await?;
            fields.extend([
                ("foundDependencies", resolution.found.into()),
                ("installedDependencies", resolution.installed.into()),
                ("invalidDependencies", resolution.invalid.into()),
            ]);
            if let Some(why) = resolution.error {
                subject.write_status(&fields).await?;
                let why = format!("cannot resolve package dependencies: {why}");
                return Ok(Err(Unhealthy("ResolveDependencies", why)));
            }
        }
        let object = subject.object.clone();
        let parent = Parent {
            revision: &object,
            kind: self.kind,
        };
        let (wanted, skipped) = match establish::plan(&parent, &contents.package.objects) {
            Ok(planned) => planned,
            Err(why) => return Ok(Err(Unhealthy("LintPackage", lint_failed(&why)))),
        };
        for why in skipped {
            subject.tell(Event::warning("LintPackage", why)).await;
        }
        let siblings = match active {
            true => Vec::new(),
            false => self.siblings(&object).await?,
        };
        let api = &self.shared.api;
        let established = async {
            establish::check(api, &parent, &siblings, &wanted).await?;
            match active {
                true => establish::establish(api, &parent, &wanted).await.map(Some),
                false => Ok(None),
            }
        };
        match established.await {
            Ok(Some(references)) => fields.push(("objectRefs", references.into())),
            Ok(None) => {}
            Err(Failure::Error(why)) => {
                let why = format!("cannot establish control of object: {why}");
                return Ok(Err(Unhealthy("SyncPackage", why)));
            }
            Err(Failure::Conflict) => return Err(Failure::Conflict),
        }
        Ok(Ok(fields))
    }

    fn validate(&self, revision: &Value, contents: &Contents) -> Result<(), Unhealthy> {
        if contents.package.meta.kind != self.kind {
            let why = format!("package meta type is not {}", self.kind.as_str());
            return Err(Unhealthy("ValidatePackage", why));
        }
        let ignored = revision.pointer("/spec/ignoreCrossplaneConstraints");
        let Some(range) = contents.package.meta.crossplane.as_deref() else {
            return Ok(());
        };
        if ignored == Some(&Value::Bool(true)) {
            return Ok(());
        }
        let own = version(CROSSPLANE_VERSION);
        let compatible = Constraint::parse(range).and_then(|range| Ok(range.has(&own?)));
        let why = match compatible {
            Ok(true) => return Ok(()),
            Ok(false) => format!("it asks for {range}"),
            Err(why) => why,
        };
        Err(Unhealthy(
            "LintPackage",
            format!(
                "incompatible Crossplane version: package is not compatible with Crossplane \
                 version (v{CROSSPLANE_VERSION}): {why}"
            ),
        ))
    }

    /// Other revisions of the same package.
    async fn siblings(&self, revision: &Value) -> Result<Vec<Value>, Failure> {
        let labels = format!("{PARENT_LABEL}={}", parent(revision));
        let all = self.shared.api.list(&self.kind(), &labels).await;
        let mut all = all.map_err(|e| Failure::from_api("cannot list revisions", &e))?;
        all.retain(|r| object::uid(r) != object::uid(revision));
        Ok(all)
    }

    /// Enters the Lock, in place of other revisions of the package, and resolves dependencies.
    async fn resolve(
        &self,
        revision: &Value,
        source: &str,
        contents: &Contents,
    ) -> Result<lock::Resolution, Failure> {
        let failed = |e| Failure::from_api("cannot get or create lock", &e);
        let api = &self.shared.api;
        let kind = kinds::lock();
        let lock = match api.find(&kind, None, LOCK).await.map_err(failed)? {
            Some(lock) => lock,
            None => {
                let empty = json!({"apiVersion": kind.gvk.api_version(), "kind": "Lock",
                    "metadata": {"name": LOCK}});
                match api.create(&kind, &empty, Mode::Do).await {
                    Ok(lock) => lock,
                    Err(error) if error.already_exists() => return Err(Failure::Conflict),
                    Err(error) => return Err(failed(error)),
                }
            }
        };
        let Source {
            repository,
            identifier,
        } = Source::parse(source);
        let own = LockPackage {
            api_version: format!("{GROUP}/v1"),
            kind: self.kind.as_str().into(),
            name: object::name(revision).into(),
            source: repository,
            version: identifier,
            dependencies: contents.package.meta.depends_on.clone(),
        };
        let siblings = self.siblings(revision).await?;
        let mut packages = lock::packages(&lock);
        packages.retain(|p| siblings.iter().all(|s| object::name(s) != p.name));
        match packages.iter_mut().find(|p| p.name == own.name) {
            Some(entry) => *entry = own.clone(),
            None => packages.push(own.clone()),
        }
        let mut changed = lock.clone();
        changed["packages"] = lock::to_json(&packages);
        if changed != lock {
            let written = api.replace(&kind, &changed, Mode::Do).await;
            written.map_err(|e| Failure::from_api("cannot update lock", &e))?;
        }
        Ok(lock::resolve(&packages, &own))
    }
}

fn lint_failed(why: &str) -> String {
    format!("linting package contents failed: {why}")
}

/// Takes a revision out of the Lock.
async fn leave_lock(api: &Api, name: &str) -> Result<(), Failure> {
    let failed = |e| Failure::from_api("cannot remove package revision from Lock", &e);
    let kind = kinds::lock();
    let Some(lock) = api.find(&kind, None, LOCK).await.map_err(failed)? else {
        return Ok(());
    };
    let mut packages = lock::packages(&lock);
    let before = packages.len();
    packages.retain(|p| p.name != name);
    if packages.len() == before {
        return Ok(());
    }
    let mut changed = lock;
    changed["packages"] = lock::to_json(&packages);
    let written = api.replace(&kind, &changed, Mode::Do).await;
    written.map(drop).map_err(failed)
}
