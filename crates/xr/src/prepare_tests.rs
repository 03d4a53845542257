use super::*;
use crate::xrd::{MatchLabels, Named};

fn xrd(scope: &str) -> Xrd {
    Xrd::parse(&json!({
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": "disks.ex.test"},
        "spec": {
            "group": "ex.test",
            "scope": scope,
            "names": {"kind": "Disk", "plural": "disks"},
            "versions": [{"name": "v1", "served": true, "referenceable": true}],
        },
    }))
    .expect("valid XRD")
}

fn xr() -> Value {
    json!({"apiVersion": "ex.test/v1", "kind": "Disk", "metadata": {"name": "d", "uid": "xr"},
        "spec": {}})
}

/// Two Compositions, `a` and `b`, each with one revision; `b` also has an older one.
fn catalogue() -> (BTreeMap<String, Arc<Value>>, BTreeMap<String, Arc<Value>>) {
    let mut compositions = BTreeMap::new();
    let mut revisions = BTreeMap::new();
    for (name, cloud) in [("b", "two"), ("a", "one")] {
        let composition = json!({
            "apiVersion": "apiextensions.crossplane.io/v1",
            "kind": "Composition",
            "metadata": {"name": name, "uid": name, "labels": {"cloud": cloud}},
            "spec": {
                "compositeTypeRef": {"apiVersion": "ex.test/v1", "kind": "Disk"},
                "mode": "Pipeline",
                "pipeline": [{"step": "s", "functionRef": {"name": "f"}}],
                "writeConnectionSecretsToNamespace": "secrets",
            },
        });
        let mut revision = composition::revision_of(&composition, 2);
        revision["status"] = json!({"conditions": [{"type": "ValidPipeline", "status": "True"}]});
        let mut old = revision.clone();
        old["metadata"]["name"] = json!(format!("{name}-old"));
        old["metadata"]["labels"]["channel"] = json!("old");
        old["spec"]["revision"] = json!(1);
        for r in [revision, old] {
            revisions.insert(object::name(&r).to_owned(), Arc::new(r));
        }
        compositions.insert(name.to_owned(), Arc::new(composition));
    }
    (compositions, revisions)
}

fn run(xrd: &Xrd, xr: &Value) -> Prepared {
    let (compositions, revisions) = catalogue();
    prepare(
        xrd,
        xr,
        Catalogue {
            compositions: &compositions,
            revisions: &revisions,
        },
    )
}

fn messages(prepared: &Prepared) -> Vec<&str> {
    prepared.events.iter().map(|e| e.message.as_str()).collect()
}

#[test]
fn a_fresh_xr_gets_finalizer_composition_revision_and_label() {
    let xrd = xrd("Namespaced");
    let prepared = run(&xrd, &xr());
    let (revision, _) = prepared.outcome.clone().expect("revision");
    let machinery = Machinery::of(&prepared.xr, xrd.scope);
    assert_eq!(machinery.composition(), Some("a"));
    assert_eq!(machinery.revision(), Some(object::name(&revision)));
    assert_eq!(object::label(&prepared.xr, keys::COMPOSITE), Some("d"));
    assert_eq!(
        object::finalizers(&prepared.xr).collect::<Vec<_>>(),
        [keys::COMPOSITE_FINALIZER]
    );
    assert_eq!(
        messages(&prepared),
        [
            "Successfully selected composition: a".to_owned(),
            format!("Selected composition revision: {}", object::name(&revision)),
        ]
    );
}

#[test]
fn a_prepared_xr_is_left_alone() {
    let xrd = xrd("Namespaced");
    let once = run(&xrd, &xr());
    let twice = run(&xrd, &once.xr);
    assert_eq!(twice.xr, once.xr);
    assert!(twice.events.is_empty());
}

