//! What a schema cannot say of an intent (SECA section 3.7): zones, address ranges, permissions,
//! scopes, and whether what is referred to exists.
//!
//! What the resource already has is not refused again: something that it names may have gone since,
//! and that is no reason to refuse another change.

mod authorization;
mod network;
mod references;

use ecp_xrds::Scope;
use serde_json::Value;

use crate::body;
use crate::cache::Entry;
use crate::error::{ApiError, ErrorKind};
use crate::facade::Facade;
use crate::limits;
use crate::path::Target;

pub(crate) use references::uses;

/// What is wrong with a body, as far as it was found.
#[derive(Debug, Default)]
struct Faults {
    kind: Option<ErrorKind>,
    all: Vec<(String, String)>,
}

impl Faults {
    /// Notes a fault of a field, such as `spec.zone`. The first one gives the situation.
    fn push(&mut self, kind: ErrorKind, field: impl Into<String>, detail: impl Into<String>) {
        self.kind.get_or_insert(kind);
        self.all.push((field.into(), detail.into()));
    }

    /// Whether there are as many as a problem can name.
    fn full(&self) -> bool {
        self.all.len() >= limits::PROBLEM_SOURCES_MAX
    }

    fn into_result(self) -> Result<(), ApiError> {
        let Some(kind) = self.kind else {
            return Ok(());
        };
        let details: Vec<String> = self
            .all
            .iter()
            .take(limits::PROBLEM_SOURCES_MAX)
            .map(|(field, detail)| format!("{field}: {detail}"))
            .collect();
        let error = ApiError::new(kind, details.join("; "));
        Err(self.all.iter().fold(error, |error, (field, _)| {
            error.at_pointer(body::pointer(field))
        }))
    }
}

/// An intent that is checked, and what it takes the place of.
#[derive(Clone, Copy)]
struct Change<'a> {
    target: &'a Target,
    spec: &'a Value,
    existing: Option<&'a Entry>,
}

impl Change<'_> {
    /// Whether a field of `spec` is as it was.
    fn same(&self, field: &str) -> bool {
        let new = self.spec.get(field);
        new.is_some() && self.existing.and_then(|e| e.spec(field)) == new
    }
}

impl Facade {
    /// Refuses an intent that names what is not there or cannot be, with all its faults.
    ///
    /// Answers with the paths of references that name nothing and were accepted all the same.
    pub(crate) async fn check_content(
        &self,
        target: &Target,
        spec: &Value,
        existing: Option<&Entry>,
    ) -> Result<Vec<String>, ApiError> {
        let change = Change {
            target,
            spec,
            existing,
        };
        let mut faults = Faults::default();
        match target.info.kind {
            "Instance" => {
                self.check_zone(change, &mut faults);
                references::check_once(change, &mut faults);
            }
            "NIC" => self.check_addresses(change, &mut faults).await?,
            "Subnet" => {
                self.check_zone(change, &mut faults);
                self.check_subnet(change, &mut faults).await?;
            }
            "Role" => authorization::check_role(change, &mut faults),
            "RoleAssignment" => self.check_role_assignment(change, &mut faults).await?,
            _ => {}
        }
        let deferred = self.check_references(change, &mut faults).await?;
        faults.into_result()?;
        Ok(deferred)
    }

    /// The zone must be one of the region's; where it may be empty, that is none.
    fn check_zone(&self, change: Change<'_>, faults: &mut Faults) {
        let zone = change.spec.get("zone").and_then(Value::as_str);
        let Some(zone) = zone.filter(|zone| !zone.is_empty() && !change.same("zone")) else {
            return;
        };
        let name = change.target.region.as_str();
        let Some(region) = self
            .cache()
            .by_kind("Region")
            .and_then(|regions| regions.get("", name))
        else {
            return;
        };
        let zones = region.spec("availableZones").and_then(Value::as_array);
        let zones: Vec<&str> = zones
            .into_iter()
            .flatten()
            .flat_map(Value::as_str)
            .collect();
        if !zones.contains(&zone) {
            let all = zones.join(", ");
            let detail = format!("zone {zone:?} does not exist in region {name}, which has: {all}");
            faults.push(ErrorKind::ReferenceMissing, "spec.zone", detail);
        }
    }

    /// Whether a region is known here.
    pub(crate) fn region_exists(&self, name: &str) -> bool {
        let regions = self.cache().by_kind("Region");
        let served = &self.config().served.regions;
        served.iter().any(|r| r == name) || regions.is_some_and(|r| r.get("", name).is_some())
    }

    /// Whether the workspace (and network) of a target exist and are not being deleted. What the
    /// cache does not have is read through: another replica may just have made it.
    pub(crate) async fn has_parents(&self, target: &Target) -> Result<bool, ApiError> {
        if self.parents_exist(target) {
            return Ok(true);
        }
        let parent = |kind: &str, workspace: &str, name: &str| {
            let info = ecp_xrds::by_kind(kind)?;
            Some(Target {
                info,
                workspace: workspace.into(),
                network: String::new(),
                name: Some(name.into()),
                ..target.clone()
            })
        };
        let mut parents = vec![parent("Workspace", "", &target.workspace)];
        if target.info.scope == Scope::Network {
            parents.push(parent("Network", &target.workspace, &target.network));
        }
        for parent in parents.into_iter().flatten() {
            let name = parent.name.as_deref().unwrap_or_default();
            if let Some(namespace) = self.namespace_of(&parent).await? {
                self.read_through(&parent, &namespace, name).await?;
            }
        }
        Ok(self.parents_exist(target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_faults_are_told_up_to_what_a_problem_can_name() {
        assert!(Faults::default().into_result().is_ok());
        let mut faults = Faults::default();
        faults.push(ErrorKind::ReferenceMissing, "spec.zone", "no such zone");
        faults.push(ErrorKind::Invalid, "spec.dataVolumes[3].deviceRef", "bad");
        let error = faults.into_result().expect_err("faults");
        assert_eq!(error.kind(), ErrorKind::ReferenceMissing);
        assert_eq!(
            error.detail(),
            "spec.zone: no such zone; spec.dataVolumes[3].deviceRef: bad"
        );
        let pointers: Vec<_> = error.sources().iter().map(|s| s.pointer.as_str()).collect();
        assert_eq!(pointers, ["/spec/zone", "/spec/dataVolumes/3/deviceRef"]);
        let mut many = Faults::default();
        for i in 0..100 {
            many.push(ErrorKind::Invalid, format!("spec.a[{i}]"), "bad");
        }
        assert!(many.full());
        let error = many.into_result().expect_err("faults");
        assert_eq!(error.sources().len(), limits::PROBLEM_SOURCES_MAX);
        assert!(!error.detail().contains("spec.a[32]"));
    }
}
