use proptest::prelude::*;
use prost::Message as _;
use serde_json::json;

use super::*;

fn request() -> Request {
    let resource = Resource {
        object: json!({"kind": "Volume", "spec": {"size": 10, "ratio": 1.5}}).into(),
        connection: BTreeMap::from([("k".to_owned(), vec![0, 255])]),
        ready: Ready::Unspecified,
    };
    Request {
        tag: "t".into(),
        capabilities: vec![Capability::Capabilities, Capability::RequiredSchemas],
        observed: State {
            composite: Some(resource.clone()),
            resources: BTreeMap::from([("a".to_owned(), resource.clone())]),
        },
        desired: State::default(),
        input: Some(json!({"kind": "Input"})),
        context: [("c".to_owned(), json!([1, null]))].into_iter().collect(),
        required: BTreeMap::from([
            ("none".to_owned(), vec![]),
            ("some".to_owned(), vec![resource]),
        ]),
        schemas: BTreeMap::from([
            ("known".to_owned(), Some(json!({"type": "object"}))),
            ("unknown".to_owned(), None),
        ]),
        credentials: BTreeMap::from([(
            "cloud".to_owned(),
            BTreeMap::from([("token".to_owned(), b"x".to_vec())]),
        )]),
    }
}

fn response() -> Response {
    let selector = |matching| ResourceSelector {
        api_version: "v1".into(),
        kind: "Secret".into(),
        namespace: Some("ns".into()),
        matching,
    };
    Response {
        tag: "t".into(),
        ttl: Some(Duration::from_millis(1500)),
        desired: State {
            composite: None,
            resources: BTreeMap::from([(
                "a".to_owned(),
                Resource {
                    object: json!({"spec": {"n": 3}}).into(),
                    connection: BTreeMap::new(),
                    ready: Ready::True,
                },
            )]),
        },
        results: vec![FunctionResult {
            severity: Severity::Fatal,
            message: "no".into(),
            reason: Some("Because".into()),
            target: Target::CompositeAndClaim,
        }],
        context: Some(serde_json::Map::new()),
        requirements: Requirements {
            resources: BTreeMap::from([
                ("by-name".to_owned(), selector(Match::Name("n".into()))),
                (
                    "by-label".to_owned(),
                    selector(Match::Labels(BTreeMap::from([("a".into(), "b".into())]))),
                ),
                ("all".to_owned(), selector(Match::Labels(BTreeMap::new()))),
            ]),
            schemas: BTreeMap::from([("s".to_owned(), ("v1".to_owned(), "Secret".to_owned()))]),
        },
        conditions: vec![FunctionCondition {
            kind: "Database".into(),
            status: "Unknown".into(),
            reason: "R".into(),
            message: String::new(),
            target: Target::Composite,
        }],
    }
}

#[test]
fn a_request_survives_the_wire() {
    let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
    let none = BTreeSet::new();
    for (legacy, modern) in [
        (none.clone(), none.clone()),
        (names(&["some"]), none),
        (names(&["some"]), names(&["some", "none"])),
    ] {
        let bytes = request_to_pb(request(), &legacy, &modern).encode_to_vec();
        let back = pb::RunFunctionRequest::decode(bytes.as_slice()).map(to_plain);
        assert_eq!(back, Ok(request()));
    }
}

#[test]
fn required_resources_are_answered_in_the_field_that_asked() {
    let legacy = BTreeSet::from(["some".to_owned()]);
    let sent = request_to_pb(request(), &legacy, &BTreeSet::new());
    assert!(sent.extra_resources.contains_key("some"));
    assert!(!sent.required_resources.contains_key("some"));
    assert!(sent.required_resources.contains_key("none"));
}

#[test]
fn a_response_survives_the_wire() {
    let bytes = from_plain(response()).encode_to_vec();
    let back = pb::RunFunctionResponse::decode(bytes.as_slice()).map(response_from_pb);
    assert_eq!(back, Ok(response()));
}

#[test]
fn an_old_caller_is_asked_through_both_fields() {
    let old = from_plain_for(response(), &[]);
    let requirements = old.requirements.unwrap_or_default();
    assert_eq!(requirements.extra_resources, requirements.resources);
    let new = from_plain_for(response(), &[Capability::Capabilities]);
    assert!(
        new.requirements
            .unwrap_or_default()
            .extra_resources
            .is_empty()
    );
}

#[test]
fn a_selector_without_match_selects_everything() {
    let selector = selector_from_pb(pb::ResourceSelector::default());
    assert_eq!(selector.matching, Match::Labels(BTreeMap::new()));
}

#[test]
fn a_negative_ttl_is_no_ttl() {
    let negative = pbjson_types::Duration {
        seconds: -1,
        nanos: 0,
    };
    assert_eq!(duration_from_pb(negative), None);
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        if let Ok(request) = pb::RunFunctionRequest::decode(bytes.as_slice()) {
            let _ = to_plain(request);
        }
        if let Ok(response) = pb::RunFunctionResponse::decode(bytes.as_slice()) {
            let _ = response_from_pb(response);
        }
    }
}
