use serde_json::json;

use super::*;
use crate::composition::Credential;
use crate::function::Match;

fn step(name: &str) -> Step {
    Step {
        name: name.into(),
        function: format!("function-{name}"),
        input: Some(json!({"step": name})),
        credentials: vec![],
        resources: BTreeMap::new(),
        schemas: BTreeMap::new(),
    }
}

fn pipeline(steps: Vec<Step>, seeds: Seeds) -> Pipeline {
    Pipeline::new(steps, State::default(), "id".into(), seeds)
}

fn selector(name: &str) -> ResourceSelector {
    ResourceSelector {
        api_version: "v1".into(),
        kind: "Secret".into(),
        namespace: None,
        matching: Match::Name(name.into()),
    }
}

fn asking(names: &[&str]) -> Requirements {
    Requirements {
        resources: names
            .iter()
            .map(|n| ((*n).to_owned(), selector(n)))
            .collect(),
        schemas: BTreeMap::new(),
    }
}

fn fetched(wanted: &Wanted) -> Fetched {
    Fetched {
        resources: wanted
            .resources
            .iter()
            .map(|s| (s.clone(), Ok(vec![json!({"kind": s.kind}).into()])))
            .collect(),
        schemas: wanted
            .schemas
            .iter()
            .map(|s| (s.clone(), Ok(None)))
            .collect(),
        secrets: wanted
            .secrets
            .iter()
            .map(|s| {
                let data = BTreeMap::from([("k".to_owned(), s.name.clone().into_bytes())]);
                (s.clone(), Ok(data))
            })
            .collect(),
    }
}

/// Runs a pipeline against a function; returns the outcome and how often it was called.
fn run(
    mut pipeline: Pipeline,
    mut function: impl FnMut(&str, Request) -> Response,
) -> (Result<Outcome, PipelineError>, usize) {
    let mut calls = 0;
    let mut effect = Ok(pipeline.start());
    loop {
        effect = match effect {
            Ok(Effect::Fetch(wanted)) => pipeline.fetched(&fetched(&wanted)),
            Ok(Effect::Call { step, request, .. }) => {
                calls += 1;
                pipeline.replied(Ok(function(&step, *request)))
            }
            Ok(Effect::Done(outcome)) => return (Ok(*outcome), calls),
            Err(error) => return (Err(error), calls),
        };
    }
}

fn desired(name: &str) -> State {
    State {
        composite: None,
        resources: BTreeMap::from([(name.to_owned(), Resource::of(json!({})))]),
    }
}

#[test]
fn desired_state_and_context_go_from_step_to_step() {
    let steps = vec![step("one"), step("two")];
    let (outcome, calls) = run(pipeline(steps, Seeds::new()), |step, request| {
        if step == "one" {
            assert_eq!(request.desired, State::default());
            assert_eq!(request.input, Some(json!({"step": "one"})));
            return Response {
                desired: desired("a"),
                context: Some([("c".to_owned(), json!(1))].into_iter().collect()),
                ttl: Some(Duration::from_secs(9)),
                ..Response::default()
            };
        }
        assert_eq!(request.desired, desired("a"));
        assert_eq!(request.context["c"], json!(1));
        Response {
            desired: desired("b"),
            ttl: Some(Duration::from_secs(3)),
            ..Response::default()
        }
    });
    let outcome = outcome.expect("done");
    assert_eq!(outcome.desired, desired("b"));
    assert_eq!(outcome.ttl, Some(Duration::from_secs(3)));
    assert_eq!(calls, 2);
}

#[test]
fn a_context_left_out_is_lost() {
    let (outcome, _) = run(
        pipeline(vec![step("one"), step("two")], Seeds::new()),
        |_, request| {
            assert!(request.context.is_empty());
            Response::default()
        },
    );
    assert!(outcome.is_ok());
}

#[test]
fn a_fatal_result_stops_everything_but_keeps_what_was_said() {
    let steps = vec![step("one"), step("two")];
    let (outcome, calls) = run(pipeline(steps, Seeds::new()), |_, _| Response {
        desired: desired("a"),
        results: vec![
            FunctionResult {
                severity: Severity::Warning,
                message: "careful".into(),
                reason: None,
                target: Target::CompositeAndClaim,
            },
            FunctionResult {
                severity: Severity::Fatal,
                message: "no".into(),
                reason: None,
                target: Target::Composite,
            },
        ],
        ..Response::default()
    });
    assert_eq!(calls, 1);
    let Err(PipelineError::Fatal { partial, .. }) = &outcome else {
        panic!("not fatal: {outcome:?}");
    };
    assert_eq!(partial.desired, State::default());
    assert_eq!(
        partial.events,
        [TargetedEvent {
            composite: Event::warning("ComposeResources", "Pipeline step \"one\": careful"),
            claim: Some(Event::warning("ComposeResources", "careful")),
        }]
    );
    assert_eq!(
        outcome.map_err(|e| e.to_string()),
        Err("pipeline step \"one\" returned a fatal result: no".into())
    );
}

#[test]
fn results_become_events() {
    let result = |severity| FunctionResult {
        severity,
        message: "m".into(),
        reason: Some("Why".into()),
        target: Target::Composite,
    };
    let event = |severity| result_event("s", result(severity)).composite;
    assert_eq!(
        event(Severity::Normal),
        Event::normal("Why", "Pipeline step \"s\": m")
    );
    assert_eq!(
        event(Severity::Unspecified),
        Event::warning(
            "Why",
            "Pipeline step \"s\" returned a result of unknown severity (assuming warning): m"
        )
    );
}

