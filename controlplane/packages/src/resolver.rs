//! Missing dependencies to packages (upstream `internal/controller/pkg/resolver`).
//!
//! A difference: all that can be installed is, whatever is wrong with others (crossplane#3423), and
//! a version is chosen that all who ask for the package accept.

use std::sync::Arc;

use ecp_meta::gvk::GroupVersionKind;
use ecp_meta::object;
use ecp_package::xpkg::{Dependency, PackageKind};
use ecp_xr::status::Conditions;
use serde_json::json;

use crate::Shared;
use crate::api::Mode;
use crate::controller::{Failure, Next, Reconciler, Subject};
use crate::kinds::{self, GROUP, Kind};
use crate::lock;
use crate::names::dependency_name;

const FINALIZER: &str = "lock.pkg.crossplane.io";

/// Installs what packages of the Lock depend on.
pub(crate) struct Resolver {
    pub(crate) shared: Arc<Shared>,
}

impl Reconciler for Resolver {
    fn name(&self) -> String {
        format!("packages/lock.{GROUP}")
    }

    fn kind(&self) -> Kind {
        kinds::lock()
    }

    async fn reconcile(&self, name: &str) -> Result<Next, Failure> {
        let api = &self.shared.api;
        let found = api.find(&self.kind(), None, name).await;
        let Some(lock) = found.map_err(|e| Failure::from_api("cannot get package lock", &e))?
        else {
            return Ok(Next::Wait);
        };
        let packages = lock::packages(&lock);
        // An empty Lock goes when somebody deletes it.
        let keep = !packages.is_empty();
        if keep && object::is_deleting(&lock) {
            return Ok(Next::Wait);
        }
        let lock = api.set_finalizer(&self.kind(), lock, FINALIZER, keep).await;
        let lock = lock.map_err(|e| Failure::from_api("cannot set lock finalizer", &e))?;
        if object::is_deleting(&lock) {
            return Ok(Next::Wait);
        }
        let mut problems: Vec<String> = lock::cycles(&packages)
            .into_iter()
            .map(|cycle| format!("detected cycle on: {cycle}"))
            .collect();
        for (dependency, constraints) in lock::missing(&packages) {
            if let Err(why) = self.install(dependency, &constraints).await {
                problems.push(format!("{}: {why}", dependency.package));
            }
        }
        let mut subject = Subject {
            api,
            recorder: &self.shared.recorder,
            component: self.name(),
            kind: self.kind(),
            conditions: Conditions::of(&lock, &crate::now()),
            object: lock,
        };
        let why = problems.join("; ");
        let (resolved, reason) = match problems.is_empty() {
            true => (true, "ResolutionSucceeded"),
            false => (false, "ResolutionFailed"),
        };
        if keep {
            subject.conditions.set("Resolved", resolved, reason, &why);
        }
        subject.write_status(&[]).await?;
        match problems.is_empty() {
            true => Ok(Next::Wait),
            false => Err(Failure::Error(why)),
        }
    }
}

impl Resolver {
    async fn install(&self, dependency: &Dependency, constraints: &[&str]) -> Result<(), String> {
        let repository = &dependency.package;
        let known = PackageKind::from_kind(&dependency.kind)
            .map(kinds::package)
            .filter(|kind| kind.gvk == gvk(dependency));
        let kind = known.ok_or_else(|| {
            format!(
                "cannot construct dependency package: {} of {} is no kind of package",
                dependency.kind, dependency.api_version
            )
        })?;
        let name = dependency_name(repository);
        let api = &self.shared.api;
        // It is on its way, or somebody gave the name to something else.
        if let Some(there) = api
            .find(&kind, None, &name)
            .await
            .map_err(|e| e.to_string())?
        {
            let source = crate::package::text(&there, "/spec/package");
            let of = crate::names::Source::parse(source).repository;
            return match of == *repository || crate::names::is_file(source) {
                true => Ok(()),
                false => Err(format!(
                    "cannot create dependency package: {} {name:?} exists, with package {source}",
                    dependency.kind
                )),
            };
        }
        let package = match lock::digest(constraints)? {
            Some(digest) => format!("{repository}@{digest}"),
            None => {
                let tags = self.shared.packages.tags(repository).await;
                let tags =
                    tags.map_err(|why| format!("cannot fetch dependency package tags: {why}"))?;
                format!(
                    "{repository}:{}",
                    lock::choose(repository, constraints, &tags)?
                )
            }
        };
        let object = json!({
            "apiVersion": kind.gvk.api_version(), "kind": kind.gvk.kind,
            "metadata": {"name": name}, "spec": {"package": package},
        });
        match api.create(&kind, &object, Mode::Do).await {
            Err(error) if !error.already_exists() => {
                Err(format!("cannot create dependency package: {error}"))
            }
            _ => Ok(()),
        }
    }
}

fn gvk(dependency: &Dependency) -> GroupVersionKind {
    GroupVersionKind::from_api_version(&dependency.api_version, &dependency.kind)
}
