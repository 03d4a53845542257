//! The function in our own engine, with the Compositions that are installed.

use std::collections::BTreeMap;

use ecp_meta::object;
use ecp_xr::compose::{observed_state, render};
use ecp_xr::composition::Composition;
use ecp_xr::pipeline::{Effect, Fetched, Outcome, Pipeline, Seeds};
use ecp_xrds::Flavour;
use serde_json::{Value, json};

use crate::world::{World, now};

/// The default Composition of an XR's kind.
fn composition(xr: &Value, flavour: Flavour) -> Composition {
    ecp_package::compositions(flavour)
        .iter()
        .map(|c| Composition::parse(c).unwrap())
        .find(|c| {
            xr["kind"] == c.composite_kind.as_str()
                && xr["apiVersion"] == c.composite_api_version.as_str()
        })
        .unwrap()
}

/// Runs the pipeline of an XR; also says how many calls it took.
fn run(xr: &Value, flavour: Flavour, world: &World, seeds: Seeds) -> (Outcome, usize) {
    let observed = observed_state(xr, BTreeMap::new(), &BTreeMap::new());
    let composition = composition(xr, flavour);
    let mut pipeline = Pipeline::new(composition.pipeline, observed, "id".into(), seeds);
    let mut calls = 0;
    let mut effect = pipeline.start();
    loop {
        effect = match effect {
            Effect::Fetch(wanted) => {
                let resources = wanted
                    .resources
                    .into_iter()
                    .map(|selector| {
                        let found = world.select(&selector);
                        (selector, Ok(found.into_iter().map(|r| r.object).collect()))
                    })
                    .collect();
                let fetched = Fetched {
                    resources,
                    ..Fetched::default()
                };
                pipeline.fetched(&fetched).unwrap()
            }
            Effect::Call {
                function, request, ..
            } => {
                assert_eq!(function, function_ecp::NAME);
                calls += 1;
                pipeline
                    .replied(Ok(function_ecp::compose(*request, now())))
                    .unwrap()
            }
            Effect::Done(outcome) => return (*outcome, calls),
        };
    }
}

/// The same volume as a namespaced XR and as the XR of a claim.
fn disk(flavour: Flavour) -> Value {
    let mut xr = json!({
        "apiVersion": "storage.v1.secapi.cloud/v1",
        "kind": "BlockStorage",
        "metadata": {
            "name": "data", "namespace": "acme-prod-6851f068", "uid": "u-1",
            "labels": {"crossplane.io/composite": "data"},
        },
        "spec": {"sizeGB": 20, "skuRef": {"resource": "skus/RD500"}},
    });
    if flavour == Flavour::Claims {
        xr["kind"] = "XBlockStorage".into();
        xr["metadata"] = json!({
            "name": "data-x7k2p", "uid": "u-1",
            "labels": {"crossplane.io/composite": "data-x7k2p"},
        });
        xr["spec"]["claimRef"] = json!({"namespace": "acme-prod-6851f068", "name": "data"});
    }
    xr
}

#[test]
fn both_flavours_make_the_same_volume_in_the_same_namespace() {
    let world = World::of(include_str!("../cases/world.yaml"));
    let mut specs = Vec::new();
    for flavour in Flavour::ALL {
        let xr = disk(flavour);
        let (outcome, _) = run(&xr, flavour, &world, Seeds::new());
        let rendered = render(&xr, &outcome.desired, &BTreeMap::new(), &BTreeMap::new()).unwrap();
        assert_eq!(rendered.events, [], "{flavour}");
        let volume = &rendered.composed["volume"].object;
        assert_eq!(object::namespace(volume), Some("acme-prod-6851f068"));
        assert_eq!(object::label(volume, "secapi.cloud/name"), Some("data"));
        specs.push(volume["spec"].clone());
    }
    assert_eq!(specs[0], specs[1]);
}

#[test]
fn an_engine_that_remembers_what_was_asked_calls_once() {
    let world = World::of(include_str!("../cases/world.yaml"));
    let xr = disk(Flavour::V2);
    let (first, calls) = run(&xr, Flavour::V2, &world, Seeds::new());
    assert_eq!(calls, 3);
    let (second, calls) = run(&xr, Flavour::V2, &world, first.requirements.clone());
    assert_eq!(calls, 1);
    assert_eq!(second, first);
}