#[test]
fn the_order_is_enforced_kept_default_labels() {
    let mut xrd = xrd("Cluster");
    let mut selecting = xr();
    machinery::set(
        &mut selecting,
        xrd.scope,
        "compositionSelector",
        json!({"matchLabels": {"cloud": "two"}}),
    );
    let chosen = |xrd: &Xrd, xr: &Value| {
        let prepared = run(xrd, xr);
        Machinery::of(&prepared.xr, xrd.scope)
            .composition()
            .map(str::to_owned)
    };
    assert_eq!(chosen(&xrd, &selecting).as_deref(), Some("b"));
    xrd.spec.default_composition_ref = Some(Named { name: "a".into() });
    assert_eq!(chosen(&xrd, &selecting).as_deref(), Some("b"));
    assert_eq!(chosen(&xrd, &xr()).as_deref(), Some("a"));
    let mut kept = xr();
    machinery::set(&mut kept, xrd.scope, "compositionRef", json!({"name": "b"}));
    assert_eq!(chosen(&xrd, &kept).as_deref(), Some("b"));
    xrd.spec.enforced_composition_ref = Some(Named { name: "a".into() });
    assert_eq!(chosen(&xrd, &kept).as_deref(), Some("a"));
}

#[test]
fn manual_policy_keeps_the_revision_and_selectors_filter() {
    let mut xrd = xrd("Cluster");
    let revision = |xrd: &Xrd, xr: &Value| {
        let prepared = run(xrd, xr);
        prepared
            .outcome
            .map(|(revision, _)| object::name(&revision).to_owned())
    };
    let mut manual = xr();
    machinery::set(
        &mut manual,
        xrd.scope,
        "compositionUpdatePolicy",
        json!("Manual"),
    );
    machinery::set(
        &mut manual,
        xrd.scope,
        "compositionRevisionRef",
        json!({"name": "a-old"}),
    );
    assert_eq!(revision(&xrd, &manual), Ok("a-old".into()));
    xrd.spec.default_composition_revision_selector = Some(MatchLabels {
        match_labels: BTreeMap::from([("channel".into(), "old".into())]),
    });
    let mut automatic = xr();
    machinery::set(
        &mut automatic,
        xrd.scope,
        "compositionUpdatePolicy",
        json!("Automatic"),
    );
    assert_eq!(revision(&xrd, &automatic), Ok("a-old".into()));
}

#[test]
fn failures_keep_what_was_decided_and_say_why() {
    let xrd = xrd("Cluster");
    let mut selecting = xr();
    machinery::set(
        &mut selecting,
        xrd.scope,
        "compositionSelector",
        json!({"matchLabels": {"cloud": "three"}}),
    );
    let prepared = run(&xrd, &selecting);
    assert_eq!(
        prepared.outcome.map_err(|f| (f.reason, f.message)),
        Err((
            "SelectComposition",
            "cannot select Composition: no compatible Compositions found".into()
        ))
    );
    assert_eq!(object::finalizers(&prepared.xr).count(), 1);
    let mut missing = xr();
    machinery::set(
        &mut missing,
        xrd.scope,
        "compositionRef",
        json!({"name": "none"}),
    );
    assert_eq!(
        run(&xrd, &missing).outcome.map_err(|f| f.message),
        Err("cannot fetch Composition: cannot get Composition: \
             Composition.apiextensions.crossplane.io \"none\" not found"
            .into())
    );
}

#[test]
fn legacy_xrs_get_a_connection_secret_named_by_uid() {
    let xrd = xrd("LegacyCluster");
    let prepared = run(&xrd, &xr());
    assert_eq!(
        prepared.xr.pointer("/spec/writeConnectionSecretToRef"),
        Some(&json!({"name": "xr", "namespace": "secrets"}))
    );
}

#[test]
fn finalizers_come_and_go() {
    let mut object = json!({"metadata": {"finalizers": ["x"]}});
    add_finalizer(&mut object, "y");
    add_finalizer(&mut object, "y");
    assert_eq!(object["metadata"]["finalizers"], json!(["x", "y"]));
    remove_finalizer(&mut object, "x");
    remove_finalizer(&mut object, "y");
    assert_eq!(object, json!({"metadata": {}}));
}

#[test]
fn kubernetes_keys_are_reserved() {
    let map = json!({"kubernetes.io/a": "1", "x.k8s.io/b": "1", "ex.test/c": "1", "d": "1"});
    let kept = without_reserved(Some(&map));
    assert_eq!(kept.keys().collect::<Vec<_>>(), ["d", "ex.test/c"]);
}
