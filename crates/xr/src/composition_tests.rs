use super::*;

fn composition() -> Value {
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": "disks", "uid": "u1", "labels": {"cloud": "dummy"},
            "annotations": {"note": "x"}},
        "spec": {
            "compositeTypeRef": {"apiVersion": "ex.test/v1", "kind": "Disk"},
            "mode": "Pipeline",
            "pipeline": [{
                "step": "make",
                "functionRef": {"name": "function-x"},
                "input": {"apiVersion": "x/v1", "kind": "Input"},
                "credentials": [
                    {"name": "none", "source": "None"},
                    {"name": "cloud", "source": "Secret",
                        "secretRef": {"namespace": "ns", "name": "s"}},
                ],
                "requirements": {"requiredResources": [
                    {"requirementName": "one", "apiVersion": "v1", "kind": "Secret", "name": "n"},
                    {"requirementName": "all", "apiVersion": "v1", "kind": "Secret"},
                ]},
            }],
        },
    })
}

#[test]
fn a_pipeline_is_parsed() {
    let parsed = Composition::parse(&composition()).expect("valid");
    let step = &parsed.pipeline[0];
    assert_eq!(step.function, "function-x");
    assert_eq!(step.credentials.len(), 1);
    assert_eq!(step.resources["one"].matching, Match::Name("n".into()));
    assert_eq!(
        step.resources["all"].matching,
        Match::Labels(BTreeMap::new())
    );
}

#[test]
fn what_cannot_be_run_is_refused() {
    for (path, value, want) in [
        ("/spec/mode", json!("Resources"), "only Pipeline"),
        ("/spec/pipeline", json!([]), "1 to"),
        ("/spec/compositeTypeRef", json!(null), "spec"),
        ("/apiVersion", json!("v1"), "not a Composition"),
    ] {
        let mut bad = composition();
        *bad.pointer_mut(path).expect("path") = value;
        let error = Composition::parse(&bad).expect_err(path).to_string();
        assert!(error.contains(want), "{error}");
    }
    let mut twice = composition();
    let step = twice["spec"]["pipeline"][0].clone();
    twice["spec"]["pipeline"] = json!([step, step]);
    assert!(Composition::parse(&twice).is_err());
}

#[test]
fn labels_annotations_and_spec_make_the_hash_and_nothing_else() {
    let base = hash(&composition());
    assert_eq!(base.len(), 64);
    for (path, value, changes) in [
        ("/metadata/labels/cloud", json!("other"), true),
        ("/metadata/annotations/note", json!("y"), true),
        ("/spec/pipeline/0/step", json!("other"), true),
        ("/metadata/uid", json!("u2"), false),
    ] {
        let mut other = composition();
        *other.pointer_mut(path).expect("path") = value;
        assert_eq!(hash(&other) != base, changes, "{path}");
    }
}

#[test]
fn a_revision_is_named_and_labelled_by_its_hash() {
    let revision = revision_of(&composition(), 3);
    let hash = hash(&composition());
    assert_eq!(object::name(&revision), format!("disks-{}", &hash[..7]));
    assert_eq!(
        object::label(&revision, keys::COMPOSITION_HASH),
        Some(&hash[..63])
    );
    assert_eq!(object::label(&revision, "cloud"), Some("dummy"));
    assert_eq!(object::annotation(&revision, "note"), Some("x"));
    assert_eq!(revision_number(&revision), 3);
    assert!(is_controlled_by(&revision, &composition()));
    assert!(Composition::parse(&revision).is_ok());
}

#[test]
fn reverting_renumbers_the_old_revision() {
    let first = composition();
    let one = revision_of(&first, 1);
    assert_eq!(revision_changes(&first, std::slice::from_ref(&one)), vec![]);
    let mut second = first.clone();
    second["spec"]["pipeline"][0]["step"] = json!("other");
    let two = revision_of(&second, 2);
    assert_eq!(
        revision_changes(&second, std::slice::from_ref(&one)),
        vec![RevisionChange::Create(two.clone())]
    );
    let changes = revision_changes(&first, &[one.clone(), two.clone()]);
    let mut renumbered = one.clone();
    renumbered["spec"]["revision"] = json!(3);
    assert_eq!(changes, vec![RevisionChange::Update(renumbered)]);
    assert_eq!(latest_revision(&first, [&one, &two]), Some(&two));
}

#[test]
fn orphaned_revisions_get_their_composition_back() {
    let mut orphan = revision_of(&composition(), 1);
    orphan["metadata"]["ownerReferences"] = json!([]);
    let changes = revision_changes(&composition(), &[orphan]);
    assert!(
        matches!(&changes[..], [RevisionChange::Update(r)] if is_controlled_by(r, &composition())),
        "{changes:?}"
    );
}

#[test]
fn only_a_revision_with_a_valid_pipeline_is_used() {
    let mut revision = revision_of(&composition(), 1);
    let why = invalid_pipeline(&revision).expect("unknown");
    assert!(why.ends_with("pipeline status unknown"), "{why}");
    revision["status"] = json!({"conditions": [
        {"type": "ValidPipeline", "status": "False", "reason": "MissingCapabilities",
            "message": "no", "lastTransitionTime": "t"}]});
    assert!(
        invalid_pipeline(&revision)
            .expect("false")
            .ends_with(": no")
    );
    revision["status"]["conditions"][0]["status"] = json!("True");
    assert_eq!(invalid_pipeline(&revision), None);
}
