use super::*;
use crate::compose::Composed;
use crate::function::Resource;

fn xr() -> Value {
    json!({"apiVersion": "ex.test/v1", "kind": "Disk",
        "metadata": {"name": "d", "namespace": "ns", "generation": 4}})
}

fn rendered(resources: &[(&str, bool)]) -> Rendered {
    Rendered {
        composed: resources
            .iter()
            .map(|(name, ready)| {
                let composed = Composed {
                    object: json!({}),
                    ready: *ready,
                };
                ((*name).to_owned(), composed)
            })
            .collect(),
        events: vec![],
    }
}

fn all_synced(rendered: &Rendered) -> BTreeMap<String, Applied> {
    rendered
        .composed
        .keys()
        .map(|name| (name.clone(), Applied::Synced))
        .collect()
}

fn conditions(xr: &Value) -> Conditions {
    let mut conditions = Conditions::of(xr, "t1");
    conditions.responsive(None);
    conditions
}

fn applied(xr: &Value, outcome: &Outcome, resources: &[(&str, bool)]) -> Value {
    let rendered = rendered(resources);
    let report = report(
        xr,
        conditions(xr),
        outcome,
        &rendered,
        &all_synced(&rendered),
    );
    report.apply
}

fn texts(object: &Value) -> Vec<String> {
    condition::of(object)
        .into_iter()
        .map(|c| format!("{} {} {} {}", c.kind, c.status, c.reason, c.message))
        .collect()
}

fn says(kind: &str, target: Target) -> FunctionCondition {
    FunctionCondition {
        kind: kind.into(),
        status: "True".into(),
        reason: "Up".into(),
        message: String::new(),
        target,
    }
}

#[test]
fn a_fresh_xr_has_its_conditions_in_upstreams_order() {
    let object = applied(&xr(), &Outcome::default(), &[]);
    assert_eq!(
        texts(&object),
        [
            "Responsive True WatchCircuitClosed ",
            "Synced True ReconcileSuccess ",
            "Ready True Available ",
        ]
    );
    assert_eq!(object["status"]["conditions"][1]["observedGeneration"], 4);
    assert_eq!(object::name(&object), "d");
}

/// crossplane#5872: readiness is what functions say, not what children say.
#[test]
fn unspecified_readiness_is_not_ready() {
    let object = applied(&xr(), &Outcome::default(), &[("a", false), ("b", true)]);
    assert_eq!(
        texts(&object)[2],
        "Ready False Creating Unready resources: a"
    );
}

/// function-patch-and-transform#152: the composite's own readiness wins.
#[test]
fn the_composites_readiness_overrides() {
    for (ready, want) in [
        (Ready::True, "Ready True Available "),
        (Ready::False, "Ready False Creating "),
    ] {
        let mut outcome = Outcome::default();
        outcome.desired.composite = Some(Resource {
            ready,
            ..Resource::default()
        });
        let object = applied(&xr(), &outcome, &[("a", ready == Ready::False)]);
        assert_eq!(texts(&object)[2], want);
    }
}

#[test]
fn invalid_resources_are_listed() {
    let rendered = rendered(&[("a", true), ("b", true), ("c", true)]);
    let applied = BTreeMap::from([
        ("a".to_owned(), Applied::Invalid),
        ("b".to_owned(), Applied::Synced),
        ("c".to_owned(), Applied::Invalid),
    ]);
    let report = report(
        &xr(),
        conditions(&xr()),
        &Outcome::default(),
        &rendered,
        &applied,
    );
    assert_eq!(
        texts(&report.apply)[1],
        "Synced False ReconcileError Unsynced resources: a, c"
    );
    let messages: Vec<&str> = report.not_yet.iter().map(|e| e.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "Composed resource \"a\" is not yet valid",
            "Composed resource \"c\" is not yet valid"
        ]
    );
}

#[test]
fn functions_cannot_set_system_conditions() {
    let outcome = Outcome {
        conditions: vec![
            says("Ready", Target::Composite),
            says("UpToDate", Target::Composite),
            says("Database", Target::CompositeAndClaim),
        ],
        ..Outcome::default()
    };
    let object = applied(&xr(), &outcome, &[("a", false)]);
    let kinds: Vec<String> = condition::of(&object).into_iter().map(|c| c.kind).collect();
    assert_eq!(kinds, ["Responsive", "Database", "Synced", "Ready"]);
    assert_eq!(object["status"]["claimConditionTypes"], json!(["Database"]));
    assert_eq!(condition::status(&object, "Ready"), Some("False"));
}

#[test]
fn the_functions_status_is_applied_and_unchanged_conditions_keep_their_time() {
    let mut outcome = Outcome::default();
    let status = json!({"status": {"state": "active",
        "conditions": [{"type": "Own", "status": "True", "reason": "R",
            "lastTransitionTime": "t0"}]}, "spec": {"ignored": true}});
    outcome.desired.composite = Some(Resource::of(status));
    let first = applied(&xr(), &outcome, &[]);
    assert_eq!(first["status"]["state"], "active");
    assert_eq!(first.get("spec"), None);
    assert_eq!(texts(&first)[0], "Own True R ");
    let mut observed = xr();
    observed["status"] = first["status"].clone();
    observed["status"]["connectionDetails"] = json!({"lastPublishedTime": "t"});
    let mut later = Conditions::of(&observed, "t2");
    later.responsive(None);
    let rendered = rendered(&[]);
    let report = report(&observed, later, &outcome, &rendered, &BTreeMap::new());
    assert_eq!(report.apply["status"], observed["status"]);
}

#[test]
fn a_failure_keeps_what_functions_said_and_makes_the_rest_unknown() {
    let mut observed = xr();
    observed["status"] = json!({"conditions": [
        {"type": "Old", "status": "True", "reason": "Up", "lastTransitionTime": "t0"},
        {"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "t0"}]});
    let mut conditions = conditions(&observed);
    let partial = Outcome {
        conditions: vec![says("New", Target::Composite)],
        ..Outcome::default()
    };
    let events = report_failure(&mut conditions, "boom", Some(&partial), false);
    assert_eq!(
        events[0].composite,
        Event::warning("ComposeResources", "cannot compose resources: boom")
    );
    let object = json!({"status": {"conditions": conditions.to_json()}});
    let unknown = "A fatal error occurred before the status of this condition could be determined.";
    assert_eq!(
        texts(&object),
        [
            format!("Old Unknown FatalError {unknown}"),
            "Ready True Available ".into(),
            "Responsive True WatchCircuitClosed ".into(),
            "Synced False ReconcileError cannot compose resources: boom".into(),
            "New True Up ".into(),
        ]
    );
    let before = conditions.clone();
    report_failure(&mut conditions, "boom", Some(&partial), false);
    assert!(!conditions.differ_from(&json!({"status": {"conditions": before.to_json()}})));
}

#[test]
fn an_invalid_resource_gives_a_stable_condition() {
    let mut conditions = conditions(&xr());
    let events = report_failure(&mut conditions, "Disk is invalid: 1", None, true);
    assert!(events[0].composite.message.ends_with("Disk is invalid: 1"));
    let object = json!({"status": {"conditions": conditions.to_json()}});
    assert!(texts(&object)[1].ends_with("some resources were invalid, check events"));
}

#[test]
fn names_are_listed_as_upstream() {
    for (names, want) in [
        (vec![], ""),
        (vec!["a"], "a"),
        (vec!["b", "a"], "a, b"),
        (vec!["c", "b", "a"], "a, b, and c"),
        (vec!["d", "c", "b", "a", "e"], "a, b, c, and 2 more"),
    ] {
        assert_eq!(list_names(&names), want);
    }
}
