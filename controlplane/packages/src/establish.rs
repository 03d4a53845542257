//! Installing the objects of a package (upstream `revision/establisher.go`): all of them are checked
//! by dry run before the first is written, and none that another package controls is taken.

use ecp_meta::gvk::GroupVersionKind;
use ecp_meta::object;
use ecp_package::xpkg::PackageKind;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::{Map, Value, json};

use crate::api::{Api, Mode};
use crate::controller::Failure;
use crate::kinds::{self, Content, Kind};
use crate::limits::ESTABLISH_CONCURRENCY;

/// Who installs.
pub(crate) struct Parent<'a> {
    pub(crate) revision: &'a Value,
    pub(crate) kind: PackageKind,
}

/// An object to install.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    kind: Kind,
    object: Value,
}

/// The objects of a package that are installed, and words on those that are not.
///
/// # Errors
/// The package holds what it may not hold.
pub(crate) fn plan(
    parent: &Parent<'_>,
    objects: &[Value],
) -> Result<(Vec<Wanted>, Vec<String>), String> {
    let (mut wanted, mut skipped) = (Vec::new(), Vec::new());
    for original in objects {
        let gvk = object::gvk(original);
        let name = object::name(original);
        let Some(content) = kinds::content(parent.kind, &gvk) else {
            return Err(format!(
                "a {} package may not hold {} {name:?} ({})",
                parent.kind.as_str(),
                gvk.kind,
                gvk.api_version()
            ));
        };
        match content {
            Content::Install(kind) => wanted.push(Wanted {
                kind,
                object: original.clone(),
            }),
            Content::Definition => wanted.push(Wanted {
                kind: kinds::crd(),
                object: definition(original),
            }),
            Content::Skip("") => {}
            Content::Skip(why) => {
                skipped.push(format!("{} {name:?} is not installed: {why}", gvk.kind));
            }
        }
    }
    for wanted in &mut wanted {
        for (field, of) in [
            ("labels", "/spec/commonLabels"),
            ("annotations", "/spec/commonAnnotations"),
        ] {
            let common = parent.revision.pointer(of).and_then(Value::as_object);
            if let Some(common) = common.filter(|c| !c.is_empty()) {
                entry(&mut wanted.object["metadata"], field).extend(common.clone());
            }
        }
    }
    Ok((wanted, skipped))
}

/// The CRD of a ManagedResourceDefinition: its spec, but for what is about the definition.
fn definition(mrd: &Value) -> Value {
    let mut spec = mrd["spec"].clone();
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("state");
        spec.remove("connectionDetails");
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": mrd["metadata"],
        "spec": spec,
    })
}

fn entry<'a>(of: &'a mut Value, field: &str) -> &'a mut Map<String, Value> {
    if !of[field].is_object() {
        of[field] = json!({});
    }
    match &mut of[field] {
        Value::Object(map) => map,
        _ => unreachable!("made above"),
    }
}

/// What a dry run of everything says.
pub(crate) async fn check(
    api: &Api,
    parent: &Parent<'_>,
    siblings: &[Value],
    wanted: &[Wanted],
) -> Result<(), Failure> {
    let checks = wanted
        .iter()
        .map(|w| put(api, parent, siblings, w, Mode::DryRun));
    all(checks.collect()).await.map(drop)
}

/// Installs everything; returns references to it.
///
/// [`check`] must have been called: what it allows is not refused here, unless somebody else was
/// faster.
pub(crate) async fn establish(
    api: &Api,
    parent: &Parent<'_>,
    wanted: &[Wanted],
) -> Result<Vec<Value>, Failure> {
    let writes = wanted.iter().map(|w| put(api, parent, &[], w, Mode::Do));
    let written = all(writes.collect()).await?;
    let mut references: Vec<Value> = wanted
        .iter()
        .zip(&written)
        .map(|(wanted, written)| {
            json!({
                "apiVersion": wanted.kind.gvk.api_version(), "kind": wanted.kind.gvk.kind,
                "name": object::name(written), "uid": object::uid(written),
            })
        })
        .collect();
    references.sort_by_key(ToString::to_string);
    Ok(references)
}

async fn all<F>(work: Vec<F>) -> Result<Vec<Value>, Failure>
where
    F: Future<Output = Result<Value, Failure>>,
{
    stream::iter(work)
        .buffered(ESTABLISH_CONCURRENCY)
        .try_collect()
        .await
}