#[test]
fn stable_requirements_cost_two_calls_and_one_when_seeded() {
    let function = |_: &str, request: Request| Response {
        requirements: asking(&["net"]),
        desired: desired(if request.required.contains_key("net") {
            "with"
        } else {
            "without"
        }),
        ..Response::default()
    };
    let (outcome, calls) = run(pipeline(vec![step("one")], Seeds::new()), function);
    let outcome = outcome.expect("done");
    assert_eq!((calls, outcome.desired.clone()), (2, desired("with")));
    let (outcome, calls) = run(pipeline(vec![step("one")], outcome.requirements), function);
    assert_eq!(
        (calls, outcome.expect("done").desired),
        (1, desired("with"))
    );
}

#[test]
fn context_carries_over_between_calls_and_desired_does_not() {
    let mut seen = Vec::new();
    let (outcome, calls) = run(pipeline(vec![step("one")], Seeds::new()), |_, request| {
        seen.push((request.desired.clone(), request.context.contains_key("c")));
        Response {
            requirements: asking(&["net"]),
            desired: desired("a"),
            context: Some([("c".to_owned(), json!(1))].into_iter().collect()),
            ..Response::default()
        }
    });
    assert!(outcome.is_ok());
    assert_eq!(calls, 2);
    assert_eq!(seen, [(State::default(), false), (State::default(), true)]);
}

#[test]
fn requirements_that_never_settle_end_after_six_calls() {
    let mut n = 0;
    let (outcome, calls) = run(pipeline(vec![step("one")], Seeds::new()), |_, _| {
        n += 1;
        Response {
            requirements: asking(&[&format!("r{n}")]),
            ..Response::default()
        }
    });
    assert_eq!(calls, 6);
    assert_eq!(
        outcome.map_err(|e| e.to_string()),
        Err(
            "cannot run Composition pipeline step \"one\": requirements didn't stabilize after \
             the maximum number of iterations (5)"
                .into()
        )
    );
}

#[test]
fn a_requirement_that_is_dropped_disappears() {
    let mut calls = 0;
    let (outcome, _) = run(pipeline(vec![step("one")], Seeds::new()), |_, request| {
        calls += 1;
        let keys: Vec<&String> = request.required.keys().collect();
        match calls {
            1 => assert!(keys.is_empty()),
            2 => assert_eq!(keys, ["a"]),
            _ => assert_eq!(keys, ["b"]),
        }
        Response {
            requirements: asking(&[if calls == 1 { "a" } else { "b" }]),
            ..Response::default()
        }
    });
    assert!(outcome.is_ok());
    assert_eq!(calls, 3);
}

#[test]
fn bootstrap_requirements_and_credentials_are_there_from_the_first_call() {
    let mut one = step("one");
    one.resources.insert("boot".into(), selector("b"));
    one.schemas
        .insert("schema".into(), ("v1".into(), "Secret".into()));
    one.credentials.push(Credential {
        name: "cloud".into(),
        secret: SecretRef {
            namespace: "ns".into(),
            name: "s".into(),
        },
    });
    let (outcome, calls) = run(pipeline(vec![one], Seeds::new()), |_, request| {
        assert!(request.required.contains_key("boot"));
        assert_eq!(request.schemas["schema"], None);
        assert_eq!(request.credentials["cloud"]["k"], b"s");
        Response::default()
    });
    assert_eq!(calls, 1);
    let outcome = outcome.expect("done");
    assert_eq!(outcome.requirements["one"]["boot"], selector("b"));
}

#[test]
fn what_cannot_be_fetched_is_named() {
    let mut one = step("one");
    one.resources.insert("boot".into(), selector("b"));
    let mut pipeline = pipeline(vec![one], Seeds::new());
    let Effect::Fetch(wanted) = pipeline.start() else {
        panic!("nothing to fetch");
    };
    let mut answer = fetched(&wanted);
    for result in answer.resources.values_mut() {
        *result = Err("forbidden".into());
    }
    assert_eq!(
        pipeline.fetched(&answer).map_err(|e| e.to_string()),
        Err("cannot fetch bootstrap required resources for requirement \"boot\": forbidden".into())
    );
}

#[test]
fn a_function_that_cannot_be_run_is_named() {
    let mut pipeline = pipeline(vec![step("one")], Seeds::new());
    let _ = pipeline.start();
    assert_eq!(
        pipeline
            .replied(Err("gone".into()))
            .map_err(|e| e.to_string()),
        Err("cannot run Composition pipeline step \"one\": gone".into())
    );
    assert_eq!(
        pipeline.replied(Ok(Response::default())),
        Err(PipelineError::OutOfOrder)
    );
    assert_eq!(
        pipeline.fetched(&Fetched::default()),
        Err(PipelineError::OutOfOrder)
    );
}

#[test]
fn tags_differ_by_step_call_and_identity() {
    let mut tags = BTreeSet::new();
    let mut runs = 0;
    for identity in ["a", "b"] {
        let steps = vec![step("one"), step("two")];
        let pipeline = Pipeline::new(steps, State::default(), identity.into(), Seeds::new());
        let (outcome, calls) = run(pipeline, |_, request| {
            tags.insert(request.tag);
            Response {
                requirements: asking(&["net"]),
                ..Response::default()
            }
        });
        assert!(outcome.is_ok());
        runs += calls;
    }
    assert_eq!(tags.len(), runs);
}
