//! Transcripts: `tests/cases/<name>.yaml` has what the caller knows, `<name>.want.yaml` the answer.
//!
//! A case is `composite`, and optionally `observed` (by name in the composition), `world` (what can
//! be asked for, beside `world.yaml`), `without` (names of objects of `world.yaml` that are not
//! there) and `input`. `UPDATE=1 cargo test -p function-ecp` rewrites the answers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ecp_xr::function::Response;
use serde::Deserialize;
use serde_json::Value;

use crate::world::{World, now, request, run, show};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    composite: Value,
    #[serde(default)]
    observed: BTreeMap<String, Value>,
    #[serde(default)]
    world: Vec<Value>,
    #[serde(default)]
    without: Vec<String>,
    input: Option<Value>,
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

fn answer(case: &Case) -> String {
    let common = fs::read_to_string(directory().join("world.yaml")).unwrap();
    let mut world = World::of(&common);
    world.0.retain(|o| {
        !case
            .without
            .iter()
            .any(|name| o["metadata"]["name"] == name.as_str())
    });
    world.0.extend(case.world.clone());
    let ask = |composite: &Value, time| {
        let mut request = request(composite, &case.observed);
        request.input.clone_from(&case.input);
        run(request, &world, time)
    };
    let (response, calls) = ask(&case.composite, now());
    if let Some(told) = &response.desired.composite {
        // Seen again later, with its status, nothing is written and nothing is told.
        let mut composite = case.composite.clone();
        composite["status"] = told.object["status"].clone();
        let (again, _) = ask(&composite, now() + Duration::from_secs(3600));
        assert_eq!(again.desired, response.desired);
        assert_eq!(again.results, []);
        keeps_what_exists(&composite, &response, case);
    }
    let mut shown = show(&response);
    shown["calls"] = calls.into();
    serde_saphyr::to_string(&shown).unwrap()
}

/// What is wanted stays wanted as it is when all it was made from cannot be found for a while.
fn keeps_what_exists(composite: &Value, response: &Response, case: &Case) {
    let observed = response.desired.resources.iter().map(|(key, wanted)| {
        let mut live = (*wanted.object).clone();
        live["metadata"]["name"] = "managed".into();
        live["metadata"]["annotations"]["crossplane.io/external-name"] = "id-1".into();
        (key.clone(), live)
    });
    let mut request = request(composite, &observed.collect());
    request.input.clone_from(&case.input);
    let (lost, _) = run(request, &World::default(), now());
    let wanted = |response: &Response| -> Vec<(String, Value)> {
        let all = response.desired.resources.iter();
        all.map(|(k, r)| (k.clone(), (*r.object).clone())).collect()
    };
    assert_eq!(wanted(&lost), wanted(response));
}

#[test]
fn every_case_is_answered_as_written_down() {
    let update = std::env::var_os("UPDATE").is_some();
    let mut cases: Vec<_> = fs::read_dir(directory())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name != "world.yaml" && !name.ends_with(".want.yaml")
        })
        .collect();
    cases.sort();
    assert!(!cases.is_empty());
    let mut stale = Vec::new();
    for path in cases {
        let text = fs::read_to_string(&path).unwrap();
        let case =
            serde_saphyr::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let have = answer(&case);
        let want = path.with_extension("want.yaml");
        if update {
            fs::write(&want, &have).unwrap();
        } else if fs::read_to_string(&want).unwrap_or_default() != have {
            stale.push(format!("{}:\n{have}", want.display()));
        }
    }
    assert!(
        stale.is_empty(),
        "answers differ from what is written:\n{}",
        stale.join("\n")
    );
}