async fn put(
    api: &Api,
    parent: &Parent<'_>,
    siblings: &[Value],
    wanted: &Wanted,
    mode: Mode,
) -> Result<Value, Failure> {
    let (kind, name) = (&wanted.kind, object::name(&wanted.object));
    let failed = |error: crate::api::ApiError| {
        Failure::from_api(&format!("{} {name:?}", kind.gvk.kind), &error)
    };
    let mut desired = wanted.object.clone();
    let Some(current) = api.find(kind, None, name).await.map_err(failed)? else {
        desired["metadata"]["ownerReferences"] = owners(parent, &[]);
        return api.create(kind, &desired, mode).await.map_err(failed);
    };
    let controller = object::controller_ref(&current).cloned();
    if let Some(controller) = controller.filter(|c| c["uid"] != object::uid(parent.revision)) {
        let is_sibling = siblings.iter().any(|s| controller["uid"] == object::uid(s));
        if !is_sibling && still_exists(api, &controller).await? {
            // Another revision of this package lets go as soon as it hears that it is inactive.
            if controller["kind"] == object::gvk(parent.revision).kind
                && of_same_package(api, parent, &controller).await?
            {
                return Err(Failure::Conflict);
            }
            let text = |field: &str| controller[field].as_str().unwrap_or_default().to_owned();
            return Err(Failure::Error(format!(
                "{} {name:?} is already controlled by {} {} (UID {})",
                kind.gvk.kind,
                text("kind"),
                text("name"),
                text("uid")
            )));
        }
    }
    let old: Vec<Value> = object::owner_refs(&current).cloned().collect();
    let mut merged = current.clone();
    merge_metadata(&mut merged["metadata"], &desired["metadata"]);
    merged["metadata"]["ownerReferences"] = owners(parent, &old);
    // What is served in another version is written in the package's.
    merged["apiVersion"] = desired["apiVersion"].clone();
    for (field, value) in desired.as_object_mut().into_iter().flatten() {
        if !matches!(field.as_str(), "metadata" | "status") {
            merged[field] = value.take();
        }
    }
    if merged == current {
        return Ok(current);
    }
    api.replace(kind, &merged, mode).await.map_err(failed)
}

fn merge_metadata(current: &mut Value, desired: &Value) {
    for field in ["labels", "annotations"] {
        if let Some(wanted) = desired[field].as_object().filter(|w| !w.is_empty()) {
            entry(current, field).extend(wanted.clone());
        }
    }
}

/// Owners: the revision controls, its package owns; others stay, but control no more.
fn owners(parent: &Parent<'_>, old: &[Value]) -> Value {
    let revision = object::controller_ref_to(parent.revision);
    let package = package_ref(parent.revision);
    let own = |owner: &Value| {
        owner["uid"] == revision["uid"]
            || package
                .as_ref()
                .is_some_and(|package| owner["uid"] == package["uid"])
    };
    let mut all: Vec<Value> = old.iter().filter(|o| !own(o)).cloned().collect();
    for owner in &mut all {
        if owner["controller"] == true {
            owner["controller"] = false.into();
        }
    }
    all.push(revision.clone());
    all.extend(package.clone());
    // The order it has is kept, so that nothing is written when nothing changed.
    all.sort_by_key(|o| {
        old.iter()
            .position(|old| old["uid"] == o["uid"])
            .unwrap_or(usize::MAX)
    });
    all.into()
}

/// A plain reference to the package of a revision, which controls the revision.
fn package_ref(revision: &Value) -> Option<Value> {
    let mut owner = object::controller_ref(revision)?.clone();
    owner["controller"] = false.into();
    Some(owner)
}

/// Whether the owner that a reference names is there. Those of other groups are taken to be.
async fn still_exists(api: &Api, owner: &Value) -> Result<bool, Failure> {
    Ok(match revision_kind(owner) {
        None => true,
        Some(kind) => {
            let name = owner["name"].as_str().unwrap_or_default();
            let found = api.find(&kind, None, name).await;
            let found = found.map_err(|e| Failure::from_api("cannot get owner", &e))?;
            found.is_some_and(|f| owner["uid"] == object::uid(&f))
        }
    })
}

async fn of_same_package(api: &Api, parent: &Parent<'_>, owner: &Value) -> Result<bool, Failure> {
    let name = owner["name"].as_str().unwrap_or_default();
    let found = api.find(&kinds::revision(parent.kind), None, name).await;
    let found = found.map_err(|e| Failure::from_api("cannot get owner", &e))?;
    let package = crate::names::parent(parent.revision);
    Ok(found.is_some_and(|f| crate::names::parent(&f) == package))
}

fn revision_kind(owner: &Value) -> Option<Kind> {
    PackageKind::ALL
        .into_iter()
        .map(kinds::revision)
        .find(|kind| {
            owner["kind"] == *kind.gvk.kind && owner["apiVersion"] == *kind.gvk.api_version()
        })
}

