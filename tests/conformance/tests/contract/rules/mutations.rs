//! Valid bodies that are changed at random: never a fault of the server, never a stored object
//! that is not valid.

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom as _, IteratorRandom as _};
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::bodies;
use crate::cases;
use crate::kinds::*;
use crate::site::Site;

cases!(Two random_mutations_of_valid_bodies);

/// Of each server; there are two.
const MUTATIONS: usize = 100;
/// A text that stands for JSON which no [`Value`] can hold.
const RAW: &str = "\u{1}raw:";

async fn random_mutations_of_valid_bodies(site: Site) {
    for kind in KINDS {
        site.prepare_full(kind).await;
    }
    let seed: u64 = rand::random();
    let mut rng = StdRng::seed_from_u64(seed);
    for round in 0..MUTATIONS {
        let kind = KINDS[round % KINDS.len()];
        let spec = match rng.random_bool(0.7) {
            true => bodies::full(&site, kind),
            false => bodies::minimal(&site, kind),
        };
        let mut body = json!({
            "labels": { "env": "x" }, "annotations": { "a": "b" }, "extensions": { "c": [1] },
            "metadata": { "region": "" }, "spec": spec,
        });
        for _ in 0..rng.random_range(1..=3) {
            mutate(&mut rng, &site, &mut body);
        }
        let text = raw(&body.to_string());
        let path = site.path(kind, &format!("mutant-{round}"));
        let call = site
            .world
            .call("PUT", &path)
            .header("prefer", "respond-async");
        let call = call.header("content-type", "application/json");
        // The answer, and what is stored, are held against the OpenAPI document.
        let answer = call.bytes(text.clone()).send().await;
        let told = format!("seed {seed}, round {round}: {:.3000}\n{answer:#?}", text);
        match answer.status {
            201 => drop(site.world.get(&path).await.ok(200)),
            400 | 412 | 413 | 422 => {
                assert!(
                    !answer.body["detail"].as_str().unwrap().is_empty(),
                    "{told}"
                );
                assert_eq!(site.world.get(&path).await.status, 404, "{told}");
            }
            _ => panic!("{told}"),
        }
    }
    // All lists can still be shown, and all that was stored can go.
    for kind in KINDS {
        site.world.all(&site.list(kind), "").await;
    }
}

/// Pointers to all members and items.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let escape = |key: &str| key.replace('~', "~0").replace('/', "~1");
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(k, v)| (escape(k), v)).collect(),
        Value::Array(items) => {
            let numbered = items.iter().enumerate();
            numbered.map(|(n, v)| (n.to_string(), v)).collect()
        }
        _ => vec![],
    };
    for (key, child) in children {
        let pointer = format!("{at}/{key}");
        places(child, &pointer, found);
        found.push(pointer);
    }
}

fn mutate(rng: &mut StdRng, site: &Site, body: &mut Value) {
    let mut found = Vec::new();
    places(body, "", &mut found);
    let Some(pointer) = found.choose(rng) else {
        return;
    };
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match rng.random_range(0..6) {
        0 => match body.pointer_mut(parent) {
            Some(Value::Object(members)) => drop(members.remove(key)),
            Some(Value::Array(items)) => items.clear(),
            _ => {}
        },
        1 => {
            if let Some(Value::Object(members)) = body.pointer_mut(parent) {
                let odd = [
                    "",
                    "a/b~c",
                    "__proto__",
                    "\u{0}",
                    "\u{202e}x",
                    "region",
                    "crossplane",
                ];
                let key = odd.choose(rng).copied().unwrap_or_default();
                members.insert(key.into(), odd_value(rng, site));
            }
        }
        2 => {
            if let Some(Value::Array(items)) = body.pointer_mut(parent) {
                let n = rng.random_range(2..600);
                *items = items.iter().cycle().take(n).cloned().collect();
            }
        }
        3 => {
            if let Some(value) = body.pointer_mut(pointer) {
                *value = retyped(value);
            }
        }
        _ => {
            if let Some(value) = body.pointer_mut(pointer) {
                *value = odd_value(rng, site);
            }
        }
    }
}

/// The same content in another type.
fn retyped(value: &Value) -> Value {
    match value {
        Value::Number(n) => json!(n.to_string()),
        Value::String(s) => json!([s]),
        Value::Bool(b) => json!(i32::from(*b)),
        Value::Null => json!({}),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(n, v)| (n.to_string(), v.clone()))
            .collect(),
        Value::Object(members) => members.values().cloned().collect(),
    }
}

fn odd_value(rng: &mut StdRng, site: &Site) -> Value {
    let kind = KINDS.iter().choose(rng).unwrap();
    let deep = (0..rng.random_range(1..100)).fold(json!(1), |inner, n| match n % 2 {
        0 => json!([inner]),
        _ => json!({ "deep": inner }),
    });
    let all = [
        Value::Null,
        json!(true),
        json!(0),
        json!(-1),
        json!(0.5),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(f64::MAX),
        json!(format!("{RAW}1e400")),
        json!(format!("{RAW}-0")),
        json!(format!("{RAW}123456789012345678901234567890")),
        json!(""),
        json!(" "),
        json!("\u{0}"),
        json!("\u{feff}\u{202e}\u{1F600}\u{e000}"),
        json!("ü".repeat(200)),
        json!("x".repeat(70_000)),
        json!("../../etc/passwd"),
        json!("{{ .Values.x }} ${jndi} %s"),
        json!([]),
        json!({}),
        json!({ "resource": site.urn(kind, "missing") }),
        json!([{ "resource": site.urn(kind, kind.sample) }]),
        json!(site.urn(kind, kind.sample)),
        json!({ "resource": "/".repeat(200) }),
        deep,
    ];
    all.into_iter().choose(rng).unwrap()
}

/// Puts in what a [`Value`] cannot hold.
fn raw(text: &str) -> String {
    let escaped = serde_json::to_string(RAW).unwrap();
    let start = escaped.trim_end_matches('"');
    let mut parts = text.split(start);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (number, rest) = part.split_once('"').unwrap();
        out += number;
        out += rest;
    }
    out
}
