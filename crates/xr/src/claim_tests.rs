use super::*;

fn gvk() -> GroupVersionKind {
    GroupVersionKind::new("ex.test", "v1", "XDisk")
}

fn claim() -> Value {
    json!({
        "apiVersion": "ex.test/v1",
        "kind": "Disk",
        "metadata": {"name": "d", "namespace": "ns", "generation": 2,
            "labels": {"a": "b", "app.kubernetes.io/name": "x"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "n": "1"}},
        "spec": {
            "size": 10,
            "compositionSelector": {"matchLabels": {"cloud": "dummy"}},
            "compositeDeletePolicy": "Background",
            "writeConnectionSecretToRef": {"name": "s"},
            "compositionRevisionRef": {"name": "r"},
            "resourceRefs": [{"apiVersion": "v1", "kind": "Secret", "name": "smuggled"}],
        },
    })
}

fn bound(claim: &Value, xr: Option<&Value>, enforced: bool) -> Bound {
    let binding = Binding {
        composite: &gvk(),
        new_name: "d-xxxxx",
        enforced,
    };
    bind(claim, xr, binding).expect("claim with spec")
}

#[test]
fn a_claim_makes_its_xr() {
    let Bound { claim, composite } = bound(&claim(), None, false);
    assert_eq!(
        composite,
        json!({
            "apiVersion": "ex.test/v1",
            "kind": "XDisk",
            "metadata": {
                "name": "d-xxxxx",
                "generateName": "d-",
                "labels": {"a": "b", "crossplane.io/claim-name": "d",
                    "crossplane.io/claim-namespace": "ns"},
                "annotations": {"n": "1"},
            },
            "spec": {
                "size": 10,
                "compositionSelector": {"matchLabels": {"cloud": "dummy"}},
                "claimRef": {"apiVersion": "ex.test/v1", "kind": "Disk", "namespace": "ns",
                    "name": "d"},
            },
        })
    );
    assert_eq!(
        claim["spec"]["resourceRef"],
        json!({"apiVersion": "ex.test/v1", "kind": "XDisk", "name": "d-xxxxx"})
    );
    assert_eq!(bound_elsewhere(&claim, &composite), None);
}

#[test]
fn a_claim_learns_composition_and_revision() {
    let xr = json!({
        "metadata": {"name": "x", "annotations": {"crossplane.io/external-name": "id"}},
        "spec": {
            "compositionRef": {"name": "c"},
            "compositionUpdatePolicy": "Automatic",
            "compositionRevisionRef": {"name": "c-1"},
            "compositionRevisionSelector": {"matchLabels": {}},
        },
    });
    let mut unbound = claim();
    unbound["spec"]["resourceRef"] = json!({"name": "x"});
    let Bound { claim, composite } = bound(&unbound, Some(&xr), false);
    assert_eq!(claim["spec"]["compositionRef"], json!({"name": "c"}));
    assert_eq!(
        claim["spec"]["compositionRevisionRef"],
        json!({"name": "c-1"})
    );
    assert_eq!(object::annotation(&claim, keys::EXTERNAL_NAME), Some("id"));
    assert_eq!(
        object::annotation(&composite, keys::EXTERNAL_NAME),
        Some("id")
    );
    assert_eq!(object::name(&composite), "x");
    assert_eq!(composite["spec"].get("compositionRevisionRef"), None);
    assert_eq!(composite["metadata"].get("generateName"), None);
    let again = bound(&claim, Some(&xr), false);
    assert_eq!(again.claim, claim, "a bound claim is not written again");
}

#[test]
fn an_enforced_composition_is_the_xrs_and_never_the_claims() {
    let xr = json!({"spec": {"compositionRef": {"name": "enforced"}}});
    let mut choosing = claim();
    choosing["spec"]["compositionRef"] = json!({"name": "mine"});
    let free = bound(&choosing, Some(&xr), false);
    assert_eq!(free.claim["spec"]["compositionRef"]["name"], "mine");
    assert_eq!(free.composite["spec"]["compositionRef"]["name"], "mine");
    let enforced = bound(&choosing, Some(&xr), true);
    assert_eq!(enforced.claim["spec"]["compositionRef"]["name"], "enforced");
    assert_eq!(enforced.composite["spec"].get("compositionRef"), None);
}