/// Gives up control of what a revision has installed, so that another may take it.
pub(crate) async fn release(api: &Api, revision: &Value) -> Result<(), Failure> {
    let references = revision
        .pointer("/status/objectRefs")
        .and_then(Value::as_array);
    let references: Vec<Value> = references.cloned().unwrap_or_default();
    let work = references
        .iter()
        .map(|r| release_one(api, r, object::uid(revision)));
    all(work.collect()).await.map(drop)
}

async fn release_one(api: &Api, reference: &Value, uid: &str) -> Result<Value, Failure> {
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let gvk = GroupVersionKind::from_api_version(text("apiVersion"), text("kind"));
    let content = PackageKind::ALL
        .into_iter()
        .find_map(|p| kinds::content(p, &gvk));
    let Some(Content::Install(kind)) = content else {
        return Ok(Value::Null);
    };
    let doing = format!("cannot release {} {}", gvk.kind, text("name"));
    let found = api.find(&kind, None, text("name")).await;
    let Some(mut object) = found.map_err(|e| Failure::from_api(&doing, &e))? else {
        return Ok(Value::Null);
    };
    let owners = object["metadata"]["ownerReferences"].as_array_mut();
    let own = owners.into_iter().flatten().find(|o| o["uid"] == uid);
    let Some(own) = own.filter(|o| o["controller"] == true) else {
        return Ok(Value::Null);
    };
    own["controller"] = false.into();
    let written = api.replace(&kind, &object, Mode::Do).await;
    written.map_err(|e| Failure::from_api(&doing, &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revision() -> Value {
        json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision",
            "metadata": {"name": "p-1", "uid": "r1", "ownerReferences": [
                {"apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "name": "p",
                    "uid": "p1", "controller": true, "blockOwnerDeletion": true}]},
            "spec": {"commonLabels": {"team": "a"}},
        })
    }

    fn controlled(owners: &Value) -> Vec<(String, bool)> {
        let owners = owners.as_array().expect("a list").iter();
        let pair = |o: &Value| {
            (
                o["uid"].as_str().unwrap_or_default().into(),
                o["controller"] == true,
            )
        };
        owners.map(pair).collect()
    }

    #[test]
    fn the_revision_controls_and_the_package_owns() {
        let revision = revision();
        let parent = Parent {
            revision: &revision,
            kind: PackageKind::Provider,
        };
        let made = owners(&parent, &[]);
        assert_eq!(
            controlled(&made),
            [("r1".into(), true), ("p1".into(), false)]
        );
        let old = json!([{"uid": "p1", "controller": false}, {"uid": "r0", "controller": true}]);
        let taken = owners(&parent, old.as_array().expect("a list"));
        let want = [
            ("p1".into(), false),
            ("r0".into(), false),
            ("r1".into(), true),
        ];
        assert_eq!(controlled(&taken), want);
        let again = owners(&parent, taken.as_array().expect("a list"));
        assert_eq!(again, taken);
    }

    #[test]
    fn a_package_holds_only_what_its_kind_may() {
        let revision = revision();
        let parent = Parent {
            revision: &revision,
            kind: PackageKind::Provider,
        };
        let of = |api: &str, kind: &str| {
            json!({"apiVersion": api, "kind": kind, "metadata": {"name": "x"},
                "spec": {"group": "g", "state": "Inactive", "connectionDetails": []}})
        };
        let objects = [
            of("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
            of(
                "apiextensions.crossplane.io/v1alpha1",
                "ManagedResourceDefinition",
            ),
            of(
                "admissionregistration.k8s.io/v1",
                "ValidatingWebhookConfiguration",
            ),
        ];
        let (wanted, skipped) = plan(&parent, &objects).expect("allowed");
        assert_eq!(wanted.len(), 2);
        for one in &wanted {
            assert_eq!(one.object["kind"], "CustomResourceDefinition");
            assert_eq!(one.object["metadata"]["labels"]["team"], "a");
        }
        assert_eq!(wanted[1].object["spec"], json!({"group": "g"}));
        assert!(
            skipped[0].contains("webhooks are not called"),
            "{skipped:?}"
        );
        for (api, kind) in [
            ("v1", "ConfigMap"),
            ("apiextensions.crossplane.io/v1", "Composition"),
        ] {
            let why = plan(&parent, &[of(api, kind)]).expect_err(kind);
            assert!(
                why.contains(kind) && why.contains("Provider package"),
                "{why}"
            );
        }
    }
}
