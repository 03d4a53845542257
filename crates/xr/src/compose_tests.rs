use proptest::prelude::*;

use super::*;

fn xr() -> Value {
    json!({
        "apiVersion": "ex.test/v1",
        "kind": "Disk",
        "metadata": {"name": "d", "namespace": "ns", "uid": "xr-uid",
            "labels": {"crossplane.io/composite": "d"}},
    })
}

fn cluster_xr() -> Value {
    let mut xr = xr();
    if let Some(metadata) = xr["metadata"].as_object_mut() {
        metadata.remove("namespace");
    }
    xr
}

fn state(resources: &[(&str, Value)]) -> State {
    State {
        composite: None,
        resources: resources
            .iter()
            .map(|(name, object)| ((*name).to_owned(), Resource::of(object.clone())))
            .collect(),
    }
}

fn volume() -> Value {
    json!({"apiVersion": "dummy.test/v1", "kind": "Volume", "spec": {"size": 1}})
}

fn scopes(namespaced: bool) -> Scopes {
    BTreeMap::from([(object::gvk(&volume()), Ok(namespaced))])
}

fn render_one(xr: &Value, key: &str, object: Value) -> Result<Value, ComposeError> {
    let desired = state(&[(key, object)]);
    let rendered = render(xr, &desired, &Observed::new(), &scopes(true))?;
    Ok(rendered.composed[key].object.clone())
}

#[test]
fn a_desired_resource_gets_name_labels_annotation_and_owner() {
    let object = render_one(&xr(), "disk", volume()).expect("rendered");
    let name = names::child_name("d-", "xr-uid", "disk");
    assert_eq!(
        object,
        json!({
            "apiVersion": "dummy.test/v1",
            "kind": "Volume",
            "metadata": {
                "name": name,
                "generateName": "d-",
                "namespace": "ns",
                "labels": {"crossplane.io/composite": "d"},
                "annotations": {"crossplane.io/composition-resource-name": "disk"},
                "ownerReferences": [{"apiVersion": "ex.test/v1", "kind": "Disk", "name": "d",
                    "uid": "xr-uid", "controller": true, "blockOwnerDeletion": true}],
            },
            "spec": {"size": 1},
        })
    );
}

#[test]
fn claim_labels_are_passed_on_only_together() {
    let mut xr = xr();
    object::set_label(&mut xr, keys::CLAIM_NAME, "c");
    let object = render_one(&xr, "disk", volume()).expect("rendered");
    assert_eq!(object::label(&object, keys::CLAIM_NAME), None);
    object::set_label(&mut xr, keys::CLAIM_NAMESPACE, "cns");
    let object = render_one(&xr, "disk", volume()).expect("rendered");
    assert_eq!(object::label(&object, keys::CLAIM_NAME), Some("c"));
    assert_eq!(object::label(&object, keys::CLAIM_NAMESPACE), Some("cns"));
}

#[test]
fn an_observed_resource_keeps_its_name() {
    let mut observed = volume();
    observed["metadata"] = json!({"name": "random-abcde", "namespace": "ns"});
    let observed = Observed::from([("disk".to_owned(), Resource::of(observed))]);
    let mut wanted = volume();
    wanted["metadata"] = json!({"name": "other", "generateName": "other-"});
    let desired = state(&[("disk", wanted)]);
    let rendered = render(&xr(), &desired, &observed, &Scopes::new()).expect("rendered");
    let object = &rendered.composed["disk"].object;
    assert_eq!(object::name(object), "random-abcde");
    assert_eq!(object::meta_str(object, "generateName"), None);
}

/// crossplane#6704: the key in the pipeline never becomes a part of the name.
#[test]
fn any_key_gives_a_valid_stable_name() {
    let mut long = xr();
    long["metadata"]["labels"]["crossplane.io/composite"] = json!("x".repeat(60));
    for xr in [xr(), long] {
        let name = |key| {
            let object = render_one(&xr, key, volume()).expect("rendered");
            object::name(&object).to_owned()
        };
        let first = name("RDSInstance.Small!1");
        assert_eq!(first, name("RDSInstance.Small!1"));
        assert!(first.len() <= 63);
        assert!(names::is_dns1123_subdomain(&first));
    }
}