#[test]
fn a_manual_claim_chooses_the_revision() {
    let xr = json!({"spec": {"compositionUpdatePolicy": "Manual",
        "compositionRevisionRef": {"name": "old"}}});
    let Bound { claim, composite } = bound(&claim(), Some(&xr), false);
    assert_eq!(composite["spec"]["compositionRevisionRef"]["name"], "r");
    assert_eq!(claim["spec"]["compositionRevisionRef"]["name"], "r");
}

/// crossplane#2473: an XR that is bound to another claim is left alone.
#[test]
fn an_xr_of_another_claim_is_refused() {
    let xr = json!({"metadata": {"name": "x-victim"}, "spec": {"claimRef": {
        "apiVersion": "ex.test/v1", "kind": "Disk", "namespace": "ns1", "name": "a"}}});
    assert_eq!(
        bound_elsewhere(&claim(), &xr).as_deref(),
        Some(
            "refusing to operate on composite resource \"x-victim\" that is not bound to this \
             claim: bound to claim \"a\""
        )
    );
    let unbound = json!({"metadata": {"name": "free"}, "spec": {}});
    assert_eq!(bound_elsewhere(&claim(), &unbound), None);
}

/// crossplane#4645: long claim names give XR names that fit.
#[test]
fn names_of_xrs_fit_whatever_the_claims_name() {
    for len in [1, 57, 58, 63] {
        let claim = json!({"metadata": {"name": "c".repeat(len)}});
        let name = new_composite_name(&claim, "bcdfg");
        assert!(name.len() <= 63, "{name}");
        assert!(name.ends_with("bcdfg"));
        assert!(ecp_meta::names::is_dns1123_label(&name), "{name}");
    }
}

#[test]
fn a_claim_without_spec_is_an_error() {
    let binding = Binding {
        composite: &gvk(),
        new_name: "n",
        enforced: false,
    };
    assert_eq!(
        bind(&json!({"metadata": {}}), None, binding),
        Err(ClaimError::NoSpec)
    );
}

#[test]
fn status_is_copied_without_machinery() {
    let xr = json!({"status": {
        "state": "active",
        "claimConditionTypes": ["Database"],
        "connectionDetails": {"lastPublishedTime": "t"},
        "conditions": [
            {"type": "Ready", "status": "False", "reason": "Creating", "lastTransitionTime": "t"},
            {"type": "Database", "status": "True", "reason": "Up", "lastTransitionTime": "t"},
            {"type": "Private", "status": "True", "reason": "Up", "lastTransitionTime": "t"},
        ],
    }});
    let mut claim = claim();
    claim["status"] = status(&claim, &xr, None, "t1");
    assert_eq!(claim["status"]["state"], "active");
    assert_eq!(claim["status"].get("connectionDetails"), None);
    let kinds: Vec<(String, String, String)> = condition::of(&claim)
        .into_iter()
        .map(|c| (c.kind, c.status, c.reason))
        .collect();
    let want = [
        ("Synced", "True", "ReconcileSuccess"),
        ("Database", "True", "Up"),
        ("Ready", "False", "Waiting"),
    ]
    .map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()));
    assert_eq!(kinds, want);
    assert_eq!(status(&claim, &xr, None, "t2"), claim["status"]);
}

#[test]
fn a_ready_xr_makes_a_ready_claim() {
    let xr = json!({"status": {"conditions": [
        {"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "t"}]}});
    let status = status(&claim(), &xr, Some("t9"), "t1");
    assert!(condition::is_true(&json!({"status": status}), "Ready"));
    assert_eq!(status["connectionDetails"]["lastPublishedTime"], "t9");
}
