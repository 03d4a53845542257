//! The package manager on an API server.

mod harness;

use ecp_meta::{condition, object};
use serde_json::{Value, json};

use harness::{Harness, composition, meta, needs, xrd};

const XRD: &str = "CompositeResourceDefinition";
const CONFIGURATION: &str = "Configuration";
const REVISION: &str = "ConfigurationRevision";
const V1: &str = "r.test/o/disks:v1.0.0";
const V2: &str = "r.test/o/disks:v2.0.0";

fn disks(description: &str) -> [Value; 3] {
    [
        meta(CONFIGURATION, "disks", json!({})),
        xrd("Disk", description),
        composition("disks", "Disk"),
    ]
}

fn description(xrd: &Value) -> &str {
    let at = "/spec/versions/0/schema/openAPIV3Schema/description";
    xrd.pointer(at).and_then(Value::as_str).unwrap_or_default()
}

fn states(revisions: &[Value]) -> Vec<(i64, &str)> {
    let state = |r: &'_ Value| r["spec"]["revision"].as_i64().unwrap_or(0);
    let mut all: Vec<_> = revisions
        .iter()
        .map(|r| {
            (
                state(r),
                r["spec"]["desiredState"].as_str().unwrap_or_default(),
            )
        })
        .collect();
    all.sort_unstable();
    all
}

#[tokio::test]
async fn a_configuration_is_installed_and_owns_what_it_brings() {
    let harness = Harness::start().await;
    harness.shelf.put(V1, &disks("one"));
    harness.install(CONFIGURATION, "disks", V1).await;
    let package = harness.healthy(CONFIGURATION, "disks").await;
    assert!(condition::is_true(&package, "Installed"));
    let current = package["status"]["currentRevision"].as_str().unwrap();
    assert!(
        current.starts_with("disks-") && current.len() == 18,
        "{current}"
    );
    let revision = harness.get(REVISION, current).await.unwrap();
    assert_eq!(
        revision["status"]["objectRefs"].as_array().unwrap().len(),
        2
    );
    for (kind, name) in [(XRD, "disks.ex.test"), ("Composition", "disks")] {
        let installed = harness.get(kind, name).await.unwrap();
        let controller = object::controller_ref(&installed).unwrap();
        assert_eq!(controller["uid"], revision["metadata"]["uid"]);
        let owner = |o: &Value| o["uid"] == package["metadata"]["uid"] && o["controller"] == false;
        assert!(object::owner_refs(&installed).any(owner), "{installed:#}");
    }
    let lock = harness.get("Lock", "lock").await.unwrap();
    let entry = &lock["packages"][0];
    assert_eq!(
        (&entry["name"], &entry["source"], &entry["version"]),
        (&json!(current), &json!("r.test/o/disks"), &json!("v1.0.0"))
    );
    harness.delete(CONFIGURATION, "disks").await;
    harness.until_list(XRD, <[Value]>::is_empty).await;
    harness.until_list("Composition", <[Value]>::is_empty).await;
    harness.until_list(REVISION, <[Value]>::is_empty).await;
    harness
        .until("Lock", "lock", |lock| {
            lock["packages"].as_array().is_none_or(Vec::is_empty)
                && object::finalizers(lock).next().is_none()
        })
        .await;
}

#[tokio::test]
async fn an_upgrade_hands_over_and_a_rollback_takes_the_old_revision() {
    let harness = Harness::start().await;
    harness.shelf.put(V1, &disks("one"));
    harness.shelf.put(V2, &disks("two"));
    harness.install(CONFIGURATION, "disks", V1).await;
    let first = harness.healthy(CONFIGURATION, "disks").await;
    harness.change(CONFIGURATION, "disks", V2).await;
    harness.healthy(CONFIGURATION, "disks").await;
    harness
        .until(XRD, "disks.ex.test", |xrd| description(xrd) == "two")
        .await;
    harness
        .until_list(REVISION, |r| states(r) == [(1, "Inactive"), (2, "Active")])
        .await;
    harness.change(CONFIGURATION, "disks", V1).await;
    harness
        .until(XRD, "disks.ex.test", |xrd| description(xrd) == "one")
        .await;
    let back = harness.healthy(CONFIGURATION, "disks").await;
    assert_eq!(
        back["status"]["currentRevision"],
        first["status"]["currentRevision"]
    );
    harness
        .until_list(REVISION, |r| states(r) == [(2, "Inactive"), (3, "Active")])
        .await;
    let lock = harness.get("Lock", "lock").await.unwrap();
    assert_eq!(lock["packages"].as_array().unwrap().len(), 1);
    assert_eq!(lock["packages"][0]["version"], "v1.0.0");
}