#[test]
fn a_function_may_choose_name_or_prefix() {
    let mut named = volume();
    named["metadata"] = json!({"name": "mine"});
    let object = render_one(&xr(), "disk", named).expect("rendered");
    assert_eq!(object::name(&object), "mine");
    assert_eq!(object::meta_str(&object, "generateName"), None);
    let mut prefixed = volume();
    prefixed["metadata"] = json!({"generateName": "pre-"});
    let object = render_one(&xr(), "disk", prefixed).expect("rendered");
    assert!(object::name(&object).starts_with("pre-"));
}

#[test]
fn invalid_names_and_shapes_are_refused() {
    let mut bad = volume();
    bad["metadata"] = json!({"name": "Not_Valid"});
    assert!(matches!(
        render_one(&xr(), "disk", bad),
        Err(ComposeError::InvalidName { .. })
    ));
    for bad in [
        json!({}),
        json!({"kind": "Volume"}),
        json!([]),
        json!({"apiVersion": "v1", "kind": "X", "metadata": 1}),
    ] {
        assert!(matches!(
            render_one(&xr(), "disk", bad),
            Err(ComposeError::Malformed { .. })
        ));
    }
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "crossplane:edit"}});
    assert!(render_one(&cluster_xr(), "role", role).is_ok());
}

#[test]
fn a_namespaced_xr_composes_nothing_cluster_scoped() {
    let desired = state(&[("disk", volume())]);
    let gvk = object::gvk(&volume());
    assert_eq!(
        kinds_to_check(&xr(), &desired, &Observed::new()),
        BTreeSet::from([gvk.clone()])
    );
    assert!(kinds_to_check(&cluster_xr(), &desired, &Observed::new()).is_empty());
    assert_eq!(
        render(&xr(), &desired, &Observed::new(), &scopes(false)).map_err(|e| e.to_string()),
        Err(
            "cannot apply cluster scoped composed resource \"disk\" (a Volume named ) for a \
             namespaced composite resource."
                .into()
        )
    );
    let unknown = BTreeMap::from([(gvk, Err("no matches for kind".to_owned()))]);
    assert!(matches!(
        render(&xr(), &desired, &Observed::new(), &unknown),
        Err(ComposeError::UnknownKind { .. })
    ));
    assert!(render(&cluster_xr(), &desired, &Observed::new(), &Scopes::new()).is_ok());
}

#[test]
fn another_namespace_is_overridden_with_a_warning() {
    let mut elsewhere = volume();
    elsewhere["metadata"] = json!({"namespace": "other"});
    let desired = state(&[("disk", elsewhere.clone())]);
    let rendered = render(&xr(), &desired, &Observed::new(), &Scopes::new()).expect("rendered");
    let object = &rendered.composed["disk"].object;
    assert_eq!(object::namespace(object), Some("ns"));
    assert_eq!(rendered.events[0].composite.reason, "NamespaceOverridden");
    let free = render(&cluster_xr(), &desired, &Observed::new(), &Scopes::new());
    let object = &free.expect("rendered").composed["disk"].object;
    assert_eq!(object::namespace(object), Some("other"));
}

/// crossplane#5035: what another XR controls is not taken over.
#[test]
fn a_foreign_controller_is_refused() {
    let mut stolen = volume();
    stolen["metadata"] = json!({"name": "shared", "ownerReferences": [
        {"kind": "Disk", "name": "other", "uid": "other-uid", "controller": true}]});
    let error = render_one(&xr(), "disk", stolen).expect_err("controlled");
    assert!(
        error
            .to_string()
            .contains("already controlled by Disk other"),
        "{error}"
    );
}

#[test]
fn field_managers_differ_by_xr_and_not_by_namespace() {
    let mut other = xr();
    other["metadata"]["namespace"] = json!("elsewhere");
    assert_eq!(composed_manager(&xr()), composed_manager(&other));
    other["metadata"]["name"] = json!("e");
    assert_ne!(composed_manager(&xr()), composed_manager(&other));
    let hash = composed_manager(&xr());
    assert_eq!(
        hash.strip_prefix("apiextensions.crossplane.io/composed/")
            .map(str::len),
        Some(64)
    );
}

fn owned(key: &str, owner: &str) -> Value {
    let mut object = volume();
    object["metadata"] = json!({"name": key,
        "labels": {"crossplane.io/composite": "d", "mine": "x"},
        "annotations": {"crossplane.io/composition-resource-name": key},
        "ownerReferences": [{"kind": "Disk", "name": owner, "uid": owner, "controller": true}]});
    object
}

#[test]
fn only_own_resources_are_observed() {
    assert_eq!(
        observe(&xr(), &owned("a", "xr-uid")),
        Ok(Some("a".to_owned()))
    );
    assert_eq!(observe(&xr(), &owned("a", "other")), Ok(None));
    assert_eq!(observe(&xr(), &volume()), Err(ComposeError::Anonymous));
}

