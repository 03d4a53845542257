//! Both stores against a naive model: a list of whole maps, one a revision.

use std::collections::BTreeMap;
use std::sync::Arc;

use ecp_store::{EmbeddedStore, Expect, ListRequest, MemoryStore, Op, Revision, Store};
use futures::{FutureExt, StreamExt};
use proptest::prelude::*;

use crate::behaviour::{delete, put};

type Map = BTreeMap<String, (String, u64)>;

#[derive(Clone, Debug)]
struct Step {
    key: u8,
    value: Option<u8>,
    expect: u8,
}

fn step() -> impl Strategy<Value = Step> {
    (0..6u8, proptest::option::of(any::<u8>()), 0..3u8).prop_map(|(key, value, expect)| Step {
        key,
        value,
        expect,
    })
}

fn name(key: u8) -> String {
    format!(
        "/{}/{key}",
        if key.is_multiple_of(2) { "even" } else { "odd" }
    )
}

async fn run(store: Arc<dyn Store>, commits: Vec<Vec<Step>>) {
    let mut watch = store.watch("/", Revision(0)).await.unwrap();
    let mut model: Vec<Map> = vec![Map::new()];
    for steps in commits {
        let now = model.last().unwrap().clone();
        let (mut then, mut ops, mut allowed): (_, Vec<Op>, _) = (now.clone(), Vec::new(), true);
        let (mut seen, mut changed) = (Vec::new(), false);
        let revision = model.len() as u64;
        for s in steps {
            let key = name(s.key);
            allowed &= !seen.contains(&key);
            seen.push(key.clone());
            let current = now.get(&key);
            let (expect, holds) = match s.expect {
                0 => (Expect::Any, true),
                1 => (Expect::Absent, current.is_none()),
                _ => {
                    let at = current.map_or(1, |c| c.1);
                    (Expect::Modified(Revision(at)), current.is_some())
                }
            };
            allowed &= holds;
            match s.value {
                Some(v) => {
                    ops.push(put(&key, &v.to_string(), expect));
                    then.insert(key, (v.to_string(), revision));
                    changed = true;
                }
                None => {
                    ops.push(delete(&key, expect));
                    changed |= then.remove(&key).is_some();
                }
            }
        }
        let result = store.commit(ops).await;
        assert_eq!(result.is_ok(), allowed, "{result:?}");
        if allowed && changed {
            assert_eq!(result.unwrap().revision.0, revision);
            model.push(then);
        }
    }
    for (revision, map) in model.iter().enumerate() {
        let at = Some(Revision(revision as u64));
        let list = store.list(ListRequest {
            prefix: "/".into(),
            at,
            ..Default::default()
        });
        let got: Map = list
            .await
            .unwrap()
            .entries
            .iter()
            .map(|e| {
                let value = String::from_utf8(e.value.to_vec()).unwrap();
                (e.key.to_string(), (value, e.modified.0))
            })
            .collect();
        assert_eq!(&got, map, "at revision {revision}");
    }
    let mut replayed = Map::new();
    while let Some(Some(event)) = watch.next().now_or_never() {
        let event = event.unwrap();
        let previous = replayed.remove(&*event.key).map(|(_, modified)| modified);
        assert_eq!(previous, event.previous.as_ref().map(|e| e.modified.0));
        if event.kind == ecp_store::EventKind::Put {
            let value = String::from_utf8(event.value.to_vec()).unwrap();
            replayed.insert(event.key.to_string(), (value, event.revision.0));
        }
    }
    assert_eq!(&replayed, model.last().unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn stores_agree_with_the_model(commits in prop::collection::vec(prop::collection::vec(step(), 1..4), 0..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run(Arc::new(MemoryStore::new()), commits.clone()));
        let dir = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(&dir.path().join("store")).unwrap();
        runtime.block_on(run(Arc::new(store), commits));
    }
}