#[tokio::test]
async fn only_as_many_old_revisions_are_kept_as_wanted() {
    let harness = Harness::start().await;
    for version in 1..=3 {
        let source = format!("r.test/o/disks:v{version}.0.0");
        harness.shelf.put(&source, &disks(&format!("{version}")));
        match version {
            1 => harness.install(CONFIGURATION, "disks", &source).await,
            _ => harness.change(CONFIGURATION, "disks", &source).await,
        }
        harness.healthy(CONFIGURATION, "disks").await;
    }
    harness
        .until_list(REVISION, |r| states(r) == [(2, "Inactive"), (3, "Active")])
        .await;
}

/// crossplane#6289, #3115.
#[tokio::test]
async fn a_revision_that_cannot_be_installed_leaves_the_old_one_alone() {
    let harness = Harness::start().await;
    harness.shelf.put(V1, &disks("one"));
    harness.install(CONFIGURATION, "disks", V1).await;
    let first = harness.healthy(CONFIGURATION, "disks").await;
    let mut broken = xrd("Tape", "bad");
    broken["spec"]["group"] = json!(7);
    let new_crossplane = json!({"crossplane": {"version": ">=v99.0.0"}});
    for (version, documents, words) in [
        (
            "v1.1.0",
            vec![
                meta(CONFIGURATION, "disks", json!({})),
                xrd("Disk", "bad"),
                broken,
            ],
            "group",
        ),
        (
            "v1.2.0",
            vec![
                meta(CONFIGURATION, "disks", new_crossplane),
                xrd("Disk", "bad"),
            ],
            ">=v99.0.0",
        ),
        ("v1.3.0", vec![xrd("Disk", "bad")], "meta"),
        (
            "v1.4.0",
            vec![meta("Provider", "disks", json!({}))],
            "is a Provider package",
        ),
    ] {
        let source = format!("r.test/o/disks:{version}");
        harness.shelf.put(&source, &documents);
        harness.change(CONFIGURATION, "disks", &source).await;
        let package = harness.unhealthy(CONFIGURATION, "disks", words).await;
        assert!(condition::is_true(&package, "Installed"), "{package:#}");
        let installed = harness.get(XRD, "disks.ex.test").await.unwrap();
        assert_eq!(description(&installed), "one");
        assert!(harness.get(XRD, "tapes.ex.test").await.is_none());
        let old = first["status"]["currentRevision"].as_str().unwrap();
        let old = harness.get(REVISION, old).await.unwrap();
        assert_eq!(old["spec"]["desiredState"], "Active");
    }
}

/// Public bug list A30, and what else makes a package bad.
#[tokio::test]
async fn a_bad_package_installs_nothing_and_tells_why() {
    let harness = Harness::start().await;
    let own = || meta(CONFIGURATION, "bad", json!({}));
    let mut broken = composition("broken", "Disk");
    broken["spec"]["pipeline"] = json!([]);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "xs.ex.test"}, "spec": {}});
    for (n, (documents, words)) in [
        (vec![xrd("Disk", "x")], "meta"),
        (
            vec![
                own(),
                meta(CONFIGURATION, "other", json!({})),
                xrd("Disk", "x"),
            ],
            "other",
        ),
        (vec![own(), xrd("Disk", "x"), map], "ConfigMap"),
        (
            vec![own(), xrd("Disk", "x"), crd],
            "CustomResourceDefinition",
        ),
        (vec![own(), xrd("Disk", "x"), broken], "pipeline"),
    ]
    .into_iter()
    .enumerate()
    {
        let (name, source) = (format!("bad-{n}"), format!("r.test/o/bad-{n}:v1.0.0"));
        harness.shelf.put(&source, &documents);
        harness.install(CONFIGURATION, &name, &source).await;
        harness.unhealthy(CONFIGURATION, &name, words).await;
        assert!(harness.list(XRD).await.is_empty(), "{words}");
        harness.delete(CONFIGURATION, &name).await;
        harness.until_list(REVISION, <[Value]>::is_empty).await;
    }
}