#[test]
fn garbage_is_what_is_ours_and_no_longer_desired() {
    let mut uncontrolled = owned("free", "x");
    uncontrolled["metadata"]["ownerReferences"] = json!([]);
    let observed: Observed = [
        ("kept", owned("kept", "xr-uid")),
        ("gone", owned("gone", "xr-uid")),
        ("free", uncontrolled),
    ]
    .into_iter()
    .map(|(k, v)| (k.to_owned(), Resource::of(v)))
    .collect();
    let desired = state(&[("kept", volume())]);
    let rendered = render(&xr(), &desired, &observed, &scopes(true)).expect("rendered");
    let found = garbage(&xr(), &observed, &rendered).expect("ours");
    assert_eq!(found.keys().collect::<Vec<_>>(), [&"gone"]);
    let untied = without_ties(found["gone"]).expect("had labels");
    assert_eq!(untied["metadata"]["labels"], json!({"mine": "x"}));
    assert_eq!(without_ties(&untied), None);
    let foreign = Observed::from([("gone".to_owned(), Resource::of(owned("gone", "other")))]);
    assert_eq!(
        garbage(&xr(), &foreign, &rendered).map_err(|e| e.to_string()),
        Err(
            "cannot garbage collect composed resources that are no longer desired: refusing to \
             delete composed resource \"gone\" that is controlled by Disk \"other\""
                .into()
        )
    );
}

#[test]
fn references_are_sorted_and_namespaced_only_for_cluster_xrs() {
    let at = |kind: &str, namespace: &str| {
        json!({"apiVersion": "v1", "kind": kind,
            "metadata": {"name": "n", "namespace": namespace}})
    };
    let desired = state(&[
        ("1", at("Z", "ns")),
        ("2", at("B", "ns")),
        ("3", at("A", "ns")),
    ]);
    let refs = |xr: &Value| {
        let rendered = render(xr, &desired, &Observed::new(), &Scopes::new()).expect("rendered");
        resource_refs(xr, &rendered)
            .iter()
            .map(ResourceRef::to_json)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        refs(&xr()),
        ["A", "B", "Z"].map(|k| json!({"apiVersion": "v1", "kind": k, "name": "n"}))
    );
    assert_eq!(refs(&cluster_xr())[0]["namespace"], "ns");
}

#[test]
fn the_identity_has_nothing_but_names() {
    assert_eq!(
        identity(&xr()),
        json!({"apiVersion": "ex.test/v1", "kind": "Disk",
            "metadata": {"name": "d", "namespace": "ns"}})
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zA-Z/.-]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        let key = prop_oneof![
            Just("metadata".to_owned()),
            Just("name".to_owned()),
            Just("labels".to_owned()),
            Just("ownerReferences".to_owned()),
            Just("kind".to_owned()),
            Just("apiVersion".to_owned()),
            "[a-z]{1,6}",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..6)
                .prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_a_function_returns_panics(key in ".*", object in any_json(), old in any_json()) {
        let desired = state(&[(&key, object)]);
        let observed = Observed::from([("x".to_owned(), Resource::of(old.clone()))]);
        for xr in [xr(), cluster_xr(), old] {
            let kinds = kinds_to_check(&xr, &desired, &observed);
            let scopes = kinds.into_iter().map(|k| (k, Ok(true))).collect();
            if let Ok(rendered) = render(&xr, &desired, &observed, &scopes) {
                let _ = garbage(&xr, &observed, &rendered);
                let again = render(&xr, &desired, &observed, &scopes);
                prop_assert_eq!(again, Ok(rendered.clone()));
                for composed in rendered.composed.values() {
                    prop_assert!(!object::name(&composed.object).is_empty());
                }
                let _ = resource_refs(&xr, &rendered);
            }
        }
    }

    #[test]
    fn rendering_what_was_applied_changes_nothing(key in ".{0,80}") {
        let first = render_one(&xr(), &key, volume());
        prop_assume!(first.is_ok());
        let first = first.unwrap_or_default();
        let observed = Observed::from([(key.clone(), Resource::of(first.clone()))]);
        let desired = state(&[(&key, volume())]);
        let again = render(&xr(), &desired, &observed, &scopes(true));
        let again = again.map(|r| r.composed[&key].object.clone());
        prop_assert_eq!(again, Ok(first));
    }
}
