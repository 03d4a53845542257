//! Laws that hold for every request.

use std::collections::BTreeMap;
use std::time::Duration;

use ecp_meta::limits::HISTORY_LEN_MAX;
use ecp_xr::function::{Match, Request, Resource, ResourceSelector, Response, Severity, State};
use ecp_xrds::{State as Seca, Status};
use function_ecp::status::{Phase, advance};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{CALLS_MAX, now};

const WORDS: [&str; 22] = [
    "apiVersion",
    "kind",
    "metadata",
    "spec",
    "status",
    "conditions",
    "type",
    "Synced",
    "Ready",
    "True",
    "skuRef",
    "resource",
    "sizeGB",
    "region",
    "cloud",
    "dummy",
    "name",
    "labels",
    "annotations",
    "forProvider",
    "atProvider",
    "history",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => proptest::sample::select(&WORDS[..]).prop_map(str::to_owned),
        1 => ".{0,6}",
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            1 => proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => proptest::collection::btree_map(word(), inner, 0..6)
                .prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

/// Something of one of our kinds, odd everywhere else.
fn any_xr() -> impl Strategy<Value = Value> {
    let kinds: Vec<(String, String)> = ecp_xrds::kinds()
        .iter()
        .flat_map(|k| ecp_xrds::Flavour::ALL.map(|f| (k.api_version(), k.xr_kind(f))))
        .collect();
    let to = |text: &str| json!({"resource": text});
    let rule = json!({"direction": "ingress", "sourceRef": [to("security-groups/g"), to("10.0.0.0/8"), to("?")]});
    let good = json!({
        "sizeGB": 1, "skuRef": to("RD500"), "claimRef": {"namespace": "n", "name": "x"},
        "blockStorageRef": to("workspaces/w/block-storages/d"), "cpuArchitecture": "amd64",
        "iops": 1, "minVolumeSize": 1, "type": "remote-durable", "vCPU": 1, "ram": 1,
        "bandwidth": 1, "packets": 1, "subs": ["*"], "scopes": [{}], "roles": ["r", "?"],
        "permissions": [], "network": "n", "cidr": {"ipv4": "10.0.0.0/8"},
        "routeTableRef": to("r"), "zone": "", "subnetRef": to("networks/n/subnets/s"),
        "routes": [{"destinationCidrBlock": "0.0.0.0/0", "targetRef": to("instances/i")}],
        "publicIpRefs": [to("p")], "securityGroupRefs": [to("g")], "version": "IPv4",
        "direction": "ingress", "sourceRef": rule["sourceRef"], "rules": [rule], "ruleRefs": [to("r")],
        "bootVolume": {"deviceRef": to("d")}, "dataVolumes": [{"deviceRef": to("d")}],
        "primaryNicRef": to("n"), "securityGroupRef": to("g"),
    });
    (
        proptest::sample::select(kinds),
        prop_oneof![Just(good), any_json()],
        any_json(),
        any_json(),
        any::<bool>(),
    )
        .prop_map(|((api_version, kind), spec, status, labels, deleting)| {
            let mut xr = json!({
                "apiVersion": api_version, "kind": kind, "spec": spec, "status": status,
                "metadata": {"name": "x", "namespace": "n", "labels": labels},
            });
            if deleting {
                xr["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z".into();
            }
            xr
        })
}

const KEYS: [&str; 9] = [
    "volume",
    "project",
    "namespace",
    "subnet",
    "route-table",
    "interface",
    "address",
    "group",
    "machine",
];

fn resources() -> impl Strategy<Value = BTreeMap<String, Value>> {
    proptest::collection::btree_map(
        proptest::sample::select(&KEYS[..]).prop_map(str::to_owned),
        any_json(),
        0..5,
    )
}

/// What is asked for, as it was asked, but odd everywhere else.
fn answer(selector: &ResourceSelector, odd: &Value) -> Resource {
    let mut object = if odd.is_object() {
        odd.clone()
    } else {
        json!({})
    };
    object["apiVersion"] = selector.api_version.clone().into();
    object["kind"] = selector.kind.clone().into();
    let mut labels = json!({"secapi.cloud/tenant": "t", "secapi.cloud/workspace": "w"});
    let mut name = "odd".to_owned();
    match &selector.matching {
        Match::Name(asked) => name.clone_from(asked),
        Match::Labels(asked) => asked.iter().for_each(|(k, v)| labels[k] = v.clone().into()),
    }
    object["metadata"] = json!({
        "name": name, "namespace": selector.namespace, "labels": labels,
        "annotations": {"crossplane.io/external-name": "id"},
    });
    Resource::of(object)
}

fn any_request() -> impl Strategy<Value = Request> {
    (any_xr(), resources(), resources(), any_json()).prop_map(|(xr, observed, desired, input)| {
        let all = |m: BTreeMap<String, Value>| -> BTreeMap<String, Resource> {
            m.into_iter().map(|(k, v)| (k, Resource::of(v))).collect()
        };
        Request {
            tag: "tag".into(),
            observed: State {
                composite: Some(Resource::of(xr)),
                resources: all(observed),
            },
            desired: State {
                composite: None,
                resources: all(desired),
            },
            input: Some(input),
            context: [("k".to_owned(), json!("v"))].into_iter().collect(),
            ..Request::default()
        }
    })
}

fn compose(request: &Request) -> Response {
    function_ecp::compose(request.clone(), now())
}

#[derive(Clone, Debug)]
enum Event {
    Change,
    Phase(Phase),
    ClockBack,
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => Just(Event::Change),
        1 => Just(Event::ClockBack),
        11 => any_phase().prop_map(Event::Phase),
    ]
}

/// How far a resource that is not being deleted can be.
fn any_phase() -> impl Strategy<Value = Phase> {
    prop_oneof![
        2 => Just(Phase::Waiting("w".into())),
        3 => Just(Phase::Working("k".into())),
        1 => Just(Phase::Failing("f".into())),
        2 => Just(Phase::Refused("r".into())),
        1 => Just(Phase::Lacking("l".into())),
        4 => Just(Phase::Settled),
    ]
}

fn settle(status: &Status, digest: &str) -> Status {
    advance(status, digest, &Phase::Settled, now())
}

proptest! {
    #[test]
    fn any_request_is_answered_the_same_twice(
        mut request in any_request(),
        odd in proptest::collection::vec(any_json(), 1..4),
    ) {
        let mut asked = None;
        for call in 0.. {
            let first = compose(&request);
            prop_assert_eq!(&first, &compose(&request));
            prop_assert_eq!(&first.tag, "tag");
            prop_assert_eq!(first.context.as_ref(), Some(&request.context));
            for key in request.desired.resources.keys() {
                prop_assert!(first.desired.resources.contains_key(key), "{} was dropped", key);
            }
            prop_assert!(first.results.iter().all(|r| r.severity != Severity::Fatal));
            if asked.as_ref() == Some(&first.requirements) {
                break;
            }
            prop_assert!(call < CALLS_MAX, "{:?} {:?}", asked, first.requirements);
            for (key, selector) in &first.requirements.resources {
                let found = odd.iter().map(|odd| answer(selector, odd)).collect();
                request.required.insert(key.clone(), found);
            }
            asked = Some(first.requirements);
        }
    }

    #[test]
    fn odd_composites_are_refused_not_fatal_to_us(composite in any_json(), observed in resources()) {
        let request = Request {
            observed: State {
                composite: Some(Resource::of(composite)),
                resources: observed.into_iter().map(|(k, v)| (k, Resource::of(v))).collect(),
            },
            ..Request::default()
        };
        prop_assert_eq!(compose(&request), compose(&request));
    }

    #[test]
    fn histories_are_orderly(events in proptest::collection::vec(any_event(), 0..120)) {
        let mut status = Status::default();
        let (mut digest, mut changes) = (0, 0);
        let mut time: Timestamp = now();
        for event in events {
            let phase = match event {
                Event::Change => {
                    digest += 1;
                    changes += 1;
                    Phase::Working("changed".into())
                }
                Event::ClockBack => {
                    time -= Duration::from_secs(3600);
                    Phase::Settled
                }
                Event::Phase(phase) => phase,
            };
            if status.intent.is_none() {
                changes = 0;
            }
            time += Duration::from_millis(700);
            let next = advance(&status, &digest.to_string(), &phase, time);
            prop_assert_eq!(&next, &advance(&status, &digest.to_string(), &phase, time));

            let states: Vec<Seca> = next.history.iter().map(|e| e.state).collect();
            prop_assert!(!states.is_empty() && states.len() <= HISTORY_LEN_MAX);
            prop_assert_eq!(Some(states[0]), next.state);
            prop_assert!(states.windows(2).all(|w| w[0] != w[1]), "{:?}", states);
            let times: Vec<Timestamp> = next.history.iter()
                .map(|e| e.last_transition_at.parse().unwrap()).collect();
            prop_assert!(times.windows(2).all(|w| w[0] >= w[1]), "{:?}", times);
            prop_assert_eq!(next.intent.as_ref().unwrap().revision, changes + 1);
            let added = states.len().saturating_sub(status.history.len());
            prop_assert!(added <= 4);
            if phase == Phase::Settled {
                prop_assert_eq!(states[0], Seca::Active);
                prop_assert_eq!(&next.message, &None);
            }
            // Seen again with nothing new, nothing is new.
            let again = advance(&next, &digest.to_string(), &phase, time + Duration::from_secs(9));
            prop_assert_eq!(&again, &next);
            status = next;
        }
    }

    #[test]
    fn what_was_active_stays_active_until_the_user_changes_it(
        phases in proptest::collection::vec(any_phase(), 0..40),
    ) {
        let active = settle(&Status::default(), "d");
        let mut status = active.clone();
        for phase in phases {
            status = advance(&status, "d", &phase, now() + Duration::from_secs(5));
            prop_assert_eq!(&status.history, &active.history);
            prop_assert_eq!(status.state, Some(Seca::Active));
            prop_assert_eq!(&status.intent, &active.intent);
            prop_assert_eq!(status.message.as_deref(), phase.message());
        }
    }

    #[test]
    fn an_intent_goes_through_few_states_whatever_happens(
        phases in proptest::collection::vec(any_phase(), 0..40),
    ) {
        let mut status = Status::default();
        for phase in phases {
            status = advance(&status, "d", &phase, now());
        }
        // pending, creating, error, active
        prop_assert!(status.history.len() <= 4, "{:?}", status.history);
    }

    #[test]
    fn a_change_that_is_done_at_once_adds_exactly_two(changes in 1usize..40) {
        let mut status = settle(&Status::default(), "0");
        for n in 1..=changes {
            status = settle(&status, &n.to_string());
            prop_assert_eq!(status.history.len(), (3 + 2 * n).min(HISTORY_LEN_MAX));
            prop_assert_eq!(status.history[0].state, Seca::Active);
            prop_assert_eq!(status.history[1].state, Seca::Updating);
        }
    }
}