#[tokio::test]
async fn dependencies_are_installed_and_waited_for() {
    let harness = Harness::start().await;
    let app = [
        meta(
            CONFIGURATION,
            "app",
            needs("r.test/o/disks", ">=v1.0.0 <v2.0.0"),
        ),
        xrd("App", "a"),
    ];
    harness.shelf.put("r.test/o/app:v1.0.0", &app);
    harness.shelf.put("r.test/o/disks:v1.2.0", &disks("1.2"));
    harness.shelf.put(V2, &disks("two"));
    harness
        .install(CONFIGURATION, "app", "r.test/o/app:v1.0.0")
        .await;
    let app = harness.healthy(CONFIGURATION, "app").await;
    let disks = harness.healthy(CONFIGURATION, "o-disks").await;
    assert_eq!(disks["spec"]["package"], "r.test/o/disks:v1.2.0");
    let current = app["status"]["currentRevision"].as_str().unwrap();
    let revision = harness.get(REVISION, current).await.unwrap();
    let counts = ["found", "installed", "invalid"]
        .map(|which| revision["status"][format!("{which}Dependencies")].clone());
    assert_eq!(counts, [json!(1), json!(1), json!(0)]);
    harness.change(CONFIGURATION, "o-disks", V2).await;
    harness
        .unhealthy(
            CONFIGURATION,
            "app",
            "r.test/o/disks@v2.0.0 is incompatible with constraint",
        )
        .await;
}

/// crossplane#3423.
#[tokio::test]
async fn a_dependency_that_does_not_exist_does_not_hold_up_others() {
    let harness = Harness::start().await;
    let bad = [
        meta(CONFIGURATION, "bad", needs("r.test/o/none", ">=v1.0.0")),
        xrd("Bad", "b"),
    ];
    harness.shelf.put("r.test/o/bad:v1.0.0", &bad);
    let cycle = [meta(CONFIGURATION, "cycle", needs("r.test/o/cycle", ""))];
    harness.shelf.put("r.test/o/cycle:v1.0.0", &cycle);
    let app = [
        meta(CONFIGURATION, "app", needs("r.test/o/disks", ">=v1.0.0")),
        xrd("App", "a"),
    ];
    harness.shelf.put("r.test/o/app:v1.0.0", &app);
    harness.shelf.put(V1, &disks("one"));
    for name in ["bad", "cycle", "app"] {
        harness
            .install(CONFIGURATION, name, &format!("r.test/o/{name}:v1.0.0"))
            .await;
    }
    harness.healthy(CONFIGURATION, "app").await;
    harness
        .unhealthy(
            CONFIGURATION,
            "bad",
            "missing dependencies: \"r.test/o/none\"",
        )
        .await;
    harness
        .unhealthy(CONFIGURATION, "cycle", "detected cycle on: r.test/o/cycle")
        .await;
    assert!(harness.get(XRD, "bads.ex.test").await.is_none());
    let lock = harness
        .until("Lock", "lock", |lock| {
            condition::status(lock, "Resolved") == Some("False")
        })
        .await;
    let why = condition::find(&lock, "Resolved").unwrap()["message"].to_string();
    assert!(
        why.contains("r.test/o/none") && why.contains("of 0 tags"),
        "{why}"
    );
}

#[tokio::test]
async fn what_one_package_controls_another_cannot_take() {
    let harness = Harness::start().await;
    harness.shelf.put(V1, &disks("one"));
    harness.install(CONFIGURATION, "disks", V1).await;
    harness.healthy(CONFIGURATION, "disks").await;
    let thief = [
        meta(CONFIGURATION, "thief", json!({})),
        xrd("Extra", "x"),
        xrd("Disk", "stolen"),
    ];
    harness.shelf.put("r.test/o/thief:v1.0.0", &thief);
    harness
        .install(CONFIGURATION, "thief", "r.test/o/thief:v1.0.0")
        .await;
    harness
        .unhealthy(
            CONFIGURATION,
            "thief",
            "is already controlled by ConfigurationRevision disks-",
        )
        .await;
    assert!(harness.get(XRD, "extras.ex.test").await.is_none());
    let installed = harness.get(XRD, "disks.ex.test").await.unwrap();
    assert_eq!(description(&installed), "one");
}

#[tokio::test]
async fn what_nobody_controls_is_adopted() {
    let harness = Harness::start().await;
    harness.create(&xrd("Disk", "by hand")).await;
    harness.shelf.put(V1, &disks("one"));
    harness.install(CONFIGURATION, "disks", V1).await;
    harness.healthy(CONFIGURATION, "disks").await;
    let adopted = harness.get(XRD, "disks.ex.test").await.unwrap();
    assert_eq!(description(&adopted), "one");
    assert_eq!(object::controller_ref(&adopted).unwrap()["kind"], REVISION);
}

#[tokio::test]
async fn a_paused_package_stays_as_it_is() {
    let harness = Harness::start().await;
    harness.shelf.put(V1, &disks("one"));
    harness.shelf.put(V2, &disks("two"));
    harness.install(CONFIGURATION, "disks", V1).await;
    let first = harness.healthy(CONFIGURATION, "disks").await;
    let pause =
        |value: Value| json!({"metadata": {"annotations": {"crossplane.io/paused": value}}});
    harness
        .edit(CONFIGURATION, "disks", pause("true".into()))
        .await;
    harness
        .until(CONFIGURATION, "disks", |package| {
            condition::find(package, "Synced").is_some_and(|c| c["reason"] == "ReconcilePaused")
        })
        .await;
    harness.change(CONFIGURATION, "disks", V2).await;
    let other = [meta(CONFIGURATION, "other", json!({})), xrd("Other", "o")];
    harness.shelf.put("r.test/o/other:v1.0.0", &other);
    // Whoever came after it is done.
    harness
        .install(CONFIGURATION, "other", "r.test/o/other:v1.0.0")
        .await;
    harness.healthy(CONFIGURATION, "other").await;
    let paused = harness.get(CONFIGURATION, "disks").await.unwrap();
    assert_eq!(
        paused["status"]["currentRevision"],
        first["status"]["currentRevision"]
    );
    harness
        .edit(CONFIGURATION, "disks", pause(Value::Null))
        .await;
    let package = harness.healthy(CONFIGURATION, "disks").await;
    assert!(condition::find(&package, "Synced").is_none(), "{package:#}");
    harness
        .until(XRD, "disks.ex.test", |xrd| description(xrd) == "two")
        .await;
}

#[tokio::test]
async fn with_manual_activation_a_person_decides() {
    let mut harness = Harness::start().await;
    harness.shelf.put(V1, &disks("one"));
    harness.shelf.put(V2, &disks("two"));
    harness.install(CONFIGURATION, "disks", V1).await;
    harness.healthy(CONFIGURATION, "disks").await;
    let manual = json!({"spec": {"revisionActivationPolicy": "Manual", "package": V2}});
    harness.edit(CONFIGURATION, "disks", manual).await;
    let package = harness.healthy(CONFIGURATION, "disks").await;
    let installed = harness.get(XRD, "disks.ex.test").await.unwrap();
    assert_eq!(description(&installed), "one");
    let new = package["status"]["currentRevision"].as_str().unwrap();
    harness
        .edit(REVISION, new, json!({"spec": {"desiredState": "Active"}}))
        .await;
    harness
        .until(XRD, "disks.ex.test", |xrd| description(xrd) == "two")
        .await;
    harness
        .until_list(REVISION, |r| states(r) == [(1, "Inactive"), (2, "Active")])
        .await;
    harness.stop().await;
}

#[tokio::test]
async fn a_provider_brings_the_crds_of_its_definitions() {
    let harness = Harness::start().await;
    let names = json!({"kind": "Volume", "plural": "volumes", "singular": "volume"});
    let versions = json!([{"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object"}}}]);
    let definition = json!({
        "apiVersion": "apiextensions.crossplane.io/v1alpha1", "kind": "ManagedResourceDefinition",
        "metadata": {"name": "volumes.ex.test"},
        "spec": {"group": "ex.test", "scope": "Namespaced", "state": "Inactive", "names": names,
            "connectionDetails": [], "versions": versions},
    });
    let capabilities = json!({"capabilities": ["safe-start"]});
    harness.shelf.put(
        "r.test/o/p:v1.0.0",
        &[meta("Provider", "p", capabilities), definition],
    );
    harness.install("Provider", "p", "r.test/o/p:v1.0.0").await;
    let established = |crd: &Value| condition::is_true(crd, "Established");
    harness
        .until("CustomResourceDefinition", "volumes.ex.test", established)
        .await;
    let revision = harness.list("ProviderRevision").await.remove(0);
    assert_eq!(revision["spec"]["tlsServerSecretName"], "p-tls-server");
    harness
        .until("ProviderRevision", object::name(&revision), |r| {
            r["status"]["capabilities"] == json!(["safe-start"])
        })
        .await;
}
